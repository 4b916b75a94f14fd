"""Converts a CAST, written or implied, to operations over codes. A code is the int64 that represents a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.catalog.timezone import UTC, time_zone
from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions.build import VOID, WIDE, Fault, call, integer, null, retyped
from freshviews.sql.expressions.coerce import GREATEST_PRECISION, as_decimal
from freshviews.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
    decimal,
    declared_decimal,
)

_INT64 = 2**63 - 1
_MICROS = 1_000_000


def cast(expr: Expr, to: SqlType) -> Expr:
    """CAST(expr AS to). Raises ``Fault`` if Spark has no such cast or a constant does not fit."""
    source = expr.type
    if source == to:
        return expr
    if source == VOID or (isinstance(expr, Literal) and expr.value is None):
        return retyped(expr, to)
    if source.is_integer and to.is_numeric:
        return _from_integer(expr, to)
    if BINARY in (source, to):
        if STRING not in (source, to):
            raise Fault(f"{source} cannot be cast to {to}")
        return call("bytes_of_string" if to == BINARY else "string_of_bytes", (expr,), to)
    if TIMESTAMP_LTZ in (source, to):
        return _to_zoned(expr) if to == TIMESTAMP_LTZ else _from_zoned(expr, to)
    if source.is_interval and to != STRING:
        return _from_interval(expr, to)
    if to.is_interval and source != STRING:
        return _to_interval(expr, to)
    if to == STRING:
        return _to_string(expr)
    if source == STRING:
        return _from_string(expr, to)
    if to == BOOLEAN and source.is_numeric:
        return call("float_to_bool" if source.is_float else "int_to_bool", (expr,), BOOLEAN)
    if source == BOOLEAN and to.is_numeric:
        whole = _number(expr) if isinstance(expr, Literal) else retyped(expr, BIGINT)
        return cast(retyped(whole, SqlType("TINYINT")), to)
    if source.is_decimal and to.is_numeric:
        return _from_decimal(expr, to)
    if source.is_float and to.is_numeric:
        return _from_float(expr, to)
    if source == TIMESTAMP and to.is_numeric and to not in (BIGINT, DOUBLE):
        return cast(cast(expr, BIGINT if to.is_integer else DOUBLE), to)
    if to == TIMESTAMP and source.is_decimal:
        micros = scaled(expr, decimal(38, 6)) if source.scale <= 6 else _cut(expr, 6)
        return retyped(micros, TIMESTAMP)
    if to == TIMESTAMP and source.is_float:
        return retyped(cast(micros_of(expr), BIGINT), TIMESTAMP)
    made = _OTHERS.get((source.name, to.name))
    if made is None:
        raise Fault(f"{source} cannot be cast to {to}")
    return made(expr)


def _number(literal: Literal) -> Expr:
    return integer(int(literal.value)) if literal.value is not None else null(BIGINT)


def checked(expr: Expr, to: SqlType) -> Expr:
    """The value as ``to``, an integer, a decimal of the same scale or an interval; an error if it does not fit."""
    low, high = to.bounds
    if high >= _INT64 and not to.wide:
        return retyped(expr, to)
    return call("check_range", (expr, number(low), number(high)), to)


def held(expr: Expr) -> Expr:
    """A computed decimal; an error if it has more than 38 digits. One in 64 bits has no more."""
    return checked(expr, expr.type) if expr.type.wide and expr.type.precision == GREATEST_PRECISION else expr


def scaled(expr: Expr, to: SqlType) -> Expr:
    """A decimal at another scale, rounded HALF_UP if digits are lost; its precision is not checked."""
    up = to.scale - expr.type.scale
    if up > 0:
        return call("scale_up", (expr, power_of_ten(up)), to)
    if up < 0:
        return call("scale_down", (expr, power_of_ten(-up)), to)
    return retyped(expr, to)


def power_of_ten(digits: int) -> Literal:
    return number(10**digits)


def number(value: int) -> Literal:
    """A constant of any number of digits."""
    return integer(value) if abs(value) <= _INT64 else Literal(value, WIDE)


def _cut(expr: Expr, scale: int) -> Expr:
    """A decimal with fewer digits after the point; further digits are cut off."""
    return call("div_int", (expr, power_of_ten(expr.type.scale - scale)), WIDE if expr.type.wide else BIGINT)


def micros_of(seconds: Expr) -> Expr:
    """A DOUBLE or FLOAT number of seconds as microseconds, with a fraction."""
    return call("mul_float", (cast(seconds, DOUBLE), Literal(1e6, DOUBLE)), DOUBLE)


def _from_integer(expr: Expr, to: SqlType) -> Expr:
    if to.is_integer:
        return retyped(expr, to) if to.bounds[1] >= expr.type.bounds[1] else checked(expr, to)
    if to.is_decimal:
        return _from_decimal(retyped(expr, as_decimal(expr.type)), to)
    return _as_float(call("int_to_float", (expr,), DOUBLE), to)


def _from_decimal(expr: Expr, to: SqlType) -> Expr:
    source = expr.type
    if to.is_decimal:
        wide = replace(to, wide=source.wide or to.wide)
        moved = scaled(expr, wide)
        # Rounding may carry into a new integral digit: 9.99 becomes 10.0.
        carries = 1 if to.scale < source.scale else 0
        fits = to.precision - to.scale >= source.precision - source.scale + carries
        return retyped(moved, to) if fits else checked(moved, to)
    if to.is_integer:
        whole = expr if source.scale == 0 else _cut(expr, 0)
        digits = source.precision - source.scale
        return retyped(whole, to) if digits < as_decimal(to).precision else checked(whole, to)
    return _as_float(call("decimal_to_float", (expr, power_of_ten(source.scale)), DOUBLE), to)


def _from_float(expr: Expr, to: SqlType) -> Expr:
    if to.is_float:
        return _as_float(retyped(expr, DOUBLE), to)
    low, high = to.bounds
    if to.is_decimal:
        return call("float_to_decimal", (expr, power_of_ten(to.scale), number(high)), to)
    return call("float_to_int", (expr, integer(low), integer(high)), to)


def _as_float(double: Expr, to: SqlType) -> Expr:
    return double if to == DOUBLE else call("float_to_float32", (double,), FLOAT)


def _fields(kind: SqlType) -> tuple[Expr, Expr]:
    """The first and the last field of an INTERVAL."""
    return integer(kind.precision), integer(kind.scale)


def _from_interval(expr: Expr, to: SqlType) -> Expr:
    """An interval as one of another range of fields, whose rest is cut off, or as a number of its last field."""
    source = expr.type
    if to.is_interval and to.is_months == source.is_months:
        if to.scale >= source.scale:
            return retyped(expr, to)
        return call("sub_int", (expr, call("mod_int", (expr, integer(to.unit)), to)), to)
    if to.is_decimal and source.unit == _MICROS:
        return _from_decimal(retyped(expr, decimal(38, 6)), to)
    if not (to.is_integer or to.is_decimal):
        raise Fault(f"{source} cannot be cast to {to}")
    whole = expr if source.unit == 1 else call("div_int", (expr, integer(source.unit)), BIGINT)
    return cast(retyped(whole, INT if source.is_months else BIGINT), to)


def _to_interval(expr: Expr, to: SqlType) -> Expr:
    """A number of the last field of an interval."""
    source = expr.type
    if source.is_decimal and source.scale:
        return checked(call("mul_decimal", (expr, integer(to.unit), power_of_ten(source.scale)), to), to)
    if not (source.is_integer or source.is_decimal):
        raise Fault(f"{source} cannot be cast to {to}")
    return checked(expr if to.unit == 1 else call("mul_int", (expr, integer(to.unit)), to), to)


def local_time(moment: Expr) -> Expr:
    """The local time, a TIMESTAMP, of a TIMESTAMP_LTZ in the time zone of the catalog."""
    return _in_zone("from_utc_timestamp", moment, TIMESTAMP)


def moment_at(local: Expr, beside: Expr | None = None) -> Expr:
    """The TIMESTAMP_LTZ of a local time, and after a gap as long as it is; of two the earlier one, or the one with the
    offset of ``beside``."""
    if beside is None:
        return _in_zone("to_utc_timestamp", local, TIMESTAMP_LTZ)
    return _in_zone("moment_beside", local, TIMESTAMP_LTZ, beside)


def _in_zone(op: str, moment: Expr, to: SqlType, *more: Expr) -> Expr:
    zone = time_zone()
    return retyped(moment, to) if zone == UTC else call(op, (moment, *more, Literal(zone, STRING)), to)


def _to_zoned(expr: Expr) -> Expr:
    if expr.type == STRING and time_zone() != UTC:
        return call("string_to_moment", (expr, Literal(time_zone(), STRING)), TIMESTAMP_LTZ)
    made = cast(expr, TIMESTAMP)
    return moment_at(made) if expr.type.name in ("DATE", "TIMESTAMP") else retyped(made, TIMESTAMP_LTZ)


def _from_zoned(expr: Expr, to: SqlType) -> Expr:
    """Numbers are seconds since 1970 in UTC; all other types have the local time."""
    return cast(retyped(expr, TIMESTAMP) if to.is_numeric else local_time(expr), to)


def _from_string(expr: Expr, to: SqlType) -> Expr:
    if to.is_integer:
        low, high = to.bounds
        # A NULL argument of a host operation makes the result NULL, and the least BIGINT is NULL's code.
        return call("string_to_int", (expr, integer(max(low, NULL + 1)), integer(high)), to)
    if to.is_decimal:
        read = declared_decimal(to.precision, to.scale)
        return retyped(call("string_to_decimal", (expr, integer(to.precision), integer(to.scale)), read), to)
    if to.is_float:
        return _as_float(call("string_to_float", (expr,), DOUBLE), to)
    if to.is_interval:
        return call("string_to_interval", (expr, *_fields(to)), to)
    ops = {"DATE": "string_to_date", "TIMESTAMP": "string_to_timestamp", "BOOLEAN": "string_to_bool"}
    return call(ops[to.name], (expr,), to)


def _to_string(expr: Expr) -> Expr:
    source = expr.type
    if source.is_decimal:
        return call("decimal_to_string", (expr, integer(source.scale)), STRING)
    if source.is_integer:
        return call("int_to_string", (expr,), STRING)
    if source.is_interval:
        return call("interval_to_string", (expr, *_fields(source)), STRING)
    ops = {
        "FLOAT": "float32_to_string",
        "DOUBLE": "float_to_string",
        "BOOLEAN": "bool_to_string",
        "DATE": "date_to_string",
        "TIMESTAMP": "timestamp_to_string",
    }
    return call(ops[source.name], (expr,), STRING)


_OTHERS: dict[tuple[str, str], Callable[[Expr], Expr]] = {
    ("DATE", "TIMESTAMP"): lambda e: call("date_to_timestamp", (e,), TIMESTAMP),
    ("TIMESTAMP", "DATE"): lambda e: call("timestamp_to_date", (e,), DATE),
    ("TIMESTAMP", "DOUBLE"): lambda e: call(
        "div_float", (call("int_to_float", (retyped(e, BIGINT),), DOUBLE), Literal(1e6, DOUBLE)), DOUBLE
    ),
    ("TIMESTAMP", "BIGINT"): lambda e: call("unix_timestamp", (e,), BIGINT),
    **{
        (name, "TIMESTAMP"): lambda e: call("timestamp_seconds", (e,), TIMESTAMP)
        for name in ("TINYINT", "SMALLINT", "INT", "BIGINT")
    },
}


def literal_decimal(digits: str) -> Literal:
    """A decimal constant as Spark types it: 0.05 is DECIMAL(2, 2), 100.00 is DECIMAL(5, 2)."""
    whole, _, fraction = digits.partition(".")
    unscaled = int((whole + fraction) or "0")
    scale = len(fraction)
    precision = max(len(str(abs(unscaled))), scale)
    if precision > GREATEST_PRECISION:
        raise Fault(f"{digits[:60]}{'...' * (len(digits) > 60)} has more than {GREATEST_PRECISION} digits")
    return Literal(unscaled, declared_decimal(precision, scale))
