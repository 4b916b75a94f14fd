"""Enumerates a listed result, which is a union of several sets. A value that is in several sets is returned only once.

Source: Durand and Strozecki (CSL 2011). The sets {1, 2, 3} and {4, 2} are enumerated as 1, 4, 3, 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.program.reference.payloads import Key, Scope
from freshviews.program.reference.tables import Run, Tables
from freshviews.program.results import SliceSource, Source, UnionSource

Bound = dict[str, int]


def listed(tables: Tables, run: Run, sources: tuple[Source, ...], bound: Bound) -> Iterator[Bound]:
    """Values of the variables of the sources, together with those bound. The rows must not change meanwhile.

    The sets of a UnionSource may overlap. The union algorithm of Durand and Strozecki (Enumeration Complexity of
    Logical Query Problems with Second-order Variables, CSL 2011) reports each value once. The algorithm reads the first
    set. If the second set also contains the value that was read, the next value of the second set is reported instead.
    The values that remain in the second set come last. For example, the sets 1, 2, 3 and 4, 2 give 1, 4, 3, 2. A third
    set is combined with this output.

    Between two reported values, the algorithm does one lookup and takes one value per set.
    """
    if not sources:
        yield bound
        return
    first, rest = sources[0], sources[1:]
    found = _rows(tables, first, bound) if isinstance(first, SliceSource) else _union(tables, run, first, bound)
    for values in found:
        yield from listed(tables, run, rest, values)


def _rows(tables: Tables, rows: SliceSource, bound: Bound) -> Iterator[Bound]:
    for key in tables.slice(rows, bound):
        tables.steps += 1
        yield {**bound, **dict(zip(rows.key, key, strict=True))}


def _union(tables: Tables, run: Run, union: UnionSource, bound: Bound) -> Iterator[Bound]:
    sets: list[tuple[Bound, Iterator[Bound]]] = []
    if union.light is not None:
        sets.append((bound, _rows(tables, union.light, bound)))
    for values in _rows(tables, union.heavy, bound):
        sets.append((values, listed(tables, run, union.inner, values)))
    while True:
        found: Bound | None = None
        for values, rows in sets:
            tables.steps += 1
            if found is None:
                found = next(rows, None)
            elif _has(run, union, values, found):
                found = next(rows)
        if found is None:
            return
        yield {**bound, **{v: found[v] for v in union.variables}}


def _has(run: Run, union: UnionSource, values: Bound, found: Bound) -> bool:
    """True if the set of a row of ``heavy`` has the values ``found``."""
    emitted: list[Key] = []
    scope = Scope({**values, **{v: found[v] for v in union.variables}}, {}, lambda row, _: emitted.append(row))
    run(union.has, scope)
    return bool(emitted)
