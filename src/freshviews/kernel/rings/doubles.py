"""Adds one row to many exact sums of doubles. One loop computes the values to add, a second loop adds them."""

from __future__ import annotations

from freshviews.kernel.memory.mem import load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.narrow import narrow_add_double, narrow_add_scaled
from freshviews.kernel.scalar.operations import mul_float, mul_rest
from freshviews.kernel.scalar.real import real_add_double, real_add_scaled
from freshviews.types.sqltype import NULL

VALUE = 0
PRODUCT = 1
REST = 2  # the exact product minus the nearest double
VALUE_WORDS = 4
ADDITION_WORDS = 2


@outside
def values_of_doubles(target: int, codes: int, table: int, n: int) -> None:
    """Write ``n`` values, each a code, the product of two codes or its rest; 0 if that, or a third code, is NULL.

    ``table``: per value its kind and the positions of the three codes.
    """
    for i in range(n):
        kind = load(table, VALUE_WORDS * i)
        value = load(codes, load(table, VALUE_WORDS * i + 1))
        other = load(codes, load(table, VALUE_WORDS * i + 2))
        if kind == PRODUCT:
            value = mul_float(value, other)
        elif kind == REST:
            value = mul_rest(value, other)
        other = load(codes, load(table, VALUE_WORDS * i + 3))
        store(target, i, 0 if value == NULL or other == NULL else value)


@outside
def reals_add_doubles(target: int, values: int, table: int, n: int, k: int) -> None:
    """Add ``k`` times ``n`` doubles to sums of a payload."""
    for i in range(n):
        at = target + 8 * load(table, ADDITION_WORDS * i)
        real_add_double(at, load(values, load(table, ADDITION_WORDS * i + 1)), k)


@outside
def reals_add_scaled(target: int, source: int, table: int, n: int, k: int) -> None:
    """Add ``k`` times ``n`` sums of a row to sums of a payload."""
    for i in range(n):
        at = target + 8 * load(table, ADDITION_WORDS * i)
        real_add_scaled(at, source + 8 * load(table, ADDITION_WORDS * i + 1), k)


@outside
def narrows_add_doubles(target: int, values: int, table: int, n: int, k: int, status: int) -> None:
    """As ``reals_add_doubles``, for narrow sums."""
    for i in range(n):
        at = target + 8 * load(table, ADDITION_WORDS * i)
        narrow_add_double(at, load(values, load(table, ADDITION_WORDS * i + 1)), k, status)


@outside
def narrows_add_scaled(target: int, source: int, table: int, n: int, k: int, status: int) -> None:
    """As ``reals_add_scaled``, for narrow sums."""
    for i in range(n):
        at = target + 8 * load(table, ADDITION_WORDS * i)
        narrow_add_scaled(at, source + 8 * load(table, ADDITION_WORDS * i + 1), k, status)
