"""Binds constants, operators (+ - * / div) and fields of intervals. An interval counts months or microseconds."""

from __future__ import annotations

import re

from freshviews.expr.intervals import string_to_interval
from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions.build import VOID, Fault, Refusal, call, integer, null, retyped
from freshviews.sql.expressions.cast import cast, checked, local_time, moment_at, power_of_ten
from freshviews.sql.expressions.coerce import common
from freshviews.types import (
    BIGINT,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FIELD_UNITS,
    FIELDS,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    YEAR_TO_MONTH,
    SqlType,
    decimal,
    interval,
)

MICROS_PER_DAY = FIELD_UNITS["DAY"]
ONE_DAY = interval("DAY", "DAY")

_AMOUNT = re.compile(r"(?P<sign>[+-])?(?P<whole>\d{0,30})(?:\.(?P<fraction>\d{0,30}))?", re.ASCII)
_UNITS = {
    **{name: (name, factor) for name, factor in FIELD_UNITS.items()},
    "QUARTER": ("MONTH", 3),
    "WEEK": ("DAY", 7 * MICROS_PER_DAY),
    "MILLISECOND": ("SECOND", 1_000),
    "MICROSECOND": ("SECOND", 1),
}
"""The field of the type, and the months or microseconds, of each unit of a constant."""

_SYNONYMS = {
    "YEAR": ("y", "years", "yr", "yrs"),
    "MONTH": ("mon", "mons", "months"),
    "DAY": ("d", "days"),
    "HOUR": ("h", "hours", "hr", "hrs"),
    "MINUTE": ("m", "min", "mins", "minutes"),
    "SECOND": ("s", "sec", "seconds", "secs"),
}


def interval_of(amount: str, unit: str) -> Literal:
    """``INTERVAL 'amount' unit``. Raises ``Fault`` for an unknown unit or an amount that is not a number."""
    name = unit.upper()
    name = name[:-1] if name.endswith("S") and name[:-1] in _UNITS else name
    if name not in _UNITS:
        raise Fault(
            f"INTERVAL unit {unit} is not known; accepted: YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, "
            "MINUTE, SECOND, MILLISECOND and MICROSECOND"
        )
    field, factor = _UNITS[name]
    found = _AMOUNT.fullmatch(amount.strip())
    if found is not None and (found["whole"] or found["fraction"]):
        sign, whole, fraction = -1 if found["sign"] == "-" else 1, int(found["whole"] or "0"), found["fraction"]
        if not fraction:
            return _constant(sign * whole * factor, interval(field, field))
        if name == "SECOND" and len(fraction) <= 9:
            return _constant(sign * (whole * factor + int(fraction.ljust(6, "0")[:6])), interval(field, field))
    raise Fault(f"INTERVAL '{amount}' {unit} is not a number of {name.lower()}s")


def interval_of_fields(written: str, first: str, last: str) -> Literal:
    """``INTERVAL 'written' first TO last``. Raises ``Fault``."""
    try:
        kind = interval(first, last)
        return _constant(string_to_interval(written, kind.precision, kind.scale), kind)
    except ValueError as error:
        raise Fault(str(error)) from None


def interval_of_text(written: str) -> Literal:
    """An interval written as numbers and units, such as ``1 hour 30 minutes``. Raises ``Fault``."""
    words = written.lower().removeprefix("interval").split()
    if not words or len(words) % 2:
        raise Fault(f"the interval '{written}' cannot be read; write numbers and units, as in '10 minutes'")
    made: Expr = interval_of(words[0], words[1])
    for amount, unit in zip(words[2::2], words[3::2], strict=True):
        made = _joined("add_int", made, interval_of(amount, unit))
    assert isinstance(made, Literal)
    return made


def _constant(code: int, kind: SqlType) -> Literal:
    if not max(kind.bounds[0], NULL + 1) <= code <= kind.bounds[1]:
        raise Fault(f"an {kind} cannot exceed {kind.bounds[1]} {'months' if kind.is_months else 'microseconds'}")
    return Literal(code, kind)


def constant_micros(size: Expr) -> int | None:
    """Microseconds of a constant INTERVAL of days to seconds; None for another value."""
    constant = isinstance(size, Literal) and size.type.is_interval and not size.type.is_months
    return int(size.value) if constant and size.value is not None else None  # type: ignore[union-attr]


