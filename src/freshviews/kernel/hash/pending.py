"""Pending rows: rows that are appended to a table, and entered into slots and indexes when something first looks.

A table that is only added to for a long time, by large batches, pays for slots and indexes that nobody reads. Its
rows are appended instead: the last ``PENDING`` of its used rows are in no slot and in no index, and several rows
may have one key. What they hold, added up by key, is what the table holds, so a scan that adds up, or copies rows
with their multiplicities, may take them as they lie; whatever needs a row by its key, a slice, or each key once
calls ``enter_pending`` first, which enters them all. No row is entered twice, so bounds hold amortised.

- At most ``MOST`` rows are left pending, so that none who enters them waits long: a batch that comes beyond has as
  many of the oldest entered as it appends.
- Memory stays proportional to the distinct keys. At ``FIRST_LOOK`` rows, and at every doubling, ``repeats``
  estimates how many keys there are; where more than an eighth of the rows are repetitions, all are entered, and
  nothing is appended before the table has twice as many rows.
- Sums do not overflow when rows are merged: while rows may be appended, no component of an entered row is as
  large as ``LARGE``, and those of all pending rows add up to less (``ROOM``). A table that once had a larger one
  is never appended to again. So an overflow shows in the batch that makes it.
- Who appends: ``base_store`` and triggers, see ``codegen.writing.appending``. Tables with a journal or an ordered index
  are none of theirs, but for the rows of a base table, which are entered before any of them is journaled.

Where memory is out, entering stops between two rows: the table is whole, with the rest still pending.
"""

from __future__ import annotations

from freshviews.kernel.hash.index import index_insert, index_remove
from freshviews.kernel.hash.slots import fill_slot, hash_words
from freshviews.kernel.hash.table import (
    APPEND_FROM,
    CAPACITY,
    EAGER_BELOW,
    ENTERED,
    FAILED,
    FREE,
    FULL,
    INDEX_LIST,
    KEY,
    LARGE,
    LINKED,
    LIVE,
    LOOK_AT,
    MASK,
    MOST,
    PAYLOAD,
    PENDING,
    ROOM,
    ROWS,
    SCRATCH,
    SLOTS,
    USED,
    WIDTH,
    find_words,
    grow_slots,
    is_zero,
    make_room,
    remove_row,
    row_at,
)
from freshviews.kernel.memory.mem import (
    allocate,
    copy_words,
    inlined,
    jit,
    load,
    mix,
    prefetch,
    release,
    store,
    write_key,
)
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.scalar.payload import plus

NEVER = 2**63 - 1
AHEAD = 64
"""Rows whose slots are fetched at once."""
SAMPLE = 2048
"""Keys that ``repeats`` looks at, about, where all rows have another one."""


@inlined
def fits(t: int, row: int) -> bool:
    """Whether the payload of a row that is pending leaves sums within bounds; if so, it is counted."""
    room = load(t, ROOM)
    for i in range(load(t, KEY), load(t, KEY) + load(t, PAYLOAD)):
        word = load(row, i)
        if word > room or word < -room:
            return False
        room -= word if word >= 0 else -word
    store(t, ROOM, room)
    return True


@inlined
def is_large(t: int, row: int) -> bool:
    """Whether a component of a row is so large that a sum with it may overflow."""
    for i in range(load(t, KEY), load(t, KEY) + load(t, PAYLOAD)):
        word = load(row, i)
        if word >= LARGE or word <= -LARGE:
            return True
    return False


@jit
def link_all(t: int, number: int) -> int:
    """Enter a row into every index, or, where memory is out, into none: 0 then."""
    indexes = load(t, INDEX_LIST)
    for i in range(load(t, LINKED)):
        if index_insert(load(indexes, i), t, number) == 0:
            for k in range(i):
                index_remove(load(indexes, k), t, number)
            return 0
    return 1


