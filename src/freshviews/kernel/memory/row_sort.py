"""Sorting rows of words, stably, by their first words: least-significant digit first, over the bits that vary.

Each word is taken as its distance from the least in its column, so that columns of small numbers, as codes
mostly are, take one or two passes; a pass moves whole rows. Rows lie one after the other.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import allocate, copy_words, jit, load, release, shift_right, store
from freshviews.kernel.memory.outside import outside

DIGIT = 11
"""Most bits that a pass sorts by: their counts fit the first cache."""
FEW = 32
"""So many rows are sorted by insertion."""


@jit
def gather_rows(batch: int, width: int, count: int, rows: int) -> None:
    """Copy columns, given as in a batch of edits, to rows that lie one after the other."""
    for c in range(width):
        words = load(batch, 2 * c)
        stride = load(batch, 2 * c + 1)
        for i in range(count):
            store(rows, i * width + c, load(words, i * stride))


@jit
def compare_rows(rows: int, width: int, words: int, i: int, j: int) -> int:
    """-1, 0 or 1 as row ``i`` comes before row ``j``, equals it, or comes after it, by the first words."""
    for c in range(words):
        x = load(rows, i * width + c)
        y = load(rows, j * width + c)
        if x != y:
            return -1 if x < y else 1
    return 0


@jit
def count_digits(rows: int, width: int, c: int, count: int, base: int, shift: int, mask: int, counts: int) -> None:
    """Make of ``counts`` where the rows of each digit begin."""
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
    """One pass: the rows in the order of a digit, else as they were."""
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
    """Sort a few rows; ``spare`` has room for one."""
    for i in range(1, count):
        j = i
        while j > 0 and compare_rows(rows, width, words, j - 1, j) > 0:
            copy_words(spare, rows + 8 * j * width, width)
            copy_words(rows + 8 * j * width, rows + 8 * (j - 1) * width, width)
            copy_words(rows + 8 * (j - 1) * width, spare, width)
            j -= 1


@jit
def radix_sort(rows: int, other: int, counts: int, width: int, words: int, count: int) -> int:
    """Sort rows, of which there is at least one; returns where they are then: ``rows`` or ``other``.

    ``other`` has room for the rows, ``counts`` for ``1 << DIGIT`` words.
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
        spread = most - base  # modulo 2^64: unsigned
        bits = 0
        while bits < 64 and shift_right(spread, bits) != 0:
            bits += 1
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
