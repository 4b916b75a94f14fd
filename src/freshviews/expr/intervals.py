"""Reads and prints intervals as Spark does: ``INTERVAL '1 02:03:04.5' DAY TO SECOND``.

An interval is a number of months or microseconds. Fields, such as DAY, are numbered as in ``freshviews.types.FIELDS``.
"""

from __future__ import annotations

import re
from functools import cache

from freshviews.types import FIELD_UNITS, FIELDS, NULL, RESERVED, NotHeldError, SqlType

_BLANKS = "".join(map(chr, range(33)))
_DIGITS = {"DAY": 9, "HOUR": 10, "MINUTE": 12, "SECOND": 13}
"""Most digits of the first field."""
_SEPARATORS = {"MONTH": "-", "HOUR": " ", "MINUTE": ":", "SECOND": ":"}
"""The sign between each field and the one before it."""
_MOST = {"MONTH": 11, "HOUR": 23, "MINUTE": 59, "SECOND": 59}
"""Greatest values of fields that follow another one."""


def interval_to_string(code: int, first: int, last: int) -> str:
    """An interval as Spark's CAST prints it."""
    rest, parts = abs(code), []
    for place in range(first, last + 1):
        name = FIELDS[place]
        value, rest = divmod(rest, FIELD_UNITS[name])
        digits = f"{value:02}" if name in ("HOUR", "MINUTE", "SECOND") else str(value)
        parts.append(_SEPARATORS[name] + digits if place > first else digits)
    fraction = f".{rest:06}".rstrip("0") if FIELDS[last] == "SECOND" and rest else ""
    sign = "-" if code < 0 else ""
    return f"INTERVAL '{sign}{''.join(parts)}{fraction}' {_names(first, last)}"


def string_to_interval(text: str, first: int, last: int) -> int:
    """Months or microseconds of a text such as ``1 02:03:04.5``, or of one that ``interval_to_string`` printed.

    Digits after the sixth of a second are dropped, as in Spark.
    """
    found = _pattern(first, last).fullmatch(text.strip(_BLANKS))
    if found is None:
        example = interval_to_string(FIELD_UNITS[FIELDS[first]], first, last).split("'")[1]
        raise ValueError(f"{text!r} is not an INTERVAL {_names(first, last)}; {example!r} is accepted")
    form = "quoted" if found["quoted"] else "plain"
    total = 0
    for place in range(first, last + 1):
        name = FIELDS[place]
        value = int(found[f"{form}_{name}"])
        if place > first and value > _MOST[name]:
            raise ValueError(
                f"{text!r} is not an interval; after another field, {name} must be 0 to {_MOST[name]}"
            )
        total += value * FIELD_UNITS[name]
    if FIELDS[last] == "SECOND":
        total += int((found[f"{form}_fraction"] or "").ljust(6, "0")[:6])
    signs = (found["outer"] or "") + (found[f"{form}_sign"] or "")
    code = -total if signs.count("-") % 2 else total
    if code == NULL:
        raise NotHeldError(f"{text!r}: {RESERVED}")
    kind = SqlType("INTERVAL", first, last)
    if not kind.bounds[0] <= code <= kind.bounds[1]:
        raise ValueError(f"{text!r} is outside the range of {kind}")
    return code


def _names(first: int, last: int) -> str:
    return str(SqlType("INTERVAL", first, last)).removeprefix("INTERVAL ")


@cache
def _pattern(first: int, last: int) -> re.Pattern[str]:
    names = r"\s+".join(_names(first, last).split())
    quoted, plain = _body(first, last, "quoted"), _body(first, last, "plain")
    return re.compile(rf"INTERVAL\s+(?P<outer>[+-])?'(?P<quoted>{quoted})'\s+{names}|{plain}", re.IGNORECASE | re.ASCII)


def _body(first: int, last: int, form: str) -> str:
    """The pattern of the fields, whose groups are named ``form_FIELD``."""
    parts = [f"(?P<{form}_sign>[+-])?"]
    for place in range(first, last + 1):
        name = FIELDS[place]
        months = name in ("YEAR", "MONTH")
        digits = "+" if months else f"{{1,{_DIGITS[name] if place == first else 2}}}"
        parts += [_SEPARATORS[name] if place > first else "", rf"(?P<{form}_{name}>\d{digits})"]
    if FIELDS[last] == "SECOND":
        parts.append(rf"(?:\.(?P<{form}_fraction>\d{{1,9}}))?")
    return "".join(parts)
