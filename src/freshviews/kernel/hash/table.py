"""Stores the rows of a relation or view in a hash table. Rows are found by key, and by indexes on parts of the key.

The words of a row::

    key ... | payload ... | one word per index | per ordered index: its words, folds and sums | stamp

A row with a zero payload is not in the relation. The *journal* of a table has the rows that a batch changed, with their
payloads before the batch.
"""

from __future__ import annotations

from freshviews.kernel.hash import entries
from freshviews.kernel.hash.entries import FULL, empty, entry_at, fill, free_number, grow_slots, is_absent
from freshviews.kernel.hash.index import (
    BLOCK_WORDS,
    COUNT,
    POSITIONS,
    index_insert,
    index_release,
    index_remove,
    new_index,
    slice_rows,
    slice_size,
)
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.memory.mapping import release_block, widen_block
from freshviews.kernel.memory.mem import (
    allocate,
    copy_words,
    hash_key,
    inlined,
    jit,
    key_equals,
    load,
    load32,
    reallocate,
    release,
    shift_right,
    store,
    write_key,
)
from freshviews.kernel.memory.outside import outside

# Words of the header: those of ``entries``, then these.
ROWS = entries.ENTRIES
CAPACITY = entries.CAPACITY
USED = entries.USED
FREE = entries.FREE
LIVE = entries.LIVE
SLOTS = entries.SLOTS
MASK = entries.MASK
WIDTH = entries.WIDTH
KEY = entries.KEY
PAYLOAD = entries.PAYLOAD
LOW = entries.LOW
HIGH = entries.HIGH
HASHED = entries.HASHED
INDEXES = entries.FIRST_OWN  # number of indexes
INDEX_LIST = entries.FIRST_OWN + 1  # address of the list of index handles
ORDERED = entries.FIRST_OWN + 2  # number of ordered indexes
ORDERED_LIST = entries.FIRST_OWN + 3  # address of the list of ordered-index handles
JOURNAL = entries.FIRST_OWN + 4  # address of the journal
JOURNALED = entries.FIRST_OWN + 5  # its number of entries
JOURNAL_CAPACITY = entries.FIRST_OWN + 6
JOURNALING = entries.FIRST_OWN + 7  # 1 while the journal is kept
EPOCH = entries.FIRST_OWN + 8
SCRATCH = entries.FIRST_OWN + 9  # address of the row that is written when memory is out
FAILED = entries.FIRST_OWN + 10
PENDING = entries.FIRST_OWN + 11  # number of deferred inserts, at the end of the used rows; see pending.py
ROOM = entries.FIRST_OWN + 12  # bound of the sum of components of further deferred inserts
LOOK_AT = entries.FIRST_OWN + 13  # number of rows at which the share of equal rows is estimated again
EAGER_BELOW = entries.FIRST_OWN + 14  # with fewer live rows, no insert is deferred
APPEND_FROM = entries.FIRST_OWN + 15  # least updates of a batch whose inserts are deferred
ENTERED = entries.FIRST_OWN + 16  # deferred inserts ever flushed; counted as steps
LINKED = entries.FIRST_OWN + 17  # number of first indexes that have every row; the others are of subsets
MOST = entries.FIRST_OWN + 18  # most deferred inserts; beyond it, the oldest are flushed
UNLINKED = entries.FIRST_OWN + 19  # 1 + the least number of a row that may be unlinked, or 0; see pending.py
SEEN = entries.FIRST_OWN + 20  # a bit for each number: whether its row is in the journal; see base_store.py
SEEN_WORDS = entries.FIRST_OWN + 21
HEADER = entries.FIRST_OWN + 22

LARGE = 2**62
"""The sum of two numbers of smaller magnitude fits int64."""
FIRST_LOOK = 1 << 16
"""Number of rows at which the share of equal rows is first estimated."""
LEAST_BATCH = 1024
"""Least updates of a batch whose inserts are deferred in a table without deferred inserts."""
MOST_PENDING = 1 << 22
"""Most deferred inserts of a table: one update may wait for their flush, which takes a second or two."""

NOWHERE = -1
"""The word of an unlinked row instead of its group and position."""

FIRST_CAPACITY = 8
KEPT_JOURNAL = 1 << 16
"""Most words of a journal that are kept for the next batch."""


