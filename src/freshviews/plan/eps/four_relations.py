"""IVM^eps over four relations: counts 4-cycles, 4-paths and Loomis-Whitney joins of degree 4 in sublinear time.

A value is heavy if many rows have it, otherwise light. `docs/ivm-eps.md` derives the cases and their bounds.
Lines such as ``on R(b)`` list the terms that an update adds. For ``W_d[b] U``, it loops over ``W_d[b]`` and looks up U.

**4-path**, R(b) S(b, c) T(c, d) U(d); its two end variables are summed out. O(N^max(eps, 1 - eps)) steps::

    V_TU(c) = T U where c is heavy, or c and d are light      W_d(b, d) = S T where c is light and d is heavy
    V_RS(c) = R S where c is heavy, or c and b are light      W_b(b, d) = S T where c is light and b is heavy
    X_b(b) = S T U where b is heavy, and c and d are light    X_d(d) = R S T where d is heavy, and c and b are light

    on R(b):     W_d[b] U    S[b] V_TU where b is light or c is heavy    X_b[b] where b is heavy
    on S(b, c):  R V_TU where c is heavy    R T[c] U where c is light

**4-cycle**, R(a, b) S(b, c) T(c, d) U(d, a): O(N^max(2 eps, 1 - eps)) steps, N^(2/3) at eps = 1/3::

    H_ST(b, d) = S T where b and d are heavy        L_ST(b, d) = S T where c is light, and b or d is heavy
    V_STU(b, a) = S T U where b and a are heavy, and c and d are light      ... and likewise all around the cycle

    on R(a, b):  a and b light:     U[a] S[b] T
                 a light, b heavy:  U[a] H_ST where d is heavy    U[a] T[d] S where d is light
                 a heavy, b light:  S[b] H_TU where c is heavy    S[b] T[c] U where c is light
                 a and b heavy:     U[a] H_ST where d is heavy    S[b] L_TU where c is heavy    V_STU
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, permutations

from freshviews.errors import PlanError
from freshviews.plan.eps.cases import Auxiliary, Case, Cases, Key, Part, Table
from freshviews.plan.eps.cycle import exponent, forgotten
from freshviews.plan.leaves import spanning_lifts
from freshviews.plan.naming import Namer, joined_name
from freshviews.program.program import Program
from freshviews.query.query import Query

Sides = tuple[Key, ...]
"""Groups of variables. The variables of a group occur in the same relations."""

_SHAPES = {
    "path": ((0, 1), (1, 2), (2, 3)),
    "cycle": ((3, 0), (0, 1), (1, 2), (2, 3)),
    "loomis_whitney": ((1, 2, 3), (2, 3, 0), (3, 0, 1), (0, 1, 2)),
}
"""By shape and side, the relations that share the side."""

DEFAULTS = {"path": 1 / 2, "cycle": 1 / 3, "loomis_whitney": 1 / 2}
"""By shape, the exponent of the least time."""


def shape_of(query: Query) -> tuple[str, tuple[str, ...], Sides] | None:
    """The shape of a query over four relations, its atoms in the order of the shape, and its sides.

    None if this strategy does not take the query.
    """
    if len(query.atoms) != 4 or query.free or query.conditions or spanning_lifts(query):
        return None
    query = forgotten(query)
    names = tuple(atom.name for atom in query.atoms)
    for order in permutations(names):
        sides: dict[frozenset[int], list[str]] = {}
        for variable in query.variables:
            sharing = frozenset(i for i, name in enumerate(order) if variable in query.atom(name).variables)
            sides.setdefault(sharing, []).append(variable)
        for shape, places in _SHAPES.items():
            wanted = [frozenset(place) for place in places]
            if sides.keys() == set(wanted):
                return shape, order, tuple(tuple(sides[sharing]) for sharing in wanted)
    return None


def is_cycle(query: Query) -> bool:
    """True for a 4-cycle. Its exponent should be less than 1/2."""
    found = shape_of(query)
    return found is not None and found[0] == "cycle"


def plan(query: Query, epsilon: float | Mapping[str, float] | None = None) -> Program:
    """The program of a count, or of sums, over four relations.

    ``epsilon`` is from 0 to 1, for all atoms or by the name of the atom; by default that of the least time.
    PlanError if the query has none of the shapes.
    """
    found = shape_of(query)
    if found is None:
        raise PlanError(
            f"{query.name}: ivm_eps maintains four relations only as a 4-cycle, 4-path or Loomis-Whitney join, without "
            "GROUP BY or conditions across relations; set 'first_order' or 'view_tree'"
        )
    shape, order, sides = found
    query, namer = forgotten(query), Namer(query)
    given = {atom.name: exponent({} if epsilon is None else epsilon, atom, DEFAULTS[shape]) for atom in query.atoms}
    return Cases(query, TABLES[shape](order, sides), given, namer).held(_bounds(shape, given))


def path(order: tuple[str, ...], sides: Sides) -> Table:
    """R(b) S(b, c) T(c, d) U(d)."""
    r, s, t, u = order
    b, c, d = (Part(side, atoms) for side, atoms in zip(sides, ((s,), (s, t), (t,)), strict=True))
    v_tu, v_rs, w_b, w_d, x_b, x_d = (
        *(f"V_{joined_name(pair)}" for pair in ((t, u), (r, s))),
        *(f"{letter}_{'_'.join(side)}" for letter in "WX" for side in (b.key, d.key)),
    )
    auxiliaries = (
        Auxiliary(v_tu, c.key, (t, u), ({c: True}, {c: False, d: False})),
        Auxiliary(v_rs, c.key, (r, s), ({c: True}, {c: False, b: False})),
        Auxiliary(w_b, (*b.key, *d.key), (s, t), ({b: True, c: False},)),
        Auxiliary(w_d, (*b.key, *d.key), (s, t), ({d: True, c: False},)),
        Auxiliary(x_b, b.key, (s, t, u), ({b: True, c: False, d: False},), {u: (Case({d: False}, (w_b,)),)}),
        Auxiliary(x_d, d.key, (r, s, t), ({d: True, c: False, b: False},), {r: (Case({b: False}, (w_d,)),)}),
    )

    def at_end(pairs: str, other: str, end: Part, inner: str, summed: str, whole: str) -> tuple[Case, ...]:
        return (
            Case({}, (pairs, other)),
            Case({end: False}, (inner, summed)),
            Case({end: True, c: True}, (inner, summed)),
            Case({end: True}, (whole,)),
        )

    result = {
        r: at_end(w_d, u, b, s, v_tu, x_b),
        s: (Case({c: True}, (r, v_tu)), Case({c: False}, (r, t, u))),
        t: (Case({c: True}, (u, v_rs)), Case({c: False}, (u, s, r))),
        u: at_end(w_b, r, d, t, v_rs, x_d),
    }
    return Table(auxiliaries, result)


def cycle(order: tuple[str, ...], sides: Sides) -> Table:
    """R(a, b) S(b, c) T(c, d) U(d, a): the i-th relation has the i-th side and the next one."""

    def name(letter: str, first: int, count: int) -> str:
        return f"{letter}_{joined_name(tuple(order[(first + i) % 4] for i in range(count)))}"

    auxiliaries: list[Auxiliary] = []
    result = {}
    parts = [Part(side, (order[i - 1], order[i])) for i, side in enumerate(sides)]
    for i, r in enumerate(order):
        s, t, u = (order[(i + k) % 4] for k in (1, 2, 3))
        a, b, c, d = (parts[(i + k) % 4] for k in range(4))
        h_st, h_tu, l_st, l_tu, v_stu = (
            *(name("H", i + k, 2) for k in (1, 2)), *(name("L", i + k, 2) for k in (1, 2)), name("V", i + 1, 3)
        )
        ends = (*b.key, *d.key)
        auxiliaries += [
            Auxiliary(h_st, ends, (s, t), ({b: True, d: True},)),
            Auxiliary(l_st, ends, (s, t), ({c: False, b: True}, {c: False, b: False, d: True})),
            Auxiliary(
                v_stu,
                (*b.key, *a.key),
                (s, t, u),
                ({b: True, a: True, c: False, d: False},),
                {s: (Case({b: True, c: False}, (l_tu,)),), u: (Case({a: True, d: False}, (l_st,)),)},
            ),
        ]
        result[r] = (
            Case({a: False, b: False}, (u, s, t)),
            Case({b: True, d: True}, (u, h_st)),
            Case({a: False, b: True, d: False}, (u, t, s)),
            Case({a: True, b: False, c: True}, (s, h_tu)),
            Case({a: True, b: False, c: False}, (s, t, u)),
            Case({a: True, b: True, c: True}, (s, l_tu)),
            Case({a: True, b: True}, (v_stu,)),
        )
    return Table(tuple(auxiliaries), result)


def loomis_whitney(order: tuple[str, ...], sides: Sides) -> Table:
    """R(b, c, d) S(c, d, a) T(d, a, b) U(a, b, c): the i-th relation lacks the i-th side.

    **Loomis-Whitney join of degree 4**, R(b, c, d) S(c, d, a) T(d, a, b) U(a, b, c): O(N^max(eps, 1 - eps)) steps. Here
    pairs of values are heavy or light, not single values. An update of R needs the values of a that occur in S with (c,
    d), in T with (d, b) and in U with (b, c). If one of these pairs is light, its few rows are joined. If all three are
    heavy, ``V_STU(b, c, d)`` has the sum.
    """

    def pair(i: int, j: int) -> Part:
        return Part((*sides[i], *sides[j]), tuple(name for k, name in enumerate(order) if k not in (i, j)))

    auxiliaries, result = [], {}
    for i, name in enumerate(order):
        own = [j for j in range(4) if j != i]
        pairs = [pair(j, k) for j, k in combinations(own, 2)]
        others = tuple(order[j] for j in own)
        view = f"V_{joined_name(others)}"
        auxiliaries.append(
            Auxiliary(view, tuple(v for j in own for v in sides[j]), others, (dict.fromkeys(pairs, True),))
        )
        result[name] = (
            *(Case({**dict.fromkeys(pairs[:k], True), pairs[k]: False}, others) for k in range(3)),
            Case(dict.fromkeys(pairs, True), (view,)),
        )
    return Table(tuple(auxiliaries), result)


TABLES: dict[str, Callable[[tuple[str, ...], Sides], Table]] = {
    "path": path,
    "cycle": cycle,
    "loomis_whitney": loomis_whitney,
}


def _bounds(shape: str, epsilon: Mapping[str, float]) -> tuple[tuple[str, str], ...]:
    high, low = max(epsilon.values()), min(epsilon.values())
    if shape == "cycle":
        update, space = max(2 * high, 1 - low), max(1 + high, 2 - 2 * low)
    elif shape == "path":
        update, space = max(high, 1 - low), 1 + min(high, 1 - low)
    else:
        update, space = max(high, 1 - low), max(1.0, 1.5 * (1 - low))
    shown = [f"O(N^{min(exponent, cap):.3g})" for exponent, cap in ((update, 1.0), (space, 2.0))]
    return (("update", f"{shown[0]} amortised"), ("delay", "O(1)"), ("space", shown[1]))
