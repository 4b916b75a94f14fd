"""The fractional edge cover number, computed exactly.

rho*(S) is the least total weight of edges such that, for every variable in S, the weights of its edges add up to at
least 1. Over relations of N rows, the join projected on S has at most N^rho*(S) rows (Atserias, Grohe, Marx): 3/2 for
the triangle R(a, b), S(b, c), T(c, a). The linear program is small. Its dual (weights on variables, at most 1 on each
edge) starts feasible and is solved by the simplex method with Bland's rule over fractions, so rounding never decides a
plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache


def edge_cover_number(variables: frozenset[str], edges: Iterable[frozenset[str]]) -> Fraction:
    """rho* of the variables. Raises ValueError if a variable is in no edge."""
    parts = frozenset(edge & variables for edge in edges)
    maximal = frozenset(part for part in parts if part and not any(part < other for other in parts))
    missing = variables - frozenset[str]().union(*maximal)
    if missing:
        raise ValueError(f"no edge covers {min(missing)}")
    return _cover(maximal)


@lru_cache(maxsize=65536)
def _cover(edges: frozenset[frozenset[str]]) -> Fraction:
    if len(edges) <= 1:
        return Fraction(len(edges))
    # A variable that is alone in its edge forces that edge; the variables it covers are done.
    for edge in edges:
        others = frozenset[str]().union(*(other for other in edges if other != edge))
        if edge - others:
            left = frozenset(other - edge for other in edges if other != edge)
            kept = frozenset(p for p in left if p and not any(p < q for q in left))
            return 1 + _cover(kept)
    return _largest_packing([sorted(edge) for edge in sorted(edges, key=sorted)])


def _largest_packing(edges: list[list[str]]) -> Fraction:
    """max sum(y) with sum(y[v] for v in edge) <= 1 per edge and y >= 0: the dual, of the same value."""
    variables = sorted({v for edge in edges for v in edge})
    width = len(variables) + len(edges)
    rows = []
    for i, edge in enumerate(edges):
        row = [Fraction(v in edge) for v in variables] + [Fraction(i == j) for j in range(len(edges))]
        rows.append([*row, Fraction(1)])
    objective = [Fraction(-1)] * len(variables) + [Fraction(0)] * (len(edges) + 1)
    basis = [len(variables) + i for i in range(len(edges))]
    while True:
        entering = next((j for j in range(width) if objective[j] < 0), None)
        if entering is None:
            return objective[-1]
        # Every variable is in an edge, so the program is bounded and some row limits it.
        limits = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(rows) if row[entering] > 0]
        leaving = min(limits)[2]
        pivot = rows[leaving][entering]
        rows[leaving] = [value / pivot for value in rows[leaving]]
        for i, row in enumerate(rows):
            if i != leaving and row[entering]:
                rows[i] = _minus(row, row[entering], rows[leaving])
        objective = _minus(objective, objective[entering], rows[leaving])
        basis[leaving] = entering


def _minus(row: list[Fraction], factor: Fraction, other: list[Fraction]) -> list[Fraction]:
    return [value - factor * subtrahend for value, subtrahend in zip(row, other, strict=True)]
