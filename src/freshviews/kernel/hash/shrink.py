"""Gives memory back after removals, in bounded steps: packs rows and groups, and replaces slots by fewer.

``shrink`` takes one step for a table and its indexes. It is called between batches, when the journal of the table is
empty and nothing holds a row number or an address: readers have taken their rows into memory, and undo is not possible
any more. ``REMOVED`` says that there may be something to do. A step costs at most a constant and a part of what the
removals since the last step have cost. Rows and groups are *entries*, and both are shrunk by the same steps:

1. If more than a ninth of the numbers are free, entries are *packed*: the one with the highest number moves to the
   lowest free number, until there is no hole below it. Rows move to lower numbers only. A row that moves takes its slot
   along, its places in the blocks of indexes, and its place in the locator of a stored table; a group, the words of its
   rows. A group moves whole, so a step may take longer by the rows of one group.
2. The array of entries is cut off an eighth above the used numbers, once more than a quarter above them was written.
3. If at most 11 of 32 slots are taken, fewer slots are written beside them, for some entries in each step. Meanwhile
   inserts and removals change both (``entries.fill``); lookups read the old slots. At the end the new ones replace
   them, and the old ones are released piece by piece, as the system takes its time for each page.

Blocks of an index shrink when a row leaves them (``index.shrink_block``). An array that lies in a mapped image is left
there until what remains of it is small. Rows of a table with an ordered index are not packed, as the order of its tree
depends on row numbers. Deferred inserts are in no slot, so a table that has some waits until they are flushed.
"""

from __future__ import annotations

from freshviews.kernel.hash.entries import (
    CAPACITY,
    CLEARED,
    ENTRIES,
    FREE,
    FULL,
    KEY,
    LIVE,
    MASK,
    NEXT,
    NEXT_MASK,
    NEXT_NUMBERS,
    NOT_PACKING,
    PACKED,
    RELEASING,
    REMOVED,
    SLOTS,
    TOUCHED,
    USED,
    WIDTH,
    drop_next,
    entry_at,
    is_absent,
)
from freshviews.kernel.hash.index import (
    BLOCK,
    BLOCK_CAPACITY,
    COUNT,
    INLINE,
    ROW_WORD,
    drop_group,
    holds_row,
    put_groups,
    slice_rows,
)
from freshviews.kernel.hash.slots import fill_slot, hash_words
from freshviews.kernel.hash.table import (
    FIRST_CAPACITY,
    HIGH,
    INDEX_LIST,
    INDEXES,
    JOURNALED,
    LOCATOR,
    LOW,
    ORDERED,
    PENDING,
    SCRATCH,
    find_words,
    remove_row,
)
from freshviews.kernel.memory.mapping import is_mapped, widen_block
from freshviews.kernel.memory.mem import (
    add_wrapping,
    copy_words,
    jit,
    load,
    load32,
    mul_wrapping,
    reallocate,
    release,
    shift_right,
    store,
    store32,
)
from freshviews.kernel.memory.outside import outside

LEAST = 256
"""Work of a step without removals: the unit is to look at an entry."""
PER_REMOVAL = 16
MOVE = 4
"""Work to move an entry, or to write its slot."""
PIECE = 1 << 18
"""Words that are cleared or released at a time, if the work of the step is not worth more."""
SPARE = 64
"""Free numbers, and free places at the end of the array, that are left in any case, as are twice as many slots."""

# Words of a locator: see ``base_store``.
_SIDE_TABLE = 0
_SIDE_COUNT = 1
_SIDE_POSITIONS = 2


@jit
def slot_of(slots: int, mask: int, h: int, number: int) -> int:
    """The place of the slot that leads from a hash to a number; -1 if there is none."""
    i = h & mask
    while True:
        slot = load(slots, i)
        if slot == 0:
            return -1
        if slot & 0xFFFFFFFF == number + 1:
            return i
        i = (i + 1) & mask


@jit
def is_hole(e: int, t: int, number: int) -> bool:
    """Whether a number is free. An absent entry that is still in the slots, as after an error, is removed."""
    entry = entry_at(e, number)
    if not is_absent(e, entry):
        return False
    if slot_of(load(e, SLOTS), load(e, MASK), hash_words(entry, load(e, KEY)), number) >= 0:
        if e == t:
            remove_row(t, entry)
        else:
            drop_group(e, number)
    return True


