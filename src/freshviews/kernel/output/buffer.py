"""Keeps a growing array of rows of words. Triggers and readers append rows to the array."""

from __future__ import annotations

from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import same_words
from freshviews.kernel.memory.mem import (
    add_wrapping,
    allocate,
    copy_words,
    inlined,
    jit,
    load,
    reallocate,
    release,
    shift_right,
    store,
)
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.elements import add_elements

# Words of the header; the scratch row follows it.
ROWS = 0  # address of the rows
COUNT = 1  # rows in it
CAPACITY = 2  # number of rows that fit
WIDTH = 3  # words of a row
FAILED = 4
HEADER = 5

FIRST_CAPACITY = 16


def new_buffer(width: int) -> int:
    """Handle of an empty buffer of rows of ``width`` words; 0 without memory."""
    buffer = allocate(HEADER + width)
    if buffer != 0:
        store(buffer, WIDTH, width)
    return buffer


def free_buffer(buffer: int) -> None:
    """Release a buffer; handle 0 is allowed."""
    if buffer != 0:
        release(load(buffer, ROWS))
        release(buffer)


@jit
def clear_buffer(buffer: int) -> None:
    """Remove all rows and the failure; the capacity stays."""
    store(buffer, COUNT, 0)
    store(buffer, FAILED, 0)


@jit
def widen_buffer(buffer: int, capacity: int) -> int:
    """Set the capacity; 0 without memory."""
    words = capacity * load(buffer, WIDTH)
    old = load(buffer, ROWS)
    rows = allocate(words) if old == 0 else reallocate(old, words)
    if rows == 0:
        store(buffer, FAILED, 1)
        return 0
    store(buffer, ROWS, rows)
    store(buffer, CAPACITY, capacity)
    return 1


@outside
def grow_buffer(buffer: int, rows: int) -> int:
    """Double the capacity and add room for ``rows`` more; 0 without memory."""
    return widen_buffer(buffer, 2 * load(buffer, CAPACITY) + FIRST_CAPACITY + rows)


@inlined
def append(buffer: int) -> int:
    """Address of a new row, its words undefined, valid until the next ``append``.

    Without memory, FAILED is set and the row is a scratch row.
    """
    n = load(buffer, COUNT)
    if n == load(buffer, CAPACITY) and grow_buffer(buffer, 0) == 0:
        return buffer + 8 * HEADER
    store(buffer, COUNT, n + 1)
    return load(buffer, ROWS) + 8 * n * load(buffer, WIDTH)


@inlined
def reserve(buffer: int, rows: int) -> int:
    """Address of ``rows`` new rows, their words undefined, valid until the next ``append`` or ``reserve``.

    Returns 0 without memory, with FAILED set.
    """
    n = load(buffer, COUNT)
    if n + rows > load(buffer, CAPACITY) and grow_buffer(buffer, rows) == 0:
        return 0
    store(buffer, COUNT, n + rows)
    return load(buffer, ROWS) + 8 * n * load(buffer, WIDTH)


@jit
def drop_zeros(buffer: int, key: int) -> None:
    """Drop the rows whose words after the key are zero; the others keep their order."""
    rows = load(buffer, ROWS)
    width = load(buffer, WIDTH)
    kept = 0
    for i in range(load(buffer, COUNT)):
        row = rows + 8 * i * width
        word = key
        while word < width and load(row, word) == 0:
            word += 1
        if word < width:
            if kept != i:
                copy_words(rows + 8 * kept * width, row, width)
            kept += 1
    store(buffer, COUNT, kept)


@jit
def consolidate(buffer: int) -> None:
    """Merge the rows that agree in all words except the last, which is summed, and drop sums of 0.

    In place; rows keep the order of first occurrence. Multiplicities add modulo 2^64. Without memory for the hash
    table, FAILED is set and the rows stay as they were.
    """
    consolidate_payloads(buffer, load(buffer, WIDTH) - 1, 0)


@jit
def consolidate_payloads(buffer: int, key: int, layout: int) -> None:
    """As ``consolidate``, for rows of ``key`` words and a payload with a layout (``kernel.rings.elements``); 0 for one
    integer."""
    count = load(buffer, COUNT)
    if count > 1:
        slots_count = 4
        while slots_count < 2 * count:
            slots_count *= 2
        slots = allocate(slots_count)
        if slots == 0:
            store(buffer, FAILED, 1)
            return
        merge_rows(buffer, key, layout, slots, slots_count - 1)
        release(slots)
    drop_zeros(buffer, key)


@outside
def first_rows(buffer: int, key: int) -> int:
    """Address of a word per row: the number of the first row with its key. The caller releases it. 0 without memory,
    with FAILED set."""
    count = load(buffer, COUNT)
    slots_count = 4
    while slots_count < 2 * count:
        slots_count *= 2
    slots = allocate(slots_count)
    firsts = allocate(count)
    if slots == 0 or firsts == 0:
        store(buffer, FAILED, 1)
        release(slots)
        release(firsts)
        return 0
    rows = load(buffer, ROWS)
    width = load(buffer, WIDTH)
    for number in range(count):
        row = rows + 8 * number * width
        h = hash_words(row, key)
        i = h & (slots_count - 1)
        store(firsts, number, number)
        while load(slots, i) != 0:
            first = (load(slots, i) & 0xFFFFFFFF) - 1
            if shift_right(load(slots, i), 32) == h and same_words(rows + 8 * first * width, row, key):
                store(firsts, number, first)
                break
            i = (i + 1) & (slots_count - 1)
        if load(firsts, number) == number:
            store(slots, i, h << 32 | (number + 1))
    release(slots)
    return firsts


@jit
def merge_rows(buffer: int, key: int, layout: int, slots: int, mask: int) -> None:
    """Merge rows with equal keys, through zeroed slots ``hash << 32 | row + 1``, which must be more than the rows."""
    rows = load(buffer, ROWS)
    width = load(buffer, WIDTH)
    kept = 0
    for number in range(load(buffer, COUNT)):
        row = rows + 8 * number * width
        h = hash_words(row, key)
        i = h & mask
        merged = False
        while load(slots, i) != 0 and not merged:
            slot = load(slots, i)
            first = rows + 8 * ((slot & 0xFFFFFFFF) - 1) * width
            if shift_right(slot, 32) == h and same_words(first, row, key):
                if layout == 0:
                    store(first, key, add_wrapping(load(first, key), load(row, key)))
                else:
                    add_elements(first + 8 * key, row + 8 * key, layout, 1)
                merged = True
            i = (i + 1) & mask
        if not merged:
            store(slots, i, h << 32 | (kept + 1))
            if kept != number:
                copy_words(rows + 8 * kept * width, row, width)
            kept += 1
    store(buffer, COUNT, kept)
