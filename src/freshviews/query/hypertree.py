"""Finds generalised hypertree decompositions: groups the atoms of a cyclic query into bags that form an acyclic query.

The atoms of a bag are joined first, and then treated as one atom. The width is the greatest number of atoms that are
needed to cover the variables of a bag. The dumbbell, two triangles with an edge between, has width 2::

    R(a, b), S(a, c), T(b, c), U(c, d), V(d, e), W(d, f), X(e, f)          {a, b, c} -- {c, d} -- {d, e, f}

Source: Gottlob, Leone, Scarcello: Hypertree Decompositions and Tractable Queries (2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache, lru_cache, reduce
from operator import or_

from freshviews.query.acyclic import is_acyclic
from freshviews.query.edge_cover import edge_cover_number
from freshviews.query.hypergraph import Edge, Hypergraph, components, union
from freshviews.records import dataclass

EXACT_ATOMS = 10
"""The width is minimal up to this number of atoms."""
MOST_BAGS = 20_000
"""Maximum number of bags that the search for the least width weighs: about half a second."""

_NEVER = 1 << 30

Variables = frozenset[str]


@dataclass(frozen=True)
class Bag:
    """Names of the atoms and guards of a bag, in the order of the query, and its variables.

    Every atom belongs to one bag. It is a *guard* of every other bag that contains all its variables: that bag is
    joined with the atom's distinct rows. A bag with its guards has at most N^w rows, where w is the fractional edge
    cover number of the bag by these atoms (Atserias, Grohe, Marx). Here the guard R limits the second bag to N^(3/2)
    rows, where U and V alone have N^2::

        R(a, b), S(b, c), T(c, a), U(b, d), V(d, a)          R * S * T -- U * V where R(a, b)
    """

    variables: Variables
    home: tuple[str, ...]
    guards: tuple[str, ...] = ()


class _TooMany(Exception):
    """Raised if the search would weigh more bags than allowed."""


def decomposition(graph: Hypergraph) -> tuple[Bag, ...]:
    """The bags of a decomposition, in the order of their first atoms; of least width where ``searches_all``.

    For up to ``EXACT_ATOMS`` atoms the least width is found, by weighing at most ``MOST_BAGS`` bags. Otherwise
    variables are eliminated greedily: always the variable with the smallest bag.
    """
    return _decomposed(graph)[0]


def searches_all(graph: Hypergraph) -> bool:
    """True if the decomposition has minimal width, False if it is a greedy choice."""
    return _decomposed(graph)[1]


@lru_cache(maxsize=64)
def _decomposed(graph: Hypergraph) -> tuple[tuple[Bag, ...], bool]:
    if not graph.edges:
        return (), True
    if len(graph.edges) <= EXACT_ATOMS:
        try:
            return _least(graph, iter(range(MOST_BAGS))), True
        except _TooMany:
            pass
    return _bags_of(graph, _greedy(graph)), False


def _least(graph: Hypergraph, budget: Iterator[int]) -> tuple[Bag, ...]:
    width = least_width(graph, budget)
    apart = _best_partition(graph, width)
    narrower = None if apart is None else fractional_width(graph, tuple(bag.variables for bag in apart))
    head = Edge(" head", graph.free)
    if apart is not None and is_acyclic((*(Edge(str(i), bag.variables) for i, bag in enumerate(apart)), head)):
        return _narrowest(graph, width, True, budget, narrower) or apart
    found = _narrowest(graph, width, True, budget) or _narrowest(graph, width, False, budget, narrower) or apart
    assert found is not None  # the least width is that of some order
    return found


def least_width(graph: Hypergraph, budget: Iterator[int]) -> int:
    """The generalised hypertree width: 1 if the query is acyclic. ``budget`` has an item for each bag that may be
    weighed. Raises _TooMany."""
    return next(k for k in range(1, len(graph.edges) + 1) if _eliminated(graph, k, False, budget) is not None)


def fractional_width(graph: Hypergraph, bags: tuple[Variables, ...]) -> Fraction:
    """The exponent of the number of rows of the largest bag, restricted by all atoms."""
    return max(edge_cover_number(bag, tuple(e.variables for e in graph.edges)) for bag in bags)


# Elimination orders.


def _narrowest(
    graph: Hypergraph, width: int, free_top: bool, budget: Iterator[int], narrower: Fraction | None = None
) -> tuple[Bag, ...] | None:
    """The bags of least fractional width among the orders of ``_eliminated``."""
    best: tuple[Variables, ...] | None = None
    while (found := _eliminated(graph, width, free_top, budget, narrower)) is not None:
        best, narrower = found, fractional_width(graph, found)
    return None if best is None else _bags_of(graph, best)


def _eliminated(
    graph: Hypergraph, width: int, free_top: bool, budget: Iterator[int], narrower: Fraction | None = None
) -> tuple[Variables, ...] | None:
    """The bags of an elimination order in which no bag is wider than ``width`` and each has an accepted fractional
    width.

    ``free_top``: free variables are above all others. None if there is no such order.
    """
    sides = tuple(edge.variables for edge in graph.edges)

    @cache
    def below(component: Variables) -> tuple[Variables, ...] | None:
        """Bags for a component whose neighbours are above it."""
        around = frozenset[str]().union(*(e.variables for e in graph.touching(component))) - component
        free = component & graph.free
        for root in graph.ordered(free if free_top and free else component):
            bag = around | {root}
            if next(budget, None) is None:
                raise _TooMany
            if cover_number(bag, sides) > width or (narrower and edge_cover_number(bag, sides) >= narrower):
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
    """Bags by repeatedly eliminating the variable with the smallest bag."""
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
    """Assign atoms to sets of variables, and add guards. Sets contained in others are left out."""
    sets = [one for i, one in enumerate(found) if not any(one < o or (one == o and j < i) for j, o in enumerate(found))]
    home: dict[Variables, list[str]] = {one: [] for one in sets}
    for edge in graph.edges:
        # An atom that fits several bags goes to the one where it covers most uncovered variables.
        fits = [one for one in sets if edge.variables <= one]
        home[min(fits, key=lambda one: (len(home[one]), len(one)))].append(edge.name)
    bags = [_bag(graph, one, tuple(names)) for one, names in home.items()]
    order = [edge.name for edge in graph.edges]
    return tuple(sorted(bags, key=lambda bag: min(map(order.index, (*bag.home, *bag.guards)))))


def _bag(graph: Hypergraph, bag: Variables, home: tuple[str, ...]) -> Bag:
    """A bag with its guards: the largest other atoms within it, and the projections of atoms that the least bound
    needs."""
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
        return cover_number(bag, sides), edge_cover_number(bag, sides) if covered else Fraction(_NEVER)

    least = cover_number(bag, every), edge_cover_number(bag, every)
    for name in reversed(tuple(across)):
        if bounds(other for other in across if other != name) == least:
            del across[name]
    return Bag(bag, home, tuple(edge.name for edge in graph.edges if edge.name in inside or edge.name in across))


# Bags made of the variables of their atoms.


def _best_partition(graph: Hypergraph, width: int) -> tuple[Bag, ...] | None:
    """The best partition of the atoms into acyclic bags of at most this width: free-connex first, then by ``_Rank``;
    None if there is none.

    An atom contained in another covers no further variable and stays alone, unless no partition allows that: its
    updates then do not have to find rows of a bag.
    """
    inner = _inner(graph.edges)
    outer = tuple(edge for edge in graph.edges if edge not in inner)
    found = _best_of(graph, outer, inner, width)
    return found or (_best_of(graph, graph.edges, (), width) if inner else None)


def _inner(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The edges contained in others; of equal edges all but the first."""
    sides = [edge.variables for edge in edges]
    return tuple(
        edge
        for i, edge in enumerate(edges)
        if any(edge.variables < side or (edge.variables == side and j < i) for j, side in enumerate(sides))
    )


