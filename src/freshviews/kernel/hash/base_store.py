"""Stored base tables: rows counted by value, with counts by key and by foreign key.

A base table is a row table (key: all columns, payload: the multiplicity) and *sides*, one per UNIQUE key and per
foreign key. A side is a table that counts rows by some of their columns; rows with a NULL in one of these do not count.
A primary key has no side: its columns come first in the row table, and they alone are hashed. So rows with one key are
found together, and a row is looked up once for both.

Widths are known at run time only, so keys are addressed in memory. Every table keeps its journal from one
``settle_base`` to the next: checks read only what the journals name, and ``undo_base`` restores exactly what they hold.

In a table without sides, rows are looked up only by deletes. Until the first batch with a negative multiplicity, its
inserts are deferred (see ``pending``), without a journal: such a batch can break no constraint, and ``undo_base``
removes its rows from the end. The first batch with a delete flushes all rows; from then on rows are inserted at once.

The block ``spec`` of a base table::

    row table | columns | sides | address of a scratch block | mixed | fresh | flags
        | per side: table, count, positions ...

``mixed`` is set if a batch changed one row twice and had both signs. ``fresh`` is the number of rows appended since the
last ``settle_base``, ``flags`` those of the rows that were added since then: see ``add_count``. The scratch block has
room for a key and for AHEAD rows with a hash of them for the row table and for each side. The columns of a batch come as a block of two words per column: its address, its stride in words.
"""

from __future__ import annotations

