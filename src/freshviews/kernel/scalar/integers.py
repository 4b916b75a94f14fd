"""The compiled operations on integers and decimals, with checks of overflow (``freshviews.expr.ops``)."""

from __future__ import annotations

from freshviews.kernel.memory.mem import add_overflows, inlined, jit, mul_overflows, mul_wrapping, shift_right
from freshviews.kernel.scalar.checked import scaled_quotient
from freshviews.kernel.scalar.failure import DIVISION_BY_ZERO, LEAST, OVERFLOW, RANGE, fail
from freshviews.types.sqltype import NULL


@inlined
def add_int(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if add_overflows(a, b):
        return fail(status, OVERFLOW)
    return a + b if a + b != NULL else fail(status, LEAST)


@inlined
def sub_int(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return add_int(a, -b, status)


@inlined
def mul_int(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if mul_overflows(a, b):
        return fail(status, OVERFLOW)
    return a * b if a * b != NULL else fail(status, LEAST)


@inlined
def neg_int(a: int, status: int) -> int:
    return NULL if a == NULL else -a  # the one int64 without a negative is NULL


@inlined
def abs_int(a: int, status: int) -> int:
    return NULL if a == NULL else abs(a)


@inlined
def sign_int(a: int) -> int:
    if a == NULL:
        return NULL
    return 1 if a > 0 else -1 if a < 0 else 0


@inlined
def div_int(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if b == 0:
        return fail(status, DIVISION_BY_ZERO)
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


@inlined
def mod_int(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if b == 0:
        return fail(status, DIVISION_BY_ZERO)
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


@inlined
def pmod_int(a: int, b: int, status: int) -> int:
    rest = mod_int(a, b, status)
    return rest + b if rest != NULL and rest < 0 < b else rest


@inlined
def bits_and(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return a & b if a & b != NULL else fail(status, LEAST)


@inlined
def bits_or(a: int, b: int) -> int:
    return NULL if a == NULL or b == NULL else a | b


@inlined
def bits_xor(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return a ^ b if a ^ b != NULL else fail(status, LEAST)


@inlined
def shift_left(a: int, n: int, width: int, status: int) -> int:
    if a == NULL or n == NULL:
        return NULL
    shifted = mul_wrapping(a, 1 << (n & (width - 1)))
    if width == 32:
        low = shifted & 0xFFFFFFFF
        return low - 2**32 if low >= 2**31 else low
    return shifted if shifted != NULL else fail(status, LEAST)


@inlined
def shift_right_signed(a: int, n: int, width: int) -> int:
    return NULL if a == NULL or n == NULL else a >> (n & (width - 1))


@inlined
def shift_right_unsigned(a: int, n: int, width: int) -> int:
    if a == NULL or n == NULL:
        return NULL
    by = n & (width - 1)
    if by == 0:
        return a
    return (a & 0xFFFFFFFF) >> by if width == 32 else shift_right(a, by)


@jit
def bit_count(a: int) -> int:
    if a == NULL:
        return NULL
    rest, count = a if a >= 0 else ~a, 0
    while rest != 0:
        rest &= rest - 1
        count += 1
    return count if a >= 0 else 64 - count


@inlined
def bit_get(a: int, place: int, width: int, status: int) -> int:
    if a == NULL or place == NULL:
        return NULL
    return (a >> place) & 1 if 0 <= place < width else fail(status, RANGE)


@inlined
def try_add_int(a: int, b: int, status: int) -> int:
    return NULL if a == NULL or b == NULL or add_overflows(a, b) else add_int(a, b, status)


@inlined
def try_sub_int(a: int, b: int, status: int) -> int:
    return NULL if a == NULL or b == NULL else try_add_int(a, -b, status)


@inlined
def try_mul_int(a: int, b: int, status: int) -> int:
    return NULL if a == NULL or b == NULL or mul_overflows(a, b) else mul_int(a, b, status)


@inlined
def try_check_range(a: int, low: int, high: int) -> int:
    return a if low <= a <= high else NULL


@inlined
def check_range(a: int, low: int, high: int, status: int) -> int:
    if a == NULL:
        return NULL
    return a if low <= a <= high else fail(status, RANGE)


@inlined
def int_to_bool(a: int) -> int:
    if a == NULL:
        return NULL
    return 1 if a != 0 else 0


@inlined
def scale_up(a: int, factor: int, status: int) -> int:
    return mul_int(a, factor, status)


@inlined
def scale_down(a: int, factor: int) -> int:
    if a == NULL:
        return NULL
    magnitude = abs(a)
    quotient, rest = magnitude // factor, magnitude % factor
    if rest >= factor - rest:
        quotient += 1
    return -quotient if a < 0 else quotient


@inlined
def scale_down_even(a: int, factor: int) -> int:
    if a == NULL:
        return NULL
    magnitude = abs(a)
    quotient, rest = magnitude // factor, magnitude % factor
    if rest > factor - rest or (rest == factor - rest and quotient & 1 == 1):
        quotient += 1
    return -quotient if a < 0 else quotient


@inlined
def floor_decimal(a: int, factor: int) -> int:
    return NULL if a == NULL else a // factor


@inlined
def ceil_decimal(a: int, factor: int) -> int:
    return NULL if a == NULL else -(-a // factor)


@inlined
def round_decimal(a: int, unit: int, status: int) -> int:
    return mul_int(scale_down(a, unit), unit, status)


@jit
def mul_decimal(a: int, b: int, divisor: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    quotient = scaled_quotient(a, b, divisor)
    return quotient if quotient != NULL else fail(status, OVERFLOW)


@jit
def div_decimal(a: int, b: int, multiplier: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if b == 0:
        return fail(status, DIVISION_BY_ZERO)
    quotient = scaled_quotient(a, multiplier, b)
    return quotient if quotient != NULL else fail(status, OVERFLOW)