def new_table(key: int, payload: int, indexes: int, ordered: int, stamped: int) -> int:
    """Handle of an empty table; ``add_index`` and ``ordered.index`` fill its lists of indexes.

    ``ordered`` counts words of a row: one per ordered index, those of its folds and of its sums. ``stamped`` is
    1 if the table may keep a journal by ``touch``.
    """
    t = allocate(HEADER)
    width = key + payload + indexes + ordered + stamped
    store(t, WIDTH, width)
    store(t, KEY, key)
    store(t, HASHED, key)
    store(t, PAYLOAD, payload)
    store(t, CAPACITY, FIRST_CAPACITY)
    store(t, ROWS, allocate(FIRST_CAPACITY * width))
    store(t, SLOTS, allocate(2 * FIRST_CAPACITY))
    store(t, MASK, 2 * FIRST_CAPACITY - 1)
    store(t, INDEX_LIST, allocate(max(indexes, 1)))
    store(t, ORDERED_LIST, allocate(max(ordered, 1)))
    store(t, SCRATCH, allocate(width))
    store(t, entries.PACKED, entries.NOT_PACKING)
    store(t, EPOCH, 1)
    store(t, ROOM, LARGE)
    store(t, LOOK_AT, FIRST_LOOK)
    store(t, APPEND_FROM, LEAST_BATCH)
    store(t, MOST, MOST_PENDING)
    return t


def add_index(t: int, positions: int, count: int, digested: int = 0) -> int:
    """Add an index of every row on ``count`` key positions, listed in the block ``positions``; the table is empty.

    ``digested`` is 1 + the position whose words have digests in the index, or 0.
    """
    x = add_subset_index(t, positions, count, digested)
    store(t, LINKED, load(t, INDEXES))
    return x


def add_subset_index(t: int, positions: int, count: int, digested: int = 0) -> int:
    """Add an index of a subset: statements insert and remove its rows. It comes after all indexes of every row."""
    n = load(t, INDEXES)
    x = new_index(positions, count, load(t, KEY) + load(t, PAYLOAD) + n, digested)
    store(load(t, INDEX_LIST), n, x)
    store(t, INDEXES, n + 1)
    return x


@jit
def free_table(t: int) -> None:
    """Release all memory of a table."""
    for i in range(load(t, INDEXES)):
        index_release(load(load(t, INDEX_LIST), i))
    for i in range(load(t, ORDERED)):
        release(load(load(t, ORDERED_LIST), i))
    release(load(t, INDEX_LIST))
    release(load(t, ORDERED_LIST))
    release_block(load(t, ROWS), load(t, LOW), load(t, HIGH))
    release_block(load(t, SLOTS), load(t, LOW), load(t, HIGH))
    release_block(load(t, entries.NEXT), load(t, LOW), load(t, HIGH))
    release(load(t, JOURNAL))
    release(load(t, SEEN))
    release(load(t, SCRATCH))
    release(t)


row_at = entry_at
"""Address of a row by number."""

is_zero = is_absent
"""Whether the payload of a row is zero: the row is absent from the relation."""


@inlined
def row_number(t: int, address: int) -> int:
    """Number of the row at an address."""
    return (address - load(t, ROWS)) // (8 * load(t, WIDTH))


@inlined
def enter_slice(t: int, place: int, row: int) -> int:
    """Insert a row into the index of a subset; 1 if it is the first row of its slice, else 0."""
    if row == load(t, SCRATCH):
        return 0
    x = load(load(t, INDEX_LIST), place)
    if index_insert(x, t, row_number(t, row)) == 0:
        store(t, FAILED, 1)
        return 0
    return 1 if slice_size(x, row) == 1 else 0


@inlined
def last_of_slice(t: int, place: int, row: int) -> int:
    """1 if a row of a subset is the only one of its slice, else 0."""
    if row == load(t, SCRATCH):
        return 0
    return 1 if slice_size(load(load(t, INDEX_LIST), place), row) == 1 else 0


@inlined
def leave_slice(t: int, place: int, row: int) -> None:
    """Remove a row from the index of a subset."""
    if row != load(t, SCRATCH):
        index_remove(load(load(t, INDEX_LIST), place), t, row_number(t, row))


