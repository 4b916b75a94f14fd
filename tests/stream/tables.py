"""Tables that the tests stream into, and their contents in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import TableDef
from freshviews.sql.statements.sql_script import parse_script
from freshviews.stream import SignedRows
from freshviews.types.columns import arrow_type

ORDERS_SQL = "CREATE TABLE orders (id BIGINT PRIMARY KEY, part STRING NOT NULL, day DATE, total DECIMAL(12, 2))"
BAG_SQL = "CREATE TABLE bag (id BIGINT, part STRING)"


def table(sql: str) -> TableDef:
    (definition,) = parse_script(sql, Catalog())
    assert isinstance(definition, TableDef)
    return definition


ORDERS = table(ORDERS_SQL)
BAG = table(BAG_SQL)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    )


def net(signed: SignedRows) -> dict[tuple[Any, ...], int]:
    """The net signed rows: rows and multiplicities that are not 0."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in signed.rows.to_pylist():
        sign = row.pop("_multiplicity")
        found[tuple(row.values())] += sign
    return {row: sign for row, sign in found.items() if sign}


class Stored:
    """Stored rows of a table with a primary key ``id``, and the keys that were looked up."""

    def __init__(self, definition: TableDef, *rows: tuple[Any, ...]) -> None:
        self.definition = definition
        self.rows = {row[0]: row for row in rows}
        self.asked: list[Any] = []

    def __call__(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        asked = keys.column("id").to_pylist()
        self.asked += asked
        # Not in the order of the keys: no order is promised.
        return self.batch([self.rows[key] for key in reversed(asked) if key in self.rows])

    def batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.definition.columns)
        return pa.RecordBatch.from_arrays(
            [pa.array(v, arrow_type(c.type)) for c, v in zip(self.definition.columns, columns, strict=True)],
            [c.name for c in self.definition.columns],
        )
