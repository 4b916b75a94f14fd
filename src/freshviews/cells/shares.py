"""Chooses the shares of a block by the HyperCube method: into how many parts the values of each variable are hashed.

The product of the shares is at most the number of cells. The search minimises the expected rows of the fullest cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, islice, product
from math import exp, log, prod

from freshviews.cells.splitting import SplitAtom, Splitting
from freshviews.records import dataclass

EXACT_LABELS = 8
"""Most labels with which the search is complete when atoms share a table."""

ABOUT_EQUAL = 1 + 1e-8
"""Loads that differ by less than this factor are equal up to rounding."""

MOST_REUSES = 5000
"""Limit on the layouts tried per existing grid."""


@dataclass(frozen=True)
class Layout:
    """Shares above 1 by label, in the order of the grid's dims, and the grid's first cell (None: any)."""

    shares: tuple[tuple[str, int], ...]
    offset: int | None = None

    @property
    def span(self) -> int:
        return prod(share for _, share in self.shares)


Routing = tuple[str, tuple[tuple[str | None, int], ...]]
"""The identity of a role in a layout: the table, and per dim its column and share."""


def routing_of(atom: SplitAtom, layout: Layout) -> Routing:
    """The routing of an atom under a layout."""
    return atom.table, tuple((atom.columns.get(label), share) for label, share in layout.shares)


@dataclass(frozen=True)
class Grid:
    """An existing routing of a table: per dim its column and share, and the first cell."""

    table: str
    dims: tuple[tuple[str | None, int], ...]
    offset: int


def loads_of(splitting: Splitting, layout: Layout, there: Collection[Grid] = ()) -> tuple[float, float]:
    """Expected rows in a cell of the grid, and rows sent in all.

    A row counts once for every atom that reads it, and once for being stored by a role, unless the role exists
    (``there``). Atoms with the same routing share a role.
    """
    cell = sent = 0.0
    known: set[Routing] = set()
    for atom in splitting.atoms:
        routing = routing_of(atom, layout)
        rows = atom.size / prod(share for column, share in routing[1] if column is not None)
        cell += rows
        if routing in known or (layout.offset is not None and Grid(*routing, layout.offset) in there):
            continue
        known.add(routing)
        cell += rows
        sent += rows * layout.span
    return cell, sent


def is_local(splitting: Splitting, layout: Layout) -> bool:
    """True if each group is in one cell."""
    return not splitting.grouped or all(label in splitting.free for label, _ in layout.shares)


def best_layout(splitting: Splitting, cells: int, grids: Collection[Grid] = ()) -> Layout:
    """The layout of least load; among equal ones, without merge, with few dims, with few copies.

    ``grids``: existing routings, preferred to equal new ones unless they have all rows in one cell.

    The method is HyperCube (Afrati and Ullman; Beame, Koutris and Suciu), with integer shares found by enumeration
    (Chu, Balazinska and Suciu). The product of the shares is at most the number of cells. The search minimises the
    expected rows of the largest cell. This number is a sum over the atoms: an atom's size, divided by the product of
    the shares that split it. Each atom counts the rows that it reads. A new role also has to store its rows, so they
    count a second time; a role that exists already stores them.
    """
    there = frozenset(grids)

    def rank(layout: Layout) -> tuple[float, bool, int, float, tuple[int, ...], int]:
        cell, sent = loads_of(splitting, layout, there)
        order = tuple(splitting.labels.index(label) for label, _ in layout.shares)
        offset = -1 if layout.offset is None else layout.offset
        return rounded(cell), not is_local(splitting, layout), len(layout.shares), rounded(sent), order, offset

    reused = (layout for grid in grids for layout in islice(_on_grid(splitting, grid), MOST_REUSES))
    candidates = [_fresh(splitting, cells), *(one for one in reused if is_local(splitting, one) or not splitting.local)]
    return min(candidates, key=rank)


def rounded(rows: float) -> float:
    """Rounds a load, so that loads that differ only by rounding errors are equal."""
    return float(f"{rows:.9g}")


def _on_grid(splitting: Splitting, grid: Grid) -> Iterator[Layout]:
    """The layouts in which some atom has the existing routing."""
    for atom in splitting.atoms:
        if atom.table != grid.table:
            continue
        choices = [
            [label for label in splitting.labels if atom.columns.get(label) == column] for column, _ in grid.dims
        ]
        for labels in product(*choices):
            if len(set(labels)) == len(labels):
                shares = (share for _, share in grid.dims)
                yield Layout(tuple(zip(labels, shares, strict=True)), grid.offset)


def _fresh(splitting: Splitting, cells: int) -> Layout:
    """The best layout on a new grid, by exhaustive search with a bound."""
    repeated = len({atom.table for atom in splitting.atoms}) < len(splitting.atoms)
    labels = splitting.labels
    if not repeated or len(labels) > EXACT_LABELS:
        labels = _drop_dominated(splitting)
    if splitting.local:
        labels = tuple(label for label in labels if label in splitting.free)
    # Labels that split many rows come first, so that a good bound is found early.
    labels = tuple(sorted(labels, key=lambda label: -sum(a.size for a in splitting.atoms if label in a.columns)))
    order = {label: place for place, label in enumerate(splitting.labels)}
    splits = [[label in atom.columns for atom in splitting.atoms] for label in labels]
    later = [[any(one[a] for one in splits[i:]) for a in range(len(splitting.atoms))] for i in range(len(labels) + 1)]
    atoms = splitting.atoms
    most = [max((sum(one) for one in splits[i:]), default=0) for i in range(len(labels) + 1)]
    columns = [[atom.columns.get(label) for label in labels] for atom in atoms]
    pairs = [(a, b) for a, b in combinations(range(len(atoms)), 2) if atoms[a].table == atoms[b].table]

    def exceeds(place: int, budget: int, shares: Sequence[int], loads: Sequence[float], limit: float) -> bool:
        """True if every layout that begins with these shares has more rows in a cell than the limit."""
        moves = later[place]
        least = [load / budget if more else load for load, more in zip(loads, moves, strict=True)]
        read = sum(least)
        moving = [load for load, more in zip(loads, moves, strict=True) if more]
        if 2 * read <= limit and moving and min(moving) > 0:
            # A label divides at most ``most`` of the loads, so their product falls by at most the budget to this power;
            # a sum is minimal if all loads are equal.
            mean = (sum(map(log, moving)) - most[place] * log(budget)) / len(moving)
            read = max(read, sum(loads) - sum(moving) + len(moving) * exp(mean))
        if 2 * read <= limit:
            return False
        # Two atoms share a role if every label with a share splits both by the same column.
        total = sum(least)
        for a, b in pairs:
            one, other = columns[a], columns[b]
            if any(share > 1 and one[i] != other[i] for i, share in enumerate(shares)):
                continue
            by = budget if any(one[i] == other[i] is not None for i in range(place, len(labels))) else 1
            both = loads[a] / by, loads[b] / by
            if total - least[a] - least[b] + sum(both) + max(both) <= limit:
                return False
        return True

    def ranked(shares: Sequence[int]) -> tuple[tuple[float, bool, int, float, tuple[int, ...]], Layout]:
        chosen = [(label, share) for label, share in zip(labels, shares, strict=True) if share > 1]
        layout = Layout(tuple(sorted(chosen, key=lambda one: order[one[0]])))
        cell, sent = loads_of(splitting, layout)
        places = tuple(order[label] for label, _ in layout.shares)
        return (rounded(cell), not is_local(splitting, layout), len(chosen), rounded(sent), places), layout

    best = min((ranked(shares) for shares in _greedy_shares(splitting, labels, cells)), key=lambda one: one[0])

    def visit(place: int, budget: int, shares: tuple[int, ...], loads: Sequence[float]) -> None:
        nonlocal best
        if exceeds(place, budget, shares, loads, best[0][0] * ABOUT_EQUAL):
            return
        if place == len(labels):
            best = min(best, ranked(shares), key=lambda one: one[0])
            return
        for share in range(budget, 0, -1):
            split = [load / share if by else load for load, by in zip(loads, splits[place], strict=True)]
            visit(place + 1, budget // share, (*shares, share), split)

    visit(0, cells, (), [atom.size for atom in splitting.atoms])
    return best[1]


def _greedy_shares(splitting: Splitting, labels: Sequence[str], cells: int) -> Iterator[tuple[int, ...]]:
    """Greedy shares: they grow from 1, always where that leaves the fewest rows in a cell. They give a good bound for
    the search."""
    shares = (1,) * len(labels)
    while True:
        yield shares
        steps = ((*shares[:i], shares[i] + 1, *shares[i + 1 :]) for i in range(len(labels)))
        fitting = [one for one in steps if prod(one) <= cells]
        if not fitting:
            return

        def rows(one: tuple[int, ...]) -> float:
            chosen = zip(labels, one, strict=True)
            return loads_of(splitting, Layout(tuple((label, share) for label, share in chosen if share > 1)))[0]

        shares = min(fitting, key=rows)


def _drop_dominated(splitting: Splitting) -> tuple[str, ...]:
    """Remove dominated labels: another label splits all their atoms, and is free if the label is."""
    ranks = {
        label: (frozenset(a.name for a in splitting.atoms if label in a.columns), label in splitting.free)
        for label in splitting.labels
    }
    order = {label: place for place, label in enumerate(splitting.labels)}

    def beats(other: str, label: str) -> bool:
        if ranks[other] == ranks[label]:
            return order[other] < order[label]
        return ranks[other][0] >= ranks[label][0] and ranks[other][1] >= ranks[label][1]

    return tuple(label for label in order if not any(beats(other, label) for other in order if other != label))
