"""Binds TRY_CAST, which returns NULL for a value that CAST refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nextafter

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.expr.ops import may_fail
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import FALSE, Fault, NotHeld, Refusal, call, null, replaced, retyped
from freshviews.sql.expressions.cast import cast, micros_of, number
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, TIMESTAMP_LTZ, SqlType

_INT64 = 2**63 - 1


def try_cast(expr: Expr, to: SqlType) -> Expr:
    """TRY_CAST(expr AS to). Raises ``Fault`` if Spark has no such cast."""
    made = cast(Column("x", expr.type, True), to)
    if not may_fail(made):
        return cast(expr, to)
    if expr.type.is_interval or (to.is_interval and expr.type != STRING) or (expr.type.is_float and to.wide):
        return attempted("TRY_CAST", (expr,), lambda: cast(expr, to), to)
    if TIMESTAMP_LTZ in (expr.type, to) and expr.type != STRING:
        return attempted("TRY_CAST", (expr,), lambda: cast(expr, to), to)
    if expr.type == TIMESTAMP:
        return try_cast(cast(expr, BIGINT if to.is_integer else DOUBLE), to)
    if expr.type.is_float and to == TIMESTAMP:
        return retyped(try_cast(micros_of(expr), BIGINT), TIMESTAMP)
    if expr.type == STRING and isinstance(expr, Literal):
        try:
            made = cast(expr, to)
        except NotHeld:
            raise
        except Fault:
            return null(to)
        # In a branch that no row may take, a cast that fails is not an error yet.
        return null(to) if may_fail(made) else made
    if expr.type == STRING:
        return replaced(cast(expr, to), lambda part: _attempt(part) if part != expr else None)
    low, high = _fitting(expr.type, to)
    fits = logic.both(_at_least(expr, low), _at_most(expr, high))
    return null(to) if fits == FALSE else logic.choose([(fits, cast(expr, to))], null(to))


def attempted(what: str, args: Sequence[Expr], apply: Callable[[], Expr], to: SqlType) -> Expr:
    """The value that ``apply`` makes of arguments, with NULL where it fails. Raises ``Refusal`` if an argument may fail
    by itself, which is an error."""
    if any(map(may_fail, args)):
        raise Refusal(f"{what} of an argument that may fail", "compute the argument in a subquery of FROM")
    try:
        return call("attempt", (apply(),), to)
    except (Refusal, NotHeld):
        raise
    except Fault:
        return null(to)


def _attempt(part: Expr) -> Expr | None:
    """The operation that returns NULL if this one fails; None if this one does not read a string."""
    name = getattr(part, "op", "")
    return call(f"try_{name}", part.args, part.type) if name.startswith("string_to_") else None  # type: ignore[union-attr]


def _at_least(expr: Expr, bound: Literal) -> Expr:
    return call("gt_float" if bound.type == DOUBLE else "ge", (expr, bound), BOOLEAN)


def _at_most(expr: Expr, bound: Literal) -> Expr:
    return call("lt_float" if bound.type == DOUBLE else "le", (expr, bound), BOOLEAN)


def _fitting(source: SqlType, to: SqlType) -> tuple[Literal, Literal]:
    """The least and the greatest code that fits; for floats, the values just outside."""
    high = 10**to.precision - 1 if to.is_decimal else to.bounds[1] if to.is_integer else _INT64
    low = -high if not to.is_integer else to.bounds[0]
    if source.is_float:
        unit = 10**to.scale if to.is_decimal else 1
        # An integer cuts off a fraction; a decimal rounds it.
        beyond = 0.5 if to.is_decimal else 1.0
        below, above = (low - beyond) / unit, (high + beyond) / unit
        if below == low:  # the least BIGINT, near which doubles are farther apart
            below = nextafter(below, -inf)
        return Literal(below, DOUBLE), Literal(above, DOUBLE)
    if to.is_numeric:
        down, up = (to.scale if to.is_decimal else 0), (source.scale if source.is_decimal else 0)
        return _scaled(low, up - down, source, to), _scaled(high, up - down, source, to)
    # A date or a number of seconds, in microseconds.
    unit = 86_400_000_000 if source.name == "DATE" else 1_000_000
    bound = _INT64 * 10**source.scale // unit
    bound = bound if source.wide else min(bound, _INT64)
    return number(-bound), number(bound)


def _scaled(bound: int, digits: int, source: SqlType, to: SqlType) -> Literal:
    """The bound in units of the source, which has more digits; for a decimal, half a unit farther out, as it rounds."""
    if digits < 0:
        whole = abs(bound) // 10**-digits
    elif to.is_decimal:
        whole = abs(bound) * 10**digits + (5 * 10 ** (digits - 1) - 1 if digits else 0)
    else:
        whole = abs(bound) * 10**digits + 10**digits - 1
    whole = whole if source.wide else min(whole, _INT64)
    return number(whole if bound > 0 else -whole)
