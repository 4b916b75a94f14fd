"""Lists the rows in which two versions of an ordered tree differ, in the order of their keys.

Pages that both versions share are skipped.

Source: section 3.3 of Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013).
"""

from __future__ import annotations

from freshviews.kernel.btree.pages import COUNT, LEVEL, LEVELS, child_at, column, word_at
from freshviews.kernel.memory.mem import allocate, inlined, jit, load, store
from freshviews.kernel.memory.outside import outside

# Words of an iterator over a difference; the two cursors follow, then the last key of each side.
DELTA_KEY = 0
DELTA_PAYLOAD = 1
DELTA_PAGES = 2  # pages ever opened
PENDING = 3  # cursors that must move before the next row: 1 the old, 2 the new
TWICE = 4  # 1 if the new payload of the row comes next
CHANGED_LEAF = 5  # position of the last reported row
CHANGED_INDEX = 6
DELTA_SIGN = 7
SEEN = 8  # bits: 1 after a deletion before the last reported row, 2 after an insertion; their keys are stored
CURSORS = 9

# Words of a cursor.
TOP_PAGE = 0
HEIGHT = 1  # levels of its tree; at this LEVEL_NOW it stands before the whole tree
LEVEL_NOW = 2  # it stands before an entry of the page of this level: before a row at level 0
DONE = 3
PLACES = 4  # a page and a slot per level
CURSOR_WORDS = PLACES + 2 * LEVELS

OLD = 1
NEW = 2


def new_delta(k: int, p: int) -> int:
    """An iterator for trees with ``k`` words of key and ``p`` of payload; 0 without memory.

    The caller releases it with ``mem.release``.
    """
    d = allocate(CURSORS + 2 * CURSOR_WORDS + 2 * k)
    if d != 0:
        store(d, DELTA_KEY, k)
        store(d, DELTA_PAYLOAD, p)
    return d


@inlined
def cursor_of(d: int, side: int) -> int:
    """The cursor of a side, OLD or NEW."""
    return d + 8 * (CURSORS + (side - 1) * CURSOR_WORDS)


@jit
def begin_side(c: int, root: int) -> None:
    """Put a cursor before a whole tree."""
    height = load(root, LEVEL) + 1
    store(c, TOP_PAGE, root)
    store(c, HEIGHT, height)
    store(c, LEVEL_NOW, height)
    store(c, DONE, 1 if load(root, COUNT) == 0 else 0)


@outside
def delta_begin(d: int, old: int, new: int) -> None:
    """Start at the difference from one root to another; roots of versions, or the newer one of a tree."""
    store(d, PENDING, 0)
    store(d, TWICE, 0)
    store(d, SEEN, 0)
    store(d, DELTA_SIGN, 0)
    begin_side(cursor_of(d, OLD), old)
    begin_side(cursor_of(d, NEW), new)


@inlined
def place_page(c: int) -> int:
    """The page of the least key of the row or page that a cursor stands before; its entry is ``place_slot``."""
    level = load(c, LEVEL_NOW)
    return load(c, TOP_PAGE) if level == load(c, HEIGHT) else load(c, PLACES + 2 * level)


@inlined
def place_slot(c: int) -> int:
    """The slot of the least key of the row or page that a cursor stands before."""
    level = load(c, LEVEL_NOW)
    return 0 if level == load(c, HEIGHT) else load(c, PLACES + 2 * level + 1)


@inlined
def page_before(c: int, k: int) -> int:
    """The page that a cursor stands before; 0 if it stands before a row."""
    level = load(c, LEVEL_NOW)
    if level == 0:
        return 0
    if level == load(c, HEIGHT):
        return load(c, TOP_PAGE)
    return child_at(load(c, PLACES + 2 * level), k, load(c, PLACES + 2 * level + 1))


@jit
def go_into(d: int, c: int) -> None:
    """Open the page that a cursor stands before."""
    page = page_before(c, load(d, DELTA_KEY))
    level = load(c, LEVEL_NOW) - 1
    store(c, LEVEL_NOW, level)
    store(c, PLACES + 2 * level, page)
    store(c, PLACES + 2 * level + 1, 0)
    store(d, DELTA_PAGES, load(d, DELTA_PAGES) + 1)


