"""Creates an ordered tree, looks rows up, and applies batches of edits, which must be sorted by key.

- In a tree without summed payloads, an edit with a positive sign inserts or replaces a row. An edit with a negative
  sign deletes the row.
- In a tree with summed payloads, an edit adds its payload to that of the row. A row with a zero payload is absent.
"""

from __future__ import annotations

from freshviews.kernel.btree.balancing import child_slot, close_gap, descend, left_share, mend_path, open_gap, own_path
from freshviews.kernel.btree.folds import FOLD_WORDS
from freshviews.kernel.btree.pages import (
    BODY,
    BOUND_PAGE,
    BOUND_SLOT,
    CHANGED,
    COUNT,
    FLOOR,
    FOLD_LIST,
    FOLDS,
    INNER_ROOM,
    KEY,
    LEAF_ROOM,
    LEVEL,
    PAGE_WORDS,
    PAYLOAD,
    ROOT,
    SCRATCH,
    SCRATCH_KEY,
    SUMMED,
    TREE_HEADER,
    child_at,
    column,
    compare_entry,
    first_not_less,
    reserve_pages,
    take_page,
    word_at,
)
from freshviews.kernel.memory.mem import add_wrapping, allocate, copy_words, inlined, jit, load, store
from freshviews.kernel.memory.outside import outside

USUAL_PAGE_WORDS = 256
"""2,048 bytes. Twice as many made neither single edits nor batches faster."""
LEAST_ROOM = 8


