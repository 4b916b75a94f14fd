"""Computes folds of an ordered index: aggregates, such as the minimum, over the rows that share a prefix of the key.

Most folds combine the last key words of these rows. MODE and MODE_LAST instead find the row with the greatest count,
the first word of the payload. Their result is the number of that row plus 1. Among rows with equal counts, MODE finds
the first row and MODE_LAST the last. LEAST_ROW and GREATEST_ROW likewise find a row, by its last two key words.
"""

from __future__ import annotations

from freshviews.kernel.btree.folds import FOLD_WORDS, GREATEST, KIND, LEAST, combine
from freshviews.kernel.hash.table import KEY, row_at
from freshviews.kernel.memory.mem import inlined, jit, load, load32, store, write_key
from freshviews.kernel.memory.row_sort import compare_prefix
from freshviews.kernel.ordered.index import (
    FOLDS,
    KINDS,
    ROOT,
    ROW_WORD,
    WORDS,
    compare_codes,
    left_link,
    prefix_of,
    right_link,
)
from freshviews.kernel.ordered.places import copies_of

MODE = 6
MODE_LAST = 7
LEAST_ROW = 8
GREATEST_ROW = 9
"""Kinds of folds, after those of ``btree.folds``. From MODE on a fold finds a row."""


@inlined
def ordered_fold_at(o: int, t: int, f: int) -> int:
    """The description of a fold of an index: see folds.py."""
    return o + 8 * (KINDS + load(o, WORDS) + load(t, KEY) + f * FOLD_WORDS)


@inlined
def own_of(t: int, fold: int, child: int) -> int:
    """The word of a row that a fold combines."""
    return child if load(fold, KIND) >= MODE else load(row_at(t, child - 1), load(t, KEY) - 1)


@inlined
def below_of(o: int, t: int, child: int, f: int) -> int:
    """A fold of a whole subtree."""
    return load(row_at(t, child - 1), load(o, ROW_WORD) + 1 + f)


@jit
def _compare_pairs(o: int, t: int, a: int, b: int) -> int:
    """-1, 0 or 1: the last two key words of row number + 1 ``a`` come before those of ``b``, equal them, or come after
    them."""
    kinds = KINDS + load(o, WORDS)
    last = load(t, KEY) - 1
    one = row_at(t, a - 1)
    other = row_at(t, b - 1)
    order = compare_codes(o, load(o, kinds - 2), load(one, last - 1), load(other, last - 1))
    return order if order != 0 else compare_codes(o, load(o, kinds - 1), load(one, last), load(other, last))


@jit
def combine_of(o: int, t: int, fold: int, a: int, b: int) -> int:
    """Combine two values of a fold; the rows of ``a`` come before those of ``b``."""
    kind = load(fold, KIND)
    if kind >= LEAST_ROW:
        order = _compare_pairs(o, t, a, b)
        return a if (order < 0) == (kind == LEAST_ROW) else b
    if kind >= MODE:
        more = copies_of(t, row_at(t, b - 1)) - copies_of(t, row_at(t, a - 1))
        return b if more > 0 or (more == 0 and kind == MODE_LAST) else a
    if kind == LEAST or kind == GREATEST:
        order = compare_codes(o, load(o, KINDS + load(o, WORDS) - 1), a, b)
        return a if (order < 0) == (kind == LEAST) else b
    return combine(fold, a, b)


@jit
def fold_row(o: int, t: int, child: int) -> None:
    """Recompute the folds of a row from those of its children."""
    left = load32(left_link(o, t, child), 0)
    right = load32(right_link(o, t, child), 0)
    for f in range(load(o, FOLDS)):
        fold = ordered_fold_at(o, t, f)
        value = own_of(t, fold, child)
        if left != 0:
            value = combine_of(o, t, fold, below_of(o, t, left, f), value)
        if right != 0:
            value = combine_of(o, t, fold, value, below_of(o, t, right, f))
        store(row_at(t, child - 1), load(o, ROW_WORD) + 1 + f, value)


@jit
def _fold_of_prefix(o: int, t: int, f: int, words: int) -> int:
    """Fold ``f`` of the rows with the prefix in the header, of ``words`` words; 0 if there is none."""
    fold = ordered_fold_at(o, t, f)
    wanted = prefix_of(o)
    top = load32(o + 8 * ROOT, 0)
    order = 1
    while top != 0 and order != 0:
        order = compare_prefix(wanted, row_at(t, top - 1), words)
        if order != 0:
            top = load32(right_link(o, t, top) if order > 0 else left_link(o, t, top), 0)
    if top == 0:
        return 0
    value = own_of(t, fold, top)
    # On the path to the first row of the prefix, a row with the prefix adds all rows to its right; likewise the last.
    child = load32(left_link(o, t, top), 0)
    while child != 0:
        right = load32(right_link(o, t, child), 0)
        if compare_prefix(wanted, row_at(t, child - 1), words) == 0:
            if right != 0:
                value = combine_of(o, t, fold, below_of(o, t, right, f), value)
            value = combine_of(o, t, fold, own_of(t, fold, child), value)
            child = load32(left_link(o, t, child), 0)
        else:
            child = right
    child = load32(right_link(o, t, top), 0)
    while child != 0:
        left = load32(left_link(o, t, child), 0)
        if compare_prefix(wanted, row_at(t, child - 1), words) == 0:
            if left != 0:
                value = combine_of(o, t, fold, value, below_of(o, t, left, f))
            value = combine_of(o, t, fold, value, own_of(t, fold, child))
            child = load32(right_link(o, t, child), 0)
        else:
            child = left
    return value


@inlined
def ordered_mode(o: int, t: int, prefix: tuple[int, ...], f: int) -> int:
    """The last key word of the row that fold ``f``, a MODE, finds among the rows with a prefix; 0 if there is none."""
    write_key(prefix_of(o), prefix)
    found = _fold_of_prefix(o, t, f, len(prefix))
    return 0 if found == 0 else load(row_at(t, found - 1), load(t, KEY) - 1)


@inlined
def ordered_fold(o: int, t: int, prefix: tuple[int, ...], f: int) -> int:
    """Fold ``f`` of the last key words of the rows whose key begins with ``prefix``; 0 if there is none.

    ``prefix`` has some or all of the key words without a kind.

    The prefix may have any number of key words, so one index serves groups and coarser groups. The folds LEAST and
    GREATEST compare in the order of the index.

    The search tree is *augmented* (Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, chapter on
    augmenting data structures): for each fold, a row stores the combined last key words of its subtree. The words are
    combined in order, so the operation need not commute. ``index_updates`` maintains the folds. ``ordered_fold``
    combines the rows of a prefix from O(log n) subtrees, expected.
    """
    write_key(prefix_of(o), prefix)
    return _fold_of_prefix(o, t, f, len(prefix))
