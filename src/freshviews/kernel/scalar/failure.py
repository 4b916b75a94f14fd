"""Records the first error of compiled operations in the word at ``status``."""

from __future__ import annotations

from types import MappingProxyType

from freshviews.kernel.memory.mem import jit, load, store
from freshviews.types.sqltype import NULL

OVERFLOW = 1
DIVISION_BY_ZERO = 2
RANGE = 3
DATE_RANGE = 4
TWO_VALUES = 5
LEAST = 6
COUNTED = 7
COMPUTED = 1000
"""The first number for errors of expressions that are computed before compiled code runs."""

ERRORS = MappingProxyType(
    {
        OVERFLOW: "overflow: the result does not fit 64 bits",
        DIVISION_BY_ZERO: "division by zero; nullif(divisor, 0) gives NULL instead",
        RANGE: "overflow: the value does not fit the type it is converted to",
        DATE_RANGE: "overflow: the result is outside the dates and timestamps that can be stored",
        LEAST: f"overflow: the result is {NULL}, whose 64-bit code stands for NULL",
        TWO_VALUES: "two values where one is allowed",
        COUNTED: "an expression fails for a row of the group; TRY_CAST and nullif(divisor, 0) give NULL instead",
    }
)
"""The meaning of the word at ``status``, by its value; 0 is success."""


@jit
def fail(status: int, error: int) -> int:
    """Store an error unless one is stored already; returns NULL."""
    if load(status, 0) == 0:
        store(status, 0, error)
    return NULL
