"""Computes exact arithmetic beyond 64 bits, and float functions, in Python.

``kernel.compiler.arithmetic`` writes the machine code of these functions.
"""

from __future__ import annotations

import math

import numpy as np

from freshviews.types.sqltype import NULL


def scaled_quotient(a: int, b: int, divisor: int) -> int:
    """``a * b / divisor``, exact, then rounded HALF_UP; NULL if it does not fit.

    None of the three is NULL, and ``divisor`` is not 0.
    """
    magnitude = (abs(a * b) + abs(divisor) // 2) // abs(divisor)
    if magnitude >= 2**63:
        return NULL
    return -magnitude if (a < 0) ^ (b < 0) ^ (divisor < 0) else magnitude


def exact_ratio(a: int, factor: int) -> float:
    """The double nearest to ``a / factor``; ``factor`` is a power of ten up to 10**18, ``a`` is not NULL."""
    return a / factor


def scaled_floor(x: float, factor: int) -> tuple[int, int]:
    """``x * factor``, exact: its floor, and its fraction in units of 2**-62 rounded down.

    ``x`` is positive, ``factor`` a power of ten up to 10**18, the product at least 2**46 and below 2**63.
    """
    numerator, denominator = x.as_integer_ratio()
    whole, rest = divmod(numerator * factor, denominator)
    return whole, rest * 2**62 // denominator


def float_power(x: float, y: float) -> float:
    """C's pow, which is infinite or NaN where Python raises."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        return math.inf if x == 0 else math.nan


def float_exp(x: float) -> float:
    """e to the power x, infinite where Python raises."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def nearest_float32(x: float) -> float:
    """The float32 nearest to x, as a double; infinite past its range."""
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def float_remainder(x: float, y: float) -> float:
    """C's fmod of a finite x and a nonzero y; it has the sign of x."""
    return math.fmod(x, y)
