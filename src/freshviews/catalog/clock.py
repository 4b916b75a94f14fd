"""Defines the internal table of the clock. Its only row has the time that ``Database.advance`` set last."""

from __future__ import annotations

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.types import TIMESTAMP

NOW = "now"
CLOCK = TableDef("#clock", (ColumnDef(NOW, TIMESTAMP, False),), internal=True)
"""Made with the first view that reads the clock. Without a row the time is NULL."""


def is_clock(table: str) -> bool:
    """True for the table of the clock, also under the names that it has in cells (``cells.cell_plan.Role``)."""
    return table.partition("@")[0] == CLOCK.name
