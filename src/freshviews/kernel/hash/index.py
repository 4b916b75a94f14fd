"""Finds the rows of a table that have given values in some columns of the key: a secondary index.

The index has a *group* per combination of values in these columns. The *block* of a group lists the numbers of the
rows that have these values.
"""

from __future__ import annotations

from freshviews.kernel.hash import entries
from freshviews.kernel.hash.entries import REMOVED, empty, entry_at, fill, free_number, grow_slots
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.memory.mapping import is_mapped, release_block, widen_block
from freshviews.kernel.memory.mem import (
    allocate,
    copy_words,
    hash_key,
    inlined,
    jit,
    key_equals,
    load,
    load32,
    mix,
    move_words,
    reallocate,
    release,
    same8,
    shift_right,
    store,
    store32,
)
from freshviews.kernel.memory.outside import outside

# Words of the header: those of ``entries``, then these.
GROUPS = entries.ENTRIES
CAPACITY = entries.CAPACITY
USED = entries.USED
FREE = entries.FREE
LIVE = entries.LIVE
SLOTS = entries.SLOTS
MASK = entries.MASK
WIDTH = entries.WIDTH
COUNT = entries.KEY  # positions of the key that are indexed
LOW = entries.LOW
HIGH = entries.HIGH
BLOCK_WORDS = entries.FIRST_OWN  # words of all blocks outside groups, rounded as by the allocator
ROW_WORD = entries.FIRST_OWN + 1  # the word of a row that belongs to this index
DIGESTED = entries.FIRST_OWN + 2  # 1 + the key position whose words have digests in blocks; 0 without digests
LEAST_BLOCK = entries.FIRST_OWN + 3  # blocks do not shrink below this capacity
POSITIONS = entries.FIRST_OWN + 4  # the positions follow

# Words of a group: the key, then these.
ROWS_COUNT = 0
BLOCK_CAPACITY = 1
BLOCK = 2  # bytes from the group's count to the block; the block itself if the capacity is INLINE
GROUP_EXTRA = 3

INLINE = 2
SCANNED = 512
"""Most rows of a slice whose digests are scanned, which takes as long as one cache miss."""
EIGHT = 8
"""Digests that are compared at once; the capacity of a block is a multiple of it."""
CUT_IN_PLACE = 1 << 14
"""Words above which a block that shrinks is cut off instead of copied: this releases pages and needs no new ones."""
SPARE = 8
"""A block shrinks when its free places exceed half of it by this number."""
FIRST_GROUPS = 8
# Words of a table's header that an index reads.
TABLE_ROWS = entries.ENTRIES
TABLE_WIDTH = entries.WIDTH


def new_index(positions: int, count: int, row_word: int, digested: int) -> int:
    """Handle of an empty index on the key positions listed in a word block.

    ``digested`` is 1 + the position whose words have digests, or 0.

    A group stands for the rows that agree on the indexed positions. Its words are the key part, the number of rows, and
    the capacity and the distance of its block. A block has the row numbers of a group in contiguous half words, so a
    loop over a slice reads memory in order. A block of up to two rows lies in the group itself. A group stores the
    distance to a larger block, not its address. So an index works at any address where its file is mapped. A row stores
    the number of its group and its position in the block. So removal is O(1): the last row of the block moves into the
    gap.
    """
    x = allocate(POSITIONS + count)
    store(x, SLOTS, allocate(2 * FIRST_GROUPS))
    store(x, MASK, 2 * FIRST_GROUPS - 1)
    store(x, GROUPS, allocate(FIRST_GROUPS * (count + GROUP_EXTRA)))
    store(x, CAPACITY, FIRST_GROUPS)
    store(x, WIDTH, count + GROUP_EXTRA)
    store(x, COUNT, count)
    store(x, entries.HASHED, count)
    store(x, entries.PAYLOAD, 1)
    store(x, entries.PACKED, entries.NOT_PACKING)
    store(x, ROW_WORD, row_word)
    store(x, DIGESTED, digested)
    for i in range(count):
        store(x, POSITIONS + i, load(positions, i))
    return x


@jit
def index_release(x: int) -> None:
    """Release all memory of an index."""
    count = load(x, COUNT)
    for g in range(load(x, USED)):
        group = load(x, GROUPS) + 8 * g * (count + GROUP_EXTRA) + 8 * count
        if load(group, BLOCK_CAPACITY) > INLINE:
            release_block(slice_rows(group), load(x, LOW), load(x, HIGH))
    release_block(load(x, SLOTS), load(x, LOW), load(x, HIGH))
    release_block(load(x, entries.NEXT), load(x, LOW), load(x, HIGH))
    release_block(load(x, GROUPS), load(x, LOW), load(x, HIGH))
    release(x)


