"""Parses dates and timestamps by a pattern of Spark's letters, such as ``yyyy-MM-dd``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from freshviews.types.calendar import (
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    days_in_month,
)

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_PIECE = re.compile(
    r"(?P<run>([A-Za-z])\2*)|(?P<quoted>'(?:[^']|'')*')|(?P<bracket>[\[\]])|(?P<other>[^A-Za-z'\[\]{}#]+)"
)
_MOST = {"y": 4, "M": 4, "L": 4, "d": 2, "D": 3, "H": 2, "h": 2, "k": 2, "K": 2, "m": 2, "s": 2, "S": 9, "a": 1}
_EITHER = (("D", "M"), ("D", "d"), ("H", "h"), ("H", "k"), ("H", "K"), ("h", "k"), ("h", "K"), ("k", "K"))
"""Letters of which a pattern has one."""


def pieces_of(pattern: str, what: str) -> Iterator[tuple[str, str]]:
    """The runs of one letter in a pattern, and the texts between them, in order: one of a pair is empty. A run may also
    be a bracket, which begins or ends a part that may be absent."""
    place = depth = 0
    while place < len(pattern):
        found = _PIECE.match(pattern, place)
        if found is None and pattern[place] == "'":
            raise ValueError(f"the {what} {pattern!r} has a quote that is not closed")
        if found is None:
            raise ValueError(f"{pattern[place]!r} in the {what} {pattern!r} needs quotes around it")
        place = found.end()
        depth += {"[": 1, "]": -1}.get(found[0], 0)
        if depth < 0:
            raise ValueError(f"] in the {what} {pattern!r} closes no [")
        quoted = found["quoted"] and (found["quoted"][1:-1].replace("''", "'") or "'")
        yield found["run"] or found["bracket"] or "", found["other"] or quoted or ""


@lru_cache(maxsize=256)
def _reader(pattern: str) -> re.Pattern[str]:
    """A regular expression whose groups are the letters. Raises ValueError for an unsupported pattern."""
    parts: list[str] = []
    seen: set[str] = set()
    for run, literal in pieces_of(pattern, "pattern"):
        if literal:
            parts.append(re.escape(literal))
            continue
        if run in "[]":
            parts.append("(?:" if run == "[" else ")?")
            continue
        letter = run[0].replace("L", "M")
        if len(run) > _MOST.get(letter, 0) or letter in seen:
            accepted = ", ".join(letter * most for letter, most in _MOST.items())
            raise ValueError(
                f"{run!r} in the pattern {pattern!r} is not supported; accepted: 'quoted text', and one run of each "
                f"letter, at most {accepted}"
            )
        seen.add(letter)
        group = "yy" if run == "yy" else letter
        parts.append(f"(?P<{group}>{_digits(letter, len(run))})")
    both = next((pair for pair in _EITHER if seen.issuperset(pair)), None)
    if both is not None:
        raise ValueError(f"the pattern {pattern!r} has both {both[0]} and {both[1]}; write only one of them")
    open_brackets = parts.count("(?:") - parts.count(")?")
    return re.compile("".join(parts) + ")?" * open_brackets, re.IGNORECASE)


def _digits(letter: str, width: int) -> str:
    if letter == "a":
        return "AM|PM"
    if letter == "M" and width > 2:
        return "|".join(name if width == 4 else name[:3] for name in _MONTHS)
    if letter == "y":
        return {1: "[0-9]{1,5}", 2: "[0-9]{2}"}.get(width, "[0-9]{4}")
    if letter == "S":
        return f"[0-9]{{1,{width}}}"
    return "[0-9]{1,19}" if width == 1 else f"[0-9]{{{width}}}"


def parse_timestamp(text: str, pattern: str) -> int:
    """Microseconds of a timestamp by a pattern of the letters y M L d D H h k K m s S a; names are English."""
    found = _reader(pattern).fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} does not have the form {pattern!r}")
    parts = found.groupdict()

    def number(letter: str, default: int) -> int:
        return int(parts[letter]) if parts.get(letter) else default

    year = 2000 + number("yy", 0) if parts.get("yy") else number("y", 1970)
    name = parts.get("M") or "1"
    month = int(name) if name.isdigit() else 1 + [one[:3].lower() for one in _MONTHS].index(name[:3].lower())
    day = number("d", 1)
    hour, later = number("H", 0), 12 * ((parts.get("a") or "AM").upper() == "PM")
    if parts.get("h"):
        hour = number("h", 12) % 12 + later if 1 <= number("h", 12) <= 12 else 24
    if parts.get("K"):
        hour = number("K", 0) + later if number("K", 0) < 12 else 24
    if parts.get("k"):
        hour = number("k", 24) % 24 if 1 <= number("k", 24) <= 24 else 24
    if parts.get("a") and not (parts.get("h") or parts.get("K")):
        if not (parts.get("H") or parts.get("k")):
            hour = later
        if (hour >= 12) != (later == 12):
            raise ValueError(f"{text!r} has an hour that is not {parts['a']}")
    if parts.get("D"):
        days = number("D", 1)
        if not 1 <= days <= days_from_civil(year + 1, 1, 1) - days_from_civil(year, 1, 1):
            raise ValueError(f"{text!r} is not a date and time of the calendar")
        _, month, day = civil_from_days(days_from_civil(year, 1, 1) + days - 1)
    minute, second = number("m", 0), number("s", 0)
    if not (1 <= month <= 12 and 1 <= day <= days_in_month(year, month) and hour < 24 and minute < 60 and second < 60):
        raise ValueError(f"{text!r} is not a date and time of the calendar")
    fraction = int((parts.get("S") or "").ljust(6, "0")[:6])
    seconds = (hour * 60 + minute) * 60 + second
    return days_from_civil(year, month, day) * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + fraction


def check_pattern(pattern: str) -> None:
    """Raise ValueError for an unsupported pattern."""
    _reader(pattern)
