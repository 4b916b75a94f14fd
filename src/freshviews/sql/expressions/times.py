"""Binds date and time functions such as ``timestampdiff``. A call may become several operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from freshviews.catalog.timezone import UTC, time_zone
from freshviews.expr.nodes import Expr, Literal
from freshviews.expr.ops import may_fail
from freshviews.expr.parsing import check_pattern
from freshviews.sql.expressions import arithmetic, dates, logic
from freshviews.sql.expressions.build import FALSE, VOID, Fault, NotHeld, Refusal, call, integer, null, retyped, text
from freshviews.sql.expressions.cast import cast, power_of_ten
from freshviews.sql.expressions.intervals import MICROS_PER_DAY, constant_micros, interval_of_text
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMP_LTZ, decimal

_MICROS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": MICROS_PER_DAY, "WEEK": 7 * MICROS_PER_DAY,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_SECONDS = "yyyy-MM-dd HH:mm:ss"
_MONDAY = 946_857_600_000_000
"""2000-01-03, a Monday: the origin of the buckets of time_bucket."""


def size_of(what: str, size: Expr) -> int:
    """Microseconds of a constant INTERVAL, or of a text such as '10 minutes'."""
    size = _read(size)
    if size.type.is_months:
        raise Refusal(f"{what} of months or years", "use date_trunc('MONTH', ...)")
    micros = constant_micros(size)
    if micros is None:
        raise Refusal(f"{what} of a size that is not a constant", "write INTERVAL '10' MINUTE or '10 minutes'")
    if micros <= 0:
        raise Fault(f"{what} takes an interval above 0")
    return micros


def _read(size: Expr) -> Expr:
    """An interval, or a text of one."""
    return interval_of_text(size.value) if isinstance(size, Literal) and isinstance(size.value, str) else size


def _micros(moment: Expr) -> Expr:
    """The microseconds of a moment since 1970 in UTC."""
    return retyped(moment if moment.type == TIMESTAMP_LTZ else dates.moment_of(moment, TIMESTAMP), BIGINT)


def _local_micros(moment: Expr) -> Expr:
    return retyped(dates.moment_of(moment, TIMESTAMP), BIGINT)


def _without_zone(what: str, *moments: Expr) -> None:
    """Refuse a TIMESTAMP_LTZ."""
    if any(one.type == TIMESTAMP_LTZ for one in moments):
        raise Refusal(f"{what} of a TIMESTAMP_LTZ", "CAST it to TIMESTAMP, which gives its local time")


def _of(op: str, *args: Expr) -> Expr:
    return call(op, args, BIGINT)


def _start(moment: Expr, size: int, origin: Expr) -> Expr:
    """The last moment, a whole number of sizes from the origin, that is not after ``moment``."""
    t = _micros(moment)
    made = _of("sub_int", t, _of("pmod_int", _of("sub_int", t, origin), integer(size)))
    return retyped(made, TIMESTAMP_LTZ if moment.type == TIMESTAMP_LTZ else TIMESTAMP)


def _from_start(what: str, offset: Expr | None) -> Expr:
    micros = 0 if offset is None else constant_micros(_read(offset))
    if micros is not None:
        return integer(micros)
    raise Refusal(f"an offset of {what} that is not a constant", "write INTERVAL '1' MINUTE or '1 minute'")


def tumble(moment: Expr, size: Expr, offset: Expr | None = None) -> Expr:
    """The start of the tumbling window that contains a moment."""
    return _start(moment, size_of("a window", size), _from_start("a window", offset))


def hop(moment: Expr, slide: Expr, size: Expr, number: Expr, offset: Expr | None = None) -> Expr:
    """The start of a hopping window that contains a moment: the last one, or the one ``number`` slides before."""
    width = size_of("a slide", slide)
    last = _start(moment, width, _from_start("a window", offset))
    back = _of("mul_int", retyped(number, BIGINT), integer(-width))
    return call("add_micros", (last, back), last.type)


def date_bin(size: Expr, moment: Expr, origin: Expr | None = None) -> Expr:
    """The start of the interval, counted from an origin, that contains a moment."""
    return _start(moment, size_of("date_bin", size), integer(0) if origin is None else _micros(origin))


def time_bucket(size: Expr, moment: Expr, origin: Expr | None = None) -> Expr:
    made = _start(moment, size_of("time_bucket", size), integer(_MONDAY) if origin is None else _micros(origin))
    return cast(made, DATE) if moment.type == DATE else made


def difference(unit: Expr, start: Expr, end: Expr) -> Expr:
    """timestampdiff and datediff with a unit: whole units from start to end, a BIGINT."""
    _without_zone("timestampdiff", start, end)
    name = dates.word("timestampdiff", unit).upper().removesuffix("S")
    if name in _MICROS:
        return _of("div_int", _of("sub_int", _micros(end), _micros(start)), integer(_MICROS[name]))
    if name not in _MONTHS:
        raise Refusal(f"timestampdiff of {name}", f"accepted: {', '.join((*_MONTHS, *_MICROS))}")
    one, other = (call("timestamp_to_date", (dates.moment_of(t, TIMESTAMP),), DATE) for t in (start, end))
    # An incomplete day does not count.
    before, after = (_of("pmod_int", _micros(t), integer(MICROS_PER_DAY)) for t in (start, end))
    less = logic.both(_is("gt", other, one), _is("lt", after, before))
    more = logic.both(_is("lt", other, one), _is("gt", after, before))
    step = logic.choose([(less, integer(-1)), (more, integer(1))], integer(0))
    last = call("date_add_days", (other, step), DATE)
    months = _of("div_int", _of("sub_int", _packed(last), _packed(one)), integer(32))
    return months if _MONTHS[name] == 1 else _of("div_int", months, integer(_MONTHS[name]))


def _is(op: str, a: Expr, b: Expr) -> Expr:
    return call(op, (a, b), BOOLEAN)


def _months(day: Expr) -> Expr:
    return _of("add_int", _of("mul_int", dates.part("year")(day), integer(12)), dates.part("month")(day))


def _packed(day: Expr) -> Expr:
    """Months and days in one number."""
    return _of("add_int", _of("mul_int", _months(day), integer(32)), dates.part("day")(day))


def months_between(end: Expr, start: Expr) -> Expr:
    """Months from start to end, a DOUBLE with 8 digits; whole for equal days of the month, or two last ones."""
    one, other = dates.moment_of(end, DATE), dates.moment_of(start, DATE)
    months = _of("sub_int", _months(one), _months(other))
    days = _of("sub_int", dates.part("day")(one), dates.part("day")(other))
    last = logic.both(_is("eq", one, dates.last_day(one)), _is("eq", other, dates.last_day(other)))
    times = [_of("pmod_int", _local_micros(t), integer(MICROS_PER_DAY)) for t in (end, start)]
    seconds = [_of("div_int", time, integer(1_000_000)) for time in times]
    rest = _of("add_int", _of("mul_int", days, integer(86_400)), _of("sub_int", *seconds))
    part = call("div_float", (call("int_to_float", (rest,), DOUBLE), Literal(2_678_400.0, DOUBLE)), DOUBLE)
    whole = call("int_to_float", (months,), DOUBLE)
    broken = call("round_float", (call("add_float", (whole, part), DOUBLE), integer(8)), DOUBLE)
    return logic.choose([(logic.either(_is("eq", days, integer(0)), last), whole)], broken)


def next_day(day: Expr, name: Expr) -> Expr:
    """The first day after ``day`` with the given name, such as 'MON'."""
    wanted = dates.word("next_day", name).upper()[:2]
    if wanted not in _WEEKDAYS:
        raise Fault(f"next_day takes the name of a day, as in 'MON', not {wanted!r}")
    date = dates.moment_of(day, DATE)
    behind = _of("pmod_int", _of("sub_int", dates.part("weekday")(date), integer(_WEEKDAYS.index(wanted))), integer(7))
    return call("date_add_days", (date, _of("sub_int", integer(7), behind)), DATE)


def make_date(year: Expr, month: Expr, day: Expr) -> Expr:
    """A DATE; an error for a day that does not exist."""
    parts = [retyped(arithmetic.number("make_date", one, INT), BIGINT) for one in (year, month, day)]
    since = _of("mul_int", _of("sub_int", parts[0], integer(1970)), integer(12))
    ahead = _of("sub_int", _of("check_range", parts[1], integer(1), integer(12)), integer(1))
    first = call("add_months", (Literal(0, DATE), _of("add_int", since, ahead)), DATE)
    length = retyped(dates.part("day")(dates.last_day(first)), BIGINT)
    place = _of("sub_int", _of("check_range", parts[2], integer(1), length), integer(1))
    return _where_known((year, month, day), call("date_add_days", (first, place), DATE))


def _where_known(args: Sequence[Expr], made: Expr) -> Expr:
    """The value, which is not computed where an argument is NULL."""
    known = logic.all_of([call("is_not_null", (arg,), BOOLEAN) for arg in args])
    return logic.choose([(known, made)], null(made.type))


def make_timestamp(year: Expr, month: Expr, day: Expr, hour: Expr, minute: Expr, second: Expr) -> Expr:
    """A TIMESTAMP; an error for one that does not exist. 60 seconds are the next minute."""
    hours, minutes = (retyped(arithmetic.number("make_timestamp", one, INT), BIGINT) for one in (hour, minute))
    micros = retyped(arithmetic.number("make_timestamp", second, decimal(16, 6)), BIGINT)
    time = _of("mul_int", _of("check_range", hours, integer(0), integer(23)), integer(60))
    time = _of("add_int", time, _of("check_range", minutes, integer(0), integer(59)))
    time = _of("mul_int", time, integer(60_000_000))
    time = _of("add_int", time, _of("check_range", micros, integer(0), integer(60_000_000)))
    made = call("add_micros", (cast(make_date(year, month, day), TIMESTAMP), time), TIMESTAMP)
    return _where_known((year, month, day, hour, minute, second), made)


def try_make_timestamp(*args: Expr) -> Expr:
    """As ``make_timestamp``, with NULL for one that does not exist."""
    if any(may_fail(one) or (one.type in (STRING, BIGINT) and not isinstance(one, Literal)) for one in args):
        raise Refusal(
            "try_make_timestamp of an argument whose computation or cast may fail, such as a STRING or BIGINT column",
            "compute the argument in a subquery of FROM as INT, and seconds as INT or DECIMAL(16, 6)",
        )
    types = (*[INT] * 5, decimal(16, 6))
    args = tuple(cast(one, to) if isinstance(one, Literal) else one for one, to in zip(args, types, strict=True))
    try:
        return call("attempt", (make_timestamp(*args),), TIMESTAMP)
    except (Refusal, NotHeld):
        raise
    except Fault:
        return null(TIMESTAMP)


def in_zone(op: str) -> Callable[[Expr, Expr], Expr]:
    """from_utc_timestamp or to_utc_timestamp."""

    def made(moment: Expr, zone: Expr) -> Expr:
        _without_zone(op, moment)
        return call(op, (dates.moment_of(moment, TIMESTAMP), cast(zone, STRING)), TIMESTAMP)

    return made


def convert_timezone(source: Expr, target: Expr, moment: Expr) -> Expr:
    zones = cast(source, STRING), cast(target, STRING)
    return call("convert_timezone", (*zones, dates.moment_of(moment, TIMESTAMP)), TIMESTAMP)


def parsed(op: str) -> Callable[[Expr, Expr], Expr]:
    """A function from a string and a pattern of Spark's letters to a TIMESTAMP."""

    def made(value: Expr, pattern: Expr) -> Expr:
        try:
            check_pattern(dates.word("a pattern", pattern))
        except ValueError as error:
            raise Fault(str(error)) from None
        return call(op, (cast(value, STRING), pattern), TIMESTAMP)

    return made


