"""Numbers the rows of each group of an ordered index. A row with n copies takes n *places*, counted from 0."""

from __future__ import annotations

from freshviews.kernel.hash.table import FAILED, KEY, row_at
from freshviews.kernel.memory.mem import inlined, jit, load, load32, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import compare_prefix
from freshviews.kernel.ordered.index import (
    ROOT,
    ROW_WORD,
    WORDS,
    compare_rows,
    left_link,
    right_link,
    tree_insert,
    tree_remove,
)

BELOW = 1  # word of a row, counted from ROW_WORD of the index: the copies in its subtree

MOST = (1 << 32) - 1
"""Cap on the copies of a row, above any LIMIT + OFFSET. The copies of 2^31 rows fit a word."""


@inlined
def copies_of(t: int, row: int) -> int:
    """The copies of the row at an address."""
    return min(max(load(row, load(t, KEY)), 0), MOST)


@inlined
def _below(o: int, t: int, child: int) -> int:
    """The copies in a subtree; ``child`` is a row number + 1, or 0."""
    return 0 if child == 0 else load(row_at(t, child - 1), load(o, ROW_WORD) + BELOW)


@inlined
def _set_below(o: int, t: int, child: int, copies: int) -> None:
    store(row_at(t, child - 1), load(o, ROW_WORD) + BELOW, copies)


@inlined
def _children(o: int, t: int, child: int) -> int:
    """The copies in the two subtrees below a row."""
    left = load32(left_link(o, t, child), 0)
    right = load32(right_link(o, t, child), 0)
    return _below(o, t, left) + _below(o, t, right)


@jit
def _count_path(o: int, t: int, row: int, top: int) -> int:
    """Recount the copies below each row on the search path of a row from ``top`` on; return those below ``top``.

    Counts of subtrees beside the path must be right. The path is walked twice: for the total, then to store the copies
    below each row.
    """
    total = 0
    for turn in range(2):
        left = total
        child = top
        while child != 0:
            if turn == 1:
                _set_below(o, t, child, left)
            at = row_at(t, child - 1)
            before = compare_rows(o, t, row, at) < 0
            beside = load32(right_link(o, t, child) if before else left_link(o, t, child), 0)
            own = copies_of(t, at) + _below(o, t, beside)
            if turn == 0:
                total += own
            left -= own
            child = load32(left_link(o, t, child) if before else right_link(o, t, child), 0)
    return total


@jit
def _add_above(o: int, t: int, own: int, copies: int) -> int:
    """Add copies to all rows above a row; return the link to the row."""
    row = row_at(t, own - 1)
    link = o + 8 * ROOT
    child = load32(link, 0)
    while child != own and child != 0:
        _set_below(o, t, child, _below(o, t, child) + copies)
        before = compare_rows(o, t, row, row_at(t, child - 1)) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        child = load32(link, 0)
    return link


@outside
def placed_insert(o: int, t: int, number: int) -> None:
    """Insert row ``number``, which is not in the index."""
    if load(t, FAILED) != 0:
        return
    own = number + 1
    row = row_at(t, number)
    tree_insert(o, t, number)
    # The row has split a subtree: its neighbours on both sides have lost rows.
    below = _count_path(o, t, row, load32(left_link(o, t, own), 0))
    below += _count_path(o, t, row, load32(right_link(o, t, own), 0))
    copies = copies_of(t, row)
    _set_below(o, t, own, below + copies)
    _add_above(o, t, own, copies)


@outside
def placed_remove(o: int, t: int, number: int) -> None:
    """Remove row ``number``, which is in the index. Its count may have changed since it was counted."""
    if load(t, FAILED) != 0:
        return
    own = number + 1
    link = _add_above(o, t, own, _children(o, t, own) - _below(o, t, own))
    tree_remove(o, t, number)
    # Its two subtrees are joined along the search path of the row.
    _count_path(o, t, row_at(t, number), load32(link, 0))


@outside
def placed_update(o: int, t: int, number: int) -> None:
    """Recount row ``number``, which is in the index, after its count has changed."""
    if load(t, FAILED) != 0:
        return
    own = number + 1
    grown = copies_of(t, row_at(t, number)) + _children(o, t, own) - _below(o, t, own)
    if grown != 0:
        _add_above(o, t, own, grown)
        _set_below(o, t, own, _below(o, t, own) + grown)


@jit
def copies_before(o: int, t: int, row: int, words: int) -> int:
    """The copies of all rows, of all groups, before a row at an address, possibly not in the index. With ``words``, the
    copies before all rows that share that many first key words with it."""
    total = 0
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        at = row_at(t, child - 1)
        order = compare_prefix(row, at, words) if words >= 0 else compare_rows(o, t, row, at)
        left = load32(left_link(o, t, child), 0)
        if order > 0:
            total += copies_of(t, at) + _below(o, t, left)
            child = load32(right_link(o, t, child), 0)
        else:
            child = left
    return total


@jit
def row_at_place(o: int, t: int, place: int) -> int:
    """The row at a place in the order of all groups, as row number + 1; 0 after the last.

    The search tree is an order-statistic tree (Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, chapter
    on augmenting data structures): a row stores the number of copies in its subtree. The one payload word of a row is
    its count; a negative count means no copy. A descent finds the place of a row, or the row at a place, in O(log n)
    steps, expected.
    """
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        left = load32(left_link(o, t, child), 0)
        before = _below(o, t, left)
        if place < before:
            child = left
        else:
            place -= before
            own = copies_of(t, row_at(t, child - 1))
            if place < own:
                return child
            place -= own
            child = load32(right_link(o, t, child), 0)
    return 0


@inlined
def words_of_group(o: int, t: int) -> int:
    """The number of key words that identify the group of a row."""
    return load(t, KEY) - load(o, WORDS)
