"""A growing list of rows of words: what triggers emit, and what enumeration fills.

The last word of a row is its multiplicity where ``consolidate`` is used; elsewhere it is a word like others. Rows may
have a key and a payload instead (``consolidate_payloads``): integers, then exact sums of doubles
(``kernel.scalar.real``). A buffer whose FAILED flag is up has run out of memory and lacks rows.
"""

from __future__ import annotations

from freshviews.kernel.hash.slots import hash_words
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
from freshviews.kernel.scalar.real import REAL_WORDS, real_add_scaled

# Words of the header; the scratch row follows it.
ROWS = 0  # address of the rows
COUNT = 1  # rows in it
CAPACITY = 2  # rows there is room for
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
    """Give the memory of a buffer back; handle 0 is allowed."""
    if buffer != 0:
        release(load(buffer, ROWS))
        release(buffer)


@jit
def clear_buffer(buffer: int) -> None:
    """Forget the rows and the failure; the room stays."""
    store(buffer, COUNT, 0)
    store(buffer, FAILED, 0)


@outside
def grow_buffer(buffer: int) -> int:
    """Make room for as many rows again; 0 where memory is out."""
    return widen_buffer(buffer, 2 * load(buffer, CAPACITY) + FIRST_CAPACITY)


@jit
def widen_buffer(buffer: int, capacity: int) -> int:
    """Make room for so many rows; 0 where memory is out."""
    words = capacity * load(buffer, WIDTH)
    old = load(buffer, ROWS)
    rows = allocate(words) if old == 0 else reallocate(old, words)
    if rows == 0:
        store(buffer, FAILED, 1)
        return 0
    store(buffer, ROWS, rows)
    store(buffer, CAPACITY, capacity)
    return 1


@inlined
def append(buffer: int) -> int:
    """Address of a new row, its words undefined, good until the next ``append``.

    Where memory is out, FAILED goes up and the row is scratch that belongs to no one.
    """
    n = load(buffer, COUNT)
    if n == load(buffer, CAPACITY) and grow_buffer(buffer) == 0:
        return buffer + 8 * HEADER
    store(buffer, COUNT, n + 1)
    return load(buffer, ROWS) + 8 * n * load(buffer, WIDTH)


@outside
def grow_for(buffer: int, rows: int) -> int:
    """Make room for so many more rows, and for as many again as there are; 0 where memory is out."""
    return widen_buffer(buffer, 2 * load(buffer, CAPACITY) + FIRST_CAPACITY + rows)


@inlined
def reserve(buffer: int, rows: int) -> int:
    """Address of so many new rows, their words undefined, good until the next ``append`` or ``reserve``; 0 where
    memory is out, and then FAILED is up."""
    n = load(buffer, COUNT)
    if n + rows > load(buffer, CAPACITY) and grow_for(buffer, rows) == 0:
        return 0
    store(buffer, COUNT, n + rows)
    return load(buffer, ROWS) + 8 * n * load(buffer, WIDTH)


@jit
def same_words(a: int, b: int, words: int) -> bool:
    """Whether two blocks hold the same words."""
    i = 0
    while i < words and load(a, i) == load(b, i):
        i += 1
    return i == words


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
    """Merge the rows that agree on all words but the last, summing that one, and drop those that come to 0.

    In place; rows stay in the order of their first occurrence. Multiplicities add modulo 2^64. Where there
    is no memory for the hash, FAILED goes up and the rows stay as they were.
    """
    consolidate_payloads(buffer, load(buffer, WIDTH) - 1, 1)


@jit
def consolidate_payloads(buffer: int, key: int, integers: int) -> None:
    """As ``consolidate``, of rows of ``key`` words and a payload: so many integers, then reals."""
    count = load(buffer, COUNT)
    if count > 1:
        slots_count = 4
        while slots_count < 2 * count:
            slots_count *= 2
        slots = allocate(slots_count)
        if slots == 0:
            store(buffer, FAILED, 1)
            return
        merge_rows(buffer, key, integers, slots, slots_count - 1)
        release(slots)
    drop_zeros(buffer, key)


@jit
def merge_rows(buffer: int, key: int, integers: int, slots: int, mask: int) -> None:
    """Merge rows that agree on the key through zeroed slots, ``hash << 32 | row + 1``, more than there are rows."""
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
                for word in range(key, key + integers):
                    store(first, word, add_wrapping(load(first, word), load(row, word)))
                for word in range(key + integers, width, REAL_WORDS):
                    real_add_scaled(first + 8 * word, row + 8 * word, 1)
                merged = True
            i = (i + 1) & mask
        if not merged:
            store(slots, i, h << 32 | (kept + 1))
            if kept != number:
                copy_words(rows + 8 * kept * width, row, width)
            kept += 1
    store(buffer, COUNT, kept)