def _joined(op: str, a: Expr, b: Expr) -> Expr:
    """The sum or difference of two intervals."""
    to = common(a.type, b.type)
    if to is None:
        raise Fault(f"{a.type} and {b.type}: an INTERVAL has years and months, or days and smaller units, not both")
    return checked(call(op, (cast(a, to), cast(b, to)), to), to)


def add(a: Expr, b: Expr) -> Expr:
    """The sum of two values, of which one is an interval."""
    if not b.type.is_interval:
        a, b = b, a
    if a.type.is_interval:
        return _joined("add_int", a, b)
    return null(b.type) if a.type == VOID else shifted(a, b)


def subtract(a: Expr, b: Expr) -> Expr:
    """The difference of two values, of which one is an interval."""
    if not b.type.is_interval:
        if b.type != VOID:
            raise Fault(f"{b.type} cannot be subtracted from an INTERVAL")
        return null(a.type)
    if a.type.is_interval:
        return _joined("sub_int", a, b)
    return null(b.type) if a.type == VOID else shifted(a, signed("neg", b))


def between(a: Expr, b: Expr) -> Expr:
    """The difference of two moments: INTERVAL DAY of dates, else INTERVAL DAY TO SECOND."""
    if {TIMESTAMP, TIMESTAMP_LTZ} & {a.type, b.type}:
        # Of a TIMESTAMP_LTZ the local time, as in Spark.
        micros = (retyped(cast(moment, TIMESTAMP), BIGINT) for moment in (a, b))
        return call("sub_int", tuple(micros), DAY_TO_SECOND)
    days = call("date_diff_days", (cast(a, DATE), cast(b, DATE)), BIGINT)
    return call("mul_int", (days, integer(MICROS_PER_DAY)), ONE_DAY)


def shifted(moment: Expr, by: Expr) -> Expr:
    """A moment plus an interval, of the same type; a DATE becomes a TIMESTAMP if the interval has hours or less."""
    if moment.type == STRING and not by.type.is_months:
        return cast(shifted(cast(moment, TIMESTAMP), by), STRING)
    amount = retyped(by, BIGINT)
    if moment.type == DATE:
        if by.type.is_months:
            return call("add_months", (moment, amount), DATE)
        if by.type == ONE_DAY:
            return call("date_add_days", (moment, call("div_int", (amount, integer(MICROS_PER_DAY)), BIGINT)), DATE)
        moment = cast(moment, TIMESTAMP)
    if moment.type == TIMESTAMP_LTZ:
        if by.type.is_months:
            return moment_at(shifted(local_time(moment), by), moment)
        # Days are those of the local time; the rest is time that passes.
        rest = call("mod_int", (amount, integer(MICROS_PER_DAY)), BIGINT)
        days = call("sub_int", (amount, rest), BIGINT)
        moved = call("add_micros", (local_time(moment), days), TIMESTAMP)
        return call("add_micros", (moment_at(moved, moment), rest), TIMESTAMP_LTZ)
    if moment.type != TIMESTAMP:
        raise Fault(
            f"an INTERVAL can be added only to a DATE or TIMESTAMP, not to {moment.type}; CAST the value to DATE or "
            "TIMESTAMP"
        )
    return call("add_months_timestamp" if by.type.is_months else "add_micros", (moment, amount), TIMESTAMP)


def multiply(a: Expr, b: Expr) -> Expr:
    """An interval times a number, rounded HALF_UP."""
    if not a.type.is_interval:
        a, b = b, a
    number = _number("multiplied", b)
    to = whole(a.type)
    if number.type == VOID:
        return null(to)
    if number.type.is_float:
        return _rounded(call("mul_float", (_double(a), cast(number, DOUBLE)), DOUBLE), to)
    if number.type.is_decimal and number.type.scale:
        return checked(call("mul_decimal", (a, number, power_of_ten(number.type.scale)), to), to)
    return checked(call("mul_int", (a, number), to), to)


