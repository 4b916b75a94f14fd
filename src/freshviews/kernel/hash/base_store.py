"""Stores base tables. Applies a batch to a base table, and undoes the batch if it is refused.

A base table is a hash table of rows with their counts. For each UNIQUE or foreign key there is a *side*: a hash table
that counts the rows by that key.

The block ``spec`` describes a base table::

    row table | columns | sides | address of a scratch block | mixed | fresh | flags | packing
        | per side: table, count, positions ...
"""

from __future__ import annotations

from freshviews.kernel.hash.entries import (
    REMOVED,
    empty,
    fill_next,
    free_number,
    make_slots,
    prefetch_entry,
    prefetch_next,
)
from freshviews.kernel.hash.packing import pack
from freshviews.kernel.hash.pending import NEVER, enter_oldest, enter_pending, flush_repeats
from freshviews.kernel.hash.shrink import shrink_tables
from freshviews.kernel.hash.slots import first_with, hash_words
from freshviews.kernel.hash.table import (
    EAGER_BELOW,
    FAILED,
    HASHED,
    JOURNAL,
    JOURNAL_CAPACITY,
    JOURNALED,
    JOURNALING,
    KEY,
    LARGE,
    LIVE,
    MASK,
    MOST,
    PENDING,
    ROOM,
    ROWS,
    SEEN,
    SEEN_WORDS,
    SLOTS,
    USED,
    WIDTH,
    make_room,
    release_journal,
    row_at,
    same_words,
    table_bytes,
    take_row,
)
from freshviews.kernel.memory.mem import (
    add_overflows,
    allocate,
    copy_words,
    inlined,
    jit,
    load,
    load32,
    prefetch,
    reallocate,
    release,
    shift_right,
    store,
    store32,
)
from freshviews.types import NULL

# Words of a spec.
ROW_TABLE = 0
COLUMNS = 1
SIDES = 2
SCRATCH = 3
MIXED = 4
FRESH = 5
FLAGS = 6
PACKING = 7
FIRST_SIDE = 8
# Words of a side; the positions follow, with room for one per column.
SIDE_TABLE = 0
SIDE_COUNT = 1
SIDE_POSITIONS = 2

# Status in the low two bits of the result of ``add_rows``, and of the flags of ``add_count``.
DONE = 0
OUT_OF_MEMORY = 1
OVERFLOW = 2
MISFIT = 3  # a code is outside the type of its column
STATUS = 3
# Further flags of ``add_count``.
AGAIN = 4  # the row was touched before in this batch
NEGATIVE = 8  # its count is negative
SHARES = 16  # its count is above 1, or another row has the same hashed words
GREAT = 32  # its count is LARGE
ZERO = 64  # its count is 0

AHEAD = 32
"""Rows whose slots are prefetched together."""

BLOCK = 256
"""Rows that are appended together, column by column, so that they stay in the processor's cache."""

JOURNAL_ENTRY = 2
"""Words of a journal entry: the hash and the number of a row, ``hash << 32 | number``, and its count before."""


@inlined
def place_of(t: int, row: int) -> int:
    """The place of a row of the row table: never 0, and the same while the row lives."""
    return row - load(t, ROWS) + 8


@inlined
def row_in(t: int, place: int) -> int:
    """Address of the row at a place."""
    return load(t, ROWS) + place - 8


@jit
def watch(t: int, more: int) -> int:
    """Make room in SEEN for the numbers of ``more`` new rows; 0 without memory."""
    words = ((load(t, USED) + more) >> 6) + 1
    had = load(t, SEEN_WORDS)
    if words > had or (words < had >> 3 and load(t, JOURNALED) == 0):
        words = 2 * words
        seen = allocate(words)
        if seen == 0:
            return 1 if words < had else 0
        if load(t, JOURNALED) != 0:
            copy_words(seen, load(t, SEEN), had)
        release(load(t, SEEN))
        store(t, SEEN, seen)
        store(t, SEEN_WORDS, words)
    return 1


@inlined
def see(t: int, number: int) -> bool:
    """Note that a row is journaled; returns whether it already was."""
    halves = load(t, SEEN)
    bit = 1 << (number & 31)
    before = load32(halves, number >> 5)
    store32(halves, number >> 5, before | bit)
    return before & bit != 0