@jit
def go_over(c: int) -> None:
    """Skip the row or page that a cursor stands before."""
    level = load(c, LEVEL_NOW)
    height = load(c, HEIGHT)
    while level < height:
        slot = load(c, PLACES + 2 * level + 1) + 1
        store(c, PLACES + 2 * level + 1, slot)
        if slot < load(load(c, PLACES + 2 * level), COUNT):
            break
        level += 1
    store(c, LEVEL_NOW, level)
    if level == height:
        store(c, DONE, 1)


@jit
def go_over_equals(a: int, b: int, first: int, end: int) -> None:
    """Skip equal rows or pages at two cursors, in pages of one level.

    Columns ``first`` to ``end`` are compared: whole rows of leaves, the children of inner pages.
    """
    level = load(a, LEVEL_NOW)
    page_a = load(a, PLACES + 2 * level)
    page_b = load(b, PLACES + 2 * level)
    i = load(a, PLACES + 2 * level + 1)
    j = load(b, PLACES + 2 * level + 1)
    most = min(load(page_a, COUNT) - i, load(page_b, COUNT) - j)
    for c in range(first, end):
        words_a = column(page_a, c) + 8 * i
        words_b = column(page_b, c) + 8 * j
        n = 1
        while n < most and load(words_a, n) == load(words_b, n):
            n += 1
        most = n
    store(a, PLACES + 2 * level + 1, i + most - 1)
    store(b, PLACES + 2 * level + 1, j + most - 1)
    go_over(a)
    go_over(b)


@jit
def compare_places(a: int, b: int, first: int, end: int) -> int:
    """Compare the words ``first`` to ``end`` of the keys at two cursors: -1, 0 or 1."""
    page_a = place_page(a)
    slot_a = place_slot(a)
    page_b = place_page(b)
    slot_b = place_slot(b)
    for c in range(first, end):
        x = word_at(page_a, c, slot_a)
        y = word_at(page_b, c, slot_b)
        if x != y:
            return -1 if x < y else 1
    return 0


@inlined
def delta_word(d: int, c: int) -> int:
    """The next word, of the key and then the payload, of the last reported row."""
    return word_at(load(d, CHANGED_LEAF), c, load(d, CHANGED_INDEX))


@inlined
def kept_key(d: int, side: int) -> int:
    """The key of the last row of a side before the last reported one."""
    return d + 8 * (CURSORS + 2 * CURSOR_WORDS + (side - 1) * load(d, DELTA_KEY))


@jit
def emit(d: int, c: int, sign: int) -> int:
    """Report the row that a cursor stands before; returns its sign."""
    before = load(d, DELTA_SIGN)
    if before != 0:
        side = NEW if before > 0 else OLD
        store(d, SEEN, load(d, SEEN) | side)
        for i in range(load(d, DELTA_KEY)):
            store(kept_key(d, side), i, delta_word(d, i))
    store(d, CHANGED_LEAF, place_page(c))
    store(d, CHANGED_INDEX, place_slot(c))
    store(d, DELTA_SIGN, sign)
    return sign


