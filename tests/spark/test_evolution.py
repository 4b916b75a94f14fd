"""Columns with a DEFAULT that a source lacks, and tables that get columns by ALTER TABLE."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store

DEFAULTS = r"""name STRING NOT NULL DEFAULT 'it\'s \\ new', price DECIMAL(8, 2) DEFAULT 1.5, x FLOAT DEFAULT 'NaN',
    day DATE DEFAULT '2026-01-31', at TIMESTAMP DEFAULT '2026-01-02 03:04:05.000006', big BIGINT DEFAULT NULL"""
NEW = ("it's \\ new", 1.5, "nan", dt.date(2026, 1, 31), dt.datetime(2026, 1, 2, 3, 4, 5, 6), None)


def held(store: Store, view: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in contents(store, latest(store), view).to_pylist())


def comparable(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """NaN is not equal to itself in Python."""
    return Counter({tuple("nan" if value != value else value for value in row): n for row, n in rows.items()})


def write(folder: Path, name: str, text: str) -> None:
    """A file that appears whole, and is newer than those before it."""
    folder.mkdir(exist_ok=True)
    (folder.parent / f"aside-{name}").write_text(text)
    (folder.parent / f"aside-{name}").rename(folder / name)
    os.utime(folder / name, (1_000_000_000 + len(list(folder.iterdir())),) * 2)


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.mark.spark
def test_sources_that_lack_a_column_have_its_default(spark: Any, tmp_path: Path) -> None:
    files = {
        "json": ("json OPTIONS (path 'json')", "0.json", lines({"id": 1}, {"id": 2, "price": None, "big": 3})),
        "texts": (
            "text OPTIONS (path 'texts', values 'json')",
            "0.txt",
            lines({"id": 1}, {"id": 2, "price": None, "big": 3}),
        ),
        "csv": ("csv OPTIONS (path 'csv', header 'true')", "0.csv", "id,price,big\n1,1.5,\n2,,3\n"),
    }
    script = ""
    for name, (using, file, text) in files.items():
        write(tmp_path / name, file, text)
        script += f"CREATE STREAMING TABLE t_{name} (id INT NOT NULL, {DEFAULTS}) USING {using};\n"
        script += f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM t_{name};\n"
    # Of two files of Parquet the newer has more columns.
    (tmp_path / "parquet").mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "parquet" / "0.parquet")
    rows = [{"id": 2, "price": None, "big": 3}]
    schema = pa.schema([("id", pa.int32()), ("price", pa.decimal128(8, 2)), ("big", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "parquet" / "1.parquet")
    os.utime(tmp_path / "parquet" / "0.parquet", (1_000_000_000,) * 2)
    script += f"CREATE STREAMING TABLE t_parquet (id INT NOT NULL, {DEFAULTS}) USING parquet OPTIONS (path 'parquet');"
    script += "CREATE MATERIALIZED VIEW parquet AS SELECT * FROM t_parquet"
    (tmp_path / "all.sql").write_text(script)
    Pipeline.from_script(spark, tmp_path / "all.sql", cells=2).start(once=True).awaitTermination()
    store = store_of(tmp_path / "all.checkpoint")
    expected = Counter([(1, *NEW), (2, NEW[0], None, *NEW[2:5], 3)])
    for view in (*files, "parquet"):
        assert comparable(held(store, view)) == expected, view
