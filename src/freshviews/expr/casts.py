"""Converts values to text and back, as Spark's CAST and ``date_format`` do."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache

import numpy as np

from freshviews.expr.parsing import pieces_of
from freshviews.types import NULL, RESERVED, NotHeldError
from freshviews.types.calendar import (
    GREATEST_DAY,
    LEAST_DAY,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    days_in_month,
)

# CAST strips blanks and control characters at both ends, as Spark's trimAll does; a CAST to a number with a fraction
# strips as Java's trim does.
_TRIMMED = "".join(map(chr, range(0x21)))
_BLANKS = _TRIMMED + "\x7f"

_CONTEXT = Context(prec=400, rounding=ROUND_HALF_UP)


def bool_to_string(value: bool) -> str:
    return "true" if value else "false"


def _java_text(negative: bool, digits: str, exponent: int) -> str:
    """The number ``d1.d2... * 10**exponent``, given its digits, as Java prints it."""
    sign = "-" if negative else ""
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, text: str) -> str:
    """A number as Java prints it, from ``text``, its shortest digits in scientific notation."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0.0"
    mantissa, _, exponent = text.lstrip("-").partition("e")
    if len(mantissa) <= 2:  # Java prints at least two digits: 4.9E-324 for the least double, 5e-324
        mantissa, _, exponent = f"{abs(value):.1e}".partition("e")
    digits = mantissa.replace(".", "").rstrip("0") or "0"
    return _java_text(value < 0, digits, int(exponent))


def float_to_string(value: float) -> str:
    """The shortest digits that read back as the same double: ``1.5``, ``1.0E10``, ``NaN``, ``Infinity``."""
    return _shortest(value, np.format_float_scientific(value))


def float32_to_string(value: float) -> str:
    """As ``float_to_string``, for a float32 held in a double."""
    return _shortest(value, np.format_float_scientific(np.float32(value)))


def decimal_to_string(unscaled: int, scale: int) -> str:
    """All ``scale`` digits, no exponent: 1230 of scale 2 is ``12.30``."""
    if scale == 0:
        return str(unscaled)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _year_text(year: int) -> str:
    if year < 0:
        return f"-{-year:04d}"
    return f"{year:04d}" if year <= 9999 else f"+{year}"


def date_to_string(days: int) -> str:
    """``2026-01-31``; a year past 9999 has a plus."""
    year, month, day = civil_from_days(days)
    return f"{_year_text(year)}-{month:02d}-{day:02d}"


