"""Reads an ordered index: the first and last row of a group, and the sums, the folds and the rows of a range.

A range has the rows of a group whose next key word is between two bounds. A *range of places* has the rows between two
places in the order of the index: each bound has values of one or more ordered words in a row, compared in that order.

A loop over a range::

    child = range_first(o, t, prefix, low, high, has)
    last = range_last(o, t, prefix, low, high, has)
    while child != 0:
        ... row_at(t, child - 1) ...
        child = range_next(o, t, child, last, low, high, has)
"""

from __future__ import annotations

from freshviews.kernel.hash.index import ROWS_COUNT, position_of_row, slice_rows
from freshviews.kernel.hash.table import KEY, row_at
from freshviews.kernel.memory.mem import inlined, jit, load, load32, write_key
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import compare_prefix
from freshviews.kernel.ordered.folds import below_of, combine_of, ordered_fold_at, own_of
from freshviews.kernel.ordered.groups import are_outside, group_of_prefix, group_of_row, is_outside
from freshviews.kernel.ordered.index import (
    KINDS,
    ROOT,
    SLICES,
    SUMS,
    WORDS,
    compare_codes,
    compare_rows,
    left_link,
    ordered_neighbour,
    prefix_of,
    right_link,
)
from freshviews.kernel.ordered.sums import add_payload, add_sum, clear_total, subtree_of, sum_at, total_of
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import SUM_OVERFLOW
from freshviews.types.sqltype import NULL

# The bounds of a range, as bits.
HAS_LOW = 1
LOW_STRICT = 2
HAS_HIGH = 4
HIGH_STRICT = 8
OF_PLACES = 16  # a range of places: ``low`` and ``high`` are the addresses of the bounds, which are not strict
LOW_WORDS = 5  # the bits from here on have the words of the lower bound,
LOW_FIRST = 15  # the first ordered word that it bounds,
HIGH_WORDS = 25  # the words of the upper bound,
HIGH_FIRST = 35  # and the first one that it bounds
_TEN_BITS = 1023


@jit
def _compare_words(o: int, first: int, words: int, row: int, bound: int) -> int:
    """-1, 0 or 1: ordered words of a row, from ``first`` on, come before those of a bound, equal them, or come after
    them. ``row``: the address of the first ordered word."""
    order = 0
    i = 0
    while order == 0 and i < words:
        order = compare_codes(o, load(o, KINDS + first + i), load(row, first + i), load(bound, i))
        i += 1
    return order


@jit
def _place_by_value(o: int, row: int, low: int, high: int, has: int) -> int:
    """-1, 0 or 1: a row comes before a range, is in it, or comes after it. ``row``: the address of its first word with
    a kind."""
    if has & OF_PLACES != 0:
        if has & HAS_LOW != 0:
            first = (has >> LOW_FIRST) & _TEN_BITS
            if _compare_words(o, first, (has >> LOW_WORDS) & _TEN_BITS, row, low) < 0:
                return -1
        if has & HAS_HIGH != 0:
            first = (has >> HIGH_FIRST) & _TEN_BITS
            if _compare_words(o, first, (has >> HIGH_WORDS) & _TEN_BITS, row, high) > 0:
                return 1
        return 0
    value = load(row, 0)
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
def _place_in_range(o: int, t: int, row: int, low: int, high: int, has: int) -> int:
    """-1, 0 or 1: the row comes before a range, is in it, or comes after it. The prefix is in the header."""
    words = load(t, KEY) - load(o, WORDS)
    order = compare_prefix(row, prefix_of(o), words)
    return order if order != 0 else _place_by_value(o, row + 8 * words, low, high, has)


@jit
def _is_empty(o: int, low: int, high: int, has: int) -> bool:
    """Whether no value is between the bounds: one is NULL, or the lower exceeds the upper. False for places."""
    if has & OF_PLACES != 0:
        return False
    if (has & HAS_LOW != 0 and low == NULL) or (has & HAS_HIGH != 0 and high == NULL):
        return True
    if has & HAS_LOW == 0 or has & HAS_HIGH == 0:
        return False
    order = compare_codes(o, load(o, KINDS), low, high)
    return order > 0 or (order == 0 and has & (LOW_STRICT | HIGH_STRICT) != 0)


@jit
def _next_outside(o: int, t: int, group: int, position: int, low: int, high: int, has: int) -> int:
    """The first row of a range at or after a position of a slice, as row number + 1; 0 if there is none."""
    word = load(t, KEY) - load(o, WORDS)
    rows = slice_rows(group)
    for i in range(position, load(group, ROWS_COUNT)):
        row = row_at(t, load32(rows, i))
        if is_outside(o, row) and _place_by_value(o, row + 8 * word, low, high, has) == 0:
            return load32(rows, i) + 1
    return 0


# Sums


@jit
def _add_to_totals(o: int, t: int, child: int, side: int) -> None:
    """Add a row to the totals, and the subtree on one side of it; ``side``: a row number + 1, or 0."""
    row = row_at(t, child - 1)
    for f in range(load(o, SUMS)):
        at = sum_at(o, t, f)
        add_payload(at, total_of(o, at), row)
        if side != 0:
            add_sum(at, total_of(o, at), subtree_of(at, row_at(t, side - 1)), 1)