@jit
def relocate(side: int, row: int, distance: int) -> None:
    """Tell a locator that a row, which has a copy at an address, has moved by a distance in bytes."""
    t = load(side, _SIDE_TABLE)
    words = load(side, _SIDE_COUNT)
    key = load(t, SCRATCH)
    for i in range(words):
        store(key, i, load(row, load(side, _SIDE_POSITIONS + i)))
    found = find_words(t, key, words, hash_words(key, words))
    if found != 0:
        # Rows with NULL in the key have no place.
        count = load(found, words)
        store(found, words + 1, add_wrapping(load(found, words + 1), mul_wrapping(count, distance)))


@jit
def move_row(t: int, number: int, to: int) -> None:
    """Move a row to the number of a hole, all but its slot."""
    row = entry_at(t, to)
    copy_words(row, entry_at(t, number), load(t, WIDTH))
    for i in range(load(t, INDEXES)):
        x = load(load(t, INDEX_LIST), i)
        place = load(row, load(x, ROW_WORD))
        g = shift_right(place, 32)
        if holds_row(x, g, place & 0xFFFFFFFF, number):
            store32(slice_rows(entry_at(x, g) + 8 * load(x, COUNT)), place & 0xFFFFFFFF, to)
    if load(t, LOCATOR) != 0:
        relocate(load(t, LOCATOR), row, 8 * load(t, WIDTH) * (to - number))


@jit
def move_group(x: int, t: int, number: int, to: int) -> int:
    """Move a group to the number of a hole, all but its slot; returns its number of rows."""
    old, new = entry_at(x, number), entry_at(x, to)
    copy_words(new, old, load(x, WIDTH))
    group = new + 8 * load(x, COUNT)
    if load(group, BLOCK_CAPACITY) > INLINE:
        store(group, BLOCK, load(group, BLOCK) - (new - old))
    rows = slice_rows(group)
    count = load(group, 0)
    for i in range(count):
        store(entry_at(t, load32(rows, i)), load(x, ROW_WORD), to << 32 | i)
    return count


@jit
def pack(e: int, t: int, work: int) -> int:
    """Pack entries; returns the work that is left."""
    used = load(e, USED)
    low = load(e, PACKED)
    live = load(e, LIVE)
    if low == NOT_PACKING:
        if used <= live + (live >> 3) + SPARE or load(e, NEXT_NUMBERS) > 0 or (e == t and load(t, ORDERED) != 0):
            return work
        drop_next(e)
        low = 0
        store(e, FREE, 0)
        store(e, PACKED, 0)
        store(e, TOUCHED, max(load(e, TOUCHED), used))
    if live == 0:
        used = 0
        store(e, FREE, 0)
    while work > 0 and low < used:
        work -= 1
        if is_hole(e, t, used - 1):
            used -= 1
        elif not is_hole(e, t, low):
            low += 1
        else:
            used -= 1
            work -= MOVE
            if e == t:
                move_row(t, used, low)
            else:
                work -= move_group(e, t, used, low)
            h = hash_words(entry_at(e, low), load(e, KEY))
            i = slot_of(load(e, SLOTS), load(e, MASK), h, used)
            store(load(e, SLOTS), i, h << 32 | (low + 1))
            low += 1
    store(e, USED, used)
    store(e, PACKED, low if low < used else NOT_PACKING)
    return work


