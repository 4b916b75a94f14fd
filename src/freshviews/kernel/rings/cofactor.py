"""Elements of cofactor rings: sums and products of parts into a payload.

An element of degree m is a count, m sums, and the m (m + 1) / 2 sums of products x_i * x_j, i <= j, row by row
(``freshviews.ring.cofactor``). Of integers each number is a word; of doubles sums have two words and products four
(``kernel.rings.wide``).

A product is described by a *shape*, words that generated code fills:

0 PARTS   number of parts
1 DEGREE  degree of the target
2 to 5    room for two magnitudes; of integers, ROOM: where the shape has room_words(parts, degree) words
6 + 4 i   of part i: address of its element, its degree, where the places of its variables are, in words of the shape,
          and IS_LIFTED: 1 if it is lifted from one row. Of integers such a part has no products, which are those of
          its sums

The places are those of the part's variables among the target's, in ascending order. The parts have no variable in
common, so a product costs what the target's entries of the parts are: no entry is visited twice.

Of integers, the products of one variable with those behind it lie one after the other, as a row of the matrix above its
diagonal. A product adds to each row the variable's own sum times a vector, the sums of the other parts times the counts
of all parts but two. So one addition of two vectors serves a row, however many parts it meets.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import (
    OR_WORDS,
    add_overflows,
    add_words,
    add_wrapping,
    inlined,
    load,
    mul_overflows,
    mul_wrapping,
    or_magnitudes,
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
PART_WORDS = 4
IS_LIFTED = 3

SUM_SIZE = 2
PRODUCT_SIZE = 4
"""Words of the numbers of doubles."""

RUN_ROOM = 2 * OR_WORDS

LARGEST = 2**63 - 1


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
def _add_run(target: int, source: int, words: int, k: int, bits: int, flags: int) -> int:
    """``_add`` of words that lie one after the other; ``bits`` are those of their magnitudes."""
    own = (k ^ (k >> 63)) + 1
    if own > 0 and bits != LARGEST and mul_overflows(own, bits + 1) == 0:
        add_words(target, source, words, k, flags)
        return 0
    over = 0
    for i in range(words):
        over |= _add(target, i, load(source, i), k)
    return over


@inlined
def _cleared(words: int) -> int:
    for i in range(OR_WORDS):
        store(words, i, 0)
    return words


@inlined
def _together(words: int) -> int:
    """The bits of OR_WORDS words."""
    found = 0
    for i in range(OR_WORDS):
        found |= load(words, i)
    return found


@inlined
def _is_run(places: int, count: int) -> bool:
    """Whether places are consecutive."""
    return load(places, count - 1) - load(places, 0) == count - 1


@inlined
def _row(m: int, i: int) -> int:
    """Where the products of variable i would begin if j = 0 had one."""
    return i * m - i * (i + 1) // 2


def room_words(parts: int, degree: int) -> int:
    """Words that a product of ``parts`` parts needs in its shape: for bits, for counts, and for factors."""
    return 2 * OR_WORDS + 2 * (parts + 1) + parts * (degree + 1)


@outside
def cofactor_add(target: int, shape: int, k: int, status: int) -> None:
    """Add ``k`` times the product of the parts of a shape to an element of integers."""
    parts = load(shape, PARTS)
    m = load(shape, DEGREE)
    room = shape + 8 * load(shape, ROOM)
    flags = _cleared(room)
    bits = _cleared(room + 8 * OR_WORDS)
    before = room + 8 * 2 * OR_WORDS
    behind = before + 8 * (parts + 1)
    factors = behind + 8 * (parts + 1)
    _write_counts(shape, before, behind, k, status)
    for a in range(parts):
        _write_factors(factors + 8 * (m + 1) * a, shape, a, before, behind, status)
        part = shape + 8 * (FIRST_PART + PART_WORDS * a)
        d = load(part, 1)
        or_magnitudes(load(part, 0) + 8, d if load(part, IS_LIFTED) != 0 else d + d * (d + 1) // 2, bits)
    own_bits = _together(bits)
    products = target + 8 * (1 + m)
    over = _add(target, 0, 1, load(before, parts))
    for a in range(parts):
        part = shape + 8 * (FIRST_PART + PART_WORDS * a)
        element = load(part, 0)
        d = load(part, 1)
        places = shape + 8 * load(part, 2)
        run = _is_run(places, d)
        scale = times(load(before, a), load(behind, a + 1), status)
        if run:
            over |= _add_run(target + 8 * (1 + load(places, 0)), element + 8, d, scale, own_bits, flags)
        bound = load(factors, m)
        for x in range(d):
            own = load(element, 1 + x)
            place = load(places, x)
            if not run:
                over |= _add(target, 1 + place, own, scale)
            if own != 0:
                at = products + 8 * (_row(m, place) + place)
                over |= _add_run(at, factors + 8 * place, m - place, own, bound, flags)
        factors += 8 * (m + 1)
        if scale != 0 and load(part, IS_LIFTED) == 0:
            source = element + 8 * (1 + d)
            for x in range(d):
                row = products + 8 * _row(m, load(places, x))
                if run:
                    over |= _add_run(row + 8 * load(places, x), source, d - x, scale, own_bits, flags)
                else:
                    for y in range(x, d):
                        over |= _add(row, load(places, y), load(source, y - x), scale)
                source += 8 * (d - x)
    if (over | _together(flags)) != 0:
        fail(status, SUM_OVERFLOW)


@inlined
def _count(shape: int, part: int) -> int:
    return load(load(shape, FIRST_PART + PART_WORDS * part), 0)


@inlined
def _write_counts(shape: int, before: int, behind: int, k: int, status: int) -> None:
    """For each part, ``k`` times the counts of the parts before it, and the counts from it on."""
    parts = load(shape, PARTS)
    store(before, 0, k)
    store(behind, parts, 1)
    for a in range(parts):
        store(before, a + 1, times(load(before, a), _count(shape, a), status))
        other = parts - 1 - a
        store(behind, other, times(load(behind, other + 1), _count(shape, other), status))


@inlined
def _write_factors(factors: int, shape: int, a: int, before: int, behind: int, status: int) -> None:
    """By what the rows of part ``a`` are added: the sums of each other part times k and the counts of all parts but
    these two. Then the bits of their magnitudes. Of its own products only those of a lifted part are such."""
    part = shape + 8 * (FIRST_PART + PART_WORDS * a)
    first = load(shape + 8 * load(part, 2), 0)
    between = load(behind, a + 1)
    bits = 0
    for b in range(a - 1, -1, -1):
        bits |= _write_sums(factors, shape, first, b, times(load(before, b), between, status), status)
        between = times(between, _count(shape, b), status)
    between = load(before, a)
    own = 0 if load(part, IS_LIFTED) == 0 else times(between, load(behind, a + 1), status)
    bits |= _write_sums(factors, shape, first, a, own, status)
    for b in range(a + 1, load(shape, PARTS)):
        bits |= _write_sums(factors, shape, first, b, times(between, load(behind, b + 1), status), status)
        between = times(between, _count(shape, b), status)
    store(factors, load(shape, DEGREE), bits)


@inlined
def _write_sums(factors: int, shape: int, first: int, b: int, scale: int, status: int) -> int:
    """``scale`` times the sums of part ``b``, at the places of its variables, if one is ``first`` or behind it."""
    part = shape + 8 * (FIRST_PART + PART_WORDS * b)
    places = shape + 8 * load(part, 2)
    count = load(part, 1)
    bits = 0
    if load(places, count - 1) >= first:
        sums = load(part, 0) + 8
        for y in range(count):
            factor = times(load(sums, y), scale, status)
            store(factors, load(places, y), factor)
            bits |= factor ^ (factor >> 63)
    return bits


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
                at = sums + 8 * SUM_SIZE * place
                add_scaled(at, element + 8 * SUM_SIZE * x, SUM_SIZE, scale, status, SUM_OVERFLOW)
                row = _row(m, place)
                for y in range(x, d):
                    at = products + 8 * PRODUCT_SIZE * (row + load(places, y))
                    add_scaled(at, source, PRODUCT_SIZE, scale, status, SUM_OVERFLOW)
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
                add_scaled(room, element + 8 * SUM_SIZE * x, SUM_SIZE, scale, status, SUM_OVERFLOW)
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
        add_scaled(target + at, source + at, SUM_SIZE, k, status, SUM_OVERFLOW)
    for i in range(m * (m + 1) // 2):
        at = 8 * (1 + SUM_SIZE * m + PRODUCT_SIZE * i)
        add_scaled(target + at, source + at, PRODUCT_SIZE, k, status, SUM_OVERFLOW)


@outside
def words_add_scaled(target: int, source: int, words: int, k: int, room: int, status: int) -> None:
    """Add ``k`` times words to others, each by itself; an overflow is noted once. ``room`` has RUN_ROOM words."""
    flags = _cleared(room)
    bits = _cleared(room + 8 * OR_WORDS)
    or_magnitudes(source, words, bits)
    if (_add_run(target, source, words, k, _together(bits), flags) | _together(flags)) != 0:
        fail(status, SUM_OVERFLOW)
