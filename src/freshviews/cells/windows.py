"""Defines an engine that maintains the windows and watermarks of tables before their rows reach the cells.

A window keeps the newest rows of a table, and a watermark refuses late rows. Only an engine with all rows of the table
knows which rows leave the window, or are late. This engine sends inserts and deletes to the cells.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.catalog import Catalog, Statement, ViewDefs
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.watermark import LATE, takes_whole_versions
from freshviews.catalog.watermark import PROPERTY as WATERMARK
from freshviews.catalog.window import PROPERTY
from freshviews.cells.cell_plan import CellPlan
from freshviews.cells.partial import all_rows


def windowed_tables(plan: CellPlan, catalog: Catalog) -> dict[str, str]:
    """By table with a window or a watermark, the view of its rows in the engine in front of the cells; empty for one
    cell, which maintains both by itself."""
    if plan.cells == 1:
        return {}
    return {table.name: f"{table.name}@window" for table in catalog.tables.values() if takes_whole_versions(table)}


def window_statements(plan: CellPlan, catalog: Catalog) -> tuple[Statement, ...]:
    """Tables and views of the engine in front of the cells; () if none needs it. Foreign keys are checked in cells.

    Rows of all cells together decide when a row leaves the window, or is late. So all rows first go through one engine,
    which maintains a view of the rows of the table. The cells get the changes of this view as updates; their tables
    have no window and no watermark.
    """
    found: list[Statement] = []
    for name, view in windowed_tables(plan, catalog).items():
        table = catalog.tables[name]
        found.append(replace(table, foreign_keys=()))
        found.append(ViewDefs((ViewDef(view, table.columns, (all_rows(view, table.columns, name),)),)))
    return tuple(found)


def without_window(table: TableDef) -> TableDef:
    """The table in a cell: without a window and a watermark, its rows are inserted and deleted as in any table."""
    before = (PROPERTY, WATERMARK, LATE)
    return replace(table, properties=tuple(one for one in table.properties if one[0] not in before))
