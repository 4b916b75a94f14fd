"""The compiled operations on dates (days since 1970) and timestamps (microseconds since 1970)."""

from __future__ import annotations

from freshviews.kernel.memory.mem import add_overflows, inlined, jit, mul_overflows
from freshviews.kernel.scalar.failure import DATE_RANGE, fail
from freshviews.types import calendar
from freshviews.types.calendar import GREATEST_DAY, LEAST_DAY, MICROS_PER_DAY, MICROS_PER_SECOND
from freshviews.types.sqltype import NULL

MICROS_PER_MINUTE = 60 * MICROS_PER_SECOND
MICROS_PER_HOUR = 60 * MICROS_PER_MINUTE

_civil = jit(calendar.civil_from_days)
_days = jit(calendar.days_from_civil)
_month_length = jit(calendar.days_in_month)


@inlined
def _date(d: int, status: int) -> int:
    """The code of a day, or an error."""
    return d if LEAST_DAY <= d <= GREATEST_DAY else fail(status, DATE_RANGE)


@inlined
def _timestamp(days: int, micros: int, status: int) -> int:
    """The code of a day and a time of day, or an error."""
    if mul_overflows(days, MICROS_PER_DAY) or add_overflows(days * MICROS_PER_DAY, micros):
        # The first day of the range begins before the least timestamp.
        if days < 0 and not mul_overflows(days + 1, MICROS_PER_DAY):
            rest = micros - MICROS_PER_DAY
            if not add_overflows((days + 1) * MICROS_PER_DAY, rest):
                total = (days + 1) * MICROS_PER_DAY + rest
                return total if total != NULL else fail(status, DATE_RANGE)
        return fail(status, DATE_RANGE)
    total = days * MICROS_PER_DAY + micros
    return total if total != NULL else fail(status, DATE_RANGE)


@jit
def year(d: int) -> int:
    return NULL if d == NULL else _civil(d)[0]


@jit
def quarter(d: int) -> int:
    return NULL if d == NULL else (_civil(d)[1] + 2) // 3


@jit
def month(d: int) -> int:
    return NULL if d == NULL else _civil(d)[1]


@jit
def day(d: int) -> int:
    return NULL if d == NULL else _civil(d)[2]


@inlined
def dayofweek(d: int) -> int:
    return NULL if d == NULL else (d + 4) % 7 + 1  # 1970-01-01 was a Thursday


@inlined
def weekday(d: int) -> int:
    return NULL if d == NULL else (d + 3) % 7


@jit
def dayofyear(d: int) -> int:
    return NULL if d == NULL else d - _days(_civil(d)[0], 1, 1) + 1


@jit
def weekofyear(d: int) -> int:
    if d == NULL:
        return NULL
    thursday = d - (d + 3) % 7 + 3  # the year of its Thursday is the year of an ISO week
    return (thursday - _days(_civil(thursday)[0], 1, 1)) // 7 + 1


@jit
def last_day(d: int, status: int) -> int:
    if d == NULL:
        return NULL
    y, m, _ = _civil(d)
    return _date(_days(y, m, _month_length(y, m)), status)


@inlined
def hour(t: int) -> int:
    return NULL if t == NULL else t // MICROS_PER_HOUR % 24


@inlined
def minute(t: int) -> int:
    return NULL if t == NULL else t // MICROS_PER_MINUTE % 60


@inlined
def second(t: int) -> int:
    return NULL if t == NULL else t // MICROS_PER_SECOND % 60


@inlined
def timestamp_to_date(t: int) -> int:
    return NULL if t == NULL else t // MICROS_PER_DAY


@inlined
def date_to_timestamp(d: int, status: int) -> int:
    return NULL if d == NULL else _timestamp(d, 0, status)


@inlined
def unix_timestamp(t: int) -> int:
    return NULL if t == NULL else t // MICROS_PER_SECOND


@inlined
def timestamp_seconds(n: int, status: int) -> int:
    if n == NULL:
        return NULL
    return fail(status, DATE_RANGE) if mul_overflows(n, MICROS_PER_SECOND) else n * MICROS_PER_SECOND


@inlined
def date_diff_days(a: int, b: int) -> int:
    return NULL if a == NULL or b == NULL else a - b


@inlined
def date_add_days(d: int, n: int, status: int) -> int:
    if d == NULL or n == NULL:
        return NULL
    return fail(status, DATE_RANGE) if add_overflows(d, n) else _date(d + n, status)


@inlined
def add_micros(t: int, n: int, status: int) -> int:
    if t == NULL or n == NULL:
        return NULL
    return fail(status, DATE_RANGE) if add_overflows(t, n) or t + n == NULL else t + n


@jit
def _shift_months(d: int, n: int) -> int:
    """The day ``n`` months later, ``n`` within 2**40; a day beyond the end of the month becomes its last day."""
    y, m, of_month = _civil(d)
    months = y * 12 + m - 1 + n
    y, m = months // 12, months % 12 + 1
    return _days(y, m, min(of_month, _month_length(y, m)))


@jit
def add_months(d: int, n: int, status: int) -> int:
    if d == NULL or n == NULL:
        return NULL
    if not -(2**40) < n < 2**40:
        return fail(status, DATE_RANGE)
    return _date(_shift_months(d, n), status)


@jit
def add_months_timestamp(t: int, n: int, status: int) -> int:
    if t == NULL or n == NULL:
        return NULL
    if not -(2**40) < n < 2**40:
        return fail(status, DATE_RANGE)
    return _timestamp(_shift_months(t // MICROS_PER_DAY, n), t % MICROS_PER_DAY, status)


@jit
def _truncate(d: int, unit: int) -> int:
    """The first day of the unit that contains a day; units as in ``DATE_UNITS``."""
    if unit == 3:
        return d - (d + 3) % 7
    y, m, _ = _civil(d)
    if unit == 0:
        return _days(y, 1, 1)
    return _days(y, m, 1) if unit == 2 else _days(y, (m - 1) // 3 * 3 + 1, 1)


@jit
def trunc_date(d: int, unit: int, status: int) -> int:
    return NULL if d == NULL or unit == NULL else _date(_truncate(d, unit), status)


@jit
def trunc_timestamp(t: int, unit: int, status: int) -> int:
    if t == NULL or unit == NULL:
        return NULL
    if unit < 4:
        return _timestamp(_truncate(t // MICROS_PER_DAY, unit), 0, status)
    size = MICROS_PER_DAY
    if unit == 5:
        size = MICROS_PER_HOUR
    elif unit == 6:
        size = MICROS_PER_MINUTE
    elif unit == 7:
        size = MICROS_PER_SECOND
    # t - t % size, except for the first unit, which begins before the least timestamp
    return fail(status, DATE_RANGE) if add_overflows(t, -(t % size)) else t - t % size
