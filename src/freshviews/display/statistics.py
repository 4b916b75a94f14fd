"""Defines what ``Database.stats`` returns: a dict of numbers that prints as a table with units."""

from __future__ import annotations

from typing import Any, ClassVar

from freshviews.display.grid import Grid, bytes_text, rows_text, seconds_text


class Stats(dict[str, Any]):
    """Counts of a database, a dict; printed, a table with units.

    Attributes
    ----------
    units
        The unit of each count, by name.

    Examples
    --------
    >>> print(db.stats())
    version 1: 2 strings of ..., ... in all
    name     kind   rows    memory  updates  time  strategy
    items    table  2 rows  ...
    by_part  view   2 rows  ...
    """

    units: ClassVar[dict[str, str]] = {
        "version": "batches",
        "strings": "strings",
        "string_bytes": "bytes",
        "bytes": "bytes",
        "rows": "rows",
        "updates": "rows",
        "seconds": "seconds",
    }

    def _grid(self) -> Grid:
        names = ("name", "kind", "rows", "memory", "updates", "time", "strategy")
        rows = [
            (
                name,
                kind.removesuffix("s"),
                rows_text(one["rows"]),
                bytes_text(one["bytes"]),
                rows_text(one["updates"]),
                seconds_text(one["seconds"]),
                one.get("strategy", ""),
            )
            for kind in ("tables", "views")
            for name, one in self[kind].items()
        ]
        strings = f"{self['strings']:,} strings of {bytes_text(self['string_bytes'])}"
        caption = f"version {self['version']:,}: {strings}, {bytes_text(self['bytes'])} in all"
        return Grid(caption, names, (), rows)

    def __repr__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()
