"""Stored base tables: rows counted by value, with counts by key and by foreign key.

A base table is a row table (key: all columns, payload: the multiplicity) and *sides*, one per key and per foreign key.
A side is a table that counts rows by some of their columns; rows with a NULL in one of these do not count. The side of
a primary key is also its *locator*: it has a second payload word, the sum of the places of its rows, each place times
the multiplicity. With one row left, that sum is its place. Sums change with the counts, in any order, and are undone
with them.

Widths are known at run time only, so keys are addressed in memory. Every table keeps its journal from one
``settle_base`` to the next: checks read only what the journals name, and ``undo_base`` restores exactly what they hold.

In a table without sides, rows are looked up only by deletes. Until the first batch with a negative multiplicity, its
inserts are deferred (see ``pending``), without a journal: such a batch can break no constraint, and ``undo_base``
removes its rows from the end. The first batch with a delete flushes all rows; from then on rows are inserted at once.

The block ``spec`` of a base table::

    row table | columns | sides | address of a scratch key | mixed | fresh | per side: table, count, positions ...

``mixed`` is set if a batch changed one row twice and had both signs. ``fresh`` is the number of rows appended since the
last ``settle_base``. The columns of a batch come as a block of two words per column: its address, its stride in words.
"""

from __future__ import annotations

from freshviews.kernel.hash.pending import NEVER, enter_oldest, enter_pending, look
from freshviews.kernel.hash.shrink import shrink_tables
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import (
    EAGER_BELOW,
    EPOCH,
    FAILED,
    JOURNAL,
    JOURNALED,
    JOURNALING,
    KEY,
    LARGE,
    LIVE,
    MOST,
    PAYLOAD,
    PENDING,
    ROOM,
    ROWS,
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
    add_wrapping,
    allocate,
    copy_words,
    inlined,
    jit,
    load,
    mul_wrapping,
    release,
    store,
)
from freshviews.kernel.memory.outside import outside
from freshviews.types import NULL

# Words of a spec.
ROW_TABLE = 0
COLUMNS = 1
SIDES = 2
SCRATCH_KEY = 3
MIXED = 4
FRESH = 5
FIRST_SIDE = 6
# Words of a side; the positions follow, with room for one per column.
SIDE_TABLE = 0
SIDE_COUNT = 1
SIDE_POSITIONS = 2

# Status in the low two bits of the result of ``add_rows``.
DONE = 0
OUT_OF_MEMORY = 1
OVERFLOW = 2

BLOCK = 256
"""Rows that are appended together, column by column, so that they stay in the processor's cache."""


@inlined
def place_of(t: int, row: int) -> int:
    """The place of a row of the row table: never 0, and the same while the row lives."""
    return row - load(t, ROWS) + 8


@inlined
def row_in(t: int, place: int) -> int:
    """Address of the row at a place."""
    return load(t, ROWS) + place - 8


@inlined
def add_count(t: int, key: int, words: int, change: int, place: int) -> tuple[int, int]:
    """Add ``change`` to the count of a key. Returns the status, and the address of the row if it is DONE.

    The status is 4 more if the key was touched before in this batch. A locator adds ``change * place`` to its sum of
    places.
    """
    h = hash_words(key, words)
    row = find_words(t, key, words, h)
    again = 0
    if row == 0:
        number = insert_row(t, h)
        if number < 0:
            return OUT_OF_MEMORY, 0
        row = row_at(t, number)
        for i in range(words):
            store(row, i, load(key, i))
    elif load(row, load(t, WIDTH) - 1) == load(t, EPOCH):
        again = 4
    touch(t, row)
    if load(t, FAILED) != 0:
        # The row is not in the journal, so nothing would undo it.
        if load(row, words) == 0:
            remove_row(t, row)
        return OUT_OF_MEMORY, 0
    count = load(row, words)
    if add_overflows(count, change) != 0:
        return OVERFLOW, 0
    store(row, words, count + change)
    if load(t, PAYLOAD) == 2:
        store(row, words + 1, add_wrapping(load(row, words + 1), mul_wrapping(change, place)))
    return DONE | again, row


