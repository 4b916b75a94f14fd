"""Keeps sums of payloads in an ordered index. Each row stores the sum over its subtree."""

from __future__ import annotations

from collections.abc import Sequence

from freshviews.kernel.btree.folds import FOLD_WORDS
from freshviews.kernel.hash.table import KEY, row_at
from freshviews.kernel.memory.mem import add_wrapping, inlined, jit, load, load32, store
from freshviews.kernel.ordered.index import FOLDS, KINDS, ROW_WORD, SUMS, WORDS, left_link, right_link
from freshviews.kernel.scalar.real import clear_real, real_add_scaled

# Words of the description of a sum, in the header.
PLACE = 0  # the first word of the component in a row
SIZE = 1  # its words: 1 for an integer, more for a real
SUBTREE = 2  # the first word, in a row, of the sum of its subtree
TOTAL = 3  # the first word, in the header, of the total of the last range
DESCRIPTION_WORDS = 4

_SIGN = -(2**63)


def words_of_sum(size: int) -> int:
    """Words of the sum of a component with ``size`` words."""
    return 2 if size == 1 else size


def header_words(sizes: Sequence[int]) -> int:
    """Words that sums of components with these sizes take in the header of an index."""
    return sum(DESCRIPTION_WORDS + words_of_sum(size) for size in sizes)


def describe_sums(o: int, t: int, places: Sequence[int], sizes: Sequence[int]) -> None:
    """Write the descriptions of the sums of an empty index: the first word of each component in a row, and its size."""
    store(o, SUMS, len(places))
    in_row = load(o, ROW_WORD) + 1 + load(o, FOLDS)
    in_header = (sum_at(o, t, len(places)) - o) // 8
    for f, (place, size) in enumerate(zip(places, sizes, strict=True)):
        at = sum_at(o, t, f)
        store(at, PLACE, place)
        store(at, SIZE, size)
        store(at, SUBTREE, in_row)
        store(at, TOTAL, in_header)
        in_row += words_of_sum(size)
        in_header += words_of_sum(size)


@inlined
def sum_at(o: int, t: int, f: int) -> int:
    """The description of a sum of an index.

    The sum of an integer component has two words, low and high, so it cannot overflow. Reading a total that does not
    fit one word reports an error. Doubles are summed as in ``kernel.scalar.real``.
    """
    return o + 8 * (KINDS + load(o, WORDS) + load(t, KEY) + load(o, FOLDS) * FOLD_WORDS + f * DESCRIPTION_WORDS)


# A sum is changed at an address, by a word or by another sum.


@inlined
def _add_long(target: int, low: int, high: int) -> None:
    """Add two words, low and high, to the two at an address."""
    total = add_wrapping(load(target, 0), low)
    carry = 1 if (total ^ _SIGN) < (low ^ _SIGN) else 0
    store(target, 0, total)
    store(target, 1, add_wrapping(add_wrapping(load(target, 1), high), carry))


@jit
def _clear(sum_: int, target: int) -> None:
    if load(sum_, SIZE) == 1:
        store(target, 0, 0)
        store(target, 1, 0)
    else:
        clear_real(target)


@jit
def add_payload(sum_: int, target: int, row: int) -> None:
    """Add the component of a row."""
    source = row + 8 * load(sum_, PLACE)
    if load(sum_, SIZE) == 1:
        word = load(source, 0)
        _add_long(target, word, word >> 63)
    else:
        real_add_scaled(target, source, 1)


@jit
def add_sum(sum_: int, target: int, source: int, sign: int) -> None:
    """Add a sum, or subtract it."""
    if load(sum_, SIZE) != 1:
        real_add_scaled(target, source, sign)
    elif sign > 0:
        _add_long(target, load(source, 0), load(source, 1))
    else:
        low = add_wrapping(load(source, 0) ^ -1, 1)
        high = load(source, 1) ^ -1
        _add_long(target, low, add_wrapping(high, 1) if low == 0 else high)


@inlined
def subtree_of(sum_: int, row: int) -> int:
    """The address of the sum of the subtree below a row."""
    return row + 8 * load(sum_, SUBTREE)


@inlined
def total_of(o: int, sum_: int) -> int:
    """The address of the total in the header."""
    return o + 8 * load(sum_, TOTAL)


@jit
def sum_row(o: int, t: int, child: int) -> None:
    """Recompute the sums of a row from those of its children."""
    row = row_at(t, child - 1)
    left = load32(left_link(o, t, child), 0)
    right = load32(right_link(o, t, child), 0)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        target = subtree_of(at, row)
        _clear(at, target)
        add_payload(at, target, row)
        if left != 0:
            add_sum(at, target, subtree_of(at, row_at(t, left - 1)), 1)
        if right != 0:
            add_sum(at, target, subtree_of(at, row_at(t, right - 1)), 1)


@inlined
def clear_total(o: int, sum_: int) -> None:
    """Set the total in the header to zero."""
    _clear(sum_, total_of(o, sum_))
