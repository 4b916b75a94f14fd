"""Makes a DataFrame of the rows of a table, read from the cells that store them.

If a new view needs the rows in other cells, too, the pipeline sends the DataFrame there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from freshviews.catalog.clock import is_clock
from freshviews.catalog.definitions import TableDef
from freshviews.cells import Role
from freshviews.spark.definition import TableSpec
from freshviews.spark.driver.version import Input
from freshviews.spark.io.columns import default_expression, spark_type
from freshviews.spark.io.sources import Source, feed_of, one_frame, source_of
from freshviews.spark.layout.layout import Layout
from freshviews.spark.state.bundle import read_all
from freshviews.spark.state.cell import EMPTY, changes_schema, load_cell, segments_after
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store
from freshviews.sql import Catalog
from freshviews.types.columns import MULTIPLICITY

Batches = Iterator[pa.RecordBatch]


def backfill(known: Collection[Role], new: Layout, rows_of: Callable[[str], DataFrame]) -> Input | None:
    """The rows of the roles that are not known; ``rows_of`` returns those of a table. None if all are known. Each cell
    sets the row of the clock by itself."""
    names = {role.name for role in known}
    tables: dict[str, list[Role]] = {}
    for role in new.roles:
        if role.name not in names and not is_clock(role.table):
            tables.setdefault(role.table, []).append(role)
    if not tables:
        return None
    sources = [stored_source(new.catalog, name, rows_of(name)) for name in tables]
    frame, slots = one_frame(sources)
    feeds = [
        tuple(feed_of(source, names, role.name, frozenset()) for role in roles)
        for source, names, roles in zip(sources, slots, tables.values(), strict=True)
    ]
    return Input(frame, feeds, list(tables.values()), False, False)


def stored_source(catalog: Catalog, table: str, rows: DataFrame) -> Source:
    """Stored rows of a table as a source."""
    return source_of(rows, TableSpec(table, "", None, {}, "signed"), defined(catalog, table))


def as_columns_of(table: TableDef, rows: DataFrame) -> DataFrame:
    """Stored rows of a table with its present columns: a new column has its DEFAULT, or NULL."""
    there = {name.lower(): f"`{name}`" for name in rows.columns}
    columns = [
        F.expr(there.get(c.name.lower(), default_expression(c))).cast(spark_type(c.type)) for c in table.columns
    ]
    named = [column.alias(c.name) for column, c in zip(columns, table.columns, strict=True)]
    return rows.select(*named, MULTIPLICITY)


def defined(catalog: Catalog, table: str) -> TableDef:
    """A table that is known to exist."""
    found = catalog.table(table)
    assert found is not None
    return found


def stored_rows(spark: SparkSession, store: Store, layout: Layout, manifest: Manifest, table: str) -> DataFrame:
    """The rows of a base table at a version, each once: its columns and ``_multiplicity``."""
    schema = changes_schema(defined(layout.catalog, table))
    statements, entries = layout.statements, dict(manifest.cells)

    def read(number: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        cell = load_cell(store, entries[str(number)], statements[number])
        try:
            for name in names:
                for rows in cell.database.table(name).to_batches():
                    ones = pa.array(np.ones(rows.num_rows, np.int64))
                    yield pa.RecordBatch.from_arrays([*rows.columns, ones], schema=schema)
        finally:
            cell.database.close()

    return _by_cell(spark, layout, manifest, table, read)


def logged_rows(
    spark: SparkSession, store: Store, layout: Layout, manifest: Manifest, table: str, since: Manifest
) -> DataFrame:
    """The signed rows that changed a base table between two versions; both must be in the logs."""
    schema = changes_schema(defined(layout.catalog, table))
    logs = {}
    # The log of the merge has no tables, and does not only grow.
    for number in filter(manifest.cells.__contains__, map(str, range(layout.cells))):
        log = segments_after(manifest.cells[number], since.cells.get(number, EMPTY)["token"])
        assert log is not None
        logs[number] = log

    def read(number: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for name in names:
            rows = read_all(store, [part["files"][name] for part in logs[str(number)] if name in part["files"]])
            if rows is not None:
                yield from rows.cast(schema).to_batches()

    return _by_cell(spark, layout, manifest, table, read)


def _by_cell(
    spark: SparkSession, layout: Layout, manifest: Manifest, table: str, rows: Callable[[int, Sequence[str]], Batches]
) -> DataFrame:
    """The signed rows of a base table, read cell by cell; ``rows`` is called with the tables of a cell to read."""
    roles = layout.plan.sources(table)

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rows(number, _counted(roles, number))

    there = [number for number in range(layout.cells) if str(number) in manifest.cells]
    cells = spark.createDataFrame([(number,) for number in there], "cell int")
    schema = from_arrow_schema(changes_schema(defined(layout.catalog, table)))
    return cells.repartitionById(max(1, len(there)), F.col("cell")).mapInArrow(read, schema)


def _counted(roles: Sequence[Role], cell: int) -> list[str]:
    """Tables of a cell whose rows, over all cells, are those of the base table, each once."""
    return [role.name for role in roles if role.counted_in(cell)]
