"""Adds and multiplies integer payloads modulo 2^64. The first overflow is recorded in the word at ``status``."""

from __future__ import annotations

from types import MappingProxyType

from freshviews.kernel.memory.mem import add_overflows, add_wrapping, inlined, mul_overflows, mul_wrapping
from freshviews.kernel.scalar.failure import fail
from freshviews.types.sqltype import NULL

SUM_OVERFLOW = 100
AVERAGE_OVERFLOW = 101
BITS_OVERFLOW = 102
NO_FIXED_POINT = 103
RING_OVERFLOW = 104
RING_DIVISION = 105
RING_NUMBER = 106
TOO_NARROW = 107
"""A narrow sum of doubles cannot take an addend; the engine then widens the view (``rings.narrow``), unseen by
users."""
RING_ERRORS = (RING_OVERFLOW, RING_DIVISION, RING_NUMBER)
"""Errors of functions of users' rings."""

PAYLOAD_ERRORS = MappingProxyType(
    {
        SUM_OVERFLOW: "overflow: a count, a sum or a product of multiplicities does not fit 64 bits, or is "
        f"{NULL}, which stands for NULL",
        AVERAGE_OVERFLOW: "overflow: the unscaled average of decimals does not fit 64 bits",
        NO_FIXED_POINT: (
            "a number of COFACTOR, COVAR_MATRIX or CORR_MATRIX is NaN, infinite, or 2^63 or more in magnitude; "
            "FILTER (WHERE ...) leaves its row out"
        ),
        BITS_OVERFLOW: f"overflow: BIT_AND of these values is {NULL}, whose 64-bit code stands for NULL",
        RING_OVERFLOW: "overflow: a step of a function of a registered ring does not fit 64 bits",
        RING_DIVISION: "a function of a registered ring divides by zero; FILTER (WHERE ...) leaves its row out",
        RING_NUMBER: (
            "a function of a registered ring converts a double that is not finite, or too large; "
            "FILTER (WHERE ...) leaves its row out"
        ),
    }
)
"""The meaning of the word at ``status``, by its value; the keys differ from those of ``failure.ERRORS``."""


@inlined
def plus(a: int, b: int, status: int) -> int:
    """a + b modulo 2^64; SUM_OVERFLOW if that is not a + b, or is the least int64.

    Payloads are integers modulo 2^64. The word at ``status`` keeps the first overflow, and the arithmetic continues.
    The caller checks the word once, after its batch. As integers modulo 2^64 are a ring, the negated batch undoes the
    batch even after an overflow. A sum that is the least int64 counts as an overflow too: as a result it would mean
    NULL.
    """
    total = add_wrapping(a, b)
    if add_overflows(a, b) != 0 or total == NULL:
        fail(status, SUM_OVERFLOW)
    return total


@inlined
def times(a: int, b: int, status: int) -> int:
    """a * b modulo 2^64; SUM_OVERFLOW if that is not a * b."""
    if mul_overflows(a, b) != 0:
        fail(status, SUM_OVERFLOW)
    return mul_wrapping(a, b)
