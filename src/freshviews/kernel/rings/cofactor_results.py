"""Computes sums, covariances and correlations from an element of a cofactor ring, exactly and rounded once."""

from __future__ import annotations

import math

from freshviews.kernel.memory.mem import allocate, jit, load, release, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.cofactor import PRODUCT_SIZE, SUM_SIZE
from freshviews.kernel.rings.wide import add_long_product, code_of, double_of, magnitude_of
from freshviews.types.sqltype import NULL

ENTRY = 0  # a sum or a sum of products
COVARIANCE = 1  # of a sample
CORRELATION = 2
FUNCTION_WORDS = 4
"""Words of a function: its kind, the positions i and j of its variables, and the power of ten that scales their
product. ENTRY has j = -1 for a sum, and i = j = -1 for the count."""

_FRACTION = 64
_LONG = 6
"""Words of a comoment."""


@jit
def _place(m: int, i: int, j: int, size: int, square: int) -> int:
    """The first word of an entry, i <= j."""
    if j < 0:
        return 1 + size * i
    return 1 + size * m + square * (i * m - i * (i + 1) // 2 + j)


@jit
def _comoment(element: int, m: int, i: int, j: int, wide: int, room: int) -> float:
    """n * sum(x_i x_j) - sum(x_i) * sum(x_j) as the nearest double; ``room`` is for 15 words."""
    size = SUM_SIZE if wide != 0 else 1
    square = PRODUCT_SIZE if wide != 0 else 1
    total = room
    a = room + 8 * _LONG
    b = a + 8 * PRODUCT_SIZE
    for word in range(_LONG):
        store(total, word, 0)
    sign = -1 if magnitude_of(a, element + 8 * _place(m, i, j, size, square), square) else 1
    if magnitude_of(b, element, 1):
        sign = -sign
    add_long_product(total, a, square, b, 1, sign, _LONG)
    sign = 1 if magnitude_of(a, element + 8 * _place(m, i, -1, size, square), size) else -1
    if magnitude_of(b, element + 8 * _place(m, j, -1, size, square), size):
        sign = -sign
    add_long_product(total, a, size, b, size, sign, _LONG)
    negative = magnitude_of(total, total, _LONG)
    value = double_of(total, _LONG, 2 * _FRACTION if wide != 0 else 0)
    return -value if negative else value


@jit
def _entry(element: int, m: int, i: int, j: int, wide: int, room: int) -> int:
    if wide == 0:
        return load(element, _place(m, i, j, 1, 1))
    words = SUM_SIZE if j < 0 else PRODUCT_SIZE
    negative = magnitude_of(room, element + 8 * _place(m, i, j, SUM_SIZE, PRODUCT_SIZE), words)
    value = double_of(room, words, _FRACTION if j < 0 else 2 * _FRACTION)
    return code_of(-value if negative else value)


@outside
def cofactor_results(target: int, element: int, m: int, wide: int, functions: int, n: int) -> None:
    """Write the codes of ``n`` functions of an element of degree ``m``.

    ``wide``: its numbers are doubles. Without rows, all results except counts are NULL; a covariance is also NULL for
    one row, and a correlation if all values of a variable are equal.
    """
    count = load(element, 0)
    room = allocate(_LONG + 2 * PRODUCT_SIZE + 1)
    for at in range(n):
        function = load(functions, FUNCTION_WORDS * at)
        i = load(functions, FUNCTION_WORDS * at + 1)
        j = load(functions, FUNCTION_WORDS * at + 2)
        found = NULL
        if function == ENTRY and i < 0:
            found = count
        elif count != 0 and function == ENTRY:
            found = _entry(element, m, i, j, wide, room)
        elif count > 1 and function == COVARIANCE:
            rows = float(count)
            scale = 10.0 ** load(functions, FUNCTION_WORDS * at + 3)
            found = code_of(_comoment(element, m, i, j, wide, room) / rows / (rows - 1.0) / scale)
        elif count > 0 and function == CORRELATION:
            x = _comoment(element, m, i, i, wide, room)
            y = _comoment(element, m, j, j, wide, room)
            if x > 0.0 and y > 0.0:
                found = code_of(_comoment(element, m, i, j, wide, room) / math.sqrt(x) / math.sqrt(y))
        store(target, at, found)
    release(room)
