"""Variable orders, join trees and widths by their definitions, to compare those that planning finds with."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import repeat

from freshviews.query import hypertree, order_search
from freshviews.query.acyclic import JoinTree
from freshviews.query.dependencies import FD
from freshviews.query.free_connex import free_connex_trees, is_free_connex
from freshviews.query.hierarchical import is_hierarchical, is_q_hierarchical
from freshviews.query.hypergraph import Hypergraph, components, hypergraph
from freshviews.query.query import Query
from freshviews.query.variable_order import VariableOrder, is_free_top, order_of
from freshviews.query.width import bag, static_cost


def canonical_order(query: Query) -> VariableOrder:
    """The canonical order of a hierarchical query: above each variable are those that dominate it, free ones first
    among equals.

    Free-top if the query is q-hierarchical. Raises ValueError if it is not hierarchical.
    """
    graph = hypergraph(query)
    if not is_hierarchical(graph):
        raise ValueError(f"{query.name} is not hierarchical")
    counts = {v: len(graph.edge_names(v)) for v in graph.variables}
    ranked = sorted(graph.variables, key=lambda v: (-counts[v], v not in graph.free))
    order = order_by_priority(query, tuple(ranked))
    return replace(order, free_top=is_free_top(order, query), exact=is_q_hierarchical(graph))


def order_by_priority(query: Query, priority: tuple[str, ...], free_top: bool = False) -> VariableOrder:
    """The order in which the root of each component is its first variable in ``priority``, which lists every variable.

    ``free_top`` is recorded, not enforced.
    """
    graph = hypergraph(query)
    roots: order_search.Roots = {}
    queue = list(components(graph, frozenset(graph.variables)))
    while queue:
        component = queue.pop()
        root = next(v for v in priority if v in component)
        roots[component] = (root,)
        queue += components(graph, component - {root})
    return order_of(graph, roots, free_top, False)


def is_valid(order: VariableOrder, query: Query) -> bool:
    """True if every variable occurs once and the variables of every atom and factor are on a path."""
    names = [name for node in order.nodes() for name in node.here]
    if sorted(names) != sorted(query.variables):
        return False
    paths = [frozenset(path) for path in set(order.paths.values())]
    groups = [frozenset(atom.variables) for atom in query.atoms] + [*map(frozenset, query.factors)]
    return all(not group or any(group <= path for path in paths) for group in groups)


def static_width(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> Fraction:
    """The exponent of the time to compute the view tree; 0 for a query without variables."""
    graph = hypergraph(query)
    bags = [bag(graph, n.here, frozenset(n.variables), order.free_top) for n in order.nodes()]
    if not order.free_top:
        bags.append(graph.free)
    return max((static_cost(graph, dependencies, b) for b in bags), default=Fraction(0))


def least_width(graph: Hypergraph) -> int:
    """The generalised hypertree width: 1 if the query is acyclic."""
    return hypertree.least_width(graph, repeat(0))


def width_of(graph: Hypergraph, bags: tuple[hypertree.Bag, ...]) -> int:
    """The most atoms needed to cover a bag."""
    return max(hypertree.cover_number(bag.variables, tuple(e.variables for e in graph.edges)) for bag in bags)


def free_connex_tree(graph: Hypergraph) -> JoinTree | None:
    """A free-connex join tree of small height: 1 if the query is q-hierarchical (Lemma 6.7), otherwise the least over
    the roots of one join tree. None if the query is not free-connex or has no atom."""
    if not graph.edges or not is_free_connex(graph):
        return None
    return min(free_connex_trees(graph), key=lambda candidate: candidate.height)
