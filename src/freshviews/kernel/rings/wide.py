"""Adds and multiplies integers of several words in two's complement. The least significant word comes first."""

from __future__ import annotations

from freshviews.kernel.memory.mem import (
    add_wrapping,
    bits,
    f64,
    inlined,
    jit,
    load,
    mul_high,
    mul_overflows,
    mul_wrapping,
    shift_right,
    signed,
    store,
)
from freshviews.kernel.scalar.real import carried

_WORD = 2**64 - 1


def number_at(address: int, words: int) -> int:
    """The number at an address, for plain Python."""
    low = sum((load(address, i) & _WORD) << (64 * i) for i in range(words - 1))
    return load(address, words - 1) << (64 * (words - 1)) | low


def _add_number(target: int, words: int, addend: int) -> int:
    total = number_at(target, words) + addend
    for i in range(words):
        store(target, i, signed(total >> (64 * i)))
    return int(not -(2 ** (64 * words - 1)) <= total < 2 ** (64 * words - 1))


def _add_multiples(target: int, source: int, words: int, n: int, k: int) -> int:
    over = 0
    for i in range(0, words * n, words):
        number = number_at(source + 8 * i, words)
        top = number >> (64 * (words - 1))
        over |= int(abs(k) != 1) & mul_overflows((top ^ (top >> 63)) + 1, signed(abs(k)))
        over |= _add_number(target + 8 * i, words, k * number)
    return over


# Primitives: their machine code keeps a number in registers (``kernel.compiler.primitives``).


def add_pairs(target: int, source: int, n: int, k: int) -> int:
    """Add ``k`` times each of ``n`` numbers of two words to the number at its place in ``target``.

    Returns 1 on an overflow, else 0. A product within a factor of two of the range counts as an overflow.
    """
    return _add_multiples(target, source, 2, n, k)


def add_fours(target: int, source: int, n: int, k: int) -> int:
    """As ``add_pairs``, for numbers of four words."""
    return _add_multiples(target, source, 4, n, k)


def add_products(target: int, one: int, others: int, n: int) -> int:
    """Add the products of one number of two words and ``n`` others to ``n`` numbers of four words. Returns 1 on an
    overflow, else 0."""
    over = 0
    for i in range(n):
        product = number_at(one, 2) * number_at(others + 8 * 2 * i, 2)
        over |= _add_number(target + 8 * 4 * i, 4, product)
    return over


@inlined
def add_with_carry(target: int, i: int, word: int, carry: int) -> int:
    """Add a word and a carry to word ``i`` of a number; return the carry."""
    total = add_wrapping(load(target, i), word)
    first = carried(total, word)
    after = add_wrapping(total, carry)
    store(target, i, after)
    return first | carried(after, carry)


@inlined
def negated(target: int, words: int) -> None:
    """Negate a number in place."""
    carry = 1
    for i in range(words):
        word = add_wrapping(load(target, i) ^ -1, carry)
        carry = carry if word == 0 else 0
        store(target, i, word)


@jit
def magnitude_of(target: int, source: int, words: int) -> bool:
    """Write the absolute value of a number; return whether the number is negative."""
    for i in range(words):
        store(target, i, load(source, i))
    negative = load(source, words - 1) < 0
    if negative:
        negated(target, words)
    return negative


@jit
def add_long_product(target: int, a: int, a_words: int, b: int, b_words: int, sign: int, words: int) -> None:
    """Add ``sign`` times the product of two magnitudes to a number of ``words`` words, which must have room for it."""
    mask = -1 if sign < 0 else 0
    if mask != 0:
        negated(target, words)
    for i in range(a_words):
        high = 0
        carry = 0
        for j in range(words - i):
            digits = load(b, j) if j < b_words else 0
            part = add_wrapping(mul_wrapping(load(a, i), digits), high)
            high = add_wrapping(mul_high(load(a, i), digits), carried(part, high))
            carry = add_with_carry(target, i + j, part, carry)
    if mask != 0:
        negated(target, words)


@jit
def double_of(magnitude: int, words: int, unit: int) -> float:
    """The double nearest to a magnitude in units of 2^-unit, ties to even; it must be a normal double."""
    top = words - 1
    while top >= 0 and load(magnitude, top) == 0:
        top -= 1
    if top < 0:
        return 0.0
    lead = load(magnitude, top)
    below = load(magnitude, top - 1) if top > 0 else 0
    shift = 0
    while lead > 0:
        # The leading bit becomes the sign.
        lead = mul_wrapping(lead, 2) | shift_right(below, 63)
        below = mul_wrapping(below, 2)
        shift += 1
    sticky = below != 0
    for i in range(top - 1):
        sticky = sticky or load(magnitude, i) != 0
    significand = shift_right(lead, 11)
    rest = lead & 0x7FF
    if rest > 0x400 or (rest == 0x400 and (sticky or significand & 1 == 1)):
        significand += 1
    exponent = 64 * top + 64 - shift - 53 - unit
    return float(significand) * f64((exponent + 1023) << 52)


@jit
def fixed_of(code: int, target: int) -> bool:
    """Write the double with a code as two words, rounded to units of 2^-64, ties away from zero.

    Returns False, and writes zero, if it is not finite or its magnitude is 2^63 or more.
    """
    exponent = shift_right(code, 52) & 0x7FF
    shift = exponent - 1075 + 64
    significand = (code & (2**52 - 1)) | (2**52 if exponent != 0 else 0)
    low = 0
    high = 0
    fits = exponent < 1023 + 63
    if not fits or shift < -53:
        significand = 0
    if shift >= 64:
        high = mul_wrapping(significand, 1 << (shift - 64)) if fits else 0
    elif shift > 0:
        low = mul_wrapping(significand, 1 << shift)
        high = shift_right(significand, 64 - shift)
    elif shift == 0:
        low = significand
    elif shift >= -53:
        low = shift_right(add_wrapping(significand, 1 << (-shift - 1)), -shift)
    store(target, 0, low)
    store(target, 1, high)
    if code < 0:
        negated(target, 2)
    return fits


@inlined
def code_of(x: float) -> int:
    """The code of a finite double, with one zero."""
    return 0 if x == 0.0 else bits(x)
