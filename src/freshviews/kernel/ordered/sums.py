"""Sums of payloads over ranges of an ordered index.

Besides its children a row stores, for each summed component, the sum of the component over its subtree. This is an
augmented search tree, as that of ``folds``; but a sum has an inverse, so a change of one row is added to the rows above
it, and no row beside the path is read. A range is bounded by a prefix of the key and by one or two values of the next
key word. Its sum is the sums of whole subtrees along the two paths that bound it. All of it is O(log n), expected, and
allocates nothing.

An integer is summed in two words, low and high, so that no sum of a subtree overflows; a total that does not fit one
word is reported where it is read. A real is summed as ``kernel.scalar.real`` does.

The caller keeps the sums in step: ``summed_insert`` and ``summed_remove`` in the place of ``ordered_insert`` and
``ordered_remove``, and ``summed_update`` when the payload of a row that is in the index has changed. The order is
ascending with NULL first. NULL lies in no range.
"""

from __future__ import annotations

from collections.abc import Sequence

from freshviews.kernel.btree.folds import FOLD_WORDS
from freshviews.kernel.hash.table import FAILED, KEY, row_at
from freshviews.kernel.memory.mem import add_wrapping, inlined, jit, load, load32, store, store32, write_key
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.ordered.index import (
    FOLDS,
    KINDS,
    ROOT,
    ROW_WORD,
    SUMS,
    WORDS,
    compare_codes,
    compare_prefix,
    compare_rows,
    left_link,
    ordered_insert,
    ordered_neighbour,
    ordered_remove,
    prefix_of,
    right_link,
)
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import SUM_OVERFLOW
from freshviews.kernel.scalar.real import clear_real, real_add_scaled
from freshviews.types.sqltype import NULL

# Words of the description of a sum, in the header.
PLACE = 0  # which word of a row the component begins with
SIZE = 1  # its words: 1 of an integer, more of a real
SUBTREE = 2  # which word of a row the sum of its subtree begins with
TOTAL = 3  # which word of the header the total of the last range begins with
DESCRIPTION_WORDS = 4

# What a range has, as bits.
HAS_LOW = 1
LOW_STRICT = 2
HAS_HIGH = 4
HIGH_STRICT = 8

_SIGN = -(2**63)


def words_of_sum(size: int) -> int:
    """Words of the sum of a component with ``size`` words."""
    return 2 if size == 1 else size


def header_words(sizes: Sequence[int]) -> int:
    """Words that sums of components with these sizes take in the header of an index."""
    return sum(DESCRIPTION_WORDS + words_of_sum(size) for size in sizes)


def describe_sums(o: int, t: int, places: Sequence[int], sizes: Sequence[int]) -> None:
    """Write the descriptions of the sums of an empty index: where in a row each component begins, and its words."""
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
    """The description of a sum of an index."""
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
def _add_payload(sum_: int, target: int, row: int) -> None:
    """Add the component of a row."""
    source = row + 8 * load(sum_, PLACE)
    if load(sum_, SIZE) == 1:
        word = load(source, 0)
        _add_long(target, word, word >> 63)
    else:
        real_add_scaled(target, source, 1)


@jit
def _add_sum(sum_: int, target: int, source: int, sign: int) -> None:
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
def _subtree(sum_: int, row: int) -> int:
    """The address of the sum of the subtree below a row."""
    return row + 8 * load(sum_, SUBTREE)


@inlined
def _total(o: int, sum_: int) -> int:
    """The address of the total in the header."""
    return o + 8 * load(sum_, TOTAL)


@jit
def _sum_row(o: int, t: int, child: int) -> None:
    """Recompute the sums of a row from those of its children."""
    row = row_at(t, child - 1)
    left = load32(left_link(o, t, child), 0)
    right = load32(right_link(o, t, child), 0)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        target = _subtree(at, row)
        _clear(at, target)
        _add_payload(at, target, row)
        if left != 0:
            _add_sum(at, target, _subtree(at, row_at(t, left - 1)), 1)
        if right != 0:
            _add_sum(at, target, _subtree(at, row_at(t, right - 1)), 1)


@jit
def _sum_path(o: int, t: int, own: int, top: int) -> None:
    """Recompute the sums of the rows on the search path for row ``own`` from ``top`` on, the lowest one first.

    On the way down each link points to the row above, as in ``folds``.
    """
    row = row_at(t, own - 1)
    child = top
    above = 0
    while child != 0 and child != own:
        before = compare_rows(o, t, row, row_at(t, child - 1)) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        below = load32(link, 0)
        store32(link, 0, above)
        above = -child if before else child
        child = below
    while above != 0:
        at = -above if above < 0 else above
        link = left_link(o, t, at) if above < 0 else right_link(o, t, at)
        above = load32(link, 0)
        store32(link, 0, child)
        _sum_row(o, t, at)
        child = at


