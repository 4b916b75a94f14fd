"""The hash table that holds relations and views: rows of words, found by key, indexed by parts of it.

A table is a header block (its address is the table's handle), an array of rows, and open-addressing
slots with linear probing. A slot is one word, ``hash << 32 | row + 1``, zero where empty: most misses are
decided without touching a row, growth rehashes without touching rows, and deletion shifts slots back, so
that there are no tombstones. A row never moves to another number while it lives, which is what lets
indexes hold row numbers.

A row's words::

    key ... | payload ... | one word per index | one word per ordered index, and per fold of it | stamp

The payload decides presence: a row whose payload words are all zero is not in the relation. It is removed
at once, or, while a journal is kept, when the journal is cleared. The journal holds, for every row touched
since the last ``clear_journal``, its number and its payload before: the delta of a view is read off it, and
``stamp`` (the epoch of the last touch) keeps it free of repeats. Tables that never keep a journal have no
stamp.

What is done once per table is plain Python, without a decorator: compiling it would take longer.

Rows may be *pending*, at the end of the array: they are in no slot and no index, have no number of their own yet,
and several may have one key.
``pending.py`` says what may be done with such a table.

When memory runs out, ``upsert`` hands back a scratch row and raises the table's FAILED flag; the caller
looks at the flag once, after its batch.
"""

from __future__ import annotations

from freshviews.kernel.hash.index import index_insert, index_release, index_remove, new_index, slice_rows, slice_size
from freshviews.kernel.hash.slots import double_slots, empty_slot, fill_slot, hash_words
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

# Words of the header.
ROWS = 0  # address of the rows
CAPACITY = 1  # rows there is room for
USED = 2  # rows ever handed out: the scan's end
FREE = 3  # first free row + 1, chained through word 0 of the rows
LIVE = 4  # rows present
SLOTS = 5  # address of the slots
MASK = 6  # number of slots - 1
WIDTH = 7  # words of a row
KEY = 8  # words of the key
PAYLOAD = 9  # words of the payload
INDEXES = 10  # number of indexes
INDEX_LIST = 11  # address of the list of index handles
JOURNAL = 12  # address of the journal
JOURNALED = 13  # entries in it
JOURNAL_CAPACITY = 14
JOURNALING = 15  # 1 while the journal is kept
EPOCH = 16
SCRATCH = 17  # address of a row to write to when memory is out
FAILED = 18
ORDERED = 19  # number of ordered indexes
ORDERED_LIST = 20  # address of the list of ordered-index handles
LOW = 21  # first address of the mapping that arrays may lie in; see mapping.py
HIGH = 22  # the address past its end
PENDING = 23  # rows at the end of the used ones that are not entered yet; see pending.py
ROOM = 24  # by how much the components of pending rows may still grow, added up
LOOK_AT = 25  # rows at which it is looked at again how many of them are equal
EAGER_BELOW = 26  # rows present below which nothing is appended
APPEND_FROM = 27  # updates in a batch that is worth appending
ENTERED = 28  # pending rows ever entered: steps, for who counts them
LINKED = 29  # so many of the first indexes have every row; the others are of subsets, which rows enter and leave
MOST = 30  # rows that are left pending; as many as come beyond them are entered
HEADER = 31

LARGE = 2**62
"""Two numbers that are less in size have a sum that fits int64."""
FIRST_LOOK = 1 << 16
"""Rows at which it is looked for the first time whether many are equal."""
LEAST_BATCH = 1024
"""Updates in a batch that is worth appending to a table all of whose rows are entered."""
MOST_PENDING = 1 << 22
"""Rows that are left pending: to enter them takes a second or two, which some update has to wait for."""

FIRST_CAPACITY = 8
FULL = 25
"""So many of 32 slots are taken when their number is doubled: more would make misses long, fewer rows dear."""


