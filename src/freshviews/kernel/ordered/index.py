"""Keeps the rows of a table in a search tree, in the order of their keys.

The tree is a treap: hashes of the row numbers decide which row is above another one, so the tree stays balanced.
"""

from __future__ import annotations

from freshviews.kernel.btree.folds import FOLD_WORDS
from freshviews.kernel.codes.string_slots import text_of
from freshviews.kernel.hash.table import INDEXES, KEY, ORDERED, ORDERED_LIST, PAYLOAD, row_at
from freshviews.kernel.memory.mem import allocate, inlined, jit, load, load8, load32, mix, store, store32
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import compare_prefix
from freshviews.types.sqltype import NULL

# Words of the header, which is one block: ``free_table`` frees it.
ROOT = 0  # row number + 1 of the root, or 0
ROW_WORD = 1  # the word of a row that has its children
STRINGS = 2  # address of the block of ``codes.string_slots`` that has the strings
TOP = 3  # words of ``kernel.ordered.top``, or of ``kernel.ordered.threshold_tree``
TOP_WORDS = 10
WORDS = TOP + TOP_WORDS  # number of last key words with kinds
FOLDS = WORDS + 1  # number of folds of the last key word
SUMS = FOLDS + 1  # number of components that are summed
SLICES = SUMS + 1  # the hash index of the key words without a kind, or 0: see groups.py
BOUNDS = SLICES + 1  # the first of the last words, which have the two bounds of a range of places
KINDS = BOUNDS + 1  # the kind of each of the last words; then room for the prefix of a search
# After the prefix, with room for a whole key, come the descriptions of folds, then of sums with a total of each: see
# folds.py and sums.py.

# A kind is one of these, with flags.
INTEGER_ORDER = 0
DOUBLE_ORDER = 1
STRING_ORDER = 2
DESCENDING = 4
NULLS_LAST = 8

_MAGNITUDE = 2**63 - 1


@jit
def new_ordered(t: int, words: int, folds: int, extra: int) -> int:
    """Handle of an empty ordered index, added to the list of an empty table; 0 without memory.

    The last ``words`` key words have kinds. The caller stores the kinds at KINDS, and descriptions of the folds, before
    the first row. The table must have room for the index, and have all its secondary indexes. The header ends with
    ``extra`` words, for sums.

    The first words of a key, the *prefix*, compare as integers. Each other word has a *kind*, the order in which it is
    compared: as an integer, a double or a string, ascending or descending, NULL first or last. Strings are read from
    the dictionary that ``set_strings`` sets (``codes.string_slots``).
    """
    n = load(t, ORDERED)
    bounds = KINDS + words + load(t, KEY) + folds * FOLD_WORDS + extra
    o = allocate(bounds + 2 * words)
    if o == 0:
        return 0
    store(o, BOUNDS, bounds)
    store(o, WORDS, words)
    store(o, FOLDS, folds)
    store(o, ROW_WORD, load(t, KEY) + load(t, PAYLOAD) + load(t, INDEXES) + n)
    store(load(t, ORDERED_LIST), n, o)
    store(t, ORDERED, n + 1)
    return o


@jit
def set_strings(o: int, block: int) -> None:
    """Set the block of the dictionary that has the strings."""
    store(o, STRINGS, block)


@jit
def compare_strings(o: int, a: int, b: int) -> int:
    """-1, 0 or 1: string ``a`` of the dictionary is less than, equal to or greater than string ``b`` by bytes."""
    text_a, length_a = text_of(load(o, STRINGS), a)
    text_b, length_b = text_of(load(o, STRINGS), b)
    for i in range(min(length_a, length_b)):
        difference = load8(text_a, i) - load8(text_b, i)
        if difference != 0:
            return -1 if difference < 0 else 1
    if length_a == length_b:
        return 0
    return -1 if length_a < length_b else 1


@jit
def compare_codes(o: int, kind: int, a: int, b: int) -> int:
    """-1, 0 or 1: code ``a`` is less than, equal to or greater than code ``b`` in a kind of order."""
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
def compare_rows(o: int, t: int, a: int, b: int) -> int:
    """-1, 0 or 1: the row at ``a`` comes before, equals or comes after the one at ``b``."""
    words = load(o, WORDS)
    first = load(t, KEY) - words
    order = compare_prefix(a, b, first)
    i = 0
    while order == 0 and i < words:
        order = compare_codes(o, load(o, KINDS + i), load(a, first + i), load(b, first + i))
        i += 1
    return order


@inlined
def priority_of(child: int) -> int:
    """The priority in the heap of a row number + 1: a hash, then the number."""
    return (mix(mix(0, child), child) & 0x7FFFFFFF) << 32 | child


# A link is the address of the half word that holds a child: the root's, or one side of a row.


@inlined
def left_link(o: int, t: int, child: int) -> int:
    return row_at(t, child - 1) + 8 * load(o, ROW_WORD)


@inlined
def right_link(o: int, t: int, child: int) -> int:
    return row_at(t, child - 1) + 8 * load(o, ROW_WORD) + 4


@jit
def tree_insert(o: int, t: int, number: int) -> None:
    """Insert row ``number`` into the tree, unless it is there.

    A row stores its two children in the halves of one word (see ``hash.table``). A child is its row number + 1, or 0 if
    there is none. The priority of a row is a hash of its number. A search reads O(log n) rows, expected, for any order
    of insertion.
    """
    row = row_at(t, number)
    own = number + 1
    priority = priority_of(own)
    link = o + 8 * ROOT
    child = load32(link, 0)
    while child != 0 and priority_of(child) > priority:
        before = compare_rows(o, t, row, row_at(t, child - 1)) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        child = load32(link, 0)
    if child == own:
        return
    # The row replaces the subtree, which is split into the rows before and after it.
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


@jit
def tree_remove(o: int, t: int, number: int) -> None:
    """Remove row ``number`` from the tree, if it is there."""
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
        if priority_of(left) > priority_of(right):
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
    """Address of the prefix of a search, in the header."""
    return o + 8 * (KINDS + load(o, WORDS))


@inlined
def low_of(o: int) -> int:
    """Address of the lower bound of a range of places, in the header."""
    return o + 8 * load(o, BOUNDS)


@inlined
def high_of(o: int) -> int:
    """Address of the upper bound of a range of places, in the header."""
    return o + 8 * (load(o, BOUNDS) + load(o, WORDS))


@outside
def ordered_neighbour(o: int, t: int, row: int, after: int) -> int:
    """The next row after one, or the one before it if ``after`` is 0: row number + 1, or 0 if there is none.

    ``row``: the address of a row, possibly not in the index; 0 asks for the first, or the last, of all rows.
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
