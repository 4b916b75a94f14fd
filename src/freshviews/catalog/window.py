"""Reads the window of a table, a limit beyond which the oldest rows are deleted automatically.

``'100000 rows'`` keeps the last 100000 rows. ``'180 days on created'`` keeps the rows of the last 180 days.
"""

from __future__ import annotations

import re
from dataclasses import replace

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.records import dataclass

PROPERTY = "freshviews.window"

_FORM = re.compile(r"\s*(\d+)\s+(row|day|hour|minute|second)s?(?:\s+on\s+(\S+))?\s*", re.IGNORECASE)
_SECONDS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


@dataclass(frozen=True)
class Window:
    """A limit of ``rows``, or a ``width`` before the latest row, in codes of the time ``column``."""

    rows: int = 0
    column: str = ""
    width: int = 0


def window_of(table: TableDef) -> Window | None:
    """The window of a table; None if it has none. Raises ValueError with the accepted forms."""
    text = dict(table.properties).get(PROPERTY)
    return None if text is None else parse_window(text, table.columns)


def with_its_column(table: TableDef) -> TableDef:
    """The table whose window names its time column, so that a second time column may be added."""
    window = window_of(table)
    text = dict(table.properties).get(PROPERTY, "")
    if window is None or not window.column or re.search(r"\son\s", text, re.IGNORECASE):
        return table
    properties = {**dict(table.properties), PROPERTY: f"{text.strip()} on {window.column}"}
    return replace(table, properties=tuple(properties.items()))


def parse_window(text: str, columns: tuple[ColumnDef, ...]) -> Window:
    """Parse the text of a window for a table with these columns. Raises ValueError.

    ``'100000 rows'`` keeps the last 100000 rows. ``'180 days on created'`` keeps the rows whose ``created`` is less
    than 180 days before the latest ``created`` in the table. A row exactly 180 days older is deleted. ``on created``
    may be omitted if the table has only one time column.
    """
    found = _FORM.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise ValueError(f"'{text}' is not a window; write for example '100000 rows' or '180 days on created'")
    number, unit = int(found[1]), found[2].lower()
    if unit == "row":
        if found[3] is not None:
            raise ValueError(f"'{text}': a window of rows has no time column; leave ON out")
        return Window(rows=number)
    times = [c for c in columns if c.type.name in ("DATE", "TIMESTAMP")]
    if found[3] is not None:
        times = [c for c in times if c.name.lower() == found[3].lower()]
    if len(times) != 1:
        raise ValueError(f"'{text}' needs the name of a DATE or TIMESTAMP column; write '{number} {unit}s on column'")
    (column,) = times
    if column.nullable:
        raise ValueError(f"'{text}': every row needs a time; declare column {column.name} NOT NULL")
    if column.type.name == "DATE":
        if unit != "day":
            raise ValueError(f"'{text}': {column.name} is a DATE; write the window in days")
        return Window(column=column.name, width=number)
    return Window(column=column.name, width=number * _SECONDS[unit] * 1_000_000)
