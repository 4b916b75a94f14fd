"""Prints a few rows with a caption, as plain text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from freshviews.errors import FreshviewsError
from freshviews.printable import cell
from freshviews.records import dataclass

ROWS = 10
"""Most rows that are shown."""
_COLUMNS = 20
_CHARACTERS = 60
_COLOURS = {"+": "#e3f4e3", "-": "#fbe4e4"}
_RULE = "text-align: left; padding: 2px 8px; white-space: pre"


@dataclass(frozen=True)
class Grid:
    """Rows under a caption. ``types``: a line below the names, or empty. ``marks``: by row, the multiplicity of a
    change. ``more``: there are further rows."""

    caption: str
    names: Sequence[str] = ()
    types: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    marks: Sequence[int] = ()
    more: bool = False

    def text(self) -> str:
        """The grid as lines of text."""
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)] if lines else []
        padded = ["  ".join(f"{one:<{width}}" for one, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([cell(self.caption), *(line.rstrip() for line in padded), *self._rest()])

    def html(self) -> str:
        """The grid as an HTML table."""
        lines = self._lines()
        heads = 1 + bool(self.types)
        parts = [f"<div><strong>{escape(cell(self.caption))}</strong>"]
        if lines:
            parts.append("<table>")
            parts += [f"<tr>{''.join(map(_heading, line))}</tr>" for line in lines[:heads]]
            for line in lines[heads:]:
                colour = _COLOURS.get(line[0][:1] if self.marks else "", "")
                style = f' style="background: {colour}; color: #000"' if colour else ""
                parts.append(f"<tr{style}>{''.join(map(_datum, line))}</tr>")
            parts.append("</table>")
        parts += [f"<em>{escape(line)}</em>" for line in self._rest()]
        return "".join(parts) + "</div>"

    def _lines(self) -> list[list[str]]:
        """The cells of each line: names, types, and rows."""
        if not self.names:
            return []
        lines = [list(self.names), *([list(self.types)] if self.types else []), *map(list, self.rows)]
        cut = [[_short(one) for one in line[:_COLUMNS]] for line in lines]
        if self.marks:
            heads = [""] * (1 + bool(self.types))
            cut = [[mark, *line] for mark, line in zip([*heads, *(f"{m:+d}" for m in self.marks)], cut, strict=True)]
        return cut

    def _rest(self) -> list[str]:
        hidden = len(self.names) - _COLUMNS
        return ["... and more rows"] * self.more + ([f"... and {hidden} more columns"] if hidden > 0 else [])


def _heading(text: str) -> str:
    return f'<th style="{_RULE}">{escape(text)}</th>'


def _datum(text: str) -> str:
    return f'<td style="{_RULE}">{escape(text)}</td>'


def _short(value: object) -> str:
    text = "NULL" if value is None else cell(str(value)[: _CHARACTERS + 1])
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 3] + "..."


class Shown:
    """A class whose objects print as a grid, in notebooks as HTML. ``_grid`` may raise FreshviewsError."""

    def _grid(self) -> Grid:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._tried().text()

    def _repr_html_(self) -> str:
        return self._tried().html()

    def _tried(self) -> Grid:
        try:
            return self._grid()
        except FreshviewsError as error:
            return Grid(f"{type(self).__name__.lower()} {getattr(self, 'name', '')}".rstrip() + f": {error}")


def bytes_text(count: int) -> str:
    """A number of bytes with its unit."""
    return _scaled(float(count), 1000.0, ("B", "KB", "MB", "GB", "TB"))


def seconds_text(seconds: float) -> str:
    """A time with its unit."""
    if seconds >= 1:
        return f"{seconds:,.1f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"


def _scaled(value: float, by: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if value < by:
            return f"{value:.0f} {unit}" if unit == units[0] else f"{value:.1f} {unit}"
        value /= by
    return f"{value:,.1f} {units[-1]}"


def rows_text(rows: int | None) -> str:
    """A number of rows; "not stored" for None."""
    return "not stored" if rows is None else f"{rows:,} row{'' if rows == 1 else 's'}"
