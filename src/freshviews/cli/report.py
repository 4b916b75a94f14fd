"""Text that the command line prints: an error at its place in the text, and the table of ``check``."""

from __future__ import annotations

from rich.table import Table

from freshviews.cli.script import PlannedScript, PlannedView, ScriptError, Source
from freshviews.plan.strategy import Plan

BOUNDS = ("update", "delay", "space")
_WIDEST = 400
"""Most characters of the line at fault that are shown."""


def error_text(source: Source, error: ScriptError) -> str:
    """``file:line:column: message``, the line at fault, and a caret under its column."""
    if not error.line:
        return f"{source.name}: {error}"
    where = f"{source.name}:{error.line}:{error.column}: {error}"
    lines = source.text.splitlines()
    if error.line > len(lines):
        return where
    line = lines[error.line - 1]
    column = error.column - 1
    if len(line) > _WIDEST:
        first = max(0, column - _WIDEST // 2)
        line, column = line[first : first + _WIDEST], column - first
    # A tab before the column stays a tab, so that the caret is right at any tab width.
    before = "".join("\t" if char == "\t" else " " for char in line[:column])
    return f"{where}\n    {line}\n    {before}^"


def check_table(script: PlannedScript) -> Table:
    """A row per block of each view: strategy and guaranteed bounds."""
    table = Table("view", "strategy", *BOUNDS, box=None, pad_edge=False, header_style="bold")
    for planned in script.views:
        for i, plan in enumerate(planned.plans):
            table.add_row(_name(planned, i), plan.strategy, *_bounds(plan))
    return table


def _name(planned: PlannedView, place: int) -> str:
    if len(planned.plans) == 1:
        return planned.view.name
    return f"{planned.view.name} ({place + 1} of {len(planned.plans)})"


def _bounds(plan: Plan) -> list[str]:
    bounds = dict(plan.program.bounds)
    return [bounds.get(name, "") for name in BOUNDS]


def counts(script: PlannedScript) -> str:
    """``2 tables, 1 view``: what the script creates, without internal views."""
    views = sum(not planned.view.internal for planned in script.views)
    return f"{_counted(len(script.tables), 'table')}, {_counted(views, 'view')}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
