"""Computes the rows of UNION, EXCEPT and INTERSECT from the rows of the blocks that they combine.

The result is not stored: each row is looked up in the blocks when the result is read.
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

_HALF = 1 << 31


class Operand(Protocol):
    """The rows of a block, shape (n, columns + 1) with the multiplicity last. Each row comes once, except under ALL.

    ``counted``: multiplicities count; otherwise they are 1, except under ALL.
    """

    @property
    def counted(self) -> bool: ...

    def rows(self, limit: int) -> Iterator[Codes]:
        """All rows, at most ``limit`` at a time."""
        ...

    def counts(self, rows: Codes) -> Codes:
        """The count of each of these rows."""
        ...

    def change(self) -> Codes:
        """The change since the last call, consolidated."""
        ...


def rows_of(term: SetTerm, operands: Sequence[Operand], limit: int) -> Iterator[Codes]:
    """All rows, at most ``limit`` at a time; the operands must not change meanwhile.

    The blocks of a set operation are its *operands*. An operand enumerates its rows, and looks up a row in constant
    time.

    - ``l EXCEPT r`` emits the rows of l that are not in r, ``l INTERSECT r`` the rows that are in r. Between two
      emitted rows, any number of rows may be skipped. With ALL, the count of a row follows from its counts in l and in
      r.
    - ``l UNION r`` reads l. For each row of l that r also has, the next row of r is emitted instead. At the end, the
      remaining rows of r are emitted. So every row is emitted once, with constant delay (Durand, Strozecki, Enumeration
      Complexity of Logical Query Problems with Second-order Variables, CSL 2011).
    - the change: a row may change only if it changed in an operand. Its old and new counts follow from its counts in
      the operands and the changes of the operands.
    """
    if isinstance(term, int):
        yield from operands[term].rows(limit)
    elif term.kind == "all":
        yield from rows_of(term.left, operands, limit)
        yield from rows_of(term.right, operands, limit)
    elif term.kind in ("except_all", "intersect_all"):
        for rows in _distinct_rows(term.left, operands, limit):
            yield from _present_rows(rows, counts(term, operands, rows))
    else:
        yield from _distinct_rows(term, operands, limit)


def _distinct_rows(term: SetTerm, operands: Sequence[Operand], limit: int) -> Iterator[Codes]:
    """All rows, each once, with multiplicity 1."""
    if isinstance(term, int):
        once = operands[term].rows(limit)
        yield from map(_as_set, once) if operands[term].counted else once
        return
    left = _distinct_rows(term.left, operands, limit)
    if term.kind in ("all", "union"):
        others = _RowReader(_distinct_rows(term.right, operands, limit))
        for rows in left:
            found = has(term.right, operands, rows)
            yield np.concatenate([rows[~found], *others.take(int(found.sum()))])
        yield from others.rest()
        return
    for rows in left:
        if term.kind == "except_all":
            yield from _present_rows(rows, (counts(term, operands, rows) > 0).astype(np.int64))
            continue
        found = has(term.right, operands, rows)
        wanted = rows[~found if term.kind == "except" else found]
        if len(wanted):
            yield wanted


def _as_set(rows: Codes) -> Codes:
    made = rows.copy()
    made[:, -1] = 1
    return made


def _present_rows(rows: Codes, multiplicities: Codes) -> Iterator[Codes]:
    """The rows with multiplicities above 0, with these."""
    there = multiplicities > 0
    if there.any():
        made: Codes = rows[there]
        made[:, -1] = multiplicities[there]
        yield made


class _RowReader:
    """Reads rows of batches a few at a time."""

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
        """All remaining rows."""
        if self._left is not None and len(self._left):
            yield self._left
        yield from self._batches


def has(term: SetTerm, operands: Sequence[Operand], rows: Codes) -> Flags:
    """Which of these rows the term has; looks up each at most once in every operand."""
    if isinstance(term, int) or term.kind == "except_all":
        there: Flags = counts(term, operands, rows) > 0
        return there
    found = has(term.left, operands, rows)
    asked = ~found if term.kind in ("all", "union") else found.copy()
    if asked.any():
        right = has(term.right, operands, rows[asked])
        found[asked] = ~right if term.kind == "except" else right
    return found


def counts(term: SetTerm, operands: Sequence[Operand], rows: Codes) -> Codes:
    """The count of each of these rows in the term; looks up each at most once in every operand."""
    if isinstance(term, int):
        return operands[term].counts(rows)
    if not _is_counted(term, operands):
        return has(term, operands, rows).astype(np.int64)
    left = counts(term.left, operands, rows)
    asked = left > 0 if term.kind != "all" else np.ones(len(rows), np.bool_)
    if asked.any():
        left[asked] = _combined(term.kind, left[asked], counts(term.right, operands, rows[asked]))
    return left


def _is_counted(term: SetTerm, operands: Sequence[Operand]) -> bool:
    """True if a row may have a count above 1."""
    if isinstance(term, int):
        return operands[term].counted
    return term.kind in ("all", "except_all", "intersect_all")


def change_of(term: SetOperation, operands: Sequence[Operand]) -> Codes:
    """The change since the last call, consolidated."""
    return _change(term, operands, [operand.change() for operand in operands])


def _change(term: SetTerm, operands: Sequence[Operand], changes: Sequence[Codes]) -> Codes:
    if isinstance(term, int):
        return changes[term]
    left, right = (_change(side, operands, changes) for side in (term.left, term.right))
    if term.kind == "all":
        return consolidate(np.concatenate([left, right]))
    rows, of_left, of_right = _side_by_side(left, right)
    now = [_after(side, operands, rows, of) for side, of in ((term.left, of_left), (term.right, of_right))]
    rows[:, -1] = _combined(term.kind, *now) - _combined(term.kind, now[0] - of_left, now[1] - of_right)
    changed: Codes = rows[rows[:, -1] != 0]
    return changed


def _side_by_side(left: Codes, right: Codes) -> tuple[Codes, Codes, Codes]:
    """The distinct rows of two changes, and the change of each row in the left one and in the right one."""
    if max(np.abs(left[:, -1]).max(initial=0), np.abs(right[:, -1]).max(initial=0)) < _HALF:
        # Both changes in one number: the lower half of the bits for the left one, the upper half for the right one.
        shifted = np.column_stack([right[:, :-1], right[:, -1] << 32])
        rows = consolidate(np.concatenate([left, shifted]))
        of_left = ((rows[:, -1] + _HALF) & (2 * _HALF - 1)) - _HALF
        return rows, of_left, (rows[:, -1] - of_left) >> 32
    every = np.concatenate([left, right])
    keys, places = np.unique(every[:, :-1], axis=0, return_inverse=True)
    sides = np.zeros((2, len(keys)), np.int64)
    np.add.at(sides, (np.repeat([0, 1], [len(left), len(right)]), places.reshape(-1)), every[:, -1])
    return np.column_stack([keys, np.zeros(len(keys), np.int64)]), sides[0], sides[1]


def _after(term: SetTerm, operands: Sequence[Operand], rows: Codes, change: Codes) -> Codes:
    """The current count of each row. Without ALL, only rows that did not change are looked up."""
    if _is_counted(term, operands):
        return counts(term, operands, rows)
    found = (change > 0).astype(np.int64)
    same = change == 0
    if same.any():
        found[same] = has(term, operands, rows[same])
    return found


def _combined(kind: str, left: Codes, right: Codes) -> Codes:
    """The count of a row in the result, from its counts in the operands."""
    made: Codes
    match kind:
        case "all":
            made = left + right
        case "except_all":
            made = np.maximum(left - right, 0)
        case "intersect_all":
            made = np.minimum(left, right)
        case "union":
            made = ((left > 0) | (right > 0)).astype(np.int64)
        case "intersect":
            made = ((left > 0) & (right > 0)).astype(np.int64)
        case _:
            made = ((left > 0) & (right <= 0)).astype(np.int64)
    return made
