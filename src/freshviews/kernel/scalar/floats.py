"""The compiled operations on doubles, and conversions from and to doubles (``freshviews.expr.ops``)."""

from __future__ import annotations

import math

from freshviews.kernel.memory.mem import bits, f64, inlined, jit
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.scalar.checked import (
    exact_ratio,
    float_exp,
    float_power,
    float_remainder,
    nearest_float32,
    scaled_floor,
)
from freshviews.kernel.scalar.failure import DIVISION_BY_ZERO, LEAST, RANGE, fail
from freshviews.kernel.scalar.integers import scale_down
from freshviews.types.sqltype import NAN, NULL

HALF = 2**61
POINT_FOUR_FIVE = 45 * 2**62 // 100
"""Fractions in the units of ``scaled_floor``, 2**-62."""


@inlined
def code(x: float) -> int:
    """The code of a double: its bits, with one zero and one NaN."""
    if x != x:
        return NAN
    if x == 0.0:
        return 0
    return bits(x)


@inlined
def add_float(a: int, b: int) -> int:
    return NULL if a == NULL or b == NULL else code(f64(a) + f64(b))


@inlined
def sub_float(a: int, b: int) -> int:
    return NULL if a == NULL or b == NULL else code(f64(a) - f64(b))


@inlined
def mul_float(a: int, b: int) -> int:
    return NULL if a == NULL or b == NULL else code(f64(a) * f64(b))