@outside
def sum_of_range(o: int, t: int, group: int, low: int, high: int, has: int) -> None:
    """Write the totals of the rows of a range to the header, which has the prefix. ``group``: its slice, or 0.

    A range has the rows with a given prefix whose next key word is within one or two bounds. The sum of a range is
    added up from whole subtrees, in O(log n), expected. For a group outside the tree it is added up row by row. NULL
    lies in no range, except one of places. Other ranges need an ascending order with NULL first.
    """
    for f in range(load(o, SUMS)):
        clear_total(o, sum_at(o, t, f))
    if _is_empty(o, low, high, has):
        return
    if are_outside(o, t, group, -1):
        word = load(t, KEY) - load(o, WORDS)
        rows = slice_rows(group)
        for i in range(load(group, ROWS_COUNT)):
            row = row_at(t, load32(rows, i))
            if _place_by_value(o, row + 8 * word, low, high, has) == 0:
                _add_to_totals(o, t, load32(rows, i) + 1, 0)
        return
    top = load32(o + 8 * ROOT, 0)
    place = 1
    while top != 0 and place != 0:
        place = _place_in_range(o, t, row_at(t, top - 1), low, high, has)
        if place != 0:
            top = load32(right_link(o, t, top) if place < 0 else left_link(o, t, top), 0)
    if top == 0:
        return
    _add_to_totals(o, t, top, 0)
    # On the path to the first row of the range, a row of the range adds all rows to its right; likewise the last.
    child = load32(left_link(o, t, top), 0)
    while child != 0:
        right = load32(right_link(o, t, child), 0)
        if _place_in_range(o, t, row_at(t, child - 1), low, high, has & ~(HAS_HIGH | HIGH_STRICT)) == 0:
            _add_to_totals(o, t, child, right)
            child = load32(left_link(o, t, child), 0)
        else:
            child = right
    child = load32(right_link(o, t, top), 0)
    while child != 0:
        left = load32(left_link(o, t, child), 0)
        if _place_in_range(o, t, row_at(t, child - 1), low, high, has & ~(HAS_LOW | LOW_STRICT)) == 0:
            _add_to_totals(o, t, child, left)
            child = load32(right_link(o, t, child), 0)
        else:
            child = left


@inlined
def sum_range(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int) -> None:
    """Write the totals of the rows whose key begins with ``prefix`` and whose next word is in a range to the header.

    ``prefix`` has all key words without a kind. ``has``: bits that say which bounds exist, and which are strict, or of
    which words they are.
    """
    write_key(prefix_of(o), prefix)
    sum_of_range(o, t, group_of_prefix(o, prefix), low, high, has)


# Folds


@outside
def fold_of_range(o: int, t: int, low: int, high: int, has: int, f: int) -> int:
    """Fold ``f`` of the rows of a range whose prefix is in the header; NULL if there is none.

    Of a fold that finds a row, this is the number of the row plus 1. The rows are combined from whole subtrees, in
    O(log n), expected. No group is outside the tree of an index with folds.
    """
    fold = ordered_fold_at(o, t, f)
    top = load32(o + 8 * ROOT, 0)
    place = 1
    while top != 0 and place != 0:
        place = _place_in_range(o, t, row_at(t, top - 1), low, high, has)
        if place != 0:
            top = load32(right_link(o, t, top) if place < 0 else left_link(o, t, top), 0)
    if top == 0:
        return NULL
    value = own_of(t, fold, top)
    # On the path to the first row of the range, a row of the range adds all rows to its right; likewise the last.
    child = load32(left_link(o, t, top), 0)
    while child != 0:
        right = load32(right_link(o, t, child), 0)
        if _place_in_range(o, t, row_at(t, child - 1), low, high, has & ~(HAS_HIGH | HIGH_STRICT)) == 0:
            if right != 0:
                value = combine_of(o, t, fold, below_of(o, t, right, f), value)
            value = combine_of(o, t, fold, own_of(t, fold, child), value)
            child = load32(left_link(o, t, child), 0)
        else:
            child = right
    child = load32(right_link(o, t, top), 0)
    while child != 0:
        left = load32(left_link(o, t, child), 0)
        if _place_in_range(o, t, row_at(t, child - 1), low, high, has & ~(HAS_LOW | LOW_STRICT)) == 0:
            if left != 0:
                value = combine_of(o, t, fold, value, below_of(o, t, left, f))
            value = combine_of(o, t, fold, value, own_of(t, fold, child))
            child = load32(right_link(o, t, child), 0)
        else:
            child = left
    return value


@inlined
def range_fold(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int, f: int) -> int:
    """Fold ``f`` of the rows of a range; NULL if there is none. See ``sum_range`` and ``fold_of_range``."""
    write_key(prefix_of(o), prefix)
    return fold_of_range(o, t, low, high, has, f)