@inlined
def find(t: int, key: tuple[int, ...]) -> int:
    """Address of the row with the key, or 0."""
    h = hash_key(key)
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    i = h & mask
    while True:
        slot = load(slots, i)
        if slot == 0:
            return 0
        if shift_right(slot, 32) == h:
            row = row_at(t, (slot & 0xFFFFFFFF) - 1)
            if key_equals(row, key):
                return row
        i = (i + 1) & mask


@inlined
def find_from(t: int, group: int, position: int, key: tuple[int, ...]) -> int:
    """As ``find``, but first try the likely row at a position of a slice; -1 for no guess."""
    if position >= 0:
        row = row_at(t, load32(slice_rows(group), position))
        if key_equals(row, key):
            return row
    return find(t, key)


@inlined
def same_words(one: int, other: int, words: int) -> bool:
    """Whether two keys in memory are equal."""
    same = True
    for i in range(words):
        if load(one, i) != load(other, i):
            same = False
            break
    return same


@inlined
def find_words(t: int, key: int, words: int, h: int) -> int:
    """Address of the row whose key equals the words at an address, which hash to ``h``; 0 if absent."""
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


@outside
def make_room(t: int, more: int) -> int:
    """Make room for ``more`` rows or more after the used ones; 0 without memory."""
    used = load(t, USED)
    width = load(t, WIDTH)
    if used + more > load(t, CAPACITY):
        capacity = used + max(more, (used >> 1) + FIRST_CAPACITY)
        rows = 0
        if capacity < 2**31:
            rows = widen_block(load(t, ROWS), used * width, capacity * width, load(t, LOW), load(t, HIGH))
        if rows == 0:
            store(t, FAILED, 1)
            return 0
        store(t, ROWS, rows)
        store(t, CAPACITY, capacity)
    return 1


@jit
def take_row(t: int) -> int:
    """Number of a new row with a zero payload; -1 without memory."""
    free = load(t, FREE)
    if free != 0:
        row = row_at(t, free - 1)
        store(t, FREE, load(row, 0))
        return free - 1
    used = load(t, USED)
    width = load(t, WIDTH)
    if used == load(t, CAPACITY) and make_room(t, 1) == 0:
        return -1
    row = row_at(t, used)
    for i in range(width):
        store(row, i, 0)
    store(t, USED, used + 1)
    return used


@inlined
def may_stay_unlinked(t: int, number: int) -> bool:
    """Whether a new row may stay unlinked: others are unlinked, and its number is in their range."""
    first = load(t, UNLINKED)
    return first != 0 and first <= number + 1 < first + load(t, MOST)


@jit
def mark_unlinked(t: int, number: int) -> None:
    """Mark a row that is in no index as unlinked."""
    word = row_at(t, number) + 8 * (load(t, KEY) + load(t, PAYLOAD))
    for i in range(load(t, LINKED)):
        store(word, i, NOWHERE)


@outside
def link_row(t: int, number: int) -> None:
    """Insert a row, whose key is written, into the indexes that have every row; or leave it unlinked."""
    if may_stay_unlinked(t, number):
        mark_unlinked(t, number)
        return
    for i in range(load(t, LINKED)):
        if index_insert(load(load(t, INDEX_LIST), i), t, number) == 0:
            store(t, FAILED, 1)


@outside
def insert_row(t: int, h: int) -> int:
    """Number of a new row with a slot for its hash; the caller writes the key. -1 without memory."""
    live = load(t, LIVE)
    if 32 * (live + 1) > FULL * (load(t, MASK) + 1) and grow_slots(t) == 0:
        store(t, FAILED, 1)
        return -1
    number = take_row(t)
    if number >= 0:
        fill(t, h, number)
        store(t, LIVE, live + 1)
    return number


@inlined
def upsert(t: int, key: tuple[int, ...]) -> int:
    """Address of the row with the key; a new row with a zero payload if there was none.

    The address is valid until the next ``upsert`` on this table.

    When memory runs out, ``upsert`` returns a scratch row and sets the word FAILED, which the caller checks once after
    its batch.
    """
    row = find(t, key)
    if row != 0:
        return row
    number = insert_row(t, hash_key(key))
    if number < 0:
        return load(t, SCRATCH)
    row = row_at(t, number)
    write_key(row, key)
    if load(t, LINKED) != 0:
        link_row(t, number)
    return row


