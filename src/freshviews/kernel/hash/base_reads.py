"""Reads a stored base table: rows that break constraints, the changes of a batch, and rows by number or key."""

from __future__ import annotations

from freshviews.kernel.hash.base_store import (
    COLUMNS,
    FLAGS,
    NEGATIVE,
    PACKING,
    ROW_TABLE,
    SHARES,
    journaled_count,
    journaled_row,
    place_of,
    row_in,
)
from freshviews.kernel.hash.packing import code_at, pack, unpack
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import (
    HASHED,
    JOURNALED,
    KEY,
    LIVE,
    MASK,
    PENDING,
    SLOTS,
    USED,
    find_words,
    row_at,
    same_words,
)
from freshviews.kernel.memory.mem import inlined, jit, load, shift_right, store


@jit
def count_of(t: int, key: int, words: int) -> int:
    """The number of rows, with multiplicities, whose key begins with the words at an address.

    These include the hashed words of the table.
    """
    h = hash_words(key, load(t, HASHED))
    if words == load(t, KEY):
        row = find_words(t, key, words, h)
        return 0 if row == 0 else load(row, words)
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    i = h & mask
    slot = load(slots, i)
    count = 0
    while slot != 0:
        if shift_right(slot, 32) == h:
            row = row_at(t, (slot & 0xFFFFFFFF) - 1)
            if same_words(row, key, words):
                count += load(row, load(t, KEY))
        i = (i + 1) & mask
        slot = load(slots, i)
    return count


@jit
def missing(spec: int) -> int:
    """Address of the first touched row with a negative count, or 0."""
    if load(spec, FLAGS) & NEGATIVE == 0:
        return 0
    t = load(spec, ROW_TABLE)
    for entry in range(load(t, JOURNALED)):
        row = journaled_row(t, entry)
        if load(row, load(t, KEY)) < 0:
            return row
    return 0


@jit
def duplicate(spec: int, t: int, words: int) -> int:
    """Address of the first touched row whose first ``words`` words belong to more than one row, or 0.

    ``t`` is the row table or a side.
    """
    if t == load(spec, ROW_TABLE) and load(spec, FLAGS) & SHARES == 0:
        return 0
    key = load(t, KEY)
    for entry in range(load(t, JOURNALED)):
        row = journaled_row(t, entry)
        count = load(row, key)
        if count > 0 and (count > 1 or (words < key and count_of(t, row, words) > 1)):
            return row
    return 0


@jit
def orphan(
    child: int, parent: int, words: int, positions: int, scratch: int, packing: int, parent_words: int
) -> int:
    """Address of the first touched foreign-key value that child rows have and no parent has, or 0.

    A value has ``words`` columns; column ``i`` of the parent's key is word ``positions[i]`` of the child's. ``parent``
    holds keys of ``parent_words`` words, packed by ``packing``. ``scratch`` has four words per column.
    """
    key = scratch + 24 * words
    for entry in range(load(child, JOURNALED)):
        row = journaled_row(child, entry)
        if load(row, words) > 0:
            for i in range(words):
                store(scratch, i, load(row, load(positions, i)))
            fits = pack_one(packing, words, scratch, scratch + 8 * words, key)
            if not fits or count_of(parent, key, parent_words) <= 0:
                return row
    return 0


@jit
def deserted(
    parent: int, child: int, words: int, positions: int, scratch: int, packing: int, parent_words: int
) -> int:
    """Address of the first touched row whose key child rows still have and no parent has any more, or 0.

    Arguments: as for ``orphan``.
    """
    for entry in range(load(parent, JOURNALED)):
        row = journaled_row(parent, entry)
        if load(row, load(parent, KEY)) <= 0 and count_of(parent, row, parent_words) <= 0:
            for i in range(words):
                store(scratch, load(positions, i), code_at(packing, row, i))
            if count_of(child, scratch, words) > 0:
                return row
    return 0


@inlined
def pack_one(packing: int, columns: int, codes: int, batch: int, key: int) -> bool:
    """Pack the codes of the first columns of a row; False if one does not fit. ``batch`` has two words per column."""
    for i in range(columns):
        store(batch, 2 * i, codes + 8 * i)
        store(batch, 2 * i + 1, 1)
    return pack(packing, columns, batch, 0, 1, key, columns) != 0


