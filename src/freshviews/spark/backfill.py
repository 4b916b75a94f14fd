"""Rows that a pipeline has stored, as a DataFrame: for views that come later and need them elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from freshviews.cells import Role
from freshviews.query.block import TableDef
from freshviews.spark.definition import TableSpec
from freshviews.spark.layout import Layout
from freshviews.spark.manifest import Manifest
from freshviews.spark.sources import feed_of, one_frame, source_of
from freshviews.spark.state import changes_schema, load_cell
from freshviews.spark.version import Input
from freshviews.sql import Catalog


def backfill(spark: SparkSession, root: Path, old: Layout, new: Layout, manifest: Manifest) -> Input | None:
    """The rows that roles which are new must have; None where no role is."""
    known = {role.name for role in old.roles}
    tables: dict[str, list[Role]] = {}
    for role in new.roles:
        if role.name not in known:
            tables.setdefault(role.table, []).append(role)
    if not tables or not manifest.cells:
        return None
    sources = []
    for name in tables:
        rows = stored_rows(spark, root, old, manifest, name)
        spec = TableSpec(name, "", None, {}, "signed")
        sources.append(source_of(rows, spec, defined(new.catalog, name)))
    frame, slots = one_frame(sources)
    feeds = [
        tuple(feed_of(source, names, role.name, frozenset()) for role in roles)
        for source, names, roles in zip(sources, slots, tables.values(), strict=True)
    ]
    return Input(frame, feeds, list(tables.values()), False, False)


def defined(catalog: Catalog, table: str) -> TableDef:
    """A table that is surely there."""
    found = catalog.table(table)
    assert found is not None
    return found


def stored_rows(spark: SparkSession, root: Path, layout: Layout, manifest: Manifest, table: str) -> DataFrame:
    """The rows of a base table at a version, each once: its columns and ``_multiplicity``."""
    roles = layout.plan.sources(table)
    definition = defined(layout.catalog, table)
    schema = changes_schema(definition)
    statements, entries = layout.statements, dict(manifest.cells)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                cell = load_cell(root, entries[str(number)], statements[number])
                try:
                    for name in _counted(roles, number):
                        for rows in cell.database.table(name).to_batches():
                            ones = pa.array([1] * rows.num_rows, pa.int64())
                            yield pa.RecordBatch.from_arrays([*rows.columns, ones], schema=schema)
                finally:
                    cell.database.close()

    there = [number for number in range(layout.cells) if str(number) in entries]
    cells = spark.createDataFrame([(number,) for number in there], "cell int")
    return cells.repartitionById(len(there), F.col("cell")).mapInArrow(read, from_arrow_schema(schema))


def _counted(roles: Sequence[Role], cell: int) -> list[str]:
    """Tables of a cell whose rows, over all cells, are those of the base table, each once."""
    return [role.name for role in roles if role.counted_in(cell)]