@jit
def prepare(t: int, more: int) -> int:
    """Make room in the slots and the journal for ``more`` rows; 0 without memory."""
    if make_slots(t, more) == 0 or watch(t, more) == 0:
        store(t, FAILED, 1)
        return 0
    needed = load(t, JOURNALED) + more
    if needed > load(t, JOURNAL_CAPACITY):
        capacity = 2 * needed
        journal = reallocate(load(t, JOURNAL), capacity * JOURNAL_ENTRY)
        if journal == 0:
            store(t, FAILED, 1)
            return 0
        store(t, JOURNAL, journal)
        store(t, JOURNAL_CAPACITY, capacity)
    return 1


@inlined
def add_count(t: int, key: int, words: int, h: int, likely: int, change: int) -> int:
    """Add ``change`` to the count of a key that hashes to ``h``, and journal it; returns flags.

    ``likely`` is the number of a row that may have the key, or -1. ``prepare`` has made room for a row.
    """
    flags = 0
    number = likely
    if number < 0 or not same_words(row_at(t, number), key, words):
        slots = load(t, SLOTS)
        mask = load(t, MASK)
        i = h & mask
        slot = load(slots, i)
        while slot != 0:
            if shift_right(slot, 32) == h:
                row = row_at(t, (slot & 0xFFFFFFFF) - 1)
                if same_words(row, key, words):
                    break
                if same_words(row, key, load(t, HASHED)):
                    flags = SHARES
            i = (i + 1) & mask
            slot = load(slots, i)
        number = (slot & 0xFFFFFFFF) - 1
        if number < 0:
            number = take_row(t)
            if number < 0:
                return OUT_OF_MEMORY
            store(slots, i, h << 32 | (number + 1))
            fill_next(t, h, number)
            store(t, LIVE, load(t, LIVE) + 1)
            row = row_at(t, number)
            for k in range(words):
                store(row, k, load(key, k))
    row = row_at(t, number)
    count = load(row, words)
    if see(t, number):
        flags |= AGAIN
    else:
        entry = load(t, JOURNAL) + 8 * JOURNAL_ENTRY * load(t, JOURNALED)
        store(entry, 0, h << 32 | number)
        store(entry, 1, count)
        store(t, JOURNALED, load(t, JOURNALED) + 1)
    if add_overflows(count, change) != 0:
        return OVERFLOW
    count += change
    store(row, words, count)
    if count < 0:
        flags |= NEGATIVE
    if count > 1:
        flags |= SHARES
    if count >= LARGE:
        flags |= GREAT
    if count == 0:
        flags |= ZERO
    return flags


@inlined
def side_at(spec: int, s: int) -> int:
    """Address of the description of a side."""
    return spec + 8 * (FIRST_SIDE + s * (SIDE_POSITIONS + load(spec, COLUMNS)))


@inlined
def packed_rows(spec: int) -> int:
    """Address of the packed rows in the scratch block."""
    return load(spec, SCRATCH) + 8 * (1 + AHEAD) * load(spec, COLUMNS)


@inlined
def side_key(side: int, row: int, key: int) -> bool:
    """Write the words of a row that a side counts to ``key``; False if one is NULL, so that the row does not count."""
    whole = True
    for i in range(load(side, SIDE_COUNT)):
        word = load(row, load(side, SIDE_POSITIONS + i))
        store(key, i, word)
        if word == NULL:
            whole = False
    return whole


@jit
def foresee_slots(t: int, hashes: int, n: int) -> None:
    """Prefetch the slots of ``n`` hashes, except negative ones."""
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    for r in range(n):
        h = load(hashes, r)
        if h >= 0:
            prefetch(slots + 8 * (h & mask))


@jit
def foresee_rows(t: int, hashes: int, multiplicities: int, stride: int, n: int, likely: int) -> None:
    """Prefetch the rows that deletes will likely find, and write their numbers, -1 for inserts."""
    for r in range(n):
        number = -1
        h = load(hashes, r)
        if h >= 0 and load(multiplicities, r * stride) < 0:
            number = first_with(load(t, SLOTS), load(t, MASK), h)
            if number >= 0:
                prefetch_entry(t, number)
        store(likely, r, number)