_Rank = tuple[int, bool, int, int, int, int]
"""The cost of a partition: fractional width in millionths; whether some projected bag has more rows than an atom, or
there is only one bag; number of products; most atoms of a bag; sum of widths; sum of atoms."""


def _best_of(graph: Hypergraph, edges: tuple[Edge, ...], alone: tuple[Edge, ...], width: int) -> tuple[Bag, ...] | None:
    """Groups of edges, and sets of variables, are bit sets of positions."""
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
        return cover_number(union(tuple(edges[i] for i in members(group))), every) <= width

    @cache
    def weight(group: int) -> tuple[int, int, int]:
        """Of a bag with its guards: fractional width, whether it is a product, number of atoms."""
        inside = tuple(edge for edge, side in zip(edges, bits, strict=True) if side & ~variables(group) == 0)
        width = edge_cover_number(union(inside), every)
        return round(width * 10**6), not _connected(inside), len(inside)

    def rank(groups: tuple[int, ...]) -> _Rank:
        weights = [weight(group) for group in groups if group & (group - 1)] or [(0, 0, 0)]
        widths, products, sizes = zip(*weights, strict=True)
        return max(widths), not is_linear(groups), sum(products), max(sizes), sum(widths), sum(sizes)

    def is_linear(groups: tuple[int, ...]) -> bool:
        """True if each bag, projected on the variables that other bags need, has no more rows than an atom."""
        sides = [*map(variables, groups), *apart]
        for i, side in enumerate(sides[: len(groups)]):
            outside = reduce(or_, (*sides[:i], *sides[i + 1 :], *(f for f in factors if f & ~side)), head)
            if not any(side & outside & ~one == 0 for one in bits):
                return False
        return len(sides) > 1

    # Variables that are pairwise in a common edge are in one bag if the bags are acyclic.
    meeting = _cliques(_neighbours_by_variable([*bits, *apart], len(place)))
    meeting = [clique for clique in meeting if not any(clique & ~side == 0 for side in (*bits, *apart))]

    def holds(groups: tuple[int, ...]) -> bool:
        """True if every clique is within a bag and no bag is contained in another."""
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
    return tuple(_bag(graph, union(group), tuple(edge.name for edge in group)) for group in found)


