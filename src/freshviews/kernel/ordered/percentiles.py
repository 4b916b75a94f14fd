"""Computes percentiles of the last key word over the rows of a group. A row with count n counts as n equal values.

The ordered index knows the position of each row among these values (``places``). Two descents of its tree find how many
values the group has. One or two further descents find the values at the percentile. The expected time is O(log n).
"""

from __future__ import annotations

import math

from freshviews.kernel.hash.table import KEY, row_at
from freshviews.kernel.memory.mem import f64, inlined, jit, load, load32, write_key
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import compare_prefix
from freshviews.kernel.ordered.index import ROOT, ROW_WORD, left_link, prefix_of, right_link
from freshviews.kernel.ordered.places import BELOW, MOST, copies_before, copies_of, row_at_place
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.floats import code
from freshviews.kernel.scalar.payload import SUM_OVERFLOW

# How a percentile is computed, as bits; without DISCRETE it is interpolated.
DISCRETE = 1
DESCENDING = 2


@jit
def _copies_through(o: int, t: int, words: int) -> int:
    """The copies of all rows, of all groups, up to the last row with the prefix in the header."""
    total = 0
    child = load32(o + 8 * ROOT, 0)
    while child != 0:
        row = row_at(t, child - 1)
        left = load32(left_link(o, t, child), 0)
        if compare_prefix(prefix_of(o), row, words) >= 0:
            total += copies_of(t, row)
            if left != 0:
                total += load(row_at(t, left - 1), load(o, ROW_WORD) + BELOW)
            child = load32(right_link(o, t, child), 0)
        else:
            child = left
    return total


@jit
def _value_at(o: int, t: int, first: int, step: int, place: int) -> int:
    """The value at a place from ``first`` on, forwards or backwards."""
    return load(row_at(t, row_at_place(o, t, first + step * place) - 1), load(t, KEY) - 1)


@outside
def percentile_of_group(o: int, t: int, words: int, fraction: int, way: int, status: int) -> int:
    """The percentile of the group whose prefix, of ``words`` words, is in the header; 0 if it has no copies.

    ``fraction``: the code of a double from 0 to 1. Without DISCRETE the values are doubles. SUM_OVERFLOW if the group
    has MOST copies or more (``places``).
    """
    begin = copies_before(o, t, prefix_of(o), words) if words > 0 else 0
    total = _copies_through(o, t, words) - begin
    if total <= 0:
        return 0
    if total >= MOST:
        return fail(status, SUM_OVERFLOW)
    step = -1 if way & DESCENDING != 0 else 1
    first = begin + total - 1 if way & DESCENDING != 0 else begin
    if way & DISCRETE != 0:
        return _value_at(o, t, first, step, max(math.ceil(f64(fraction) * float(total)) - 1, 0))
    position = f64(fraction) * float(total - 1)
    lower = int(position)
    low = _value_at(o, t, first, step, lower)
    if float(lower) == position:
        return low
    high = _value_at(o, t, first, step, lower + 1)
    if low == high:
        return low
    return code((float(lower + 1) - position) * f64(low) + (position - float(lower)) * f64(high))


@inlined
def ordered_percentile(o: int, t: int, prefix: tuple[int, ...], fraction: int, way: int, status: int) -> int:
    """The percentile of the rows whose key begins with ``prefix``, which has all key words without a kind."""
    write_key(prefix_of(o), prefix)
    return percentile_of_group(o, t, len(prefix), fraction, way, status)
