"""Doubles on a grid: multiples of 2^-10 whose magnitude is at most 2^40, as all whole numbers up to there.

In general, a sum or difference of doubles is rounded. For up to eight doubles on the grid it is exact: a multiple of
2^-10 below 2^43, which takes 53 bits. So ``a - b > c`` equals ``a > b + c``, and the sum of ``a - b`` over many rows is
the sum of all a minus the sum of all b. For other doubles neither holds: rows with such values are visited one by one.
"""

from __future__ import annotations

from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.types import BOOLEAN, DOUBLE

MOST_TERMS = 8
"""Maximum number of doubles on the grid whose sums are exact."""
_STEP = 2.0**-10
_MOST = 2.0**40
_ROUNDS = 1.5 * 2.0**42
"""Between 2^42 and 2^43 doubles are 2^-10 apart: adding this number rounds to a multiple of that."""


def is_on_grid(value: float) -> bool:
    """True for a double on the grid."""
    return abs(value) <= _MOST and (value / _STEP).is_integer()


def off_grid(term: Expr) -> Expr:
    """The condition that a term is a double that is not on the grid, as NaN; FALSE where it is NULL."""
    rounded = term
    for op in ("add_float", "sub_float"):
        rounded = Call(op, (rounded, Literal(_ROUNDS, DOUBLE)), DOUBLE)
    found: Expr | None = None
    for op, other in (("gt", Literal(_MOST, DOUBLE)), ("lt", Literal(-_MOST, DOUBLE)), ("ne", rounded)):
        one = Call("is_true", (Call(f"{op}_float", (term, other), BOOLEAN),), BOOLEAN, False)
        found = one if found is None else Call("or", (found, one), BOOLEAN, False)
    assert found is not None
    return found
