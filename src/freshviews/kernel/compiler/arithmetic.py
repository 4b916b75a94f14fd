"""Writes the machine code of ``kernel.scalar.checked``: arithmetic in 128 bits, and float functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from freshviews.kernel.memory.mem import bits, f64, inlined, mul_high
from freshviews.kernel.scalar import checked
from freshviews.types.sqltype import NULL

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THIRTY_TWO = np.uint64(32)
_SIXTY_FOUR = np.uint64(64)
_LOW_HALF = np.uint64(2**32 - 1)
_BASE = np.uint64(2**32)
_SIGN = np.uint64(2**63)


def _leading_zeros_body(typing_context: Any, a: Any) -> Any:

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), lower


_leading_zeros: Any = intrinsic(_leading_zeros_body)
"""Count of leading zero bits of a uint64 that is not 0."""


@inlined
def _product_high(a: Any, b: Any) -> Any:
    """The high word of the product of two uint64."""
    return np.uint64(mul_high(a, b))


@inlined
def _magnitude(a: Any) -> Any:
    """The absolute value as a uint64."""
    return np.uint64(-a) if a < 0 else np.uint64(a)


@inlined
def _divide(high: Any, low: Any, divisor: Any) -> Any:
    """Quotient and remainder of ``high * 2**64 + low`` by ``divisor``, for ``high < divisor``.

    Knuth's algorithm D with two digits of 32 bits, as in Hacker's Delight (divlu).
    """
    if high == _ZERO:
        return low // divisor, low % divisor
    shift = _leading_zeros(divisor)
    scaled = divisor << shift
    first = scaled >> _THIRTY_TWO
    second = scaled & _LOW_HALF
    upper = high << shift
    if shift > _ZERO:
        upper |= low >> (_SIXTY_FOUR - shift)
    lower = low << shift
    quotient = _ZERO
    for digit in (lower >> _THIRTY_TWO, lower & _LOW_HALF):
        guess = upper // first
        rest = upper - guess * first
        while guess >= _BASE or guess * second > ((rest << _THIRTY_TWO) | digit):
            guess -= _ONE
            rest += first
            if rest >= _BASE:
                break
        upper = ((upper << _THIRTY_TWO) | digit) - guess * scaled
        quotient = (quotient << _THIRTY_TWO) | guess
    return quotient, upper >> shift


@overload(checked.scaled_quotient)
def _scaled_quotient(a: Any, b: Any, divisor: Any) -> Callable[..., Any]:
    def compiled(a: Any, b: Any, divisor: Any) -> Any:
        x, y, d = _magnitude(a), _magnitude(b), _magnitude(divisor)
        high, low = _product_high(x, y), x * y
        half = d >> _ONE
        low += half
        if low < half:
            high += _ONE
        if high >= d:
            return NULL
        quotient = _divide(high, low, d)[0]
        if quotient >= _SIGN:
            return NULL
        return -np.int64(quotient) if (a < 0) ^ (b < 0) ^ (divisor < 0) else np.int64(quotient)

    return compiled


@overload(checked.exact_ratio)
def _exact_ratio(a: Any, factor: Any) -> Callable[..., Any]:
    def compiled(a: Any, factor: Any) -> Any:
        if -(2**53) <= a <= 2**53:
            return float(a) / float(factor)  # both exact, so rounded once
        n, d = _magnitude(a), np.uint64(factor)
        whole = n // d
        fraction, rest = _divide(n % d, _ZERO, d)
        if whole == _ZERO:  # a / factor > 2**-7, so that the fraction keeps 57 bits
            word, exponent = fraction, -64
        else:
            shift = _leading_zeros(whole)
            word, exponent = whole << shift, -np.int64(shift)  # type: ignore[assignment]
            if shift > _ZERO:
                word |= fraction >> (_SIXTY_FOUR - shift)
            if (fraction << shift) != _ZERO:
                word |= _ONE
        if rest != _ZERO:
            word |= _ONE  # a bit behind the rounding bit: not a tie
        ratio: Any = float(word) * f64((exponent + 1023) << 52)
        return -ratio if a < 0 else ratio

    return compiled


@overload(checked.scaled_floor)
def _scaled_floor(x: Any, factor: Any) -> Callable[..., Any]:
    def compiled(x: Any, factor: Any) -> Any:
        m, f = np.uint64((bits(x) & (2**52 - 1)) | 2**52), np.uint64(factor)
        shift = 1075 - (bits(x) >> 52)  # x = m / 2**shift
        if shift <= 0:
            return np.int64((m * f) << np.uint64(-shift)), np.int64(0)
        # The product is at least 2**46, m * f less than 2**113: shift is at most 67.
        high, low = _product_high(m, f), m * f
        if shift == 64:
            return np.int64(high), np.int64(low >> _TWO)
        if shift > 64:
            right, left = np.uint64(shift - 64), np.uint64(128 - shift)
            return np.int64(high >> right), np.int64(((high << left) | (low >> right)) >> _TWO)
        right, left = np.uint64(shift), np.uint64(64 - shift)
        return np.int64((low >> right) | (high << left)), np.int64((low << left) >> _TWO)

    return compiled


overload(checked.float_power)(lambda x, y: lambda x, y: math.pow(x, y))
overload(checked.float_exp)(lambda x: lambda x: math.exp(x))
overload(checked.nearest_float32)(lambda x: lambda x: float(np.float32(x)))
overload(checked.float_remainder)(lambda x, y: lambda x, y: np.fmod(x, y))
