"""Parses dates and timestamps by a pattern of Spark's letters, such as ``yyyy-MM-dd``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from freshviews.types.calendar import MICROS_PER_DAY, MICROS_PER_SECOND, days_from_civil, days_in_month

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_PIECE = re.compile(r"(?P<run>([A-Za-z])\2*)|(?P<quoted>'(?:[^']|'')*')|(?P<other>[^A-Za-z']+)")
_MOST = {"y": 4, "M": 4, "d": 2, "H": 2, "h": 2, "m": 2, "s": 2, "S": 9, "a": 1}


def pieces_of(pattern: str, what: str) -> Iterator[tuple[str, str]]:
    """The runs of one letter in a pattern, and the texts between them, in order: one of a pair is empty."""
    place = 0
    while place < len(pattern):
        found = _PIECE.match(pattern, place)
        if found is None:
            raise ValueError(f"the {what} {pattern!r} has a quote that is not closed")
        place = found.end()
        quoted = found["quoted"] and (found["quoted"][1:-1].replace("''", "'") or "'")
        yield found["run"] or "", found["other"] or quoted or ""


@lru_cache(maxsize=256)
def _reader(pattern: str) -> re.Pattern[str]:
    """A regular expression whose groups are the letters. Raises ValueError for an unsupported pattern."""
    parts: list[str] = []
    seen: set[str] = set()
    for run, literal in pieces_of(pattern, "pattern"):
        if literal:
            parts.append(re.escape(literal))
            continue
        letter = run[0]
        if len(run) > _MOST.get(letter, 0) or letter in seen:
            accepted = ", ".join(letter * most for letter, most in _MOST.items())
            raise ValueError(
                f"{run!r} in the pattern {pattern!r} is not supported; accepted: 'quoted text', and one run of each "
                f"letter, at most {accepted}"
            )
        seen.add(letter)
        parts.append(f"(?P<{letter}>{_digits(letter, len(run))})")
    return re.compile("".join(parts), re.IGNORECASE)


def _digits(letter: str, width: int) -> str:
    if letter == "a":
        return "AM|PM"
    if letter == "M" and width > 2:
        return "|".join(name if width == 4 else name[:3] for name in _MONTHS)
    if letter == "y":
        return "[0-9]{2}" if width == 2 else "[0-9]{4}"
    if letter == "S":
        return f"[0-9]{{{width}}}"
    return "[0-9]{1,2}" if width == 1 else "[0-9]{2}"


def parse_timestamp(text: str, pattern: str) -> int:
    """Microseconds of a timestamp in the form of a pattern of the letters y M d H h m s S a; names are English."""
    found = _reader(pattern).fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} does not have the form {pattern!r}")
    parts = found.groupdict()

    def number(letter: str, default: int) -> int:
        return int(parts[letter]) if parts.get(letter) else default

    year = number("y", 1970)
    if len(parts.get("y") or "") == 2:
        year += 2000
    name = parts.get("M") or "1"
    month = int(name) if name.isdigit() else 1 + [one[:3].lower() for one in _MONTHS].index(name[:3].lower())
    day = number("d", 1)
    hour = number("H", 0)
    if "h" in parts:
        half = number("h", 12)
        hour = half % 12 + 12 * ((parts.get("a") or "AM").upper() == "PM") if 1 <= half <= 12 else 24
    minute, second = number("m", 0), number("s", 0)
    if not (1 <= month <= 12 and 1 <= day <= days_in_month(year, month) and hour < 24 and minute < 60 and second < 60):
        raise ValueError(f"{text!r} is not a date and time of the calendar")
    fraction = int((parts.get("S") or "").ljust(6, "0")[:6])
    seconds = (hour * 60 + minute) * 60 + second
    return days_from_civil(year, month, day) * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + fraction


def check_pattern(pattern: str) -> None:
    """Raise ValueError for an unsupported pattern."""
    _reader(pattern)