def from_unixtime(seconds: Expr, pattern: Expr | None = None) -> Expr:
    moment = call("timestamp_seconds", (arithmetic.number("from_unixtime", seconds, BIGINT),), TIMESTAMP)
    return dates.date_format(_in_utc(moment), text(_SECONDS) if pattern is None else pattern)


def _in_utc(moment: Expr) -> Expr:
    """A moment that a number of units since 1970 in UTC names: in a time zone a TIMESTAMP_LTZ, as in Spark."""
    return moment if time_zone() == UTC else retyped(moment, TIMESTAMP_LTZ)


def _zoned(moment: Expr) -> Expr:
    """A DATE or a text as the moment that it names in the time zone of the catalog."""
    return cast(moment, TIMESTAMP_LTZ) if time_zone() != UTC and moment.type in (DATE, STRING) else moment


def unix(unit: int) -> Callable[[Expr], Expr]:
    """Whole units since 1970, rounded down."""

    def made(moment: Expr) -> Expr:
        t = _micros(_zoned(moment))
        return t if unit == 1 else _of("div_int", _of("sub_int", t, _of("pmod_int", t, integer(unit))), integer(unit))

    return made


def unix_timestamp(moment: Expr, pattern: Expr | None = None) -> Expr:
    """Whole seconds since 1970, rounded towards 1970, of a moment or of a text in the form of a pattern."""
    if moment.type == STRING:
        moment = parsed("parse_timestamp")(moment, pattern or text(_SECONDS))
        moment = moment if time_zone() == UTC else cast(moment, TIMESTAMP_LTZ)
    return _of("div_int", _micros(_zoned(moment)), integer(1_000_000))


