"""The fractional edge cover number, computed exactly.

rho*(S) is the least total weight of edges such that, for every variable in S, the weights of its edges add up to at
least 1. Over relations of N rows, the join projected on S has at most N^rho*(S) rows (Atserias, Grohe, Marx): 3/2 for
the triangle R(a, b), S(b, c), T(c, a). The linear program is small. Its dual (weights on variables, at most 1 on each
edge) starts feasible and is solved by the simplex method with Bland's rule over fractions, so rounding never decides a
plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import chain


def edge_cover_number(variables: frozenset[str], edges: Iterable[frozenset[str]]) -> Fraction:
    """rho* of the variables. Raises ValueError if a variable is in no edge."""
    maximal = _maximal(frozenset(edge & variables for edge in edges))
    missing = variables - frozenset[str]().union(*maximal)
    if missing:
        raise ValueError(f"no edge covers {min(missing)}")
    return _cover(maximal)


@lru_cache(maxsize=65536)
def _cover(edges: frozenset[frozenset[str]]) -> Fraction:
    whole, left = 0, edges
    while len(left) > 1:
        # A variable that is alone in its edge forces that edge; the variables it covers are done.
        forced = _with_own_variables(left)
        if not forced:
            return whole + _largest_packing([sorted(edge) for edge in sorted(left, key=sorted)])
        covered = frozenset[str]().union(*forced)
        whole += len(forced)
        left = _maximal(frozenset(edge - covered for edge in left - forced))
    return Fraction(whole + len(left))


def _with_own_variables(edges: frozenset[frozenset[str]]) -> frozenset[frozenset[str]]:
    """The edges with a variable that no other edge has."""
    times = Counter(chain.from_iterable(edges))
    return frozenset(edge for edge in edges if any(times[v] == 1 for v in edge))


def _maximal(edges: frozenset[frozenset[str]]) -> frozenset[frozenset[str]]:
    """The edges that are not empty and contained in no other."""
    own = _with_own_variables(edges)
    rest = [edge for edge in edges if edge and edge not in own]
    return own.union(edge for edge in rest if not any(edge < other for other in edges))


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