@jit
def range_word(o: int, t: int, f: int, status: int) -> int:
    """The total of an integer component; SUM_OVERFLOW if it does not fit a word."""
    total = total_of(o, sum_at(o, t, f))
    low = load(total, 0)
    if low >> 63 != load(total, 1):
        fail(status, SUM_OVERFLOW)
    return low


@inlined
def range_total(o: int, t: int, f: int) -> int:
    """The address of the total of a real component."""
    return total_of(o, sum_at(o, t, f))


# Rows


@outside
def end_of_range(o: int, t: int, low: int, high: int, has: int, greatest: int) -> int:
    """The first row of the tree in a range, or the last, as row number + 1; 0 if it has none."""
    if _is_empty(o, low, high, has):
        return 0
    found = 0
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        place = _place_in_range(o, t, row_at(t, child - 1), low, high, has)
        if place == 0:
            found = child
        right = place < 0 or (place == 0 and greatest != 0)
        child = load32(right_link(o, t, child) if right else left_link(o, t, child), 0)
    return found


@inlined
def range_first(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int) -> int:
    """The first row of a loop over a range, as row number + 1; 0 if there is none. See ``sum_range``."""
    write_key(prefix_of(o), prefix)
    group = group_of_prefix(o, prefix)
    if are_outside(o, t, group, -1):
        return 0 if _is_empty(o, low, high, has) else _next_outside(o, t, group, 0, low, high, has)
    return end_of_range(o, t, low, high, has, 0)


@inlined
def range_last(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int) -> int:
    """The last row of a loop over a range, likewise; 0 outside the tree, where it is not known in advance."""
    write_key(prefix_of(o), prefix)
    return 0 if are_outside(o, t, group_of_prefix(o, prefix), -1) else end_of_range(o, t, low, high, has, 1)


@inlined
def range_end(o: int, t: int, prefix: tuple[int, ...], low: int, high: int, has: int, greatest: int) -> int:
    """The first row of a range, or the last, as row number + 1; 0 if there is none."""
    write_key(prefix_of(o), prefix)
    return _end_in_group(o, t, group_of_prefix(o, prefix), low, high, has, greatest)


@outside
def _end_in_group(o: int, t: int, group: int, low: int, high: int, has: int, greatest: int) -> int:
    """The first row of a range of a group, or the last."""
    if not are_outside(o, t, group, -1):
        return end_of_range(o, t, low, high, has, greatest)
    if _is_empty(o, low, high, has):
        return 0
    found = 0
    child = _next_outside(o, t, group, 0, low, high, has)
    while child != 0:
        row = row_at(t, child - 1)
        if found == 0 or (compare_rows(o, t, row, row_at(t, found - 1)) > 0) == (greatest != 0):
            found = child
        child = _next_outside(o, t, group, position_of_row(load(o, SLICES), row) + 1, low, high, has)
    return found


@outside
def range_next(o: int, t: int, child: int, last: int, low: int, high: int, has: int) -> int:
    """The row of a range to visit after ``child``, as row number + 1; 0 after the last."""
    if child == last:
        return 0
    row = row_at(t, child - 1)
    if is_outside(o, row):
        return _next_outside(o, t, group_of_row(o, row), position_of_row(load(o, SLICES), row) + 1, low, high, has)
    # Half of the rows have the next one below them.
    below = load32(right_link(o, t, child), 0)
    if below == 0:
        return ordered_neighbour(o, t, row, 1)
    while below != 0:
        child = below
        below = load32(left_link(o, t, child), 0)
    return child


# Ends


@outside
def end_of_group(o: int, t: int, group: int, greatest: int) -> int:
    """The last key word of the first or last row of a group, whose prefix is in the header; 0 if it has none."""
    found = 0
    if are_outside(o, t, group, -1):
        rows = slice_rows(group)
        for i in range(load(group, ROWS_COUNT)):
            row = row_at(t, load32(rows, i))
            if is_outside(o, row) and (found == 0 or (compare_rows(o, t, row, found) > 0) == (greatest != 0)):
                found = row
    else:
        wanted = prefix_of(o)
        words = load(t, KEY) - load(o, WORDS)
        child = load32(o + 8 * ROOT, 0)
        while child != 0:
            row = row_at(t, child - 1)
            order = compare_prefix(wanted, row, words)
            if order == 0:
                found = row
            right = order > 0 or (order == 0 and greatest != 0)
            child = load32(right_link(o, t, child) if right else left_link(o, t, child), 0)
    return 0 if found == 0 else load(found, load(t, KEY) - 1)


@inlined
def ordered_first(o: int, t: int, prefix: tuple[int, ...]) -> int:
    """The last key word of the first row whose key begins with ``prefix``; 0 if there is none.

    ``prefix`` has all key words without a kind; it may be empty.
    """
    write_key(prefix_of(o), prefix)
    return end_of_group(o, t, group_of_prefix(o, prefix), 0)


@inlined
def ordered_last(o: int, t: int, prefix: tuple[int, ...]) -> int:
    """The last key word of the last row whose key begins with ``prefix``, as ``ordered_first``."""
    write_key(prefix_of(o), prefix)
    return end_of_group(o, t, group_of_prefix(o, prefix), 1)
