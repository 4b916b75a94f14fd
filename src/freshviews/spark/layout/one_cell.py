"""Finds out whether all rows of a pipeline must go to one cell, and why.

For example, Debezium envelopes of a table without a PRIMARY KEY cannot be divided among several cells.
"""

from __future__ import annotations

from freshviews.catalog.catalog import Catalog
from freshviews.errors import PlanError
from freshviews.spark.definition import Definition, form_of
from freshviews.spark.io.envelope_keys import TAKEN
from freshviews.stream import DebeziumJson


def in_one_cell(definition: Definition, catalog: Catalog) -> str | None:
    """The reason for which rows of a source cannot be in several cells."""
    return _envelopes(definition, catalog) or _set_aside(definition, catalog)


def check_cells(definition: Definition, catalog: Catalog, cells: int) -> None:
    """Raise PlanError if rows of a source cannot be in this many cells."""
    reason = in_one_cell(definition, catalog) if cells > 1 else None
    if reason:
        raise PlanError(f"{reason}; use one cell, with --cells 1")


def _envelopes(definition: Definition, catalog: Catalog) -> str | None:
    for table in definition.tables:
        form = form_of(table.changes, table.form_options, ()) if table.changes is not None else None
        if not isinstance(form, DebeziumJson):
            continue
        split = f"table {table.name}: rows of Debezium envelopes are split by the PRIMARY KEY of the table"
        found = catalog.tables[table.name]
        if not found.has_primary_key:
            return f"{split}, but the table has none"
        taken = {form.column.lower(), *TAKEN}
        for name in found.keys[0]:
            if name.lower() in taken or "`" in name:
                return f"{split}, but the shuffle reserves the name of its column {name}"
    return None


def _set_aside(definition: Definition, catalog: Catalog) -> str | None:
    set_aside = {table.name.lower() for table in definition.tables if table.bad_rows is not None}
    for child in catalog.tables.values():
        for key in () if child.trusted else child.foreign_keys:
            for name in {child.name.lower(), key.table.lower()} & set_aside:
                return (
                    f"table {name}: a row that a foreign key refuses would be set aside by the cell that checks it, "
                    f"and kept by other cells; leave out the bad_rows of {name}, or the foreign key of {child.name}"
                )
    return None
