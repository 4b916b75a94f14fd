"""Sorts rows of words by their first words, with a stable radix sort."""

from __future__ import annotations

from freshviews.kernel.memory.mem import allocate, copy_words, jit, load, release, shift_right, store
from freshviews.kernel.memory.outside import outside

DIGIT = 11
"""Most bits of a pass, so that the counts fit the first-level cache."""
FEW = 32
"""Most rows that are sorted by insertion."""


@jit
def bits_of(value: int) -> int:
    """Number of bits of an unsigned word."""
    length = 0
    step = 32
    while step > 0:
        if shift_right(value, step) != 0:
            value = shift_right(value, step)
            length += step
        step >>= 1
    return length + 1 if value != 0 else 0


@jit
def gather_rows(batch: int, width: int, count: int, rows: int) -> None:
    """Copy columns to contiguous rows; ``batch`` has the address and stride of each column."""
    for c in range(width):
        words = load(batch, 2 * c)
        stride = load(batch, 2 * c + 1)
        for i in range(count):
            store(rows, i * width + c, load(words, i * stride))


@jit
def compare_prefix(a: int, b: int, words: int) -> int:
    """-1, 0 or 1: row ``a`` is less than, equal to or greater than ``b`` in the first ``words`` words, as integers."""
    for i in range(words):
        x = load(a, i)
        y = load(b, i)
        if x != y:
            return -1 if x < y else 1
    return 0


@jit
def count_digits(rows: int, width: int, c: int, count: int, base: int, shift: int, mask: int, counts: int) -> None:
    """Write to ``counts`` the position at which the rows of each digit begin."""
    for d in range(mask + 1):
        store(counts, d, 0)
    for i in range(count):
        d = shift_right(load(rows, i * width + c) - base, shift) & mask
        store(counts, d, load(counts, d) + 1)
    start = 0
    for d in range(mask + 1):
        n = load(counts, d)
        store(counts, d, start)
        start += n


@jit
def move_by_digit(
    source: int, target: int, width: int, c: int, count: int, base: int, shift: int, mask: int, counts: int
) -> None:
    """One pass: move the rows into the order of one digit; rows with equal digits stay in order."""
    for i in range(count):
        row = source + 8 * i * width
        d = shift_right(load(row, c) - base, shift) & mask
        place = load(counts, d)
        store(counts, d, place + 1)
        to = target + 8 * place * width
        for j in range(width):
            store(to, j, load(row, j))


@jit
def insertion_sort(rows: int, width: int, words: int, count: int, spare: int) -> None:
    """Sort a few rows in place; ``spare`` has room for one."""
    for i in range(1, count):
        j = i
        while j > 0 and compare_prefix(rows + 8 * (j - 1) * width, rows + 8 * j * width, words) > 0:
            copy_words(spare, rows + 8 * j * width, width)
            copy_words(rows + 8 * j * width, rows + 8 * (j - 1) * width, width)
            copy_words(rows + 8 * (j - 1) * width, spare, width)
            j -= 1


@jit
def radix_sort(rows: int, other: int, counts: int, width: int, words: int, count: int) -> int:
    """Sort one or more rows; returns the address of the sorted rows: ``rows`` or ``other``.

    ``other`` has room for the rows, ``counts`` for ``1 << DIGIT`` words.

    The sort begins with the least significant digit. It subtracts the least word of a column from all words of the
    column and skips the high bits that are then 0 in all of them. So a column of small numbers, such as most codes,
    takes one or two passes. A pass moves whole rows. Short inputs are sorted by insertion.
    """
    source = rows
    target = other
    for back in range(words):
        c = words - 1 - back
        base = load(source, c)
        most = base
        for i in range(1, count):
            x = load(source, i * width + c)
            base = x if x < base else base
            most = x if x > most else most
        bits = bits_of(most - base)  # modulo 2^64: unsigned
        passes = (bits + DIGIT - 1) // DIGIT
        shift = 0
        for left in range(passes, 0, -1):
            digit = (bits - shift + left - 1) // left
            mask = (1 << digit) - 1
            count_digits(source, width, c, count, base, shift, mask, counts)
            move_by_digit(source, target, width, c, count, base, shift, mask, counts)
            source, target = target, source
            shift += digit
    return source


@outside
def sort_rows(rows: int, width: int, words: int, count: int) -> int:
    """Sort rows of ``width`` words by their first ``words``, stably and in place; 0 without memory."""
    few = count <= FEW
    other = allocate(width if few else width * count + (1 << DIGIT))
    if other == 0:
        return 0
    if few:
        insertion_sort(rows, width, words, count, other)
    else:
        found = radix_sort(rows, other, other + 8 * width * count, width, words, count)
        if found != rows:
            copy_words(rows, found, width * count)
    release(other)
    return 1