@jit
def enter_row(t: int, number: int, to: int, h: int, status: int) -> int:
    """Enter one row, moved to number ``to`` or merged: 1 or 0; -1 where memory is out, nothing done."""
    row = row_at(t, number)
    words = load(t, KEY)
    found = find_words(t, row, words, h)
    if found == 0:
        if 32 * (load(t, LIVE) + 1) > FULL * (load(t, MASK) + 1) and grow_slots(t) == 0:
            return -1
        if to != number:
            copy_words(row_at(t, to), row, load(t, WIDTH))
        if link_all(t, to) == 0:
            return -1
        fill_slot(load(t, SLOTS), load(t, MASK), h, to)
        store(t, LIVE, load(t, LIVE) + 1)
        if is_large(t, row_at(t, to)):
            store(t, EAGER_BELOW, NEVER)
        return 1
    for i in range(words, words + load(t, PAYLOAD)):
        store(found, i, plus(load(found, i), load(row, i), status))
    if is_large(t, found):
        store(t, EAGER_BELOW, NEVER)
    if is_zero(t, found):
        remove_row(t, found)
    return 0


@inlined
def foresee_block(t: int, number: int, block: int, hashes: int) -> None:
    """Write the hashes of a block of rows, and have their slots fetched."""
    words = load(t, KEY)
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    for i in range(block):
        h = hash_words(row_at(t, number + i), words)
        store(hashes, i, h)
        prefetch(slots + 8 * (h & mask))


@inlined
def free_pending(t: int, number: int) -> None:
    """Give the number of a row that is in no slot free."""
    row = row_at(t, number)
    for i in range(load(t, WIDTH)):
        store(row, i, 0)
    store(row, 0, load(t, FREE))
    store(t, FREE, number + 1)


@outside
def enter_oldest(t: int, count: int, status: int) -> int:
    """Enter so many of the pending rows, the oldest, in their places; -1 where memory is out, the rest pending."""
    pending = load(t, PENDING)
    return _enter(t, load(t, USED) - pending + min(count, pending), 0, status)


@outside
def enter_pending(t: int, status: int) -> int:
    """Enter all pending rows, equal ones merged; how many there were, or -1 where memory is out.

    An overflow is told at ``status`` (see ``payload``).
    """
    pending = load(t, PENDING)
    if pending == 0:
        return 0
    if _enter(t, load(t, USED), 1, status) < 0:
        return -1
    store(t, ROOM, LARGE)
    return pending


@outside
def _enter(t: int, end: int, together: int, status: int) -> int:
    """Enter the pending rows before a number; -1 where memory is out, the rest pending. ``together``: rows move up to
    where others were merged; else each stays in its place, and the numbers of those are free."""
    first = load(t, USED) - load(t, PENDING)
    number = first
    to = first
    whole = 1
    hashes = allocate(AHEAD)
    if hashes == 0:
        store(t, FAILED, 1)
        return -1
    while number < end and whole != 0:
        block = min(AHEAD, end - number)
        foresee_block(t, number, block, hashes)
        for i in range(block):
            moved = 0
            if not is_zero(t, row_at(t, number)):
                moved = enter_row(t, number, to, load(hashes, i), status)
                if moved < 0:
                    whole = 0
                    break
            if together != 0:
                to += moved
            else:
                if moved == 0:
                    free_pending(t, number)
                to += 1
            number += 1
    release(hashes)
    left = load(t, USED) - number
    if to != number:
        for i in range(left):
            copy_words(row_at(t, to + i), row_at(t, number + i), load(t, WIDTH))
    store(t, USED, to + left)
    store(t, PENDING, left)
    store(t, ENTERED, load(t, ENTERED) + number - first)
    if whole == 0:
        store(t, FAILED, 1)
        return -1
    return 0


