"""Keeps sums by key in a hash table that is emptied in constant time.

An entry is ``time | key ... | sum ...``. Emptying the table advances its clock; an entry with an earlier time is then
absent.
"""

from __future__ import annotations

from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.memory.mem import (
    allocate,
    copy_words,
    hash_key,
    inlined,
    jit,
    key_equals,
    load,
    release,
    store,
    write_key,
)

ENTRIES = 0
"""Address of the area in use."""
MASK = 1
"""Its number of entries less 1."""
COUNT = 2
TIME = 3
BYTES = 4
"""Bytes of an entry."""
KEY = 5
"""Words of a key."""
AREA = 6
"""Number of the area in use."""
LOST = 7
"""Not zero if memory ran out and a sum may be missing."""
FIRST_AREA = 8
AREAS = 16
LEAST = 1 << 10
"""Entries of the first area."""
GROWTH = 2
"""Binary logarithm of the growth from one area to the next."""


@jit
def new_sums(key: int, words: int) -> int:
    """An empty table with ``key`` words of key and ``words`` words of sum; 0 without memory.

    A join caches sums for one binding of its outer variables, and empties the table at the next binding. So emptying
    must be cheap. An entry is ``time | key ... | sum ...``; an entry with a time before the last emptying is absent. A
    table has several *areas*, each four times as large as the one before; only one area is in use. When this area is
    half full, its entries are copied to the next area. Emptying returns to the first area, so that a few keys are close
    together in memory. An entry whose sum becomes zero stays.
    """
    table = allocate(FIRST_AREA + AREAS)
    if table == 0:
        return 0
    area = allocate(LEAST * (1 + key + words))
    if area == 0:
        release(table)
        return 0
    store(table, FIRST_AREA, area)
    store(table, ENTRIES, area)
    store(table, MASK, LEAST - 1)
    store(table, TIME, 1)
    store(table, BYTES, 8 * (1 + key + words))
    store(table, KEY, key)
    return table


@jit
def free_sums(table: int) -> None:
    """Release a table; 0 is allowed."""
    if table != 0:
        for i in range(AREAS):
            release(load(table, FIRST_AREA + i))
        release(table)


@inlined
def clear_sums(table: int) -> None:
    """Empty the table."""
    store(table, ENTRIES, load(table, FIRST_AREA))
    store(table, MASK, LEAST - 1)
    store(table, COUNT, 0)
    store(table, AREA, 0)
    store(table, TIME, load(table, TIME) + 1)


@inlined
def _place(table: int, key: tuple[int, ...]) -> int:
    """The address of the entry of a key, or of the empty one where it would be."""
    entries, mask, width, time = load(table, ENTRIES), load(table, MASK), load(table, BYTES), load(table, TIME)
    at = hash_key(key) & mask
    entry = entries + at * width
    while load(entry, 0) == time and not key_equals(entry + 8, key):
        at = (at + 1) & mask
        entry = entries + at * width
    return entry


@inlined
def find_sum(table: int, key: tuple[int, ...]) -> int:
    """The address of the entry's key and sum, or 0."""
    entry = _place(table, key)
    return entry + 8 if load(entry, 0) == load(table, TIME) else 0


@inlined
def sum_row(table: int, key: tuple[int, ...]) -> int:
    """The address of the entry's key and sum; a new entry has a sum of zero."""
    entry = _place(table, key)
    if load(entry, 0) == load(table, TIME):
        return entry + 8
    if 2 * (load(table, COUNT) + 1) > load(table, MASK):
        grow_sums(table)
        entry = _place(table, key)
    store(table, COUNT, load(table, COUNT) + 1)
    store(entry, 0, load(table, TIME))
    write_key(entry + 8, key)
    for i in range(1 + load(table, KEY), load(table, BYTES) // 8):
        store(entry, i, 0)
    return entry + 8


@jit
def grow_sums(table: int) -> None:
    """Move to the next area. Without memory, empty the table and set LOST."""
    number, width, time = load(table, AREA) + 1, load(table, BYTES), load(table, TIME)
    old, places = load(table, ENTRIES), load(table, MASK) + 1
    larger = places << GROWTH
    area = 0
    if number < AREAS:
        area = load(table, FIRST_AREA + number)
        if area == 0:
            area = allocate(larger * (width // 8))
            store(table, FIRST_AREA + number, area)
    if area == 0:
        store(table, LOST, 1)
        clear_sums(table)
        return
    mask = larger - 1
    for i in range(places):
        entry = old + i * width
        if load(entry, 0) == time:
            at = hash_words(entry + 8, load(table, KEY)) & mask
            while load(area + at * width, 0) == time:
                at = (at + 1) & mask
            copy_words(area + at * width, entry, width // 8)
    store(table, ENTRIES, area)
    store(table, MASK, mask)
    store(table, AREA, number)
