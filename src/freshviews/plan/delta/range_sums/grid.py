"""Tests whether doubles are on a grid. A sum of a few doubles on the grid is exact.

The grid has the multiples of 2^-10 whose magnitude is at most 2^40.
"""

from __future__ import annotations

from collections.abc import Iterable

from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.types import BOOLEAN, DOUBLE

MOST_TERMS = 8
"""Maximum number of doubles on the grid whose sums are exact."""
_STEP = 2.0**-10
_MOST = 2.0**40
_ROUNDS = 1.5 * 2.0**42
"""Between 2^42 and 2^43 doubles are 2^-10 apart: adding this number rounds to a multiple of that."""


def is_on_grid(value: float) -> bool:
    """True for a double on the grid.

    In general, a sum or difference of doubles is rounded. For up to eight doubles on the grid it is exact: a multiple
    of 2^-10 below 2^43, which takes 53 bits. So ``a - b > c`` equals ``a > b + c``. The sum of ``a - b`` over many rows
    is the sum of all a minus the sum of all b. Rows with other doubles are visited one by one.
    """
    return abs(value) <= _MOST and (value / _STEP).is_integer()


def off_grid(term: Expr) -> Expr:
    """The condition that a term is a double that is not on the grid, as NaN; FALSE where it is NULL."""
    rounded = term
    for op in ("add_float", "sub_float"):
        rounded = Call(op, (rounded, Literal(_ROUNDS, DOUBLE)), DOUBLE)
    tests = (("gt", Literal(_MOST, DOUBLE)), ("lt", Literal(-_MOST, DOUBLE)), ("ne", rounded))
    compared = (Call(f"{op}_float", (term, other), BOOLEAN) for op, other in tests)
    found = joined("or", (Call("is_true", (one,), BOOLEAN, False) for one in compared))
    assert found is not None
    return found


def joined(op: str, terms: Iterable[Expr]) -> Expr | None:
    """The terms joined by AND or OR, which are never NULL; None if there are none."""
    found: Expr | None = None
    for one in terms:
        found = one if found is None else Call(op, (found, one), BOOLEAN, False)
    return found