@jit
def _add_above(o: int, t: int, own: int) -> int:
    """Add the totals in the header to the sums of all rows above a row; return the link to the row."""
    row = row_at(t, own - 1)
    link = o + 8 * ROOT
    child = load32(link, 0)
    while child != own and child != 0:
        above = row_at(t, child - 1)
        for f in range(load(o, SUMS)):
            at = sum_at(o, t, f)
            _add_sum(at, _subtree(at, above), _total(o, at), 1)
        before = compare_rows(o, t, row, above) < 0
        link = left_link(o, t, child) if before else right_link(o, t, child)
        child = load32(link, 0)
    return link


@jit
def _difference(o: int, t: int, own: int, gone: int) -> None:
    """Write to the header what the sums of a row grow by: by its payload now, less that at the last change.

    ``gone``: its payload counts as zero now.
    """
    row = row_at(t, own - 1)
    left = load32(left_link(o, t, own), 0)
    right = load32(right_link(o, t, own), 0)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        target = _total(o, at)
        _clear(at, target)
        if gone == 0:
            _add_payload(at, target, row)
        if left != 0:
            _add_sum(at, target, _subtree(at, row_at(t, left - 1)), 1)
        if right != 0:
            _add_sum(at, target, _subtree(at, row_at(t, right - 1)), 1)
        _add_sum(at, target, _subtree(at, row), -1)


@outside
def summed_insert(o: int, t: int, number: int) -> None:
    """Insert row ``number``, which is not in the index, and add it to the sums."""
    if load(t, FAILED) != 0:
        return
    own = number + 1
    ordered_insert(o, t, number)
    # The row has split a subtree, so rows next to it on both sides have changed.
    _sum_path(o, t, own, load32(left_link(o, t, own), 0))
    _sum_path(o, t, own, load32(right_link(o, t, own), 0))
    _sum_row(o, t, own)
    row = row_at(t, number)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        _clear(at, _total(o, at))
        _add_payload(at, _total(o, at), row)
    _add_above(o, t, own)


@outside
def summed_remove(o: int, t: int, number: int) -> None:
    """Remove row ``number``, which is in the index, and take it out of the sums."""
    if load(t, FAILED) != 0:
        return
    own = number + 1
    _difference(o, t, own, 1)
    link = _add_above(o, t, own)
    ordered_remove(o, t, number)
    # The search for the row passes the rows where its two subtrees were joined.
    _sum_path(o, t, own, load32(link, 0))


@outside
def summed_update(o: int, t: int, number: int) -> None:
    """Bring the sums up to date after the payload of row ``number``, which is in the index, has changed."""
    if load(t, FAILED) != 0:
        return
    own = number + 1
    row = row_at(t, number)
    _difference(o, t, own, 0)
    _add_above(o, t, own)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        _add_sum(at, _subtree(at, row), _total(o, at), 1)


# Ranges


@jit
def _place_in_range(o: int, t: int, row: int, words: int, low: int, high: int, has: int) -> int:
    """-1, 0 or 1: the row comes before a range, is in it, or comes after it. The prefix is in the header."""
    order = compare_prefix(row, prefix_of(o), words)
    if order != 0:
        return order
    value = load(row, words)
    if value == NULL:
        return -1
    kind = load(o, KINDS)
    if has & HAS_LOW != 0:
        order = compare_codes(o, kind, value, low)
        if order < 0 or (order == 0 and has & LOW_STRICT != 0):
            return -1
    if has & HAS_HIGH != 0:
        order = compare_codes(o, kind, value, high)
        if order > 0 or (order == 0 and has & HIGH_STRICT != 0):
            return 1
    return 0


@jit
def _is_empty(o: int, low: int, high: int, has: int) -> bool:
    """Whether no value is between the bounds: one is NULL, or they are the wrong way round."""
    if (has & HAS_LOW != 0 and low == NULL) or (has & HAS_HIGH != 0 and high == NULL):
        return True
    if has & HAS_LOW == 0 or has & HAS_HIGH == 0:
        return False
    order = compare_codes(o, load(o, KINDS), low, high)
    return order > 0 or (order == 0 and has & (LOW_STRICT | HIGH_STRICT) != 0)


