"""The sizes of tables and their heavy values, from a sample of the sources when a pipeline begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from freshviews.cells import joined_columns
from freshviews.spark.definition import declared_rows
from freshviews.spark.io.sources import Source, batch_frame
from freshviews.sql import Catalog
from freshviews.stream import DebeziumJson

SAMPLE_BYTES = 64 << 20
"""Bytes of a source's files that are read to count rows."""
MOST_HEAVY = 32
"""Limit on the heavy values of a column."""


@dataclass(frozen=True)
class Measured:
    """Expected rows per table, and per table and column the rows expected of each heavy value."""

    sizes: Mapping[str, float]
    heavy: Mapping[tuple[str, str], Mapping[Any, float]]


def measure(spark: SparkSession, catalog: Catalog, sources: Sequence[Source], cells: int) -> Measured:
    """Declared sizes, else sizes by a sample of each source. A value is heavy if it alone would fill half a cell."""
    declared = declared_rows(catalog)
    sizes = dict(declared)
    heavy: dict[tuple[str, str], dict[Any, float]] = {}
    for source in sources:
        table = source.table
        sampled = sample_of(spark, source)
        if sampled is None:
            continue
        sample, part = sampled
        rows = sample.count()
        sizes.setdefault(table.name, max(1.0, rows / part))
        if rows < 1000 * cells:
            continue
        if isinstance(source.form, DebeziumJson):
            continue
        scale = sizes[table.name] / rows
        for column in joined_columns(catalog, table.name):
            name = next((have for have in source.columns if have.lower() == column.lower()), None)
            if name is None or name in source.absent:
                continue
            found = sample.groupBy(F.col(f"`{name}`").alias("v")).count().where(F.col("count") > rows / (2 * cells))
            values = found.orderBy(F.col("count").desc()).limit(MOST_HEAVY).collect()
            if values:
                heavy[table.name, column] = {row["v"]: row["count"] * scale for row in values if row["v"] is not None}
    return Measured(sizes, {key: values for key, values in heavy.items() if values})


def sample_of(spark: SparkSession, source: Source) -> tuple[DataFrame, float] | None:
    """Sample rows of a source, and the fraction that they are; None if unknown."""
    if not source.is_streaming:
        return source.frame, 1.0
    if source.spec.provider is None or not source.from_files:
        return None
    whole = batch_frame(spark, source)
    if whole is None:
        return None
    files = {name: _bytes(name) for name in whole.inputFiles()}
    chosen: list[str] = []
    taken = 0
    for name, size in sorted(files.items()):
        if chosen and taken + size > SAMPLE_BYTES:
            break
        chosen.append(name)
        taken += size
    total = sum(files.values())
    if not chosen or not total:
        return None
    frame = batch_frame(spark, source, chosen)
    return None if frame is None else (frame, taken / total)


def _bytes(name: str) -> int:
    """The size of a file; remote files are assumed equal."""
    parsed = urlparse(name)
    if parsed.scheme not in ("", "file"):
        return SAMPLE_BYTES
    return Path(unquote(parsed.path)).stat().st_size
