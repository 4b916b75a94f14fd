"""Scans: what the rows of a key interval come to, in O(log n) pages, and rows by their place in the order.

The paper, section 3.1. An interval is given by two prefixes of a key, both inclusive: the rows whose first words
are not less than the one and not greater than the other; so the rows of one group are those from its prefix to
its prefix. Roots are those of trees or of versions; versions may be read while the tree is written.
"""

from __future__ import annotations

from freshviews.kernel.btree.folds import (
    SOME,
    VALUE,
    combine,
    fold_at,
    fold_words,
    folded_column,
    rows_below,
)
from freshviews.kernel.btree.pages import (
    COUNT,
    LEVEL,
    child_at,
    column,
    first_greater,
    first_not_less,
)
from freshviews.kernel.memory.mem import copy_words, inlined, jit, load, store
from freshviews.kernel.memory.outside import outside

# What a scan keeps, besides its result (folds.SOME, folds.VALUE).
PAGES_SEEN = 2
SCAN_WORDS = 3


@outside
def row_count(root: int, k: int) -> int:
    """Rows of a tree."""
    return rows_below(root, k)


@jit
def rows_before(page: int, k: int, slot: int) -> int:
    """Rows of a leaf before one, or below the children of an inner page before one."""
    if load(page, LEVEL) == 0:
        return slot
    words = column(page, k + 1)
    rows = 0
    for i in range(slot):
        rows += load(words, i)
    return rows


@outside
def rank(root: int, k: int, words: int, key: int, after: int) -> int:
    """How many rows have first words less than a prefix; where ``after`` is 1, not greater than it."""
    rows = 0
    page = root
    while True:
        count = load(page, COUNT)
        if after != 0:
            slot = first_greater(page, words, key, 0, count)
        else:
            slot = first_not_less(page, words, key, 0, count)
        if load(page, LEVEL) == 0:
            return rows + slot
        slot = slot - 1 if slot > 0 else 0
        rows += rows_before(page, k, slot)
        page = child_at(page, k, slot)


@inlined
def seek_place(root: int, k: int, place: int) -> tuple[int, int]:
    """The leaf and the row in it at a place of the order, which is less than the number of rows."""
    page = root
    while load(page, LEVEL) > 0:
        slot = 0
        words = column(page, k + 1)
        while place >= load(words, slot):
            place -= load(words, slot)
            slot += 1
        page = child_at(page, k, slot)
    return page, place


@outside
def copy_rows(root: int, k: int, width: int, start: int, stop: int, columns: int) -> None:
    """Write the rows from place ``start`` to ``stop`` into columns, whose addresses lie at ``columns``."""
    done = 0
    while start + done < stop:
        leaf, i = seek_place(root, k, start + done)
        rows = load(leaf, COUNT) - i
        if rows > stop - start - done:
            rows = stop - start - done
        for c in range(width):
            copy_words(load(columns, c) + 8 * done, column(leaf, c) + 8 * i, rows)
        done += rows


@jit
def fold_entries(t: int, f: int, page: int, low: int, high: int, result: int, front: int) -> None:
    """Combine entries of a page with a result: behind it, or before it where ``front`` is 1."""
    if low >= high:
        return
    value = fold_words(fold_at(t, f), folded_column(t, page, f), low, high)
    if load(result, SOME) != 0:
        old = load(result, VALUE)
        fold = fold_at(t, f)
        value = combine(fold, value, old) if front != 0 else combine(fold, old, value)
    store(result, SOME, 1)
    store(result, VALUE, value)


@outside
def fold_interval(
    t: int, root: int, k: int, f: int, words: int, low: int, high_words: int, high: int, result: int
) -> int:
    """Fold number ``f`` of the rows from one prefix to another; 1 where there are any, and then the value is in
    ``result``, a block of SCAN_WORDS. ``t`` is read for the description of the fold alone."""
    store(result, SOME, 0)
    seen = 1
    page = root
    # Down to the page in which the two ends part.
    while True:
        count = load(page, COUNT)
        left = first_not_less(page, words, low, 0, count)
        right = first_greater(page, high_words, high, 0, count)
        if load(page, LEVEL) == 0:
            fold_entries(t, f, page, left, right, result, 0)
            store(result, PAGES_SEEN, seen)
            return load(result, SOME)
        left = left - 1 if left > 0 else 0
        right -= 1
        if right < left:
            store(result, PAGES_SEEN, seen)
            return 0
        if left != right:
            break
        page = child_at(page, k, left)
        seen += 1
    fold_entries(t, f, page, left + 1, right, result, 0)
    # What lies to the right of the lower end, each level before the one above it.
    lower = child_at(page, k, left)
    while True:
        seen += 1
        count = load(lower, COUNT)
        slot = first_not_less(lower, words, low, 0, count)
        if load(lower, LEVEL) == 0:
            fold_entries(t, f, lower, slot, count, result, 1)
            break
        slot = slot - 1 if slot > 0 else 0
        fold_entries(t, f, lower, slot + 1, count, result, 1)
        lower = child_at(lower, k, slot)
    # What lies to the left of the upper end.
    upper = child_at(page, k, right)
    while True:
        seen += 1
        slot = first_greater(upper, high_words, high, 0, load(upper, COUNT))
        if load(upper, LEVEL) == 0:
            fold_entries(t, f, upper, 0, slot, result, 0)
            break
        slot -= 1
        fold_entries(t, f, upper, 0, slot, result, 0)
        upper = child_at(upper, k, slot)
    store(result, PAGES_SEEN, seen)
    return load(result, SOME)
