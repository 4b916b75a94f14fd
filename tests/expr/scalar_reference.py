"""The meaning of each compiled operation, in terms of Python's integers, decimal, fractions and datetime.

``REFERENCE[op]`` has the kinds of its arguments and a function over Python values: None is NULL, floats
are floats, everything else is the integer of the code. ``Fault`` is the error of a fallible operation.
Run as a script, it prints the outcome of every sample as JSON (for the mode of evaluation it runs in).
"""

from __future__ import annotations

import calendar
import datetime as dt
import json
import math
import operator
import random
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from freshviews.expr.ops import OPS
from freshviews.kernel.scalar import operations as scalar
from freshviews.types import NULL

GREATEST = 2**63 - 1
EPOCH = dt.date(1970, 1, 1)
DAY = 86_400_000_000


class Fault(Exception):
    """The operation fails."""


def fits(value: int) -> int:
    if not -GREATEST <= value <= GREATEST:
        raise Fault
    return value


def beyond(value: int) -> bool:
    return not NULL <= value <= GREATEST


def in_range(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise Fault
    return value


def nonzero(value: Any) -> Any:
    if value == 0:
        raise Fault
    return value


def quotient(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b + 0.0))


def same(one: Any, other: Any) -> Any:
    if one != other:
        raise Fault
    return one


def wrapped(value: int, width: int) -> int:
    """The low bits as a signed number."""
    low = value % 2**width
    return low - 2**width if low >= 2 ** (width - 1) else low


def area(x: float, one: int) -> float:
    """log(x + sqrt(x * x + one)), with the digits that this loses, as Spark computes it."""
    if abs(x) > 1.3407807929942596e154:
        return math.copysign(math.log(abs(x)) + math.log(2), x)
    with np.errstate(all="ignore"):
        return float(np.log(x + np.sqrt(np.float64(x) * x + one)))


def half_even(value: Fraction) -> int:
    return round(value)


def half_up(value: Fraction) -> int:
    magnitude = math.floor(abs(value) + Fraction(1, 2))
    return -magnitude if value < 0 else magnitude


def truncated(value: Fraction) -> int:
    return math.trunc(value)


def order(x: float) -> tuple[bool, float]:
    """A sort key in which NaN is the greatest."""
    return (True, 0.0) if math.isnan(x) else (False, x)


def text_of(x: float) -> Decimal:
    return Decimal(repr(x))


def c_float(function: Callable[..., float]) -> Callable[..., float]:
    def guarded(*args: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, args)))

    return guarded


def java_power(x: float, y: float) -> float:
    if math.isnan(y) or (abs(x) == 1 and math.isinf(y)):
        return math.nan
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:  # 0 to a negative power, or a negative number to a fractional one
        return math.inf if x == 0 else math.nan


def finite_whole(x: float, rounded: Callable[[float], int]) -> int:
    if math.isnan(x) or math.isinf(x):
        raise Fault
    return fits(rounded(x))


def to_decimal(x: float, factor: int, limit: int) -> int:
    if math.isnan(x) or math.isinf(x):
        raise Fault
    return in_range(half_up(Fraction(text_of(x)) * factor), -limit, limit)


def round_text(x: float, digits: int) -> float:
    if math.isnan(x) or math.isinf(x):
        return x
    context = Context(prec=800, rounding=ROUND_HALF_UP)
    return float(text_of(x).quantize(Decimal(1).scaleb(-digits), context=context)) + 0.0


def date(d: int) -> dt.date:
    return EPOCH + dt.timedelta(days=d)


def days(value: dt.date) -> int:
    return (value - EPOCH).days


def moment(t: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=t)


def micros(value: dt.datetime) -> int:
    return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def shifted(value: Any, months: int) -> Any:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    return value.replace(
        year=year, month=month + 1, day=min(value.day, calendar.monthrange(year, month + 1)[1])
    )


