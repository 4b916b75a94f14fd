"""Computes the fractional edge cover number of some variables exactly.

Atoms get weights such that, for each of the variables, the atoms with this variable weigh at least 1 together. The
number is the least total weight. For a triangle it is 3/2: each of the three atoms weighs 1/2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, reduce
from operator import or_


def edge_cover_number(variables: frozenset[str], edges: Iterable[frozenset[str]]) -> Fraction:
    """rho* of the variables. Raises ValueError if a variable is in no edge.

    Let S be some variables. Edges get weights, such that the edges of every variable in S weigh at least 1 together.
    The least total weight is rho*(S). For the triangle R(a, b), S(b, c), T(c, a) it is 3/2: each edge weighs 1/2. Over
    relations of N rows, the join projected on S has at most N^rho*(S) rows (Atserias, Grohe, Marx).

    The dual linear program is solved by the simplex method with Bland's rule, over integers. So rounding never decides
    a plan.
    """
    bits = bits_of(variables)
    return numbered_cover(set_of(variables, bits), [set_of(edge & variables, bits) for edge in edges], bits)


def bits_of(variables: Iterable[str]) -> dict[str, int]:
    """Numbers of variables, for sets as integers with a bit each: a join of 60 tables asks for thousands of covers."""
    return {v: 1 << i for i, v in enumerate(sorted(variables))}


def set_of(variables: Iterable[str], bits: Mapping[str, int]) -> int:
    """A set of variables as an integer."""
    return sum(map(bits.__getitem__, variables))


def numbered_cover(variables: int, edges: Iterable[int], bits: Mapping[str, int]) -> Fraction:
    """rho* of variables. Raises ValueError if a variable is in no edge."""
    maximal = maximal_edges(frozenset(edge & variables for edge in edges))
    missing = variables & ~reduce(or_, maximal, 0)
    if missing:
        raise ValueError(f"variable {next((v for v, bit in bits.items() if bit & missing))} is in no edge")
    return _cover(maximal)


@lru_cache(maxsize=65536)
def _cover(edges: frozenset[int]) -> Fraction:
    whole, left = 0, edges
    while len(left) > 1:
        # A variable that is alone in its edge forces that edge; the variables it covers are done.
        forced = _with_own_variables(left)
        if not forced:
            return whole + _largest_packing(sorted(left))
        covered = reduce(or_, forced)
        whole += len(forced)
        left = maximal_edges(frozenset(edge & ~covered for edge in left - forced))
    return Fraction(whole + len(left))


def _with_own_variables(edges: frozenset[int]) -> frozenset[int]:
    """The edges with a variable that no other edge has."""
    some = several = 0
    for edge in edges:
        several |= some & edge
        some |= edge
    return frozenset(edge for edge in edges if edge & ~several)


def maximal_edges(edges: frozenset[int]) -> frozenset[int]:
    """The non-empty edges that no other edge contains: the others help no cover."""
    own = _with_own_variables(edges)
    rest = [edge for edge in edges if edge and edge not in own]
    return own.union(edge for edge in rest if not any(edge != other and edge & other == edge for other in edges))


def _largest_packing(edges: list[int]) -> Fraction:
    """max sum(y) with sum(y[v] for v in edge) <= 1 per edge and y >= 0: the dual, of the same value.

    All rows have one denominator, the last pivot, so their entries stay integers (Edmonds; Bareiss).
    """
    everything = reduce(or_, edges)
    variables = [1 << i for i in range(everything.bit_length()) if everything >> i & 1]
    width = len(variables) + len(edges)
    rows = [
        [int(v & edge != 0) for v in variables] + [int(i == j) for j in range(len(edges))] + [1]
        for i, edge in enumerate(edges)
    ]
    objective = [-1] * len(variables) + [0] * (len(edges) + 1)
    basis = [len(variables) + i for i in range(len(edges))]
    denominator = 1
    while True:
        entering = next((j for j in range(width) if objective[j] < 0), None)
        if entering is None:
            return Fraction(objective[-1], denominator)
        # Every variable is in an edge, so the program is bounded and some row limits it.
        limits = [(Fraction(row[-1], row[entering]), basis[i], i) for i, row in enumerate(rows) if row[entering] > 0]
        leaving = min(limits)[2]
        pivotal = rows[leaving]
        pivot = pivotal[entering]
        for i, row in enumerate(rows):
            if i != leaving:
                rows[i] = _reduced(row, row[entering], pivotal, pivot, denominator)
        objective = _reduced(objective, objective[entering], pivotal, pivot, denominator)
        denominator = pivot
        basis[leaving] = entering


def _reduced(row: list[int], factor: int, pivotal: list[int], pivot: int, denominator: int) -> list[int]:
    """A row over the new denominator, without the entering variable; each division has no remainder."""
    if not factor:
        return row if pivot == denominator else [value * pivot // denominator for value in row]
    return [(value * pivot - factor * other) // denominator for value, other in zip(row, pivotal, strict=True)]
