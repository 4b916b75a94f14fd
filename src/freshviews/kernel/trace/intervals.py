"""Finds the intervals with a given prefix that contain a given value, in an interval tree.

An interval tree is an ordered tree. Its inner pages also store the greatest end of the intervals below each child. A
key is::

    prefix ... | start | end | context ...
"""

from __future__ import annotations

from freshviews.kernel.btree.pages import (
    COUNT,
    KEY,
    LEVEL,
    LEVELS,
    child_at,
    first_greater,
    first_not_less,
    word_at,
)
from freshviews.kernel.btree.tree import apply_edits
from freshviews.kernel.memory.mem import allocate, inlined, jit, load, release, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import sort_rows
from freshviews.kernel.output.buffer import COUNT as FOUND
from freshviews.kernel.output.buffer import ROWS, append


@inlined
def slot_range(page: int, prefix: int, key: int) -> tuple[int, int]:
    """The rows, or the entries above rows, that may have the prefix and a start not greater than the value."""
    count = load(page, COUNT)
    low = first_not_less(page, prefix, key, 0, count)
    high = first_greater(page, prefix + 1, key, low, count)
    if load(page, LEVEL) > 0 and low > 0:
        low -= 1
    return low, high


@jit
def note_matches(page: int, prefix: int, end: int, width: int, key: int, buffer: int) -> None:
    """Append the first ``width`` words of the rows of a leaf that are answers; the end is in column ``end``."""
    low, high = slot_range(page, prefix, key)
    value = load(key, prefix)
    for i in range(low, high):
        if word_at(page, end, i) >= value:
            row = append(buffer)
            for c in range(width):
                store(row, c, word_at(page, c, i))


@outside
def stab(root: int, prefix: int, k: int, end: int, width: int, key: int, buffer: int, stack: int) -> int:
    """Append the first ``width`` words of all intervals that contain a value; returns the number of pages read.

    Rows have ``k`` key words, ends are in column ``end``, and the first fold is of the greatest end. ``key`` has the
    words of the prefix and then the value. ``stack`` has room for STACK_WORDS. ``root`` may be that of a version.
    Without memory, the buffer's FAILED is set and intervals are missing.

    An interval is closed; the least and the greatest word stand for minus and plus infinity. In a sensitivity index
    (Veldhuizen, Incremental Maintenance for Leapfrog Triejoin, 2013, sections 3.2 and 4), the prefix has the codes of
    the atom's bound arguments. The context has the codes of the other bound variables.

    ``stab`` takes a prefix and a value, and appends the intervals that it finds, with their contexts, to a buffer
    (``output.buffer``). The search skips all children whose greatest end is less than the value. So it reads at most
    (answers + 2) * levels pages. ``remove_found`` deletes the rows of a buffer from the tree.
    """
    seen = 1
    level = load(root, LEVEL)
    top = level
    if level == 0:
        note_matches(root, prefix, end, width, key, buffer)
        return seen
    value = load(key, prefix)
    low, high = slot_range(root, prefix, key)
    store(stack, 3 * level, root)
    store(stack, 3 * level + 1, low)
    store(stack, 3 * level + 2, high)
    while level <= top:
        page = load(stack, 3 * level)
        slot = load(stack, 3 * level + 1)
        high = load(stack, 3 * level + 2)
        while slot < high and word_at(page, k + 2, slot) < value:
            slot += 1
        if slot >= high:
            level += 1
            continue
        store(stack, 3 * level + 1, slot + 1)
        child = child_at(page, k, slot)
        seen += 1
        if level == 1:
            note_matches(child, prefix, end, width, key, buffer)
        else:
            level -= 1
            low, high = slot_range(child, prefix, key)
            store(stack, 3 * level, child)
            store(stack, 3 * level + 1, low)
            store(stack, 3 * level + 2, high)
    return seen


STACK_WORDS = 3 * LEVELS


@outside
def remove_found(t: int, buffer: int) -> int:
    """Delete the intervals of a buffer from a tree; 0 if memory ran out and some are left.

    Sorts the buffer; it may have equal rows.
    """
    k = load(t, KEY)
    count = load(buffer, FOUND)
    if count == 0:
        return 1
    batch = allocate(2 * k + 3)
    if batch == 0:
        return 0
    rows = load(buffer, ROWS)
    done = sort_rows(rows, k, k, count)
    if done != 0:
        for c in range(k):
            store(batch, 2 * c, rows + 8 * c)
            store(batch, 2 * c + 1, k)
        # All edits share one sign, with stride 0.
        store(batch, 2 * k + 2, -1)
        store(batch, 2 * k, batch + 8 * (2 * k + 2))
        done = 1 if apply_edits(t, batch, count) == count else 0
    release(batch)
    return done
