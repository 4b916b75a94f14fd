"""Handles groups of few rows. These rows are outside the tree of an ordered index, and are scanned."""

from __future__ import annotations

from freshviews.kernel.hash.index import (
    BLOCK_CAPACITY,
    EIGHT,
    LEAST_BLOCK,
    ROWS_COUNT,
    slice_of,
    slice_of_row,
    slice_rows,
)
from freshviews.kernel.hash.table import is_zero, row_at
from freshviews.kernel.memory.mem import inlined, jit, load, load32, store
from freshviews.kernel.ordered.index import ROW_WORD, SLICES

SMALL = 64
"""Most rows of a group outside the tree: scanning them takes about as long as a search in a large tree."""
OUTSIDE = -1
"""The word of children of a row that is not in the tree."""


def leave_small_outside(o: int, slices: int) -> None:
    """Keep the rows of small groups outside the tree; ``slices`` is the hash index on the prefix.

    A group has the rows that agree on the prefix of the key. Scanning a small group is faster than keeping it in order.
    If the table has a hash index on the prefix (``SLICES`` of the header), a group enters the tree only when it has
    more than ``SMALL`` rows. It stays there until its last row is removed. Searches are still O(log n), as ``SMALL`` is
    constant.

    A row outside the tree has OUTSIDE in the word of its children. A row with a zero payload, kept only for the
    journal, is in its slice, but not in the ordered index.
    """
    store(o, SLICES, slices)
    store(slices, LEAST_BLOCK, SMALL + EIGHT)


@inlined
def group_of_prefix(o: int, prefix: tuple[int, ...]) -> int:
    """The slice of the rows with a prefix; 0 if there is none, or the index has no slices."""
    slices = load(o, SLICES)
    return 0 if slices == 0 else slice_of(slices, prefix)


@inlined
def group_of_row(o: int, row: int) -> int:
    """The slice of a row; 0 if the index has no slices."""
    slices = load(o, SLICES)
    return 0 if slices == 0 else slice_of_row(slices, row)


@inlined
def is_outside(o: int, row: int) -> bool:
    """Whether a row that is in the ordered index is outside the tree."""
    return load(row, load(o, ROW_WORD)) == OUTSIDE


@jit
def are_outside(o: int, t: int, group: int, own: int) -> bool:
    """Whether the rows of a slice, except row number ``own``, are outside the tree; True without such rows."""
    if group == 0:
        return False
    if load(group, BLOCK_CAPACITY) <= SMALL:
        # A group in the tree has had more rows, and its block stays larger.
        return True
    rows = slice_rows(group)
    for i in range(load(group, ROWS_COUNT)):
        number = load32(rows, i)
        if number != own:
            row = row_at(t, number)
            if is_outside(o, row):
                return True
            if load(row, load(o, ROW_WORD)) != 0 or not is_zero(t, row):
                return False
    return True
