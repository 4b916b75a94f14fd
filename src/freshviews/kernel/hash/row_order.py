"""The order of a table's rows by words of their keys, by radix.

A sorter is pairs of words: what is compared, and the number of a row. Columns are packed into one word while their
ranges fit into 64 bits, so that most keys are sorted in one go, by passes over eleven bits each, least first; longer
keys are sorted from the last group of columns to the first, each time in the order found so far. A pass over bits
in which all rows agree is left out. Few rows are sorted by insertion.
"""

from __future__ import annotations

from freshviews.kernel.hash.table import USED, is_zero, row_at
from freshviews.kernel.memory.mem import allocate, inlined, jit, load, release, shift_right, store
from freshviews.kernel.memory.outside import outside

DIGIT = 11
BUCKETS = 1 << DIGIT
FEW = 48
"""Rows that are sorted by insertion."""


@inlined
def bits_of(most: int) -> int:
    """Bits of the unsigned word."""
    bits = 0
    while most != 0:
        bits += 1
        most = shift_right(most, 1)
    return bits


@jit
def live_rows(table: int, pairs: int) -> int:
    """Write the number of each row that is there to the second words of pairs; how many there are."""
    n = 0
    for number in range(load(table, USED)):
        if not is_zero(table, row_at(table, number)):
            store(pairs, 2 * n + 1, number)
            n += 1
    return n


@jit
def precedes(table: int, positions: int, depth: int, one: int, other: int) -> bool:
    """Whether one row comes strictly before another."""
    first, second = row_at(table, one), row_at(table, other)
    for i in range(depth):
        word, against = load(first, load(positions, i)), load(second, load(positions, i))
        if word != against:
            return word < against
    return False


@jit
def insert_in_order(table: int, positions: int, depth: int, pairs: int, n: int) -> None:
    """Sort pairs by the rows they number, by insertion."""
    for i in range(1, n):
        number = load(pairs, 2 * i + 1)
        at = i
        while at > 0 and precedes(table, positions, depth, number, load(pairs, 2 * at - 1)):
            store(pairs, 2 * at + 1, load(pairs, 2 * at - 1))
            at -= 1
        store(pairs, 2 * at + 1, number)


@jit
def scatter(pairs: int, other: int, counts: int, n: int, bits: int) -> int:
    """Sort pairs by the lowest ``bits`` of their first words; where they are then: ``pairs`` or ``other``."""
    for shift in range(0, bits, DIGIT):
        for bucket in range(BUCKETS):
            store(counts, bucket, 0)
        for i in range(n):
            digit = shift_right(load(pairs, 2 * i), shift) & (BUCKETS - 1)
            store(counts, digit, load(counts, digit) + 1)
        if load(counts, shift_right(load(pairs, 0), shift) & (BUCKETS - 1)) == n:
            continue
        total = 0
        for bucket in range(BUCKETS):
            count = load(counts, bucket)
            store(counts, bucket, total)
            total += count
        for i in range(n):
            word = load(pairs, 2 * i)
            digit = shift_right(word, shift) & (BUCKETS - 1)
            to = load(counts, digit)
            store(counts, digit, to + 1)
            store(other, 2 * to, word)
            store(other, 2 * to + 1, load(pairs, 2 * i + 1))
        pairs, other = other, pairs
    return pairs


@outside
def rows_in_order(table: int, positions: int, depth: int, count: int) -> int:
    """Address of the numbers of a table's rows, by the key words at ``positions``; their count goes to ``count``.

    Numbers are words, one after the other, to be released. 0 where memory is out.
    """
    room = load(table, USED)
    pairs, other, counts = allocate(2 * room), allocate(2 * room), allocate(BUCKETS)
    least, ranges = allocate(depth), allocate(depth)
    whole = pairs != 0 and other != 0 and counts != 0 and least != 0 and ranges != 0
    found = 0
    if whole:
        n = live_rows(table, pairs)
        store(count, 0, n)
        found = pairs
        if n <= FEW:
            insert_in_order(table, positions, depth, pairs, n)
        else:
            for i in range(depth):
                place = load(positions, i)
                low = load(row_at(table, load(pairs, 1)), place)
                high = low
                for k in range(n):
                    word = load(row_at(table, load(pairs, 2 * k + 1)), place)
                    low, high = min(low, word), max(high, word)
                store(least, i, low)
                store(ranges, i, bits_of(high - low))
            end = depth
            while end > 0:
                start = end - 1
                bits = load(ranges, start)
                while start > 0 and bits + load(ranges, start - 1) <= 64:
                    start -= 1
                    bits += load(ranges, start)
                for k in range(n):
                    row = row_at(table, load(found, 2 * k + 1))
                    word = 0
                    for i in range(start, end):
                        if load(ranges, i) < 64:
                            word <<= load(ranges, i)
                        word |= load(row, load(positions, i)) - load(least, i)
                    store(found, 2 * k, word)
                spare = other if found == pairs else pairs
                found = scatter(found, spare, counts, n, bits)
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