def since_epoch(unit: int) -> Callable[[Expr], Expr]:
    """The moment of a whole number of units since 1970."""

    def made(number: Expr) -> Expr:
        if not (number.type.is_integer or number.type == VOID):
            raise Fault(f"a number of milliseconds or microseconds must be an integer, not {number.type}")
        return _in_utc(retyped(_of("mul_int", cast(number, BIGINT), integer(unit)), TIMESTAMP))

    return made


def timestamp_seconds(number: Expr) -> Expr:
    """The moment of a number of seconds since 1970. A decimal has at most six digits after the point; further digits
    of a DOUBLE are cut off, and NaN and infinities give NULL."""
    return _in_utc(_timestamp_of_seconds(number))


def _timestamp_of_seconds(number: Expr) -> Expr:
    if not (number.type.is_numeric or number.type == VOID):
        raise Fault(f"timestamp_seconds takes a number, not {number.type}")
    if number.type.is_float:
        finite = call("lt_float", (call("abs_float", (cast(number, DOUBLE),), DOUBLE), Literal(inf, DOUBLE)), BOOLEAN)
        unknown = null(TIMESTAMP)
        return unknown if finite == FALSE else logic.choose([(finite, cast(number, TIMESTAMP))], unknown)
    made = cast(number, TIMESTAMP)
    if number.type.is_decimal and number.type.scale > 6:
        rest = _of("mod_int", number, power_of_ten(number.type.scale - 6))
        return call("add_micros", (made, _of("check_range", rest, integer(0), integer(0))), TIMESTAMP)
    return made


