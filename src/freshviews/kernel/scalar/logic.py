"""The compiled comparisons and logic over codes, whose results are 1, 0 or NULL (``freshviews.expr.ops``)."""

from __future__ import annotations

from freshviews.kernel.memory.mem import f64, inlined, jit
from freshviews.kernel.scalar.failure import COUNTED, TWO_VALUES, fail
from freshviews.types.sqltype import NAN, NULL


@inlined
def eq(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return 1 if a == b else 0


@inlined
def ne(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return 1 if a != b else 0


@inlined
def lt(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return 1 if a < b else 0


@inlined
def le(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    return 1 if a <= b else 0


@inlined
def gt(a: int, b: int) -> int:
    return lt(b, a)


@inlined
def ge(a: int, b: int) -> int:
    return le(b, a)


# Codes of doubles are canonical: equal doubles, and NaNs, have equal codes.
eq_float = eq
ne_float = ne


@inlined
def lt_float(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if a == NAN or b == NAN:
        return 1 if a != NAN else 0
    return 1 if f64(a) < f64(b) else 0


@inlined
def le_float(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return NULL
    if a == NAN or b == NAN:
        return 1 if b == NAN else 0
    return 1 if f64(a) <= f64(b) else 0


@inlined
def gt_float(a: int, b: int) -> int:
    return lt_float(b, a)


@inlined
def ge_float(a: int, b: int) -> int:
    return le_float(b, a)


@inlined
def null_safe_eq(a: int, b: int) -> int:
    return 1 if a == b else 0


@jit
def only_value(a: int, b: int, status: int) -> int:
    """``a`` if both are equal, else the error TWO_VALUES. NULL counts as a value."""
    return a if a == b else fail(status, TWO_VALUES)


@inlined
def unless_failed(x: int, error: int, status: int) -> int:
    """``x``, or the known ``error`` if it is not 0."""
    return x if error == 0 else fail(status, error)


@inlined
def unless_counted(x: int, failed: int, status: int) -> int:
    """``x``, or the error COUNTED if an expression has failed for a row of the group."""
    return fail(status, COUNTED) if failed == 1 else x


@inlined
def is_null(a: int) -> int:
    return 1 if a == NULL else 0


@inlined
def is_not_null(a: int) -> int:
    return 1 if a != NULL else 0


@inlined
def is_true(a: int) -> int:
    return 1 if a == 1 else 0


@inlined
def is_nan(a: int) -> int:
    return 1 if a == NAN else 0


@inlined
def and_(a: int, b: int) -> int:
    if a == 0 or b == 0:
        return 0
    return NULL if a == NULL or b == NULL else 1


@inlined
def or_(a: int, b: int) -> int:
    if a == 1 or b == 1:
        return 1
    return NULL if a == NULL or b == NULL else 0


@inlined
def not_(a: int) -> int:
    return NULL if a == NULL else 1 - a


@inlined
def greatest_int(a: int, b: int) -> int:
    return a if a > b else b  # NULL is the least int64, so it never wins


@inlined
def least_int(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return b if a == NULL else a
    return a if a < b else b


@inlined
def greatest_float(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return b if a == NULL else a
    return b if lt_float(a, b) == 1 else a


@inlined
def least_float(a: int, b: int) -> int:
    if a == NULL or b == NULL:
        return b if a == NULL else a
    return a if lt_float(a, b) == 1 else b
