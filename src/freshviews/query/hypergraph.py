"""Represents a query as a hypergraph, whose nodes are the variables and whose edges are the atoms.

An atom is one joined table or view. ``Q(a, c) = R(a, b), S(b, c), a < c`` has the edges {a, b} and {b, c}. The
condition ``a < c`` is a *factor*, {a, c}.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple, TypeVar

from freshviews.query.query import Query
from freshviews.records import dataclass

T = TypeVar("T")


class Edge(NamedTuple):
    """The variables of one atom, by the atom's name."""

    name: str
    variables: frozenset[str]


@dataclass(frozen=True)
class Hypergraph:
    """Edges and factors; ``variables`` and ``factors`` are in the order of the query, which breaks ties."""

    variables: tuple[str, ...]
    free: frozenset[str]
    edges: tuple[Edge, ...]
    factors: tuple[frozenset[str], ...] = ()

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each variable in the order of the query."""
        return {variable: place for place, variable in enumerate(self.variables)}

    @property
    def spanning(self) -> tuple[frozenset[str], ...]:
        """The factors whose variables are in no single atom."""
        return tuple(f for f in self.factors if not any(f <= edge.variables for edge in self.edges))

    def ordered(self, variables: Iterable[str]) -> tuple[str, ...]:
        """The given variables, in the order of the query."""
        chosen = frozenset(variables)
        return tuple(v for v in self.variables if v in chosen)

    def edge_names(self, variable: str) -> frozenset[str]:
        """Names of the atoms that contain a variable."""
        return frozenset(edge.name for edge in self.edges if variable in edge.variables)

    def touching(self, variables: frozenset[str]) -> tuple[Edge, ...]:
        """The edges that contain at least one of the variables."""
        return tuple(edge for edge in self.edges if edge.variables & variables)


def hypergraph(query: Query) -> Hypergraph:
    """The hypergraph of a query. Raises ValueError if a variable that is free or in a factor is in no atom."""
    known = frozenset(query.variables)
    used = frozenset(query.free).union(*map(frozenset, query.factors))
    if used - known:
        raise ValueError(f"{query.name}: no atom has the variable {min(used - known)}")
    return Hypergraph(
        query.variables,
        frozenset(query.free),
        tuple(Edge(atom.name, frozenset(atom.variables)) for atom in query.atoms),
        tuple(map(frozenset, query.factors)),
    )


def components(graph: Hypergraph, variables: frozenset[str]) -> tuple[frozenset[str], ...]:
    """The connected components of the graph restricted to the given variables, ordered by their first variable.

    Two variables are adjacent if an atom or a factor contains both.
    """
    links = [edge.variables & variables for edge in graph.edges]
    links += [factor & variables for factor in graph.factors]
    found: list[frozenset[str]] = []
    for link in filter(None, links):
        apart = [part for part in found if part.isdisjoint(link)]
        found = [*apart, link.union(*(part for part in found if not part.isdisjoint(link)))]
    found += [frozenset((variable,)) for variable in variables.difference(*found)]
    return tuple(sorted(found, key=lambda part: min(map(graph.places.__getitem__, part))))


def connected(items: Iterable[tuple[T, frozenset[str]]]) -> list[tuple[T, ...]]:
    """Items, given with their variables, in groups: those that share variables, directly or through others, are
    together. Groups and their items stay in order."""
    groups: list[tuple[list[int], frozenset[str]]] = []
    given = list(items)
    for place, (_, variables) in enumerate(given):
        touched = [group for group in groups if not group[1].isdisjoint(variables)]
        places = sorted([place, *(i for own, _ in touched for i in own)])
        groups = [group for group in groups if group not in touched]
        groups.append((places, variables.union(*(names for _, names in touched))))
    return [tuple(given[i][0] for i in places) for places, _ in sorted(groups, key=lambda group: group[0])]


def union(edges: Iterable[Edge]) -> frozenset[str]:
    """The variables of all the edges."""
    return frozenset[str]().union(*(edge.variables for edge in edges))


def signature(edge: Edge, graph: Hypergraph) -> str:
    """The edge as the papers write it: ``R(a, b)``."""
    return f"{edge.name}({', '.join(graph.ordered(edge.variables))})"
