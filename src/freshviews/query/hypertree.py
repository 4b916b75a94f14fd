"""Generalised hypertree decompositions: the atoms of a cyclic query grouped into bags that are acyclic together.

Source: Gottlob, Leone, Scarcello: Hypertree Decompositions and Tractable Queries (2002); Wang, Hu, Dai, Yi: Change
Propagation Without Joins (PVLDB 16(5), 2023), Section 7. A decomposition is a tree of bags of variables: those of each
atom are together in some bag, and the bags that have a variable are connected. Its *width* is the most atoms that it
takes to cover a bag: a bag has at most N^width rows. The dumbbell, of width 2::

    R(a, b), S(a, c), T(b, c), U(c, d), V(d, e), W(d, f), X(e, f)          {a, b, c} -- {c, d} -- {d, e, f}

Every atom is at home in one bag. Where it takes too many atoms at home to cover a bag, it has *guards*: atoms of
other bags, projected on its variables. Of the decompositions of least width one is taken over which the query is
free-connex, where there is one; then one without guards; then the one of least fractional width, whose bags are joins
and not products, of the fewest atoms.

The least width is found exactly for up to ``EXACT_ATOMS`` atoms: a width is tried after the other, by the orders of
elimination of the variables, component by component. Beyond, the variables are taken in the order in which their bags
are the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, reduce
from itertools import combinations
from operator import or_

from freshviews.query.acyclic import is_acyclic
from freshviews.query.edge_cover import edge_cover_number
from freshviews.query.hypergraph import Edge, Hypergraph, components

EXACT_ATOMS = 10
"""Up to so many atoms the width is the least there is."""

_NEVER = 1 << 30

Variables = frozenset[str]


@dataclass(frozen=True)
class Bag:
    """Names of the atoms at home in a bag and of its guards, in the order of the query, and its variables."""

    variables: Variables
    home: tuple[str, ...]
    guards: tuple[str, ...] = ()


def decomposition(graph: Hypergraph) -> tuple[Bag, ...]:
    """The bags of a decomposition of least width, in the order of their first atoms."""
    if not graph.edges:
        return ()
    if len(graph.edges) > EXACT_ATOMS:
        return _bags_of(graph, _greedy(graph))
    width = least_width(graph)
    apart = _best_partition(graph, width)
    head = Edge(" head", graph.free)
    if apart is not None and is_acyclic((*(Edge(str(i), bag.variables) for i, bag in enumerate(apart)), head)):
        return apart
    top = _eliminated(graph, width, free_top=True)
    if top is not None:
        return _bags_of(graph, top)
    if apart is not None:
        return apart
    found = _eliminated(graph, width, free_top=False)
    assert found is not None  # the least width is that of some order
    return _bags_of(graph, found)


def least_width(graph: Hypergraph) -> int:
    """The generalised hypertree width: 1 where the query is acyclic."""
    return next(k for k in range(1, len(graph.edges) + 1) if _eliminated(graph, k, False) is not None)


def width_of(graph: Hypergraph, bags: tuple[Bag, ...]) -> int:
    """The most atoms that it takes to cover a bag."""
    return max(_cover_number(bag.variables, tuple(e.variables for e in graph.edges)) for bag in bags)


# Orders of elimination


def _eliminated(graph: Hypergraph, width: int, free_top: bool) -> tuple[Variables, ...] | None:
    """The bags of an order in which none is wider; ``free_top``: free variables stand above all others. None where
    there is no such order."""
    sides = tuple(edge.variables for edge in graph.edges)

    @cache
    def below(component: Variables) -> tuple[Variables, ...] | None:
        """Bags for a component, whose neighbours are above it."""
        around = frozenset[str]().union(*(e.variables for e in graph.touching(component))) - component
        free = component & graph.free
        for root in graph.ordered(free if free_top and free else component):
            bag = around | {root}
            if _cover_number(bag, sides) > width:
                continue
            found = [bag]
            for part in components(graph, component - {root}):
                rest = below(part)
                if rest is None:
                    break
                found += rest
            else:
                return tuple(found)
        return None

    found: list[Variables] = []
    for component in components(graph, frozenset(graph.variables)):
        bags = below(component)
        if bags is None:
            return None
        found += bags
    return tuple(found)


def _greedy(graph: Hypergraph) -> tuple[Variables, ...]:
    """Bags by eliminating the variable whose bag is the smallest, and so on."""
    left = [edge.variables for edge in graph.edges]
    found = []
    for _ in graph.variables:
        bags = {v: frozenset[str]().union(*(e for e in left if v in e)) for e in left for v in e}
        if not bags:
            break
        variable = min(graph.ordered(bags), key=lambda v: len(bags[v]))
        bag = bags[variable]
        found.append(bag)
        left = [e for e in left if variable not in e] + [bag - {variable}]
    return tuple(found)


def _bags_of(graph: Hypergraph, found: tuple[Variables, ...]) -> tuple[Bag, ...]:
    """Atoms at home in sets of variables, of which those contained in others are left out, and guards."""
    sets = [one for i, one in enumerate(found) if not any(one < o or (one == o and j < i) for j, o in enumerate(found))]
    home: dict[Variables, list[str]] = {one: [] for one in sets}
    for edge in graph.edges:
        # Where an atom fits into several bags, it covers most where it is needed most.
        fits = [one for one in sets if edge.variables <= one]
        home[min(fits, key=lambda one: (len(home[one]), len(one)))].append(edge.name)
    bags = []
    for one, names in home.items():
        bags.append(Bag(one, tuple(names), _guards(graph, one, tuple(names))))
    order = [edge.name for edge in graph.edges]
    return tuple(sorted(bags, key=lambda bag: min(map(order.index, (*bag.home, *bag.guards)))))


def _guards(graph: Hypergraph, bag: Variables, home: tuple[str, ...]) -> tuple[str, ...]:
    """The fewest atoms by which the atoms at home cover their bag as well as all atoms do."""
    edges = {edge.name: edge.variables for edge in graph.edges}
    least = _cover_number(bag, tuple(edges.values()))
    others = [name for name, variables in edges.items() if name not in home and variables & bag]
    sizes = (chosen for size in range(len(others) + 1) for chosen in combinations(others, size))
    return next(c for c in sizes if _cover_number(bag, tuple(edges[name] for name in (*home, *c))) <= least)


# Bags that share no atom


def _best_partition(graph: Hypergraph, width: int) -> tuple[Bag, ...] | None:
    """The partition of the atoms into acyclic bags of at most a width: free-connex before others, then by ``_Rank``;
    None where there is none.

    An atom within another covers nothing that the other does not, and stands alone, unless that leaves no partition.
    """
    edges = graph.edges
    inner = [
        edge
        for i, edge in enumerate(edges)
        if any(edge.variables < o.variables or (edge.variables == o.variables and j < i) for j, o in enumerate(edges))
    ]
    outer = tuple(edge for edge in edges if edge not in inner)
    found = _best_of(graph, outer, tuple(inner), width)
    return found or (_best_of(graph, edges, (), width) if inner else None)


_Rank = tuple[int, int, int, int, int]
"""What makes bags of several atoms dear: the fractional width, in millionths, products, the most atoms of a bag, the
sums of widths and of atoms."""


def _best_of(graph: Hypergraph, edges: tuple[Edge, ...], alone: tuple[Edge, ...], width: int) -> tuple[Bag, ...] | None:
    """Groups of edges are sets of their positions, as bits; so are sets of variables."""
    place = {v: 1 << i for i, v in enumerate(graph.variables)}
    bits = [sum(place[v] for v in edge.variables) for edge in edges]
    apart = [sum(place[v] for v in edge.variables) for edge in alone]
    head = sum(place[v] for v in graph.free)
    every = tuple(edge.variables for edge in edges)

    @cache
    def members(group: int) -> tuple[int, ...]:
        return tuple(i for i in range(len(edges)) if group >> i & 1)

    @cache
    def variables(group: int) -> int:
        return reduce(or_, (bits[i] for i in members(group)))

    @cache
    def may_grow(group: int) -> bool:
        return _cover_number(_union(tuple(edges[i] for i in members(group))), every) <= width

    @cache
    def weight(group: int) -> tuple[int, int, int] | None:
        """Fractional width, whether it is a product, atoms; None where it is too wide."""
        some = tuple(edges[i] for i in members(group))
        sides = tuple(edge.variables for edge in some)
        if _cover_number(_union(some), sides) > width:
            return None
        return round(edge_cover_number(_union(some), sides) * 10**6), not _connected(some), len(some)

    def rank(groups: tuple[int, ...]) -> _Rank | None:
        weights = [weight(group) for group in groups if group & (group - 1)]
        if any(w is None for w in weights):
            return None
        widths, products, sizes = zip(*(w for w in weights if w), strict=True) if weights else ((0,), (0,), (0,))
        return max(widths), sum(products), max(sizes), sum(widths), sum(sizes)

    # Variables that meet two by two are in one bag, where the bags are acyclic.
    meeting = _cliques(_met([*bits, *apart], len(place)))
    meeting = [clique for clique in meeting if not any(clique & ~side == 0 for side in (*bits, *apart))]

    def holds(groups: tuple[int, ...]) -> bool:
        sides = [variables(group) for group in groups]
        return all(any(clique & ~side == 0 for side in sides) for clique in meeting)

    every_one = filter(holds, _partitions(len(edges), may_grow))
    ranked = [(r, groups) for groups in every_one if (r := rank(groups)) is not None]
    ranked.sort(key=lambda pair: (pair[0], sorted(map(members, pair[1]))))
    best: tuple[int, ...] | None = None
    for _, groups in ranked:
        sides = [*map(variables, groups), *apart]
        if not _reduces(sides):
            continue
        connex = _reduces([*sides, head])
        if best is None or connex:
            best = groups
        if connex:
            break
    if best is None:
        return None
    found = [*(tuple(edges[i] for i in members(group)) for group in best), *((edge,) for edge in alone)]
    order = [edge.name for edge in graph.edges]
    found.sort(key=lambda group: order.index(group[0].name))
    return tuple(Bag(_union(group), tuple(edge.name for edge in group)) for group in found)


def _partitions(count: int, may_grow: Callable[[int], bool]) -> Iterator[tuple[int, ...]]:
    """Every partition of so many positions into groups of several that all may be, and of one."""

    def grow(at: int, groups: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if at == count:
            yield groups
            return
        yield from grow(at + 1, (*groups, 1 << at))
        for i, group in enumerate(groups):
            if may_grow(group | 1 << at):
                yield from grow(at + 1, (*groups[:i], group | 1 << at, *groups[i + 1 :]))

    return grow(0, ())


def _met(sides: list[int], count: int) -> dict[int, int]:
    """By variable, the others that it is in an edge with."""
    return {1 << i: reduce(or_, (s for s in sides if s >> i & 1), 0) & ~(1 << i) for i in range(count)}


def _cliques(around: dict[int, int]) -> list[int]:
    """The largest sets of variables that meet two by two (Bron and Kerbosch), given those that each one meets."""
    found = []

    def grow(clique: int, left: int, seen: int) -> None:
        if not left | seen:
            found.append(clique)
        for one, others in around.items():
            if left & one:
                grow(clique | one, left & others, seen & others)
                left, seen = left & ~one, seen | one

    grow(0, sum(around), 0)
    return found


def _reduces(sides: list[int]) -> bool:
    """Whether a hypergraph is acyclic: see ``freshviews.query.acyclic``; edges are bits."""
    left = sides
    while len(left) > 1:
        once = twice = 0
        for side in left:
            twice |= once & side
            once |= side
        kept: list[int] = []
        for i, side in enumerate(left):
            shared = side & twice
            inside = any(shared & ~o == 0 for o in kept) or any(shared & ~(o & twice) == 0 for o in left[i + 1 :])
            if not inside:
                kept.append(shared)
        if kept == left:
            return False
        left = kept
    return True


def _connected(group: tuple[Edge, ...]) -> bool:
    variables = _union(group)
    return len(components(Hypergraph(tuple(variables), frozenset(), group), variables)) <= 1


def _union(group: tuple[Edge, ...]) -> Variables:
    return frozenset[str]().union(*(edge.variables for edge in group))


@cache
def _cover_number(variables: Variables, sides: tuple[Variables, ...]) -> int:
    """The fewest sets that cover variables; more than any query has where all of them do not."""
    parts = {side & variables for side in sides} - {frozenset()}
    largest = [part for part in parts if not any(part < other for other in parts)]
    for size in range(len(largest) + 1):
        if any(variables <= frozenset[str]().union(*chosen) for chosen in combinations(largest, size)):
            return size
    return _NEVER
