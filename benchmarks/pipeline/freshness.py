"""The seconds until a view is fresh after 1,000 new rows, by the size of its tables.

The star of ``pipeline.star``, and Q3 and Q9 of TPC-H. The tables are stored; then files of 1,000 new facts arrive one
by one, each after the view has the one before. freshviews keeps the view. Spark computes it again from all rows, as a
materialized view of its declarative pipelines does at each run: over tables in its cache, or over parquet files.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.measuring.answers import answer
from benchmarks.measuring.machine import median
from benchmarks.measuring.processes import cpu_seconds_of
from benchmarks.pipeline import star
from benchmarks.pipeline.run import Running, contents_of, folder, put, scaled, session
from benchmarks.pipeline.state import is_quiet, settle
from benchmarks.workloads import tpch
from benchmarks.workloads.tpch_queries import QUERIES

TITLE = "pipeline, freshness"
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
"""Rows of the table of facts."""
CASES = (
    *(f"star, {size:,} rows" for size in SIZES),
    *(f"{query}, {size:,} rows" for query in ("q3", "q9") for size in SIZES[:-1]),
)
STRATEGIES = ("freshviews", "Spark, cached", "Spark, parquet")
UNIT = "s"
TARGETS: dict[str, float] = {}

CHANGED = 1_000
"""New rows of facts of a version."""
VERSIONS = 7
WARMING = 2
"""Versions at the beginning that are not timed."""
PART = 1_000_000
"""Rows of a file of facts."""
ROWS_AT_SCALE_1 = 6_001_215
"""Rows of lineitem at scale factor 1."""
JAVA = {"spark.driver.memory": "9g"}


@dataclass(frozen=True)
class Tables:
    """A view and its tables. ``columns``: of each table, as SQL declares them; ``rows``: by table, its rows, those of
    ``facts`` with the rows of all changes at the end."""

    view: str
    columns: dict[str, str]
    facts: str
    rows: Callable[[str], pa.Table]


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Median seconds, and CPU seconds of all processes, from a file of new rows to the fresh view."""
    name, _, size = case.removesuffix(" rows").partition(", ")
    rows = scaled(int(size.replace(",", "")))
    tables = _star(rows) if name == "star" else _tpch(name, rows)
    with folder() as place:
        changes = _write(tables, place)
        with session(settings=JAVA if strategy != "freshviews" else None) as spark:
            run = {"freshviews": _kept, "Spark, cached": _cached, "Spark, parquet": _read}[strategy]
            found = run(spark, tables, place, changes)
    return {**found, "rows": rows}


def _star(rows: int) -> Tables:
    """The star with ``rows`` sales, and those of the changes."""

    def rows_of(name: str) -> pa.Table:
        if name == "sales":
            return pa.table(star.sales(np.random.default_rng(2), rows + VERSIONS * CHANGED))
        return pa.table(star.dimensions()[name])

    return Tables(star.VIEW, star.COLUMNS, "sales", rows_of)


def _tpch(query: str, rows: int) -> Tables:
    """A query of TPC-H over ``rows`` line items, those of the changes included, and tables of that scale."""
    place = tpch.made_at(f"{rows / ROWS_AT_SCALE_1:.4g}")
    names, view = QUERIES[query]
    columns, wanted = {}, {}
    for name in names.split():
        relation = tpch.RELATIONS[name]
        key = relation.identity if name != "lineitem" else ()
        declared = re.findall(r"(\w+) (\w+(?:\([^)]*\))?)", relation.columns)
        needed = [(column, kind) for column, kind in declared if column in key or re.search(rf"\b{column}\b", view)]
        wanted[name] = [column for column, _ in needed]
        ends = [f"PRIMARY KEY ({', '.join(key)})"] if key else []
        columns[name] = ", ".join([*(f"{column} {kind}" for column, kind in needed), *ends])

    def rows_of(name: str) -> pa.Table:
        found = ds.dataset(place / f"{name}.parquet").to_table(columns=wanted[name])
        # In random order, so that the changes belong to any orders.
        return found.take(np.random.default_rng(3).permutation(found.num_rows)) if name == "lineitem" else found

    return Tables(view, columns, "lineitem", rows_of)


