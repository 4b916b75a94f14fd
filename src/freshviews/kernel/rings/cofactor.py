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

from freshviews.kernel.memory.mem import inlined, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.wide import add_product, add_scaled, fixed_of, magnitude_of
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import NO_FIXED_POINT, plus, times

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


@outside
def cofactor_lift(target: int, codes: int, m: int, status: int) -> None:
    """The element of one row: its count is 1. ``codes`` has the integers of the ``m`` variables."""
    store(target, 0, 1)
    at = 1 + m
    for x in range(m):
        own = load(codes, x)
        store(target, 1 + x, own)
        for y in range(x, m):
            store(target, at, times(own, load(codes, y), status))
            at += 1


@outside
def cofactor_add(target: int, shape: int, k: int, status: int) -> None:
    """Add ``k`` times the product of the parts of a shape to an element of integers."""
    m = load(shape, DEGREE)
    products = target + 8 * (1 + m)
    store(target, 0, plus(load(target, 0), _counts(shape, -1, -1, k, status), status))
    for a in range(load(shape, PARTS)):
        part = shape + 8 * (FIRST_PART + PART_WORDS * a)
        element = load(part, 0)
        d = load(part, 1)
        places = shape + 8 * load(part, 2)
        scale = _counts(shape, a, a, k, status)
        if scale != 0:
            source = element + 8 * (1 + d)
            for x in range(d):
                place = load(places, x)
                store(target, 1 + place, plus(load(target, 1 + place), times(scale, load(element, 1 + x), status), status))
                row = place * m - place * (place + 1) // 2
                for y in range(x, d):
                    at = row + load(places, y)
                    store(products, at, plus(load(products, at), times(scale, load(source, y - x), status), status))
                source += 8 * (d - x)
        for b in range(a + 1, load(shape, PARTS)):
            part = shape + 8 * (FIRST_PART + PART_WORDS * b)
            other = load(part, 0) + 8
            others = shape + 8 * load(part, 2)
            scale = _counts(shape, a, b, k, status)
            for x in range(d):
                own = times(scale, load(element, 1 + x), status)
                if own != 0:
                    place = load(places, x)
                    for y in range(load(part, 1)):
                        low = min(place, load(others, y))
                        at = low * m - low * (low + 1) // 2 + max(place, load(others, y))
                        store(products, at, plus(load(products, at), times(own, load(other, y), status), status))


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
                row = place * m - place * (place + 1) // 2
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
                    at = low * m - low * (low + 1) // 2 + max(place, load(others, y))
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
    for i in range(words):
        store(target, i, plus(load(target, i), times(load(source, i), k, status), status))
