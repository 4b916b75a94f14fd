"""How a compiled operation says that it has no answer for a row."""

from __future__ import annotations

from types import MappingProxyType

from freshviews.kernel.memory.mem import jit, load, store
from freshviews.types.sqltype import NULL

OVERFLOW = 1
DIVISION_BY_ZERO = 2
RANGE = 3
DATE_RANGE = 4
TWO_VALUES = 5

ERRORS = MappingProxyType(
    {
        OVERFLOW: "overflow: the result does not fit 64 bits",
        DIVISION_BY_ZERO: "division by zero; nullif(divisor, 0) gives NULL instead",
        RANGE: "overflow: the value does not fit the type it is converted to",
        DATE_RANGE: "overflow: the result is outside the dates and timestamps that can be stored",
        TWO_VALUES: "two values where there may be one",
    }
)
"""What the word at ``status`` says, by the key stored there; 0 there is success."""


@jit
def fail(status: int, error: int) -> int:
    """Store the error unless one is there already; returns NULL."""
    if load(status, 0) == 0:
        store(status, 0, error)
    return NULL
