"""IVM^eps: maintains counts over three relations R(a, b), S(b, c), T(c, a) in sublinear time.

A value is heavy in a relation if many of the relation's rows have it, otherwise light.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang: Counting Triangles under Updates in Worst-Case Optimal Time (ICDT 2019),
Figure 3. An update of R(a, b) needs the sum over c of S(b, c) T(c, a):

- b is light in S: join the few rows of S with this b;
- b is heavy in S, c light in T: look up V_ST(b, a) = S_heavy(b, c) T_light(c, a);
- b is heavy in S, c heavy in T: loop over the few heavy c that T has with this a.

The plan of Q() = R(a, b) S(b, c) T(c, a), as far as R is concerned::

    on R(a, b) += m:
        u = sum:
            if S_heavy[b]:
                if v := V_ST[b, a]: u += m * v
                for c, t in T.heavy[_, a]:
                    if s := S[b, c]: u += m * s * t
            else:
                for c, s in S[b]:                   or the rows of T[_, a], if they are fewer
                    if t := T[c, a]: u += m * s * t
        Q[] += u
        if R_heavy[a]:
            if no S_heavy[b]:
                for c, s in S[b]: V_RS[a, c] += m * s
        else:
            for c, t in T.heavy[_, a]: V_TR[c, b] += m * t
        R[a, b] += m
            appears: if R_heavy[a]: the row enters R.heavy
        balance R by a

An update takes O(N^max(eps, 1 - eps)) steps. `docs/ivm-eps.md` gives the departures from the paper.
"""

from __future__ import annotations

from collections.abc import Mapping

from freshviews.plan.eps import cycle
from freshviews.plan.eps.cases import Case, Where
from freshviews.plan.eps.cycle import Role
from freshviews.program.program import Program
from freshviews.query.query import Query

DEFAULT = 0.5
"""The exponent of the least time."""


def plan(query: Query, epsilon: float | Mapping[str, float] = DEFAULT) -> Program:
    """The program of a query over three relations.

    ``epsilon`` is from 0 to 1, for all atoms or by the name of the atom. PlanError for other queries.

    ``a``, ``b`` and ``c`` each stand for all variables that two of the relations share. There may be none: in the chain
    R(b), S(b, c), T(c), ``a`` is empty. A variable that occurs in all three relations is part of ``a``, of ``b`` and of
    ``c``.
    """
    return cycle.plan(query, epsilon, sums, placed=True)


def sums(s: Role, t: Role, v_st: str) -> tuple[Where, tuple[Case, ...]]:
    """The rows of V_ST, and the cases of an update of R."""
    b, c = s.part(s.by), t.part(t.by)
    both = (s.name, t.name)
    return {b: True, c: False}, (
        Case({b: True}, (v_st,)),
        Case({b: True, c: True}, both),
        Case({b: False}, both),
    )
