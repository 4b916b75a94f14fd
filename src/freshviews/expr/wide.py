"""Computes with the unscaled values of wide decimals, which are unbounded integers of Python.

Each function computes the same as the compiled operation with its name (``freshviews.expr.ops``), from the same
arguments. As in Spark, a quotient is first rounded to 38 digits after the point.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from freshviews.types import NotHeldError

PART_BITS = 32
"""Bits of a part of a value whose sums are added up (``wide_part``)."""

PARTS = 4
"""Parts of a value of 38 digits."""

GREATEST_PRECISION = 38
MOST = 10**GREATEST_PRECISION - 1
_QUOTIENT_SCALE = 38
_BY_ZERO = "division by zero; nullif(divisor, 0) gives NULL instead"  # as in kernel.scalar.failure, without its imports


def _rounded(value: int, divisor: int) -> int:
    """value / divisor, HALF_UP."""
    if divisor < 0:
        value, divisor = -value, -divisor
    whole, rest = divmod(abs(value), divisor)
    whole += 2 * rest >= divisor
    return -whole if value < 0 else whole


def _rounded_even(value: int, divisor: int) -> int:
    whole, rest = divmod(value, divisor)
    return whole + (2 * rest > divisor or (2 * rest == divisor and whole % 2 == 1))


def _whole(a: int, b: int) -> int:
    """a / b, truncated towards zero."""
    if b == 0:
        raise ValueError(_BY_ZERO)
    whole = abs(a) // abs(b)
    return -whole if (a < 0) != (b < 0) else whole


def _rest(a: int, b: int) -> int:
    return a - b * _whole(a, b)


def _positive_rest(a: int, b: int) -> int:
    rest = _rest(a, b)
    return _rest(rest + b, b) if rest < 0 else rest


def _product(a: int, b: int, divisor: int) -> int:
    return _rounded(a * b, divisor)


def quotient_of_decimals(a: int, a_scale: int, b: int, b_scale: int, scale: int) -> int:
    """a / b as Spark computes it: HALF_UP at 38 digits after the point, then at ``scale``."""
    if b == 0:
        raise ValueError(_BY_ZERO)
    up = _QUOTIENT_SCALE + b_scale - a_scale
    found = _rounded(a * 10 ** max(up, 0), b * 10 ** max(-up, 0))
    return _rounded(found, 10 ** (_QUOTIENT_SCALE - scale))


def _in_range(value: int, low: int, high: int) -> int:
    if low <= value <= high:
        return value
    if high == MOST:
        raise ValueError(f"overflow: the unscaled value {value} has more than {GREATEST_PRECISION} digits")
    raise ValueError(f"overflow: the unscaled value {value} is outside {low} to {high}")


def _of_float(value: float, factor: int, limit: int) -> int:
    if value - value != 0:
        raise ValueError(f"{value} is not a decimal")
    exact = Decimal(repr(value)).as_integer_ratio()
    return _in_range(_rounded(exact[0] * factor, exact[1]), -limit, limit)


def _greatest(a: int | None, b: int | None) -> int | None:
    return max((one for one in (a, b) if one is not None), default=None)


def _least(a: int | None, b: int | None) -> int | None:
    return min((one for one in (a, b) if one is not None), default=None)


TWINS: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {
        "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
        "add_int": operator.add, "sub_int": operator.sub, "mul_int": operator.mul,
        "neg_int": operator.neg, "abs_int": abs, "sign_int": lambda x: (x > 0) - (x < 0),
        "div_int": _whole, "mod_int": _rest, "pmod_int": _positive_rest,
        "scale_up": operator.mul, "scale_down": _rounded, "scale_down_even": _rounded_even,
        "mul_decimal": _product,
        "floor_decimal": operator.floordiv, "ceil_decimal": lambda x, factor: -(-x // factor),
        "check_range": _in_range, "decimal_to_float": operator.truediv, "int_to_bool": bool,
        "float_to_decimal": _of_float,
        "greatest_int": _greatest, "least_int": _least,
    }
)  # fmt: skip
"""The twins by the names of the compiled operations."""


def word_of(value: int) -> int:
    """The value, if 64 bits hold it."""
    if abs(value) < 2**63:
        return value
    raise NotHeldError(f"the unscaled value {value} does not fit the 64 bits in which the expression is computed")


def same(value: int) -> int:
    """The value itself, under another type."""
    return value


def part(value: int, number: int) -> int:
    """A part of a value, from the lowest bits on; the last one has the sign."""
    value >>= PART_BITS * number
    return value if number == PARTS - 1 else value & (1 << PART_BITS) - 1


def total(*sums: int) -> int:
    """The sum of values, from the sums of their parts."""
    return sum(one << PART_BITS * number for number, one in enumerate(sums))
