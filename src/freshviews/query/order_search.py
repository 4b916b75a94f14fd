"""Searches for the best variable order of a query.

An order is built from the top: a variable of a connected component becomes its root, and the rest splits into smaller
components. Orders are compared by dynamic width, static width, costs of updates, and how many variables meet at a root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from fractions import Fraction
from functools import cache, cached_property, lru_cache

from freshviews.query.dependencies import FD, closure, reduct
from freshviews.query.hypergraph import Edge, Hypergraph, components
from freshviews.query.width import carried, neighbours, static_cost, update_costs
from freshviews.records import dataclass

EXACT_LIMIT = 8

WIDE = 8
"""Maximum number of variables of a class that are placed below each other; a larger class is placed together."""

Component = frozenset[str]
Roots = dict[Component, tuple[str, ...]]
"""The root of every component that occurs: a variable, or the variables of a class of more than ``WIDE``."""
_Roots = dict[Component, str]
"""The roots of components of classes."""


@dataclass(frozen=True)
class Cost:
    """The cost of one root. ``hidden``: a factor is computed above a free variable that it concerns, so enumeration
    would meet dead ends."""

    hidden: bool
    dynamic: Fraction
    static: Fraction
    effort: tuple[Fraction, int]


@dataclass(frozen=True)
class Space:
    """The orders to choose from: for the variables of a graph, under dependencies, with free variables on top or
    anywhere. ``members``: the variables that a variable of the graph represents, if there are several."""

    graph: Hypergraph
    dependencies: tuple[FD, ...]
    free_top: bool
    members: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @cached_property
    def top(self) -> frozenset[str]:
        """The variables that may be above free ones."""
        return closure(self.graph.free, self.dependencies) & frozenset(self.graph.variables)

    def may_be_root(self, variable: str, component: Component) -> bool:
        return not self.free_top or variable in self.top or not component & self.graph.free

    def weight(self, variables: Iterable[str]) -> int:
        """The number of variables that these represent."""
        return sum(len(self.members.get(v, (v,))) for v in variables)


def search(space: Space) -> tuple[Roots, bool]:
    """Return the chosen roots, and whether their widths are proven to be the least.

    A factor is a condition or lift over several atoms. If it is computed above one of its free variables, enumeration
    meets dead ends, so other orders are preferred. Then the search compares dynamic width, static width, sum of update
    costs, and sum of bag sizes. The order of the variables in the query breaks ties.

    Variables form a *class* if they occur in the same edges, factors and dependencies, and are all free or all bound.
    The search treats a class as one variable. Up to ``EXACT_LIMIT`` classes it is exact: a memoised recursion over
    components. For more classes it takes the best of a few elimination orders.
    """
    small = _contracted(space)
    roots, exact = _search(small)
    return dict(_expanded(small, roots)), exact


def classes(space: Space) -> int:
    """The number of classes of variables; the search is exact up to ``EXACT_LIMIT``."""
    return len(_contracted(space).graph.variables)


def least_static_width(space: Space) -> Fraction:
    """The least static width of any order (of the order found, above the limit of exact search)."""
    space = _contracted(space)
    graph, cost = space.graph, _cost_of(space)
    everything = components(graph, frozenset(graph.variables))
    if len(graph.variables) > EXACT_LIMIT:
        roots, _ = _search(space)
        return max((cost(r, c).static for c, r in _visited(graph, roots, everything)), default=Fraction(0))
    least = _least_maximum(space, lambda root, component: cost(root, component).static)
    return max(map(least, everything), default=Fraction(0))


@lru_cache(maxsize=16)
def _search(space: Space) -> tuple[_Roots, bool]:
    graph = space.graph
    cost = _cost_of(space)
    if len(graph.variables) <= EXACT_LIMIT:
        return _exact(space, cost), True
    candidates = [_by_priority(space, priority) for priority in _priorities(space)]
    everything = components(graph, frozenset(graph.variables))

    def quality(roots: _Roots) -> tuple[bool, Fraction, Fraction, Fraction, int]:
        costs = [cost(root, component) for component, root in _visited(graph, roots, everything)]
        return (
            any(c.hidden for c in costs),
            max(c.dynamic for c in costs),
            max(c.static for c in costs),
            sum((c.effort[0] for c in costs), Fraction(0)),
            sum(c.effort[1] for c in costs),
        )

    best = min(candidates, key=quality)
    hidden, dynamic, static, *_ = quality(best)
    return best, not hidden and dynamic == 0 and static <= 1


def _contracted(space: Space) -> Space:
    """The space of one variable of each class: the first."""
    members: dict[str, list[str]] = {}
    for variable, first in _twins(space).items():
        members.setdefault(first, []).append(variable)
    graph, kept = space.graph, frozenset(members)
    rules = (
        (tuple(v for v in fd.determinant if v in kept), tuple(v for v in fd.dependents if v in kept), fd.atom)
        for fd in space.dependencies
    )
    return Space(
        Hypergraph(
            tuple(members),
            graph.free & kept,
            tuple(Edge(edge.name, edge.variables & kept) for edge in graph.edges),
            tuple(factor & kept for factor in graph.factors),
        ),
        tuple(FD(*rule) for rule in rules),
        space.free_top,
        {first: tuple(names) for first, names in members.items() if len(names) > 1},
    )


def _expanded(space: Space, roots: _Roots) -> Iterator[tuple[Component, tuple[str, ...]]]:
    """The roots of the components of all variables."""
    for component, root in _visited(space.graph, roots, components(space.graph, frozenset(space.graph.variables))):
        whole = frozenset(name for v in component for name in space.members.get(v, (v,)))
        names = space.members.get(root, (root,))
        if len(names) > WIDE:
            yield whole, names
            continue
        for name in names:
            yield whole, (name,)
            whole -= {name}


def _cost_of(space: Space) -> Callable[[str, Component], Cost]:
    """The cost of a root of a component. A variable that stands for others has the costs of all of their nodes."""
    graph = space.graph

    def at(root: str, component: Component, rest: tuple[Component, ...], placed: range) -> Cost:
        """The cost of the nodes of a class at the positions ``placed`` in it, with these components below."""
        waiting = frozenset[str]().union(*(carried(graph, part) for part in rest))
        around = neighbours(graph, component) | waiting | (frozenset() if space.free_top else graph.free & component)
        variables = around | {root}
        updates = update_costs(graph.touching(component), space.dependencies, variables)
        hidden = space.free_top and any(carried(graph, part) and part & graph.free for part in rest)
        static = static_cost(graph, space.dependencies, variables)
        own = sum(space.weight((root,)) if root in around else place + 1 for place in placed)
        size = own + len(placed) * space.weight(around - {root})
        return Cost(hidden, max(updates), static, (len(placed) * sum(updates, Fraction(0)), size))

    @cache
    def cost(root: str, component: Component) -> Cost:
        number = space.weight((root,))
        last = at(root, component, components(graph, component - {root}), range(number - 1, number))
        if number == 1:
            return last
        # The rest of a component is connected until the last variable of a class is placed.
        first = at(root, component, (component,), range(number - 1))
        return Cost(
            first.hidden or last.hidden,
            max(first.dynamic, last.dynamic),
            max(first.static, last.static),
            (first.effort[0] + last.effort[0], first.effort[1] + last.effort[1]),
        )

    return cost


def _candidates(space: Space, component: Component) -> list[str]:
    """Candidate roots, in the order of the query."""
    return [v for v in space.graph.variables if v in component and space.may_be_root(v, component)]


def _least_maximum(space: Space, cost: Callable[[str, Component], Fraction]) -> Callable[[Component], Fraction]:
    graph = space.graph

    @cache
    def least(component: Component) -> Fraction:
        best: Fraction | None = None
        # Cheap roots first: the first bound that cannot be improved ends the loop.
        ranked = sorted(_candidates(space, component), key=lambda root: cost(root, component))
        for root in ranked:
            total = cost(root, component)
            if best is not None and total >= best:
                break
            for part in components(graph, component - {root}):
                total = max(total, least(part))
                if best is not None and total >= best:
                    break
            best = total if best is None else min(best, total)
        assert best is not None  # a component has a variable that may be its root
        return best

    return least


def _exact(space: Space, cost: Callable[[str, Component], Cost]) -> _Roots:
    graph = space.graph
    everything = components(graph, frozenset(graph.variables))
    worst = Fraction(len(graph.edges) + 1)

    def dynamic(root: str, component: Component) -> Fraction:
        found = cost(root, component)
        return worst + found.dynamic if found.hidden else found.dynamic

    least_dynamic = _least_maximum(space, dynamic)
    dynamic_cap = max(map(least_dynamic, everything), default=Fraction(0))

    def static(root: str, component: Component) -> Fraction:
        return cost(root, component).static + (worst if dynamic(root, component) > dynamic_cap else 0)

    least_static = _least_maximum(space, static)
    static_cap = max(map(least_static, everything), default=Fraction(0))

    @cache
    def easiest(component: Component) -> tuple[Fraction, int, str] | None:
        """The least effort within the widths, and its root; None if the widths allow no root."""
        best: tuple[Fraction, int, str] | None = None
        for root in _candidates(space, component):
            if static(root, component) > static_cap:
                continue
            effort, size = cost(root, component).effort
            parts = [easiest(part) for part in components(graph, component - {root})]
            reached = [part for part in parts if part is not None]
            effort += sum((part[0] for part in reached), Fraction(0))
            size += sum(part[1] for part in reached)
            if len(reached) == len(parts) and (best is None or (effort, size) < best[:2]):
                best = (effort, size, root)
        return best

    roots: _Roots = {}
    queue = list(everything)
    while queue:
        component = queue.pop()
        found = easiest(component)
        assert found is not None  # the caps were reached by some order
        roots[component] = found[2]
        queue += components(graph, component - {found[2]})
    return roots


def _visited(graph: Hypergraph, roots: _Roots, parts: tuple[Component, ...]) -> Iterator[tuple[Component, str]]:
    queue = list(parts[::-1])
    while queue:
        component = queue.pop()
        yield component, roots[component]
        queue += components(graph, component - {roots[component]})[::-1]


def _twins(space: Space) -> dict[str, str]:
    """Classes of variables that edges, factors, dependencies and the head do not distinguish; each variable with the
    first of its class."""
    graph, top = space.graph, space.top

    def traits(variable: str) -> tuple[object, ...]:
        return (
            variable in graph.free,
            variable in top,
            tuple(variable in edge.variables for edge in graph.edges),
            tuple(variable in factor for factor in graph.factors),
            tuple((variable in fd.determinant, variable in fd.dependents) for fd in space.dependencies),
        )

    first: dict[tuple[object, ...], str] = {}
    return {variable: first.setdefault(traits(variable), variable) for variable in graph.variables}


def _by_priority(space: Space, priority: list[str]) -> _Roots:
    """The roots when each component takes its first allowed variable of a list."""
    roots: _Roots = {}
    queue = list(components(space.graph, frozenset(space.graph.variables)))
    while queue:
        component = queue.pop()
        root = next(v for v in priority if v in component and space.may_be_root(v, component))
        roots[component] = root
        queue += components(space.graph, component - {root})
    return roots


def _priorities(space: Space) -> Iterator[list[str]]:
    """Variables in most atoms first, which is the canonical order if there is one, without and with the reduct; then
    elimination orders by least degree and by least fill, reversed."""
    for graph in (space.graph, reduct(space.graph, space.dependencies)):
        counts = {v: len(graph.edge_names(v)) for v in graph.variables}
        yield sorted(graph.variables, key=lambda v: (-counts[v], v not in space.graph.free))
    yield _eliminated(space, lambda near, _: len(near))
    yield _eliminated(space, lambda near, adjacent: sum(len(near - adjacent[v]) - 1 for v in near))


def _eliminated(space: Space, price: Callable[[frozenset[str], dict[str, frozenset[str]]], int]) -> list[str]:
    """The reverse of an elimination order: cheapest first; variables that must be on top come last."""
    graph = space.graph
    groups = [edge.variables for edge in graph.edges] + list(graph.factors)
    adjacent = {v: frozenset[str]().union(*(g for g in groups if v in g)) - {v} for v in graph.variables}
    gone: list[str] = []
    while adjacent:
        left = [v for v in graph.variables if v in adjacent]
        low = [v for v in left if v not in space.top] if space.free_top else []
        chosen = min(low or left, key=lambda v: price(adjacent[v], adjacent))
        near = adjacent.pop(chosen)
        for v in near:
            adjacent[v] = (adjacent[v] | near) - {v, chosen}
        gone.append(chosen)
    return gone[::-1]
