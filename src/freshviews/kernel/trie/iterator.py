"""Reads an ordered tree as a trie, by key, next, seek_lub, open and at_end (Veldhuizen, Leapfrog Triejoin, 2014).

A tree of rows of k words is read as a trie of k levels.
"""

from __future__ import annotations

from freshviews.kernel.btree.pages import BODY, COUNT, LEVEL, LEVELS, ROOM, child_at, column, first_greater, word_at
from freshviews.kernel.memory.mem import allocate, copy_words, inlined, jit, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.trie.gallop import gallop

# Words of an iterator; the values of all depths follow, then the frames.
ITER_ROOT = 0
ITER_KEY = 1  # number of depths
ITER_PAGES = 2  # pages ever read
VALUES = 3

# Words of a frame.
AT_END = 0
LEAF = 1
INDEX = 2  # the row in the leaf
LIMIT = 3  # end of the rows of the leaf that share the prefix
OWN_PATH = 4  # 1 if the frame has a path of its own, 0 if it uses that of the frame above
STEPS = 5  # a page and a slot per level, from 1
FRAME_WORDS = STEPS + 2 * LEVELS


def new_iterator(k: int) -> int:
    """An iterator for trees with ``k`` key words; 0 without memory. The caller releases it with ``mem.release``."""
    it = allocate(VALUES + k + k * FRAME_WORDS)
    if it != 0:
        store(it, ITER_KEY, k)
    return it


@inlined
def frame_of(it: int, depth: int) -> int:
    """The frame of a depth."""
    return it + 8 * (VALUES + load(it, ITER_KEY) + depth * FRAME_WORDS)


@inlined
def iter_key(it: int, depth: int) -> int:
    """The key at a depth, which is not at the end."""
    return load(it, VALUES + depth)


@inlined
def iter_at_end(it: int, depth: int) -> bool:
    """Whether no key is left at a depth, below the keys above."""
    return load(frame_of(it, depth), AT_END) != 0


@inlined
def iter_row(it: int, depth: int) -> int:
    """Address of the first word of the first row under the keys down to a depth; at the last depth, of the row.

    Column ``c`` is ``c * iter_room`` words after it.
    """
    f = frame_of(it, depth)
    return column(load(f, LEAF), 0) + 8 * load(f, INDEX)


@inlined
def iter_room(it: int, depth: int) -> int:
    """The distance of columns, in words, in the leaf of a frame."""
    return load(load(frame_of(it, depth), LEAF), ROOM)


@outside
def iter_begin(it: int, root: int) -> None:
    """Set the tree or version to read; ``iter_open`` at depth 0 comes next."""
    store(it, ITER_ROOT, root)


@outside
def open_top(it: int) -> None:
    """Open depth 0 at the first row."""
    k = load(it, ITER_KEY)
    f = frame_of(it, 0)
    page = load(it, ITER_ROOT)
    level = load(page, LEVEL)
    store(it, ITER_PAGES, load(it, ITER_PAGES) + level + 1)
    store(f, OWN_PATH, 1)
    while level > 0:
        store(f, STEPS + 2 * level, page)
        store(f, STEPS + 2 * level + 1, 0)
        page = child_at(page, k, 0)
        level -= 1
    count = load(page, COUNT)
    store(f, LEAF, page)
    store(f, INDEX, 0)
    store(f, LIMIT, count)
    store(f, AT_END, 1 if count == 0 else 0)
    if count != 0:
        store(it, VALUES, word_at(page, 0, 0))


@inlined
def iter_open(it: int, depth: int) -> None:
    """Open a depth at its first key under the keys above; no depth above is at the end.

    A tree of rows of k words is read as a trie of k levels, ``depth`` 0 to k - 1. The caller passes its depth to every
    operation. The iterator has a frame per depth: the current leaf and row, and whether the end is reached. The paper's
    *up* needs no operation: the caller uses the frame of the depth above.

    Iterators allocate nothing. No two threads may share an iterator.
    """
    if depth == 0:
        open_top(it)
        return
    above = frame_of(it, depth - 1)
    f = frame_of(it, depth)
    leaf = load(above, LEAF)
    i = load(above, INDEX)
    store(f, LEAF, leaf)
    store(f, INDEX, i)
    limit = load(above, LIMIT)
    store(f, LIMIT, gallop(column(leaf, depth - 1), i + 1, limit, load(it, VALUES + depth - 1)))
    store(f, OWN_PATH, 0)
    store(f, AT_END, 0)
    store(it, VALUES + depth, word_at(leaf, depth, i))


@inlined
def iter_next(it: int, depth: int) -> None:
    """Move to the next key at a depth, or to the end; not at the end."""
    go_beyond(it, depth, load(it, VALUES + depth))