@outside
def delta_next(d: int) -> int:
    """Advance to the next difference: -1 for a deleted row, 1 for an inserted one, 0 at the end.

    Two cursors, one per version, advance together. A cursor stands before a row or before a whole page. If both cursors
    stand before the same page, both skip it. Otherwise the cursor with the lesser key moves: it enters its page, or
    passes a row that only its version has. If both keys are equal, the cursor before the page of the higher level
    enters that page. So a few pages are read per level and edit. A row with a changed payload is reported as a deletion
    and an insertion.
    """
    k = load(d, DELTA_KEY)
    old = cursor_of(d, OLD)
    new = cursor_of(d, NEW)
    if load(d, TWICE) != 0:
        store(d, TWICE, 0)
        return emit(d, new, 1)
    pending = load(d, PENDING)
    if pending & OLD != 0:
        go_over(old)
    if pending & NEW != 0:
        go_over(new)
    store(d, PENDING, 0)
    while load(old, DONE) == 0 or load(new, DONE) == 0:
        if load(old, DONE) != 0:
            order = 1
        elif load(new, DONE) != 0:
            order = -1
        else:
            order = compare_places(old, new, 0, k)
        if order == 0:
            level_old = load(old, LEVEL_NOW)
            level_new = load(new, LEVEL_NOW)
            if level_old == 0 and level_new == 0:
                if compare_places(old, new, k, k + load(d, DELTA_PAYLOAD)) != 0:
                    store(d, PENDING, OLD | NEW)
                    store(d, TWICE, 1)
                    return emit(d, old, -1)
                go_over_equals(old, new, 0, k + load(d, DELTA_PAYLOAD))
            elif page_before(old, k) == page_before(new, k):
                if level_old < load(old, HEIGHT) and level_new < load(new, HEIGHT):
                    go_over_equals(old, new, k, k + 1)
                else:
                    go_over(old)
                    go_over(new)
            else:
                if level_old >= level_new:
                    go_into(d, old)
                if level_new >= level_old:
                    go_into(d, new)
        elif order < 0:
            if load(old, LEVEL_NOW) > 0:
                go_into(d, old)
            else:
                store(d, PENDING, OLD)
                return emit(d, old, -1)
        elif load(new, LEVEL_NOW) > 0:
            go_into(d, new)
        else:
            store(d, PENDING, NEW)
            return emit(d, new, 1)
    return 0


@jit
def shared_words(page: int, slot: int, d: int) -> int:
    """Number of first key words that an entry shares with the last reported row."""
    k = load(d, DELTA_KEY)
    i = 0
    while i < k and word_at(page, i, slot) == delta_word(d, i):
        i += 1
    return i


@jit
def shared_with_row_before(c: int, d: int) -> int:
    """Number of first key words that the row before a cursor shares with the last reported row; 0 if there is none."""
    height = load(c, HEIGHT)
    level = load(c, LEVEL_NOW)
    if load(c, DONE) != 0:
        # Past the last row: start from the last entry of the root.
        page = load(c, TOP_PAGE)
        slot = load(page, COUNT) - 1
        level = height - 1
        if slot < 0:
            return 0
    else:
        while level < height and load(c, PLACES + 2 * level + 1) == 0:
            level += 1
        if level == height:
            return 0
        page = load(c, PLACES + 2 * level)
        slot = load(c, PLACES + 2 * level + 1) - 1
    k = load(d, DELTA_KEY)
    while level > 0:
        page = child_at(page, k, slot)
        slot = load(page, COUNT) - 1
        level -= 1
        store(d, DELTA_PAGES, load(d, DELTA_PAGES) + 1)
    return shared_words(page, slot, d)


@outside
def delta_shared(d: int) -> int:
    """Length of the longest key prefix that the last reported row shares with any row of the other version: the depth
    of the branch that it joined or left.

    The number of key words if only the payload changed.
    """
    k = load(d, DELTA_KEY)
    if load(d, PENDING) == OLD | NEW:
        return k
    other = cursor_of(d, NEW if load(d, DELTA_SIGN) < 0 else OLD)
    depth = shared_with_row_before(other, d)
    if load(other, DONE) == 0:
        after = shared_words(place_page(other), place_slot(other), d)
        depth = after if after > depth else depth
    return depth


@outside
def delta_branch(d: int) -> int:
    """The least depth, from 0, at which the last reported row, but no row before it, changes the trie.

    With sign -1 the branches from there down are only in the old version, otherwise only in the new one. The number of
    key words if only the payload changed.

    ``delta_branch`` turns the change of a row into a change of the trie (section 4.2.1, "tree surgery"). It returns the
    least depth at which the change of the row inserts or erases a branch.
    """
    k = load(d, DELTA_KEY)
    depth = delta_shared(d)
    side = NEW if load(d, DELTA_SIGN) > 0 else OLD
    if load(d, SEEN) & side != 0:
        shared = 0
        while shared < k and load(kept_key(d, side), shared) == delta_word(d, shared):
            shared += 1
        depth = shared if shared > depth else depth
    return depth