@jit
def matching_row(spec: int, positions: int, count: int, key: int, start: int) -> int:
    """Scan from row ``start`` for a row with the codes ``key`` in the columns at ``positions``; returns its number, or
    -1."""
    t = load(spec, ROW_TABLE)
    for number in range(start, load(t, USED)):
        row = row_at(t, number)
        if load(row, load(t, KEY)) > 0:
            same = True
            for i in range(count):
                if code_at(load(spec, PACKING), row, load(positions, i)) != load(key, i):
                    same = False
                    break
            if same:
                return number
    return -1


def live_rows(t: int) -> int:
    """Number of distinct rows of a settled table."""
    return load(t, LIVE) + load(t, PENDING)


def used_rows(t: int) -> int:
    """The row number at which a scan of a table ends."""
    return load(t, USED)


def journal_length(t: int) -> int:
    """Number of rows touched since the journal was emptied."""
    return load(t, JOURNALED)


@jit
def copy_net(spec: int, out: int) -> int:
    """Write the codes and the change of count of every touched row to ``out``, row after row; returns the number of
    rows.

    Rows with an unchanged count are left out.
    """
    t = load(spec, ROW_TABLE)
    words = load(t, KEY)
    columns = load(spec, COLUMNS)
    rows = 0
    for entry in range(load(t, JOURNALED)):
        row = journaled_row(t, entry)
        change = load(row, words) - journaled_count(t, entry)
        if change != 0:
            unpack(load(spec, PACKING), columns, row, out)
            store(out, columns, change)
            out += 8 * (columns + 1)
            rows += 1
    return rows


@jit
def copy_rows(spec: int, start: int, end: int, out: int) -> int:
    """Write codes and count of the rows with numbers from ``start`` to ``end`` to ``out``; returns the number of rows.

    Equal rows whose inserts are deferred are written separately.
    """
    t = load(spec, ROW_TABLE)
    words = load(t, KEY)
    columns = load(spec, COLUMNS)
    rows = 0
    for number in range(start, min(end, load(t, USED))):
        row = row_at(t, number)
        if load(row, words) != 0:
            unpack(load(spec, PACKING), columns, row, out)
            store(out, columns, load(row, words))
            out += 8 * (columns + 1)
            rows += 1
    return rows


@jit
def places_of_keys(spec: int, columns: int, keys: int, n: int, scratch: int, out: int) -> None:
    """Write the place of the row that has each of ``n`` keys to ``out``, or 0.

    The table is settled and hashed by its primary key, of ``columns`` columns. ``keys`` has the address and the stride
    of each column of a key. ``scratch`` has room for a key.
    """
    t = load(spec, ROW_TABLE)
    words = load(t, HASHED)
    for k in range(n):
        place = 0
        # No row has a key that does not fit.
        if pack(load(spec, PACKING), columns, keys, k, 1, scratch, words) != 0:
            row = find_words(t, scratch, words, hash_words(scratch, words))
            if row != 0:
                place = place_of(t, row)
        store(out, k, place)


@jit
def row_of_key(spec: int, columns: int, room: int) -> int:
    """Whether a settled table has a row with a key, whose codes are written then.

    ``room`` begins with the codes of the key, of ``columns`` columns; then it has three words for each of these, which
    are overwritten, and the codes of the row.
    """
    t = load(spec, ROW_TABLE)
    words = load(t, HASHED)
    key = room + 24 * columns
    if not pack_one(load(spec, PACKING), columns, room, room + 8 * columns, key):
        return 0
    row = find_words(t, key, words, hash_words(key, words))
    if row == 0:
        return 0
    unpack(load(spec, PACKING), load(spec, COLUMNS), row, key + 8 * columns)
    return 1


@jit
def copy_places(spec: int, places: int, n: int, out: int) -> None:
    """Write codes and count of the rows at ``n`` places to ``out``, row after row."""
    t = load(spec, ROW_TABLE)
    columns = load(spec, COLUMNS)
    for k in range(n):
        row = row_in(t, load(places, k))
        unpack(load(spec, PACKING), columns, row, out)
        store(out, columns, load(row, load(t, KEY)))
        out += 8 * (columns + 1)
