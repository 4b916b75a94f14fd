"""A star join with aggregates through the whole pipeline, a million rows in each micro-batch.

Facts are parquet files of a million rows, one for each micro-batch; three small dimensions have primary keys. It is
compared with Spark, which recomputes the view over all files so far, and with a bare shuffle through Python, the
minimal cost of any pipeline with Python workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring.answers import answer
from benchmarks.pipeline.run import (
    after_warming,
    contents_of,
    folder,
    put,
    rate,
    run_once,
    scaled,
    seconds_between,
    seconds_of,
    session,
)

TITLE = "pipeline, star"
CASES = ("",)
STRATEGIES = ("freshviews", "Spark", "shuffle through Python")
UNIT = "rows/s"
TARGETS = {"": 900e3}

FILES = 8
ROWS = scaled(1_000_000)
CUSTOMERS, PARTS, DAYS = 10_000, 2_000, 730
VIEW = """
    SELECT region, kind, month, SUM(qty) AS qty, SUM(price) AS price, COUNT(*) AS n
    FROM sales JOIN customers USING (cust) JOIN parts USING (part) JOIN dates USING (day)
    GROUP BY region, kind, month
"""
COLUMNS = {
    "sales": "cust BIGINT, part BIGINT, day BIGINT, qty BIGINT, price BIGINT",
    "customers": "cust BIGINT PRIMARY KEY, region BIGINT",
    "parts": "part BIGINT PRIMARY KEY, kind BIGINT",
    "dates": "day BIGINT PRIMARY KEY, month BIGINT",
}
SCRIPT = "\n".join(
    [
        *(
            f"CREATE STREAMING TABLE {name} ({columns}) USING parquet OPTIONS (path '{name}', maxFilesPerTrigger '1');"
            for name, columns in COLUMNS.items()
        ),
        f"CREATE MATERIALIZED VIEW totals AS {VIEW};",
    ]
)


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Rows per second of the median micro-batch."""
    run = {
        "freshviews": _freshviews,
        "Spark": _recomputed,
        "shuffle through Python": _shuffle,
    }[strategy]
    with folder() as place:
        _write(place)
        with session() as spark:
            return run(spark, place)


def _write(place: Path) -> None:
    for name, columns in dimensions().items():
        put(pa.table(columns), place / name / "all.parquet")
    random = np.random.default_rng(1)
    for i in range(FILES):
        put(pa.table(sales(random, ROWS)), place / "sales" / f"{i}.parquet")
    (place / "star.sql").write_text(SCRIPT)


def dimensions() -> dict[str, dict[str, Any]]:
    """The columns of the dimensions."""
    random = np.random.default_rng(0)
    return {
        "customers": {"cust": np.arange(CUSTOMERS), "region": random.integers(0, 25, CUSTOMERS)},
        "parts": {"part": np.arange(PARTS), "kind": random.integers(0, 20, PARTS)},
        "dates": {"day": np.arange(DAYS), "month": np.arange(DAYS) // 61},
    }


def sales(random: np.random.Generator, rows: int) -> dict[str, Any]:
    """The columns of ``rows`` sales."""
    return {
        "cust": random.integers(0, CUSTOMERS, rows),
        "part": random.integers(0, PARTS, rows),
        "day": random.integers(0, DAYS, rows),
        "qty": random.integers(1, 50, rows),
        "price": random.integers(1, 10_000, rows),
    }


def _freshviews(spark: Any, place: Path) -> dict[str, Any]:
    script = place / "star.sql"
    versions = run_once(spark, script)
    found = rate(ROWS, after_warming(seconds_of(versions)))
    made = [version.manifest.seconds for version in versions]
    answers = {"end": answer(zip(*(c.to_pylist() for c in contents_of(script, "totals").columns), strict=True))}
    return {**found, "made": made, "answers": answers}


def _recomputed(spark: Any, place: Path) -> dict[str, Any]:
    for name in ("customers", "parts", "dates"):
        table = spark.read.parquet(str(place / name)).cache()
        table.count()
        table.createOrReplaceTempView(name)
    files = sorted(str(path) for path in (place / "sales").glob("*.parquet"))
    seconds = []
    rows: list[Any] = []
    for i in range(len(files)):
        start = time.perf_counter()
        spark.read.parquet(*files[: i + 1]).createOrReplaceTempView("sales")
        rows = spark.sql(VIEW).collect()
        seconds.append(time.perf_counter() - start)
    return {**rate(ROWS, after_warming(seconds)), "answers": {"end": answer(rows)}}


def _shuffle(spark: Any, place: Path) -> dict[str, Any]:
    from pyspark.sql import functions as F

    schema = spark.read.parquet(str(place / "sales")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(str(place / "sales"))
    ended = []
    counted = 0

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([pa.array([sum(batch.num_rows for batch in batches)])], ["n"])

    def each(rows: Any, batch: int) -> None:
        nonlocal counted
        placed = rows.repartitionById(2, F.pmod(F.xxhash64("cust"), F.lit(2)).cast("int"))
        counted += sum(row["n"] for row in placed.mapInArrow(count, "n long").collect())
        ended.append(time.perf_counter())

    notes = str(place / "notes")
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", notes).trigger(availableNow=True)
    query.start().awaitTermination()
    assert counted == FILES * ROWS, counted
    return rate(ROWS, after_warming(seconds_between(ended)))