@jit
def repeats(t: int) -> bool:
    """Whether more than an eighth of the rows have a key that another row has too; an estimate.

    It counts the different ones among the keys whose hash ends in so many zeros: that of every key comes once,
    however often it is there, so the estimate of all keys is good to a few hundredths.
    """
    rows = load(t, LIVE) + load(t, PENDING)
    part = 1
    while rows > part * SAMPLE:
        part *= 2
    size = 4 * SAMPLE
    seen = allocate(size)
    if seen == 0:
        return False
    words = load(t, KEY)
    width = 8 * load(t, WIDTH)
    row = load(t, ROWS)
    different = 0
    for _ in range(load(t, USED)):
        h = hash_words(row, words)
        if h & (part - 1) == 0 and not is_zero(t, row):
            key = 1
            for k in range(words):
                key = mix(key, load(row, k))
            i = key & (size - 1)
            key |= 1
            while load(seen, i) != 0 and load(seen, i) != key:
                i = (i + 1) & (size - 1)
            if load(seen, i) == 0:
                store(seen, i, key)
                different += 1
                if different == 2 * SAMPLE:
                    break
        row += width
    release(seen)
    return 8 * different * part < 7 * rows


@outside
def look(t: int, status: int) -> int:
    """At a doubling of the rows: enter all where many are equal. 1 where rows may be appended, -1 where memory
    is out."""
    if load(t, LIVE) + load(t, PENDING) < load(t, LOOK_AT):
        return 1
    if not repeats(t):
        store(t, LOOK_AT, 2 * (load(t, LIVE) + load(t, PENDING)))
        return 1
    if enter_pending(t, status) < 0:
        return -1
    store(t, EAGER_BELOW, max(load(t, EAGER_BELOW), 2 * load(t, LIVE)))
    store(t, LOOK_AT, max(2 * load(t, LIVE), load(t, LOOK_AT)))
    return 0


@outside
def go_on(t: int, status: int) -> int:
    """After the payloads have grown large: enter all. Whether rows may be appended; also where memory is out."""
    return 1 if enter_pending(t, status) < 0 or load(t, LIVE) >= load(t, EAGER_BELOW) else 0


@outside
def decide(t: int, multiplicities: int, stride: int, n: int, status: int) -> int:
    """``begin_append`` where rows are pending or the batch is large."""
    appends = 1 if load(t, LIVE) >= load(t, EAGER_BELOW) else 0
    for i in range(n):
        if load(multiplicities, i * stride) <= 0:
            appends = 0
            break
    if appends == 0:
        return -1 if enter_pending(t, status) < 0 else 0
    beyond = load(t, PENDING) + n - load(t, MOST)
    if beyond > 0 and enter_oldest(t, beyond, status) < 0:
        return -1
    return 1


@inlined
def begin_append(t: int, multiplicities: int, stride: int, n: int, status: int) -> int:
    """Whether a batch that is only added to a table is appended: it is large, or rows are pending, and all of it is
    inserted. 0 where not, all rows entered; -1 where memory is out."""
    if n < load(t, APPEND_FROM) and load(t, PENDING) == 0:
        return 0
    return decide(t, multiplicities, stride, n, status)


@inlined
def append_row(t: int, key: tuple[int, ...]) -> int:
    """Address of a new pending row with the key and a zero payload; ``hold`` follows when that is written."""
    used = load(t, USED)
    if used == load(t, CAPACITY) and make_room(t, 1) == 0:
        return load(t, SCRATCH)
    row = row_at(t, used)
    write_key(row, key)
    for i in range(len(key), load(t, WIDTH)):
        store(row, i, 0)
    store(t, USED, used + 1)
    store(t, PENDING, load(t, PENDING) + 1)
    return row


@inlined
def hold(t: int, row: int, status: int) -> int:
    """After the payload of a pending row is written: whether the rest of the batch is appended too.

    Rows may be entered by this; an overflow, which is then that of the row, is told at ``status``.
    """
    if not fits(t, row):
        return go_on(t, status)
    if load(t, LIVE) + load(t, PENDING) >= load(t, LOOK_AT):
        return look(t, status) & 1
    return 1


@inlined
def note_large(t: int, row: int) -> None:
    """After an entered row of a table that others append to was changed: never append where it is large."""
    if is_large(t, row):
        store(t, EAGER_BELOW, NEVER)
