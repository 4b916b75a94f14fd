"""Makes the tables and the summary line that ``freshviews check`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from freshviews.cells import Location
from freshviews.cli.planned_script import PlannedScript, PlannedView
from freshviews.plan.strategy import Plan
from freshviews.printable import cell

BOUNDS = ("update", "delay", "space")


def check_table(script: PlannedScript) -> Table:
    """A row per block of each view: strategy and guaranteed bounds."""
    table = Table("view", "strategy", *BOUNDS, box=None, pad_edge=False, header_style="bold")
    for planned in script.views:
        for i, plan in enumerate(planned.plans):
            table.add_row(Text(cell(_name(planned, i))), plan.strategy, *_bounds(plan))
    return table


def cells_table(found: Sequence[Location]) -> Table:
    """A row per view, or per block of it, and per table: the number of its cells, and why it has one engine if so."""
    table = Table("in cells", "where", "why one engine", box=None, pad_edge=False, header_style="bold")
    for one in found:
        table.add_row(*(Text(cell(part)) for part in (one.name, one.where, one.reason)))
    return table


def readers_table(found: Sequence[tuple[str, str | None]]) -> Table:
    """A row per streaming table: who reads its rows, and why Spark does."""
    table = Table("table", "rows read by", "why Spark", box=None, pad_edge=False, header_style="bold")
    for name, reason in found:
        table.add_row(Text(cell(name)), "workers, by Arrow" if reason is None else "Spark", Text(cell(reason or "")))
    return table


def _name(planned: PlannedView, place: int) -> str:
    if len(planned.plans) == 1:
        return planned.view.name
    return f"{planned.view.name} ({place + 1} of {len(planned.plans)})"


def _bounds(plan: Plan) -> list[str]:
    bounds = dict(plan.program.bounds)
    return [bounds.get(name, "") for name in BOUNDS]


def counts(script: PlannedScript) -> str:
    """``2 tables, 1 view``: the relations that the script creates, without internal views."""
    views = sum(not planned.view.internal for planned in script.views)
    return f"{_counted(len(script.tables), 'table')}, {_counted(views, 'view')}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