from freshviews.kernel.hash.pending import NEVER, enter_oldest, enter_pending, look
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import (
    EAGER_BELOW,
    EPOCH,
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
    PAYLOAD,
    PENDING,
    ROOM,
    ROWS,
    SLOTS,
    USED,
    WIDTH,
    clear_journal,
    find_words,
    insert_row,
    make_room,
    remove_row,
    row_at,
    table_bytes,
    touch,
)
from freshviews.kernel.memory.mem import (
    add_overflows,
    allocate,
    copy_words,
    inlined,
    jit,
    load,
    prefetch,
    release,
    shift_right,
    store,
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
FIRST_SIDE = 7
# Words of a side; the positions follow, with room for one per column.
SIDE_TABLE = 0
SIDE_COUNT = 1
SIDE_POSITIONS = 2

# Status in the low two bits of the result of ``add_rows``, and of the flags of ``add_count``.
DONE = 0
OUT_OF_MEMORY = 1
OVERFLOW = 2
STATUS = 3
# Further flags of ``add_count``.
AGAIN = 4  # the row was touched before in this batch
NEGATIVE = 8  # its count is negative
SHARES = 16  # its count is above 1, or another row has the same hashed words

AHEAD = 32
"""Rows whose slots are prefetched together."""

BLOCK = 256
"""Rows that are appended together, column by column, so that they stay in the processor's cache."""

# Most words of a journal that are kept for the next batch.
KEPT_JOURNAL = 1 << 16


@inlined
def place_of(t: int, row: int) -> int:
    """The place of a row of the row table: never 0, and the same while the row lives."""
    return row - load(t, ROWS) + 8


@inlined
def row_in(t: int, place: int) -> int:
    """Address of the row at a place."""
    return load(t, ROWS) + place - 8


@inlined
def add_count(t: int, key: int, words: int, h: int, change: int) -> tuple[int, int]:
    """Add ``change`` to the count of a key that hashes to ``h``. Returns flags, and the address of the row if the
    status in them is DONE."""
    row = find_words(t, key, words, h)
    flags = 0
    if row == 0:
        hashed = load(t, HASHED)
        if hashed < words and find_words(t, key, hashed, h) != 0:
            flags = SHARES
        number = insert_row(t, h)
        if number < 0:
            return OUT_OF_MEMORY, 0
        row = row_at(t, number)
        for i in range(words):
            store(row, i, load(key, i))
    elif load(row, load(t, WIDTH) - 1) == load(t, EPOCH):
        flags = AGAIN
    touch(t, row)
    if load(t, FAILED) != 0:
        # The row is not in the journal, so nothing would undo it.
        if load(row, words) == 0:
            remove_row(t, row)
        return OUT_OF_MEMORY, 0
    count = load(row, words)
    if add_overflows(count, change) != 0:
        return OVERFLOW, 0
    count += change
    store(row, words, count)
    if count < 0:
        flags |= NEGATIVE
    if count > 1:
        flags |= SHARES
    return flags, row


@inlined
def side_at(spec: int, s: int) -> int:
    """Address of the words of a side."""
    return spec + 8 * (FIRST_SIDE + s * (SIDE_POSITIONS + load(spec, COLUMNS)))


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


@inlined
def foresee_found(t: int, h: int) -> None:
    """Prefetch the first row with a hash, if there is one; its slot has arrived."""
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    i = h & mask
    slot = load(slots, i)
    while slot != 0:
        if shift_right(slot, 32) == h:
            prefetch(row_at(t, (slot & 0xFFFFFFFF) - 1))
            break
        i = (i + 1) & mask
        slot = load(slots, i)


@jit
def gather(spec: int, columns: int, start: int, n: int) -> None:
    """Copy ``n`` rows of a batch to the scratch block with their hashes, and prefetch what they will find.

    Each loop waits for memory once for all rows: for the slots, then for the rows that the slots name.
    """
    words = load(spec, COLUMNS)
    t = load(spec, ROW_TABLE)
    rows = load(spec, SCRATCH) + 8 * words
    hashes = rows + 8 * AHEAD * words
    for i in range(words):
        column = load(columns, 2 * i)
        step = load(columns, 2 * i + 1)
        for r in range(n):
            store(rows, r * words + i, load(column, (start + r) * step))
    hashed = load(t, HASHED)
    for r in range(n):
        h = hash_words(rows + 8 * r * words, hashed)
        store(hashes, r, h)
        prefetch(load(t, SLOTS) + 8 * (h & load(t, MASK)))
    for s in range(load(spec, SIDES)):
        side = side_at(spec, s)
        counted = load(side, SIDE_TABLE)
        for r in range(n):
            h = -1
            if side_key(side, rows + 8 * r * words, load(spec, SCRATCH)):
                h = hash_words(load(spec, SCRATCH), load(side, SIDE_COUNT))
                prefetch(load(counted, SLOTS) + 8 * (h & load(counted, MASK)))
            store(hashes, (1 + s) * AHEAD + r, h)
    for r in range(n):
        foresee_found(t, load(hashes, r))
    for s in range(load(spec, SIDES)):
        counted = load(side_at(spec, s), SIDE_TABLE)
        for r in range(n):
            h = load(hashes, (1 + s) * AHEAD + r)
            if h >= 0:
                foresee_found(counted, h)


@jit
def add_sides(spec: int, row: int, hashes: int, change: int) -> int:
    """Count a row in every side; ``hashes`` has a hash of it for each, or -1 where it does not count."""
    scratch = load(spec, SCRATCH)
    for s in range(load(spec, SIDES)):
        h = load(hashes, s * AHEAD)
        if h >= 0:
            side = side_at(spec, s)
            side_key(side, row, scratch)
            status = add_count(load(side, SIDE_TABLE), scratch, load(side, SIDE_COUNT), h, change)[0] & STATUS
            if status != DONE:
                return status
    return DONE


@jit
def room_after(t: int, multiplicities: int, stride: int, n: int) -> int:
    """The ROOM left after a batch is appended; -1 if it must not be: it deletes, or a sum could overflow."""
    room = load(t, ROOM)
    for r in range(n):
        change = load(multiplicities, r * stride)
        if change < 0 or change > room:
            return -1
        room -= change
    return room


@jit
def append_rows(spec: int, columns: int, multiplicities: int, stride: int, n: int, room: int) -> int:
    """Append a batch: DONE or OUT_OF_MEMORY. ``room`` is the ROOM after it."""
    t = load(spec, ROW_TABLE)
    oldest = min(load(t, PENDING) - load(spec, FRESH), load(t, PENDING) + n - load(t, MOST))
    if (oldest > 0 and enter_oldest(t, oldest, load(spec, SCRATCH)) < 0) or make_room(t, n) == 0:
        return OUT_OF_MEMORY
    store(t, ROOM, room)
    words = load(t, KEY)
    width = load(t, WIDTH)
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        rows = row_at(t, load(t, USED))
        for i in range(words):
            column = load(columns, 2 * i)
            step = load(columns, 2 * i + 1)
            for r in range(start, end):
                store(rows, (r - start) * width + i, load(column, r * step))
        for r in range(start, end):
            store(rows, (r - start) * width + words, load(multiplicities, r * stride))
            for i in range(words + 1, width):
                store(rows, (r - start) * width + i, 0)
        store(t, USED, load(t, USED) + end - start)
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
    """Flush the deferred rows, the fresh ones with the journal: DONE or OUT_OF_MEMORY."""
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
            status = add_count(t, row, words, hash_words(row, words), load(row, words))[0] & STATUS
    release(apart)
    return status


@jit
def add_rows(spec: int, columns: int, multiplicities: int, stride: int, n: int) -> int:
    """Add a batch; 0, or ``row << 2 | status`` of the row that failed: the caller must then call ``undo_base``."""
    t = load(spec, ROW_TABLE)
    words = load(spec, COLUMNS)
    sides = load(spec, SIDES)
    if load(t, LIVE) >= load(t, EAGER_BELOW):
        room = room_after(t, multiplicities, stride, n)
        if room >= 0:
            return append_rows(spec, columns, multiplicities, stride, n, room)
        store(t, EAGER_BELOW, NEVER)
    rows = load(spec, SCRATCH) + 8 * words
    hashes = rows + 8 * AHEAD * words
    positive = 1 if load(spec, FRESH) != 0 else 0
    negative = 0
    flags = 0
    if load(t, PENDING) != 0:
        status = enter_base(spec)
        if status != DONE:
            return status
    for start in range(0, n, AHEAD):
        block = min(AHEAD, n - start)
        gather(spec, columns, start, block)
        for r in range(block):
            change = load(multiplicities, (start + r) * stride)
            key = rows + 8 * r * words
            found, row = add_count(t, key, words, load(hashes, r), change)
            flags |= found
            status = found & STATUS
            if status == DONE and sides != 0:
                status = add_sides(spec, key, hashes + 8 * (AHEAD + r), change)
            if status != DONE:
                return (start + r) << 2 | status
            if load(row, words) >= LARGE:
                store(t, EAGER_BELOW, NEVER)
            if change > 0:
                positive = 1
            else:
                negative = 1
    if flags & AGAIN != 0 and positive & negative != 0:
        store(spec, MIXED, 1)
    store(spec, FLAGS, load(spec, FLAGS) | flags)
    return 0


@inlined
def journaled_row(t: int, entry: int) -> int:
    """Address of the row that a journal entry names."""
    return row_at(t, load(load(t, JOURNAL), (load(t, PAYLOAD) + 1) * entry))


@jit
def undo_table(t: int) -> None:
    """Restore the counts and sums in the journal, and empty it."""
    words = load(t, KEY)
    payload = load(t, PAYLOAD)
    for entry in range(load(t, JOURNALED)):
        before = load(t, JOURNAL) + 8 * ((payload + 1) * entry + 1)
        copy_words(journaled_row(t, entry) + 8 * words, before, payload)
    store(t, FAILED, 0)
    clear_journal(t)


@jit
def settle_table(t: int) -> None:
    """Empty the journal, leaving the counts; a large journal is released."""
    clear_journal(t)
    if load(t, JOURNAL_CAPACITY) > KEPT_JOURNAL:
        release(load(t, JOURNAL))
        store(t, JOURNAL, 0)
        store(t, JOURNAL_CAPACITY, 0)


@jit
def undo_base(spec: int) -> None:
    """Undo everything since the last ``settle_base``."""
    store(spec, MIXED, 0)
    store(spec, FLAGS, 0)
    t = load(spec, ROW_TABLE)
    drop_fresh(spec)
    undo_table(t)
    for s in range(load(spec, SIDES)):
        undo_table(load(side_at(spec, s), SIDE_TABLE))


@jit
def settle_base(spec: int) -> None:
    """Make everything since the last call permanent."""
    store(spec, MIXED, 0)
    store(spec, FLAGS, 0)
    store(spec, FRESH, 0)
    t = load(spec, ROW_TABLE)
    settle_table(t)
    if load(t, PENDING) != 0 and look(t, load(spec, SCRATCH)) < 0:
        # Rows that could not be flushed are still deferred; nothing is lost.
        store(t, FAILED, 0)
    for s in range(load(spec, SIDES)):
        settle_table(load(side_at(spec, s), SIDE_TABLE))


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
    """Hash the first words of rows alone, of a table that is empty."""
    store(t, HASHED, words)


def enter_at_once(t: int) -> None:
    """Never defer inserts into a table."""
    store(t, EAGER_BELOW, NEVER)
