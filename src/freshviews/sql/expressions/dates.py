"""Binds functions of dates and timestamps, such as ``year``, ``date_add`` and ``date_trunc``."""

from __future__ import annotations

from collections.abc import Callable

from freshviews.expr.casts import date_format as formatted
from freshviews.expr.nodes import Expr, Literal
from freshviews.expr.ops import DATE_UNITS, TIMESTAMP_UNITS
from freshviews.sql.expressions import arithmetic, intervals
from freshviews.sql.expressions.build import VOID, Fault, Refusal, call, integer, retyped
from freshviews.sql.expressions.cast import cast, moment_at
from freshviews.sql.expressions.intervals import MICROS_PER_DAY, interval_of
from freshviews.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_LTZ, SqlType

DATE_PARTS = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")


def moment_of(value: Expr, to: SqlType) -> Expr:
    """A DATE, TIMESTAMP or STRING cast to DATE or TIMESTAMP; of a TIMESTAMP_LTZ the local time."""
    if value.type not in (DATE, TIMESTAMP, TIMESTAMP_LTZ, STRING, VOID):
        raise Fault(f"a {to} is needed here, not {value.type}")
    return cast(value, to)


def part(name: str) -> Callable[[Expr], Expr]:
    """year(d) and the like: an INT."""
    return lambda moment: call(name, (moment_of(moment, DATE),), INT)


def clock(name: str) -> Callable[[Expr], Expr]:
    """hour(t), minute(t), second(t): an INT."""
    return lambda moment: call(name, (moment_of(moment, TIMESTAMP),), INT)


def last_day(moment: Expr) -> Expr:
    return call("last_day", (moment_of(moment, DATE),), DATE)


def date_add(*args: Expr) -> Expr:
    """date_add(date, days), a DATE, or date_add(UNIT, amount, moment), a TIMESTAMP."""
    if len(args) == 3:
        unit = interval_of("1", word("date_add", args[0]))
        amount = call("mul_int", (cast(args[1], BIGINT), retyped(unit, BIGINT)), BIGINT)
        if args[2].type == TIMESTAMP_LTZ:
            if intervals.constant_micros(unit) in (None, MICROS_PER_DAY, 7 * MICROS_PER_DAY):
                return intervals.shifted(args[2], retyped(amount, intervals.whole(unit.type)))
            return call("add_micros", (args[2], amount), TIMESTAMP_LTZ)
        op = "add_months_timestamp" if unit.type.is_months else "add_micros"
        return call(op, (moment_of(args[2], TIMESTAMP), amount), TIMESTAMP)
    return call("date_add_days", (moment_of(args[0], DATE), _days(args[1])), DATE)


def date_sub(moment: Expr, days: Expr) -> Expr:
    return call("date_add_days", (moment_of(moment, DATE), arithmetic.negative(_days(days))), DATE)


def _days(days: Expr) -> Expr:
    if days.type.is_integer and days.type != BIGINT:
        return retyped(days, INT)
    if days.type not in (STRING, VOID):
        raise Fault(f"a number of days must be an INT, not {days.type}")
    return cast(days, INT)


def date_diff(end: Expr, start: Expr) -> Expr:
    """datediff(end, start) in days."""
    return call("date_diff_days", (moment_of(end, DATE), moment_of(start, DATE)), INT)


def add_months(moment: Expr, months: Expr) -> Expr:
    """A DATE, also for a TIMESTAMP."""
    if not months.type.is_numeric and months.type not in (STRING, VOID):
        raise Fault(f"a number of months must be an INT, not {months.type}")
    return call("add_months", (moment_of(moment, DATE), cast(months, INT)), DATE)


_UNIT_NAMES = {"yyyy": "year", "yy": "year", "mm": "month", "mon": "month", "dd": "day"}


def _unit(function: str, unit: Expr, known: dict[str, int]) -> Literal:
    name = word(function, unit).lower()
    name = _UNIT_NAMES.get(name, name)
    if name not in known:
        raise Refusal(f"{function} to {name.upper()}", f"accepted: {', '.join(n.upper() for n in known)}")
    return integer(known[name])


def trunc(moment: Expr, unit: Expr) -> Expr:
    """trunc(date, 'MONTH'): a DATE."""
    return call("trunc_date", (moment_of(moment, DATE), _unit("trunc", unit, dict(DATE_UNITS))), DATE)


def date_trunc(unit: Expr, moment: Expr) -> Expr:
    """date_trunc('MONTH', timestamp): a TIMESTAMP."""
    code = _unit("date_trunc", unit, dict(TIMESTAMP_UNITS))
    made = call("trunc_timestamp", (moment_of(moment, TIMESTAMP), code), TIMESTAMP)
    if moment.type != TIMESTAMP_LTZ:
        return made
    return moment_at(made, moment if code.value not in DATE_UNITS.values() else None)


def date_format(moment: Expr, pattern: Expr) -> Expr:
    pattern = cast(pattern, STRING)
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        try:
            formatted(0, pattern.value)
        except ValueError as error:
            raise Fault(str(error)) from None
    return call("date_format", (moment_of(moment, TIMESTAMP), pattern), STRING)


def word(function: str, value: Expr) -> str:
    """A constant word: the unit or field of a date function."""
    if isinstance(value, Literal) and isinstance(value.value, str):
        return value.value
    raise Refusal(f"{function} with a unit that is not a constant", "write the unit, as in 'MONTH'")
