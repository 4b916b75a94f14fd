"""Generalised hypertree decompositions: the atoms of a cyclic query grouped into bags that are acyclic together.

Source: Gottlob, Leone, Scarcello: Hypertree Decompositions and Tractable Queries (2002); Wang, Hu, Dai, Yi: Change
Propagation Without Joins (PVLDB 16(5), 2023), Section 7. A decomposition is a tree of bags of variables: those of each
atom are together in some bag, and the bags that have a variable are connected. Its *width* is the most atoms that it
takes to cover a bag: a bag has at most N^width rows. The dumbbell, of width 2::

    R(a, b), S(a, c), T(b, c), U(c, d), V(d, e), W(d, f), X(e, f)          {a, b, c} -- {c, d} -- {d, e, f}

Every atom is at home in one bag, and restricts each other bag that has all of its variables, as a *guard*: its rows
projected on the bag, each once. A bag has at most N^w rows, w its fractional edge cover number (Atserias, Grohe, Marx);
where that takes more projections of atoms, they guard it as well. An atom within another one that is in the bag lowers
no such bound, and is no guard. Two triangles that share an edge, the bags with N^(3/2) rows, not the N^2 of U and V::

    R(a, b), S(b, c), T(c, a), U(b, d), V(d, a)          R * S * T -- U * V where R(a, b)

Of the decompositions of least width one is taken over which the query is free-connex, where there is one; then the one
of least fractional width; then one in which each bag has the variables of the atoms at home, and, projected on what is
needed outside, no more rows than an atom, where there is one; then one whose bags are joins and not products, of the
fewest atoms.

The least width is found exactly for up to ``EXACT_ATOMS`` atoms: a width is tried after the other, by the orders of
elimination of the variables, component by component. Beyond, the variables are taken in the order in which their bags
are the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
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
    narrower = None if apart is None else fractional_width(graph, tuple(bag.variables for bag in apart))
    head = Edge(" head", graph.free)
    if apart is not None and is_acyclic((*(Edge(str(i), bag.variables) for i, bag in enumerate(apart)), head)):
        return _narrowest(graph, width, True, narrower) or apart
    found = _narrowest(graph, width, True) or _narrowest(graph, width, False, narrower) or apart
    assert found is not None  # the least width is that of some order
    return found


def least_width(graph: Hypergraph) -> int:
    """The generalised hypertree width: 1 where the query is acyclic."""
    return next(k for k in range(1, len(graph.edges) + 1) if _eliminated(graph, k, free_top=False) is not None)


def width_of(graph: Hypergraph, bags: tuple[Bag, ...]) -> int:
    """The most atoms that it takes to cover a bag."""
    return max(_cover_number(bag.variables, tuple(e.variables for e in graph.edges)) for bag in bags)


def fractional_width(graph: Hypergraph, bags: tuple[Variables, ...]) -> Fraction:
    """The exponent of the most rows that a bag, restricted by all atoms, has."""
    return max(edge_cover_number(bag, tuple(e.variables for e in graph.edges)) for bag in bags)


# Orders of elimination


def _narrowest(
    graph: Hypergraph, width: int, free_top: bool, narrower: Fraction | None = None
) -> tuple[Bag, ...] | None:
    """The bags of least fractional width of the orders of ``_eliminated``."""
    best: tuple[Variables, ...] | None = None
    while (found := _eliminated(graph, width, free_top, narrower)) is not None:
        best, narrower = found, fractional_width(graph, found)
    return None if best is None else _bags_of(graph, best)


def _eliminated(
    graph: Hypergraph, width: int, free_top: bool, narrower: Fraction | None = None
) -> tuple[Variables, ...] | None:
    """The bags of an order in which none is wider, and each has a fractional width that is ``narrower``; ``free_top``:
    free variables stand above all others. None where there is no such order."""
    sides = tuple(edge.variables for edge in graph.edges)

    @cache
    def below(component: Variables) -> tuple[Variables, ...] | None:
        """Bags for a component, whose neighbours are above it."""
        around = frozenset[str]().union(*(e.variables for e in graph.touching(component))) - component
        free = component & graph.free
        for root in graph.ordered(free if free_top and free else component):
            bag = around | {root}
            if _cover_number(bag, sides) > width or (narrower and edge_cover_number(bag, sides) >= narrower):
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
    bags = [_bag(graph, one, tuple(names)) for one, names in home.items()]
    order = [edge.name for edge in graph.edges]
    return tuple(sorted(bags, key=lambda bag: min(map(order.index, (*bag.home, *bag.guards)))))


def _bag(graph: Hypergraph, bag: Variables, home: tuple[str, ...]) -> Bag:
    """A bag and its guards: the largest atoms within it that are not at home there, and of the others the projections
    that cannot be spared for the least bounds."""
    every = tuple(edge.variables for edge in graph.edges)
    held = [edge.variables for edge in graph.edges if edge.name in home]
    inside = []
    for edge in sorted(graph.edges, key=lambda edge: -len(edge.variables)):
        if edge.variables <= bag and not any(edge.variables <= side for side in held):
            held.append(edge.variables)
            inside.append(edge.name)
    across = {
        edge.name: edge.variables & bag
        for edge in graph.edges
        if not edge.variables <= bag and not any(edge.variables & bag <= side for side in held)
    }

    def bounds(names: Iterable[str]) -> tuple[int, Fraction]:
        sides = (*held, *(across[name] for name in names))
        covered = frozenset[str]().union(*sides) >= bag
        return _cover_number(bag, sides), edge_cover_number(bag, sides) if covered else Fraction(_NEVER)

    least = _cover_number(bag, every), edge_cover_number(bag, every)
    for name in reversed(tuple(across)):
        if bounds(other for other in across if other != name) == least:
            del across[name]
    return Bag(bag, home, tuple(edge.name for edge in graph.edges if edge.name in inside or edge.name in across))


# Bags of the variables of the atoms at home


def _best_partition(graph: Hypergraph, width: int) -> tuple[Bag, ...] | None:
    """The partition of the atoms into acyclic bags of at most a width: free-connex before others, then by ``_Rank``;
    None where there is none.

    An atom within another covers nothing that the other does not, and stands alone, unless that leaves no partition:
    its updates then need not find the rows of a bag that it has a part in.
    """
    inner = _inner(graph.edges)
    outer = tuple(edge for edge in graph.edges if edge not in inner)
    found = _best_of(graph, outer, inner, width)
    return found or (_best_of(graph, graph.edges, (), width) if inner else None)


def _inner(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The edges within others; of equal ones all but the first."""
    sides = [edge.variables for edge in edges]
    return tuple(
        edge
        for i, edge in enumerate(edges)
        if any(edge.variables < side or (edge.variables == side and j < i) for j, side in enumerate(sides))
    )


