"""Plans how several engines, called *cells*, maintain views together; each cell stores a part of the rows.

``plan_cells`` decides which rows each cell gets, and which results of cells are merged.
"""

from freshviews.cells.cell_definitions import cell_statements, merge_inputs, merge_statements, outputs
from freshviews.cells.cell_plan import CellPlan, Copy, Dim, HeavyValues, Output, Part, Role, Values
from freshviews.cells.describe import describe
from freshviews.cells.one_engine import Location, locations
from freshviews.cells.planning import extended, plan_cells
from freshviews.cells.routing_by_row import cells_of, loads
from freshviews.cells.splitting import joined_columns
from freshviews.cells.windows import window_statements, windowed_tables

__all__ = [
    "CellPlan",
    "Copy",
    "Dim",
    "HeavyValues",
    "Location",
    "Output",
    "Part",
    "Role",
    "Values",
    "cell_statements",
    "cells_of",
    "describe",
    "extended",
    "joined_columns",
    "loads",
    "locations",
    "merge_inputs",
    "merge_statements",
    "outputs",
    "plan_cells",
    "window_statements",
    "windowed_tables",
]