@inlined
def slice_of(x: int, key: tuple[int, ...]) -> int:
    """The slice of a key: address of the row count of its group; 0 if no row has the key."""
    h = hash_key(key)
    slots = load(x, SLOTS)
    mask = load(x, MASK)
    words = len(key)
    i = h & mask
    while True:
        slot = load(slots, i)
        if slot == 0:
            return 0
        if shift_right(slot, 32) == h:
            group = load(x, GROUPS) + 8 * ((slot & 0xFFFFFFFF) - 1) * (words + GROUP_EXTRA)
            if key_equals(group, key):
                return group + 8 * words
        i = (i + 1) & mask


@inlined
def slice_count(group: int) -> int:
    """Number of rows of a slice; 0 if absent."""
    return 0 if group == 0 else load(group, ROWS_COUNT)


@inlined
def slice_rows(group: int) -> int:
    """Address of the row numbers of a slice, which are half words."""
    if group == 0:
        return 0
    return group + (load(group, BLOCK) if load(group, BLOCK_CAPACITY) > INLINE else 8 * BLOCK)


@inlined
def digest_of(word: int) -> int:
    """31 bits of the hash of a word.

    An index on all positions except one can store *digests*: 31-bit hashes of the word at the remaining position. A
    block has the digests after its row numbers. To find a word in a slice, its digest is compared with the digests of
    the block, eight at a time. Digests are adjacent in memory, while reading each row would be a cache miss.
    """
    return mix(0, word) & 0x7FFFFFFF


@inlined
def is_scanned(group: int) -> int:
    """1 if a slice has digests and is small enough to scan them; else 0."""
    if group == 0:
        return 0
    return 1 if load(group, BLOCK_CAPACITY) > INLINE and load(group, ROWS_COUNT) <= SCANNED else 0


@inlined
def digest_at(group: int, number: int, t: int, position: int) -> int:
    """The digest of row ``number`` of a slice; ``position`` is the key position that has digests."""
    if load(group, BLOCK_CAPACITY) > INLINE:
        return load32(slice_rows(group) + 4 * load(group, BLOCK_CAPACITY), number)
    row = load(t, TABLE_ROWS) + 8 * load32(slice_rows(group), number) * load(t, TABLE_WIDTH)
    return digest_of(load(row, position))


@inlined
def position_of(group: int, digest: int) -> int:
    """Position of the first row of a slice with a digest, or -1. Requires ``is_scanned``."""
    digests = slice_rows(group) + 4 * load(group, BLOCK_CAPACITY)
    count = load(group, ROWS_COUNT)
    for start in range(0, count, EIGHT):
        same = same8(digests + 4 * start, digest)
        if same != 0:
            position = start
            while same & 1 == 0:
                same >>= 1
                position += 1
            if position < count:
                return position
    return -1


@inlined
def words_of_block(x: int, capacity: int) -> int:
    """Number of words of a block that lies outside its group."""
    return capacity if load(x, DIGESTED) != 0 else capacity >> 1


@inlined
def slice_of_row(x: int, row: int) -> int:
    """The slice of a row that is in the index: address of the row count of its group."""
    count = load(x, COUNT)
    g = shift_right(load(row, load(x, ROW_WORD)), 32)
    return load(x, GROUPS) + 8 * (g * (count + GROUP_EXTRA) + count)


@inlined
def position_of_row(x: int, row: int) -> int:
    """The position in its slice of a row that is in the index."""
    return load(row, load(x, ROW_WORD)) & 0xFFFFFFFF


@inlined
def slice_size(x: int, row: int) -> int:
    """Number of rows in the slice of a row that is in the index."""
    return load(slice_of_row(x, row), ROWS_COUNT)


@jit
def row_hash(x: int, row: int) -> int:
    """Hash of the indexed words of a row; equals ``hash_key`` of them."""
    state = 0
    for i in range(load(x, COUNT)):
        state = mix(state, load(row, load(x, POSITIONS + i)))
    return state & 0xFFFFFFFF


@jit
def group_of(x: int, row: int, h: int) -> int:
    """Number of the group of a row, or -1."""
    slots = load(x, SLOTS)
    mask = load(x, MASK)
    count = load(x, COUNT)
    i = h & mask
    while True:
        slot = load(slots, i)
        if slot == 0:
            return -1
        if shift_right(slot, 32) == h:
            g = (slot & 0xFFFFFFFF) - 1
            group = load(x, GROUPS) + 8 * g * (count + GROUP_EXTRA)
            same = True
            for k in range(count):
                if load(group, k) != load(row, load(x, POSITIONS + k)):
                    same = False
                    break
            if same:
                return g
        i = (i + 1) & mask