@jit
def _add_to_totals(o: int, t: int, child: int, side: int) -> None:
    """Add a row to the totals, and the subtree on one side of it: ``side`` is a row number + 1, or 0."""
    row = row_at(t, child - 1)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        _add_payload(at, _total(o, at), row)
        if side != 0:
            _add_sum(at, _total(o, at), _subtree(at, row_at(t, side - 1)), 1)


@outside
def sum_of_range(o: int, t: int, words: int, low: int, high: int, has: int) -> None:
    """Write the totals of the rows of a range to the header. The prefix in the header has ``words`` words: all key
    words without a kind. ``has`` are bits: which bounds there are, and which are strict."""
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        _clear(at, _total(o, at))
    if _is_empty(o, low, high, has):
        return
    top = load32(o + 8 * ROOT, 0)
    place = 1
    while top != 0 and place != 0:
        place = _place_in_range(o, t, row_at(t, top - 1), words, low, high, has)
        if place != 0:
            top = load32(right_link(o, t, top) if place < 0 else left_link(o, t, top), 0)
    if top == 0:
        return
    _add_to_totals(o, t, top, 0)
    # On the path to the first row of the range, a row of the range adds all rows to its right; likewise the last.
    child = load32(left_link(o, t, top), 0)
    while child != 0:
        right = load32(right_link(o, t, child), 0)
        if _place_in_range(o, t, row_at(t, child - 1), words, low, high, has & (HAS_LOW | LOW_STRICT)) == 0:
            _add_to_totals(o, t, child, right)
            child = load32(left_link(o, t, child), 0)
        else:
            child = right
    child = load32(right_link(o, t, top), 0)
    while child != 0:
        left = load32(left_link(o, t, child), 0)
        if _place_in_range(o, t, row_at(t, child - 1), words, low, high, has & (HAS_HIGH | HIGH_STRICT)) == 0:
            _add_to_totals(o, t, child, left)
            child = load32(right_link(o, t, child), 0)
        else:
            child = left


@inlined
def sum_range(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int) -> None:
    """Write the totals of the rows whose key begins with ``prefix`` and whose next key word is in a range to the
    header. ``prefix`` has all key words without a kind. See ``sum_of_range``."""
    write_key(prefix_of(o), prefix)
    sum_of_range(o, t, len(prefix), low, high, has)


@jit
def range_word(o: int, t: int, f: int, status: int) -> int:
    """The total of an integer component; SUM_OVERFLOW if it does not fit a word."""
    total = _total(o, sum_at(o, t, f))
    low = load(total, 0)
    if low >> 63 != load(total, 1):
        fail(status, SUM_OVERFLOW)
    return low


@inlined
def range_total(o: int, t: int, f: int) -> int:
    """The address of the total of a real component."""
    return _total(o, sum_at(o, t, f))


@outside
def first_of_range(o: int, t: int, words: int, low: int, high: int, has: int) -> int:
    """The first row of a range, as row number + 1; 0 if it has none. See ``sum_of_range``."""
    if _is_empty(o, low, high, has):
        return 0
    found = 0
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        place = _place_in_range(o, t, row_at(t, child - 1), words, low, high, has)
        if place == 0:
            found = child
        child = load32(right_link(o, t, child) if place < 0 else left_link(o, t, child), 0)
    return found


@inlined
def range_first(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int) -> int:
    """As ``first_of_range``, for a prefix that is given."""
    write_key(prefix_of(o), prefix)
    return first_of_range(o, t, len(prefix), low, high, has)


@inlined
def range_last(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int) -> int:
    """The last row of a range, likewise."""
    write_key(prefix_of(o), prefix)
    return last_of_range(o, t, len(prefix), low, high, has)


@outside
def last_of_range(o: int, t: int, words: int, low: int, high: int, has: int) -> int:
    """The last row of a range, as row number + 1; 0 if it has none. See ``sum_of_range``."""
    if _is_empty(o, low, high, has):
        return 0
    found = 0
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        place = _place_in_range(o, t, row_at(t, child - 1), words, low, high, has)
        if place == 0:
            found = child
        child = load32(left_link(o, t, child) if place > 0 else right_link(o, t, child), 0)
    return found


@outside
def next_in_order(o: int, t: int, child: int) -> int:
    """The row after one, as row number + 1; 0 after the last. Half of the rows have it below them."""
    below = load32(right_link(o, t, child), 0)
    if below == 0:
        return ordered_neighbour(o, t, row_at(t, child - 1), 1)
    while below != 0:
        child = below
        below = load32(left_link(o, t, child), 0)
    return child