def timestamp_to_string(micros: int) -> str:
    """``2026-01-31 23:59:59.25``: the fraction has no trailing zeros and is omitted if zero."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    seconds, fraction = divmod(rest, MICROS_PER_SECOND)
    text = f"{date_to_string(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_Piece = Callable[[int, int], str]


def _number(width: int, value: Callable[[int, int], int]) -> _Piece:
    return lambda days, rest: str(value(days, rest)).rjust(width, "0")


def _year_piece(width: int) -> _Piece:
    if width == 2:
        return lambda days, rest: f"{civil_from_days(days)[0] % 100:02d}"
    return lambda days, rest: str(civil_from_days(days)[0]).rjust(width, "0")


def _era_piece(width: int) -> _Piece:
    names = ("Before Christ", "Anno Domini") if width == 4 else ("BC", "AD")
    return lambda days, rest: names[civil_from_days(days)[0] > 0]


def _quarter_piece(width: int) -> _Piece:
    def printed(days: int, rest: int) -> str:
        quarter = (civil_from_days(days)[1] + 2) // 3
        if width <= 2:
            return str(quarter).rjust(width, "0")
        return f"Q{quarter}" if width == 3 else f"{quarter}{('st', 'nd', 'rd', 'th')[quarter - 1]} quarter"

    return printed


def _month_piece(width: int) -> _Piece:
    if width <= 2:
        return _number(width, lambda days, rest: civil_from_days(days)[1])
    return lambda days, rest: _MONTHS[civil_from_days(days)[1] - 1][: 3 if width == 3 else None]


def _weekday_piece(width: int) -> _Piece:
    return lambda days, rest: _WEEKDAYS[(days + 3) % 7][: 3 if width <= 3 else None]


def _fraction_piece(width: int) -> _Piece:
    return lambda days, rest: f"{rest % MICROS_PER_SECOND:06d}".ljust(width, "0")[:width]


def _day_of_year(days: int, rest: int) -> int:
    return days - days_from_civil(civil_from_days(days)[0], 1, 1) + 1


def _hours(days: int, rest: int) -> int:
    return rest // (3600 * MICROS_PER_SECOND)


_LETTERS: dict[str, tuple[int, Callable[[int], _Piece]]] = {
    # letter: the longest accepted run of it, and the function that prints it
    "y": (6, _year_piece),
    "M": (4, _month_piece),
    "L": (4, _month_piece),
    "Q": (4, _quarter_piece),
    "q": (4, _quarter_piece),
    "G": (4, _era_piece),
    "F": (1, lambda width: _number(width, lambda days, rest: (civil_from_days(days)[2] - 1) % 7 + 1)),
    "k": (2, lambda width: _number(width, lambda days, rest: (_hours(days, rest) + 23) % 24 + 1)),
    "K": (2, lambda width: _number(width, lambda days, rest: _hours(days, rest) % 12)),
    "d": (2, lambda width: _number(width, lambda days, rest: civil_from_days(days)[2])),
    "D": (3, lambda width: _number(width, _day_of_year)),
    "E": (4, _weekday_piece),
    "a": (1, lambda width: lambda days, rest: "AM" if _hours(days, rest) < 12 else "PM"),
    "H": (2, lambda width: _number(width, _hours)),
    "h": (2, lambda width: _number(width, lambda days, rest: (_hours(days, rest) + 11) % 12 + 1)),
    "m": (2, lambda width: _number(width, lambda days, rest: rest // (60 * MICROS_PER_SECOND) % 60)),
    "s": (2, lambda width: _number(width, lambda days, rest: rest // MICROS_PER_SECOND % 60)),
    "S": (9, _fraction_piece),
}


@lru_cache(maxsize=256)
def _date_pieces(pattern: str) -> tuple[_Piece, ...]:
    pieces: list[_Piece] = []
    for run, literal in pieces_of(pattern, "date pattern"):
        if literal:
            pieces.append(lambda days, rest, literal=literal: literal)  # type: ignore[misc]
            continue
        if run in "[]":
            continue
        longest, make = _LETTERS.get(run[0], (0, _year_piece))
        if len(run) > longest:
            accepted = ", ".join(letter * most for letter, (most, _) in _LETTERS.items())
            raise ValueError(
                f"{run!r} in the date pattern {pattern!r} is not supported; accepted: {accepted}, "
                "shorter runs of these letters, and 'quoted text'"
            )
        pieces.append(make(len(run)))
    return tuple(pieces)


def date_format(micros: int, pattern: str) -> str:
    """A timestamp printed by a pattern of Spark's letters G y M L Q q d D F E a H h k K m s S; names are English."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    return "".join([piece(days, rest) for piece in _date_pieces(pattern)])


_INTEGER = re.compile(r"[+-]?[0-9]+")
# Each of these matches a digit in one way only, so that a long text does not take quadratic time.
_FLOAT = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?"
)
_SPECIAL = re.compile(r"[+-]?(?:NaN|(?i:inf|infinity))|(?i:nan)")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,10})?")
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})"
    r"(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(?:([0-9]{1,2}(?::[0-9]{1,2}|:[0-9]{2}:[0-9]{2})?)|([0-9]{4}|[0-9]{6}))")


def string_to_int(text: str, low: int, high: int) -> int:
    """Digits with an optional sign, between ``low`` and ``high``."""
    stripped = text.strip(_BLANKS)
    if not _INTEGER.fullmatch(stripped):
        raise ValueError(f"{text!r} is not an integer; digits with an optional sign are accepted")
    # int() refuses more than 4300 digits; 25 without leading zeros are already out of range.
    digits = stripped.lstrip("+-").lstrip("0")
    value = int(digits or "0") if len(digits) <= 25 else high + 1
    value = -value if stripped.startswith("-") else value
    if value == NULL < low <= NULL + 1:
        raise NotHeldError(RESERVED)
    if not low <= value <= high or len(digits) > 25:
        raise ValueError(f"{text!r} is outside {low} to {high}")
    return value


def string_to_float(text: str) -> float:
    """A number as Java reads it: decimal or hexadecimal, with an optional d or f; or inf, infinity, nan in any case."""
    stripped = text.strip(_TRIMMED)
    if found := _FLOAT.fullmatch(stripped):
        return float(found[1])
    if _SPECIAL.fullmatch(stripped):
        return float(stripped)
    if found := _HEXADECIMAL.fullmatch(stripped):
        try:
            return float.fromhex(found[1])
        except OverflowError:
            return float("-inf" if stripped.startswith("-") else "inf")
    raise ValueError(f"{text!r} is not a number; a decimal number, Infinity or NaN is accepted")


