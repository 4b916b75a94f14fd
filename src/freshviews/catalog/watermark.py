"""Reads the watermark of a table: the largest time so far, minus a delay. An inserted row with an earlier time is late.

``WATERMARK FOR ts AS ts - INTERVAL '10' MINUTES`` of CREATE TABLE is stored as the property ``'freshviews.watermark' =
'10 minutes on ts'``. The property ``'freshviews.late'`` says whether late rows are refused or dropped.
"""

from __future__ import annotations

import re

from freshviews.catalog.definitions import TableDef
from freshviews.catalog.window import PROPERTY as WINDOW
from freshviews.records import dataclass

PROPERTY = "freshviews.watermark"
LATE = "freshviews.late"
POLICIES = ("refuse", "drop")

_FORM = re.compile(r"\s*(\d+)\s+(day|hour|minute|second|microsecond)s?\s+on\s+(.*\S)\s*", re.IGNORECASE)
_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "microsecond": 1}


@dataclass(frozen=True)
class Watermark:
    """The time ``column``, the ``delay`` in microseconds, and whether late rows are dropped instead of refused."""

    column: str
    delay: int
    drops: bool = False


def watermark_of(table: TableDef) -> Watermark | None:
    """The watermark of a table; None if it has none. Raises ValueError with the accepted forms."""
    properties = dict(table.properties)
    text, late = properties.get(PROPERTY), properties.get(LATE)
    if late is not None and late not in POLICIES:
        raise ValueError(f"{LATE} must be 'refuse' or 'drop', not {late!r}")
    if text is None:
        if late is not None:
            raise ValueError(f"{LATE} needs a watermark; add WATERMARK FOR ts AS ts - INTERVAL '10' MINUTES")
        return None
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{PROPERTY}: '{text}' is not a watermark; write for example '10 minutes on ts'")
    column = next((one for one in table.columns if one.name.lower() == found[3].lower()), None)
    if column is None or column.type.name != "TIMESTAMP":
        known = ", ".join(one.name for one in table.columns if one.type.name == "TIMESTAMP") or "none"
        raise ValueError(f"{found[3]} is not a TIMESTAMP column of table {table.name}; it has {known}")
    delay = int(found[1]) * _MICROS[found[2].lower()]
    if delay >= 2**62:
        raise ValueError(f"a watermark of {text.strip()} is never reached; shorten the delay")
    return Watermark(column.name, delay, late == "drop")


def takes_whole_versions(table: TableDef) -> bool:
    """True if the rows of a version must come as one batch, as the engine decides by all of them which rows stay: the
    table has a window or a watermark."""
    return not {WINDOW, PROPERTY}.isdisjoint(dict(table.properties))
