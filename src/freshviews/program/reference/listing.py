"""Listing in the interpreter: the distinct values that a program's Rows and Unions bind, one after the other.

A Union has sets that overlap. Of two sets, the next value of the first is handed out where the second lacks it; in its
place, where the second has it, comes the next value of the second; at the end what is left of the second (Durand and
Strozecki, Enumeration Complexity of Logical Query Problems with Second-order Variables, CSL 2011). For each value of
the first that the second has, one of the second is taken, so that it does not run out before. A third set does the
same with what the first two hand out, and so on: between two values lie, per set, one lookup and one value taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from freshviews.program.reference.payloads import Key, Scope
from freshviews.program.results import SliceSource, Source, UnionSource

if TYPE_CHECKING:
    from freshviews.program.reference.interpreter import State

Bound = dict[str, int]


def listed(state: State, sources: tuple[Source, ...], bound: Bound) -> Iterator[Bound]:
    """Values for the variables of the sources, beside those bound; the state must not change meanwhile."""
    if not sources:
        yield bound
        return
    first, rest = sources[0], sources[1:]
    for values in _rows(state, first, bound) if isinstance(first, SliceSource) else _union(state, first, bound):
        yield from listed(state, rest, values)


def _rows(state: State, rows: SliceSource, bound: Bound) -> Iterator[Bound]:
    for key in state.slice(rows, bound):
        state.steps += 1
        yield {**bound, **dict(zip(rows.key, key, strict=True))}


def _union(state: State, union: UnionSource, bound: Bound) -> Iterator[Bound]:
    sets: list[tuple[Bound, Iterator[Bound]]] = []
    if union.light is not None:
        sets.append((bound, _rows(state, union.light, bound)))
    for values in _rows(state, union.heavy, bound):
        sets.append((values, listed(state, union.inner, values)))
    while True:
        found: Bound | None = None
        for values, rows in sets:
            state.steps += 1
            if found is None:
                found = next(rows, None)
            elif _has(state, union, values, found):
                found = next(rows)
        if found is None:
            return
        yield {**bound, **{v: found[v] for v in union.variables}}


def _has(state: State, union: UnionSource, values: Bound, found: Bound) -> bool:
    """Whether the set of a row of ``heavy`` has what was found."""
    emitted: list[Key] = []
    scope = Scope({**values, **{v: found[v] for v in union.variables}}, {}, lambda row, _: emitted.append(row))
    state.run(union.has, scope)
    return bool(emitted)
