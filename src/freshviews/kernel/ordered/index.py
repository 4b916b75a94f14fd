"""An ordered index: the rows of a table by key, the last key words in the orders of their types.

It answers MIN and MAX under deletes: the last key word of the first or last row among those that agree on the
rest of the key; it has the rows in order for ``kernel.ordered.top``, and folds of them for ``kernel.ordered.folds``.
Words of
the rest compare as integers; each of the last by a kind of its own. NULL comes first, or last where the kind says so.
The string kind looks the bytes up in a heap that ``set_strings`` has named: words ``offsets`` of length n + 1, and the
UTF-8 bytes of string i from ``offsets[i]`` to ``offsets[i + 1]``.

The index is a treap whose nodes are the rows themselves. A row keeps its two children, as row number + 1 or
0, in the halves of one word (see table.py); its priority is a hash of its number. Nothing here recurses, and
a search looks at O(log n) rows expected, whatever the order of insertion.

Membership is the caller's: ``ordered_insert`` when a row appears, after its key is written, and
``ordered_remove`` when it vanishes, *before* ``settle`` or ``remove_row`` may give the row away. A row whose
payload is zero, kept for the journal alone, is thus not in the index. Inserting a row that is in, and
removing one that is not, change nothing; nor does anything once memory ran out, when the row is not one of the table.
"""

from __future__ import annotations

from freshviews.kernel.btree.folds import FOLD_WORDS
from freshviews.kernel.hash.table import (
    FAILED,
    INDEXES,
    KEY,
    ORDERED,
    ORDERED_LIST,
    PAYLOAD,
    row_at,
)
from freshviews.kernel.memory.mem import (
    allocate,
    inlined,
    jit,
    load,
    load8,
    load32,
    mix,
    store,
    store32,
    write_key,
)
from freshviews.kernel.memory.outside import outside
from freshviews.types.sqltype import NULL

# Words of the header, which is one block: ``free_table`` frees it.
ROOT = 0  # row number + 1 of the root, or 0
ROW_WORD = 1  # which word of a row holds its children
STRING_OFFSETS = 2  # address of the offsets of the string heap
STRING_BYTES = 3  # address of its bytes
TOP = 4  # what ``kernel.ordered.top`` keeps
TOP_WORDS = 10
WORDS = TOP + TOP_WORDS  # how many of the last key words are in orders of their own
FOLDS = WORDS + 1  # how many folds of the last key word are kept
KINDS = FOLDS + 1  # the kind of each of the last words; then room for the rest of a key, which a search is given
# After the rest of a key, of which there is room for a whole one, come descriptions of the folds: see folds.py.

# A kind is one of these, with flags.
INTEGER_ORDER = 0
DOUBLE_ORDER = 1
STRING_ORDER = 2
DESCENDING = 4
NULLS_LAST = 8

_MAGNITUDE = 2**63 - 1


@jit
def new_ordered(t: int, words: int, folds: int = 0) -> int:
    """Handle of an empty ordered index of an empty table, entered in its list; 0 without memory.

    The last so many key words are in the orders of kinds that are stored at KINDS before the first row comes, as are
    descriptions of folds. The table was made with room for the index, and all its secondary indexes are added already.
    """
    n = load(t, ORDERED)
    o = allocate(KINDS + words + load(t, KEY) + folds * FOLD_WORDS)
    if o == 0:
        return 0
    store(o, WORDS, words)
    store(o, FOLDS, folds)
    store(o, ROW_WORD, load(t, KEY) + load(t, PAYLOAD) + load(t, INDEXES) + n)
    store(load(t, ORDERED_LIST), n, o)
    store(t, ORDERED, n + 1)
    return o


@jit
def set_strings(o: int, offsets: int, data: int) -> None:
    """Name the string heap; again whenever it moved, before the next insertion or removal."""
    store(o, STRING_OFFSETS, offsets)
    store(o, STRING_BYTES, data)


@jit
def compare_strings(o: int, a: int, b: int) -> int:
    """-1, 0 or 1 as string ``a`` of the heap comes before, is, or comes after string ``b`` by its bytes."""
    offsets = load(o, STRING_OFFSETS)
    data = load(o, STRING_BYTES)
    start_a = load(offsets, a)
    start_b = load(offsets, b)
    length_a = load(offsets, a + 1) - start_a
    length_b = load(offsets, b + 1) - start_b
    for i in range(min(length_a, length_b)):
        difference = load8(data, start_a + i) - load8(data, start_b + i)
        if difference != 0:
            return -1 if difference < 0 else 1
    if length_a == length_b:
        return 0
    return -1 if length_a < length_b else 1


@jit
def compare_codes(o: int, kind: int, a: int, b: int) -> int:
    """-1, 0 or 1 as code ``a`` comes before, is, or comes after code ``b`` in a kind of order."""
    if a == b:
        return 0
    if a == NULL or b == NULL:
        return 1 if (a == NULL) == (kind & NULLS_LAST != 0) else -1
    by = kind & 3
    order = 0
    if by == STRING_ORDER:
        order = compare_strings(o, a, b)
    else:
        if by == DOUBLE_ORDER:
            # Negative doubles descend as integers; the one NaN is positive and past infinity.
            a = a if a >= 0 else a ^ _MAGNITUDE
            b = b if b >= 0 else b ^ _MAGNITUDE
        order = -1 if a < b else 1
    return order if kind & DESCENDING == 0 else -order


