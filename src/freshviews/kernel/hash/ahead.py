"""Prefetches memory for later updates of a batch: slots, then rows and groups, then the rows of a group."""

from __future__ import annotations

from freshviews.kernel.hash.entries import entry_at, prefetch_entry
from freshviews.kernel.hash.index import (
    BLOCK_CAPACITY,
    COUNT,
    GROUP_EXTRA,
    GROUPS,
    ROW_WORD,
    ROWS_COUNT,
    TABLE_ROWS,
    TABLE_WIDTH,
    slice_count,
    slice_of,
    slice_rows,
)
from freshviews.kernel.hash.index import MASK as GROUP_MASK
from freshviews.kernel.hash.index import SLOTS as GROUP_SLOTS
from freshviews.kernel.hash.slots import first_with
from freshviews.kernel.hash.table import INDEX_LIST, LINKED, MASK, SLOTS, find
from freshviews.kernel.memory.mem import hash_key, inlined, load, load32, prefetch, shift_right

AHEAD = 16
"""Most rows of a slice that are prefetched before a loop over it."""


@inlined
def foresee(t: int, key: tuple[int, ...]) -> None:
    """Prefetch the slot where ``find`` starts for a key."""
    prefetch(load(t, SLOTS) + 8 * (hash_key(key) & load(t, MASK)))


@inlined
def foresee_row(t: int, key: tuple[int, ...]) -> None:
    """Prefetch the row with a key, if any; its slot must have arrived."""
    number = first_with(load(t, SLOTS), load(t, MASK), hash_key(key))
    if number >= 0:
        prefetch_entry(t, number)


@inlined
def foresee_slot(x: int, key: tuple[int, ...]) -> None:
    """Prefetch the slot where ``slice_of`` starts for a key."""
    prefetch(load(x, GROUP_SLOTS) + 8 * (hash_key(key) & load(x, GROUP_MASK)))


@inlined
def foresee_group(x: int, key: tuple[int, ...]) -> None:
    """Prefetch the group with a key; its slot must have arrived."""
    number = first_with(load(x, GROUP_SLOTS), load(x, GROUP_MASK), hash_key(key))
    if number >= 0:
        prefetch(load(x, GROUPS) + 8 * number * (len(key) + GROUP_EXTRA))


@inlined
def foresee_block(x: int, key: tuple[int, ...]) -> None:
    """Prefetch both ends of the block of the group with a key; the group must have arrived."""
    group = slice_of(x, key)
    if group != 0:
        block = slice_rows(group)
        digests = block + 4 * load(group, BLOCK_CAPACITY)
        prefetch(block)
        prefetch(block + 4 * load(group, ROWS_COUNT))
        prefetch(digests)
        prefetch(digests + 4 * load(group, ROWS_COUNT))


@inlined
def foreseen(group: int) -> int:
    """Number of rows at the start of a slice that ``foresee_rows`` prefetches."""
    count = slice_count(group)
    return count if count < AHEAD else AHEAD


@inlined
def foresee_rows(group: int, t: int) -> None:
    """Prefetch the first rows of a slice of table ``t``."""
    numbers = slice_rows(group)
    rows = load(t, TABLE_ROWS)
    width = 8 * load(t, TABLE_WIDTH)
    for i in range(foreseen(group)):
        prefetch(rows + load32(numbers, i) * width)


@inlined
def foresee_place(x: int, t: int, row: int) -> None:
    """Prefetch the words that ``index_remove`` reads and writes: the position of a row, and the row that moves
    there."""
    place = load(row, load(x, ROW_WORD))
    if place < 0:
        return  # the row is unlinked
    group = load(x, GROUPS) + 8 * (shift_right(place, 32) * (load(x, COUNT) + GROUP_EXTRA) + load(x, COUNT))
    block = slice_rows(group)
    prefetch(block + 4 * (place & 0xFFFFFFFF))
    prefetch(block + 4 * (load(group, BLOCK_CAPACITY) + (place & 0xFFFFFFFF)))
    if load(group, ROWS_COUNT) != 0:
        last = load32(block, load(group, ROWS_COUNT) - 1)
        prefetch(load(t, TABLE_ROWS) + 8 * (last * load(t, TABLE_WIDTH) + load(x, ROW_WORD)))


@inlined
def foresee_groups(t: int, key: tuple[int, ...]) -> None:
    """Prefetch the groups of the row with a key, if there is one, in the indexes that have every row."""
    row = find(t, key)
    if row != 0:
        for i in range(load(t, LINKED)):
            x = load(load(t, INDEX_LIST), i)
            place = load(row, load(x, ROW_WORD))
            if place >= 0:
                prefetch(entry_at(x, shift_right(place, 32)) + 8 * load(x, COUNT))


@inlined
def foresee_leaving(t: int, key: tuple[int, ...]) -> None:
    """Prefetch the words that removing the row with a key, if there is one, reads in the indexes that have every
    row."""
    row = find(t, key)
    if row != 0:
        for i in range(load(t, LINKED)):
            foresee_place(load(load(t, INDEX_LIST), i), t, row)
