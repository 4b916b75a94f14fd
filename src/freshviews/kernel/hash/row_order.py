"""Sorts the rows of a table by words of their keys. Columns with small ranges of values are packed into one word."""

from __future__ import annotations

from freshviews.kernel.hash.table import USED, is_zero, row_at
from freshviews.kernel.memory.mem import allocate, jit, load, release, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import DIGIT, FEW, bits_of, insertion_sort, radix_sort

PACKED = 63
"""Bits of a packed sort key: it is compared as a signed word."""


@jit
def live_rows(table: int, pairs: int) -> int:
    """Write the number of each present row to the second words of pairs; returns their count."""
    n = 0
    for number in range(load(table, USED)):
        if not is_zero(table, row_at(table, number)):
            store(pairs, 2 * n + 1, number)
            n += 1
    return n


@jit
def measure_columns(table: int, positions: int, depth: int, pairs: int, n: int, least: int, ranges: int) -> None:
    """Write the least word of each key column to ``least``, and the bits of its range to ``ranges``; ``n`` > 0."""
    for i in range(depth):
        position = load(positions, i)
        low = load(row_at(table, load(pairs, 1)), position)
        high = low
        for k in range(n):
            word = load(row_at(table, load(pairs, 2 * k + 1)), position)
            low, high = min(low, word), max(high, word)
        store(least, i, low)
        store(ranges, i, bits_of(high - low))


@jit
def pack_columns(
    table: int, positions: int, start: int, end: int, pairs: int, n: int, least: int, ranges: int
) -> None:
    """Write the sort keys of the columns from ``start`` to ``end``: the word of a single column, several packed."""
    for k in range(n):
        row = row_at(table, load(pairs, 2 * k + 1))
        word = load(row, load(positions, start))
        if end - start > 1:
            word -= load(least, start)
            for i in range(start + 1, end):
                word = word << load(ranges, i) | (load(row, load(positions, i)) - load(least, i))
        store(pairs, 2 * k, word)


@outside
def rows_in_order(table: int, positions: int, depth: int, count: int) -> int:
    """Address of the numbers of a table's rows, sorted by the ``depth`` key words at ``positions``.

    Stores their number at ``count``. The numbers are consecutive words; the caller releases them. Returns 0 without
    memory.
    """
    room = load(table, USED)
    pairs, other, counts = allocate(2 * room), allocate(2 * room), allocate(1 << DIGIT)
    least, ranges = allocate(depth), allocate(depth)
    found = 0
    if pairs != 0 and other != 0 and counts != 0 and least != 0 and ranges != 0:
        n = live_rows(table, pairs)
        store(count, 0, n)
        found = pairs
        if n > 1:
            measure_columns(table, positions, depth, pairs, n, least, ranges)
            end = depth
            while end > 0:
                start = end - 1
                bits = load(ranges, start)
                while start > 0 and bits + load(ranges, start - 1) <= PACKED:
                    start -= 1
                    bits += load(ranges, start)
                pack_columns(table, positions, start, end, found, n, least, ranges)
                if n <= FEW:
                    insertion_sort(found, 2, 1, n, counts)
                else:
                    found = radix_sort(found, other if found == pairs else pairs, counts, 2, 1, n)
                end = start
        for k in range(n):
            store(found, k, load(found, 2 * k + 1))
    if found != pairs:
        release(pairs)
    if found != other:
        release(other)
    release(counts)
    release(least)
    release(ranges)
    return found
