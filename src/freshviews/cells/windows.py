"""Tables with a window, in several cells: one engine before the cells decides which rows leave.

A row leaves when enough rows have come behind it, or one that is late enough: all rows of the table count. So all of
them go through one engine, which maintains a view of the rows in the window. The change of this view, rows that come
and rows that leave, is what the table is in the cells, where it has no window.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.catalog import Catalog, Statement, ViewDefs
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.window import PROPERTY
from freshviews.cells.cell_plan import CellPlan
from freshviews.cells.partial import all_rows


def windowed_tables(plan: CellPlan, catalog: Catalog) -> dict[str, str]:
    """By table with a window, the view of its rows in the engine before the cells; none if there is one cell, which
    keeps windows by itself."""
    if plan.cells == 1:
        return {}
    return {table.name: f"{table.name}@window" for table in catalog.tables.values() if has_window(table)}


def window_statements(plan: CellPlan, catalog: Catalog) -> tuple[Statement, ...]:
    """The tables and views of the engine before the cells; () if no table needs it. Foreign keys are checked in cells.
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
    """The table as it is in a cell: its rows are deleted as those of any other."""
    return replace(table, properties=tuple(one for one in table.properties if one[0] != PROPERTY))
