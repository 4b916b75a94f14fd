"""Listing in the interpreter: the distinct values that a program's Rows and Unions bind, one after the other.

A Union has sets that overlap. Of two sets, the next value of the first is handed out where the second lacks it; in its
place, where the second has it, comes the next value of the second; at the end what is left of the second (Durand and
Strozecki, Enumeration Complexity of Logical Query Problems with Second-order Variables, CSL 2011). For each value of
the first that the second has, one of the second is taken, so that it does not run out before. A third set does the
same with what the first two hand out, and so on: between two values lie, per set, one lookup and one value taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.program.reference.payloads import Key, Scope
from freshviews.program.reference.tables import Run, Tables
from freshviews.program.results import SliceSource, Source, UnionSource

Bound = dict[str, int]


def listed(tables: Tables, run: Run, sources: tuple[Source, ...], bound: Bound) -> Iterator[Bound]:
    """Values for the variables of the sources, beside those bound; the rows must not change meanwhile."""
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
    """Whether the set of a row of ``heavy`` has what was found."""
    emitted: list[Key] = []
    scope = Scope({**values, **{v: found[v] for v in union.variables}}, {}, lambda row, _: emitted.append(row))
    run(union.has, scope)
    return bool(emitted)
