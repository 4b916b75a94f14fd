"""Computes the values of aggregates, such as AVG, from the counts and sums in the payload of a group."""

from __future__ import annotations

from freshviews.kernel.memory.mem import f64, jit, load, store
from freshviews.kernel.memory.outside import outside
from freshviews.kernel.rings.narrow import narrow_rest, narrow_value
from freshviews.kernel.scalar.checked import scaled_quotient
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.operations import code
from freshviews.kernel.scalar.payload import AVERAGE_OVERFLOW, BITS_OVERFLOW
from freshviews.kernel.scalar.real import real_rest, real_value
from freshviews.types.sqltype import NULL


@jit
def avg_int(total: int, nonnull: int) -> int:
    """AVG of integers, a DOUBLE: the exact total as a double, divided by the count; or NULL."""
    return NULL if nonnull == 0 else code(float(total) / float(nonnull))


@jit
def avg_decimal(total: int, nonnull: int, multiplier: int, status: int) -> int:
    """AVG of decimals: total * multiplier / nonnull, exact, then rounded HALF_UP; or NULL.

    ``multiplier`` is the power of ten by which the scale of the average exceeds the argument's. If the average does not
    fit int64, AVERAGE_OVERFLOW is stored at ``status``.
    """
    if nonnull == 0:
        return NULL
    average = scaled_quotient(total, multiplier, nonnull)
    return fail(status, AVERAGE_OVERFLOW) if average == NULL else average


INTEGER, SUM, SUM_REST, AVERAGE, NARROW_SUM, NARROW_REST, NARROW_AVERAGE = range(7)
REALS = ("sum", "sum_rest", "avg")
"""Functions of sums of doubles: from SUM on of reals, from NARROW_SUM on of narrow sums."""


@jit
def double_result(function: int, address: int, nonnull: int) -> int:
    """A result of an exact sum of doubles, or NULL: SUM, rounded once; the exact sum minus that; or AVG, SUM divided by
    the count."""
    if nonnull == 0:
        return NULL
    if function == SUM_REST:
        return real_rest(address)
    if function == NARROW_REST:
        return narrow_rest(address)
    total = real_value(address) if function <= AVERAGE else narrow_value(address)
    return code(f64(total) / float(nonnull)) if function in (AVERAGE, NARROW_AVERAGE) else total


@outside
def sum_results(target: int, payload: int, functions: int, n: int) -> None:
    """Compute ``n`` counts, sums and means. ``functions`` has three words per result: its function, the word of the
    payload where its sum begins, and the word that counts the values. A count is an integer with -1 as last word."""
    for i in range(n):
        function = load(functions, 3 * i)
        at = payload + 8 * load(functions, 3 * i + 1)
        number = load(functions, 3 * i + 2)
        nonnull = load(payload, number) if number >= 0 else 1
        if function == INTEGER:
            store(target, i, value_result(load(at, 0), nonnull))
        else:
            store(target, i, double_result(function, at, nonnull))


@jit
def value_result(value: int, number: int) -> int:
    """SUM of integers or decimals, MIN, MAX and other scans: the value, or NULL if the number of arguments is 0."""
    return NULL if number == 0 else value


@jit
def bits_result(value: int, distinct: int, status: int) -> int:
    """BIT_AND, as ``value_result``; BITS_OVERFLOW is stored at ``status`` if it is the least int64.

    Only a value that is read is checked, because it may occur temporarily within a batch.
    """
    if distinct == 0:
        return NULL
    return fail(status, BITS_OVERFLOW) if value == NULL else value