@jit
def gather(spec: int, columns: int, multiplicities: int, stride: int, start: int, n: int) -> int:
    """Copy ``n`` rows of a batch to the scratch block, prefetch their slots and rows, and make room: DONE,
    OUT_OF_MEMORY or MISFIT.

    Each loop waits for memory once for all rows: for their slots, then for the rows that the slots name.
    """
    words = load(spec, COLUMNS)
    t = load(spec, ROW_TABLE)
    rows = load(spec, SCRATCH) + 8 * words
    packed = packed_rows(spec)
    key = load(t, KEY)
    found = packed + 8 * AHEAD * key
    if pack(load(spec, PACKING), words, columns, start, n, packed, key) == 0:
        return MISFIT
    hashed = load(t, HASHED)
    for r in range(n):
        store(found, r, hash_words(packed + 8 * r * key, hashed))
    if load(spec, SIDES) != 0:
        for i in range(words):
            column = load(columns, 2 * i)
            step = load(columns, 2 * i + 1)
            for r in range(n):
                store(rows, r * words + i, load(column, (start + r) * step))
    if prepare(t, n) == 0:
        return OUT_OF_MEMORY
    foresee_slots(t, found, n)
    hashes = found
    for s in range(load(spec, SIDES)):
        side = side_at(spec, s)
        hashes += 16 * AHEAD
        for r in range(n):
            whole = side_key(side, rows + 8 * r * words, load(spec, SCRATCH))
            store(hashes, r, hash_words(load(spec, SCRATCH), load(side, SIDE_COUNT)) if whole else -1)
        if prepare(load(side, SIDE_TABLE), n) == 0:
            return OUT_OF_MEMORY
        foresee_slots(load(side, SIDE_TABLE), hashes, n)
    multiplicities += 8 * start * stride
    foresee_rows(t, found, multiplicities, stride, n, found + 8 * AHEAD)
    for s in range(load(spec, SIDES)):
        found += 16 * AHEAD
        foresee_rows(load(side_at(spec, s), SIDE_TABLE), found, multiplicities, stride, n, found + 8 * AHEAD)
    return DONE


@jit
def add_sides(spec: int, row: int, found: int, change: int) -> int:
    """Count a row in every side; returns the status. ``found``: results of ``gather`` for the row in the first side."""
    scratch = load(spec, SCRATCH)
    for s in range(load(spec, SIDES)):
        h = load(found, 0)
        if h >= 0:
            side = side_at(spec, s)
            side_key(side, row, scratch)
            t = load(side, SIDE_TABLE)
            status = add_count(t, scratch, load(side, SIDE_COUNT), h, load(found, AHEAD), change) & STATUS
            if status != DONE:
                return status
        found += 16 * AHEAD
    return DONE


@jit
def room_after(t: int, multiplicities: int, stride: int, n: int) -> int:
    """The ROOM left after appending a batch; -1 if it must not be appended: it deletes, or a sum could overflow."""
    room = load(t, ROOM)
    for r in range(n):
        change = load(multiplicities, r * stride)
        if change < 0 or change > room:
            return -1
        room -= change
    return room


@jit
def append_rows(spec: int, columns: int, multiplicities: int, stride: int, n: int, room: int) -> int:
    """Append a batch; returns DONE, OUT_OF_MEMORY or MISFIT. ``room``: the ROOM afterwards."""
    t = load(spec, ROW_TABLE)
    oldest = min(load(t, PENDING) - load(spec, FRESH), load(t, PENDING) + n - load(t, MOST))
    if (oldest > 0 and enter_oldest(t, oldest, load(spec, SCRATCH)) < 0) or make_room(t, n) == 0:
        return OUT_OF_MEMORY
    words = load(t, KEY)
    width = load(t, WIDTH)
    rows = row_at(t, load(t, USED))
    for start in range(0, n, BLOCK):
        block = min(BLOCK, n - start)
        if pack(load(spec, PACKING), load(spec, COLUMNS), columns, start, block, rows, width) == 0:
            return MISFIT
        for r in range(block):
            store(rows, r * width + words, load(multiplicities, (start + r) * stride))
        rows += 8 * block * width
    store(t, ROOM, room)
    store(t, USED, load(t, USED) + n)
    store(t, PENDING, load(t, PENDING) + n)
    store(spec, FRESH, load(spec, FRESH) + n)
    return DONE


@jit
def drop_fresh(spec: int) -> None:
    """Remove the fresh rows from the end."""
    t = load(spec, ROW_TABLE)
    words = load(t, KEY)
    for _ in range(load(spec, FRESH)):
        last = load(t, USED) - 1
        store(t, ROOM, load(t, ROOM) + load(row_at(t, last), words))
        store(t, USED, last)
        store(t, PENDING, load(t, PENDING) - 1)
    store(spec, FRESH, 0)


