"""What keeps the rows of a pipeline's sources in one cell."""

from __future__ import annotations

from freshviews.catalog.catalog import Catalog
from freshviews.spark.definition import Definition, TableSpec, form_of
from freshviews.stream import DebeziumJson


def in_one_cell(definition: Definition, catalog: Catalog) -> str | None:
    """Why rows of a source cannot be in several cells."""
    for table in definition.tables:
        if table.changes is not None and _is_wrapped(table):
            return (
                f"table {table.name}: the rows of Debezium envelopes cannot be split, as their keys are inside the JSON"
            )
    set_aside = {table.name.lower() for table in definition.tables if table.bad_rows is not None}
    for child in catalog.tables.values():
        for key in () if child.trusted else child.foreign_keys:
            for name in {child.name.lower(), key.table.lower()} & set_aside:
                return (
                    f"table {name}: a row that a foreign key refuses would be set aside by the cell that checks it, "
                    f"and kept by others; leave out its bad_rows, or the foreign key of {child.name}"
                )
    return None


def _is_wrapped(table: TableSpec) -> bool:
    return isinstance(form_of(table.changes, table.form_options, ()), DebeziumJson)