@outside
def remove_row(t: int, row: int) -> None:
    """Remove a row from slots and indexes; its number becomes free and its payload zero."""
    if row == load(t, SCRATCH):
        return
    number = row_number(t, row)
    for i in range(load(t, INDEXES)):
        index_remove(load(load(t, INDEX_LIST), i), t, number)
    empty(t, hash_words(row, load(t, HASHED)), number)
    for i in range(load(t, WIDTH)):
        store(row, i, 0)
    free_number(t, number)
    store(t, LIVE, load(t, LIVE) - 1)
    store(t, entries.REMOVED, load(t, entries.REMOVED) + 1)


@outside
def journal_row(t: int, row: int) -> None:
    """Append the payload of a row to the journal: the slow path of ``touch``."""
    payload = load(t, PAYLOAD)
    entry = payload + 1
    n = load(t, JOURNALED)
    if n == load(t, JOURNAL_CAPACITY):
        capacity = 2 * n + 16
        journal = reallocate(load(t, JOURNAL), capacity * entry)
        if journal == 0:
            store(t, FAILED, 1)
            return
        store(t, JOURNAL, journal)
        store(t, JOURNAL_CAPACITY, capacity)
    at = load(t, JOURNAL) + 8 * n * entry
    store(at, 0, row_number(t, row))
    copy_words(at + 8, row + 8 * load(t, KEY), payload)
    store(t, JOURNALED, n + 1)


@inlined
def touch(t: int, row: int) -> None:
    """Call it before a payload changes: journals the old payload, once per row and batch, if a journal is kept.

    A row whose payload words are all zero is not in the relation. The row is removed immediately, or, in a table with a
    journal, when the journal is cleared. The journal has an entry for every row touched since the last
    ``clear_journal``: the number of the row, and its payload before. The delta of a view is read from the journal.
    ``stamp`` is the epoch in which the row was last touched, so that a row is journaled once. A table that never keeps
    a journal has no stamp, and a stored base table has bits in place of stamps. ``pending`` describes deferred inserts.
    """
    if load(t, JOURNALING) != 0:
        stamp = load(t, WIDTH) - 1
        if load(row, stamp) != load(t, EPOCH) and row != load(t, SCRATCH):
            store(row, stamp, load(t, EPOCH))
            journal_row(t, row)


@inlined
def settle(t: int, row: int) -> None:
    """Call it after a payload became zero: removes the row, unless the journal still needs it."""
    if load(t, JOURNALING) == 0:
        remove_row(t, row)


@jit
def release_journal(t: int) -> None:
    """Release an empty journal if it is large."""
    if load(t, JOURNAL_CAPACITY) * (load(t, PAYLOAD) + 1) > KEPT_JOURNAL:
        release(load(t, JOURNAL))
        store(t, JOURNAL, 0)
        store(t, JOURNAL_CAPACITY, 0)


@jit
def clear_journal(t: int) -> None:
    """Empty the journal and remove the rows that the batch left at zero; a large journal is released."""
    entry = load(t, PAYLOAD) + 1
    for i in range(load(t, JOURNALED)):
        row = row_at(t, load(load(t, JOURNAL) + 8 * i * entry, 0))
        if is_zero(t, row):
            remove_row(t, row)
    store(t, JOURNALED, 0)
    store(t, EPOCH, load(t, EPOCH) + 1)
    release_journal(t)


@jit
def entry_words(e: int) -> int:
    """Words of the entries of a table or an index, and of its slots."""
    total = max(load(e, USED), load(e, entries.TOUCHED)) * load(e, WIDTH) + load(e, MASK) + 1
    return total + (load(e, entries.NEXT_MASK) + 1 if load(e, entries.NEXT) != 0 else 0)


@jit
def table_bytes(t: int) -> int:
    """Bytes of a table: header, rows, slots, indexes, journal; only the written part of arrays."""
    total = HEADER + entry_words(t) + load(t, JOURNAL_CAPACITY) * (load(t, PAYLOAD) + 1) + load(t, SEEN_WORDS)
    for i in range(load(t, INDEXES)):
        x = load(load(t, INDEX_LIST), i)
        total += POSITIONS + load(x, COUNT) + entry_words(x) + load(x, BLOCK_WORDS)
    return 8 * total