@jit
def put_groups(x: int, groups: int) -> None:
    """Set a new address of the groups. Blocks do not move, so their distances change."""
    old = load(x, GROUPS)
    store(x, GROUPS, groups)
    if groups != old:
        for g in range(load(x, USED)):
            group = entry_at(x, g) + 8 * load(x, COUNT)
            if load(group, BLOCK_CAPACITY) > INLINE:
                store(group, BLOCK, load(group, BLOCK) - (groups - old))


@jit
def grow_groups(x: int) -> int:
    """Grow the array of groups by half; 0 without memory."""
    used = load(x, USED)
    width = load(x, WIDTH)
    capacity = used + (used >> 1) + FIRST_GROUPS
    groups = widen_block(load(x, GROUPS), used * width, capacity * width, load(x, LOW), load(x, HIGH))
    if groups == 0:
        return 0
    put_groups(x, groups)
    store(x, CAPACITY, capacity)
    return 1


@outside
def new_group(x: int, row: int, h: int) -> int:
    """Number of a new group for the key part of a row; -1 without memory."""
    live = load(x, LIVE)
    if 4 * (live + 1) > 3 * (load(x, MASK) + 1) and grow_slots(x) == 0:
        return -1
    count = load(x, COUNT)
    width = count + GROUP_EXTRA
    g = load(x, FREE) - 1
    if g >= 0:
        store(x, FREE, load(load(x, GROUPS) + 8 * g * width, 0))
    else:
        g = load(x, USED)
        if g == load(x, CAPACITY) and grow_groups(x) == 0:
            return -1
        store(x, USED, g + 1)
    group = load(x, GROUPS) + 8 * g * width
    for k in range(count):
        store(group, k, load(row, load(x, POSITIONS + k)))
    store(group, count + ROWS_COUNT, 0)
    store(group, count + BLOCK_CAPACITY, INLINE)
    store(group, count + BLOCK, 0)
    fill(x, h, g)
    store(x, LIVE, live + 1)
    return g


@inlined
def count_block(x: int, words: int, more: int) -> None:
    """Count one block more or less; the allocator adds a word and rounds up to pairs."""
    store(x, BLOCK_WORDS, load(x, BLOCK_WORDS) + more * max((words + 2) & -2, 4))


@inlined
def capacity_for(x: int, rows: int) -> int:
    """The capacity of a new block for ``rows`` rows: a quarter more, in whole vectors if it has digests."""
    capacity = (rows + (rows >> 2) + 4) & -2
    return capacity if load(x, DIGESTED) == 0 else (capacity + EIGHT - 1) & -EIGHT


@jit
def grow_block(x: int, t: int, group: int) -> int:
    """Grow the block of a group by a quarter; 0 without memory."""
    capacity = load(group, BLOCK_CAPACITY)
    wider = capacity_for(x, capacity)
    words = words_of_block(x, wider)
    digested = load(x, DIGESTED)
    if capacity == INLINE:
        block = allocate(words)
        if block != 0:
            store(block, 0, load(group, BLOCK))
            if digested != 0:
                for i in range(INLINE):
                    row = load(t, TABLE_ROWS) + 8 * load32(block, i) * load(t, TABLE_WIDTH)
                    store32(block + 4 * wider, i, digest_of(load(row, digested - 1)))
    else:
        before = words_of_block(x, capacity)
        block = widen_block(slice_rows(group), before, words, load(x, LOW), load(x, HIGH))
        if block != 0 and digested != 0:
            # From the end, because source and target overlap.
            for i in range((capacity >> 1) - 1, -1, -1):
                store(block + 4 * wider, i, load(block + 4 * capacity, i))
    if block == 0:
        return 0
    if capacity != INLINE:
        count_block(x, words_of_block(x, capacity), -1)
    count_block(x, words, 1)
    store(group, BLOCK, block - group)
    store(group, BLOCK_CAPACITY, wider)
    return 1