@outside
def add_sides(spec: int, key: int, change: int, place: int) -> int:
    """Count a row, whose columns are at ``key``, in every side; ``place`` is the place of the row."""
    scratch = load(spec, SCRATCH_KEY)
    width = SIDE_POSITIONS + load(spec, COLUMNS)
    for s in range(load(spec, SIDES)):
        side = spec + 8 * (FIRST_SIDE + s * width)
        words = load(side, SIDE_COUNT)
        whole = True
        for i in range(words):
            word = load(key, load(side, SIDE_POSITIONS + i))
            store(scratch, i, word)
            if word == NULL:
                whole = False
        if whole:
            status = add_count(load(side, SIDE_TABLE), scratch, words, change, place)[0] & 3
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
    if (oldest > 0 and enter_oldest(t, oldest, load(spec, SCRATCH_KEY)) < 0) or make_room(t, n) == 0:
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
            status = add_count(t, row, words, load(row, words), 0)[0] & 3
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
    # The scratch block has room for two keys, one for a side and one for the row.
    key = load(spec, SCRATCH_KEY) + 8 * words
    positive = 1 if load(spec, FRESH) != 0 else 0
    negative = 0
    again = 0
    if load(t, PENDING) != 0:
        status = enter_base(spec)
        if status != DONE:
            return status
    for r in range(n):
        change = load(multiplicities, r * stride)
        for i in range(words):
            store(key, i, load(load(columns, 2 * i), r * load(columns, 2 * i + 1)))
        status, row = add_count(t, key, words, change, 0)
        again |= status >> 2
        status &= 3
        if status == DONE and sides != 0:
            status = add_sides(spec, key, change, place_of(t, row))
        if status != DONE:
            return r << 2 | status
        if load(row, words) >= LARGE:
            store(t, EAGER_BELOW, NEVER)
        if change > 0:
            positive = 1
        else:
            negative = 1
    if again & positive & negative != 0:
        store(spec, MIXED, 1)
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
def undo_base(spec: int) -> None:
    """Undo everything since the last ``settle_base``."""
    store(spec, MIXED, 0)
    t = load(spec, ROW_TABLE)
    drop_fresh(spec)
    undo_table(t)
    width = SIDE_POSITIONS + load(spec, COLUMNS)
    for s in range(load(spec, SIDES)):
        undo_table(load(spec, FIRST_SIDE + s * width + SIDE_TABLE))


@jit
def settle_base(spec: int) -> None:
    """Make everything since the last call permanent, and give memory back after deletes."""
    store(spec, MIXED, 0)
    store(spec, FRESH, 0)
    t = load(spec, ROW_TABLE)
    clear_journal(t)
    if load(t, PENDING) != 0 and look(t, load(spec, SCRATCH_KEY)) < 0:
        # Rows that could not be flushed are still deferred; nothing is lost.
        store(t, FAILED, 0)
    width = SIDE_POSITIONS + load(spec, COLUMNS)
    for s in range(load(spec, SIDES)):
        clear_journal(load(spec, FIRST_SIDE + s * width + SIDE_TABLE))
        shrink_tables(spec + 8 * (FIRST_SIDE + s * width + SIDE_TABLE), 1)
    shrink_tables(spec + 8 * ROW_TABLE, 1)


@jit
def base_bytes(spec: int) -> int:
    """Bytes that the row table and the sides hold."""
    total = table_bytes(load(spec, ROW_TABLE))
    width = SIDE_POSITIONS + load(spec, COLUMNS)
    for s in range(load(spec, SIDES)):
        total += table_bytes(load(spec, FIRST_SIDE + s * width + SIDE_TABLE))
    return total


def start_journal(t: int) -> None:
    """Keep a journal from now on."""
    store(t, JOURNALING, 1)


def enter_at_once(t: int) -> None:
    """Never defer inserts into a table."""
    store(t, EAGER_BELOW, NEVER)