@inlined
def iter_seek_lub(it: int, depth: int, value: int) -> None:
    """Move to the least key at a depth that is not less than a value, or to the end; not at the end.

    A key that is not less stays.

    Source: Veldhuizen, "Leapfrog Triejoin", ICDT 2014, section 3. As the proof there requires, a walk over m of N keys
    in rising order reads O(1 + log(N / m)) pages per key, amortised. Unlike ``flat``, the iterator needs no copy of the
    rows, and it can read a version while the tree is written.

    Within a leaf, a seek gallops in one column, from the row of the frame. A seek that leaves the leaf climbs only as
    far as the sought key requires, and descends again.
    """
    if value > load(it, VALUES + depth):
        go_beyond(it, depth, value - 1)


@inlined
def go_beyond(it: int, depth: int, value: int) -> None:
    """Move to the least key at a depth that is greater than a value, which is not less than the present key."""
    f = frame_of(it, depth)
    leaf = load(f, LEAF)
    limit = load(f, LIMIT)
    words = leaf + 8 * (BODY + depth * load(leaf, ROOM))
    i = gallop(words, load(f, INDEX) + 1, limit, value)
    store(f, INDEX, i)
    if i < limit:
        store(it, VALUES + depth, load(words, i))
    elif limit < load(leaf, COUNT):
        store(f, AT_END, 1)
    else:
        leave_leaf(it, depth, value)


@jit
def take_path(it: int, f: int) -> None:
    """Give a frame a path of its own: a copy of the path of the nearest frame above that has one.

    All frames in between stand in the same leaf.
    """
    above = f
    while load(above, OWN_PATH) == 0:
        above -= 8 * FRAME_WORDS
    if above != f:
        level = load(load(it, ITER_ROOT), LEVEL)
        copy_words(f + 8 * (STEPS + 2), above + 8 * (STEPS + 2), 2 * level)
        store(f, OWN_PATH, 1)


@outside
def leave_leaf(it: int, depth: int, value: int) -> None:
    """Move from the leaf of a frame to the first later row with the prefix and a word at ``depth`` greater than a
    value.

    Without such a row the frame is at the end.
    """
    k = load(it, ITER_KEY)
    f = frame_of(it, depth)
    take_path(it, f)
    store(it, VALUES + depth, value)
    sought = it + 8 * VALUES
    words = depth + 1
    top = load(load(it, ITER_ROOT), LEVEL)
    seen = 0
    # Up while all following entries of the page are less than the sought key, at most to the highest page with a
    # following entry.
    level = 0
    for upper in range(1, top + 1):
        seen += 1
        page = load(f, STEPS + 2 * upper)
        count = load(page, COUNT)
        if load(f, STEPS + 2 * upper + 1) + 1 < count:
            level = upper
            if first_greater(page, words, sought, count - 1, count) < count:
                break
    if level == 0:
        store(it, ITER_PAGES, load(it, ITER_PAGES) + seen)
        store(f, AT_END, 1)
        return
    page = load(f, STEPS + 2 * level)
    count = load(page, COUNT)
    slot = load(f, STEPS + 2 * level + 1)
    # Down: the last child whose least row is not greater than the sought key, or else the next one.
    slot = gallop_entries(page, words, sought, slot + 1, count) - 1
    landed = False
    while not landed:
        store(f, STEPS + 2 * level + 1, slot)
        while level > 0:
            page = child_at(page, k, slot)
            level -= 1
            seen += 1
            if level > 0:
                slot = first_greater(page, words, sought, 0, load(page, COUNT)) - 1
                slot = slot if slot > 0 else 0
                store(f, STEPS + 2 * level, page)
                store(f, STEPS + 2 * level + 1, slot)
        i = first_greater(page, words, sought, 0, load(page, COUNT))
        if i < load(page, COUNT):
            landed = True
        else:
            # The sought row is the first one of the next leaf.
            level = 1
            while level <= top and load(f, STEPS + 2 * level + 1) + 1 == load(load(f, STEPS + 2 * level), COUNT):
                level += 1
                seen += 1
            if level > top:
                store(it, ITER_PAGES, load(it, ITER_PAGES) + seen)
                store(f, AT_END, 1)
                return
            page = load(f, STEPS + 2 * level)
            slot = load(f, STEPS + 2 * level + 1) + 1
    store(it, ITER_PAGES, load(it, ITER_PAGES) + seen)
    land(it, depth, page, i)


@jit
def gallop_entries(page: int, words: int, key: int, low: int, high: int) -> int:
    """As ``first_greater``, in time logarithmic in the distance of the result."""
    step = 1
    while low + step < high and first_greater(page, words, key, low + step - 1, low + step) == low + step:
        low += step
        step += step
    return first_greater(page, words, key, low, high if low + step > high else low + step)


@jit
def land(it: int, depth: int, leaf: int, i: int) -> None:
    """Put a frame at a row of another leaf, or at the end if the row has another prefix."""
    f = frame_of(it, depth)
    store(f, LEAF, leaf)
    store(f, INDEX, i)
    for c in range(depth):
        if word_at(leaf, c, i) != load(it, VALUES + c):
            store(f, AT_END, 1)
            return
    store(f, AT_END, 0)
    store(it, VALUES + depth, word_at(leaf, depth, i))
    count = load(leaf, COUNT)
    store(f, LIMIT, count if depth == 0 else first_greater(leaf, depth, it + 8 * VALUES, i + 1, count))
