"""Computes TRY_SUM of BIGINT from two sums: of the upper 32 bits and of the lower 32 bits of each value.

Either sum fits 64 bits for up to 2**31 rows. The total of both is NULL if it does not fit a BIGINT.
"""

from __future__ import annotations

from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions.build import call, integer
from freshviews.types import BIGINT

_BITS = 32


def halves_of(value: Expr) -> tuple[Expr, Expr]:
    """The upper bits of a BIGINT, with the sign, and the lower bits, which are not negative."""
    return _upper(value), _lower(value)


def whole_of_halves(upper: Expr, lower: Expr) -> Expr:
    """The total of two sums of halves; NULL if it does not fit a BIGINT, or both are NULL."""
    carried = call("add_int", (upper, _upper(lower)), BIGINT)
    least, greatest = Literal(-(2 ** (_BITS - 1)), BIGINT), Literal(2 ** (_BITS - 1) - 1, BIGINT)
    known = call("try_check_range", (carried, least, greatest), BIGINT)
    # Twice a half of the upper part, because the upper part alone may be the least BIGINT.
    half = call("mul_int", (known, Literal(2 ** (_BITS - 1), BIGINT)), BIGINT)
    return call("add_int", (half, call("add_int", (half, _lower(lower)), BIGINT)), BIGINT)


def _upper(value: Expr) -> Expr:
    return call("shift_right_signed", (value, integer(_BITS), integer(64)), BIGINT)


def _lower(value: Expr) -> Expr:
    return call("bits_and", (value, Literal(2**_BITS - 1, BIGINT)), BIGINT)
