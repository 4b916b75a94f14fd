"""The kernels of stored base tables: rows counted by value, with counts by key and by foreign key.

A base table is a row table (key: all columns, payload: the multiplicity) and *sides*: tables that count the
rows by part of their columns, one per key and one per foreign key. Rows in which one of those columns is
NULL do not count. The side of a primary key is its *locator* too: it has a second word of payload, the sum of
the places of the rows that it counts, each place as often as the row is there. Where one row is left, that sum
is its place; sums come and go with the counts, in any order, and are undone with them. Widths are known at run
time only, so keys are reached by address. Every table keeps its journal from one ``settle_base`` to the next:
the checks look only at what the journals name, and ``undo_base`` puts back exactly what they hold.

The block ``spec`` of a base table::

    row table | columns | sides | address of a scratch key | mixed | per side: table, count, positions ...

``mixed`` is set where a batch changed one row twice and had both signs. Columns of a batch come as a block
of two words per column, its address and its stride in words.
"""

from __future__ import annotations

from freshviews.kernel.mem import (
    add_overflows,
    add_wrapping,
    copy_words,
    inlined,
    jit,
    load,
    mul_wrapping,
    release,
    shift_right,
    store,
)
from freshviews.kernel.outside import outside
from freshviews.kernel.table import (
    EPOCH,
    FAILED,
    JOURNAL,
    JOURNAL_CAPACITY,
    JOURNALED,
    JOURNALING,
    KEY,
    LIVE,
    MASK,
    PAYLOAD,
    ROWS,
    SLOTS,
    USED,
    WIDTH,
    clear_journal,
    hash_words,
    insert_row,
    remove_row,
    row_at,
    table_bytes,
    touch,
)
from freshviews.types import NULL

# Words of a spec.
ROW_TABLE = 0
COLUMNS = 1
SIDES = 2
SCRATCH_KEY = 3
MIXED = 4
FIRST_SIDE = 5
# Words of a side; the positions follow, room for as many as there are columns.
SIDE_TABLE = 0
SIDE_COUNT = 1
SIDE_POSITIONS = 2

# What ``add_rows`` hands back in its low two bits.
DONE = 0
OUT_OF_MEMORY = 1
OVERFLOW = 2

# Words a journal may keep for the next batch.
KEPT_JOURNAL = 1 << 16


@inlined
def same_words(one: int, other: int, words: int) -> bool:
    """Whether two keys in memory are the same."""
    same = True
    for i in range(words):
        if load(one, i) != load(other, i):
            same = False
            break
    return same


@inlined
def find_words(t: int, key: int, words: int, h: int) -> int:
    """Address of the row whose key lies at an address and hashes to ``h``, or 0."""
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    i = h & mask
    while True:
        slot = load(slots, i)
        if slot == 0:
            return 0
        if shift_right(slot, 32) == h:
            row = row_at(t, (slot & 0xFFFFFFFF) - 1)
            if same_words(row, key, words):
                return row
        i = (i + 1) & mask


@jit
def count_of(t: int, key: int, words: int) -> int:
    """The count of the key at an address; 0 where it is absent."""
    row = find_words(t, key, words, hash_words(key, words))
    return 0 if row == 0 else load(row, words)


@inlined
def place_of(t: int, row: int) -> int:
    """What tells where a row of the row table is, while it lives: never 0, and the same when the rows move."""
    return row - load(t, ROWS) + 8


@inlined
def row_in(t: int, place: int) -> int:
    """Address of the row at a place."""
    return load(t, ROWS) + place - 8


