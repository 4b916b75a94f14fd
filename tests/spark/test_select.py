"""``freshviews query`` answers a SELECT without Spark, and with it where asked."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from freshviews.cells import plan_cells
from freshviews.spark.definition import catalog_of, tables_of
from freshviews.spark.layout.layout import Layout
from freshviews.spark.state.cell import EMPTY, changes_schema, load_cell, new_token, segment_of
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import environment

AT = dt.datetime(2026, 1, 5, 12, 30, 0, 250000)
TABLE = "CREATE TABLE t (k BIGINT, day DATE, at TIMESTAMP, price DECIMAL(12, 2))"
COUNTS = "CREATE MATERIALIZED VIEW counts AS SELECT k, COUNT(*) AS n FROM t GROUP BY k"
SALES = "CREATE MATERIALIZED VIEW Sales AS SELECT k, day, at, price FROM t"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with one version, written as by a pipeline of one cell, but without Spark."""
    folder = tmp_path_factory.mktemp("made")
    root = folder / "shop.checkpoint"
    tables, views = {"t": TABLE}, {"counts": COUNTS, "Sales": SALES}
    catalog = catalog_of("; ".join((TABLE, COUNTS, SALES)))
    layout = Layout(plan_cells(catalog, 1, {}), catalog)
    rows = [(1, dt.date(2026, 1, 5), AT, Decimal("1.50"), 1), (2, None, None, None, 1), (2, None, AT, Decimal(7), 1)]
    schema = changes_schema(tables_of(TABLE)["t"])
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
    change = pa.table(columns, schema=schema)
    cell = load_cell(store_of(root), EMPTY, layout.statements[0])
    names = [name for name in cell.tables if name.lower().startswith("t")]
    cell.database.close()
    token = new_token()
    files = segment_of(store_of(root), "0", dict.fromkeys(names, change)).finish()
    entry = {"token": token, "image": None, "log": [{"token": token, "level": 0, "rows": 3, "files": files}]}
    manifest = Manifest(1, 0, None, time.time(), tables, views, plan=layout.plan.to_json(), cells={"0": entry})
    Manifests(store_of(root)).commit(manifest)
    (folder / "shop.sql").write_text(";\n".join((TABLE, COUNTS, SALES)))
    return root


ALONE = """
import os, sys

def hook(event, given):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        program = given[0] if event != "subprocess.Popen" else (given[0] or given[1][0])
        assert os.path.realpath(program) == os.path.realpath(sys.executable), f"a process is started: {given}"

sys.addaudithook(hook)
from freshviews.cli.main import app
try:
    app(sys.argv[1:])
finally:
    assert not {"pyspark", "py4j"} & set(sys.modules), "pyspark is imported"
"""


def command(made: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process that may neither import pyspark nor start a program other than Python."""
    given = environment()
    return subprocess.run(
        [sys.executable, "-c", ALONE, *words], cwd=made.parent, env=given, capture_output=True, text=True, timeout=120
    )


def test_status_and_query_work_without_pyspark_and_java(made: Path) -> None:
    asked = command(made, "query", "shop.sql", "SELECT * FROM counts ORDER BY k", "--json")
    assert asked.stdout == '{"k": 1, "n": 1}\n{"k": 2, "n": 2}\n', asked.stderr
    asked = command(made, "query", "shop.sql", "SELECT at, price, day FROM sales WHERE k = 2 ORDER BY at")
    lines = [line.split() for line in asked.stdout.splitlines()]
    assert lines[0] == ["at", "price", "day"], asked.stderr
    assert lines[1:] == [["NULL"] * 3, ["2026-01-05", "12:30:00.250000", "7.00", "NULL"]]
    found = json.loads(command(made, "status", "shop.sql", "--json").stdout)
    assert (found["version"], found["running"]) == (1, False)


@pytest.mark.spark
@pytest.mark.full
def test_the_option_spark_does_not_change_answers(made: Path) -> None:
    words = [sys.executable, "-m", "freshviews", "query", "shop.sql", "SELECT SUM(n) AS n FROM counts", "--json"]
    for more in ([], ["--spark"]):
        asked = subprocess.run([*words, *more], cwd=made.parent, env=environment(), capture_output=True, text=True)
        assert asked.stdout == '{"n": 3}\n', asked.stderr