@jit
def cut(e: int, t: int, work: int) -> bool:
    """Shorten the array of entries if memory above the used ones was written; whether there may be more to do."""
    used = load(e, USED)
    width = load(e, WIDTH)
    capacity = load(e, CAPACITY)
    enough = used + (used >> 3) + FIRST_CAPACITY
    if min(load(e, TOUCHED), capacity) <= used + (used >> 2) + SPARE:
        return False
    entries = load(e, ENTRIES)
    if is_mapped(entries, load(e, LOW), load(e, HIGH)):
        if enough * width > PIECE:
            return False
        cut_off = widen_block(entries, used * width, enough * width, load(e, LOW), load(e, HIGH))
    else:
        enough = max(enough, capacity - max(PIECE, work * width) // width)
        cut_off = reallocate(entries, enough * width)
    if cut_off == 0:
        return False
    if e == t:
        store(e, ENTRIES, cut_off)
    else:
        put_groups(e, cut_off)
    store(e, CAPACITY, enough)
    store(e, TOUCHED, min(load(e, TOUCHED), enough))
    return True


@jit
def slots_for(live: int) -> int:
    """The least number of slots of which at most 11 of 16 are taken."""
    slots = 2 * FIRST_CAPACITY
    while 16 * live > 11 * slots:
        slots *= 2
    return slots


@jit
def fit_slots(e: int, t: int, work: int) -> bool:
    """Write slots for fewer entries, or release old ones; whether there is more to do."""
    if load(e, NEXT) == 0:
        slots = slots_for(load(e, LIVE))
        if load(e, PACKED) != NOT_PACKING or max(2 * slots, 4 * SPARE) > load(e, MASK) + 1:
            return False
        store(e, NEXT, reallocate(0, slots))
        if load(e, NEXT) == 0:
            return False
        store(e, NEXT_MASK, slots - 1)
        store(e, NEXT_NUMBERS, CLEARED)
    if load(e, NEXT_NUMBERS) <= CLEARED:
        clear_slots(e, max(PIECE, work))
        return True
    if load(e, NEXT_NUMBERS) != RELEASING and 32 * load(e, LIVE) > FULL * (load(e, NEXT_MASK) + 1):
        drop_next(e)
        return False
    if load(e, NEXT_NUMBERS) == RELEASING:
        release_slots(e, max(PIECE, work))
        return True
    number = load(e, NEXT_NUMBERS)
    end = min(load(e, USED), number + max(work, LEAST) // MOVE)
    while number < end:
        # In the order of numbers: an entry below is in both arrays, and a removal empties both.
        store(e, NEXT_NUMBERS, number)
        if not is_hole(e, t, number):
            fill_slot(load(e, NEXT), load(e, NEXT_MASK), hash_words(entry_at(e, number), load(e, KEY)), number)
        number += 1
    store(e, NEXT_NUMBERS, number)
    if number == load(e, USED):
        old, mask = load(e, SLOTS), load(e, MASK)
        store(e, SLOTS, load(e, NEXT))
        store(e, MASK, load(e, NEXT_MASK))
        store(e, NEXT, 0 if is_mapped(old, load(e, LOW), load(e, HIGH)) else old)
        store(e, NEXT_MASK, mask)
        store(e, NEXT_NUMBERS, RELEASING if load(e, NEXT) != 0 else 0)
    return True


@jit
def clear_slots(e: int, words: int) -> None:
    """Set a piece of the new slots to zero: the system takes its time for each page that is touched first."""
    cleared = CLEARED - load(e, NEXT_NUMBERS)
    end = min(cleared + words, load(e, NEXT_MASK) + 1)
    for i in range(cleared, end):
        store(load(e, NEXT), i, 0)
    store(e, NEXT_NUMBERS, 0 if end == load(e, NEXT_MASK) + 1 else CLEARED - end)


@jit
def release_slots(e: int, words: int) -> None:
    """Release a piece of the old slots."""
    left = load(e, NEXT_MASK) + 1 - words
    cut_off = 0 if left <= 0 else reallocate(load(e, NEXT), left)
    if cut_off == 0:
        release(load(e, NEXT))
        store(e, NEXT_NUMBERS, 0)
    store(e, NEXT, cut_off)
    store(e, NEXT_MASK, left - 1)


@jit
def shrink_entries(e: int, t: int) -> None:
    """One step for the rows of a table, or the groups of an index of it."""
    work = LEAST + PER_REMOVAL * load(e, REMOVED)
    left = pack(e, t, work)
    unfinished = load(e, PACKED) != NOT_PACKING
    unfinished |= cut(e, t, work)
    unfinished |= fit_slots(e, t, left)
    store(e, REMOVED, 1 if unfinished else 0)


@outside
def shrink(t: int) -> None:
    """Take a step of giving memory back, for a table of which rows were removed; see above when that is allowed."""
    if load(t, JOURNALED) != 0 or load(t, PENDING) != 0:
        return
    unfinished = 0
    for i in range(load(t, INDEXES)):
        x = load(load(t, INDEX_LIST), i)
        if load(x, REMOVED) != 0:
            shrink_entries(x, t)
            unfinished |= load(x, REMOVED)
    shrink_entries(t, t)
    store(t, REMOVED, load(t, REMOVED) | unfinished)


@jit
def shrink_tables(first: int, tables: int) -> None:
    """Take a step for each of the tables whose handles are the words at an address."""
    for i in range(tables):
        t = load(first, i)
        if load(t, REMOVED) != 0:
            shrink(t)
