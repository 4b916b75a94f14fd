"""Defines an engine that maintains the windows of tables before their rows reach the cells.

A window keeps the newest rows of a table. Only an engine with all rows of the table knows which rows leave the window.
This engine sends inserts and deletes to the cells.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.catalog import Catalog, Statement, ViewDefs
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.window import PROPERTY
from freshviews.cells.cell_plan import CellPlan
from freshviews.cells.partial import all_rows


def windowed_tables(plan: CellPlan, catalog: Catalog) -> dict[str, str]:
    """By table with a window, the view of its rows in the engine in front of the cells; empty for one cell, which
    maintains windows by itself."""
    if plan.cells == 1:
        return {}
    return {table.name: f"{table.name}@window" for table in catalog.tables.values() if has_window(table)}


def window_statements(plan: CellPlan, catalog: Catalog) -> tuple[Statement, ...]:
    """Tables and views of the engine in front of the cells; () if none needs it. Foreign keys are checked in cells.

    Rows of all cells together decide when a row leaves the window. So all rows first go through one engine, which
    maintains a view of the rows in the window. The cells get the changes of this view as updates; their tables have no
    window.
    """
    found: list[Statement] = []
    for name, view in windowed_tables(plan, catalog).items():
        table = catalog.tables[name]
        found.append(replace(table, foreign_keys=()))
        found.append(ViewDefs((ViewDef(view, table.columns, (all_rows(view, table.columns, name),)),)))
    return tuple(found)


def has_window(table: TableDef) -> bool:
    return PROPERTY in dict(table.properties)


def without_window(table: TableDef) -> TableDef:
    """The table in a cell: without a window, its rows are deleted as in any table."""
    return replace(table, properties=tuple(one for one in table.properties if one[0] != PROPERTY))
