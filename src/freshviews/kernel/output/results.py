"""Computes the values of aggregates, as codes, from the payload of a group.

``nonnull`` is the number of the group's rows whose argument is not NULL. If it is 0, all aggregates except COUNT are
NULL.
"""

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
def sum_result(total: int, nonnull: int) -> int:
    """SUM of integers or decimals: the total, or NULL."""
    return NULL if nonnull == 0 else total


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


@jit
def sum_real(address: int, nonnull: int) -> int:
    """SUM of doubles, the exact sum rounded once; or NULL."""
    return NULL if nonnull == 0 else real_value(address)


@jit
def rest_real(address: int, nonnull: int) -> int:
    """The exact sum of doubles minus SUM, rounded once; or NULL."""
    return NULL if nonnull == 0 else real_rest(address)


@jit
def avg_real(address: int, nonnull: int) -> int:
    """AVG of doubles, a DOUBLE: the exact sum rounded once, divided by the count; or NULL."""
    return NULL if nonnull == 0 else code(f64(real_value(address)) / float(nonnull))


@jit
def sum_narrow(address: int, nonnull: int) -> int:
    """As ``sum_real``, for a narrow sum."""
    return NULL if nonnull == 0 else narrow_value(address)


@jit
def rest_narrow(address: int, nonnull: int) -> int:
    """As ``rest_real``, for a narrow sum."""
    return NULL if nonnull == 0 else narrow_rest(address)


@jit
def avg_narrow(address: int, nonnull: int) -> int:
    """As ``avg_real``, for a narrow sum."""
    return NULL if nonnull == 0 else code(f64(narrow_value(address)) / float(nonnull))


INTEGER = 0
SUM = 1
SUM_REST = 2
AVERAGE = 3
NARROW_SUM = 4
NARROW_REST = 5
NARROW_AVERAGE = 6
REALS = ("sum", "sum_rest", "avg")
"""Functions of sums of doubles: from SUM on of reals, from NARROW_SUM on of narrow sums."""


@outside
def sum_results(target: int, payload: int, functions: int, n: int) -> None:
    """Compute ``n`` counts, sums and means. ``functions`` has three words per result: its function, the word of the
    payload where its sum begins, and the word that counts the values. A count is an integer with -1 as last word."""
    for i in range(n):
        function = load(functions, 3 * i)
        place = load(functions, 3 * i + 1)
        number = load(functions, 3 * i + 2)
        if function == INTEGER:
            store(target, i, NULL if number >= 0 and load(payload, number) == 0 else load(payload, place))
        elif function == SUM:
            store(target, i, sum_real(payload + 8 * place, load(payload, number)))
        elif function == SUM_REST:
            store(target, i, rest_real(payload + 8 * place, load(payload, number)))
        elif function == AVERAGE:
            store(target, i, avg_real(payload + 8 * place, load(payload, number)))
        elif function == NARROW_SUM:
            store(target, i, sum_narrow(payload + 8 * place, load(payload, number)))
        elif function == NARROW_REST:
            store(target, i, rest_narrow(payload + 8 * place, load(payload, number)))
        else:
            store(target, i, avg_narrow(payload + 8 * place, load(payload, number)))


@jit
def scan_result(value: int, distinct: int) -> int:
    """MIN, MAX and other scans: the value, or NULL if the number of distinct arguments is 0."""
    return NULL if distinct == 0 else value


@jit
def bits_result(value: int, distinct: int, status: int) -> int:
    """BIT_AND, as ``scan_result``; BITS_OVERFLOW is stored at ``status`` if it is the least int64.

    Only a value that is read is checked, because it may occur temporarily within a batch.
    """
    if distinct == 0:
        return NULL
    return fail(status, BITS_OVERFLOW) if value == NULL else value
