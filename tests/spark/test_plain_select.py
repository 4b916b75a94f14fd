"""A plain SELECT gives the answer of Spark without Spark; other SELECTs are left to Spark."""

from __future__ import annotations

import datetime as dt
import json
import random
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshviews.cells import plan_cells
from freshviews.spark.definition import catalog_of, tables_of
from freshviews.spark.layout.layout import Layout
from freshviews.spark.reading import select as reading
from freshviews.spark.reading.plain_rows import selected
from freshviews.spark.reading.plain_select import NotPlain, parsed
from freshviews.spark.reading.select import select
from freshviews.spark.settings import NoSpark
from freshviews.spark.state.cell import EMPTY, changes_schema, load_cell, new_token, segment_of
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import environment
from tests.spark.plain_selects import AT, OTHERS, QUERIES, VIEW


def plain(sql: str) -> pa.Table:
    return selected(parsed(sql), "v", VIEW)


@pytest.mark.parametrize("sql", OTHERS)
def test_a_select_that_is_not_plain_is_left_to_spark(sql: str) -> None:
    with pytest.raises(NotPlain):
        found = parsed(sql)
        if found.view != "v":
            raise NotPlain
        selected(found, "v", VIEW)


@pytest.mark.parametrize("sql", QUERIES)
def test_a_select_is_recognised_as_plain_without_reading_rows(sql: str) -> None:
    found = plain(sql)
    empty = selected(parsed(sql), "v", pa.Table.from_batches([], VIEW.schema))
    assert empty.schema == found.schema


def test_a_deeply_nested_condition_is_answered_or_left_to_spark(made: Path) -> None:
    deep = "(" * 20_000 + "k = 1" + ")" * 20_000
    store = store_of(made)
    manifest = reading.latest(store)
    with pytest.raises(NotPlain):
        reading.plainly_selected(store, manifest, "SELECT k FROM counts WHERE " + "NOT " * 20_000 + "k = 1")
    assert reading.plainly_selected(store, manifest, f"SELECT k FROM counts WHERE {deep}").num_rows == 1


@pytest.fixture(scope="module")
def in_spark(spark: Any) -> Any:
    spark.createDataFrame(VIEW).createOrReplaceTempView("v")
    return spark


def comparable(table: pa.Table) -> tuple[object, ...]:
    """Names, types, and rows as they are printed."""
    rows = [json.dumps([str(value) for value in row.values()]) for row in table.to_pylist()]
    return table.schema.names, table.schema.types, rows


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.parametrize("sql", QUERIES)
def test_a_plain_select_has_the_rows_of_spark(in_spark: Any, sql: str) -> None:
    assert comparable(plain(sql)) == comparable(in_spark.sql(sql).toArrow())


def condition(pick: random.Random, depth: int) -> str:
    if depth:
        a, b = (condition(pick, depth - 1) for _ in range(2))
        return pick.choice([f"{a} AND {b}", f"({a} OR {b})", f"NOT {a}", f"NOT ({a})", f"{a} OR {b}"])
    constants = {
        "i": ["3", "-7", "0", "2.5"], "Big": ["5", "-1", "3000000000"], "tiny": ["1", "127", "300"],
        "small": ["300", "1.5"], "dec": ["1.5", "0", "7.25"], "wide": ["2", "-4.001"], "d": ["1.5", "0.1", "0"],
        "f": ["0.1", "1.5", "0"],
        "s": ["'bolt'", "''", "'n'"], "day": ["'2026-01-05'", "DATE '1969-12-31'"], "flag": ["TRUE", "FALSE"],
        "at": ["'2026-01-05 12:30:00.25'", "TIMESTAMP '2026-01-05 00:00:00'"],
    }  # fmt: skip
    column = pick.choice(list(constants))
    sign = pick.choice(["=", "<>"] if column == "flag" else ["=", "<>", "<", "<=", ">", ">="])
    some = constants[column]
    kinds = [f"{column} {sign} {pick.choice(some)}", f"{pick.choice(some)} {sign} {column}", f"{column} IS NOT NULL"]
    if column != "flag":
        kinds.append(f"{column} {pick.choice(['', 'NOT '])}BETWEEN {pick.choice(some)} AND {pick.choice(some)}")
    if column in ("i", "Big", "tiny", "small", "dec", "wide", "s"):
        kinds.append(f"{column} {pick.choice(['', 'NOT '])}IN ({', '.join(pick.sample(some, 2))})")
    return pick.choice(kinds)


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.seeds(40)
def test_random_conditions_select_the_same_rows_as_spark(in_spark: Any, seed: int) -> None:
    pick = random.Random(seed)
    found = [condition(pick, depth) for depth in (1, 2, 3)]
    for one in found:
        sql = f"SELECT `odd name` FROM v WHERE {one}"
        assert comparable(plain(sql)) == comparable(in_spark.sql(sql).toArrow()), sql


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


def test_status_and_a_plain_query_neither_import_pyspark_nor_start_java(made: Path) -> None:
    asked = command(made, "query", "shop.sql", "SELECT * FROM counts ORDER BY k", "--json")
    assert asked.stdout == '{"k": 1, "n": 1}\n{"k": 2, "n": 2}\n', asked.stderr
    asked = command(made, "query", "shop.sql", "SELECT at, price, day FROM sales WHERE k = 2 ORDER BY at")
    lines = [line.split() for line in asked.stdout.splitlines()]
    assert lines[0] == ["at", "price", "day"], asked.stderr
    assert lines[1:] == [["NULL"] * 3, ["2026-01-05", "12:30:00.250000+00:00", "7.00", "NULL"]]
    found = json.loads(command(made, "status", "shop.sql", "--json").stdout)
    assert (found["version"], found["running"]) == (1, False)


def test_without_pyspark_plain_queries_work_and_others_name_the_package(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert select(store_of(made), "SELECT n FROM Counts WHERE k = 2").to_pylist() == [{"n": 2}]
    with pytest.raises(NoSpark, match=r"pip install 'freshviews\[spark\]'"):
        select(store_of(made), "SELECT SUM(n) FROM counts")


def test_with_settings_of_spark_sql_every_query_is_left_to_spark(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    manifest, sql = reading.latest(store_of(made)), "SELECT K FROM counts WHERE k = 1"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text("spark.ui.enabled true\nspark.sql.shuffle.partitions 4\n")
    assert reading.plainly_selected(store_of(made), manifest, sql).num_rows == 1
    defaults.write_text("spark.sql.caseSensitive true\n")
    with pytest.raises(NotPlain):
        reading.plainly_selected(store_of(made), manifest, sql)
    defaults.write_text("")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.sql.caseSensitive=true pyspark-shell")
    with pytest.raises(NotPlain):
        reading.plainly_selected(store_of(made), manifest, sql)