@jit
def enter_base(spec: int) -> int:
    """Flush the deferred rows, and journal the fresh ones; returns DONE or OUT_OF_MEMORY."""
    t = load(spec, ROW_TABLE)
    words = load(t, KEY)
    width = load(t, WIDTH)
    fresh = load(spec, FRESH)
    apart = allocate(fresh * width)
    if apart == 0:
        return OUT_OF_MEMORY
    drop_fresh(spec)
    copy_words(apart, row_at(t, load(t, USED)), fresh * width)
    # No count overflows here (see ``room_after``), so any word can serve as the status.
    status = OUT_OF_MEMORY if enter_pending(t, apart) < 0 else DONE
    for r in range(fresh):
        if status == DONE:
            row = apart + 8 * r * width
            status = OUT_OF_MEMORY
            if prepare(t, 1) != 0:
                status = add_count(t, row, words, hash_words(row, words), -1, load(row, words)) & STATUS
    release(apart)
    return status


@jit
def add_rows(spec: int, columns: int, multiplicities: int, stride: int, n: int) -> int:
    """Add a batch; 0, or ``row << 2 | status`` of the row that failed: the caller must then call ``undo_base``.

    A base table is a row table and *sides*. The row table maps all columns, packed into words, to the multiplicity. A
    side counts rows by the columns of a UNIQUE key or foreign key, without rows that have a NULL there. A primary key
    has no side: its columns come first in the row table, and only these words are hashed. So one lookup finds the
    stored row, or another row with its key.

    In a base table without keys and foreign keys, only deletes look rows up. Until the first batch with a delete,
    inserts are deferred (see ``pending``) and not journaled; ``undo_base`` removes their rows from the end.

    ``mixed`` is set if a batch changed one row twice and had both inserts and deletes. ``fresh`` is the number of rows
    appended since the last ``settle_base``. ``flags`` combines the flags of the rows added since then (see
    ``add_count``). ``packing``: see ``hash.packing``. The scratch block has room for a key, and for AHEAD rows:
    unpacked, packed, their hashes, and their probable row numbers in each table. The columns of a batch are given by a
    block of two words per column: the address, and the stride in words.
    """
    t = load(spec, ROW_TABLE)
    words = load(t, KEY)
    stored = load(spec, COLUMNS)
    sides = load(spec, SIDES)
    if load(t, LIVE) >= load(t, EAGER_BELOW):
        room = room_after(t, multiplicities, stride, n)
        if room >= 0:
            return append_rows(spec, columns, multiplicities, stride, n, room)
        store(t, EAGER_BELOW, NEVER)
    rows = load(spec, SCRATCH) + 8 * stored
    packed = packed_rows(spec)
    found = packed + 8 * AHEAD * words
    positive = 1 if load(spec, FRESH) != 0 else 0
    negative = 0
    flags = 0
    if load(t, PENDING) != 0:
        status = enter_base(spec)
        if status != DONE:
            return status
    for start in range(0, n, AHEAD):
        block = min(AHEAD, n - start)
        status = gather(spec, columns, multiplicities, stride, start, block)
        if status != DONE:
            return start << 2 | status
        for r in range(block):
            change = load(multiplicities, (start + r) * stride)
            flags |= add_count(t, packed + 8 * r * words, words, load(found, r), load(found, AHEAD + r), change)
            status = flags & STATUS
            if status == DONE and sides != 0:
                status = add_sides(spec, rows + 8 * r * stored, found + 8 * (2 * AHEAD + r), change)
            if status != DONE:
                return (start + r) << 2 | status
            if change > 0:
                positive = 1
            else:
                negative = 1
    if flags & GREAT != 0:
        store(t, EAGER_BELOW, NEVER)
    if flags & AGAIN != 0 and positive & negative != 0:
        store(spec, MIXED, 1)
    store(spec, FLAGS, load(spec, FLAGS) | flags)
    return 0


@inlined
def journaled_number(t: int, entry: int) -> int:
    """Number of the row that a journal entry names."""
    return load(load(t, JOURNAL), JOURNAL_ENTRY * entry) & 0xFFFFFFFF


@inlined
def journaled_hash(t: int, entry: int) -> int:
    """Hash of the row that a journal entry names."""
    return shift_right(load(load(t, JOURNAL), JOURNAL_ENTRY * entry), 32)


@inlined
def journaled_row(t: int, entry: int) -> int:
    """Address of the row that a journal entry names."""
    return row_at(t, journaled_number(t, entry))


