"""Computes the exponents of the costs of the views in a view tree: static and dynamic width.

N is the number of rows. With static width w, the whole tree is computed in time N^w. With dynamic width d, an update
takes time N^d.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from freshviews.query.dependencies import FD, closure
from freshviews.query.edge_cover import bits_of, edge_cover_number, maximal_edges, numbered_cover, set_of
from freshviews.query.hypergraph import Edge, Hypergraph, components, union


def neighbours(graph: Hypergraph, component: frozenset[str]) -> frozenset[str]:
    """The variables outside a component that share an atom with it."""
    return union(graph.touching(component)) - component


def carried(graph: Hypergraph, component: frozenset[str]) -> frozenset[str]:
    """The variables of a component that a factor above it needs."""
    below = union(graph.touching(component))
    waiting = (f for f in graph.factors if f & component and not f <= below)
    return component & frozenset[str]().union(*waiting)


def factors_at(graph: Hypergraph, root: Iterable[str], component: frozenset[str]) -> tuple[int, ...]:
    """Positions of the factors that are computed at the root of a component, which has these variables.

    A factor is computed at the lowest node whose atoms have all its variables. From lower nodes, its variables are
    *carried* up as keys. In R(a), S(b), a < b with a above b, b is carried to a.
    """
    below = union(graph.touching(component))
    rest = components(graph, component.difference(root))
    return tuple(
        i
        for i, factor in enumerate(graph.factors)
        if factor & component
        and factor <= below
        and not any(factor & part and factor <= union(graph.touching(part)) for part in rest)
    )


def bag(graph: Hypergraph, root: Iterable[str], component: frozenset[str], free_top: bool) -> frozenset[str]:
    """The variables that meet at the root of a component, which has these variables.

    A view tree is built top-down. A variable of a connected component becomes its root. The other variables of the
    component split into components again. The *neighbours* of a component are the ancestors that share an atom with it.
    The *bag* of the root X has these variables::

        X and the neighbours of its component                  X and dep(X) in the papers
        variables that children carry up for a factor          a factor is a condition or lift over several atoms
        the component's free variables                         unless the order is free-top
    """
    rest = components(graph, component.difference(root))
    below = frozenset[str]().union(*(carried(graph, part) for part in rest))
    free = frozenset[str]() if free_top else graph.free & component
    return neighbours(graph, component).union(below, free, root)


def static_cost(graph: Hypergraph, dependencies: Iterable[FD], variables: frozenset[str]) -> Fraction:
    """rho* of the variables over all atoms.

    *Static width* w (Olteanu, Zavodny; F-IVM): the largest rho*(bag), covered by all atoms of the query
    (``edge_cover``). The whole tree is computed in time N^w. *Dynamic width* d (Kara, Nikolic, Olteanu, Zhang): the
    same, without the variables that an update of one row fixes. The update takes time N^d. Under dependencies, atoms
    are replaced by their closures.
    """
    return edge_cover_number(variables, _closures(graph.edges, tuple(dependencies)))


def update_costs(
    edges: tuple[Edge, ...], dependencies: Iterable[FD], variables: frozenset[str]
) -> tuple[Fraction, ...]:
    """Per edge, rho* of the variables that an update of its atom leaves open, over the edges."""
    names = {edge.name for edge in edges}
    rules = tuple(fd for fd in dependencies if fd.atom is None or fd.atom in names)
    bits, closures = _numbered(edges, rules)
    wanted = set_of(variables, bits)
    fixed = [closure & wanted for closure in closures]
    distinct = frozenset(fixed)
    within = maximal_edges(distinct)
    costs = {one: numbered_cover(wanted & ~one, within, bits) for one in distinct}
    return tuple(costs[one] for one in fixed)


@lru_cache(maxsize=4096)
def _closures(edges: tuple[Edge, ...], rules: tuple[FD, ...]) -> tuple[frozenset[str], ...]:
    """The closure of each edge."""
    return tuple(closure(edge.variables, rules) for edge in edges)


@lru_cache(maxsize=4096)
def _numbered(edges: tuple[Edge, ...], rules: tuple[FD, ...]) -> tuple[dict[str, int], tuple[int, ...]]:
    """The bits of the variables of edges, and the closure of each edge."""
    closures = _closures(edges, rules)
    bits = bits_of(frozenset[str]().union(*closures))
    return bits, tuple(set_of(one, bits) for one in closures)