@jit
def compare_prefix(a: int, b: int, words: int) -> int:
    """-1, 0 or 1 as key ``a`` comes before, is, or comes after key ``b`` by so many first words, which are not among
    those in orders of their own."""
    for i in range(words):
        x = load(a, i)
        y = load(b, i)
        if x != y:
            return -1 if x < y else 1
    return 0


@jit
def compare_rows(o: int, t: int, a: int, b: int) -> int:
    """-1, 0 or 1 as the row at ``a`` comes before, is, or comes after the one at ``b``."""
    words = load(o, WORDS)
    first = load(t, KEY) - words
    order = compare_prefix(a, b, first)
    i = 0
    while order == 0 and i < words:
        order = compare_codes(o, load(o, KINDS + i), load(a, first + i), load(b, first + i))
        i += 1
    return order


@inlined
def _priority(child: int) -> int:
    """What a heap orders rows by, given a row number + 1: a hash of it, then the number itself."""
    return (mix(mix(0, child), child) & 0x7FFFFFFF) << 32 | child


# A link is the address of the half word that holds a child: the root's, or one side of a row.


@inlined
def left_link(o: int, t: int, child: int) -> int:
    return row_at(t, child - 1) + 8 * load(o, ROW_WORD)


@inlined
def right_link(o: int, t: int, child: int) -> int:
    return row_at(t, child - 1) + 8 * load(o, ROW_WORD) + 4


@outside
def ordered_insert(o: int, t: int, number: int) -> None:
    """Enter a row of table ``t``, by number, when it appears."""
    if load(t, FAILED) != 0:
        return
    row = row_at(t, number)
    own = number + 1
    priority = _priority(own)
    link = o + 8 * ROOT
    child = load32(link, 0)
    while child != 0 and _priority(child) > priority:
        before = compare_rows(o, t, row, row_at(t, child - 1)) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        child = load32(link, 0)
    if child == own:
        return
    # The row takes the place of the subtree, which is split into what comes before and after it.
    store32(link, 0, own)
    left = left_link(o, t, own)
    right = right_link(o, t, own)
    while child != 0:
        if compare_rows(o, t, row, row_at(t, child - 1)) < 0:
            store32(right, 0, child)
            right = left_link(o, t, child)
            child = load32(right, 0)
        else:
            store32(left, 0, child)
            left = right_link(o, t, child)
            child = load32(left, 0)
    store32(left, 0, 0)
    store32(right, 0, 0)


@outside
def ordered_remove(o: int, t: int, number: int) -> None:
    """Take a row of table ``t`` out, by number, when it vanishes and before the table may remove it."""
    if load(t, FAILED) != 0:
        return
    row = row_at(t, number)
    own = number + 1
    link = o + 8 * ROOT
    child = load32(link, 0)
    while child != own:
        if child == 0:
            return
        before = compare_rows(o, t, row, row_at(t, child - 1)) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        child = load32(link, 0)
    left = load32(left_link(o, t, own), 0)
    right = load32(right_link(o, t, own), 0)
    while left != 0 and right != 0:
        if _priority(left) > _priority(right):
            store32(link, 0, left)
            link = right_link(o, t, left)
            left = load32(link, 0)
        else:
            store32(link, 0, right)
            link = left_link(o, t, right)
            right = load32(link, 0)
    store32(link, 0, left | right)
    store(row, load(o, ROW_WORD), 0)


@inlined
def prefix_of(o: int) -> int:
    """Where a search is given the rest of a key."""
    return o + 8 * (KINDS + load(o, WORDS))


@jit
def _end_of_prefix(o: int, t: int, greatest: bool) -> int:
    """The last key word of the first or last row of those that have the prefix in the header; 0 where none has."""
    wanted = prefix_of(o)
    words = load(t, KEY) - load(o, WORDS)
    found = 0
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        order = compare_prefix(wanted, row_at(t, child - 1), words)
        if order == 0:
            found = child
        right = order > 0 or (order == 0 and greatest)
        child = load32(right_link(o, t, child) if right else left_link(o, t, child), 0)
    return 0 if found == 0 else load(row_at(t, found - 1), load(t, KEY) - 1)


@inlined
def ordered_first(o: int, t: int, prefix: tuple[int, ...]) -> int:
    """The last key word of the first row of those whose key begins with ``prefix``; 0 where there is none.

    ``prefix`` is all of a key but the words in orders of their own; the empty tuple where there are no more.
    """
    write_key(prefix_of(o), prefix)
    return _end_of_prefix(o, t, False)


@inlined
def ordered_last(o: int, t: int, prefix: tuple[int, ...]) -> int:
    """The last key word of the last row of those whose key begins with ``prefix``, as ``ordered_first``."""
    write_key(prefix_of(o), prefix)
    return _end_of_prefix(o, t, True)


@outside
def ordered_neighbour(o: int, t: int, row: int, after: int) -> int:
    """The row that comes next after one, or before it where ``after`` is 0; its number + 1, or 0 where there is none.

    ``row`` is an address, of a row that need not be in the index; 0 for the first row of all, or the last.
    """
    found = 0
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        order = (-1 if after != 0 else 1) if row == 0 else compare_rows(o, t, row, row_at(t, child - 1))
        beyond = order < 0 if after != 0 else order > 0
        if beyond:
            found = child
        left = beyond if after != 0 else not beyond
        child = load32(left_link(o, t, child) if left else right_link(o, t, child), 0)
    return found