@inlined
def div_float(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return code(f64(a) / f64(b)) if b != 0 else fail(status, DIVISION_BY_ZERO)


@inlined
def quotient_float(a: int, b: int) -> int:
    """a / b as in IEEE 754; the one zero is positive."""
    if a == NULL or b == NULL:
        return NULL
    if b != 0:
        return code(f64(a) / f64(b))
    x = f64(a)
    return code(x * math.inf) if x == x and x != 0.0 else NAN


@inlined
def mod_float(a: int, b: int, status: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if b == 0:
        return fail(status, DIVISION_BY_ZERO)
    x = f64(a)
    if x - x != 0.0:  # infinite or NaN
        return NAN
    return code(float_remainder(x, f64(b)))


@inlined
def neg_float(a: int) -> int:
    return NULL if a == NULL else code(-f64(a))


@inlined
def abs_float(a: int) -> int:
    return NULL if a == NULL else code(abs(f64(a)))


@inlined
def sign_float(a: int) -> int:
    if a in (NULL, NAN):
        return a
    x = f64(a)
    return code(1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0)


@jit
def sqrt(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    return code(math.sqrt(x)) if x >= 0.0 else NAN


@jit
def exp(a: int) -> int:
    return NULL if a == NULL else code(float_exp(f64(a)))


@jit
def ln(a: int) -> int:
    if a == NULL or f64(a) <= 0.0:
        return NULL
    return code(math.log(f64(a)))


@jit
def log10(a: int) -> int:
    if a == NULL or f64(a) <= 0.0:
        return NULL
    return code(math.log10(f64(a)))


@jit
def power(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    x, y = f64(a), f64(b)
    # C returns 1 here; Java, and so Spark, returns NaN.
    if y != y or (abs(x) == 1.0 and abs(y) == math.inf):
        return NAN
    return code(float_power(x, y))


@jit
def sin(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    return code(math.sin(x)) if x - x == 0.0 else NAN


@jit
def cos(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    return code(math.cos(x)) if x - x == 0.0 else NAN


@jit
def tan(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    return code(math.tan(x)) if x - x == 0.0 else NAN


@jit
def log2(a: int) -> int:
    if a == NULL or f64(a) <= 0.0:
        return NULL
    return code(math.log2(f64(a)))


@jit
def log1p(a: int) -> int:
    if a == NULL or f64(a) <= -1.0:
        return NULL
    return code(math.log1p(f64(a)))


@jit
def expm1(a: int) -> int:
    if a == NULL:
        return NULL
    # Beyond this bound Python raises, and C returns infinity.
    return code(math.expm1(f64(a))) if not f64(a) > 709.0 else code(float_exp(f64(a)))


@jit
def asin(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    return code(math.asin(x)) if abs(x) <= 1.0 else NAN


@jit
def acos(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    return code(math.acos(x)) if abs(x) <= 1.0 else NAN


@jit
def atan(a: int) -> int:
    return NULL if a == NULL else code(math.atan(f64(a)))


@jit
def atan2(a: int, b: int) -> int:
    return NULL if a == NULL or b == NULL else code(math.atan2(f64(a), f64(b)))


@jit
def tanh(a: int) -> int:
    return NULL if a == NULL else code(math.tanh(f64(a)))


@jit
def sinh(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    if abs(x) <= 709.0:
        return code(math.sinh(x))
    half = float_exp(abs(x) / 2.0)  # beyond this bound Python raises
    return code(half / 2.0 * half if x > 0.0 else -half / 2.0 * half)


@jit
def cosh(a: int) -> int:
    if a == NULL:
        return NULL
    x = abs(f64(a))
    if x <= 709.0:
        return code(math.cosh(x))
    half = float_exp(x / 2.0)
    return code(half / 2.0 * half)


@inlined
def logarithm_of_sum(x: float, square: float) -> float:
    """log(x + sqrt(square)), also where the square is infinite: the area functions as Spark computes them, with the
    digits that this loses."""
    if abs(x) > 1.3407807929942596e154:
        return math.log(abs(x)) + 0.6931471805599453
    total = x + math.sqrt(square)
    return math.log(total) if total > 0.0 else -math.inf


@jit
def asinh(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    if x != x:
        return NAN
    found = logarithm_of_sum(x, x * x + 1.0)
    return code(-found if x < -1.3407807929942596e154 else found)


@jit
def acosh(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    return code(logarithm_of_sum(x, x * x - 1.0)) if x >= 1.0 else NAN


@jit
def atanh(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    if abs(x) < 1.0:
        return code(math.atanh(x))
    return code(x * math.inf) if abs(x) == 1.0 else NAN


@jit
def hypot(a: int, b: int) -> int:
    return NULL if a == NULL or b == NULL else code(math.hypot(f64(a), f64(b)))


@inlined
def rint(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    if not abs(x) < 4503599627370496.0:
        return a
    # A double of 2**52 or more has no fraction, so the sum is rounded to an even whole number.
    high = 4503599627370496.0 if x >= 0.0 else -4503599627370496.0
    return code(x + high - high)


@jit
def cbrt(a: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    y = abs(x)
    if y == 0.0 or x - x != 0.0:
        return a
    root = float_power(y, 1.0 / 3.0)
    # One step of Newton's method, so that the root of a cube is exact.
    root -= (root - y / (root * root)) / 3.0
    return code(root if x > 0.0 else -root)


_SPLITTER = 134217729.0
"""2**27 + 1: it splits a double into two halves of 26 bits, whose products are exact (Dekker, 1971)."""


@inlined
def _rest(x: float, y: float, product: float) -> float:
    """``x * y`` minus ``product``, the double nearest to it; exact if nothing overflows or underflows."""
    t = _SPLITTER * x
    x_high = t - (t - x)
    x_low = x - x_high
    t = _SPLITTER * y
    y_high = t - (t - y)
    y_low = y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@jit
def mul_rest(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    x, y = f64(a), f64(b)
    rest = _rest(x, y, x * y)
    return code(rest) if rest - rest == 0.0 else 0


_NOISE = 2.0**-98
"""Bound of the error of ``comoment``, relative to the subtracted product; smaller results count as zero."""


@outside
def comoment(n: int, x: int, x_rest: int, y: int, y_rest: int, p: int, p_rest: int, q: int) -> int:
    if n in (NULL, 0) or NULL in (x, x_rest, y, y_rest, p, p_rest, q):
        return NULL
    rows = float(n)
    # Numbers are sums of two doubles, with 106 bits. First the product of the two totals.
    product = f64(x) * f64(y)
    product_rest = _rest(f64(x), f64(y), product) + (f64(x) * f64(y_rest) + f64(x_rest) * f64(y))
    mean = product / rows
    back = mean * rows
    mean_rest = ((product - back) - _rest(mean, rows, back) + product_rest) / rows
    minuend = f64(p)
    difference = minuend - mean
    other = difference - minuend
    error = (minuend - (difference - other)) - (mean + other)
    total = difference + (error + ((f64(p_rest) - mean_rest) + f64(q)))
    if abs(total) <= _NOISE * (abs(minuend) + abs(mean)):
        return 0
    return code(total)


# Pairs: numbers as the sum of two doubles, with about 100 bits.


@inlined
def _pair_sum(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    total = a + b
    other = total - a
    rest = (a - (total - other)) + (b - other) + (a_rest + b_rest)
    nearest = total + rest
    return nearest, rest - (nearest - total)


@inlined
def _pair_product(a: float, a_rest: float, b: float, b_rest: float) -> tuple[float, float]:
    product = a * b
    rest = _rest(a, b, product) + (a * b_rest + a_rest * b)
    nearest = product + rest
    return nearest, rest - (nearest - product)


@inlined
def _pair_mean(a: float, a_rest: float, rows: float) -> tuple[float, float]:
    mean = a / rows
    back = mean * rows
    return mean, ((a - back) - _rest(mean, rows, back) + a_rest) / rows


@inlined
def _less_means(
    power: float, power_rest: float, mean: float, mean_rest: float, inner: float, inner_rest: float
) -> float:
    """``power - mean * inner``; 0 if it is within the error of the terms."""
    product, product_rest = _pair_product(mean, mean_rest, inner, inner_rest)
    total, _ = _pair_sum(power, power_rest, -product, -product_rest)
    return 0.0 if abs(total) <= 64.0 * _NOISE * (abs(power) + abs(product)) else total


@outside
def third_moment(n: int, x: int, x_rest: int, p: int, p_rest: int, t: int, t_rest: int) -> int:
    if n in (NULL, 0) or NULL in (x, x_rest, p, p_rest, t, t_rest):
        return NULL
    mean, mean_rest = _pair_mean(f64(x), f64(x_rest), float(n))
    # sum x^3 - mean * (3 * sum x^2 - mean * (2 * sum x))
    a, a_rest = _pair_product(mean, mean_rest, -2.0 * f64(x), -2.0 * f64(x_rest))
    b, b_rest = _pair_product(f64(p), f64(p_rest), 3.0, 0.0)
    a, a_rest = _pair_sum(b, b_rest, a, a_rest)
    return code(_less_means(f64(t), f64(t_rest), mean, mean_rest, a, a_rest))


@outside
def fourth_moment(
    n: int, x: int, x_rest: int, p: int, p_rest: int, t: int, t_rest: int, f: int, f_rest: int
) -> int:
    if n in (NULL, 0) or NULL in (x, x_rest, p, p_rest, t, t_rest, f, f_rest):
        return NULL
    mean, mean_rest = _pair_mean(f64(x), f64(x_rest), float(n))
    # sum x^4 - mean * (4 * sum x^3 - mean * (6 * sum x^2 - mean * (3 * sum x)))
    a, a_rest = _pair_product(f64(x), f64(x_rest), -3.0, 0.0)
    a, a_rest = _pair_product(mean, mean_rest, a, a_rest)
    b, b_rest = _pair_product(f64(p), f64(p_rest), 6.0, 0.0)
    a, a_rest = _pair_sum(b, b_rest, a, a_rest)
    a, a_rest = _pair_product(mean, mean_rest, -a, -a_rest)
    a, a_rest = _pair_sum(4.0 * f64(t), 4.0 * f64(t_rest), a, a_rest)
    return code(_less_means(f64(f), f64(f_rest), mean, mean_rest, a, a_rest))


@inlined
def _whole(x: float, status: int) -> int:
    """A double without a fraction as an integer, or an error; NaN fails both comparisons."""
    if -9223372036854775808.0 < x < 9223372036854775808.0:
        return int(x)
    return fail(status, LEAST if x == -9223372036854775808.0 else RANGE)


@inlined
def _floor(x: float) -> float:
    # From 2**52 on a double has no fraction, and from 2**63 on it does not fit int64.
    """The greatest whole double not above ``x``."""
    if -4503599627370496.0 < x < 4503599627370496.0:
        down = float(int(x))
        return down - 1.0 if down > x else down
    return x


@jit
def floor_float(a: int, status: int) -> int:
    return NULL if a == NULL else _whole(_floor(f64(a)), status)


@jit
def ceil_float(a: int, status: int) -> int:
    return NULL if a == NULL else _whole(-_floor(-f64(a)), status)


@jit
def float_to_int(a: int, low: int, high: int, status: int) -> int:
    if a == NULL:
        return NULL
    whole = _whole(f64(a), status)
    return whole if whole == NULL or low <= whole <= high else fail(status, RANGE)


@jit
def _round_scaled(x: float, factor: int) -> int:
    """``x * factor`` rounded HALF_UP, with x read as its shortest decimal text; NULL if it does not fit.

    Java, and so Spark, rounds the text of a double and not its bits: 1.005, whose bits are slightly less, rounds to
    1.01 at two digits. Below 10**14 text and bits round alike, unless the tie itself reads back as x; then the text is
    the tie. From there on, the text is the nearest multiple of the greatest power of ten that has a multiple reading
    back as x; of two equally near ones, the one with an even last digit.
    """
    y = abs(x)
    scaled = y * float(factor)
    if scaled < 1e14:
        whole = int(scaled)
        if y >= (2.0 * whole + 1.0) / (2.0 * factor):
            whole += 1
        return -whole if x < 0.0 else whole
    if not scaled < 9.2e18:
        return NULL
    exact, fraction = scaled_floor(y, factor)
    # Numbers that read back as x are within 2048 of it here, so at most one is a multiple of 10**4.
    unit = 10_000
    while unit > 0:
        down = exact - exact % unit
        up = down + unit
        past_middle = 2 * (exact - down) - unit if unit > 1 else 0
        if past_middle == 0:
            past_middle = fraction if unit > 1 else fraction - HALF
        if past_middle > 0 or (past_middle == 0 and down // unit % 2 == 1):
            down, up = up, down  # the nearer one first
        if exact_ratio(down, factor) == y:
            return -down if x < 0.0 else down
        if exact_ratio(up, factor) == y:
            return -up if x < 0.0 else up
        unit //= 10
    # The text has more digits. It can be the tie if x is less than the tie by less than 0.05. Past 10**15 the text has
    # one digit more and is the tie; below, it is the tie if that reads back as x.
    whole = exact
    if fraction >= HALF or (
        fraction > POINT_FOUR_FIVE and (scaled >= 1e15 or y == (2.0 * exact + 1.0) / (2.0 * factor))
    ):
        whole = exact + 1
    return -whole if x < 0.0 else whole


@jit
def _power_of_ten(digits: int) -> float:
    """A power of ten; exact up to 22."""
    result = 1.0
    for _ in range(min(digits, 320)):
        result *= 10.0
    return result


@jit
def round_float(a: int, digits: int) -> int:
    if a == NULL or digits == NULL:
        return NULL
    x = f64(a)
    if x - x != 0.0:
        return a
    y = abs(x)
    if 0 <= digits <= 18:
        factor = 1
        for _ in range(digits):
            factor *= 10
        unscaled = _round_scaled(y, factor)
        if unscaled == NULL:
            return a  # the text of x has at most 17 digits, so rounding changes nothing
        rounded = exact_ratio(unscaled, factor)
    elif digits > 18:
        scale = _power_of_ten(digits)
        if not y * scale < 1e15:
            return a
        whole = float(int(y * scale))
        if y >= (2.0 * whole + 1.0) / (2.0 * scale):
            whole += 1.0
        rounded = whole / scale
    else:
        scale = _power_of_ten(-digits)
        if digits >= -18 and 2.0**53 <= y < 9.2e18:  # a whole number, whose text may differ from it
            text = _round_scaled(y, 1)
            rounded = float(scale_down(text, int(scale)) * int(scale))
        elif y / scale < 1e15:
            whole = float(int(y / scale))
            if y >= (2.0 * whole + 1.0) * (0.5 * scale):
                whole += 1.0
            rounded = whole * scale if whole > 0.0 else 0.0
        else:
            return a
    return code(-rounded if x < 0.0 else rounded)


@jit
def float_to_decimal(a: int, factor: int, limit: int, status: int) -> int:
    if a == NULL:
        return NULL
    x = f64(a)
    if x - x != 0.0:
        return fail(status, RANGE)
    unscaled = _round_scaled(x, factor)
    return unscaled if unscaled != NULL and -limit <= unscaled <= limit else fail(status, RANGE)


@inlined
def float_to_float32(a: int) -> int:
    return NULL if a == NULL else code(nearest_float32(f64(a)))


@inlined
def float_to_bool(a: int) -> int:
    if a == NULL:
        return NULL
    return 1 if a != 0 else 0


@inlined
def int_to_float(a: int) -> int:
    return NULL if a == NULL else code(float(a))


@jit
def decimal_to_float(a: int, factor: int) -> int:
    return NULL if a == NULL else code(exact_ratio(a, factor))
