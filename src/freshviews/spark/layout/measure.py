"""Samples each source, to estimate how many rows the tables have and which values are frequent in a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from freshviews.cells import joined_columns
from freshviews.records import dataclass
from freshviews.spark.connectors.declarations import value_of
from freshviews.spark.definition import declared_rows
from freshviews.spark.io.arrow_files import columns_of, opened_by_spark
from freshviews.spark.io.sources import Source, batch_frame
from freshviews.sql import Catalog
from freshviews.stream import DebeziumJson

SAMPLE_BYTES = 64 << 20
"""Bytes of a source's files that are read to count rows."""
SAMPLE_ROWS = 100_000
"""Size of a random sample of these rows in which values are counted, ..."""
ROWS_OF_A_CELL = 200
"""... but at least this many rows per cell, so that a value that fills half of a cell occurs often enough."""
MOST_HEAVY = 32
"""Limit on the heavy values of a column."""
_AT_ONCE = 4
"""Number of sources measured at the same time, as Spark's first jobs mostly wait."""


@dataclass(frozen=True)
class Measured:
    """Expected rows per table, and per table and column the rows expected of each heavy value."""

    sizes: Mapping[str, float]
    heavy: Mapping[tuple[str, str], Mapping[Any, float]]


def measure(spark: SparkSession, catalog: Catalog, sources: Sequence[Source], cells: int) -> Measured:
    """Declared sizes, else sizes by a sample of each source. A value is heavy if it alone would fill half a cell."""
    declared = declared_rows(catalog)

    def one(source: Source) -> tuple[float, dict[str, dict[Any, float]]] | None:
        """The rows of a source, and shares of them that its heavy values have, by column."""
        names = _names(source, joined_columns(catalog, source.table.name))
        sampled = _sample_of_files(source, names) or sample_of(spark, source)
        if sampled is None:
            return None
        sample, part = sampled
        rows = sample.count() if isinstance(sample, DataFrame) else len(sample)
        found: dict[str, dict[Any, float]] = {}
        if rows >= 1000 * cells and not isinstance(source.form, DebeziumJson):
            found = _heavy(sample, names, rows, cells)
        return max(1.0, rows / part), found

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        results = zip(sources, threads.map(one, sources), strict=True)
        measured = {source.table.name: found for source, found in results if found is not None}
    sizes = {**{table: rows for table, (rows, _) in measured.items()}, **declared}
    return Measured(
        sizes,
        {
            (table, column): {value: share * sizes[table] for value, share in shares.items()}
            for table, (_, by_column) in measured.items()
            for column, shares in by_column.items()
            if shares
        },
    )


def _names(source: Source, columns: Iterable[str]) -> dict[str, str]:
    """Columns that a source has, and their names there."""
    there = {have.lower(): have for have in source.columns}
    found = {column: there[column.lower()] for column in columns if column.lower() in there}
    return {column: name for column, name in found.items() if name not in source.absent}


def _heavy(
    sample: DataFrame | pa.Table, names: Mapping[str, str], rows: int, cells: int
) -> dict[str, dict[Any, float]]:
    """Values that have more than half of a cell's share of the rows, with their shares, by column. The seed is fixed,
    so the same rows give the same sample."""
    if not names:
        return {}
    wanted = max(SAMPLE_ROWS, ROWS_OF_A_CELL * cells)
    if isinstance(sample, DataFrame):
        chosen = sample.select(*(F.col(f"`{name}`") for name in names.values()))
        table = (chosen if rows <= wanted else chosen.sample(fraction=wanted / rows, seed=0)).toArrow()
    elif rows <= wanted:
        table = sample
    else:
        table = sample.take(np.sort(np.random.default_rng(0).choice(rows, wanted, replace=False)))
    found: dict[str, dict[Any, float]] = {}
    for column, values in zip(names, table.columns, strict=True):
        # Arrow counts 0.0 and -0.0 separately, although they are equal: adding 0 makes both 0.0.
        counted = (pc.add(values, 0.0) if pa.types.is_floating(values.type) else values).value_counts()
        counts = counted.field("counts").to_numpy()
        order = np.argsort(-counts, kind="stable")[:MOST_HEAVY]
        heavy = [i for i in order if counts[i] > len(table) / (2 * cells)]
        shares: dict[Any, float] = {}
        for i in heavy:
            value = _as_collected(counted.field("values")[i].as_py())
            if value is not None:
                # Two times may be equal in the time zone of this process.
                shares[value] = shares.get(value, 0.0) + float(counts[i] / len(table))
        found[column] = shares
    return found


def _as_collected(value: Any) -> Any:
    """A value of an Arrow column as Spark's ``collect`` has it: times in the zone of this process, without it."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    return value


def sample_of(spark: SparkSession, source: Source) -> tuple[DataFrame, float] | None:
    """Sample rows of a source, and the fraction that they are; None if unknown."""
    if not source.is_streaming:
        return source.frame, 1.0
    if source.spec.provider is None or not source.from_files:
        return None
    whole = batch_frame(spark, source)
    if whole is None:
        return None
    chosen, part = _first_files({name: _bytes(name) for name in whole.inputFiles()})
    frame = batch_frame(spark, source, chosen) if part else None
    return None if frame is None else (frame, part)


def _first_files(files: Mapping[str, int]) -> tuple[list[str], float]:
    """The first of some files, by their sizes, and their part of all bytes; 0 without any."""
    chosen: list[str] = []
    taken = 0
    for name, size in sorted(files.items()):
        if chosen and taken + size > SAMPLE_BYTES:
            break
        chosen.append(name)
        taken += size
    return chosen, taken / (sum(files.values()) or 1)


def _sample_of_files(source: Source, names: Mapping[str, str]) -> tuple[pa.Table, float] | None:
    """As ``sample_of``, but only the named columns, without Spark. None if Spark has to read the files, or to find
    them: only files in one folder are found here."""
    kinds = columns_of(source)
    folder = Path(value_of(source.spec.options, "path"))
    if source.spec.provider != "parquet" or opened_by_spark("UTC", source, ()) is not None:
        return None
    if "timestamp" in {kinds[name] for name in names.values()}:
        return None
    try:
        files = [one for one in folder.iterdir() if one.name[0] not in "._"]
        chosen, part = _first_files({str(one): one.stat().st_size for one in files})
        if not part or not all(map(Path.is_file, files)):
            return None
        read = [pq.read_table(name, columns=list(names.values()), partitioning=None) for name in chosen]
        return pa.concat_tables(one.select(list(names.values())) for one in read), part
    except (OSError, KeyError, pa.ArrowException):
        return None


def _bytes(name: str) -> int:
    """The size of a file; remote files are assumed equal."""
    parsed = urlparse(name)
    if parsed.scheme not in ("", "file"):
        return SAMPLE_BYTES
    return Path(unquote(parsed.path)).stat().st_size