@inlined
def add_count(t: int, key: int, words: int, change: int, place: int) -> tuple[int, int]:
    """Add to the count of a key: DONE, OUT_OF_MEMORY or OVERFLOW, and the address of its row where it is DONE.

    4 more than DONE where the key was touched before. ``place`` is added as often to the sum of a locator.
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
        # The journal does not know the row, so nothing would take it back.
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
    """Count a row, whose columns lie at ``key``, in every side; ``place`` is that of the row."""
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
def add_rows(spec: int, columns: int, multiplicities: int, stride: int, n: int) -> int:
    """Add a batch; 0, or ``row << 2 | status`` of the row that failed, after which ``undo_base`` is due."""
    t = load(spec, ROW_TABLE)
    words = load(spec, COLUMNS)
    sides = load(spec, SIDES)
    # The scratch block has room for two keys: the row's, and after it the sides'.
    key = load(spec, SCRATCH_KEY) + 8 * words
    positive = 0
    negative = 0
    again = 0
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


@inlined
def journaled_count(t: int, entry: int) -> int:
    """The count that the row of a journal entry had before the batch."""
    return load(load(t, JOURNAL), (load(t, PAYLOAD) + 1) * entry + 1)


@jit
def beyond(t: int, least: int, most: int) -> int:
    """Address of the first touched row whose count is not between two bounds, or 0."""
    words = load(t, KEY)
    for entry in range(load(t, JOURNALED)):
        row = journaled_row(t, entry)
        count = load(row, words)
        if count < least or count > most:
            return row
    return 0


@jit
def orphan(child: int, parent: int, positions: int, scratch: int) -> int:
    """Address of the first touched foreign-key value that rows have and no parent has, or 0.

    Word ``i`` of the parent's key is word ``positions[i]`` of the child's.
    """
    words = load(child, KEY)
    for entry in range(load(child, JOURNALED)):
        row = journaled_row(child, entry)
        if load(row, words) > 0:
            for i in range(words):
                store(scratch, i, load(row, load(positions, i)))
            if count_of(parent, scratch, words) <= 0:
                return row
    return 0


@jit
def deserted(parent: int, child: int, positions: int, scratch: int) -> int:
    """Address of the first touched key that no parent has any more and child rows still have, or 0."""
    words = load(parent, KEY)
    for entry in range(load(parent, JOURNALED)):
        row = journaled_row(parent, entry)
        if load(row, words) <= 0:
            for i in range(words):
                store(scratch, load(positions, i), load(row, i))
            if count_of(child, scratch, words) > 0:
                return row
    return 0


@jit
def undo_table(t: int) -> None:
    """Put back the counts, and sums, that the journal holds, and empty it."""
    words = load(t, KEY)
    payload = load(t, PAYLOAD)
    for entry in range(load(t, JOURNALED)):
        before = load(t, JOURNAL) + 8 * ((payload + 1) * entry + 1)
        copy_words(journaled_row(t, entry) + 8 * words, before, payload)
    store(t, FAILED, 0)
    clear_journal(t)


@jit
def settle_table(t: int) -> None:
    """Keep the counts as they are and empty the journal; a large journal gives its memory back."""
    clear_journal(t)
    if load(t, JOURNAL_CAPACITY) > KEPT_JOURNAL:
        release(load(t, JOURNAL))
        store(t, JOURNAL, 0)
        store(t, JOURNAL_CAPACITY, 0)


@jit
def undo_base(spec: int) -> None:
    """Take back everything since the last ``settle_base``."""
    store(spec, MIXED, 0)
    undo_table(load(spec, ROW_TABLE))
    width = SIDE_POSITIONS + load(spec, COLUMNS)
    for s in range(load(spec, SIDES)):
        undo_table(load(spec, FIRST_SIDE + s * width + SIDE_TABLE))


@jit
def settle_base(spec: int) -> None:
    """Make everything since the last call permanent."""
    store(spec, MIXED, 0)
    settle_table(load(spec, ROW_TABLE))
    width = SIDE_POSITIONS + load(spec, COLUMNS)
    for s in range(load(spec, SIDES)):
        settle_table(load(spec, FIRST_SIDE + s * width + SIDE_TABLE))


@jit
def base_bytes(spec: int) -> int:
    """Bytes that the row table and the sides hold."""
    total = table_bytes(load(spec, ROW_TABLE))
    width = SIDE_POSITIONS + load(spec, COLUMNS)
    for s in range(load(spec, SIDES)):
        total += table_bytes(load(spec, FIRST_SIDE + s * width + SIDE_TABLE))
    return total


def live_rows(t: int) -> int:
    """Rows of a settled table, each counted once whatever its multiplicity."""
    return load(t, LIVE)


def used_rows(t: int) -> int:
    """The end of a scan of a table."""
    return load(t, USED)


def journal_length(t: int) -> int:
    """Rows that were touched since the journal was emptied."""
    return load(t, JOURNALED)


@jit
def copy_net(t: int, out: int) -> int:
    """Write key and change of count of every touched row to ``out``, row after row; the number of rows.

    Rows whose count is what it was before are left out.
    """
    words = load(t, KEY)
    rows = 0
    for entry in range(load(t, JOURNALED)):
        row = journaled_row(t, entry)
        change = load(row, words) - journaled_count(t, entry)
        if change != 0:
            copy_words(out + 8 * rows * (words + 1), row, words)
            store(out + 8 * rows * (words + 1), words, change)
            rows += 1
    return rows


@jit
def copy_rows(t: int, start: int, end: int, out: int) -> int:
    """Write key and count of the rows with numbers from ``start`` to ``end`` to ``out``; how many there are."""
    words = load(t, KEY)
    rows = 0
    for number in range(start, min(end, load(t, USED))):
        row = row_at(t, number)
        if load(row, words) != 0:
            copy_words(out + 8 * rows * (words + 1), row, words + 1)
            rows += 1
    return rows


@jit
def places_of_keys(t: int, locator: int, keys: int, n: int, scratch: int, out: int) -> int:
    """Write the places of the rows of ``t`` that have one of ``n`` keys to ``out``; how many there are.

    ``t`` is settled. ``locator`` is the side of the keys, or ``t`` where a key is a whole row. ``keys`` has address
    and stride of each word of a key, in the locator's order. ``scratch`` has room for a key.
    """
    words = load(locator, KEY)
    found = 0
    for k in range(n):
        for i in range(words):
            store(scratch, i, load(load(keys, 2 * i), k * load(keys, 2 * i + 1)))
        row = find_words(locator, scratch, words, hash_words(scratch, words))
        if row != 0:
            store(out, found, place_of(t, row) if locator == t else load(row, words + 1))
            found += 1
    return found


@jit
def copy_places(t: int, places: int, n: int, out: int) -> None:
    """Write key and count of the rows at ``n`` places to ``out``, row after row."""
    words = load(t, KEY) + 1
    for k in range(n):
        copy_words(out + 8 * k * words, row_in(t, load(places, k)), words)


@jit
def matching_row(t: int, positions: int, count: int, key: int, start: int) -> int:
    """Number of the first row from ``start`` on that has ``key`` at the positions, or -1: a scan."""
    words = load(t, KEY)
    for number in range(start, load(t, USED)):
        row = row_at(t, number)
        if load(row, words) > 0:
            same = True
            for i in range(count):
                if load(row, load(positions, i)) != load(key, i):
                    same = False
                    break
            if same:
                return number
    return -1


def start_journal(t: int) -> None:
    """Keep a journal from now on."""
    store(t, JOURNALING, 1)
