"""Defines variable orders: trees of the variables of a query, along which view trees are built (F-IVM).

A view tree has a view per variable. A printed line has a variable, then the key of its view in brackets, then the atoms
in which it is the lowest variable. An order of ``Q(a, b, c) = R(a, b), S(a, c, e), T(a, c, d)``::

    a []
    |-- b [a] R
    `-- c [a]
        |-- e [a, c] S
        `-- d [a, c] T
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache

from freshviews.query import order_search
from freshviews.query.dependencies import FD, closure
from freshviews.query.hypergraph import Hypergraph, components, hypergraph
from freshviews.query.query import Query
from freshviews.query.width import bag, carried, factors_at, neighbours, update_costs
from freshviews.records import dataclass


@dataclass(frozen=True)
class OrderNode:
    """A variable and its subtree.

    ``more``: variables at the same node, which atoms, factors and the head do not distinguish from the first.
    ``keys``: dep(X), the ancestors that share an atom with the subtree, root first. ``atoms``: names of the atoms whose
    lowest variable it is. ``factors``: positions in ``Query.factors`` of those computed here, the lowest node whose
    atoms have all their variables. ``carried``: variables of the subtree (this one or lower) that a factor computed
    higher up needs; they are keys of the view after ``keys``.
    """

    variable: str
    children: tuple[OrderNode, ...] = ()
    keys: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()
    factors: tuple[int, ...] = ()
    carried: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    def nodes(self) -> Iterator[OrderNode]:
        """This node and all below it, each before its children."""
        queue = [self]
        while queue:
            node = queue.pop()
            yield node
            queue += node.children[::-1]

    @property
    def here(self) -> tuple[str, ...]:
        """The variables at this node."""
        return (self.variable, *self.more)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables of the subtree, each before those below it."""
        return tuple(v for node in self.nodes() for v in node.here)

    def _lines(self) -> Iterator[str]:
        notes = [*self.atoms, *(f"factor {i}" for i in self.factors)]
        if self.carried:
            notes.append(f"carries {', '.join(self.carried)}")
        yield " ".join([f"{', '.join(self.here)} [{', '.join(self.keys)}]", *notes])
        for i, child in enumerate(self.children):
            last = i == len(self.children) - 1
            for j, line in enumerate(child._lines()):
                lead = ("`-- " if last else "|-- ") if j == 0 else ("    " if last else "|   ")
                yield lead + line


@dataclass(frozen=True)
class VariableOrder:
    """A forest. ``ground``: names of the atoms without variables. ``constants``: positions of the factors without
    variables. ``exact``: the dynamic width is proven to be the least. ``greedy``: if it is not, the number of classes
    of variables, which were too many for a complete search."""

    roots: tuple[OrderNode, ...]
    ground: tuple[str, ...] = ()
    constants: tuple[int, ...] = ()
    free_top: bool = True
    exact: bool = True
    greedy: int = 0

    def nodes(self) -> Iterator[OrderNode]:
        """All nodes, each before its children."""
        for root in self.roots:
            yield from root.nodes()

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """By variable, the variables from a root down to its node."""
        found: dict[str, tuple[str, ...]] = {}
        queue: list[tuple[OrderNode, tuple[str, ...]]] = [(root, ()) for root in self.roots]
        while queue:
            node, above = queue.pop()
            path = (*above, *node.here)
            found |= dict.fromkeys(node.here, path)
            queue += [(child, path) for child in node.children]
        return found

    def __str__(self) -> str:
        lines = [line for root in self.roots for line in root._lines()]
        return "\n".join(lines + [f"() {name}" for name in self.ground])


@lru_cache(maxsize=16)
def best_order(query: Query, free_top: bool, dependencies: tuple[FD, ...] = ()) -> VariableOrder:
    """An order of least dynamic width, then of least static width, then with least work summed over views and updates.
    Ties are broken by the order of the variables in the query.

    ``order.exact``: the dynamic width is proven to be the least; the search is complete up to
    ``order_search.EXACT_LIMIT`` classes of variables. With ``free_top``, use the order only if ``is_enumerable``; if it
    is not and the search was complete, no order is.
    """
    graph = hypergraph(query)
    space = order_search.Space(graph, dependencies, free_top)
    roots, exact = order_search.search(space)
    order = order_of(graph, roots, free_top, exact)
    return order if exact else replace(order, greedy=order_search.classes(space))


def order_of(graph: Hypergraph, roots: order_search.Roots, free_top: bool, exact: bool) -> VariableOrder:
    """The order with these roots of components."""

    def grow(component: frozenset[str], path: tuple[str, ...]) -> OrderNode:
        here = roots[component]
        dependent = neighbours(graph, component)
        down = (*path, *here)
        known = frozenset(down)
        return OrderNode(
            here[0],
            tuple(grow(part, down) for part in components(graph, component.difference(here))),
            tuple(v for v in path if v in dependent),
            tuple(e.name for e in graph.edges if here[0] in e.variables <= known),
            factors_at(graph, here, component),
            graph.ordered(carried(graph, component)),
            here[1:],
        )

    return VariableOrder(
        tuple(grow(part, ()) for part in components(graph, frozenset(graph.variables))),
        tuple(edge.name for edge in graph.edges if not edge.variables),
        tuple(i for i, factor in enumerate(graph.factors) if not factor),
        free_top,
        exact,
    )


def is_free_top(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> bool:
    """True if no bound variable that the free ones do not determine is above a free one.

    *Free-top*: no bound variable is above a free one, so results can be enumerated from the tree. (Bound variables that
    the free ones determine may be above them.) If an order is not free-top, free variables are carried up as keys to a
    root, which holds the result by group.
    """
    top = closure(query.free, dependencies)
    return all(top.issuperset(path) for path in {order.paths[v] for v in query.free})


def is_enumerable(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> bool:
    """True if results can be enumerated top-down without dead ends: the order is free-top, and no factor is computed
    above a free variable of the branch that carries to it."""
    free = frozenset(query.free)
    return is_free_top(order, query, dependencies) and not any(
        child.carried and free & frozenset(child.variables)
        for node in order.nodes()
        for child in node.children
    )


def dynamic_width(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> Fraction:
    """The exponent of the time of a one-row update, over the worst relation; 0 is constant time. If the free variables
    are carried up, the stored result counts too."""
    return max(update_exponents(order, query, dependencies).values(), default=Fraction(0))


def update_exponents(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> dict[str, Fraction]:
    """Per atom, the exponent of the time of a one-row update along its path to the root."""
    graph = hypergraph(query)
    worst = {edge.name: Fraction(0) for edge in graph.edges}
    views = [
        (graph.touching(below), bag(graph, node.here, below, order.free_top))
        for node in order.nodes()
        for below in (frozenset(node.variables),)
    ]
    if not order.free_top:
        views.append((graph.edges, graph.free))
    for edges, variables in views:
        for edge, cost in zip(edges, update_costs(edges, dependencies, variables), strict=True):
            worst[edge.name] = max(worst[edge.name], cost)
    return worst
