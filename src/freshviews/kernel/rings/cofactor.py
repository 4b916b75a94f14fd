"""Adds elements of cofactor rings, and products of such elements, to a payload.

An element of degree m describes m variables of some rows. It has the count of the rows, m sums, and m (m + 1) / 2 sums
of products (``freshviews.ring.cofactor``).
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import (
    OR_WORDS,
    add_overflows,
    add_words,
    add_wrapping,
    copy_words,
    inlined,
    load,
    mul_overflows,
    mul_wrapping,
    or_magnitudes,
    store,
)
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.wide import add_fours, add_pairs, add_products, fixed_of
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import NO_FIXED_POINT, SUM_OVERFLOW, plus, times
from freshviews.types.sqltype import NULL

PARTS = 0
DEGREE = 1
ROOM = 2
FIRST_PART = 3
PART_WORDS = 4
IS_LIFTED = 3

SUM_SIZE = 2
PRODUCT_SIZE = 4
"""Words of the numbers of doubles."""

RUN_ROOM = 2 * OR_WORDS

LARGEST = 2**63 - 1


@inlined
def _add(target: int, at: int, x: int, k: int) -> int:
    """Add ``k`` times ``x`` to a word; returns nonzero if that overflows. A loop checks its flags once, at its end."""
    product = mul_wrapping(x, k)
    old = load(target, at)
    total = add_wrapping(old, product)
    store(target, at, total)
    return mul_overflows(x, k) | add_overflows(old, product) | (1 if total == NULL else 0)


@inlined
def _add_run(target: int, source: int, words: int, k: int, bits: int, flags: int) -> int:
    """``_add`` for consecutive words; ``bits``: the bits of their magnitudes."""
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
    """The OR of OR_WORDS words."""
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
    """The place where the products of variable i would begin if there were one for j = 0."""
    return i * m - i * (i + 1) // 2


def room_words(parts: int, degree: int, size: int) -> int:
    """Words that a product of ``parts`` parts needs in its shape: for counts, scales, factors and their bits.

    ``size``: words of a sum, 1 for integers and SUM_SIZE for doubles.
    """
    return RUN_ROOM + 3 * (parts + 1) + (parts + 1) * (size * degree + 1)


@outside
def cofactor_add(target: int, shape: int, k: int, status: int) -> None:
    """Add ``k`` times the product of the parts of a shape to an element of integers.

    A product of elements is added to a *target*; the factors are the *parts* of the product. Generated code describes
    the product by these words, its *shape*:

    0 PARTS   number of parts
    1 DEGREE  degree of the target
    2 ROOM    offset in the shape, in words, of room_words(parts, degree, size of a sum) scratch words
    3 + 4 i   for part i: address of its element, its degree, offset in the shape of the places of its variables, and
              IS_LIFTED: 1 if the part is lifted from one row. Such a part has no products: they follow from its sums

    The places of a part are the positions of its variables among the variables of the target, in ascending order. No
    variable is in two parts.
    """
    parts = load(shape, PARTS)
    m = load(shape, DEGREE)
    room = shape + 8 * load(shape, ROOM)
    flags = _cleared(room)
    bits = _cleared(room + 8 * OR_WORDS)
    scales = room + 8 * RUN_ROOM
    before = scales + 8 * (parts + 1)
    behind = before + 8 * (parts + 1)
    factors = behind + 8 * (parts + 1)
    _write_counts(shape, before, behind, k, status)
    ones = _counts_are_one(shape)
    shared = factors + 8 * (m + 1) * parts
    if ones:
        for b in range(parts):
            store(scales, b, k)
        _write_factors(shared, shape, 0, scales, status)
    for a in range(parts):
        part = shape + 8 * (FIRST_PART + PART_WORDS * a)
        if ones:
            copy_words(factors + 8 * (m + 1) * a, shared, m + 1)
            if load(part, IS_LIFTED) == 0:
                _clear_own(factors + 8 * (m + 1) * a, shape, a, 1)
        else:
            _write_scales(scales, shape, a, before, behind, status)
            _write_factors(factors + 8 * (m + 1) * a, shape, load(shape + 8 * load(part, 2), 0), scales, status)
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
def _counts_are_one(shape: int) -> bool:
    for a in range(load(shape, PARTS)):
        if _count(shape, a) != 1:
            return False
    return True


@inlined
def _clear_own(factors: int, shape: int, a: int, size: int) -> None:
    """Set the factors at the places of part ``a`` to zero."""
    part = shape + 8 * (FIRST_PART + PART_WORDS * a)
    places = shape + 8 * load(part, 2)
    for x in range(load(part, 1)):
        for i in range(size):
            store(factors, size * load(places, x) + i, 0)


@inlined
def _count(shape: int, part: int) -> int:
    return load(load(shape, FIRST_PART + PART_WORDS * part), 0)


@inlined
def _write_counts(shape: int, before: int, behind: int, k: int, status: int) -> None:
    """Write, for each part, ``k`` times the product of the counts before it, and that of the counts from it on."""
    parts = load(shape, PARTS)
    store(before, 0, k)
    store(behind, parts, 1)
    for a in range(parts):
        store(before, a + 1, times(load(before, a), _count(shape, a), status))
        other = parts - 1 - a
        store(behind, other, times(load(behind, other + 1), _count(shape, other), status))


@inlined
def _write_scales(scales: int, shape: int, a: int, before: int, behind: int, status: int) -> None:
    """Write the factors of each part's sums in the rows of part ``a``: k times the counts of all parts except these
    two. The sums of ``a`` itself have a scale only if it is lifted; otherwise it has products of its own."""
    part = shape + 8 * (FIRST_PART + PART_WORDS * a)
    between = load(behind, a + 1)
    for b in range(a - 1, -1, -1):
        store(scales, b, times(load(before, b), between, status))
        between = times(between, _count(shape, b), status)
    between = load(before, a)
    store(scales, a, 0 if load(part, IS_LIFTED) == 0 else times(between, load(behind, a + 1), status))
    for b in range(a + 1, load(shape, PARTS)):
        store(scales, b, times(between, load(behind, b + 1), status))
        between = times(between, _count(shape, b), status)


@inlined
def _write_factors(factors: int, shape: int, first: int, scales: int, status: int) -> None:
    """Write the factors of each part, sums times scale, if a variable of it is ``first`` or behind; then the bits of
    all."""
    bits = 0
    for b in range(load(shape, PARTS)):
        bits |= _write_sums(factors, shape, first, b, load(scales, b), status)
    store(factors, load(shape, DEGREE), bits)


@inlined
def _write_sums(factors: int, shape: int, first: int, b: int, scale: int, status: int) -> int:
    """Write ``scale`` times the sums of part ``b`` to the places of its variables, if one is ``first`` or behind.
    Returns the bits of their magnitudes."""
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
    """Write the count and the sums of one row of doubles; reports NO_FIXED_POINT if one is not finite, or too large."""
    store(target, 0, 1)
    for x in range(m):
        if not fixed_of(load(codes, x), target + 8 * (1 + SUM_SIZE * x)):
            fail(status, NO_FIXED_POINT)


@outside
def wide_cofactor_add(target: int, shape: int, k: int, status: int) -> None:
    """As ``cofactor_add``, for doubles."""
    parts = load(shape, PARTS)
    m = load(shape, DEGREE)
    scales = shape + 8 * load(shape, ROOM)
    before = scales + 8 * (parts + 1)
    behind = before + 8 * (parts + 1)
    factors = behind + 8 * (parts + 1)
    sums = target + 8
    products = sums + 8 * SUM_SIZE * m
    _write_counts(shape, before, behind, k, status)
    store(target, 0, plus(load(target, 0), load(before, parts), status))
    over = 0
    ones = _counts_are_one(shape)
    if ones:
        for b in range(parts):
            over |= _write_wide_sums(factors, shape, 0, b, k)
    for a in range(parts):
        part = shape + 8 * (FIRST_PART + PART_WORDS * a)
        element = load(part, 0) + 8
        d = load(part, 1)
        places = shape + 8 * load(part, 2)
        run = _is_run(places, d)
        scale = times(load(before, a), load(behind, a + 1), status)
        keeps_own = not ones or load(part, IS_LIFTED) != 0
        if not ones:
            _write_scales(scales, shape, a, before, behind, status)
            for b in range(parts):
                over |= _write_wide_sums(factors, shape, load(places, 0), b, load(scales, b))
        elif not keeps_own:
            _clear_own(factors, shape, a, SUM_SIZE)
        if run:
            over |= add_pairs(sums + 8 * SUM_SIZE * load(places, 0), element, d, scale)
        for x in range(d):
            own = element + 8 * SUM_SIZE * x
            place = load(places, x)
            if not run:
                over |= add_pairs(sums + 8 * SUM_SIZE * place, own, 1, scale)
            if load(own, 0) != 0 or load(own, 1) != 0:
                at = products + 8 * PRODUCT_SIZE * (_row(m, place) + place)
                over |= add_products(at, own, factors + 8 * SUM_SIZE * place, m - place)
        if not keeps_own:
            _write_wide_sums(factors, shape, 0, a, k)
        if scale != 0 and load(part, IS_LIFTED) == 0:
            source = element + 8 * SUM_SIZE * d
            for x in range(d):
                row = products + 8 * PRODUCT_SIZE * _row(m, load(places, x))
                if run:
                    over |= add_fours(row + 8 * PRODUCT_SIZE * load(places, x), source, d - x, scale)
                else:
                    for y in range(x, d):
                        at = row + 8 * PRODUCT_SIZE * load(places, y)
                        over |= add_fours(at, source + 8 * PRODUCT_SIZE * (y - x), 1, scale)
                source += 8 * PRODUCT_SIZE * (d - x)
    if over != 0:
        fail(status, SUM_OVERFLOW)


@inlined
def _write_wide_sums(factors: int, shape: int, first: int, b: int, scale: int) -> int:
    """As ``_write_sums``, for doubles; returns 1 on an overflow."""
    part = shape + 8 * (FIRST_PART + PART_WORDS * b)
    places = shape + 8 * load(part, 2)
    count = load(part, 1)
    over = 0
    if load(places, count - 1) >= first:
        sums = load(part, 0) + 8
        for y in range(count):
            factor = factors + 8 * SUM_SIZE * load(places, y)
            store(factor, 0, 0)
            store(factor, 1, 0)
            over |= add_pairs(factor, sums + 8 * SUM_SIZE * y, 1, scale)
    return over


@outside
def wide_cofactor_add_scaled(target: int, source: int, m: int, k: int, status: int) -> None:
    """Add ``k`` times an element of doubles of degree ``m`` to another one."""
    store(target, 0, plus(load(target, 0), times(load(source, 0), k, status), status))
    products = 8 * (1 + SUM_SIZE * m)
    over = add_pairs(target + 8, source + 8, m, k)
    if (over | add_fours(target + products, source + products, m * (m + 1) // 2, k)) != 0:
        fail(status, SUM_OVERFLOW)


@outside
def words_add_scaled(target: int, source: int, words: int, k: int, room: int, status: int) -> None:
    """Add ``k`` times each source word to its target word; an overflow is noted once. ``room`` has RUN_ROOM words."""
    flags = _cleared(room)
    bits = _cleared(room + 8 * OR_WORDS)
    or_magnitudes(source, words, bits)
    if (_add_run(target, source, words, k, _together(bits), flags) | _together(flags)) != 0:
        fail(status, SUM_OVERFLOW)
