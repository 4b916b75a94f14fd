"""Binds numeric functions such as ``floor``, ``try_add`` and ``width_bucket``. A call may become several operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.sql.expressions import arithmetic, attempts, logic
from freshviews.sql.expressions.build import VOID, Fault, NotHeld, Refusal, call, integer, null, retyped
from freshviews.sql.expressions.cast import cast, checked, held, power_of_ten
from freshviews.sql.expressions.coerce import as_decimal
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TINYINT, SqlType, decimal


def constant_int(what: str, value: Expr) -> int:
    if isinstance(value, Literal) and value.type.is_integer and isinstance(value.value, int):
        return value.value
    raise Refusal(f"{what} with an argument that is not a constant integer", "write the number of digits")


def rounded(name: str, of_float: str, of_decimal: str) -> Callable[..., Expr]:
    """round or bround: a number rounded to a constant number of digits, by the operations of floats and decimals."""

    def make(value: Expr, digits: Expr | None = None) -> Expr:
        value = arithmetic.numeric(name, value)
        places = 0 if digits is None else constant_int(name, digits)
        if value.type.is_float:
            return cast(call(of_float, (cast(value, DOUBLE), integer(places)), DOUBLE), value.type)
        if value.type.is_integer:
            if places >= 0:
                return value
            whole = call(of_decimal, (value, power_of_ten(-places)), BIGINT)
            return checked(call("scale_up", (whole, power_of_ten(-places)), BIGINT), value.type)
        return _to_places(of_decimal, value, places)

    return make


def _rounded_type(source: SqlType, places: int) -> SqlType:
    """The type of a decimal rounded to ``places`` digits after the point, which may be negative."""
    whole, scale = source.precision - source.scale + 1, min(source.scale, max(places, 0))
    return decimal(min(max(whole + scale, -places + 1), 38), scale, source.wide)


def _to_places(op: str, value: Expr, places: int) -> Expr:
    """A decimal with at most ``places`` digits after the point, which may be negative."""
    to = _rounded_type(value.type, places)
    if places >= 0:
        lost = value.type.scale - to.scale
        return call(op, (value, power_of_ten(lost)), to) if lost else retyped(value, to)
    whole = call(op, (value, power_of_ten(value.type.scale - places)), to)
    return held(call("scale_up", (whole, power_of_ten(-places)), to))


def toward(which: str) -> Callable[..., Expr]:
    """FLOOR or CEIL: a BIGINT of integers and floats, a decimal without fraction of decimals; with a number of digits,
    a decimal."""

    def make(value: Expr, digits: Expr | None = None) -> Expr:
        if digits is not None and value.type == STRING:
            raise Refusal(f"{which} of a STRING to a number of digits", "CAST it to a DECIMAL or a DOUBLE")
        value = arithmetic.numeric(which, value)
        if digits is not None:
            places = constant_int(which, digits)
            if value.type.is_float:
                read = as_decimal(value.type)
                args = (value, integer(read.scale), integer(places))
                return call(f"{which}_of_float", args, _rounded_type(read, places))
            exact = cast(value, as_decimal(value.type)) if value.type.is_integer else value
            return _to_places(f"{which}_decimal", exact, places)
        if value.type.is_integer:
            return retyped(value, BIGINT)
        if value.type.is_float:
            return call(f"{which}_float", (value,), BIGINT)
        return value if value.type.scale == 0 else _to_places(f"{which}_decimal", value, 0)

    return make


def shift(op: str) -> Callable[[Expr, Expr], Expr]:
    """A shift of the 32 bits of an INT, or the 64 bits of a BIGINT."""

    def make(value: Expr, places: Expr) -> Expr:
        if not (value.type.is_integer or value.type in (STRING, VOID)):
            raise Fault(f"a shift takes an INT or a BIGINT, not {value.type}")
        to = BIGINT if value.type == BIGINT else INT
        width = integer(64 if to == BIGINT else 32)
        return call(op, (cast(value, to), cast(arithmetic.numeric("a shift", places), INT), width), to)

    return make


def bit_get(value: Expr, place: Expr) -> Expr:
    """The bit at a place, counted from the lowest one, which is 0."""
    if value.type == VOID or not value.type.is_integer:
        raise Fault(f"bit_get takes an integer, not {value.type}")
    width = integer(value.type.bounds[1].bit_length() + 1)
    return call("bit_get", (value, cast(arithmetic.numeric("bit_get", place), INT), width), TINYINT)


def bit_count(value: Expr) -> Expr:
    if not (value.type.is_integer or value.type in (BOOLEAN, VOID)):
        raise Fault(f"bit_count takes an integer or a BOOLEAN, not {value.type}")
    return call("bit_count", (cast(value, BIGINT),), INT)


def _tried(apply: Callable[[Expr, Expr], Any], a: Expr, b: Expr, to: SqlType) -> Expr:
    """``apply`` to operands of which one is a STRING: NULL for any failure, that of a CAST included, as in Spark."""
    try:
        return call("attempt", (apply(a, b),), to)
    except (Refusal, NotHeld):
        raise
    except Fault:
        return null(to)


def attempted(name: str, op: str, apply: Callable[[Expr, Expr], Any]) -> Callable[[Expr, Expr], Expr]:
    """The function ``name``: ``apply``, + - or *, with NULL for integers, moments and intervals whose result does not
    fit."""

    def make(a: Expr, b: Expr) -> Expr:
        to: SqlType = apply(Column("a", a.type, True), Column("b", b.type, True)).type
        if to.wide or not to.is_numeric:
            return attempts.attempted(name, (a, b), lambda: apply(a, b), to)
        if STRING in (a.type, b.type):
            return _tried(apply, a, b, to)
        if not to.is_integer:
            made: Expr = apply(a, b)
            return made
        args = cast(a, to), cast(b, to)
        if to == BIGINT:
            return call(f"try_{op}_int", args, to)
        low, high = map(integer, to.bounds)
        return call("try_check_range", (call(f"{op}_int", args, BIGINT), low, high), to)

    return make


def unless_zero(apply: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """``apply``, a division, with NULL for a divisor of 0."""

    def make(a: Expr, b: Expr) -> Expr:
        if STRING in (a.type, b.type):
            return _tried(apply, a, b, apply(Column("a", a.type, True), Column("b", b.type, True)).type)
        if isinstance(b, Literal):
            return null(apply(a, replace(b, value=type(b.value)(1))).type) if b.value == 0 else apply(a, b)
        known = logic.compare("<>", b, Literal(0, INT))
        return logic.choose([(known, apply(a, b))], null(VOID))

    return make


def reciprocal(op: str) -> Callable[[Expr], Expr]:
    """1 / op(x), a DOUBLE."""

    def make(value: Expr) -> Expr:
        x = cast(arithmetic.numeric(op, value), DOUBLE)
        return call("quotient_float", (Literal(1.0, DOUBLE), call(op, (x,), DOUBLE)), DOUBLE)

    return make


def width_bucket(x: Expr, low: Expr, high: Expr, count: Expr) -> Expr:
    doubles = (cast(arithmetic.numeric("width_bucket", one), DOUBLE) for one in (x, low, high))
    return call("width_bucket", (*doubles, cast(arithmetic.numeric("width_bucket", count), BIGINT)), BIGINT)


_BITMAP = 8 * 4096
"""Bits of a bitmap of Spark's bitmap functions."""


def bitmap_bucket_number(value: Expr) -> Expr:
    n = arithmetic.number("bitmap_bucket_number", value, BIGINT)
    above = call("add_int", (_over(call("sub_int", (n, integer(1)), BIGINT)), integer(1)), BIGINT)
    return logic.choose([(call("gt", (n, integer(0)), BOOLEAN), above)], _over(n))


def bitmap_bit_position(value: Expr) -> Expr:
    n = arithmetic.number("bitmap_bit_position", value, BIGINT)
    positive = call("gt", (n, integer(0)), BOOLEAN)
    place = logic.choose([(positive, call("sub_int", (n, integer(1)), BIGINT))], call("neg_int", (n,), BIGINT))
    return call("mod_int", (place, integer(_BITMAP)), BIGINT)


def _over(n: Expr) -> Expr:
    return call("div_int", (n, integer(_BITMAP)), BIGINT)