def new_tree(key: int, payload: int, summed: int, folds: int, page_words: int = USUAL_PAGE_WORDS) -> int:
    """Handle of an empty tree with rows of ``key`` and ``payload`` words; 0 without memory.

    ``folds`` is the number of folds; the caller writes their descriptions (``folds.fold_at``) before the first row.
    Pages have ``page_words`` words, or more if eight rows or children need them.
    """
    entry = key + 2 + folds
    page_words = max(page_words, BODY + LEAST_ROOM * max(entry, key + payload))
    leaf_room = (page_words - BODY) // (key + payload)
    t = allocate(TREE_HEADER)
    if t == 0:
        return 0
    store(t, KEY, key)
    store(t, PAYLOAD, payload)
    store(t, SUMMED, summed)
    store(t, LEAF_ROOM, leaf_room)
    store(t, INNER_ROOM, (page_words - BODY) // entry)
    store(t, PAGE_WORDS, page_words)
    store(t, FOLDS, folds)
    store(t, FLOOR, -1)
    store(t, FOLD_LIST, allocate(FOLD_WORDS * folds))
    store(t, SCRATCH, allocate(2 * leaf_room * (key + payload)))
    store(t, SCRATCH_KEY, allocate(key + payload))
    if 0 in (load(t, FOLD_LIST), load(t, SCRATCH), load(t, SCRATCH_KEY)) or reserve_pages(t, 1) == 0:
        return 0
    store(t, ROOT, take_page(t, 0))
    return t


# Finding.


@outside
def find_row(root: int, words: int, key: int) -> int:
    """Address of the first word of the row with a key; 0 if absent. Column ``c`` is ``c * room`` words after it.

    ``root`` is that of a tree or of a version.
    """
    page = root
    while load(page, LEVEL) > 0:
        page = child_at(page, words, child_slot(page, words, key))
    i = first_not_less(page, words, key, 0, load(page, COUNT))
    if i < load(page, COUNT) and compare_entry(page, i, key, words) == 0:
        return column(page, 0) + 8 * i
    return 0


# Edits.


@inlined
def edit_word(batch: int, c: int, i: int) -> int:
    """The word of edit ``i`` in a column of a batch."""
    return load(load(batch, 2 * c), i * load(batch, 2 * c + 1))


@inlined
def same_key(batch: int, k: int, i: int, j: int) -> bool:
    """Whether two edits have the same key."""
    same = True
    for c in range(k):
        if edit_word(batch, c, i) != edit_word(batch, c, j):
            same = False
            break
    return same


@jit
def run_end(t: int, batch: int, i: int, end: int) -> int:
    """The end of the edits from ``i`` on that belong to the leaf of the last descent."""
    page = load(t, BOUND_PAGE)
    if page == 0:
        return end
    k = load(t, KEY)
    slot = load(t, BOUND_SLOT)
    i += 1
    while i < end:
        order = 0
        for c in range(k):
            x = edit_word(batch, c, i)
            y = word_at(page, c, slot)
            if x != y:
                order = -1 if x < y else 1
                break
        if order >= 0:
            return i
        i += 1
    return end


@jit
def edit_scratch(t: int, batch: int, i: int, row: int, stride: int, there: int) -> int:
    """Apply the payload of an edit to a row whose words are ``stride`` apart; 1 if the row exists after it.

    ``there``: whether it existed before; its key words are written either way. Sets CHANGED if the edit changes it.
    """
    k = load(t, KEY)
    p = load(t, PAYLOAD)
    if load(t, SUMMED) != 0:
        any_word = 0
        for c in range(k, k + p):
            delta = edit_word(batch, c, i)
            if delta != 0:
                store(t, CHANGED, 1)
            x = add_wrapping(load(row, c * stride), delta) if there != 0 else delta
            store(row, c * stride, x)
            any_word |= x
        return 1 if any_word != 0 else 0
    if load(batch, 2 * (k + p)) != 0 and edit_word(batch, k + p, i) < 0:
        if there != 0:
            store(t, CHANGED, 1)
        return 0
    if there == 0:
        store(t, CHANGED, 1)
    for c in range(k, k + p):
        x = edit_word(batch, c, i)
        if there != 0 and load(row, c * stride) != x:
            store(t, CHANGED, 1)
        store(row, c * stride, x)
    return 1


@jit
def merge_edits(t: int, batch: int, i: int, stop: int, leaf: int) -> int:
    """Merge edits with the rows of a leaf into the scratch rows; returns their number. Sets CHANGED."""
    k = load(t, KEY)
    width = k + load(t, PAYLOAD)
    stride = 2 * load(t, LEAF_ROOM)
    scratch = load(t, SCRATCH)
    key = load(t, SCRATCH_KEY)
    count = load(leaf, COUNT)
    store(t, CHANGED, 0)
    merged = 0
    taken = 0
    while i < stop:
        for c in range(k):
            store(key, c, edit_word(batch, c, i))
        at = first_not_less(leaf, k, key, taken, count)
        if at > taken:
            for c in range(width):
                copy_words(scratch + 8 * (c * stride + merged), column(leaf, c) + 8 * taken, at - taken)
            merged += at - taken
        taken = at
        row = scratch + 8 * merged
        for c in range(k):
            store(row, c * stride, load(key, c))
        there = 0
        if at < count and compare_entry(leaf, at, key, k) == 0:
            there = 1
            for c in range(k, width):
                store(row, c * stride, word_at(leaf, c, at))
            taken += 1
        there = edit_scratch(t, batch, i, row, stride, there)
        first = i
        i += 1
        while i < stop and same_key(batch, k, first, i):
            there = edit_scratch(t, batch, i, row, stride, there)
            i += 1
        merged += there
    if count > taken:
        for c in range(width):
            copy_words(scratch + 8 * (c * stride + merged), column(leaf, c) + 8 * taken, count - taken)
        merged += count - taken
    return merged


@jit
def read_scratch(t: int, leaf: int, start: int, count: int) -> None:
    """Copy scratch rows into a leaf."""
    stride = 2 * load(t, LEAF_ROOM)
    for c in range(load(t, KEY) + load(t, PAYLOAD)):
        copy_words(column(leaf, c), load(t, SCRATCH) + 8 * (c * stride + start), count)
    store(leaf, COUNT, count)


@jit
def make_edits(t: int, batch: int, i: int, stop: int, leaf: int) -> None:
    """Apply edits that all belong to one leaf.

    The block of a batch has two words per column: the address of the first word, and the stride. The columns are the
    key, the payload and the signs. The address of the signs is 0 if all edits insert.
    """
    rows = merge_edits(t, batch, i, stop, leaf)
    if load(t, CHANGED) == 0:
        return
    leaf = own_path(t)
    room = load(t, LEAF_ROOM)
    fresh = 0
    stay = rows
    if rows > room:
        stay = left_share(rows, room, 1 if load(t, BOUND_PAGE) == 0 else 0)
        fresh = take_page(t, 0)
        read_scratch(t, fresh, stay, rows - stay)
    read_scratch(t, leaf, 0, stay)
    mend_path(t, fresh)


@jit
def make_edit(t: int, batch: int, i: int, leaf: int) -> None:
    """Apply one edit, whose key is in the scratch key, to the leaf where it belongs."""
    k = load(t, KEY)
    width = k + load(t, PAYLOAD)
    key = load(t, SCRATCH_KEY)
    count = load(leaf, COUNT)
    at = first_not_less(leaf, k, key, 0, count)
    there = 1 if at < count and compare_entry(leaf, at, key, k) == 0 else 0
    if there != 0:
        for c in range(k, width):
            store(key, c, word_at(leaf, c, at))
    store(t, CHANGED, 0)
    after = edit_scratch(t, batch, i, key, 1, there)
    if load(t, CHANGED) == 0 or (there == 0 and after == 0):
        return
    if there == 0 and count == load(t, LEAF_ROOM):
        make_edits(t, batch, i, i + 1, leaf)
        return
    leaf = own_path(t)
    if after == 0:
        close_gap(leaf, width, at)
    else:
        if there == 0:
            open_gap(leaf, width, at)
        for c in range(width):
            store(column(leaf, c), at, load(key, c))
    mend_path(t, 0)


@outside
def apply_edits(t: int, batch: int, count: int) -> int:
    """Apply a batch of edits;

    returns the number applied. It is below ``count`` only if memory ran out: then FAILED is set, and the tree is
    consistent with the first edits applied.

    Works leaf by leaf: descends from the root to one leaf and applies all edits of that leaf, but at most as many as
    fit into a leaf. Then ``balancing`` repairs the pages above. A page that a version has is copied before it is
    changed (see ``pages``).
    """
    k = load(t, KEY)
    key = load(t, SCRATCH_KEY)
    i = 0
    while i < count:
        if reserve_pages(t, 3 * load(load(t, ROOT), LEVEL) + 5) == 0:
            return i
        for c in range(k):
            store(key, c, edit_word(batch, c, i))
        leaf = descend(t, key)
        most = i + load(t, LEAF_ROOM)
        stop = run_end(t, batch, i, most if most < count else count)
        if stop == i + 1:
            make_edit(t, batch, i, leaf)
        else:
            make_edits(t, batch, i, stop, leaf)
        i = stop
    return count