def start_of(value: dt.date, unit: int) -> dt.date:
    if unit == 3:
        return value - dt.timedelta(days=value.weekday())
    month = {0: 1, 1: (value.month - 1) // 3 * 3 + 1, 2: value.month}[unit]
    return value.replace(month=month, day=1)


def start_of_moment(value: dt.datetime, unit: int) -> dt.datetime:
    if unit < 4:
        return dt.datetime.combine(start_of(value.date(), unit), dt.time())
    zeros = {4: {"hour": 0, "minute": 0, "second": 0}, 5: {"minute": 0, "second": 0}, 6: {"second": 0}}
    return value.replace(microsecond=0, **zeros.get(unit, {}))


Reference = tuple[str, Callable[..., Any]]

# Kinds: i any integer, f float, b boolean, p positive power of ten, l limit, D date, T timestamp,
# m months, n small count, c count of rows, t total, z its rest, r digits, L bound, u unit of a date, U of a
# timestamp, w a width of integers. A kind says how samples
# are drawn; a value of one of LITERALS is never NULL.
LITERALS = "plrLuUw"

STRICT: dict[str, Reference] = {
    "eq": ("ii", lambda a, b: a == b),
    "ne": ("ii", lambda a, b: a != b),
    "lt": ("ii", lambda a, b: a < b),
    "le": ("ii", lambda a, b: a <= b),
    "gt": ("ii", lambda a, b: a > b),
    "ge": ("ii", lambda a, b: a >= b),
    "eq_float": ("ff", lambda a, b: order(a) == order(b)),
    "ne_float": ("ff", lambda a, b: order(a) != order(b)),
    "lt_float": ("ff", lambda a, b: order(a) < order(b)),
    "le_float": ("ff", lambda a, b: order(a) <= order(b)),
    "gt_float": ("ff", lambda a, b: order(a) > order(b)),
    "ge_float": ("ff", lambda a, b: order(a) >= order(b)),
    "not": ("b", lambda a: not a),
    "add_int": ("ii", lambda a, b: fits(a + b)),
    "sub_int": ("ii", lambda a, b: fits(a - b)),
    "mul_int": ("ii", lambda a, b: fits(a * b)),
    "neg_int": ("i", lambda a: -a),
    "abs_int": ("i", abs),
    "sign_int": ("i", lambda a: (a > 0) - (a < 0)),
    "div_int": ("ii", lambda a, b: truncated(Fraction(a, nonzero(b)))),
    "mod_int": ("ii", lambda a, b: a - b * truncated(Fraction(a, nonzero(b)))),
    "pmod_int": ("ii", lambda a, b: a % b if b > 0 else a - b * truncated(Fraction(a, nonzero(b)))),
    "bits_and": ("ii", lambda a, b: fits(a & b)),
    "bits_or": ("ii", lambda a, b: a | b),
    "bits_xor": ("ii", lambda a, b: fits(a ^ b)),
    "shift_left": ("inw", lambda a, n, width: fits(wrapped(a << n % width, width))),
    "shift_right_signed": ("inw", lambda a, n, width: a >> n % width),
    "shift_right_unsigned": ("inw", lambda a, n, width: wrapped(a % 2**width >> n % width, width) if n % width else a),
    "bit_count": ("i", lambda a: (a % 2**64).bit_count()),
    "bit_get": ("inw", lambda a, n, width: a >> in_range(n, 0, width - 1) & 1),
    "check_range": ("iLL", in_range),
    "add_float": ("ff", lambda a, b: a + b),
    "sub_float": ("ff", lambda a, b: a - b),
    "mul_float": ("ff", lambda a, b: a * b),
    "div_float": ("ff", lambda a, b: a / nonzero(b)),
    "quotient_float": ("ff", quotient),
    "mod_float": ("ff", lambda a, b: c_float(np.fmod)(a, nonzero(b))),
    "neg_float": ("f", lambda a: -a),
    "abs_float": ("f", abs),
    "sign_float": ("f", lambda a: a if math.isnan(a) else float((a > 0) - (a < 0))),
    "sqrt": ("f", c_float(np.sqrt)),
    "exp": ("f", c_float(np.exp)),
    "ln": ("f", lambda a: None if a <= 0 else c_float(np.log)(a)),
    "log10": ("f", lambda a: None if a <= 0 else c_float(np.log10)(a)),
    "power": ("ff", java_power),
    "log2": ("f", lambda a: None if a <= 0 else c_float(np.log2)(a)),
    "log1p": ("f", lambda a: None if a <= -1 else c_float(np.log1p)(a)),
    "expm1": ("f", c_float(np.expm1)),
    "cbrt": ("f", c_float(np.cbrt)),
    "asin": ("f", c_float(np.arcsin)),
    "acos": ("f", c_float(np.arccos)),
    "atan": ("f", c_float(np.arctan)),
    "sinh": ("f", c_float(np.sinh)),
    "cosh": ("f", c_float(np.cosh)),
    "asinh": ("f", lambda a: area(a, 1)),
    "acosh": ("f", lambda a: area(a, -1) if a >= 1 else math.nan),
    "atanh": ("f", c_float(np.arctanh)),
    "hypot": ("ff", c_float(np.hypot)),
    "rint": ("f", c_float(np.rint)),
    "atan2": ("ff", c_float(np.arctan2)),
    "tanh": ("f", c_float(np.tanh)),
    "mul_rest": ("tt", lambda a, b: float(Fraction(a) * Fraction(b) - Fraction(a * b))),
    "sin": ("f", c_float(np.sin)),
    "cos": ("f", c_float(np.cos)),
    "tan": ("f", c_float(np.tan)),
    "floor_float": ("f", lambda a: finite_whole(a, math.floor)),
    "ceil_float": ("f", lambda a: finite_whole(a, math.ceil)),
    "round_float": ("fr", round_text),
    "float_to_int": ("fLL", lambda a, low, high: in_range(finite_whole(a, math.trunc), low, high)),
    "float_to_decimal": ("fpl", to_decimal),
    "float_to_float32": ("f", c_float(np.float32)),
    "float_to_bool": ("f", lambda a: a != 0),
    "int_to_bool": ("i", lambda a: a != 0),
    "int_to_float": ("i", float),
    "decimal_to_float": ("ip", lambda a, factor: a / factor),
    "scale_up": ("ip", lambda a, factor: fits(a * factor)),
    "scale_down": ("ip", lambda a, factor: half_up(Fraction(a, factor))),
    "scale_down_even": ("ip", lambda a, factor: half_even(Fraction(a, factor))),
    "floor_decimal": ("ip", lambda a, factor: math.floor(Fraction(a, factor))),
    "ceil_decimal": ("ip", lambda a, factor: math.ceil(Fraction(a, factor))),
    "round_decimal": ("ip", lambda a, unit: fits(half_up(Fraction(a, unit)) * unit)),
    "mul_decimal": ("iip", lambda a, b, divisor: fits(half_up(Fraction(a * b, divisor)))),
    "div_decimal": ("iip", lambda a, b, factor: fits(half_up(Fraction(a * factor, nonzero(b))))),
    "year": ("D", lambda d: date(d).year),
    "quarter": ("D", lambda d: (date(d).month + 2) // 3),
    "month": ("D", lambda d: date(d).month),
    "day": ("D", lambda d: date(d).day),
    "dayofweek": ("D", lambda d: date(d).isoweekday() % 7 + 1),
    "weekday": ("D", lambda d: date(d).weekday()),
    "dayofyear": ("D", lambda d: date(d).timetuple().tm_yday),
    "weekofyear": ("D", lambda d: date(d).isocalendar().week),
    "last_day": ("D", lambda d: days(shifted(date(d).replace(day=1), 1)) - 1),
    "hour": ("T", lambda t: moment(t).hour),
    "minute": ("T", lambda t: moment(t).minute),
    "second": ("T", lambda t: moment(t).second),
    "timestamp_to_date": ("T", lambda t: days(moment(t).date())),
    "date_to_timestamp": ("D", lambda d: d * DAY),
    "unix_timestamp": ("T", lambda t: t // 1_000_000),
    "timestamp_seconds": ("i", lambda n: fits(n * 1_000_000)),
    "date_diff_days": ("DD", lambda a, b: (date(a) - date(b)).days),
    "date_add_days": ("Dn", lambda d, n: days(date(d) + dt.timedelta(days=n))),
    "add_months": ("Dm", lambda d, n: days(shifted(date(d), n))),
    "add_months_timestamp": ("Tm", lambda t, n: micros(shifted(moment(t), n))),
    "add_micros": ("ii", lambda t, n: fits(t + n)),
    "trunc_date": ("Du", lambda d, unit: days(start_of(date(d), unit))),
    "trunc_timestamp": ("TU", lambda t, unit: micros(start_of_moment(moment(t), unit))),
}


def skipping(choose: Callable[..., Any], **how: Any) -> Callable[[Any, Any], Any]:
    return lambda a, b: choose([x for x in (a, b) if x is not None], default=None, **how)


def comoment(n: int | None, *totals: float | None) -> float | None:
    """The definition, in exact arithmetic: the total of x * y less the product of the totals by the number of rows."""
    if not n or None in totals:
        return None
    x, x_rest, y, y_rest, p, p_rest, q = (Fraction(one) for one in totals if one is not None)
    return float(p + p_rest + q - (x + x_rest) * (y + y_rest) / n)


def power_moment(n: int | None, *totals: float | None) -> float | None:
    """The definition, in exact arithmetic, of the third or fourth moment from totals of powers."""
    if not n or None in totals:
        return None
    parts = [Fraction(one) for one in totals if one is not None]
    powers = [Fraction(n), *(parts[i] + parts[i + 1] for i in range(0, len(parts), 2))]
    mean, order = powers[1] / n, len(powers) - 1
    return float(sum(math.comb(order, k) * powers[order - k] * (-mean) ** k for k in range(order + 1)))


# The functions of these operations handle None themselves.
OWN: dict[str, Reference] = {
    "null_safe_eq": ("ii", lambda a, b: a == b),
    "only_value": ("ii", lambda a, b: same(a, b)),
    "unless_failed": ("iu", lambda a, b: same(a, a if b == 0 else b"")),
    "unless_counted": ("ib", lambda a, b: same(a, b"" if b else a)),
    "comoment": ("ctztztzz", comoment),
    "third_moment": ("ctztztz", power_moment),
    "fourth_moment": ("ctztztztz", power_moment),
    "is_null": ("i", lambda a: a is None),
    "is_not_null": ("i", lambda a: a is not None),
    "is_true": ("b", lambda a: a is True),
    "disjoint": ("b", lambda a: a is True),
    "is_nan": ("f", lambda a: a is not None and math.isnan(a)),
    "and": ("bb", lambda a, b: False if False in (a, b) else None if None in (a, b) else True),
    "or": ("bb", lambda a, b: True if True in (a, b) else None if None in (a, b) else False),
    **{
        f"try_{name}_int": ("ii", lambda a, b, of=of: None if None in (a, b) or beyond(of(a, b)) else fits(of(a, b)))
        for name, of in {"add": operator.add, "sub": operator.sub, "mul": operator.mul}.items()
    },
    "try_check_range": ("iLL", lambda a, low, high: a if a is not None and low <= a <= high else None),
    "greatest_int": ("ii", skipping(max)),
    "least_int": ("ii", skipping(min)),
    "greatest_float": ("ff", skipping(max, key=order)),
    "least_float": ("ff", skipping(min, key=order)),
}

REFERENCE = STRICT | OWN

EDGES: dict[str, list[Any]] = {
    "i": [0, 1, -1, 2, -7, 10, 2**31 - 1, -(2**31), 2**32, 2**62, 3_037_000_500, GREATEST, -GREATEST],
    "f": [
        *(0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1.005, -2.675, 1e-3, 0.1, 1e15, 1e16 + 2, -9.3e18, 9.2e18),
        *(2.0**63, -(2.0**63), 2.0**62, 1e300, -1e308, 5e-324, 1e22, 123456789.125, 12345678901234567.0),
        *(math.inf, -math.inf, math.nan),
    ],
    "b": [False, True],
    "D": [0, -1, 1, -700_162, 2_900_100, 11_016, 10_956, 19_782, -141_428, 59, -25_509],
    "T": [0, -1, 1, DAY - 1, DAY, -DAY, -DAY - 1, 1_700_000_000_123_456, -60_000_000_000_000_000],
}


def draw(kind: str, source: random.Random) -> Any:
    """A random value of a kind, often an extreme one."""
    if kind in EDGES and source.random() < 0.4:
        return source.choice(EDGES[kind])
    match kind:
        case "i" | "L":
            return source.choice((1, -1)) * source.getrandbits(source.randrange(1, 64))
        case "f":
            if source.random() < 0.5:  # amounts of money, and ties of rounding at every scale
                return round(source.uniform(-1, 1) * 10 ** source.randrange(0, 18), source.randrange(0, 6))
            return struct.unpack("<d", source.randbytes(8))[0]
        case "b":
            return source.random() < 0.5
        case "D":
            return source.randrange(-700_000, 2_900_000)
        case "T":
            return source.randrange(-700_000 * DAY, 2_900_000 * DAY)
        case "p":
            return 10 ** source.randrange(0, 19)
        case "l":
            return 10 ** source.randrange(5, 19) - 1
        case "r":
            return source.randrange(-6, 12)
        case "w":
            return source.choice((32, 64))
        case "c":
            return source.randrange(0, 50)
        case "t":  # totals that are far from the limits of a double
            return round(source.uniform(-1e6, 1e6), source.randrange(0, 12))
        case "z":  # the rest of a rounded total
            return source.uniform(-1e-12, 1e-12)
        case "m" | "n":
            return source.randrange(-300, 300)
        case "u":
            return source.randrange(4)
    return source.randrange(8)


def samples(name: str, count: int) -> list[tuple[Any, ...]]:
    """Samples of the arguments of an operation, the same ones in each run."""
    kinds = REFERENCE[name][0]
    source = random.Random(name)
    rows = [tuple(draw(kind, source) for kind in kinds) for _ in range(count)]
    if all(kind in EDGES for kind in kinds):
        rows += [(a, b) for a in EDGES[kinds[0]] for b in EDGES[kinds[-1]]] if len(kinds) == 2 else []
    nulled = [
        tuple(
            None if kind not in LITERALS and source.random() < 0.5 else value
            for kind, value in zip(kinds, row, strict=True)
        )
        for row in rows[:20]
    ]
    return rows + nulled


def code_of(value: Any) -> int:
    if value is None:
        return NULL
    if isinstance(value, float):
        if math.isnan(value):
            return 0x7FF8000000000000
        return struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return int(value)


def expected(name: str, row: tuple[Any, ...]) -> int | None:
    """The code of the result by the reference; None for an error."""
    if name in STRICT and None in row:
        return NULL
    try:
        return code_of(REFERENCE[name][1](*row))
    except Fault:
        return None


def outcome(name: str, row: tuple[Any, ...]) -> int | None:
    """The code of the result by the operation itself; None for an error."""
    op = OPS[name]
    assert op.kernel is not None
    codes = [code_of(value) for value in row]
    if not op.fallible:
        return int(getattr(scalar, op.kernel)(*codes))
    status = np.zeros(1, np.int64)
    code = int(getattr(scalar, op.kernel)(*codes, status.ctypes.data))
    assert status[0] == 0 or (code == NULL and int(status[0]) in scalar.ERRORS)
    return None if status[0] else code


def all_outcomes(count: int) -> dict[str, list[int | None]]:
    return {name: [outcome(name, row) for row in samples(name, count)] for name in REFERENCE}


if __name__ == "__main__":
    print(json.dumps(all_outcomes(60)))
