"""The output of the demo: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.changes import Followed

SHOWN = {
    "delay_by_weather": "minutes",
    "toll_of_weather": "minutes",
    "delay_by_plane": "flights",
    "connections": "times",
    "long_waits": "dep_delay",
}
"""The views, and for each the column that orders the shown rows, greatest first."""

ROWS = 3


class Screen:
    """The changing views; rows that differ from the previous month are marked."""

    def __init__(self, console: Console, out: Path) -> None:
        self.views = {name: Followed(out / name) for name in SHOWN}
        self._console = console
        self._before: dict[str, list[dict[str, Any]]] = {name: [] for name in SHOWN}
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def month(self, heading: str) -> None:
        """Read and show what the sinks have written since the last call."""
        drawn: list[RenderableType] = [Text(heading, "bold")]
        for name, view in self.views.items():
            view.read_on()
            top = view.greatest(SHOWN[name], ROWS)
            if self._live is not None:
                drawn.append(_table(name, view, top, self._before[name]))
            else:
                first = ", ".join(map(_text, top[0].values())) if top else "no row yet"
                drawn.append(f"  {name:<17}{_moved(view)}; first: {first}")
            self._before[name] = top
        if self._live is not None:
            self._live.update(Group(*drawn), refresh=True)
        else:
            for line in drawn:
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _moved(view: Followed) -> str:
    return f"{view.count:>6,} rows, {view.came:>6,} came, {view.went:>6,} went"


def _table(name: str, view: Followed, top: list[dict[str, Any]], before: list[dict[str, Any]]) -> Table:
    shown = Table(title=f"{name}: {_moved(view)}", title_justify="left", title_style="cyan", box=None, pad_edge=False)
    for column, value in (top[0] if top else {}).items():
        shown.add_column(column, justify="right" if isinstance(value, (int, float)) else "left", no_wrap=True)
    for row in top:
        shown.add_row(*map(_text, row.values()), style=None if row in before else "yellow")
    return shown


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)