def _write(tables: Tables, place: Path) -> list[pa.Table]:
    """Write the rows of all tables to a folder each, except the changes; returns these."""
    changes: list[pa.Table] = []
    for name in tables.columns:
        rows = tables.rows(name)
        stored = rows.num_rows - (VERSIONS * CHANGED if name == tables.facts else 0)
        for number, start in enumerate(range(0, stored, PART)):
            put(rows.slice(start, min(PART, stored - start)), place / name / f"{number:04d}.parquet")
        changes += [rows.slice(start, CHANGED).combine_chunks() for start in range(stored, rows.num_rows, CHANGED)]
    return changes


def _kept(spark: Any, tables: Tables, place: Path, changes: list[pa.Table]) -> dict[str, Any]:
    declared = [
        f"CREATE STREAMING TABLE {name} ({columns}) USING parquet OPTIONS (path '{name}', maxFilesPerTrigger '2');"
        for name, columns in tables.columns.items()
    ]
    script = place / "fresh.sql"
    script.write_text("\n".join([*declared, f"CREATE MATERIALIZED VIEW fresh AS {tables.view};"]))
    files = len(list((place / tables.facts).iterdir()))
    running = Running(spark, script)
    read = 0

    def ready() -> bool:
        return bool(running.versions) and _rows_of(running.versions[-1].manifest, tables.facts) >= read

    try:
        read = sum(pq.read_metadata(file).num_rows for file in (place / tables.facts).iterdir())
        running.wait_for(ready)
        running.wait_for(lambda: is_quiet(script, running.versions[-1].manifest))
        settle()

        def refresh(number: int) -> None:
            nonlocal read
            read += CHANGED
            put(changes[number], place / tables.facts / f"{files + number:04d}.parquet")
            running.wait_for(ready)

        found = _timed(refresh)
        made = [version.manifest.seconds for version in running.versions[-VERSIONS:]]
        bytes_held = sum(running.versions[-1].manifest.bytes.values())
    finally:
        running.query.stop()
    rows = zip(*(c.to_pylist() for c in contents_of(script, "fresh").columns), strict=True)
    return {**found, "made": median(made), "bytes": bytes_held, "answers": {"end": answer(rows)}}


def _rows_of(manifest: Any, table: str) -> int:
    counted: int = manifest.totals.get("rows", {}).get(table, 0)
    return counted


def _cached(spark: Any, tables: Tables, place: Path, changes: list[pa.Table]) -> dict[str, Any]:
    for name in tables.columns:
        table = spark.read.parquet(str(place / name)).cache()
        table.count()
        table.createOrReplaceTempView(name)
    known = spark.table(tables.facts)
    return _recomputed(spark, tables, place, changes, lambda new: known.unionAll(spark.read.parquet(*new)))


def _read(spark: Any, tables: Tables, place: Path, changes: list[pa.Table]) -> dict[str, Any]:
    for name in tables.columns:
        spark.read.parquet(str(place / name)).createOrReplaceTempView(name)
    known = [str(file) for file in sorted((place / tables.facts).iterdir())]
    return _recomputed(spark, tables, place, changes, lambda new: spark.read.parquet(*known, *new))


def _recomputed(
    spark: Any, tables: Tables, place: Path, changes: list[pa.Table], facts: Callable[[list[str]], Any]
) -> dict[str, Any]:
    """``facts``: all facts as a data frame, by the files of the changes so far."""
    new: list[str] = []
    rows: list[Any] = []

    def refresh(number: int) -> None:
        nonlocal rows
        file = place / "new" / f"{number:04d}.parquet"
        put(changes[number], file)
        new.append(str(file))
        facts(new).createOrReplaceTempView(tables.facts)
        rows = spark.sql(tables.view).collect()

    return {**_timed(refresh), "answers": {"end": answer(rows)}}


def _timed(refresh: Callable[[int], None]) -> dict[str, Any]:
    seconds, cpu = [], []
    for number in range(VERSIONS):
        start, used = time.perf_counter(), cpu_seconds_of(os.getpid())
        refresh(number)
        seconds.append(time.perf_counter() - start)
        cpu.append(cpu_seconds_of(os.getpid()) - used)
    timed, used = seconds[WARMING:], cpu[WARMING:]
    return {"value": median(timed), "seconds": seconds, "cpu": sum(used) / len(used)}