def new_table(key: int, payload: int, indexes: int, ordered: int, stamped: int) -> int:
    """Handle of an empty table; its index lists are filled by ``add_index`` and the ordered kernel.

    ``ordered`` counts words of a row: one for each ordered index, and one for each of its folds.
    """
    t = allocate(HEADER)
    width = key + payload + indexes + ordered + stamped
    store(t, WIDTH, width)
    store(t, KEY, key)
    store(t, PAYLOAD, payload)
    store(t, CAPACITY, FIRST_CAPACITY)
    store(t, ROWS, allocate(FIRST_CAPACITY * width))
    store(t, SLOTS, allocate(2 * FIRST_CAPACITY))
    store(t, MASK, 2 * FIRST_CAPACITY - 1)
    store(t, INDEX_LIST, allocate(max(indexes, 1)))
    store(t, ORDERED_LIST, allocate(max(ordered, 1)))
    store(t, SCRATCH, allocate(width))
    store(t, EPOCH, 1)
    store(t, ROOM, LARGE)
    store(t, LOOK_AT, FIRST_LOOK)
    store(t, APPEND_FROM, LEAST_BATCH)
    store(t, MOST, MOST_PENDING)
    return t


def add_index(t: int, positions: int, count: int, digested: int = 0) -> int:
    """Add an index on ``count`` key positions, read from the word block ``positions``; the table is empty.

    ``digested`` is 1 + the position whose words have digests in it, or 0.
    """
    x = add_subset_index(t, positions, count, digested)
    store(t, LINKED, load(t, INDEXES))
    return x


def add_subset_index(t: int, positions: int, count: int, digested: int = 0) -> int:
    """As ``add_index``, but rows enter it and leave it one by one; comes after all indexes of every row."""
    n = load(t, INDEXES)
    x = new_index(positions, count, load(t, KEY) + load(t, PAYLOAD) + n, digested)
    store(load(t, INDEX_LIST), n, x)
    store(t, INDEXES, n + 1)
    return x


@jit
def free_table(t: int) -> None:
    """Give all memory of a table back."""
    for i in range(load(t, INDEXES)):
        index_release(load(load(t, INDEX_LIST), i))
    for i in range(load(t, ORDERED)):
        release(load(load(t, ORDERED_LIST), i))
    release(load(t, INDEX_LIST))
    release(load(t, ORDERED_LIST))
    release_block(load(t, ROWS), load(t, LOW), load(t, HIGH))
    release_block(load(t, SLOTS), load(t, LOW), load(t, HIGH))
    release(load(t, JOURNAL))
    release(load(t, SCRATCH))
    release(t)


@inlined
def row_at(t: int, row: int) -> int:
    """Address of a row by number."""
    return load(t, ROWS) + 8 * row * load(t, WIDTH)


@inlined
def row_number(t: int, address: int) -> int:
    """Number of the row at an address."""
    return (address - load(t, ROWS)) // (8 * load(t, WIDTH))


@inlined
def enter_slice(t: int, place: int, row: int) -> int:
    """Enter a row into an index of a subset; 1 where it is the first row of its slice, else 0."""
    if row == load(t, SCRATCH):
        return 0
    x = load(load(t, INDEX_LIST), place)
    if index_insert(x, t, row_number(t, row)) == 0:
        store(t, FAILED, 1)
        return 0
    return 1 if slice_size(x, row) == 1 else 0


@inlined
def last_of_slice(t: int, place: int, row: int) -> int:
    """1 where a row of a subset is the only one of its slice, else 0."""
    if row == load(t, SCRATCH):
        return 0
    return 1 if slice_size(load(load(t, INDEX_LIST), place), row) == 1 else 0


@inlined
def leave_slice(t: int, place: int, row: int) -> None:
    """Take a row out of an index of a subset."""
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
    """As ``find``, where the row is most likely that at a position of a slice; -1 where none is."""
    if position >= 0:
        row = row_at(t, load32(slice_rows(group), position))
        if key_equals(row, key):
            return row
    return find(t, key)


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
def grow_slots(t: int) -> int:
    """Double the slots; 0 where memory is out."""
    mask = load(t, MASK)
    slots = double_slots(load(t, SLOTS), mask, load(t, LOW), load(t, HIGH))
    if slots == 0:
        store(t, FAILED, 1)
        return 0
    store(t, SLOTS, slots)
    store(t, MASK, 2 * mask + 1)
    return 1