def string_to_decimal(text: str, precision: int, scale: int) -> int:
    """Unscaled value, HALF_UP at ``scale`` digits, of at most ``precision`` digits."""
    stripped = text.strip(_TRIMMED)
    if not _DECIMAL.fullmatch(stripped):
        raise ValueError(f"{text!r} is not a decimal number")
    try:
        number = Decimal(stripped)
        if not -(2**31) < int(number.as_tuple().exponent) < 2**31:
            raise InvalidOperation
        if number and number.adjusted() >= precision - scale:
            raise InvalidOperation
        if number.adjusted() < -scale - 1:
            return 0
        unscaled = int(number.scaleb(scale, _CONTEXT).quantize(Decimal(1), context=_CONTEXT))
    except InvalidOperation:
        unscaled = 10**precision
    if abs(unscaled) >= 10**precision:
        raise ValueError(f"{text!r} does not fit DECIMAL({precision}, {scale})")
    return unscaled


def _days(found: re.Match[str] | None) -> int | None:
    """The day that a match of a pattern names; None if there is no such day."""
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[2] or 1), int(found[3] or 1)
    if not (1 <= month <= 12 and 1 <= day <= days_in_month(year, month)):
        return None
    return days_from_civil(year, month, day)


def string_to_date(text: str) -> int:
    """Days of ``yyyy``, ``yyyy-MM`` or ``yyyy-MM-dd``; a blank or T after the day, and all that follows, is ignored."""
    days = _days(_DATE.fullmatch(text.strip(_BLANKS)))
    if days is None or not LEAST_DAY <= days <= GREATEST_DAY:
        raise ValueError(f"{text!r} is not a date; yyyy-MM-dd is accepted")
    return days


def string_to_timestamp(text: str) -> int:
    """Microseconds of a date, or of a day and ``HH[:mm[:ss[.fraction]]]``; digits after the sixth are dropped.

    TIMESTAMP has no zone and counts as UTC: an offset after the seconds (``Z``, ``+02:00``) is subtracted.
    """
    found = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    days = _days(found)
    if found is None or days is None:
        raise ValueError(f"{text!r} is not a timestamp; yyyy-MM-dd HH:mm:ss[.ffffff] is accepted")
    hour, minute, second = (int(found[part] or 0) for part in (4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{text!r} is not a timestamp; the time runs from 00:00:00 to 23:59:59")
    seconds = days * 86_400 + (hour * 60 + minute) * 60 + second - _offset(found[8], text)
    micros = seconds * MICROS_PER_SECOND + int((found[7] or "").ljust(6, "0")[:6])
    if micros == NULL:
        raise NotHeldError(f"{text!r}: {RESERVED}")
    if not NULL < micros < 2**63:
        raise ValueError(f"{text!r} is outside the range of TIMESTAMP")
    return micros


def has_offset(text: str) -> bool:
    """True for a text of ``string_to_timestamp`` with an offset or Z after the time."""
    found = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    return found is not None and bool((found[8] or "").strip(_TRIMMED))


_FINER = re.compile(r"\.[0-9]{6}[0-9]*[1-9]")


def whole_date(text: str) -> int:
    """As ``string_to_date``, but text with a time of day other than midnight is refused."""
    days = string_to_date(text)
    if re.search("[ T]", text.strip()) and string_to_timestamp(text) != days * MICROS_PER_DAY:
        raise ValueError(f"{text!r} has a time of day; yyyy-MM-dd is accepted")
    return days


def whole_timestamp(text: str) -> int:
    """As ``string_to_timestamp``, but text with digits below microseconds is refused."""
    if _FINER.search(text):
        raise ValueError(f"{text!r} is finer than microseconds; yyyy-MM-dd HH:mm:ss[.ffffff] is accepted")
    return string_to_timestamp(text)


def _offset(zone: str | None, whole: str) -> int:
    """The offset, in seconds, that follows a time; 0 if nothing follows, and for Z, UTC, GMT and UT."""
    name = (zone or "").strip(_TRIMMED)
    if name in ("", "Z", "UTC", "GMT", "UT"):
        return 0
    found = _OFFSET.fullmatch(name)
    parts = [] if found is None else (found[2].split(":") if found[2] else re.findall("..", found[3]))
    hours, minutes, seconds = [*map(int, parts), 0, 0, 0][:3]
    offset = (hours * 60 + minutes) * 60 + seconds
    if found is None or minutes > 59 or seconds > 59 or offset > 18 * 3600:
        raise ValueError(f"{whole!r} has {name!r} after the time; Z and offsets from -18:00 to +18:00 are accepted")
    return -offset if found[1] == "-" else offset


_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))


def string_to_bool(text: str) -> bool:
    """t, true, y, yes, 1 or f, false, n, no, 0, in any case."""
    word = text.strip(_BLANKS).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"{text!r} is not a boolean; true, t, yes, y, 1, false, f, no, n and 0 are accepted")
