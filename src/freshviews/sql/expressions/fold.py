"""The compiled operations over constants, so that ``DATE '2026-01-01' - INTERVAL '90' DAY`` is a literal.

Host operations compute their own constants (``Op.host``). What is not listed here stays a call over
literals, with the same value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from freshviews.types import NULL, RESERVED, NotHeldError
from freshviews.types.calendar import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    days_in_month,
)

_LOW, _HIGH = -(2**63) + 1, 2**63 - 1


def _fits(value: int, low: int = _LOW, high: int = _HIGH) -> int:
    if value == NULL and low <= _LOW:
        raise NotHeldError(RESERVED)
    if not low <= value <= high:
        raise ValueError(f"{value} is outside {low} to {high}")
    return value


def _divided(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _positive_rest(a: int, b: int) -> int:
    rest = a - b * _divided(a, b)
    return rest + b if rest < 0 < b else rest


def _extreme(which: Callable[[int, int], int], a: int | None, b: int | None) -> int | None:
    """The greater or the lesser one; None is skipped."""
    return (b if a is None else a) if a is None or b is None else which(a, b)


def _whole(round_: Callable[[float], int], x: float) -> float:
    return round_(x) if math.isfinite(x) else x


def _half_up(a: int, b: int) -> int:
    """a / b rounded HALF_UP, away from zero at the half."""
    if b == 0:
        raise ValueError("division by zero")
    quotient = (2 * abs(a) + abs(b)) // (2 * abs(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def _float_divided(a: float, b: float) -> float:
    if b == 0:
        raise ValueError("division by zero")
    return a / b


def _truncated(x: float, low: int, high: int) -> int:
    if math.isnan(x) or math.isinf(x):
        raise ValueError(f"{x} is not an integer")
    return _fits(int(x), low, high)


def _float_to_decimal(x: float, factor: int, limit: int) -> int:
    if math.isnan(x) or math.isinf(x):
        raise ValueError(f"{x} is not a DECIMAL")
    return _fits(int((Decimal(repr(x)) * factor).quantize(Decimal(1), ROUND_HALF_UP)), -limit, limit)


def _plus_months(day: int, months: int) -> int:
    year, month, date = civil_from_days(day)
    ahead = year * 12 + month - 1 + months
    year, month = ahead // 12, ahead % 12 + 1
    return days_from_civil(year, month, min(date, days_in_month(year, month)))


def _plus_months_timestamp(micros: int, months: int) -> int:
    days, rest = divmod(micros, MICROS_PER_DAY)
    return _plus_months(days, months) * MICROS_PER_DAY + rest


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _ordered(x: float) -> tuple[bool, float]:
    """NaN is the greatest and equal to itself."""
    return (True, 0.0) if math.isnan(x) else (False, x)


FOLDS: Mapping[str, Callable[..., Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq_float": lambda a, b: _ordered(a) == _ordered(b),
    "ne_float": lambda a, b: _ordered(a) != _ordered(b),
    "lt_float": lambda a, b: _ordered(a) < _ordered(b),
    "le_float": lambda a, b: _ordered(a) <= _ordered(b),
    "gt_float": lambda a, b: _ordered(a) > _ordered(b),
    "ge_float": lambda a, b: _ordered(a) >= _ordered(b),
    "null_safe_eq": lambda a, b: a == b,
    "is_null": lambda a: a is None,
    "is_not_null": lambda a: a is not None,
    "is_true": lambda a: a is True,
    "and": _and,
    "or": _or,
    "not": lambda a: not a,
    "add_int": lambda a, b: _fits(a + b),
    "sub_int": lambda a, b: _fits(a - b),
    "mul_int": lambda a, b: _fits(a * b),
    "neg_int": lambda a: _fits(-a),
    "abs_int": lambda a: _fits(abs(a)),
    "div_int": lambda a, b: _fits(_divided(a, b)),
    "mod_int": lambda a, b: a - b * _divided(a, b),
    "pmod_int": _positive_rest,
    "sign_int": lambda a: (a > 0) - (a < 0),
    "bits_and": lambda a, b: _fits(a & b),
    "bits_or": lambda a, b: a | b,
    "bits_xor": lambda a, b: _fits(a ^ b),
    "greatest_int": lambda a, b: _extreme(max, a, b),
    "least_int": lambda a, b: _extreme(min, a, b),
    "check_range": _fits,
    "scale_up": lambda a, factor: _fits(a * factor),
    "scale_down": _half_up,
    "mul_decimal": lambda a, b, divisor: _fits(_half_up(a * b, divisor)),
    "div_decimal": lambda a, b, multiplier: _fits(_half_up(a * multiplier, b)),
    "add_float": lambda a, b: a + b,
    "sub_float": lambda a, b: a - b,
    "mul_float": lambda a, b: a * b,
    "neg_float": lambda a: -a,
    "abs_float": abs,
    "div_float": _float_divided,
    "is_nan": lambda a: a is not None and math.isnan(a),
    "floor_float": lambda x: _truncated(_whole(math.floor, x), _LOW, _HIGH),
    "ceil_float": lambda x: _truncated(_whole(math.ceil, x), _LOW, _HIGH),
    "floor_decimal": lambda a, factor: a // factor,
    "ceil_decimal": lambda a, factor: -(-a // factor),
    "int_to_float": float,
    "decimal_to_float": lambda a, factor: float(Decimal(a) / factor),
    "float_to_int": _truncated,
    "float_to_decimal": _float_to_decimal,
    "float_to_float32": lambda x: struct.unpack("f", struct.pack("f", x))[0],
    "int_to_bool": bool,
    "float_to_bool": bool,
    "date_to_timestamp": lambda d: _fits(d * MICROS_PER_DAY),
    "timestamp_to_date": lambda t: t // MICROS_PER_DAY,
    "date_add_days": lambda d, n: d + n,
    "date_diff_days": lambda a, b: a - b,
    "add_micros": lambda t, n: _fits(t + n),
    "add_months": _plus_months,
    "add_months_timestamp": _plus_months_timestamp,
    "unix_timestamp": lambda t: t // MICROS_PER_SECOND,
    "timestamp_seconds": lambda n: _fits(n * MICROS_PER_SECOND),
    "hour": lambda t: t // (3600 * MICROS_PER_SECOND) % 24,
    "minute": lambda t: t // (60 * MICROS_PER_SECOND) % 60,
    "second": lambda t: t // MICROS_PER_SECOND % 60,
    "year": lambda d: civil_from_days(d)[0],
    "month": lambda d: civil_from_days(d)[1],
    "day": lambda d: civil_from_days(d)[2],
}
"""Operation to its value. NULL arguments reach only those that are not strict."""
