"""Rows of set operations over blocks, without a stored result: enumeration, lookup and change.

Each block of the term is an *operand*: it enumerates its rows, and looks up a row in constant time.

- ``l EXCEPT r``, ``l INTERSECT r``: the rows of l that are not, or are, in r; any number of others may be skipped
  between two of them.
- ``l UNION r``: a row of l that r lacks is emitted; for a row of l that r has, the next row of r is emitted instead; at
  the end, the rest of r. So every row is emitted once, with constant delay (Durand, Strozecki, Enumeration Complexity
  of Logical Query Problems with Second-order Variables, CSL 2011). The same is done with batches for rows.
- the change: a row may change only where an operand changed. Whether it was and is in the result follows from the
  present rows of the operands and their changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from freshviews.catalog.definitions import SetOperation, SetTerm
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.views.output import consolidate

Flags = NDArray[np.bool_]


class Operand(Protocol):
    """The rows of a block, shape (n, columns + 1) with the multiplicity last. They come once each, but under ALL."""

    def rows(self, limit: int) -> Iterator[Codes]:
        """All rows, at most ``limit`` at a time."""
        ...

    def has(self, rows: Codes) -> Flags:
        """Which of these are among its rows."""
        ...

    def change(self) -> Codes:
        """The change since the last call, consolidated."""
        ...


def rows_of(term: SetTerm, operands: Sequence[Operand], limit: int) -> Iterator[Codes]:
    """All rows, at most ``limit`` at a time; the operands must not change meanwhile."""
    if isinstance(term, int):
        yield from operands[term].rows(limit)
        return
    left = rows_of(term.left, operands, limit)
    if term.kind == "all":
        yield from left
        yield from rows_of(term.right, operands, limit)
        return
    if term.kind == "union":
        others = _Taken(rows_of(term.right, operands, limit))
        for rows in left:
            found = has(term.right, operands, rows)
            yield np.concatenate([rows[~found], *others.take(int(found.sum()))])
        yield from others.rest()
        return
    for rows in left:
        found = has(term.right, operands, rows)
        wanted = rows[found if term.kind == "intersect" else ~found]
        if len(wanted):
            yield wanted


class _Taken:
    """Rows of batches, taken a few at a time."""

    def __init__(self, batches: Iterator[Codes]) -> None:
        self._batches = batches
        self._left: Codes | None = None

    def take(self, count: int) -> Iterator[Codes]:
        """The next ``count`` rows."""
        while count:
            rows = self._left if self._left is not None and len(self._left) else next(self._batches)
            yield rows[:count]
            self._left = rows[count:]
            count -= min(count, len(rows))

    def rest(self) -> Iterator[Codes]:
        """All that are left."""
        if self._left is not None and len(self._left):
            yield self._left
        yield from self._batches


def has(term: SetTerm, operands: Sequence[Operand], rows: Codes) -> Flags:
    """Which of these rows there are; each is looked up in every operand once at most."""
    if isinstance(term, int):
        return operands[term].has(rows)
    found = has(term.left, operands, rows)
    asked = ~found if term.kind == "union" else found.copy()
    if asked.any():
        right = has(term.right, operands, rows[asked])
        found[asked] = ~right if term.kind == "except" else right
    return found


def change_of(term: SetOperation, operands: Sequence[Operand]) -> Codes:
    """The change since the last call, consolidated."""
    return _change(term, operands, [operand.change() for operand in operands])


def _change(term: SetTerm, operands: Sequence[Operand], changes: Sequence[Codes]) -> Codes:
    if isinstance(term, int):
        return changes[term]
    left, right = (_change(side, operands, changes) for side in (term.left, term.right))
    if term.kind == "all":
        return consolidate(np.concatenate([left, right]))
    # Both changes of a row in one number: -1, 0 or 1 of the left one, and as many threes of the right one.
    rows = consolidate(np.concatenate([left, np.column_stack([right[:, :-1], 3 * right[:, -1]])]))
    of_right = (rows[:, -1] + 4) // 3 - 1
    of_left = rows[:, -1] - 3 * of_right
    now = [_after(side, operands, rows, of) for side, of in ((term.left, of_left), (term.right, of_right))]
    before = [is_there ^ (of != 0) for is_there, of in zip(now, (of_left, of_right), strict=True)]
    rows[:, -1] = _put(term.kind, *now).astype(np.int64) - _put(term.kind, *before)
    changed: Codes = rows[rows[:, -1] != 0]
    return changed


def _after(term: SetTerm, operands: Sequence[Operand], rows: Codes, change: Codes) -> Flags:
    """Which rows there are now; only those that did not change are looked up."""
    found = change > 0
    same = change == 0
    if same.any():
        found[same] = has(term, operands, rows[same])
    return found


def _put(kind: str, left: Flags, right: Flags) -> Flags:
    if kind == "union":
        return left | right
    return left & right if kind == "intersect" else left & ~right
