"""Upserts of three keyed tables into four views, from the start of the command to its end, in a fresh process.

``freshviews run --once`` reads all files as one version. It is compared with Spark, which selects the last row of each
key and computes the four SELECTs once, without storing anything for a next run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring.answers import answer
from benchmarks.measuring.processes import cpu_seconds_of
from benchmarks.pipeline.run import LOCAL, contents_of, folder, put, scaled

TITLE = "pipeline, upserts"
CASES = ("",)
STRATEGIES = ("freshviews", "Spark")
UNIT = "s"
TARGETS = {"": 18.0}

KEYS = {"customers": scaled(200_000), "orders": scaled(500_000), "items": scaled(900_000)}
ROWS = {"customers": scaled(300_000), "orders": scaled(600_000), "items": scaled(1_000_000)}
FILES = 2
COLUMNS = {
    "customers": "cust BIGINT, region BIGINT, at BIGINT",
    "orders": "o_id BIGINT, cust BIGINT, day BIGINT, at BIGINT",
    "items": "i_id BIGINT, o_id BIGINT, qty BIGINT, price BIGINT, at BIGINT",
}
KEY = {"customers": "cust", "orders": "o_id", "items": "i_id"}
VIEWS = {
    "by_region": "SELECT region, COUNT(*) AS n FROM customers GROUP BY region",
    "by_day": "SELECT day, COUNT(*) AS n, COUNT(DISTINCT cust) AS customers FROM orders GROUP BY day",
    "sales": "SELECT day, SUM(qty * price) AS total FROM items JOIN orders USING (o_id) GROUP BY day",
    "regions": "SELECT region, SUM(qty) AS qty, MAX(price) AS most FROM items JOIN orders USING (o_id) "
    "JOIN customers USING (cust) GROUP BY region",
}
SCRIPT = "\n".join(
    [
        *(
            f"CREATE STREAMING TABLE {name} ({columns}, PRIMARY KEY ({KEY[name]})) USING parquet "
            f"OPTIONS (path '{name}', changes 'upsert', order 'at');"
            for name, columns in COLUMNS.items()
        ),
        *(f"CREATE MATERIALIZED VIEW {name} AS {select};" for name, select in VIEWS.items()),
    ]
)


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Seconds from the command to its end."""
    run = {"freshviews": _freshviews, "Spark": _recomputed}[strategy]
    with folder() as place:
        _write(place)
        return {**run(place), "rows": sum(ROWS.values())}


def _write(place: Path) -> None:
    random = np.random.default_rng(1)
    below = {"cust": KEYS["customers"], "region": 25, "o_id": KEYS["orders"], "day": 365, "qty": 50, "price": 10_000}
    for name, rows in ROWS.items():
        columns = {column: random.integers(0, below[column], rows) for column in _columns(name)}
        again = random.integers(0, KEYS[name], rows - KEYS[name])
        columns[KEY[name]] = np.concatenate([np.arange(KEYS[name]), again])
        columns["at"] = np.arange(rows)
        table, each = pa.table(columns), -(-rows // FILES)
        for number in range(FILES):
            put(table.slice(number * each, each), place / name / f"{number}.parquet")
    (place / "upserts.sql").write_text(SCRIPT)


def _columns(table: str) -> list[str]:
    """The columns except the key and the order."""
    names = (column.split()[0] for column in COLUMNS[table].split(", "))
    return [name for name in names if name not in (KEY[table], "at")]


def _command(place: Path, *command: str) -> dict[str, Any]:
    """Run a command; returns its seconds, and the CPU seconds of its processes shortly before its end: Java outlives
    it."""
    start, used = time.perf_counter(), 0.0
    with (place / "output").open("w") as output:
        process = subprocess.Popen([sys.executable, *command], cwd=place, stdout=output, stderr=output)
        while process.poll() is None:
            used = max(used, cpu_seconds_of(process.pid))
            time.sleep(0.1)
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError((place / "output").read_text())
    return {"value": seconds, "cpu": used}


def _freshviews(place: Path) -> dict[str, Any]:
    from freshviews.spark.pipeline import default_checkpoint
    from freshviews.spark.reading.contents import latest
    from freshviews.spark.state.stores.addresses import store_of

    took = _command(place, "-m", "freshviews.cli", "run", "upserts.sql", "--once", "--master", LOCAL)
    rows = [contents_of(place / "upserts.sql", view) for view in VIEWS]
    made = latest(store_of(default_checkpoint(place / "upserts.sql"))).seconds
    return {**took, "answers": _answers(rows), "note": f"{made:.1f} s of it until the manifest"}


def _recomputed(place: Path) -> dict[str, Any]:
    (place / "recompute.py").write_text(_RECOMPUTE)
    tables = {name: [KEY[name], _columns(name)] for name in COLUMNS}
    wanted = {"tables": tables, "views": VIEWS, "master": LOCAL}
    (place / "wanted.json").write_text(json.dumps(wanted))
    took = _command(place, "recompute.py")
    return {**took, "answers": _answers([pq.read_table(place / "out" / view) for view in VIEWS])}


def _answers(found: list[pa.Table]) -> dict[str, Any]:
    rows = (zip(*(column.to_pylist() for column in table.columns), strict=True) for table in found)
    return {view: answer(one) for view, one in zip(VIEWS, rows, strict=True)}


_RECOMPUTE = """
import json
from pyspark.sql import SparkSession, functions as F

wanted = json.load(open("wanted.json"))
spark = SparkSession.builder.master(wanted["master"]).config("spark.sql.shuffle.partitions", "2").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for name, (key, columns) in wanted["tables"].items():
    last = spark.read.parquet(name).groupBy(key).agg(*(F.max_by(column, "at").alias(column) for column in columns))
    last.createOrReplaceTempView(name)
for view, select in wanted["views"].items():
    spark.sql(select).write.parquet("out/" + view)
spark.stop()
"""
