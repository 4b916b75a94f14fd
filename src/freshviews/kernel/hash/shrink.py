"""Releases memory after removals, in bounded steps: packs rows and groups, and makes arrays of slots smaller."""

from __future__ import annotations

from freshviews.kernel.hash.entries import (
    CAPACITY,
    CLEARED,
    ENTRIES,
    FREE,
    FULL,
    HASHED,
    KEY,
    LIVE,
    MASK,
    NEXT,
    NEXT_HOMES,
    NEXT_MASK,
    NOT_PACKING,
    PACKED,
    PAYLOAD,
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
    holds_row,
    index_insert,
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
    LOW,
    NOWHERE,
    ORDERED,
    PENDING,
    UNLINKED,
)
from freshviews.kernel.memory.mapping import is_mapped, widen_block
from freshviews.kernel.memory.mem import (
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
from freshviews.kernel.memory.outside import outside

LEAST = 64
"""Work of a step without removals; the unit is one visited entry or slot."""
PER_REMOVAL = 32
MOVE = 4
"""Work to move an entry."""
PIECE = 1 << 18
"""Least words that are cleared or released at a time."""
SPARE = 64
"""Free numbers, and free places at the end of the array, that always stay; of slots, twice as many."""
MERGES = 256
"""Words of a block whose allocation makes glibc merge small freed blocks."""
AHEAD = 64
"""Numbers that are examined together."""

# Words of a move.
FROM = 0
TO = 1
HASH = 2
MOVE_WORDS = 3


@jit
def move_slot(slots: int, mask: int, h: int, number: int, to: int) -> None:
    """Make the slot of a number lead to the number ``to``."""
    i = h & mask
    while load(slots, i) & 0xFFFFFFFF != number + 1:
        i = (i + 1) & mask
    store(slots, i, h << 32 | (to + 1))


@jit
def move_row(t: int, number: int, to: int) -> None:
    """Move a row, except its slot, to a free number. An unlinked row enters its indexes if no flush would find it."""
    row = entry_at(t, to)
    copy_words(row, entry_at(t, number), load(t, WIDTH))
    leaves = load(t, UNLINKED) > to + 1
    for i in range(load(t, INDEXES)):
        x = load(load(t, INDEX_LIST), i)
        place = load(row, load(x, ROW_WORD))
        g = shift_right(place, 32)
        if place == NOWHERE:
            if leaves and index_insert(x, t, to) == 0:
                store(t, UNLINKED, to + 1)
        elif holds_row(x, g, place & 0xFFFFFFFF, number):
            store32(slice_rows(entry_at(x, g) + 8 * load(x, COUNT)), place & 0xFFFFFFFF, to)


@jit
def move_group(x: int, t: int, number: int, to: int) -> int:
    """Move a group, except its slot, to a free number; returns its number of rows."""
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
def foresee_moves(e: int, t: int, moves: int, n: int) -> None:
    """Hash the entries that will move, and prefetch their slots and, for rows, their places in indexes."""
    for k in range(n):
        move = moves + 8 * MOVE_WORDS * k
        entry = entry_at(e, load(move, FROM))
        h = hash_words(entry, load(e, HASHED))
        store(move, HASH, h)
        prefetch(load(e, SLOTS) + 8 * (h & load(e, MASK)))
        if e == t:
            for i in range(load(t, INDEXES)):
                x = load(load(t, INDEX_LIST), i)
                prefetch(entry_at(x, shift_right(load(entry, load(x, ROW_WORD)), 32)) + 8 * load(x, COUNT))
    if e == t:
        for i in range(load(t, INDEXES)):
            x = load(load(t, INDEX_LIST), i)
            for k in range(n):
                place = load(entry_at(t, load(moves, MOVE_WORDS * k + FROM)), load(x, ROW_WORD))
                g = shift_right(place, 32)
                if g < load(x, USED):
                    prefetch(slice_rows(entry_at(x, g) + 8 * load(x, COUNT)) + 4 * (place & 0xFFFFFFFF))


@jit
def move_entries(e: int, t: int, moves: int, n: int) -> int:
    """Move entries to free numbers; returns the number of rows of moved groups."""
    foresee_moves(e, t, moves, n)
    rows = 0
    for k in range(n):
        move = moves + 8 * MOVE_WORDS * k
        number, to, h = load(move, FROM), load(move, TO), load(move, HASH)
        if e == t:
            move_row(t, number, to)
        else:
            rows += move_group(e, t, number, to)
        move_slot(load(e, SLOTS), load(e, MASK), h, number, to)
        if h & load(e, NEXT_MASK) < load(e, NEXT_HOMES):
            move_slot(load(e, NEXT), load(e, NEXT_MASK), h, number, to)
    return rows


@jit
def begins_packing(e: int, t: int) -> bool:
    """Begin to pack entries if more than half of the numbers are free."""
    if load(e, USED) <= 2 * load(e, LIVE) + SPARE or (e == t and load(t, ORDERED) != 0):
        return False
    store(e, FREE, 0)
    store(e, PACKED, 0)
    store(e, TOUCHED, max(load(e, TOUCHED), load(e, USED)))
    return True


@inlined
def is_free(e: int, number: int) -> int:
    """1 if a number is free, else 0: as ``is_absent``, without a branch that depends on it if payloads are short."""
    payload = entry_at(e, number) + 8 * load(e, KEY)
    words = load(e, PAYLOAD)
    bits = load(payload, 0)
    if words > 1:
        bits |= load(payload, 1)
    if words > 2:
        bits |= load(payload, 2)
    for i in range(3, words):
        if bits != 0:
            break
        bits = load(payload, i)
    return 1 - shift_right(bits | -bits, 63)


@jit
def find_moves(e: int, moves: int) -> int:
    """Find entries at the end, and free numbers at the start to which they can move; returns the number of moves.

    USED and PACKED approach each other. No branch depends on whether a number is free, because it is unpredictable.
    """
    used = load(e, USED)
    low = load(e, PACKED)
    looks = min(AHEAD, used - low >> 1)
    if looks == 0:
        if is_absent(e, entry_at(e, low)):
            store(e, USED, low)
        else:
            store(e, PACKED, used)
        return 0
    found = 0
    for number in range(used - 1, used - 1 - looks, -1):
        store(moves, MOVE_WORDS * found + FROM, number)
        found += 1 - is_free(e, number)
    free = 0
    for number in range(low, low + looks):
        store(moves, MOVE_WORDS * free + TO, number)
        free += is_free(e, number)
    # The next call finds surplus entries and numbers again.
    store(e, USED, load(moves, MOVE_WORDS * free + FROM) + 1 if free < found else used - looks)
    store(e, PACKED, load(moves, MOVE_WORDS * found + TO) if found < free else low + looks)
    return min(found, free)


@jit
def pack(e: int, t: int, work: int) -> int:
    """Pack entries; returns the work that is left."""
    if load(e, PACKED) == NOT_PACKING and not begins_packing(e, t):
        return work
    if load(e, LIVE) == 0:
        store(e, USED, 0)
        store(e, FREE, 0)
    moves = allocate(MOVE_WORDS * (AHEAD + 1))
    if moves == 0:
        return work
    while work > 0 and load(e, PACKED) < load(e, USED):
        numbers = load(e, USED) - load(e, PACKED)
        n = find_moves(e, moves)
        work -= numbers - load(e, USED) + load(e, PACKED) + MOVE * n
        work -= move_entries(e, t, moves, n)
    release(moves)
    if load(e, PACKED) >= load(e, USED):
        store(e, PACKED, NOT_PACKING)
    return work


@jit
def cut(e: int, t: int, work: int) -> bool:
    """Shorten the array of entries if memory above the used ones was written; returns whether work may be left."""
    used = load(e, USED)
    width = load(e, WIDTH)
    capacity = load(e, CAPACITY)
    enough = used + FIRST_CAPACITY
    if min(load(e, TOUCHED), capacity) <= used + (used >> 4) + SPARE:
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
    """The least number of slots with at most 20 of 32 filled."""
    slots = 2 * FIRST_CAPACITY
    while 32 * live > 20 * slots:
        slots *= 2
    return slots


@jit
def fit_slots(e: int, work: int) -> bool:
    """Write fewer slots, or release old ones; returns whether work is left."""
    if load(e, NEXT) == 0:
        if load(e, PACKED) != NOT_PACKING or 32 * load(e, LIVE) > 5 * (load(e, MASK) + 1):
            return False
        slots = max(slots_for(load(e, LIVE)), 2 * SPARE)
        if 2 * slots > load(e, MASK) + 1:
            return False
        store(e, NEXT, reallocate(0, slots))
        if load(e, NEXT) == 0:
            return False
        store(e, NEXT_MASK, slots - 1)
        store(e, NEXT_HOMES, CLEARED)
    if 32 * load(e, LIVE) > FULL * (load(e, NEXT_MASK) + 1):
        drop_next(e)
    if load(e, NEXT_HOMES) == RELEASING:
        release_slots(e, max(PIECE, work))
    elif load(e, NEXT_HOMES) < 0:
        clear_slots(e, max(PIECE, work))
    else:
        homes = load(e, NEXT_MASK) + 1
        first = load(e, NEXT_HOMES)
        end = min(homes, first + 1 + max(work, LEAST) * homes // (load(e, MASK) + 1))
        for old in range(0, load(e, MASK) + 1, homes):
            copy_homes(e, old + first, old + end)
        store(e, NEXT_HOMES, end)
        if end == homes:
            replace_slots(e)
    return load(e, NEXT) != 0


@jit
def copy_homes(e: int, first: int, end: int) -> None:
    """Write slots for the entries whose homes among the old slots are from ``first`` to ``end``."""
    slots = load(e, SLOTS)
    mask = load(e, MASK)
    fewer = load(e, NEXT)
    fewer_mask = load(e, NEXT_MASK)
    i = first
    slot = load(slots, i)
    while i < end or slot != 0:
        if slot != 0:
            h = shift_right(slot, 32)
            home = h & mask
            if first <= home < end:
                fill_slot(fewer, fewer_mask, h, (slot & 0xFFFFFFFF) - 1)
        i += 1
        slot = load(slots, i & mask)


@jit
def replace_slots(e: int) -> None:
    """Replace the old slots by the complete new ones; later steps release the old ones."""
    old, mask = load(e, SLOTS), load(e, MASK)
    store(e, SLOTS, load(e, NEXT))
    store(e, MASK, load(e, NEXT_MASK))
    store(e, NEXT, 0 if is_mapped(old, load(e, LOW), load(e, HIGH)) else old)
    store(e, NEXT_MASK, mask)
    store(e, NEXT_HOMES, RELEASING if load(e, NEXT) != 0 else 0)


@jit
def clear_slots(e: int, words: int) -> None:
    """Set a piece of the new slots to zero: the first touch of each page takes time."""
    cleared = CLEARED - load(e, NEXT_HOMES)
    end = min(cleared + words, load(e, NEXT_MASK) + 1)
    for i in range(cleared, end):
        store(load(e, NEXT), i, 0)
    store(e, NEXT_HOMES, 0 if end == load(e, NEXT_MASK) + 1 else CLEARED - end)


@jit
def release_slots(e: int, words: int) -> None:
    """Release a piece of the old slots."""
    left = load(e, NEXT_MASK) + 1 - words
    cut_off = 0 if left <= 0 else reallocate(load(e, NEXT), left)
    if cut_off == 0:
        release(load(e, NEXT))
        store(e, NEXT_HOMES, 0)
    store(e, NEXT, cut_off)
    store(e, NEXT_MASK, left - 1)


@jit
def shrink_entries(e: int, t: int) -> None:
    """One step for the rows of a table, or the groups of an index of it."""
    work = LEAST + PER_REMOVAL * load(e, REMOVED)
    left = pack(e, t, work)
    unfinished = load(e, PACKED) != NOT_PACKING
    unfinished |= cut(e, t, work)
    unfinished |= fit_slots(e, left)
    store(e, REMOVED, 1 if unfinished else 0)


@outside
def shrink(t: int) -> None:
    """Release memory in one step, for a table with removed rows; the module says when that is allowed.

    ``shrink`` takes one step for a table and its indexes. ``shrink`` is called between batches. Then the journal of the
    table is empty, and nothing refers to a row number or an address (`docs/architecture.md`, Memory). The word
    ``REMOVED`` is not 0 if there may be work. A step costs at most a constant, plus a fraction of the cost of the
    removals since the last step. Rows and groups are *entries*, and both are shrunk by the same steps:

    1. If more than half of the numbers are free, entries are *packed*: the entry with the highest number moves to the
       lowest free number, until no lower number is free. A group moves in one piece, so a step may take longer than its
       bound, by the rows of one group. Several entries move together, so that their cache misses overlap.
    2. Memory of the array above the used entries is cut off if it is more than a sixteenth of the used part.
    3. If at most 5 of 32 slots are taken, a smaller array of slots is written, a range of homes in each step. Until the
       new array is complete, inserts and removals change both arrays (``entries.fill``), and lookups read the old
       array. Then the old array is released piece by piece, because the system needs time for each page.

    Blocks of an index shrink when a row leaves them (``index.shrink_block``). An array in a mapped image stays until it
    has become small. Rows of a table with an ordered index are not packed, because the shape of the tree depends on row
    numbers. A table with deferred inserts is not shrunk until they are flushed.

    Before ``shrink`` runs, all rows with a zero payload have been removed. So a zero payload marks a free number.
    """
    if load(t, JOURNALED) != 0 or load(t, PENDING) != 0:
        return
    if load(t, REMOVED) > LEAST:
        # A request for a larger block makes malloc merge small freed blocks: few at a time, if requested now.
        release(allocate(MERGES))
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
