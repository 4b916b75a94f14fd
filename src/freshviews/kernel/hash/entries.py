"""Numbers the *entries* of a table or an index, and finds an entry by its hash.

The entries of a table are its rows, and those of an index are its groups. An entry has a key and a payload. An entry
whose payload is zero is absent.
"""

from __future__ import annotations

from freshviews.kernel.hash.slots import empty_slot, fill_slot, widen_slots
from freshviews.kernel.memory.mem import inlined, jit, load, prefetch, store

# The first words of a header.
ENTRIES = 0  # address of the entries
CAPACITY = 1  # number of entries that fit
USED = 2  # numbers in use or free: a scan ends here
FREE = 3  # first free number + 1, chained through word 0 of the entries
LIVE = 4  # entries that are in the slots
SLOTS = 5  # address of the slots
MASK = 6  # number of slots - 1
WIDTH = 7  # words of an entry
KEY = 8  # words of its key
PAYLOAD = 9  # words of its payload
LOW = 10  # first address of the mapping that may have the arrays; see mapping.py
HIGH = 11  # the address past its end
TOUCHED = 12  # most entries in use since the array was last shortened, if above USED
REMOVED = 13  # entries removed since the last step of ``shrink``; not 0 while steps are left
PACKED = 14  # while entries are packed, there is no hole below this number; else NOT_PACKING
NEXT = 15  # address of the slots that will replace SLOTS, or that are being released, or 0
NEXT_MASK = 16  # their number - 1
NEXT_HOMES = 17  # NEXT has the entries with homes below; or RELEASING; or, at first, CLEARED minus the words cleared
HASHED = 18  # number of first words of a key that are hashed; different keys may share these words
FIRST_OWN = 19
"""The first word of a header whose meaning differs between tables and indexes."""

NOT_PACKING = 2**62
LINE = 64
"""Bytes that a prefetch fetches: a cache line of most processors."""
RELEASING = -1
CLEARED = -2
FULL = 25
"""Most filled slots of 32; beyond it the slots double. A higher limit makes misses slow, a lower one costs memory."""


@inlined
def entry_at(e: int, number: int) -> int:
    """Address of an entry by number."""
    return load(e, ENTRIES) + 8 * number * load(e, WIDTH)


@inlined
def prefetch_entry(e: int, number: int) -> None:
    """Prefetch all of an entry."""
    entry = entry_at(e, number)
    last = 8 * load(e, WIDTH) - 8
    for offset in range(0, last, LINE):
        prefetch(entry + offset)
    prefetch(entry + last)


@inlined
def is_absent(e: int, entry: int) -> bool:
    """Whether the payload of an entry is zero."""
    start = load(e, KEY)
    for i in range(start, start + load(e, PAYLOAD)):
        if load(entry, i) != 0:
            return False
    return True


@inlined
def free_number(e: int, number: int) -> None:
    """Free the number of an entry that is in no slot: chain it, or leave a hole.

    Free numbers are chained through the first word of their entries. While ``shrink`` packs the entries, it fills free
    numbers from the lowest up, and has come to PACKED. A number below PACKED that becomes free is chained. A number
    above PACKED becomes a *hole*, which packing reaches later.
    """
    if number < load(e, PACKED):
        store(entry_at(e, number), 0, load(e, FREE))
        store(e, FREE, number + 1)


@jit
def drop_next(e: int) -> None:
    """Discard the new slots of an unfinished replacement; later steps release them."""
    if load(e, NEXT) != 0:
        store(e, NEXT_HOMES, RELEASING)
        store(e, REMOVED, max(load(e, REMOVED), 1))


@inlined
def prefetch_next(e: int, h: int) -> None:
    """Prefetch the slot of a hash in the new slots of a replacement."""
    if load(e, NEXT_HOMES) > 0:
        prefetch(load(e, NEXT) + 8 * (h & load(e, NEXT_MASK)))


@inlined
def fill_next(e: int, h: int, number: int) -> None:
    """Also fill a slot of a replacement, if its slots already have the home of the entry."""
    if h & load(e, NEXT_MASK) < load(e, NEXT_HOMES):
        if 32 * (load(e, LIVE) + 1) > FULL * (load(e, NEXT_MASK) + 1):
            drop_next(e)
        else:
            fill_slot(load(e, NEXT), load(e, NEXT_MASK), h, number)


@jit
def fill(e: int, h: int, number: int) -> None:
    """Fill a slot that leads from a hash to an entry; there must be room."""
    fill_slot(load(e, SLOTS), load(e, MASK), h, number)
    fill_next(e, h, number)


@jit
def empty(e: int, h: int, number: int) -> None:
    """Remove the slot that leads from a hash to an entry."""
    empty_slot(load(e, SLOTS), load(e, MASK), h, number)
    if h & load(e, NEXT_MASK) < load(e, NEXT_HOMES):
        empty_slot(load(e, NEXT), load(e, NEXT_MASK), h, number)


@jit
def grow_slots(e: int) -> int:
    """Double the slots; 0 without memory."""
    return put_slots(e, 2 * load(e, MASK) + 1)


@jit
def make_slots(e: int, more: int) -> int:
    """Make slots for ``more`` further entries; 0 without memory."""
    mask = load(e, MASK)
    while 32 * (load(e, LIVE) + more) > FULL * (mask + 1):
        mask = 2 * mask + 1
    return 1 if mask == load(e, MASK) else put_slots(e, mask)


@jit
def put_slots(e: int, mask: int) -> int:
    """Replace the slots by more, ``mask`` + 1; 0 without memory.

    The *home* of an entry is the slot where a search for its hash starts. While ``shrink`` writes a smaller array of
    slots (NEXT), entries with homes below NEXT_HOMES are in both arrays.
    """
    slots = widen_slots(load(e, SLOTS), load(e, MASK), mask, load(e, LOW), load(e, HIGH))
    if slots == 0:
        return 0
    drop_next(e)
    store(e, SLOTS, slots)
    store(e, MASK, mask)
    return 1