@outside
def make_room(t: int, more: int) -> int:
    """Have room for so many rows after the used ones, and for more; 0 where memory is out."""
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
    """Number of a fresh row with a zero payload, or -1 where memory is out."""
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


@outside
def link_row(t: int, number: int) -> None:
    """Enter a row, whose key is written, into the indexes that every row is in."""
    for i in range(load(t, LINKED)):
        if index_insert(load(load(t, INDEX_LIST), i), t, number) == 0:
            store(t, FAILED, 1)


@outside
def insert_row(t: int, h: int) -> int:
    """Number of a new row entered under a hash, its key still to be written; -1 where memory is out."""
    live = load(t, LIVE)
    if 32 * (live + 1) > FULL * (load(t, MASK) + 1) and grow_slots(t) == 0:
        return -1
    number = take_row(t)
    if number >= 0:
        fill_slot(load(t, SLOTS), load(t, MASK), h, number)
        store(t, LIVE, live + 1)
    return number


@inlined
def upsert(t: int, key: tuple[int, ...]) -> int:
    """Address of the row with the key, made with a zero payload where there was none.

    The address holds until the next ``upsert`` on this table.
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


@inlined
def is_zero(t: int, row: int) -> bool:
    """Whether the payload of a row is zero, that is, whether the row is absent."""
    start = load(t, KEY)
    for i in range(start, start + load(t, PAYLOAD)):
        if load(row, i) != 0:
            return False
    return True


@outside
def remove_row(t: int, row: int) -> None:
    """Take a row out of slots and indexes; its number becomes free and its payload zero."""
    if row == load(t, SCRATCH):
        return
    number = row_number(t, row)
    for i in range(load(t, INDEXES)):
        index_remove(load(load(t, INDEX_LIST), i), t, number)
    empty_slot(load(t, SLOTS), load(t, MASK), hash_words(row, load(t, KEY)), number)
    for i in range(load(t, WIDTH)):
        store(row, i, 0)
    store(row, 0, load(t, FREE))
    store(t, FREE, number + 1)
    store(t, LIVE, load(t, LIVE) - 1)


@outside
def journal_row(t: int, row: int) -> None:
    """Write the payload of a row into the journal: the slow path of ``touch``."""
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
    """Before a payload changes: note the old one, once per row and batch, where a journal is kept."""
    if load(t, JOURNALING) != 0:
        stamp = load(t, WIDTH) - 1
        if load(row, stamp) != load(t, EPOCH) and row != load(t, SCRATCH):
            store(row, stamp, load(t, EPOCH))
            journal_row(t, row)


@inlined
def settle(t: int, row: int) -> None:
    """After a payload changed to zero: remove the row, unless the journal still needs it."""
    if load(t, JOURNALING) == 0:
        remove_row(t, row)


@jit
def clear_journal(t: int) -> None:
    """Forget the journal; rows that the batch left at zero are removed."""
    entry = load(t, PAYLOAD) + 1
    for i in range(load(t, JOURNALED)):
        row = row_at(t, load(load(t, JOURNAL) + 8 * i * entry, 0))
        if is_zero(t, row):
            remove_row(t, row)
    store(t, JOURNALED, 0)
    store(t, EPOCH, load(t, EPOCH) + 1)


@jit
def table_bytes(t: int) -> int:
    """Bytes a table holds: header, rows handed out, slots, indexes, journal."""
    total = HEADER + load(t, USED) * load(t, WIDTH) + load(t, MASK) + 1
    total += load(t, JOURNAL_CAPACITY) * (load(t, PAYLOAD) + 1)
    for i in range(load(t, INDEXES)):
        total += load(load(load(t, INDEX_LIST), i), 0)
    return 8 * total
