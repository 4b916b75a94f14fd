"""Tests whether a query is hierarchical, q-hierarchical or delta_i-hierarchical.

- *hierarchical* (Dalvi, Suciu 2004): the sets of atoms of any two variables are disjoint or nested.
- *q-hierarchical* (Berkholz, Keppeler, Schweikardt 2017): hierarchical, and the atoms of a bound variable never
  properly contain the atoms of a free variable.
- *delta_i-hierarchical* (Kara, Nikolic, Olteanu, Zhang 2020): hierarchical with dynamic width i.
"""

from __future__ import annotations

from itertools import combinations

from freshviews.query.hypergraph import Hypergraph


def crossing_pair(graph: Hypergraph) -> tuple[str, str] | None:
    """The first two variables whose atom sets overlap without nesting; None if there are none."""
    atoms = {v: graph.edge_names(v) for v in graph.variables}
    # One variable represents all variables of the same atoms.
    first = {names: v for v, names in reversed(atoms.items())}
    for one, other in combinations((v for v, names in atoms.items() if first[names] == v), 2):
        if atoms[one] & atoms[other] and not atoms[one] <= atoms[other] and not atoms[other] <= atoms[one]:
            return one, other
    return None


def buried_free(graph: Hypergraph) -> tuple[str, str] | None:
    """The first (free, bound) pair where the bound variable's atoms properly contain the free one's."""
    atoms = {v: graph.edge_names(v) for v in graph.variables}
    first = {(names, v in graph.free): v for v, names in reversed(atoms.items())}
    variables = [v for v, names in atoms.items() if first[names, v in graph.free] == v]
    for free in variables:
        for bound in variables:
            if free in graph.free and bound not in graph.free and atoms[free] < atoms[bound]:
                return free, bound
    return None


def is_hierarchical(graph: Hypergraph) -> bool:
    return not graph.spanning and crossing_pair(graph) is None


def is_q_hierarchical(graph: Hypergraph) -> bool:
    return is_hierarchical(graph) and buried_free(graph) is None


def delta_rank(graph: Hypergraph) -> int | None:
    """The i for which the query is delta_i-hierarchical; None if it is not hierarchical.

    In a hierarchical query one atom covers one chain of nested variables. So the variables that an atom leaves
    uncovered need as many atoms as they have distinct minimal atom sets.

    Take any bound variable X and an atom R of X. R and at most i other atoms cover the free variables of the atoms of
    X. The least i that suffices for all X and R is the dynamic width. q-hierarchical means i = 0.
    """
    if not is_hierarchical(graph):
        return None
    rank = 0
    for bound in graph.variables:
        if bound in graph.free:
            continue
        edges = graph.touching(frozenset((bound,)))
        free = graph.free & frozenset[str]().union(*(edge.variables for edge in edges))
        for edge in edges:
            atoms = {graph.edge_names(v) for v in free - edge.variables}
            rank = max(rank, sum(not any(other < names for other in atoms) for names in atoms))
    return rank
