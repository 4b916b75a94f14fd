"""Plans a script for ``check`` and ``explain``, without compiling or running it."""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.cli.source import ReadError, ScriptError
from freshviews.errors import PlanError, SqlError
from freshviews.plan.planner import plan_block
from freshviews.plan.strategy import Plan
from freshviews.query.sharing import with_shared_sums
from freshviews.records import dataclass
from freshviews.sql import AlterTable, AlterView, Catalog, ViewDefs, parse_script
from freshviews.sql.statements.streaming import plain


@dataclass(frozen=True)
class PlannedView:
    """A view of a script with one plan per block of its UNION ALL."""

    view: ViewDef
    plans: tuple[Plan, ...]


@dataclass(frozen=True)
class PlannedScript:
    """The tables and views that a script creates, in order, dropped ones included."""

    tables: tuple[TableDef, ...]
    views: tuple[PlannedView, ...]


def plan_script(text: str) -> PlannedScript:
    """Parse and plan every view of a script. Raises ScriptError at the first error."""
    catalog = Catalog()
    tables: list[TableDef] = []
    views: list[PlannedView] = []
    try:
        text = plain(text)
        statements = parse_script(text, catalog)
    except SqlError as error:
        message = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
        raise ScriptError(message, error.line, error.column) from error
    for statement in statements:
        catalog = catalog.after(statement)
        if isinstance(statement, TableDef):
            tables += [] if statement.internal else [statement]
        elif isinstance(statement, AlterTable):
            tables = [statement.table if one.name == statement.name else one for one in tables]
        elif isinstance(statement, ViewDefs):
            views += [_planned(view, statement.view, catalog, text) for view in statement.views]
        elif isinstance(statement, AlterView):
            altered = _planned(statement.view, statement.view, catalog, text)
            views = [altered if one.view.name == statement.view.name else one for one in views]
    return PlannedScript(tuple(tables), tuple(views))


def _planned(view: ViewDef, written: ViewDef, catalog: Catalog, text: str) -> PlannedView:
    """The plans of a view. ``written``: the view of the statement; ``view``: it or one of its internal views."""
    found = {name: catalog.relation(name) for name in view.inputs}
    inputs = {name: relation for name, relation in found.items() if relation is not None}
    try:
        blocks = map(with_shared_sums, view.blocks)
        return PlannedView(view, tuple(plan_block(view, block, inputs) for block in blocks))
    except PlanError as error:
        offset = text.find(written.sql)
        line = text.count("\n", 0, offset) + 1
        column = offset - text.rfind("\n", 0, offset)
        raise ScriptError(str(error), line, column) from error


def reduced_to(script: PlannedScript, name: str) -> PlannedScript:
    """The script reduced to the view of this name, in any spelling, and its internal views. Raises ReadError."""
    wanted = name.lower()
    views = tuple(one for one in script.views if one.view.name.lower().split("#")[0] == wanted)
    if not views:
        names = [one.view.name for one in script.views if not one.view.internal]
        there = f"it has {', '.join(names)}" if names else "it has none"
        raise ReadError(f"the script has no view {name}; {there}")
    return replace(script, views=views)
