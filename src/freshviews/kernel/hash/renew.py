"""Empties a table or an index, or packs the rows of a table together. Releases the memory that becomes free."""

from __future__ import annotations

from freshviews.kernel.hash import entries, index
from freshviews.kernel.hash.index import BLOCK_CAPACITY, FIRST_GROUPS, GROUP_EXTRA, INLINE, slice_rows
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import (
    CAPACITY,
    FAILED,
    FIRST_CAPACITY,
    FREE,
    HIGH,
    INDEX_LIST,
    INDEXES,
    KEY,
    LINKED,
    LIVE,
    LOW,
    MASK,
    PAYLOAD,
    ROWS,
    SLOTS,
    UNLINKED,
    USED,
    WIDTH,
    insert_row,
    is_zero,
    link_row,
    row_at,
)
from freshviews.kernel.memory.mapping import release_block
from freshviews.kernel.memory.mem import allocate, copy_words, jit, load, release, store
from freshviews.kernel.memory.outside import outside

SPARE = 64
"""Most free rows that do not cause packing."""


@jit
def clear_words(block: int, words: int) -> None:
    """Set words to zero."""
    for i in range(words):
        store(block, i, 0)


@jit
def renewed(block: int, words: int, fewer: int, low: int, high: int) -> int:
    """Replaces a block, whose content is not needed, by a zeroed one of fewer words; without memory, zeroes the block.

    ``low`` and ``high`` bound the mapping to which the block may belong.
    """
    made = allocate(fewer)
    if made == 0:
        clear_words(block, words)
        return block
    release_block(block, low, high)
    return made


@jit
def forget_entries(e: int) -> None:
    """Reset the counts of entries, and stop unfinished work of ``shrink``."""
    release(load(e, entries.NEXT))
    store(e, entries.NEXT, 0)
    store(e, entries.NEXT_HOMES, 0)
    store(e, entries.PACKED, entries.NOT_PACKING)
    store(e, entries.REMOVED, 0)
    store(e, entries.TOUCHED, 0)
    store(e, USED, 0)
    store(e, FREE, 0)
    store(e, LIVE, 0)


@outside
def reset_index(x: int) -> None:
    """Empty an index and release its memory. Rows keep a stale word for it: see ``forget_place``."""
    words = load(x, index.COUNT) + GROUP_EXTRA
    low, high = load(x, index.LOW), load(x, index.HIGH)
    for g in range(load(x, index.USED)):
        group = load(x, index.GROUPS) + 8 * (g * words + load(x, index.COUNT))
        if load(group, BLOCK_CAPACITY) > INLINE:
            release_block(slice_rows(group), low, high)
    slots = load(x, index.SLOTS)
    store(x, index.SLOTS, renewed(slots, load(x, index.MASK) + 1, 2 * FIRST_GROUPS, low, high))
    if load(x, index.SLOTS) != slots:
        store(x, index.MASK, 2 * FIRST_GROUPS - 1)
    groups = load(x, index.GROUPS)
    store(x, index.GROUPS, renewed(groups, load(x, index.CAPACITY) * words, FIRST_GROUPS * words, low, high))
    if load(x, index.GROUPS) != groups:
        store(x, index.CAPACITY, FIRST_GROUPS)
    store(x, index.BLOCK_WORDS, 0)
    forget_entries(x)


@outside
def reset_table(t: int) -> None:
    """Remove every row and release the memory."""
    low, high = load(t, LOW), load(t, HIGH)
    for i in range(load(t, INDEXES)):
        reset_index(load(load(t, INDEX_LIST), i))
    rows, width = load(t, ROWS), load(t, WIDTH)
    store(t, ROWS, renewed(rows, load(t, USED) * width, FIRST_CAPACITY * width, low, high))
    if load(t, ROWS) != rows:
        store(t, CAPACITY, FIRST_CAPACITY)
    slots = load(t, SLOTS)
    store(t, SLOTS, renewed(slots, load(t, MASK) + 1, 2 * FIRST_CAPACITY, low, high))
    if load(t, SLOTS) != slots:
        store(t, MASK, 2 * FIRST_CAPACITY - 1)
    store(t, UNLINKED, 0)
    forget_entries(t)


@outside
def reset_subset(t: int, place: int) -> None:
    """Empty the index of a subset. Before a row is inserted again, ``forget_place`` must clear its word."""
    reset_index(load(load(t, INDEX_LIST), place))


@jit
def forget_place(t: int, place: int, row: int) -> None:
    """Clear a row's word of the index of a subset."""
    store(row, load(load(load(t, INDEX_LIST), place), index.ROW_WORD), 0)


@outside
def pack_table(t: int) -> None:
    """If three of four row numbers are free, move the rows together. Rows get new numbers and leave all subsets."""
    live = load(t, LIVE)
    if load(t, USED) <= 4 * live + SPARE:
        return
    width = load(t, WIDTH)
    kept = allocate(live * width)
    if kept == 0:
        return
    n = 0
    for number in range(load(t, USED)):
        row = row_at(t, number)
        if not is_zero(t, row):
            copy_words(kept + 8 * n * width, row, width)
            n += 1
    reset_table(t)
    for i in range(n):
        row = kept + 8 * i * width
        number = insert_row(t, hash_words(row, load(t, KEY)))
        if number < 0:
            store(t, FAILED, 1)
            break
        copy_words(row_at(t, number), row, load(t, KEY) + load(t, PAYLOAD))
        if load(t, LINKED) != 0:
            link_row(t, number)
    release(kept)
