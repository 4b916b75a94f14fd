"""Defers inserts: appends rows to a table, and adds them to slots and indexes when something first looks rows up.

- A *pending* row is in no slot and no index; ``enter_slots`` adds it to the slots.
- An *unlinked* row is in a slot and in no index; ``enter_pending`` adds it to the indexes.

``docs/architecture.md``, Memory, gives the time bounds.
"""

from __future__ import annotations

from freshviews.kernel.hash.entries import FULL, entry_at, fill, free_number, grow_slots
from freshviews.kernel.hash.index import COUNT, ROW_WORD, ROWS_COUNT, index_insert, row_hash, slice_rows
from freshviews.kernel.hash.index import MASK as GROUP_MASK
from freshviews.kernel.hash.index import SLOTS as GROUP_SLOTS
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import (
    APPEND_FROM,
    CAPACITY,
    EAGER_BELOW,
    ENTERED,
    FAILED,
    INDEX_LIST,
    KEY,
    LARGE,
    LINKED,
    LIVE,
    LOOK_AT,
    MASK,
    MOST,
    NOWHERE,
    PAYLOAD,
    PENDING,
    ROOM,
    ROWS,
    SCRATCH,
    SLOTS,
    UNLINKED,
    USED,
    WIDTH,
    find_words,
    is_zero,
    make_room,
    mark_unlinked,
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
"""Rows whose slots are prefetched together."""
SAMPLE = 2048
"""Approximate number of keys that ``repeats`` samples if all keys are different."""


@inlined
def fits(t: int, row: int) -> bool:
    """Whether the payload of a deferred row keeps sums within bounds; if so, ROOM shrinks by it."""
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


@inlined
def unlinked_rows(t: int) -> int:
    """The number of rows to examine to find the unlinked ones."""
    first = load(t, UNLINKED)
    return 0 if first == 0 else max(load(t, USED) - load(t, PENDING) - first + 1, 0)


@inlined
def is_deferred(t: int) -> bool:
    """Whether rows are pending or may be unlinked."""
    return load(t, PENDING) != 0 or load(t, UNLINKED) != 0


@jit
def link_some(t: int, x: int, first: int, n: int, hashes: int) -> int:
    """Insert ``n`` rows into an index, except those that it has; 0 without memory.

    Each loop waits for memory once for all rows: for slots, groups, ends of blocks. ``hashes`` has room for ``n``
    words.
    """
    place = load(x, ROW_WORD)
    for r in range(n):
        row = row_at(t, first + r)
        h = -1
        if load(row, place) == NOWHERE:
            h = row_hash(x, row)
            prefetch(load(x, GROUP_SLOTS) + 8 * (h & load(x, GROUP_MASK)))
        store(hashes, r, h)
    for r in range(n):
        h = load(hashes, r)
        if h >= 0:
            slot = load(load(x, GROUP_SLOTS), h & load(x, GROUP_MASK))
            if slot != 0:
                prefetch(entry_at(x, (slot & 0xFFFFFFFF) - 1) + 8 * load(x, COUNT))
    for r in range(n):
        h = load(hashes, r)
        if h >= 0:
            slot = load(load(x, GROUP_SLOTS), h & load(x, GROUP_MASK))
            if slot != 0:
                group = entry_at(x, (slot & 0xFFFFFFFF) - 1) + 8 * load(x, COUNT)
                prefetch(slice_rows(group) + 4 * load(group, ROWS_COUNT))
    for r in range(n):
        if load(hashes, r) >= 0 and index_insert(x, t, first + r) == 0:
            return 0
    return 1


@jit
def link_oldest(t: int, count: int) -> int:
    """Insert the unlinked rows among the ``count`` oldest into the indexes;

    -1 without memory, and the rest stays unlinked.
    """
    first = load(t, UNLINKED) - 1
    end = load(t, USED) - load(t, PENDING)
    if first + count < end:
        end = first + count
    hashes = allocate(AHEAD)
    whole = hashes != 0
    while first < end and whole:
        n = min(AHEAD, end - first)
        for i in range(load(t, LINKED)):
            if whole:
                whole = link_some(t, load(load(t, INDEX_LIST), i), first, n, hashes) != 0
        if whole:
            first += n
    release(hashes)
    if not whole:
        store(t, FAILED, 1)
        store(t, UNLINKED, first + 1)
        return -1
    store(t, UNLINKED, 0 if first >= load(t, USED) - load(t, PENDING) else first + 1)
    return 0


@jit
def enter_row(t: int, number: int, to: int, h: int, status: int) -> int:
    """Flush a pending row to the slots: 1 if it moved to number ``to``, 0 if it was merged, -1 without memory, and then
    nothing changes."""
    row = row_at(t, number)
    words = load(t, KEY)
    found = find_words(t, row, words, h)
    if found == 0:
        if 32 * (load(t, LIVE) + 1) > FULL * (load(t, MASK) + 1) and grow_slots(t) == 0:
            return -1
        if to != number:
            copy_words(row_at(t, to), row, load(t, WIDTH))
        mark_unlinked(t, to)
        fill(t, h, to)
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
    """Write the hashes of a block of rows and prefetch their slots."""
    words = load(t, KEY)
    slots = load(t, SLOTS)
    mask = load(t, MASK)
    for i in range(block):
        h = hash_words(row_at(t, number + i), words)
        store(hashes, i, h)
        prefetch(slots + 8 * (h & mask))


@inlined
def free_pending(t: int, number: int) -> None:
    """Free the number of a row that is in no slot."""
    row = row_at(t, number)
    for i in range(load(t, WIDTH)):
        store(row, i, 0)
    free_number(t, number)


@outside
def enter_oldest(t: int, count: int, status: int) -> int:
    """Flush the ``count`` oldest deferred rows in place; -1 without memory, the rest still deferred."""
    unlinked = min(unlinked_rows(t), max(count, 0))
    if unlinked != 0:
        store(t, ENTERED, load(t, ENTERED) + unlinked)
        if link_oldest(t, unlinked) < 0:
            return -1
    pending = load(t, PENDING)
    more = min(count - unlinked, pending)
    if more <= 0:
        return 0
    if _enter(t, load(t, USED) - pending + more, 0, status) < 0:
        return -1
    return link_oldest(t, more) if load(t, UNLINKED) != 0 else 0


@outside
def enter_slots(t: int, status: int) -> int:
    """Flush all pending rows to the slots and merge equal ones; callers that need a slice use ``enter_pending``.

    Returns how many there were; -1 without memory. An overflow is stored at ``status`` (see ``scalar.payload``).
    """
    pending = load(t, PENDING)
    if pending == 0:
        return 0
    if _enter(t, load(t, USED), 1, status) < 0:
        return -1
    store(t, ROOM, LARGE)
    # Only as many rows are flushed as new ones arrive.
    beyond = unlinked_rows(t) - load(t, MOST)
    return -1 if beyond > 0 and link_oldest(t, beyond) < 0 else pending


@outside
def enter_pending(t: int, status: int) -> int:
    """Flush all deferred rows, to slots and indexes. Returns how many were pending; -1 without memory.

    An overflow is stored at ``status`` (see ``scalar.payload``).

    The content of the table is the sum of its rows by key. A row is flushed at most once to the slots and once to an
    index, so time bounds hold amortised. If memory runs out, flushing stops between two rows: the table is consistent,
    and the remaining rows stay deferred.
    """
    if not is_deferred(t):
        return 0
    store(t, ENTERED, load(t, ENTERED) + unlinked_rows(t))
    pending = enter_slots(t, status)
    if pending < 0 or (load(t, UNLINKED) != 0 and link_oldest(t, unlinked_rows(t)) < 0):
        return -1
    return pending


@outside
def _enter(t: int, end: int, together: int, status: int) -> int:
    """Flush the pending rows with numbers below ``end`` to the slots; -1 without memory, the rest still pending.

    With ``together``, rows move up over merged ones. Otherwise each keeps its number, and those of merged rows are
    freed.
    """
    first = load(t, USED) - load(t, PENDING)
    number = first
    to = first
    whole = 1
    hashes = allocate(AHEAD)
    if hashes == 0:
        store(t, FAILED, 1)
        return -1
    if load(t, LINKED) != 0 and (load(t, UNLINKED) == 0 or load(t, UNLINKED) > first + 1):
        store(t, UNLINKED, first + 1)
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
    """Estimates whether more than an eighth of the rows repeat the key of another row.

    Samples the keys whose hash ends in a number of zero bits. All rows of one key are in the sample or none, so the
    estimate of the number of keys is within a few hundredths.
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
def flush_repeats(t: int, status: int) -> int:
    """At a doubling of the rows, flush if many are equal. 1 if inserts may be deferred, 0 if not, -1 without memory."""
    if load(t, LIVE) + load(t, PENDING) < load(t, LOOK_AT):
        return 1
    if not repeats(t):
        store(t, LOOK_AT, 2 * (load(t, LIVE) + load(t, PENDING)))
        return 1
    if enter_slots(t, status) < 0:
        return -1
    store(t, EAGER_BELOW, max(load(t, EAGER_BELOW), 2 * load(t, LIVE)))
    store(t, LOOK_AT, max(2 * load(t, LIVE), load(t, LOOK_AT)))
    return 0


@outside
def flush_large(t: int, status: int) -> int:
    """Flush after payloads have become large; 1 if inserts may still be deferred, or without memory."""
    return 1 if enter_slots(t, status) < 0 or load(t, LIVE) >= load(t, EAGER_BELOW) else 0


@outside
def decide_append(t: int, multiplicities: int, stride: int, n: int, status: int) -> int:
    """The slow path of ``begin_append``: rows are deferred already, or the batch is large."""
    appends = 1 if load(t, LIVE) >= load(t, EAGER_BELOW) else 0
    for i in range(n):
        if load(multiplicities, i * stride) <= 0:
            appends = 0
            break
    if appends == 0:
        return -1 if enter_slots(t, status) < 0 else 0
    beyond = unlinked_rows(t) + load(t, PENDING) + n - load(t, MOST)
    if beyond > 0 and enter_oldest(t, beyond, status) < 0:
        return -1
    return 1


@inlined
def begin_append(t: int, multiplicities: int, stride: int, n: int, status: int) -> int:
    """1 if the inserts of a batch are deferred, 0 if not and all rows are in the slots, -1 without memory.

    Defers if the batch only inserts, and is large or the table has deferred rows.

    - At most ``MOST`` rows are deferred. At this limit, a batch flushes as many of the oldest rows as it appends.
    - At ``FIRST_LOOK`` rows, and whenever the rows have doubled, ``repeats`` estimates the number of keys. If more than
      an eighth of the rows are repetitions, all rows are flushed, and no insert is deferred until the table has
      doubled.
    - Merging rows cannot overflow. The components of all deferred rows add up to less than ``LARGE`` in magnitude;
      ``ROOM`` is the remaining amount. The components of every other row are less than ``LARGE``, too. A table that
      once had a larger component never defers again.
    - ``base_store`` and triggers (``codegen.writing.appending``) append rows. A table with an ordered index never has
      deferred rows. A table with a journal has none either. The row table of a base table is an exception: it flushes
      deferred rows before it journals a row.
    """
    if n < load(t, APPEND_FROM) and load(t, PENDING) == 0:
        return 0
    return decide_append(t, multiplicities, stride, n, status)


@inlined
def append_row(t: int, key: tuple[int, ...]) -> int:
    """Address of a new deferred row with the key and a zero payload; ``hold`` follows when that is written."""
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
    """Call it after the payload of a deferred row is written; 1 if the rest of the batch is deferred too.

    May flush; an overflow, caused by this row, is stored at ``status``.
    """
    if not fits(t, row):
        return flush_large(t, status)
    if load(t, LIVE) + load(t, PENDING) >= load(t, LOOK_AT):
        return flush_repeats(t, status) & 1
    return 1


@inlined
def note_large(t: int, row: int) -> None:
    """Call it after another row of a table with deferred inserts changed: never defer again if the row is large."""
    if is_large(t, row):
        store(t, EAGER_BELOW, NEVER)
