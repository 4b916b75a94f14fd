"""Balances an ordered tree: splits full pages, and merges pages less than a quarter full."""

from __future__ import annotations

from freshviews.kernel.btree.folds import describe_child
from freshviews.kernel.btree.pages import (
    BOUND_PAGE,
    BOUND_SLOT,
    COUNT,
    KEY,
    LEVEL,
    PATH,
    ROOM,
    ROOT,
    VISITED,
    child_at,
    column,
    columns_of,
    drop_page,
    first_greater,
    give_page,
    own_page,
    take_page,
)
from freshviews.kernel.memory.mem import copy_words, inlined, jit, load, move_words, store


@inlined
def child_slot(page: int, words: int, key: int) -> int:
    """The entry below which a key belongs."""
    slot = first_greater(page, words, key, 0, load(page, COUNT)) - 1
    return slot if slot > 0 else 0


# The path of the writer.


@inlined
def path_page(t: int, level: int) -> int:
    """The page of the writer's path at a level."""
    return load(t, PATH + 2 * level)


@inlined
def path_slot(t: int, level: int) -> int:
    """The slot of the writer's path at a level."""
    return load(t, PATH + 2 * level + 1)


@jit
def descend(t: int, key: int) -> int:
    """The leaf where a key belongs; the path to it and the entry after it are stored in the header."""
    k = load(t, KEY)
    page = load(t, ROOT)
    level = load(page, LEVEL)
    store(t, BOUND_PAGE, 0)
    store(t, VISITED, load(t, VISITED) + level + 1)
    while level > 0:
        slot = child_slot(page, k, key)
        store(t, PATH + 2 * level, page)
        store(t, PATH + 2 * level + 1, slot)
        if slot + 1 < load(page, COUNT):
            store(t, BOUND_PAGE, page)
            store(t, BOUND_SLOT, slot + 1)
        page = child_at(page, k, slot)
        level -= 1
    return page


@jit
def own_path(t: int) -> int:
    """Make the pages of the path and its leaf writable, by copying pages that versions share; returns the leaf."""
    k = load(t, KEY)
    page = own_page(t, load(t, ROOT))
    store(t, ROOT, page)
    level = load(page, LEVEL)
    while level > 0:
        store(t, PATH + 2 * level, page)
        slot = path_slot(t, level)
        child = own_page(t, child_at(page, k, slot))
        store(column(page, k), slot, child)
        page = child
        level -= 1
    return page


# Entries of a page, over all of its columns.


@jit
def open_gap(page: int, columns: int, at: int) -> None:
    """Make room for one entry."""
    count = load(page, COUNT)
    for c in range(columns):
        words = column(page, c) + 8 * at
        move_words(words + 8, words, count - at)
    store(page, COUNT, count + 1)


@jit
def close_gap(page: int, columns: int, at: int) -> None:
    """Remove one entry."""
    count = load(page, COUNT)
    for c in range(columns):
        words = column(page, c) + 8 * at
        move_words(words, words + 8, count - at - 1)
    store(page, COUNT, count - 1)


@jit
def move_entries(target: int, to: int, source: int, start: int, count: int, columns: int) -> None:
    """Copy entries from one page to another."""
    for c in range(columns):
        copy_words(column(target, c) + 8 * to, column(source, c) + 8 * start, count)


@inlined
def left_share(total: int, room: int, last: int) -> int:
    """How many entries of an overflowing page stay in the left one; ``last`` is 1 at the end of the tree."""
    if last != 0:
        most = total - (room >> 2)
        share = 3 * room >> 2
        share = share if share < most else most
        least = total - room
        return share if share > least else least
    return total >> 1


@jit
def insert_entry(t: int, page: int, slot: int, child: int) -> int:
    """Insert a child at a slot; returns the new right neighbour if the page was split, else 0.

    An edit descends from the root to one leaf and records the path. It copies the pages of the path that a version
    holds (see ``pages``), and changes the leaf. Then it repairs the path from the leaf up: it updates the entry of each
    child and splits pages that overflow. A page less than a quarter full is merged with its neighbour, or takes entries
    from it. If the last page of the tree is split, the left page stays three quarters full, because rows often arrive
    in rising order.
    """
    columns = columns_of(t, page)
    count = load(page, COUNT)
    room = load(page, ROOM)
    if count < room:
        open_gap(page, columns, slot)
        describe_child(t, page, slot, child)
        return 0
    stay = left_share(count, room, 1 if slot == count and load(t, BOUND_PAGE) == 0 else 0)
    right = take_page(t, load(page, LEVEL))
    move_entries(right, 0, page, stay, count - stay, columns)
    store(right, COUNT, count - stay)
    store(page, COUNT, stay)
    target = page
    if slot > stay:
        target = right
        slot -= stay
    open_gap(target, columns, slot)
    describe_child(t, target, slot, child)
    return right


@jit
def even_out(t: int, page: int, slot: int) -> None:
    """Merge the small child at a slot with a neighbour, or share their entries evenly."""
    k = load(t, KEY)
    count = load(page, COUNT)
    if count == 1:
        return
    first = slot - 1 if slot > 0 else 0
    left = own_page(t, child_at(page, k, first))
    right = own_page(t, child_at(page, k, first + 1))
    store(column(page, k), first, left)
    store(column(page, k), first + 1, right)
    columns = columns_of(t, left)
    a = load(left, COUNT)
    b = load(right, COUNT)
    half = (a + b) >> 1
    if 4 * (a + b) <= 3 * load(left, ROOM):
        move_entries(left, a, right, 0, b, columns)
        store(left, COUNT, a + b)
        give_page(t, right)
        close_gap(page, columns_of(t, page), first + 1)
        describe_child(t, page, first, left)
        return
    if a < half:
        moved = half - a
        move_entries(left, a, right, 0, moved, columns)
        for c in range(columns):
            move_words(column(right, c), column(right, c) + 8 * moved, b - moved)
    else:
        moved = a - half
        for c in range(columns):
            move_words(column(right, c) + 8 * moved, column(right, c), b)
        move_entries(right, 0, left, half, moved, columns)
    store(left, COUNT, half)
    store(right, COUNT, a + b - half)
    describe_child(t, page, first, left)
    describe_child(t, page, first + 1, right)


@jit
def mend_path(t: int, fresh: int) -> None:
    """Mend the path after a leaf changed; ``fresh`` is the leaf's new right neighbour, or 0.

    Describes the children along the path again, inserts ``fresh``, splits full pages and merges small ones.
    """
    k = load(t, KEY)
    root = load(t, ROOT)
    top = load(root, LEVEL)
    for level in range(1, top + 1):
        page = path_page(t, level)
        slot = path_slot(t, level)
        child = child_at(page, k, slot)
        describe_child(t, page, slot, child)
        if fresh != 0:
            fresh = insert_entry(t, page, slot + 1, fresh)
        elif 4 * load(child, COUNT) < load(child, ROOM):
            even_out(t, page, slot)
    if fresh != 0:
        higher = take_page(t, top + 1)
        store(higher, COUNT, 2)
        describe_child(t, higher, 0, root)
        describe_child(t, higher, 1, fresh)
        store(t, ROOT, higher)
        return
    while load(root, LEVEL) > 0 and load(root, COUNT) == 1:
        child = child_at(root, k, 0)
        drop_page(t, root)
        root = child
    store(t, ROOT, root)
