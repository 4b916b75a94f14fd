"""Integers of several words in two's complement, the least word first.

Arithmetic is modulo 2^(64 * words), so a batch is undone by its negation even after an overflow, which is stored at
``status`` as in ``kernel.scalar.payload``.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import (
    add_wrapping,
    bits,
    f64,
    inlined,
    jit,
    load,
    mul_overflows,
    mul_wrapping,
    shift_right,
    signed,
    store,
)
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import SUM_OVERFLOW

_SIGN = -(2**63)
_WORD = 2**64 - 1


def mul_high(a: int, b: int) -> int:
    """The high word of the product of two unsigned words."""
    return signed((a & _WORD) * (b & _WORD) >> 64)


@inlined
def carried(total: int, addend: int) -> int:
    """1 if a sum of two unsigned words wrapped: it is less than one of them."""
    return 1 if (total ^ _SIGN) < (addend ^ _SIGN) else 0


@jit
def add_scaled(target: int, source: int, words: int, k: int, status: int, error: int) -> None:
    """Add ``k`` times the number at ``source`` to the one at ``target``.

    A product that comes within a factor of two of the range counts as an overflow, which is the ``error``.
    """
    mask = -1 if k < 0 else 0
    magnitude = mul_wrapping(k, -1) if k < 0 else k
    top = load(source, words - 1)
    if magnitude != 1 and mul_overflows((top ^ (top >> 63)) + 1, magnitude) != 0:
        fail(status, error)
    before = load(target, words - 1)
    high = 0
    carry = mask & 1
    word = 0
    for i in range(words):
        digits = load(source, i)
        low = mul_wrapping(digits, magnitude)
        part = add_wrapping(low, high)
        high = add_wrapping(mul_high(digits, magnitude), carried(part, high))
        word = part ^ mask
        carry = add_with_carry(target, i, word, carry)
    check_sign(before, word, load(target, words - 1), status, error)


@inlined
def add_with_carry(target: int, i: int, word: int, carry: int) -> int:
    """Add a word and a carry to word ``i`` of a number; return the carry."""
    total = add_wrapping(load(target, i), word)
    first = carried(total, word)
    after = add_wrapping(total, carry)
    store(target, i, after)
    return first | carried(after, carry)


@inlined
def check_sign(before: int, addend: int, after: int, status: int, error: int) -> None:
    """Store an ``error`` where the top words of the summands have one sign and that of the sum has the other."""
    if (before ^ after) & (addend ^ after) < 0:
        fail(status, error)


@inlined
def negated(target: int, words: int) -> None:
    """Negate a number in place."""
    carry = 1
    for i in range(words):
        word = add_wrapping(load(target, i) ^ -1, carry)
        carry = carry if word == 0 else 0
        store(target, i, word)


@inlined
def add_product(target: int, a: int, b: int, negative: bool, status: int) -> None:
    """Add the product of two magnitudes of two words, or its negation, to a number of four words.

    The magnitudes are at most 2^127.
    """
    mask = -1 if negative else 0
    a0 = load(a, 0)
    a1 = load(a, 1)
    b0 = load(b, 0)
    b1 = load(b, 1)
    w0 = mul_wrapping(a0, b0)
    x = mul_wrapping(a0, b1)
    y = mul_wrapping(a1, b0)
    w1 = add_wrapping(mul_high(a0, b0), x)
    carry1 = carried(w1, x)
    w1 = add_wrapping(w1, y)
    carry1 += carried(w1, y)
    x = mul_high(a0, b1)
    y = mul_high(a1, b0)
    low = mul_wrapping(a1, b1)
    w2 = add_wrapping(x, y)
    carry2 = carried(w2, y)
    w2 = add_wrapping(w2, low)
    carry2 += carried(w2, low)
    w2 = add_wrapping(w2, carry1)
    carry2 += carried(w2, carry1)
    w3 = add_wrapping(mul_high(a1, b1), carry2)
    before = load(target, 3)
    carry = add_with_carry(target, 0, w0 ^ mask, mask & 1)
    carry = add_with_carry(target, 1, w1 ^ mask, carry)
    carry = add_with_carry(target, 2, w2 ^ mask, carry)
    add_with_carry(target, 3, w3 ^ mask, carry)
    check_sign(before, w3 ^ mask, load(target, 3), status, SUM_OVERFLOW)


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
    """Add ``sign`` times the product of two magnitudes to a number of ``words`` words, which has room for it."""
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
    """The double nearest to a magnitude in units of 2^-unit, ties to even. Its exponent is that of a normal double."""
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
    """Write the double with a code as two words in units of 2^-64, to the nearest one, ties away from zero.

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
    """The code of a finite double: there is one zero."""
    return 0 if x == 0.0 else bits(x)
