"""Keeps the pages of an ordered tree, and its versions. A version is a state of the tree that readers hold.

A page is a block of words::

    birth | level | count | room | next dead | column 0, ``room`` words | column 1 | ...

- A page of level 0 is a leaf: it has a column per word of key and payload.
- A page of another level has an entry per child page: the child's least key, its address, the number of rows below it,
  and a word per fold.
- A version shares pages with later versions. A writer copies a shared page before editing it.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import allocate, copy_words, inlined, jit, load, reallocate, release, store
from freshviews.kernel.memory.outside import outside

# Words of a page; the columns follow.
BIRTH = 0  # number of the version that was current, and not yet pinned, when the page was made
LEVEL = 1  # 0 for a leaf
COUNT = 2  # rows or entries
ROOM = 3  # capacity in rows or entries: the distance of columns in words
NEXT_DEAD = 4  # next page in the list of dead pages of a version, or of spare pages
BODY = 5

# Words of the header of a tree.
ROOT = 0
KEY = 1  # words of a key
PAYLOAD = 2  # words of the payload of a row
SUMMED = 3  # 1 if edits add to payloads, and a row with a zero payload is absent
LEAF_ROOM = 4
INNER_ROOM = 5
PAGE_WORDS = 6
FOLDS = 7  # number of folds
FOLD_LIST = 8  # address of their description; see folds.py
PAGES = 9  # pages of the tree and of all its versions
SPARE = 10  # first spare page
SPARES = 11
COPIED = 12  # pages ever copied because a version had them
VISITED = 13  # pages that the writer ever visited
FAILED = 14  # 1 if memory ran out: edits are missing
EPOCH = 15  # number of the version that ``pin`` would make
NEWEST = 16  # handle of the newest version, or 0
FLOOR = 17  # its number, or -1: pages born later are the tree's own
SCRATCH = 18  # room for the rows of two leaves
SCRATCH_KEY = 19  # room for a row
BOUND_PAGE = 20  # the page of the entry after the last descent, or 0 at the end of the tree
BOUND_SLOT = 21
CHANGED = 22  # whether the last merge of edits changed anything
PATH = 23  # a page and a slot per level of the last descent

LEVELS = 24
"""Maximum number of levels of a tree: more than any memory can hold."""
TREE_HEADER = PATH + 2 * LEVELS

# Words of a version.
NUMBER = 0
TOP = 1  # its root page
READERS = 2
DEAD = 3  # first page of the list of pages that left the tree after it and that no newer version has
OLDER = 4
NEWER = 5
VERSION_WORDS = 6

MOST_SPARES = 64
"""Maximum number of spare pages, besides a sixteenth of those in use."""


@inlined
def column(page: int, c: int) -> int:
    """Address of a column of a page."""
    return page + 8 * (BODY + c * load(page, ROOM))


@inlined
def word_at(page: int, c: int, i: int) -> int:
    """A word of row or entry ``i``."""
    return load(page, BODY + c * load(page, ROOM) + i)


@inlined
def compare_entry(page: int, i: int, key: int, words: int) -> int:
    """-1, 0 or 1: the first words of entry ``i`` are less than, equal to or greater than those at an address."""
    order = 0
    for c in range(words):
        x = word_at(page, c, i)
        y = load(key, c)
        if x != y:
            order = -1 if x < y else 1
            break
    return order


@jit
def first_not_less(page: int, words: int, key: int, low: int, high: int) -> int:
    """First of the entries ``low`` to ``high`` whose first words are not less than the key's, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if compare_entry(page, middle, key, words) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def first_greater(page: int, words: int, key: int, low: int, high: int) -> int:
    """First of the entries ``low`` to ``high`` whose first words are greater than the key's, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if compare_entry(page, middle, key, words) <= 0:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def child_at(page: int, key_words: int, slot: int) -> int:
    """The child of an entry."""
    return word_at(page, key_words, slot)


@inlined
def columns_of(t: int, page: int) -> int:
    """Number of columns of a page."""
    if load(page, LEVEL) == 0:
        return load(t, KEY) + load(t, PAYLOAD)
    return load(t, KEY) + 2 + load(t, FOLDS)


# Allocating and releasing pages.


@outside
def reserve_pages(t: int, wanted: int) -> int:
    """Have at least ``wanted`` spare pages, so that ``take_page`` cannot fail; 0 without memory."""
    while load(t, SPARES) < wanted:
        page = reallocate(0, load(t, PAGE_WORDS))
        if page == 0:
            store(t, FAILED, 1)
            return 0
        store(page, NEXT_DEAD, load(t, SPARE))
        store(t, SPARE, page)
        store(t, SPARES, load(t, SPARES) + 1)
    return 1


@jit
def take_page(t: int, level: int) -> int:
    """An empty page from the spare ones."""
    page = load(t, SPARE)
    store(t, SPARE, load(page, NEXT_DEAD))
    store(t, SPARES, load(t, SPARES) - 1)
    store(t, PAGES, load(t, PAGES) + 1)
    store(page, BIRTH, load(t, EPOCH))
    store(page, LEVEL, level)
    store(page, COUNT, 0)
    store(page, ROOM, load(t, LEAF_ROOM) if level == 0 else load(t, INNER_ROOM))
    store(page, NEXT_DEAD, 0)
    return page


@jit
def give_page(t: int, page: int) -> None:
    """Make an unneeded page spare, or release it."""
    store(t, PAGES, load(t, PAGES) - 1)
    if load(t, SPARES) < MOST_SPARES + (load(t, PAGES) >> 4):
        store(page, NEXT_DEAD, load(t, SPARE))
        store(t, SPARE, page)
        store(t, SPARES, load(t, SPARES) + 1)
    else:
        release(page)


@jit
def bury(version: int, page: int) -> None:
    """Add a page to the list of dead pages of a version.

    A page that leaves the tree is *dead*. Each dead page is in the list of the newest version that has it. When the
    last reader unpins a version, its list is divided. Pages that the next older version has move to the list of that
    version; all others are released (`docs/trie-join.md`, Versions).

    Only one thread at a time may call ``pin``, ``unpin`` and edits. Readers of versions need no lock.
    """
    store(page, NEXT_DEAD, load(version, DEAD))
    store(version, DEAD, page)


@jit
def drop_page(t: int, page: int) -> None:
    """Remove a page from the tree; it becomes spare unless a version has it."""
    if load(page, BIRTH) > load(t, FLOOR):
        give_page(t, page)
    else:
        bury(load(t, NEWEST), page)


@jit
def own_page(t: int, page: int) -> int:
    """The page itself if no version has it; otherwise a copy, which the caller links in its place."""
    if load(page, BIRTH) > load(t, FLOOR):
        return page
    copy = take_page(t, load(page, LEVEL))
    copy_words(copy + 8 * BODY, page + 8 * BODY, load(t, PAGE_WORDS) - BODY)
    store(copy, COUNT, load(page, COUNT))
    store(t, COPIED, load(t, COPIED) + 1)
    bury(load(t, NEWEST), page)
    return copy


# Versions.


@outside
def pin(t: int) -> int:
    """Keep the current state as a version, or add a reader if there is one; returns its handle, 0 without memory.

    **Versions.** ``pin`` keeps the state of a tree as a version, whose root is a page. From then on no page of the
    version is written: a writer copies the page and its ancestors and edits the copies (copy-on-write). ``birth`` is
    the number of the first version that could contain the page. A page that no pinned version has is written in place.
    """
    newest = load(t, NEWEST)
    if newest != 0 and load(newest, TOP) == load(t, ROOT):
        store(newest, READERS, load(newest, READERS) + 1)
        return newest
    version = allocate(VERSION_WORDS)
    if version == 0:
        return 0
    store(version, NUMBER, load(t, EPOCH))
    store(version, TOP, load(t, ROOT))
    store(version, READERS, 1)
    store(version, OLDER, newest)
    if newest != 0:
        store(newest, NEWER, version)
    store(t, NEWEST, version)
    store(t, FLOOR, load(t, EPOCH))
    store(t, EPOCH, load(t, EPOCH) + 1)
    return version


@outside
def unpin(t: int, version: int) -> None:
    """Remove a reader from a version; after the last one, pages that only this version needed become spare."""
    readers = load(version, READERS) - 1
    store(version, READERS, readers)
    if readers > 0:
        return
    older = load(version, OLDER)
    newer = load(version, NEWER)
    floor = -1 if older == 0 else load(older, NUMBER)
    if older != 0:
        store(older, NEWER, newer)
    if newer != 0:
        store(newer, OLDER, older)
    else:
        store(t, NEWEST, older)
        store(t, FLOOR, floor)
    page = load(version, DEAD)
    while page != 0:
        following = load(page, NEXT_DEAD)
        if load(page, BIRTH) > floor:
            give_page(t, page)
        else:
            bury(older, page)
        page = following
    release(version)


@jit
def give_subtree(t: int, root: int, floor: int, stack: int) -> None:
    """Make the root and its descendants spare, as far as they were born after ``floor``, the number of a version or -1.

    Older pages and their descendants belong to that version. ``stack`` has two words per level.
    """
    k = load(t, KEY)
    depth = 0
    if load(root, BIRTH) > floor:
        store(stack, 0, root)
        store(stack, 1, 0)
        depth = 1
    while depth > 0:
        page = load(stack, 2 * depth - 2)
        slot = load(stack, 2 * depth - 1)
        if load(page, LEVEL) == 0 or slot == load(page, COUNT):
            give_page(t, page)
            depth -= 1
        else:
            store(stack, 2 * depth - 1, slot + 1)
            child = child_at(page, k, slot)
            if load(child, BIRTH) > floor:
                store(stack, 2 * depth, child)
                store(stack, 2 * depth + 1, 0)
                depth += 1


@outside
def revert(t: int, version: int) -> None:
    """Undo all edits since the newest version was pinned; other versions stay."""
    give_subtree(t, load(t, ROOT), load(version, NUMBER), t + 8 * PATH)
    store(version, DEAD, 0)
    store(t, ROOT, load(version, TOP))
    store(t, FAILED, 0)


@outside
def free_tree(t: int) -> None:
    """Release all memory of a tree and of its versions."""
    give_subtree(t, load(t, ROOT), -1, t + 8 * PATH)
    version = load(t, NEWEST)
    while version != 0:
        page = load(version, DEAD)
        while page != 0:
            following = load(page, NEXT_DEAD)
            give_page(t, page)
            page = following
        older = load(version, OLDER)
        release(version)
        version = older
    page = load(t, SPARE)
    while page != 0:
        following = load(page, NEXT_DEAD)
        release(page)
        page = following
    release(load(t, FOLD_LIST))
    release(load(t, SCRATCH))
    release(load(t, SCRATCH_KEY))
    release(t)


@jit
def tree_bytes(t: int) -> int:
    """Bytes that a tree holds: header, scratch rows, its pages, those of its versions, and spare ones."""
    pages = load(t, PAGES) + load(t, SPARES)
    scratch = (2 * load(t, LEAF_ROOM) + 1) * (load(t, KEY) + load(t, PAYLOAD))
    return 8 * (TREE_HEADER + scratch + pages * load(t, PAGE_WORDS))