@outside
def shrink_block(x: int, group: int, least: int) -> None:
    """Shrink the block of a group that has lost half its rows, to a capacity of ``least`` or more."""
    capacity = load(group, BLOCK_CAPACITY)
    rows = load(group, ROWS_COUNT)
    block = slice_rows(group)
    fewer = max(capacity_for(x, rows), least)
    if fewer >= capacity:
        return
    if rows <= INLINE and least == 0:
        store(group, BLOCK, load(block, 0))
        release_block(block, load(x, LOW), load(x, HIGH))
        fewer = INLINE
    else:
        words = words_of_block(x, fewer)
        digests = block + 4 * capacity
        if words > CUT_IN_PLACE and not is_mapped(block, load(x, LOW), load(x, HIGH)):
            if load(x, DIGESTED) != 0:
                move_words(block + 4 * fewer, digests, (rows + 1) >> 1)
            smaller = reallocate(block, words)
            if smaller == 0:
                smaller = block
        else:
            smaller = allocate(words)
            if smaller == 0:
                return
            copy_words(smaller, block, (rows + 1) >> 1)
            if load(x, DIGESTED) != 0:
                copy_words(smaller + 4 * fewer, digests, (rows + 1) >> 1)
            release_block(block, load(x, LOW), load(x, HIGH))
        store(group, BLOCK, smaller - group)
        count_block(x, words, 1)
    count_block(x, words_of_block(x, capacity), -1)
    store(group, BLOCK_CAPACITY, fewer)


@outside
def index_insert(x: int, t: int, number: int) -> int:
    """Insert row ``number`` of table ``t``; 0 without memory."""
    row = load(t, TABLE_ROWS) + 8 * number * load(t, TABLE_WIDTH)
    h = row_hash(x, row)
    g = group_of(x, row, h)
    if g < 0:
        g = new_group(x, row, h)
        if g < 0:
            return 0
    count = load(x, COUNT)
    group = load(x, GROUPS) + 8 * g * (count + GROUP_EXTRA) + 8 * count
    n = load(group, ROWS_COUNT)
    if n == load(group, BLOCK_CAPACITY) and grow_block(x, t, group) == 0:
        return 0
    block = slice_rows(group)
    store32(block, n, number)
    if load(x, DIGESTED) != 0 and load(group, BLOCK_CAPACITY) > INLINE:
        store32(block + 4 * load(group, BLOCK_CAPACITY), n, digest_of(load(row, load(x, DIGESTED) - 1)))
    store(group, ROWS_COUNT, n + 1)
    store(row, load(x, ROW_WORD), g << 32 | n)
    return 1


@outside
def drop_group(x: int, g: int) -> None:
    """Remove an empty group from the slots; its number becomes free."""
    count = load(x, COUNT)
    group = entry_at(x, g)
    empty(x, hash_words(group, count), g)
    capacity = load(group, count + BLOCK_CAPACITY)
    if capacity > INLINE:
        release_block(slice_rows(group + 8 * count), load(x, LOW), load(x, HIGH))
        count_block(x, words_of_block(x, capacity), -1)
    store(group, count + BLOCK_CAPACITY, INLINE)
    store(group, count + ROWS_COUNT, 0)
    free_number(x, g)
    store(x, LIVE, load(x, LIVE) - 1)
    store(x, REMOVED, load(x, REMOVED) + 1)


@inlined
def holds_row(x: int, g: int, position: int, number: int) -> bool:
    """Whether the row with a number is at this position of a group. A row in no slice has a stale position, or none."""
    if g >= load(x, USED):
        return False
    group = entry_at(x, g) + 8 * load(x, COUNT)
    return position < load(group, ROWS_COUNT) and load32(slice_rows(group), position) == number


@outside
def index_remove(x: int, t: int, number: int) -> None:
    """Remove row ``number`` of table ``t``."""
    rows = load(t, TABLE_ROWS)
    width = load(t, TABLE_WIDTH)
    row_word = load(x, ROW_WORD)
    place = load(rows + 8 * number * width, row_word)
    g = shift_right(place, 32)
    position = place & 0xFFFFFFFF
    if not holds_row(x, g, position, number):
        return  # memory ran out, so the row was never inserted
    group = entry_at(x, g) + 8 * load(x, COUNT)
    last = load(group, ROWS_COUNT) - 1
    block = slice_rows(group)
    if position != last:
        moved = load32(block, last)
        store32(block, position, moved)
        if load(x, DIGESTED) != 0 and load(group, BLOCK_CAPACITY) > INLINE:
            digests = block + 4 * load(group, BLOCK_CAPACITY)
            store32(digests, position, load32(digests, last))
        store(rows + 8 * moved * width, row_word, place)
    store(group, ROWS_COUNT, last)
    if last == 0:
        drop_group(x, g)
        store(t, REMOVED, load(t, REMOVED) + 1)
    elif 2 * last + SPARE < load(group, BLOCK_CAPACITY):
        shrink_block(x, group, load(x, LEAST_BLOCK))
