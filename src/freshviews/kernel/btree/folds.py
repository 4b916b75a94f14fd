"""Computes folds of an ordered tree: a fold is an aggregate of one column of the rows below a page, such as a sum.

Inner pages store the folds of each child, so that a reader can skip the rows below the child.
"""

from __future__ import annotations

from freshviews.kernel.btree.pages import COUNT, FOLD_LIST, FOLDS, KEY, LEVEL, column, word_at
from freshviews.kernel.memory.mem import add_wrapping, call_pair, inlined, jit, load, store

SUM = 0
LEAST = 1
GREATEST = 2
OWN = 3
BIT_AND = 4
BIT_OR = 5

# Words of a fold's description.
KIND = 0
WORD = 1  # the number of the word in a row: key, then payload
FUNCTION = 2  # address of the C function of an OWN fold
FOLD_WORDS = 3


@inlined
def combine(fold: int, a: int, b: int) -> int:
    """Combine two values of a fold; the rows of ``a`` come before those of ``b``.

    A fold combines one word of every row, from the key or the payload, by an associative operation. The operation is a
    sum modulo 2^64, minimum, maximum, bitwise AND or OR, or a user's semigroup. A user's semigroup is the address of a
    C function that takes two words and returns one (``numba.cfunc("int64(int64, int64)")(f).address``). Rows are
    combined in the order of the tree, so the operation need not commute. Every tree also counts rows.
    """
    kind = load(fold, KIND)
    if kind == SUM:
        return add_wrapping(a, b)
    if kind == LEAST:
        return a if a < b else b
    if kind == GREATEST:
        return a if a > b else b
    if kind == BIT_AND:
        return a & b
    if kind == BIT_OR:
        return a | b
    return call_pair(load(fold, FUNCTION), a, b)


@jit
def fold_words(fold: int, words: int, low: int, high: int) -> int:
    """The combination of the words ``low`` to ``high`` of a column, at least one."""
    kind = load(fold, KIND)
    value = load(words, low)
    if kind == SUM:
        for i in range(low + 1, high):
            value = add_wrapping(value, load(words, i))
    elif kind == LEAST:
        for i in range(low + 1, high):
            x = load(words, i)
            value = x if x < value else value
    elif kind == GREATEST:
        for i in range(low + 1, high):
            x = load(words, i)
            value = x if x > value else value
    else:
        for i in range(low + 1, high):
            value = combine(fold, value, load(words, i))
    return value


@inlined
def fold_at(t: int, f: int) -> int:
    """The description of a fold of a tree."""
    return load(t, FOLD_LIST) + 8 * FOLD_WORDS * f


@inlined
def folded_column(t: int, page: int, f: int) -> int:
    """Address of the column of a page that a fold combines."""
    if load(page, LEVEL) == 0:
        return column(page, load(fold_at(t, f), WORD))
    return column(page, load(t, KEY) + 2 + f)


@inlined
def rows_below(page: int, key_words: int) -> int:
    """Number of rows of a leaf, or below an inner page."""
    count = load(page, COUNT)
    if load(page, LEVEL) == 0:
        return count
    rows = 0
    words = column(page, key_words + 1)
    for i in range(count):
        rows += load(words, i)
    return rows


@jit
def describe_child(t: int, page: int, slot: int, child: int) -> None:
    """Write the entry of a child: its least key, address, number of rows, and folds.

    The child is not empty, or will be merged next.
    """
    k = load(t, KEY)
    for c in range(k):
        store(column(page, c), slot, word_at(child, c, 0))
    store(column(page, k), slot, child)
    store(column(page, k + 1), slot, rows_below(child, k))
    count = load(child, COUNT)
    if count > 0:
        for f in range(load(t, FOLDS)):
            value = fold_words(fold_at(t, f), folded_column(t, child, f), 0, count)
            store(column(page, k + 2 + f), slot, value)
