"""The search for a variable order: which variable is the root of each component.

Preference, in this order: no factor that prevents enumeration; least dynamic width; least static width; least sum of
update costs; least sum of bag sizes; the order of the variables in the query. The search is exact, by recursion over
components with memory, up to ``EXACT_LIMIT`` classes of equivalent variables. Above that it takes the best of a few
elimination orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from freshviews.query.dependencies import FD, closure, reduct
from freshviews.query.hypergraph import Hypergraph, components
from freshviews.query.width import bag, carried, static_cost, update_costs

EXACT_LIMIT = 8

Component = frozenset[str]
Roots = dict[Component, str]
"""The root of every component that occurs."""


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
    """The orders to choose from; ``top``: the variables that may be above free ones."""

    graph: Hypergraph
    dependencies: tuple[FD, ...]
    free_top: bool

    @property
    def top(self) -> frozenset[str]:
        return closure(self.graph.free, self.dependencies) & frozenset(self.graph.variables)

    def may_be_root(self, variable: str, component: Component) -> bool:
        return not self.free_top or not component & self.graph.free or variable in self.top


def search(space: Space) -> tuple[Roots, bool]:
    """Return the chosen roots, and whether their widths are proven to be the least."""
    graph = space.graph
    twins = _twins(space)
    cost = _cost_of(space)
    if len(set(twins.values())) <= EXACT_LIMIT:
        return _exact(space, twins, cost), True
    candidates = [_by_priority(space, priority) for priority in _priorities(space)]
    everything = components(graph, frozenset(graph.variables))

    def quality(roots: Roots) -> tuple[bool, Fraction, Fraction, Fraction, int]:
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


def least_static_width(space: Space) -> Fraction:
    """The least static width of any order (of the order found, above the limit of exact search)."""
    graph, cost, twins = space.graph, _cost_of(space), _twins(space)
    everything = components(graph, frozenset(graph.variables))
    if len(set(twins.values())) > EXACT_LIMIT:
        roots, _ = search(space)
        return max((cost(r, c).static for c, r in _visited(graph, roots, everything)), default=Fraction(0))
    least = _least_maximum(space, twins, lambda root, component: cost(root, component).static)
    return max(map(least, everything), default=Fraction(0))


def _cost_of(space: Space) -> Callable[[str, Component], Cost]:
    graph = space.graph

    @cache
    def cost(root: str, component: Component) -> Cost:
        variables = bag(graph, root, component, space.free_top)
        updates = update_costs(graph.touching(component), space.dependencies, variables)
        rest = components(graph, component - {root})
        hidden = space.free_top and any(carried(graph, part) and part & graph.free for part in rest)
        static = static_cost(graph, space.dependencies, variables)
        return Cost(hidden, max(updates), static, (sum(updates, Fraction(0)), len(variables)))

    return cost


def _candidates(space: Space, twins: dict[str, str], component: Component) -> list[str]:
    """Candidate roots: of each class, the first variable that is left."""
    first: dict[str, str] = {}
    for variable in space.graph.variables:
        if variable in component and space.may_be_root(variable, component):
            first.setdefault(twins[variable], variable)
    return list(first.values())


def _least_maximum(
    space: Space, twins: dict[str, str], cost: Callable[[str, Component], Fraction]
) -> Callable[[Component], Fraction]:
    graph = space.graph

    @cache
    def least(component: Component) -> Fraction:
        best: Fraction | None = None
        # Cheap roots first: the first bound that cannot be improved ends the loop.
        ranked = sorted(_candidates(space, twins, component), key=lambda root: cost(root, component))
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


def _exact(space: Space, twins: dict[str, str], cost: Callable[[str, Component], Cost]) -> Roots:
    graph = space.graph
    everything = components(graph, frozenset(graph.variables))
    worst = Fraction(len(graph.edges) + 1)

    def dynamic(root: str, component: Component) -> Fraction:
        found = cost(root, component)
        return worst + found.dynamic if found.hidden else found.dynamic

    least_dynamic = _least_maximum(space, twins, dynamic)
    dynamic_cap = max(map(least_dynamic, everything), default=Fraction(0))

    def static(root: str, component: Component) -> Fraction:
        return cost(root, component).static + (worst if dynamic(root, component) > dynamic_cap else 0)

    least_static = _least_maximum(space, twins, static)
    static_cap = max(map(least_static, everything), default=Fraction(0))

    @cache
    def easiest(component: Component) -> tuple[Fraction, int, str] | None:
        """The least effort within the widths, and its root; None if the widths do not allow any."""
        best: tuple[Fraction, int, str] | None = None
        for root in _candidates(space, twins, component):
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

    roots: Roots = {}
    queue = list(everything)
    while queue:
        component = queue.pop()
        found = easiest(component)
        assert found is not None  # the caps were reached by some order
        roots[component] = found[2]
        queue += components(graph, component - {found[2]})
    return roots


def _visited(
    graph: Hypergraph, roots: Roots, parts: tuple[Component, ...]
) -> Iterator[tuple[Component, str]]:
    for component in parts:
        yield component, roots[component]
        yield from _visited(graph, roots, components(graph, component - {roots[component]}))


def _twins(space: Space) -> dict[str, str]:
    """Classes of variables that edges, factors, dependencies and the head do not distinguish; each variable with the
    first of its class. Some best order places the variables of a class one after the other."""
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


def _by_priority(space: Space, priority: list[str]) -> Roots:
    """The roots when each component takes its first allowed variable of a list."""
    roots: Roots = {}
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