def epoch(moment: Expr) -> Expr:
    """EXTRACT(EPOCH): seconds since 1970, with their fraction."""
    return retyped(_micros(moment), decimal(20, 6))


def seconds_between(start: Expr, end: Expr) -> Expr:
    """EXTRACT(EPOCH FROM end - start)."""
    return retyped(_of("sub_int", _micros(end), _micros(start)), decimal(20, 6))


def within_minute(unit: int) -> Callable[[Expr], Expr]:
    """EXTRACT(MILLISECONDS) and the like: units since the start of the minute."""
    return lambda t: _of("div_int", _of("pmod_int", _local_micros(t), integer(60_000_000)), integer(unit))


def isodow(moment: Expr) -> Expr:
    """1 is Monday, 7 is Sunday."""
    return call("add_int", (dates.part("weekday")(moment), integer(1)), INT)


def isoyear(moment: Expr) -> Expr:
    """The year of the ISO week, which is the year of its Thursday."""
    day = dates.moment_of(moment, DATE)
    thursday = call("date_add_days", (day, _of("sub_int", integer(3), dates.part("weekday")(day))), DATE)
    return dates.part("year")(thursday)


def years_by(unit: int, first: int) -> Callable[[Expr], Expr]:
    """Decades (from 0), centuries and millennia (from 1)."""
    return lambda moment: call(
        "div_int", (call("add_int", (dates.part("year")(moment), integer(first)), BIGINT), integer(unit)), INT
    )