_Rank = tuple[int, bool, int, int, int, int]
"""What makes bags of several atoms dear: the fractional width, in millionths; whether for the rest one has more rows
than an atom, or there is no rest; products, the most atoms of a bag, the sums of widths and of atoms."""


def _best_of(graph: Hypergraph, edges: tuple[Edge, ...], alone: tuple[Edge, ...], width: int) -> tuple[Bag, ...] | None:
    """Groups of edges are sets of their positions, as bits; so are sets of variables."""
    place = {v: 1 << i for i, v in enumerate(graph.variables)}
    bits = [sum(place[v] for v in edge.variables) for edge in edges]
    apart = [sum(place[v] for v in edge.variables) for edge in alone]
    head = sum(place[v] for v in graph.free)
    factors = [sum(place[v] for v in factor) for factor in graph.factors]
    every = tuple(edge.variables for edge in edges)
    inner = {1 << edges.index(edge) for edge in _inner(edges)}

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
    def weight(group: int) -> tuple[int, int, int]:
        """Of a bag with its guards: fractional width, whether it is a product, atoms."""
        inside = tuple(edge for edge, side in zip(edges, bits, strict=True) if side & ~variables(group) == 0)
        width = edge_cover_number(_union(inside), every)
        return round(width * 10**6), not _connected(inside), len(inside)

    def rank(groups: tuple[int, ...]) -> _Rank:
        weights = [weight(group) for group in groups if group & (group - 1)] or [(0, 0, 0)]
        widths, products, sizes = zip(*weights, strict=True)
        return max(widths), not is_linear(groups), sum(products), max(sizes), sum(widths), sum(sizes)

    def is_linear(groups: tuple[int, ...]) -> bool:
        """Whether each bag, projected on what is needed outside, has no more rows than an atom."""
        sides = [*map(variables, groups), *apart]
        for i, side in enumerate(sides[: len(groups)]):
            outside = reduce(or_, (*sides[:i], *sides[i + 1 :], *(f for f in factors if f & ~side)), head)
            if not any(side & outside & ~one == 0 for one in bits):
                return False
        return len(sides) > 1

    # Variables that meet two by two are in one bag, where the bags are acyclic.
    meeting = _cliques(_met([*bits, *apart], len(place)))
    meeting = [clique for clique in meeting if not any(clique & ~side == 0 for side in (*bits, *apart))]

    def holds(groups: tuple[int, ...]) -> bool:
        """Whether cliques are held, and no bag lies within another: its atoms are at home there as well."""
        sides = [variables(group) for group in groups]
        outer = [side for group, side in zip(groups, sides, strict=True) if group not in inner]
        if any(side & ~other == 0 for i, side in enumerate(outer) for other in (*outer[:i], *outer[i + 1 :])):
            return False
        return all(any(clique & ~side == 0 for side in sides) for clique in meeting)

    ranked = sorted(
        filter(holds, _partitions(len(edges), may_grow)),
        key=lambda groups: (rank(groups), sorted(map(members, groups))),
    )
    best: tuple[int, ...] | None = None
    for groups in ranked:
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
    return tuple(_bag(graph, _union(group), tuple(edge.name for edge in group)) for group in found)


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
