"""Variable orders: the trees of variables that view trees are built along (F-IVM).

The variables of an atom, and those of a factor, are on one path from a root. ``Q(a, b, c) = R(a, b), S(a, c, e), T(a,
c, d)`` has the order below. In brackets are the keys of the view at each variable, dep(X) in the papers, then the atoms
whose lowest variable it is::

    a []
    |-- b [a] R
    `-- c [a]
        |-- e [a, c] S
        `-- d [a, c] T

*Free-top*: no bound variable is above a free one, so results can be enumerated from the tree. Bound variables that the
free ones determine are an exception: they may be enumerated too. Otherwise free variables may be anywhere; they are
carried up as keys to a root that holds the result by group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from freshviews.query import order_search
from freshviews.query.dependencies import FD, closure
from freshviews.query.hierarchical import is_hierarchical, is_q_hierarchical
from freshviews.query.hypergraph import Hypergraph, components, hypergraph
from freshviews.query.query import Query
from freshviews.query.width import bag, carried, factors_at, neighbours, static_cost, update_costs


@dataclass(frozen=True)
class OrderNode:
    """A variable and its subtree.

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

    def nodes(self) -> Iterator[OrderNode]:
        """This node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.nodes()

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the subtree, each before those below it."""
        return tuple(node.variable for node in self.nodes())

    @property
    def atoms_below(self) -> tuple[str, ...]:
        """Names of the atoms of the subtree."""
        return tuple(name for node in self.nodes() for name in node.atoms)

    def _lines(self) -> Iterator[str]:
        notes = [*self.atoms, *(f"factor {i}" for i in self.factors)]
        if self.carried:
            notes.append(f"carries {', '.join(self.carried)}")
        yield " ".join([f"{self.variable} [{', '.join(self.keys)}]", *notes])
        for i, child in enumerate(self.children):
            last = i == len(self.children) - 1
            for j, line in enumerate(child._lines()):
                lead = ("`-- " if last else "|-- ") if j == 0 else ("    " if last else "|   ")
                yield lead + line


@dataclass(frozen=True)
class VariableOrder:
    """A forest. ``ground``: names of the atoms without variables. ``constants``: positions of the factors without
    variables. ``exact``: the dynamic width is proven to be the least."""

    roots: tuple[OrderNode, ...]
    ground: tuple[str, ...] = ()
    constants: tuple[int, ...] = ()
    free_top: bool = True
    exact: bool = True

    def nodes(self) -> Iterator[OrderNode]:
        """All nodes, each before its children."""
        for root in self.roots:
            yield from root.nodes()

    def node(self, variable: str) -> OrderNode:
        return next(node for node in self.nodes() if node.variable == variable)

    def path(self, variable: str) -> tuple[str, ...]:
        """The variables from a root down to this one."""
        for root in self.roots:
            if variable in root.variables:
                found = [root]
                while found[-1].variable != variable:
                    found.append(next(c for c in found[-1].children if variable in c.variables))
                return tuple(node.variable for node in found)
        raise KeyError(variable)

    def __str__(self) -> str:
        lines = [line for root in self.roots for line in root._lines()]
        return "\n".join(lines + [f"() {name}" for name in self.ground])


def best_order(query: Query, free_top: bool, dependencies: tuple[FD, ...] = ()) -> VariableOrder:
    """An order of least dynamic width, then of least static width, then with least work summed over views and updates.
    Ties are broken by the order of the variables in the query.

    ``order.exact``: the dynamic width is proven to be the least; the search is complete up to
    ``order_search.EXACT_LIMIT`` classes of variables. With ``free_top``, use the order only if ``is_enumerable``; if it
    is not and the search was complete, no order is.
    """
    graph = hypergraph(query)
    roots, exact = order_search.search(order_search.Space(graph, dependencies, free_top))
    return _made(graph, roots, free_top, exact)


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
        roots[component] = next(v for v in priority if v in component)
        queue += components(graph, component - {roots[component]})
    return _made(graph, roots, free_top, False)


def _made(graph: Hypergraph, roots: order_search.Roots, free_top: bool, exact: bool) -> VariableOrder:
    def grow(component: frozenset[str], path: tuple[str, ...]) -> OrderNode:
        root = roots[component]
        dependent = neighbours(graph, component)
        return OrderNode(
            root,
            tuple(grow(part, (*path, root)) for part in components(graph, component - {root})),
            tuple(v for v in path if v in dependent),
            tuple(e.name for e in graph.edges if root in e.variables <= {*path, root}),
            factors_at(graph, root, component),
            graph.ordered(carried(graph, component)),
        )

    return VariableOrder(
        tuple(grow(part, ()) for part in components(graph, frozenset(graph.variables))),
        tuple(edge.name for edge in graph.edges if not edge.variables),
        tuple(i for i, factor in enumerate(graph.factors) if not factor),
        free_top,
        exact,
    )


def is_valid(order: VariableOrder, query: Query) -> bool:
    """True if every variable occurs once and the variables of every atom and factor are on a path."""
    names = [node.variable for node in order.nodes()]
    if sorted(names) != sorted(query.variables):
        return False
    paths = [frozenset(order.path(name)) for name in names]
    groups = [frozenset(atom.variables) for atom in query.atoms] + [*map(frozenset, query.factors)]
    return all(not group or any(group <= path for path in paths) for group in groups)


def is_free_top(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> bool:
    """True if no bound variable that the free ones do not determine is above a free one."""
    top = closure(query.free, dependencies)
    return all(frozenset(order.path(v)) <= top for v in query.free)


def is_enumerable(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> bool:
    """True if results can be enumerated top-down without dead ends: the order is free-top, and no factor is computed
    above a free variable of the branch that carries to it."""
    free = frozenset(query.free)
    return is_free_top(order, query, dependencies) and not any(
        child.carried and free & frozenset(child.variables)
        for node in order.nodes()
        for child in node.children
    )


def static_width(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> Fraction:
    """The exponent of the time to compute the view tree; 0 for a query without variables."""
    graph = hypergraph(query)
    bags = [bag(graph, n.variable, frozenset(n.variables), order.free_top) for n in order.nodes()]
    if not order.free_top:
        bags.append(graph.free)
    return max((static_cost(graph, dependencies, b) for b in bags), default=Fraction(0))


def dynamic_width(order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()) -> Fraction:
    """The exponent of the time of a one-row update, over the worst relation; 0 is constant time. If the free variables
    are carried up, the stored result counts too."""
    return max(update_exponents(order, query, dependencies).values(), default=Fraction(0))


def update_exponents(
    order: VariableOrder, query: Query, dependencies: tuple[FD, ...] = ()
) -> dict[str, Fraction]:
    """Per atom, the exponent of the time of a one-row update along its path to the root."""
    graph = hypergraph(query)
    worst = {edge.name: Fraction(0) for edge in graph.edges}
    views = [
        (graph.touching(below), bag(graph, node.variable, below, order.free_top))
        for node in order.nodes()
        for below in (frozenset(node.variables),)
    ]
    if not order.free_top:
        views.append((graph.edges, graph.free))
    for edges, variables in views:
        for edge, cost in zip(edges, update_costs(edges, dependencies, variables), strict=True):
            worst[edge.name] = max(worst[edge.name], cost)
    return worst