@inlined
def journaled_count(t: int, entry: int) -> int:
    """The count that the row of a journal entry had before the batch."""
    return load(load(t, JOURNAL), JOURNAL_ENTRY * entry + 1)


@jit
def remove_zeros(t: int) -> None:
    """Remove the rows in the journal whose count is 0."""
    words = load(t, KEY)
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    removed = 0
    for start in range(0, load(t, JOURNALED), AHEAD):
        end = min(start + AHEAD, load(t, JOURNALED))
        for entry in range(start, end):
            if load(journaled_row(t, entry), words) == 0:
                h = journaled_hash(t, entry)
                prefetch(slots + 8 * (h & mask))
                prefetch_next(t, h)
        for entry in range(start, end):
            number = journaled_number(t, entry)
            row = row_at(t, number)
            if load(row, words) == 0:
                empty(t, journaled_hash(t, entry), number)
                for i in range(load(t, WIDTH)):
                    store(row, i, 0)
                free_number(t, number)
                removed += 1
    store(t, LIVE, load(t, LIVE) - removed)
    store(t, REMOVED, load(t, REMOVED) + removed)


@jit
def empty_journal(t: int) -> None:
    """Clear the journal and its marks."""
    seen = load(t, SEEN)
    if load(t, JOURNALED) < load(t, SEEN_WORDS):
        for entry in range(load(t, JOURNALED)):
            store32(seen, journaled_number(t, entry) >> 5, 0)
    else:
        for i in range(load(t, SEEN_WORDS)):
            store(seen, i, 0)
    store(t, JOURNALED, 0)


@jit
def undo_table(t: int) -> None:
    """Restore the counts in the journal, and empty it."""
    words = load(t, KEY)
    for entry in range(load(t, JOURNALED)):
        store(journaled_row(t, entry), words, journaled_count(t, entry))
    store(t, FAILED, 0)
    remove_zeros(t)
    empty_journal(t)


@jit
def settle_table(t: int, flags: int) -> None:
    """Empty the journal, leaving the counts; a large journal is released. ``flags`` has ZERO if a count was 0."""
    if flags & ZERO != 0:
        remove_zeros(t)
    empty_journal(t)
    release_journal(t)


@jit
def undo_base(spec: int) -> None:
    """Undo all changes since the last ``settle_base``.

    The row table and each side keep a journal from one ``settle_base`` to the next. Checks read only rows in the
    journals, and ``undo_base`` restores exactly these rows. A row is journaled once: SEEN has a bit per row number that
    says whether its row is in the journal.
    """
    store(spec, MIXED, 0)
    store(spec, FLAGS, 0)
    t = load(spec, ROW_TABLE)
    drop_fresh(spec)
    undo_table(t)
    for s in range(load(spec, SIDES)):
        undo_table(load(side_at(spec, s), SIDE_TABLE))


@jit
def settle_base(spec: int) -> None:
    """Make all changes since the last call permanent, and release memory after deletes."""
    # A side loses a value only with the last row that has it, so the flags of rows suffice.
    flags = load(spec, FLAGS)
    store(spec, MIXED, 0)
    store(spec, FLAGS, 0)
    store(spec, FRESH, 0)
    t = load(spec, ROW_TABLE)
    settle_table(t, flags)
    if load(t, PENDING) != 0 and flush_repeats(t, load(spec, SCRATCH)) < 0:
        # Rows that could not be flushed are still deferred; nothing is lost.
        store(t, FAILED, 0)
    for s in range(load(spec, SIDES)):
        settle_table(load(side_at(spec, s), SIDE_TABLE), flags)
        shrink_tables(side_at(spec, s) + 8 * SIDE_TABLE, 1)
    shrink_tables(spec + 8 * ROW_TABLE, 1)


@jit
def base_bytes(spec: int) -> int:
    """Bytes that the row table and the sides hold."""
    total = table_bytes(load(spec, ROW_TABLE))
    for s in range(load(spec, SIDES)):
        total += table_bytes(load(side_at(spec, s), SIDE_TABLE))
    return total


def start_journal(t: int) -> None:
    """Keep a journal from now on."""
    store(t, JOURNALING, 1)


def hash_first(t: int, words: int) -> None:
    """Make an empty table hash only the first words of rows."""
    store(t, HASHED, words)


def enter_at_once(t: int) -> None:
    """Never defer inserts into a table."""
    store(t, EAGER_BELOW, NEVER)
