"""Adds doubles exactly, so that a sum does not depend on the order of inserts and deletes.

A sum is a two's-complement number of 34 words in units of 2^-1074, the least denormal. Three more words count NaN, +inf
and -inf.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import (
    add_wrapping,
    allocate,
    inlined,
    jit,
    load,
    mul_high,
    mul_wrapping,
    release,
    shift_right,
    store,
)
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.memory.row_sort import bits_of
from freshviews.types.sqltype import NAN

SUM_WORDS = 34
NANS = 34  # word that counts NaN
POSITIVE = 35  # word that counts +inf
NEGATIVE = 36  # word that counts -inf
REAL_WORDS = 37

INFINITY_CODE = 0x7FF0000000000000

_SIGN = -(2**63)
_FRACTION = 2**52 - 1
_IMPLICIT = 2**52


@inlined
def carried(total: int, addend: int) -> int:
    """1 if a sum of two unsigned words wrapped: it is less than one of them."""
    return 1 if (total ^ _SIGN) < (addend ^ _SIGN) else 0


@jit
def _carry_on(target: int, word: int, words: int) -> None:
    """Add one at a word and propagate the carry."""
    while word < words:
        total = add_wrapping(load(target, word), 1)
        store(target, word, total)
        if total != 0:
            return
        word += 1


@jit
def _borrow_on(target: int, word: int, words: int) -> None:
    """Subtract one at a word and propagate the borrow."""
    while word < words:
        old = load(target, word)
        store(target, word, add_wrapping(old, -1))
        if old != 0:
            return
        word += 1


@inlined
def add_unsigned(target: int, words: int, word: int, amount: int, negative: bool) -> None:
    """Add an unsigned number, or its negation, at a word of a sum of ``words``; past its end, drop it."""
    if amount != 0 and word < words:
        old = load(target, word)
        if negative:
            store(target, word, add_wrapping(old, mul_wrapping(amount, -1)))
            if carried(old, amount) != 0:
                _borrow_on(target, word + 1, words)
        else:
            total = add_wrapping(old, amount)
            store(target, word, total)
            if carried(total, amount) != 0:
                _carry_on(target, word + 1, words)


@jit
def _add_special(target: int, code: int, k: int) -> None:
    """Add ``k`` to the count of an infinity or of NaN."""
    if code & _FRACTION != 0:
        word = NANS
    else:
        word = POSITIVE if code > 0 else NEGATIVE
    store(target, word, add_wrapping(load(target, word), k))


@inlined
def shifted_product(significand: int, k: int, left: int) -> tuple[int, int, int]:
    """The magnitude of ``k`` times a significand, shifted left by ``left``: three unsigned words, the least first."""
    # The magnitude of the least int64 wraps to itself, which is its magnitude as an unsigned word.
    magnitude = mul_wrapping(k, -1) if k < 0 else k
    low = significand
    high = 0
    if magnitude != 1:
        low = mul_wrapping(significand, magnitude)
        high = mul_high(significand, magnitude)
    # Two steps, because a shift by 64 is undefined in machine code.
    second = mul_wrapping(high, 1 << left) | shift_right(shift_right(low, 1), 63 - left)
    return mul_wrapping(low, 1 << left), second, shift_right(shift_right(high, 1), 63 - left)


@outside
def real_add_double(target: int, code: int, k: int) -> None:
    """Add ``k`` times the double with a code to the sum at ``target``; ``k`` is any int64.

    The NULL of DOUBLE has the bits of -0.0 and adds nothing.

    A sum is a two's-complement number of 34 words in units of 2^-1074, the least denormal. Every finite double is an
    integer number of units, so the sum is exact. The greatest double reaches bit 2097 of 2175, which leaves 77 bits for
    multiplicities. Three more words count NaN, +inf and -inf, so these values can be removed again. All 37 words are
    zero exactly if the sum is zero and contains no NaN and no infinity.

    An addition changes few words, unless the sum changes sign.
    """
    exponent = shift_right(code, 52) & 0x7FF
    if exponent == 0x7FF:
        _add_special(target, code, k)
        return
    significand = code & _FRACTION
    shift = 0
    if exponent != 0:
        significand |= _IMPLICIT
        shift = exponent - 1
    negative = (code < 0) != (k < 0)
    word = shift_right(shift, 6)
    first, second, third = shifted_product(significand, k, shift & 63)
    add_unsigned(target, SUM_WORDS, word, first, negative)
    add_unsigned(target, SUM_WORDS, word + 1, second, negative)
    add_unsigned(target, SUM_WORDS, word + 2, third, negative)


@outside
def real_add_scaled(target: int, source: int, k: int) -> None:
    """Add ``k`` times the sum at ``source`` to another one at ``target``; ``k`` is any int64."""
    for word in range(NANS, REAL_WORDS):
        count = load(source, word)
        if count != 0:
            store(target, word, add_wrapping(load(target, word), mul_wrapping(count, k)))
    magnitude = mul_wrapping(k, -1) if k < 0 else k
    negative = k < 0
    # From ``top`` on, the words of the source are its sign.
    sign = load(source, SUM_WORDS - 1) >> 63
    top = SUM_WORDS
    while top > 0 and load(source, top - 1) == sign:
        top -= 1
    for word in range(top):
        digits = load(source, word)
        if digits != 0:
            add_unsigned(target, SUM_WORDS, word, mul_wrapping(digits, magnitude), negative)
            add_unsigned(target, SUM_WORDS, word + 1, mul_high(digits, magnitude), negative)
    if sign != 0:
        add_unsigned(target, SUM_WORDS, top, magnitude, not negative)


@jit
def clear_real(address: int) -> None:
    """Set a sum to zero."""
    for word in range(REAL_WORDS):
        store(address, word, 0)


@jit
def _special_code(address: int) -> int:
    """The code of a sum with special values; 0 without them.

    A negative count of an infinity, possible only in relations in Z, counts as the opposite infinity.
    """
    nans = load(address, NANS)
    positive = load(address, POSITIVE)
    negative = load(address, NEGATIVE)
    up = positive > 0 or negative < 0
    down = positive < 0 or negative > 0
    if nans != 0 or (up and down):
        return NAN
    if up:
        return INFINITY_CODE
    return INFINITY_CODE | _SIGN if down else 0


@inlined
def _magnitude_word(address: int, word: int, lowest: int, negative: bool) -> int:
    """A word of the absolute value of a sum whose first nonzero word is ``lowest``."""
    value = load(address, word)
    if not negative:
        return value
    if word < lowest:
        return 0
    return mul_wrapping(value, -1) if word == lowest else value ^ -1


@jit
def real_value(address: int) -> int:
    """The code of the double nearest to a sum, ties to even; infinite past the range of doubles.

    NaN if the sum has a NaN or both infinities; an infinity if it has one.
    """
    special = _special_code(address)
    return special if special != 0 else nearest_double(address, SUM_WORDS, 0)


@jit
def nearest_double(address: int, words: int, first: int) -> int:
    """The code of the double nearest to a number of ``words`` words in two's complement, in units of 2^(64 * first -
    1074): ties to even, infinite past the range of doubles. ``first`` is 0 or such that a unit is a normal double."""
    lowest = 0
    while lowest < words and load(address, lowest) == 0:
        lowest += 1
    if lowest == words:
        return 0
    negative = load(address, words - 1) < 0
    top = words - 1
    while _magnitude_word(address, top, lowest, negative) == 0:
        top -= 1
    leading = _magnitude_word(address, top, lowest, negative)
    shift = 64 * top + bits_of(leading) - 53
    sign = _SIGN if negative else 0
    exponent = shift + 64 * first
    if shift <= 0:
        # At most 53 bits. In units of 2^-1074 they are the bits of a denormal, or of a normal in the first binade.
        if first == 0:
            return leading | sign
        return ((exponent << 52) + (leading << -shift)) | sign
    word = shift_right(shift, 6)
    right = shift & 63
    significand = shift_right(_magnitude_word(address, word, lowest, negative), right)
    if word < top:
        significand |= mul_wrapping(mul_wrapping(leading, 2), 1 << (63 - right))
    # Adding the implicit bit of the significand increments the exponent, as does a carry from rounding.
    code = (exponent << 52) + significand if exponent < 2046 else INFINITY_CODE
    place = shift - 1
    last = shift_right(place, 6)
    cut = _magnitude_word(address, last, lowest, negative)
    if shift_right(cut, place & 63) & 1 != 0:
        past_half = lowest < last or cut & add_wrapping(1 << (place & 63), -1) != 0
        if past_half or code & 1 != 0:
            code += 1
    return min(code, INFINITY_CODE) | sign


@jit
def real_rest(address: int) -> int:
    """The code of the double nearest to a sum minus its ``real_value``; 0 if that is infinite or NaN."""
    nearest = real_value(address)
    if shift_right(nearest, 52) & 0x7FF == 0x7FF:
        return 0
    rest = allocate(REAL_WORDS)
    for word in range(REAL_WORDS):
        store(rest, word, load(address, word))
    real_add_double(rest, nearest, -1)
    code = real_value(rest)
    release(rest)
    return code
