"""Elements of cofactor rings: sums and products of parts into a payload.

An element of degree m is a count, m sums, and the m (m + 1) / 2 sums of products x_i * x_j, i <= j, row by row
(``freshviews.ring.cofactor``). Of integers each number is a word; of doubles sums have two words and products four
(``kernel.rings.wide``).

A product is described by a *shape*, words that generated code fills:

0 PARTS   number of parts
1 DEGREE  degree of the target
2 to 5    room for two magnitudes
6 + 3 i   of part i: address of its element, its degree, where the places of its variables are, in words of the shape

The places are those of the part's variables among the target's, in ascending order. The parts have no variable in
common, so a product costs what the target's entries of the parts are: no entry is visited twice.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import (
    add_overflows,
    add_wrapping,
    inlined,
    load,
    mul_overflows,
    mul_wrapping,
    store,
)
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.wide import add_product, add_scaled, fixed_of, magnitude_of
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import NO_FIXED_POINT, SUM_OVERFLOW, plus, times
from freshviews.types.sqltype import NULL

PARTS = 0
DEGREE = 1
ROOM = 2
FIRST_PART = 6
PART_WORDS = 3

SUM_SIZE = 2
PRODUCT_SIZE = 4
"""Words of the numbers of doubles."""


@inlined
def _counts(shape: int, one: int, other: int, k: int, status: int) -> int:
    """``k`` times the counts of all parts but two."""
    for i in range(load(shape, PARTS)):
        if i != one and i != other:
            k = times(k, load(load(shape, FIRST_PART + PART_WORDS * i), 0), status)
    return k


@inlined
def _add(target: int, at: int, x: int, k: int) -> int:
    """Add ``k`` times ``x`` to a word; not zero if that overflows. The flags of a loop are checked once, behind it."""
    product = mul_wrapping(x, k)
    old = load(target, at)
    total = add_wrapping(old, product)
    store(target, at, total)
    return mul_overflows(x, k) | add_overflows(old, product) | (1 if total == NULL else 0)


@inlined
def _add_run(target: int, source: int, words: int, k: int) -> int:
    """``_add`` of words that lie one after the other."""
    over = 0
    for i in range(words):
        over |= _add(target, i, load(source, i), k)
    return over


@inlined
def _is_run(places: int, count: int) -> bool:
    """Whether places are consecutive."""
    return load(places, count - 1) - load(places, 0) == count - 1


@inlined
def _row(m: int, i: int) -> int:
    """Where the products of variable i would begin if j = 0 had one."""
    return i * m - i * (i + 1) // 2


@outside
def cofactor_lift(target: int, codes: int, m: int, status: int) -> None:
    """The element of one row: its count is 1. ``codes`` has the integers of the ``m`` variables."""
    store(target, 0, 1)
    at = 1 + m
    over = 0
    for x in range(m):
        own = load(codes, x)
        store(target, 1 + x, own)
        for y in range(x, m):
            over |= mul_overflows(own, load(codes, y))
            store(target, at, mul_wrapping(own, load(codes, y)))
            at += 1
    if over != 0:
        fail(status, SUM_OVERFLOW)


@outside
def cofactor_add(target: int, shape: int, k: int, status: int) -> None:
    """Add ``k`` times the product of the parts of a shape to an element of integers."""
    m = load(shape, DEGREE)
    products = target + 8 * (1 + m)
    over = _add(target, 0, 1, _counts(shape, -1, -1, k, status))
    for a in range(load(shape, PARTS)):
        part = shape + 8 * (FIRST_PART + PART_WORDS * a)
        element = load(part, 0)
        d = load(part, 1)
        places = shape + 8 * load(part, 2)
        scale = _counts(shape, a, a, k, status)
        if scale != 0:
            over |= _add_part(target, products, m, element, places, d, scale)
        for b in range(a + 1, load(shape, PARTS)):
            part = shape + 8 * (FIRST_PART + PART_WORDS * b)
            other = load(part, 0) + 8
            others = shape + 8 * load(part, 2)
            count = load(part, 1)
            scale = _counts(shape, a, b, k, status)
            follows = _is_run(others, count) and load(places, d - 1) < load(others, 0)
            for x in range(d):
                own = times(scale, load(element, 1 + x), status)
                place = load(places, x)
                if own == 0:
                    continue
                if follows:
                    over |= _add_run(products + 8 * (_row(m, place) + load(others, 0)), other, count, own)
                    continue
                for y in range(count):
                    low = min(place, load(others, y))
                    over |= _add(products, _row(m, low) + max(place, load(others, y)), load(other, y), own)
    if over != 0:
        fail(status, SUM_OVERFLOW)


@inlined
def _add_part(target: int, products: int, m: int, element: int, places: int, d: int, scale: int) -> int:
    """Add the sums and the products within one part."""
    source = element + 8 * (1 + d)
    run = _is_run(places, d)
    over = 0
    for x in range(d):
        place = load(places, x)
        over |= _add(target, 1 + place, load(element, 1 + x), scale)
        if run:
            over |= _add_run(products + 8 * (_row(m, place) + place), source, d - x, scale)
        else:
            for y in range(x, d):
                over |= _add(products, _row(m, place) + load(places, y), load(source, y - x), scale)
        source += 8 * (d - x)
    return over


@outside
def wide_cofactor_lift(target: int, codes: int, m: int, status: int) -> None:
    """As ``cofactor_lift``, of doubles; NO_FIXED_POINT where one is not finite, or too large."""
    store(target, 0, 1)
    for x in range(m):
        if not fixed_of(load(codes, x), target + 8 * (1 + SUM_SIZE * x)):
            fail(status, NO_FIXED_POINT)
    at = target + 8 * (1 + SUM_SIZE * m)
    for x in range(m):
        # The codes are read; their words, and those beside them, are room for two magnitudes.
        negative = magnitude_of(codes + 8 * m, target + 8 * (1 + SUM_SIZE * x), SUM_SIZE)
        for y in range(x, m):
            for i in range(PRODUCT_SIZE):
                store(at, i, 0)
            other = magnitude_of(codes + 8 * (m + SUM_SIZE), target + 8 * (1 + SUM_SIZE * y), SUM_SIZE)
            add_product(at, codes + 8 * m, codes + 8 * (m + SUM_SIZE), negative != other, status)
            at += 8 * PRODUCT_SIZE


@outside
def wide_cofactor_add(target: int, shape: int, k: int, status: int) -> None:
    """As ``cofactor_add``, of doubles."""
    m = load(shape, DEGREE)
    sums = target + 8
    products = target + 8 * (1 + SUM_SIZE * m)
    room = shape + 8 * ROOM
    store(target, 0, plus(load(target, 0), _counts(shape, -1, -1, k, status), status))
    for a in range(load(shape, PARTS)):
        part = shape + 8 * (FIRST_PART + PART_WORDS * a)
        element = load(part, 0) + 8
        d = load(part, 1)
        places = shape + 8 * load(part, 2)
        scale = _counts(shape, a, a, k, status)
        if scale != 0:
            source = element + 8 * SUM_SIZE * d
            for x in range(d):
                place = load(places, x)
                add_scaled(sums + 8 * SUM_SIZE * place, element + 8 * SUM_SIZE * x, SUM_SIZE, scale, status)
                row = _row(m, place)
                for y in range(x, d):
                    at = products + 8 * PRODUCT_SIZE * (row + load(places, y))
                    add_scaled(at, source, PRODUCT_SIZE, scale, status)
                    source += 8 * PRODUCT_SIZE
        for b in range(a + 1, load(shape, PARTS)):
            part = shape + 8 * (FIRST_PART + PART_WORDS * b)
            others = shape + 8 * load(part, 2)
            scale = _counts(shape, a, b, k, status)
            if scale == 0:
                continue
            others_sums = load(part, 0) + 8
            for x in range(d):
                store(room, 0, 0)
                store(room, 1, 0)
                add_scaled(room, element + 8 * SUM_SIZE * x, SUM_SIZE, scale, status)
                negative = magnitude_of(room, room, SUM_SIZE)
                place = load(places, x)
                for y in range(load(part, 1)):
                    low = min(place, load(others, y))
                    at = _row(m, low) + max(place, load(others, y))
                    at = products + 8 * PRODUCT_SIZE * at
                    other = magnitude_of(room + 8 * SUM_SIZE, others_sums + 8 * SUM_SIZE * y, SUM_SIZE)
                    add_product(at, room, room + 8 * SUM_SIZE, negative != other, status)


@outside
def wide_cofactor_add_scaled(target: int, source: int, m: int, k: int, status: int) -> None:
    """Add ``k`` times an element of doubles of degree ``m`` to another one."""
    store(target, 0, plus(load(target, 0), times(load(source, 0), k, status), status))
    for i in range(m):
        at = 8 * (1 + SUM_SIZE * i)
        add_scaled(target + at, source + at, SUM_SIZE, k, status)
    for i in range(m * (m + 1) // 2):
        at = 8 * (1 + SUM_SIZE * m + PRODUCT_SIZE * i)
        add_scaled(target + at, source + at, PRODUCT_SIZE, k, status)


@outside
def words_add_scaled(target: int, source: int, words: int, k: int, status: int) -> None:
    """Add ``k`` times words to others, each by itself; an overflow is noted once."""
    if _add_run(target, source, words, k) != 0:
        fail(status, SUM_OVERFLOW)