def _partitions(count: int, may_grow: Callable[[int], bool]) -> Iterator[tuple[int, ...]]:
    """Every partition of ``count`` positions into allowed groups and single positions."""

    def grow(at: int, groups: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if at == count:
            yield groups
            return
        yield from grow(at + 1, (*groups, 1 << at))
        for i, group in enumerate(groups):
            if may_grow(group | 1 << at):
                yield from grow(at + 1, (*groups[:i], group | 1 << at, *groups[i + 1 :]))

    return grow(0, ())


def _neighbours_by_variable(sides: list[int], count: int) -> dict[int, int]:
    """Per variable, the other variables that share an edge with it."""
    return {1 << i: reduce(or_, (s for s in sides if s >> i & 1), 0) & ~(1 << i) for i in range(count)}


def _cliques(around: dict[int, int]) -> list[int]:
    """The maximal sets of pairwise adjacent variables (Bron and Kerbosch)."""
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
    """True if a hypergraph is acyclic (see ``freshviews.query.acyclic``); edges are bit sets."""
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
    variables = union(group)
    return len(components(Hypergraph(tuple(variables), frozenset(), group), variables)) <= 1


@cache
def cover_number(variables: Variables, sides: tuple[Variables, ...]) -> int:
    """The fewest sets that cover the variables; larger than any query's atoms if they do not."""
    parts = {side & variables for side in sides}
    largest = [part for part in parts if not any(part < other for other in parts)]
    if frozenset[str]().union(*largest) != variables:
        return _NEVER
    return next(size for size in range(len(largest) + 1) if _is_covered(variables, largest, size))


def _is_covered(variables: Variables, parts: list[Variables], size: int) -> bool:
    """True if this many parts cover the variables. One part must contain the variable that the fewest parts have."""
    if not variables or size == 0:
        return not variables
    having = min(([part for part in parts if v in part] for v in variables), key=len)
    return any(_is_covered(variables - part, parts, size - 1) for part in having)
