"""TRY_CAST: NULL where CAST refuses the value.

A string is converted by an operation that gives NULL for what it cannot read. For the others, a CASE around the CAST
keeps away values that do not fit.
"""

from __future__ import annotations

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.expr.ops import may_fail
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Fault, call, integer, null, replaced
from freshviews.sql.expressions.cast import cast
from freshviews.types import BOOLEAN, DOUBLE, NULL, STRING, SqlType

_INT64 = 2**63 - 1


def try_cast(expr: Expr, to: SqlType) -> Expr:
    """TRY_CAST(expr AS to). Raises ``Fault`` where Spark has no such cast."""
    made = cast(Column("x", expr.type, True), to)
    if isinstance(expr, Literal):
        try:
            return cast(expr, to)
        except Fault:
            return null(to)
    if not may_fail(made):
        return cast(expr, to)
    if expr.type == STRING:
        return replaced(cast(expr, to), lambda part: _attempt(part) if part != expr else None)
    low, high = _fitting(expr.type, to)
    return logic.choose([(logic.both(_at_least(expr, low), _at_most(expr, high)), cast(expr, to))], null(to))


def _attempt(part: Expr) -> Expr | None:
    """The operation that gives NULL where this one fails; None where it is none that reads a string."""
    name = getattr(part, "op", "")
    return call(f"try_{name}", part.args, part.type) if name.startswith("string_to_") else None  # type: ignore[union-attr]


def _at_least(expr: Expr, bound: Literal) -> Expr:
    return call("gt_float" if bound.type == DOUBLE else "ge", (expr, bound), BOOLEAN)


def _at_most(expr: Expr, bound: Literal) -> Expr:
    return call("lt_float" if bound.type == DOUBLE else "le", (expr, bound), BOOLEAN)


def _fitting(source: SqlType, to: SqlType) -> tuple[Literal, Literal]:
    """The least and the greatest code that fits; of floats, the values below and above."""
    low, high = to.bounds if to.is_numeric else (-_INT64, _INT64)
    low = max(low, NULL + 1)
    if source.is_float:
        unit = 10**to.scale if to.is_decimal else 1
        # A fraction is cut off by an integer and rounded by a decimal.
        beyond = 0.5 if to.is_decimal else 1.0
        return Literal((low - beyond) / unit, DOUBLE), Literal((high + beyond) / unit, DOUBLE)
    if to.is_numeric:
        down, up = (to.scale if to.is_decimal else 0), (source.scale if source.is_decimal else 0)
        return _scaled(low, up - down, to), _scaled(high, up - down, to)
    # A date or a number of seconds as microseconds.
    unit = 86_400_000_000 if source.name == "DATE" else 1_000_000
    return integer(-(_INT64 // unit)), integer(_INT64 // unit)


def _scaled(bound: int, digits: int, to: SqlType) -> Literal:
    """The bound in units of the source, which has more digits; a decimal rounds half a unit more away."""
    if digits < 0:
        whole = abs(bound) // 10**-digits
    elif to.is_decimal:
        whole = abs(bound) * 10**digits + (5 * 10 ** (digits - 1) - 1 if digits else 0)
    else:
        whole = abs(bound) * 10**digits + 10**digits - 1
    return integer(min(whole, _INT64) if bound > 0 else -min(whole, _INT64))
