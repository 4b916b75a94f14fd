"""Does the arithmetic of rings that users define.

A step is one operation of a formula, on words or doubles (``freshviews.ring.formula``).
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import add_overflows, add_wrapping, inlined, jit, mul_overflows, mul_wrapping
from freshviews.kernel.scalar.checked import float_power
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import RING_DIVISION, RING_NUMBER, RING_OVERFLOW
from freshviews.types.sqltype import NULL


@inlined
def step_word(a: int, status: int) -> int:
    """An intermediate word: it may be the least int64, which would read as NULL."""
    if a == NULL:
        fail(status, RING_OVERFLOW)
    return a


@inlined
def step_add(a: int, b: int, status: int) -> int:
    total = add_wrapping(a, b)
    if add_overflows(a, b) != 0 or total == NULL:
        fail(status, RING_OVERFLOW)
    return total


@inlined
def step_mul(a: int, b: int, status: int) -> int:
    product = mul_wrapping(a, b)
    if mul_overflows(a, b) != 0 or product == NULL:
        fail(status, RING_OVERFLOW)
    return product


@inlined
def step_sub(a: int, b: int, status: int) -> int:
    return step_add(a, step_mul(b, -1, status), status)


@inlined
def step_abs(a: int, status: int) -> int:
    return step_mul(a, -1, status) if a < 0 else a


@inlined
def step_quotient(a: int, b: int, status: int) -> int:
    """The quotient, rounded down."""
    if b == 0:
        fail(status, RING_DIVISION)
        return 0
    if b == -1:
        return step_mul(a, -1, status)
    return a // b


@inlined
def step_rest(a: int, b: int, status: int) -> int:
    """The remainder of the quotient rounded down, with the sign of ``b``."""
    if b == 0:
        fail(status, RING_DIVISION)
        return 0
    return 0 if b == -1 else a % b


@inlined
def step_ratio(x: float, y: float, status: int) -> float:
    if y == 0.0:
        fail(status, RING_DIVISION)
        return 0.0
    return x / y


@jit
def step_power(x: float, y: float, status: int) -> float:
    """x to the power of y; an error if that is not a finite double."""
    found = float_power(x, y)
    if found - found != 0.0:
        fail(status, RING_NUMBER)
        return 0.0
    return found


@inlined
def step_trunc(x: float, status: int) -> int:
    """A double without its fraction; NaN fails both comparisons."""
    if -9223372036854775808.0 < x < 9223372036854775808.0:
        return int(x)
    fail(status, RING_NUMBER)
    return 0


@inlined
def step_floor(x: float, status: int) -> int:
    down = step_trunc(x, status)
    # From 2^52 on a double has no fraction, so no subtraction can overflow.
    return down - 1 if float(down) > x else down


@inlined
def step_ceil(x: float, status: int) -> int:
    up = step_trunc(x, status)
    return up + 1 if float(up) < x else up


@inlined
def step_round(x: float, status: int) -> int:
    """The nearest integer; of two equally near ones, the even one."""
    down = step_floor(x, status)
    rest = x - float(down)
    if rest > 0.5 or (rest == 0.5 and down & 1 == 1):
        return down + 1
    return down