def divide(a: Expr, b: Expr) -> Expr:
    """An interval divided by a number, rounded HALF_UP."""
    if not a.type.is_interval:
        raise Fault(f"{a.type} cannot be divided by an INTERVAL")
    number = _number("divided", b)
    to = whole(a.type)
    if number.type == VOID:
        return null(to)
    if number.type.is_float:
        return _rounded(call("div_float", (_double(a), cast(number, DOUBLE)), DOUBLE), to)
    return checked(call("div_decimal", (a, number, power_of_ten(number.type.scale)), to), to)


def integral_divide(a: Expr, b: Expr) -> Expr:
    """How often an interval contains another one, truncated: a BIGINT."""
    to = common(a.type, b.type)
    if to is None or not to.is_interval:
        raise Fault(f"{a.type} div {b.type} is not defined; divide an INTERVAL by an INTERVAL with the same units")
    return call("div_int", (cast(a, to), cast(b, to)), BIGINT)


def signed(op: str, a: Expr) -> Expr:
    """The negative (neg) or absolute (abs) value of an interval."""
    return checked(call(f"{op}_int", (a,), a.type), a.type)


def _number(how: str, value: Expr) -> Expr:
    if value.type == STRING:
        return cast(value, DOUBLE)
    if value.type != VOID and not value.type.is_numeric:
        raise Fault(f"an INTERVAL can be {how} only by a number, not by {value.type}")
    return value


def whole(kind: SqlType) -> SqlType:
    """The type with all fields of the same family."""
    return YEAR_TO_MONTH if kind.is_months else DAY_TO_SECOND


def _double(a: Expr) -> Expr:
    return call("int_to_float", (retyped(a, BIGINT),), DOUBLE)


def _rounded(value: Expr, to: SqlType) -> Expr:
    low, high = to.bounds
    return call("float_to_int", (call("round_float", (value, integer(0)), DOUBLE), integer(low), integer(high)), to)


def field_of(part: str, value: Expr) -> Expr:
    """EXTRACT(part FROM interval)."""
    fields = FIELDS[value.type.precision : value.type.scale + 1]
    name = next((one for one in fields if part.lower() in (one.lower(), *_SYNONYMS[one])), None)
    if name is None:
        raise Refusal(f"the field {part.upper()} of an {value.type}", f"accepted: {', '.join(fields)}")
    above = {"MONTH": "YEAR", "HOUR": "DAY", "MINUTE": "HOUR", "SECOND": "MINUTE"}.get(name)
    rest = value if above is None else call("mod_int", (value, integer(FIELD_UNITS[above])), BIGINT)
    if name == "SECOND":
        return retyped(rest, decimal(8, 6))
    kind, unit = INT if above is None else TINYINT, FIELD_UNITS[name]
    return retyped(rest, kind) if unit == 1 else call("div_int", (rest, integer(unit)), kind)


def make_ym_interval(years: Expr | None = None, months: Expr | None = None) -> Expr:
    """An INTERVAL YEAR TO MONTH of numbers of years and months."""
    return checked(_total((years, INT, 12), (months, INT, 1)), YEAR_TO_MONTH)


def make_dt_interval(
    days: Expr | None = None, hours: Expr | None = None, minutes: Expr | None = None, seconds: Expr | None = None
) -> Expr:
    """An INTERVAL DAY TO SECOND of numbers of days, hours and minutes, and of seconds with their fraction."""
    units = (FIELD_UNITS[name] for name in ("DAY", "HOUR", "MINUTE"))
    whole = [(value, INT, unit) for value, unit in zip((days, hours, minutes), units, strict=True)]
    return retyped(_total(*whole, (seconds, decimal(18, 6), 1)), DAY_TO_SECOND)


def _total(*parts: tuple[Expr | None, SqlType, int]) -> Expr:
    """The sum of numbers, each cast to a type and times a unit."""
    total: Expr = integer(0)
    for value, kind, unit in parts:
        if value is None:
            continue
        if not (value.type.is_numeric or value.type in (STRING, VOID)):
            raise Fault(f"a number is needed here, not {value.type}")
        amount = retyped(cast(value, kind), BIGINT)
        scaled = amount if unit == 1 else call("mul_int", (amount, integer(unit)), BIGINT)
        total = scaled if total == integer(0) else call("add_int", (total, scaled), BIGINT)
    return total
