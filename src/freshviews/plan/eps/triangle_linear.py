"""IVM^eps in linear space: maintains counts over R(a, b), S(b, c), T(c, a).

A value is heavy in a relation if many of the relation's rows have it, otherwise light. Both columns of a relation have
heavy and light values.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang (ICDT 2019, extended version). For an update of R(a, b):

- b is light in S, or a is light in T: join the smaller of the two slices: O(N^eps) steps;
- both are heavy: look up V_ST(b, a). It joins the rows of S that have a heavy b and the rows of T that have a heavy a.

The plan of Q() = R(a, b) S(b, c) T(c, a), as far as R is concerned::

    on R(a, b) += m:
        u = sum:
            if S_heavy_b[b] and T_heavy_a[a]:
                if v := V_ST[b, a]: u += m * v
            else:
                for c, s in S[b]:                   or the rows of T[_, a], if they are fewer
                    if t := T[c, a]: u += m * s * t
        Q[] += u
        if R_heavy_a[a]:
            for c, s in S.heavy_c[b]: V_RS[a, c] += m * s
        if R_heavy_b[b]:
            for c, t in T.heavy_c[_, a]: V_TR[c, b] += m * t
        R[a, b] += m
            appears: the row enters R.heavy_a and R.heavy_b where its values are heavy
        balance R[a, b]

`docs/ivm-eps.md` gives the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

from freshviews.plan.eps import cycle
from freshviews.plan.eps.cases import Case, Where
from freshviews.plan.eps.cycle import Role, cycle_of, is_aware
from freshviews.program.program import Program
from freshviews.query.query import Query

DEFAULT = 0.5
"""The least exponent at which the views take linear space, and that of the least time."""


def plan(query: Query, epsilon: float | Mapping[str, float] = DEFAULT) -> Program:
    """The program of a query over three relations.

    ``epsilon`` is from 0 to 1, for all atoms or by the name of the atom. PlanError for other queries.

    An update takes O(N^max(eps, 1 - eps)) steps, and a minor rebalancing O(N^eps) times as many. There are at most
    2 N^(1 - eps) heavy values, so V_ST has at most 4 N^(2 - 2 eps) rows: 4 N for eps = 1/2.

    Departures from the paper: where both values are heavy, the views hold the sum over all c, heavy or light.
    Occurrences of one relation share a store and its parts.
    """
    return cycle.plan(query, epsilon, _sums, placed=False)


def is_helped(query: Query) -> bool:
    """True if the updates of some relation take fewer steps than under ``first_order``: all its occurrences bind the
    groups. PlanError for queries that this strategy does not take."""
    found = cycle_of(query, DEFAULT)
    relations = {role.atom.relation for role in found}
    aware = {role.name: is_aware(query, found, role) for role in found}
    return any(all(aware[r.name] for r in found if r.atom.relation == relation) for relation in relations)


def _sums(s: Role, t: Role, v_st: str) -> tuple[Where, tuple[Case, ...]]:
    """The rows of V_ST, and the cases of an update of R."""
    b, a = s.part(s.by), t.part(t.other)
    both = (s.name, t.name)
    return {b: True, a: True}, (
        Case({b: True, a: True}, (v_st,)),
        Case({b: True, a: False}, both),
        Case({b: False}, both),
    )
