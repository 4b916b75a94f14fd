"""Fills an empty ordered tree with many rows at once. Also sorts a batch of edits and applies the batch to a tree."""

from __future__ import annotations

from freshviews.kernel.btree.folds import describe_child
from freshviews.kernel.btree.pages import (
    COUNT,
    INNER_ROOM,
    KEY,
    LEAF_ROOM,
    PAYLOAD,
    ROOT,
    SUMMED,
    column,
    give_page,
    reserve_pages,
    take_page,
)
from freshviews.kernel.btree.tree import apply_edits, edit_word
from freshviews.kernel.memory.mem import (
    add_wrapping,
    allocate,
    copy_words,
    inlined,
    jit,
    load,
    reallocate,
    release,
    store,
)
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import gather_rows, sort_rows

RISING = 0
REPEATED = 1
UNSORTED = 2


@jit
def order_of(batch: int, k: int, count: int) -> int:
    """The order of rows given by columns: RISING by key, rising with REPEATED keys, or UNSORTED."""
    found = RISING
    first = load(batch, 0)
    stride = load(batch, 1)
    for i in range(1, count):
        x = load(first, (i - 1) * stride)
        y = load(first, i * stride)
        if x > y:
            return UNSORTED
        if x == y:
            c = 1
            while c < k and edit_word(batch, c, i - 1) == edit_word(batch, c, i):
                c += 1
            if c == k:
                found = REPEATED
            elif edit_word(batch, c, i - 1) > edit_word(batch, c, i):
                return UNSORTED
    return found


@jit
def merge_repeats(rows: int, k: int, p: int, count: int, summed: int) -> int:
    """Merge sorted rows with equal keys in place; returns the number of rows left.

    With ``summed``, payloads are added and rows that sum to zero are dropped. Otherwise the last row stays.
    """
    width = k + p
    kept = 0
    i = 0
    while i < count:
        row = rows + 8 * kept * width
        if i != kept:
            copy_words(row, rows + 8 * i * width, width)
        i += 1
        same = True
        while same and i < count:
            other = rows + 8 * i * width
            for c in range(k):
                if load(row, c) != load(other, c):
                    same = False
                    break
            if same:
                for c in range(k, width):
                    store(row, c, add_wrapping(load(row, c), load(other, c)) if summed != 0 else load(other, c))
                i += 1
        there = 1
        if summed != 0:
            there = 0
            for c in range(k, width):
                if load(row, c) != 0:
                    there = 1
        kept += there
    return kept


@inlined
def share_start(total: int, parts: int, part: int) -> int:
    """The start of part number ``part`` if ``total`` entries are divided evenly."""
    q = total // parts
    r = total - q * parts
    return part * q + (part if part < r else r)


@jit
def parts_of(total: int, room: int) -> int:
    """Number of pages for ``total`` entries: one if they fit, else pages seven eighths full."""
    if total <= room:
        return 1
    fill = room - (room >> 3)
    return (total + fill - 1) // fill


@jit
def fill_leaf(page: int, batch: int, width: int, start: int, count: int) -> None:
    """Copy rows given by columns into a leaf."""
    for c in range(width):
        words = load(batch, 2 * c)
        stride = load(batch, 2 * c + 1)
        target = column(page, c)
        if stride == 1:
            copy_words(target, words + 8 * start, count)
        else:
            for i in range(count):
                store(target, i, load(words, (start + i) * stride))
    store(page, COUNT, count)


@jit
def build(t: int, batch: int, count: int) -> int:
    """Fill an empty tree from rising columns; 0 without memory, and then the tree is empty."""
    width = load(t, KEY) + load(t, PAYLOAD)
    parts = parts_of(count, load(t, LEAF_ROOM))
    pages = allocate(parts)
    if pages == 0:
        return 0
    for part in range(parts):
        if reserve_pages(t, 1) == 0:
            for made in range(part):
                give_page(t, load(pages, made))
            release(pages)
            return 0
        page = take_page(t, 0)
        start = share_start(count, parts, part)
        fill_leaf(page, batch, width, start, share_start(count, parts, part + 1) - start)
        store(pages, part, page)
    made = build_inner(t, pages, parts)
    release(pages)
    return made


@jit
def build_inner(t: int, pages: int, parts: int) -> int:
    """Build inner pages and the root over a list of leaves, which is overwritten; 0 without memory."""
    level = 1
    # Inner pages are far fewer than leaves, so all are reserved at once.
    inner = 0
    above = parts
    while above > 1:
        above = parts_of(above, load(t, INNER_ROOM))
        inner += above
    if reserve_pages(t, inner) == 0:
        for part in range(parts):
            give_page(t, load(pages, part))
        return 0
    while parts > 1:
        above = parts_of(parts, load(t, INNER_ROOM))
        for part in range(above):
            page = take_page(t, level)
            start = share_start(parts, above, part)
            end = share_start(parts, above, part + 1)
            store(page, COUNT, end - start)
            for i in range(start, end):
                describe_child(t, page, i - start, load(pages, i))
            store(pages, part, page)
        parts = above
        level += 1
    give_page(t, load(t, ROOT))
    store(t, ROOT, load(pages, 0))
    return 1


@outside
def load_rows(t: int, batch: int, count: int) -> int:
    """Fill an empty tree without versions with rows in any order; 0 without memory, and then the tree is empty.

    ``batch``: as in ``tree``, without signs.
    """
    k = load(t, KEY)
    p = load(t, PAYLOAD)
    width = k + p
    if count == 0:
        return 1
    order = order_of(batch, k, count)
    if order == RISING and load(t, SUMMED) == 0:
        return build(t, batch, count)
    rows = reallocate(0, width * count)
    columns = allocate(2 * width)
    if rows == 0 or columns == 0:
        release(rows)
        release(columns)
        return 0
    gather_rows(batch, width, count, rows)
    done = 1
    if order == UNSORTED:
        done = sort_rows(rows, width, k, count)
    if done != 0:
        kept = merge_repeats(rows, k, p, count, load(t, SUMMED))
        for c in range(width):
            store(columns, 2 * c, rows + 8 * c)
            store(columns, 2 * c + 1, width)
        if kept > 0:
            done = build(t, columns, kept)
    release(rows)
    release(columns)
    return done


@outside
def edit_in_order(t: int, batch: int, count: int) -> int:
    """Apply a batch of edits in any order; equal keys apply in the order given.

    Returns 0 if memory ran out; then some of the edits may be applied.
    """
    k = load(t, KEY)
    width = k + load(t, PAYLOAD)
    if order_of(batch, k, count) != UNSORTED:
        return 1 if apply_edits(t, batch, count) == count else 0
    signs = load(batch, 2 * width)
    wide = width + (1 if signs != 0 else 0)
    rows = reallocate(0, wide * count)
    columns = allocate(2 * width + 2)
    done = 0
    if rows != 0 and columns != 0:
        gather_rows(batch, wide, count, rows)
        if sort_rows(rows, wide, k, count) != 0:
            for c in range(wide):
                store(columns, 2 * c, rows + 8 * c)
                store(columns, 2 * c + 1, wide)
            done = 1 if apply_edits(t, columns, count) == count else 0
    release(rows)
    release(columns)
    return done
