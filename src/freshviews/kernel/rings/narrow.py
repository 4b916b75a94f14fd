"""Adds doubles exactly in sums of four words, for values that are neither very small nor very large.

A narrow sum is a two's-complement number in units of 2^-114.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import add_wrapping, allocate, copy_words, jit, load, release, shift_right, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.wide import add_fours
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import TOO_NARROW
from freshviews.kernel.scalar.real import (
    REAL_WORDS,
    SUM_WORDS,
    add_unsigned,
    nearest_double,
    real_rest,
    shifted_product,
)

FIRST = 15
"""The word of a real with which a narrow sum begins."""
NARROW_WORDS = 4

_LARGEST = 1023 + 77  # biased exponent of the doubles just below 2^78
_FRACTION = 2**52 - 1
_IMPLICIT = 2**52


@outside
def narrow_add_double(target: int, code: int, k: int, status: int) -> None:
    """Add ``k`` times the double with a code to the sum at ``target``; ``k`` is any int64.

    The NULL of DOUBLE has the bits of -0.0 and adds nothing.

    A narrow sum is a two's-complement number of four words in units of 2^-114. It can add doubles below 2^78 in
    magnitude that are multiples of the unit. All doubles between 10^-18 and 10^23 in magnitude are such multiples. The
    other 63 bits are for multiplicities.

    Any other addend is ignored, and a sum that overflows is taken modulo 2^256. Both cases store TOO_NARROW at
    ``status``. Then the engine undoes the batch by its negation, widens the sums to the 37 words of ``scalar.real``,
    and repeats the batch.
    """
    exponent = shift_right(code, 52) & 0x7FF
    significand = code & _FRACTION
    if exponent != 0:
        significand |= _IMPLICIT
    elif significand == 0:
        return
    shift = exponent - 1 - 64 * FIRST
    if shift < 0:
        if shift <= -53 or significand & add_wrapping(1 << -shift, -1) != 0:
            fail(status, TOO_NARROW)
            return
        significand = shift_right(significand, -shift)
        shift = 0
    elif exponent > _LARGEST:
        fail(status, TOO_NARROW)
        return
    word = shift_right(shift, 6)
    first, second, third = shifted_product(significand, k, shift & 63)
    before = load(target, NARROW_WORDS - 1)
    if (code < 0) != (k < 0):
        add_unsigned(target, NARROW_WORDS, word, first, True)
        add_unsigned(target, NARROW_WORDS, word + 1, second, True)
        add_unsigned(target, NARROW_WORDS, word + 2, third, True)
        # If the sign has become positive, the sum and the addend were negative.
        if before & (load(target, NARROW_WORDS - 1) ^ -1) < 0:
            fail(status, TOO_NARROW)
    else:
        add_unsigned(target, NARROW_WORDS, word, first, False)
        add_unsigned(target, NARROW_WORDS, word + 1, second, False)
        add_unsigned(target, NARROW_WORDS, word + 2, third, False)
        if (before ^ -1) & load(target, NARROW_WORDS - 1) < 0:
            fail(status, TOO_NARROW)


@outside
def narrow_add_scaled(target: int, source: int, k: int, status: int) -> None:
    """Add ``k`` times the sum at ``source`` to another one at ``target``; ``k`` is any int64."""
    if add_fours(target, source, 1, k) != 0:
        fail(status, TOO_NARROW)


@outside
def narrow_as_real(target: int, source: int) -> None:
    """Write the real with the value of a narrow sum."""
    sign = load(source, NARROW_WORDS - 1) >> 63
    for word in range(FIRST):
        store(target, word, 0)
    for word in range(NARROW_WORDS):
        store(target, FIRST + word, load(source, word))
    for word in range(FIRST + NARROW_WORDS, SUM_WORDS):
        store(target, word, sign)
    for word in range(SUM_WORDS, REAL_WORDS):
        store(target, word, 0)


@jit
def narrow_value(address: int) -> int:
    """The code of the double nearest to a sum, ties to even."""
    return nearest_double(address, NARROW_WORDS, FIRST)


@jit
def narrow_rest(address: int) -> int:
    """The code of the double nearest to a sum minus its ``narrow_value``."""
    real = allocate(REAL_WORDS)
    narrow_as_real(real, address)
    code = real_rest(real)
    release(real)
    return code


@outside
def widen_payload(target: int, source: int, runs: int, count: int) -> None:
    """Write a payload with reals from a payload with narrow sums. ``runs``: ``count`` pairs of words: whether the run
    has narrow sums, and its number of sums or words."""
    for i in range(count):
        size = load(runs, 2 * i + 1)
        if load(runs, 2 * i) == 0:
            copy_words(target, source, size)
            target += 8 * size
            source += 8 * size
        else:
            for _ in range(size):
                narrow_as_real(target, source)
                target += 8 * REAL_WORDS
                source += 8 * NARROW_WORDS
