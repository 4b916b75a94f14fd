"""A PostgreSQL table is kept equal to a view: each version is written as a whole, and once."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
pytest.importorskip("psycopg", reason="psycopg is not installed; pip install 'psycopg[binary]'")

from demo.servers.maven import jars
from demo.servers.postgres import postgres, rows_in, run_in
from demo.shop.packages import POSTGRES
from freshviews.errors import FreshviewsError, SqlError
from freshviews.spark import Pipeline
from freshviews.spark.io import delivery
from freshviews.spark.io.sinks import SinkError
from freshviews.spark.reading.contents import status
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault, environment
from tests.spark.jars import skipping, spark_jars

pytestmark = pytest.mark.spark

ORDERS = "CREATE TABLE orders (o_id BIGINT NOT NULL, cust STRING, total DECIMAL(12, 2), at DATE, PRIMARY KEY (o_id))"
BY_CUST = "SELECT cust, SUM(total) AS total, COUNT(*) AS n, MAX(at) AS latest FROM orders GROUP BY cust"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with skipping():
        jars(POSTGRES)
        with postgres() as found:
            yield found.address


@pytest.fixture
def table(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    name = "t_" + request.node.name.partition("[")[0].removeprefix("test_")[:40]
    yield name
    run_in(server, f"DROP TABLE IF EXISTS {name}", "DROP TABLE IF EXISTS freshviews_versions")


def pipeline(spark: Any, folder: Path, server: str, table: str, output: str = "upsert", **options: str) -> Pipeline:
    made = Pipeline(spark, folder).table_of(ORDERS, changes="upsert")
    given = {"url": server, "dbtable": table, **options}
    return made.view("by_cust", BY_CUST, format="jdbc", output=output, options=given)


def orders(spark: Any, rows: list[tuple[int, str | None, str, str | None]]) -> Any:
    frame = spark.createDataFrame(rows, "o_id BIGINT, cust STRING, total STRING, at STRING")
    return frame.selectExpr("o_id", "cust", "CAST(total AS DECIMAL(12, 2)) AS total", "CAST(at AS DATE) AS at")


def of_view(made: Pipeline) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in made.view("by_cust").collect()), key=repr)


COLUMNS = "cust, total, n, latest"


def test_a_sink_table_equals_the_view_after_each_version(spark: Any, tmp_path: Path, server: str, table: str) -> None:
    chance = random.Random(5)
    made = pipeline(spark, tmp_path / "ckpt", server, table)
    for _ in range(5):
        rows = [
            (chance.randrange(30), chance.choice(["ann", "b'b", None]), f"{chance.randrange(999)}.50", "2026-01-02")
            for _ in range(20)
        ]
        made.advance({"orders": orders(spark, list({row[0]: row for row in rows}.values()))})
        assert rows_in(server, f"SELECT {COLUMNS} FROM {table}") == of_view(made)
    made.advance({"orders": orders(spark, [(i, "only", "1.00", None) for i in range(30)])})
    assert [row[0] for row in rows_in(server, f"SELECT cust FROM {table}")] == ["only"]
    assert rows_in(server, "SELECT target, view_name, version FROM freshviews_versions") == [(table, "by_cust", 6)]
    beside = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'freshviews%'"
    assert rows_in(server, beside) == [("freshviews_versions",)]
    (index,) = rows_in(server, f"SELECT indexdef FROM pg_indexes WHERE tablename = '{table}'")
    assert str(index[0]).endswith("(cust)")


@pytest.mark.parametrize("output", ["upsert", "changes"])
@pytest.mark.parametrize("step", ["rows in the transaction", "sink written", "delivery noted"])
def test_a_version_whose_delivery_was_interrupted_is_delivered_once(
    spark: Any, tmp_path: Path, server: str, table: str, step: str, output: str, fault: Fault
) -> None:
    made = pipeline(spark, tmp_path / "ckpt", server, table, output)
    made.advance({"orders": orders(spark, [(1, "ann", "1.00", None), (2, "bob", "2.00", None)])})
    fault.plan(step, "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        made.advance({"orders": orders(spark, [(1, "bob", "1.00", None)])}, call="second")
    fault.forget()
    expected = [("bob", 3, 2)] if output == "upsert" else [("bob", 3, 2), ("bob", 2, 1), ("ann", 1, 1)]
    if step == "rows in the transaction":
        assert len(rows_in(server, f"SELECT * FROM {table}")) == 2
    again = pipeline(spark, tmp_path / "ckpt", server, table, output)
    assert again.advance({"orders": orders(spark, [(1, "bob", "1.00", None)])}, call="second") == 2
    if output == "upsert":
        assert rows_in(server, f"SELECT cust, total, n FROM {table}") == expected
        return
    summed = "SELECT cust, total, n FROM {} GROUP BY ALL HAVING SUM(_multiplicity) > 0"
    assert rows_in(server, summed.format(table).replace("ALL", "cust, total, n")) == [("bob", 3, 2)]
    assert rows_in(server, f"SELECT COUNT(*), MAX(_version) FROM {table}") == [(5, 2)]


def test_the_output_mode_complete_replaces_all_rows_of_the_sink_table(
    spark: Any, tmp_path: Path, server: str, table: str
) -> None:
    made = pipeline(spark, tmp_path / "ckpt", server, table, "complete")
    for cust in ("ann", "bob"):
        made.advance({"orders": orders(spark, [(1, cust, "1.00", None)])})
        assert rows_in(server, f"SELECT cust FROM {table}") == [(cust,)]


def test_a_sink_table_with_foreign_rows_is_refused(
    spark: Any, tmp_path: Path, server: str, table: str
) -> None:
    columns = "(cust TEXT, total NUMERIC, n BIGINT, latest DATE)"
    run_in(server, f"CREATE TABLE {table} {columns}", f"INSERT INTO {table} VALUES ('x')")
    first = {"orders": orders(spark, [(1, "ann", "1.00", None)])}
    with pytest.raises(SinkError, match="has rows that are not of this view"):
        pipeline(spark, tmp_path / "ckpt", server, table).advance(first)
    run_in(server, f"DELETE FROM {table}")
    pipeline(spark, tmp_path / "ckpt", server, table).advance({"orders": orders(spark, [(2, "bob", "1.00", None)])})
    assert len(rows_in(server, f"SELECT * FROM {table}")) == 2
    with pytest.raises(SinkError, match="belongs to view by_cust of another checkpoint"):
        pipeline(spark, tmp_path / "other", server, table).advance(first)
    old = pipeline(spark, tmp_path / "ckpt", server, f"{table}_2")
    with pytest.raises(SinkError, match="the record of its last version is missing"):
        old.advance({"orders": orders(spark, [(7, "g", "1.00", None)])})
    pipeline(spark, tmp_path / "ckpt", server, table).advance()
    run_in(server, "UPDATE freshviews_versions SET version = 9")
    with pytest.raises(SinkError, match="has version 9 of view by_cust, but the checkpoint is at"):
        pipeline(spark, tmp_path / "ckpt", server, table).advance({"orders": orders(spark, [(3, "c", "1.00", None)])})


def test_a_sink_table_of_a_dropped_view_is_refused(
    spark: Any, tmp_path: Path, server: str, table: str
) -> None:
    def rows(number: int) -> dict[str, Any]:
        return {"orders": orders(spark, [(number, f"c{number}", "1.00", None)])}

    def without() -> Pipeline:
        return Pipeline(spark, tmp_path / "ckpt").table_of(ORDERS, changes="upsert")

    pipeline(spark, tmp_path / "ckpt", server, table).advance(rows(1))
    without().view("other", "SELECT o_id FROM orders").advance(rows(2))
    with pytest.raises(SinkError, match="has rows of an earlier view by_cust that was dropped"):
        pipeline(spark, tmp_path / "ckpt", server, table).advance(rows(3))
    late = Pipeline(spark, tmp_path / "late").table_of(ORDERS, changes="upsert").view("by_cust", BY_CUST)
    late.advance(rows(1))
    with pytest.raises(SinkError, match="the view is older than its sink table"):
        pipeline(spark, tmp_path / "late", server, f"{table}_3").advance(rows(2))


def test_names_of_schemas_tables_and_columns_are_quoted(spark: Any, tmp_path: Path, server: str) -> None:
    run_in(server, "CREATE SCHEMA IF NOT EXISTS \"My Shop\"")
    made = Pipeline(spark, tmp_path / "ckpt").table_of(ORDERS, changes="upsert")
    given = {"url": server, "dbtable": '"My Shop"."By Cust"'}
    sql = "SELECT cust AS `from`, COUNT(*) AS `a b`, total FROM orders GROUP BY cust, total"
    made.view("by_cust", sql, format="jdbc", output="upsert", options=given)
    made.advance({"orders": orders(spark, [(1, "ann", "1.00", None), (2, None, "2.00", None)])})
    made.advance({"orders": orders(spark, [(2, None, "3.00", None)])})
    found = rows_in(server, 'SELECT "from", "a b", total FROM "My Shop"."By Cust"')
    assert [row[:2] for row in found] == [("ann", 1), (None, 1)]
    run_in(server, 'DROP SCHEMA "My Shop" CASCADE', "DROP TABLE freshviews_versions")


def test_missing_keys_and_wrong_addresses_are_refused(spark: Any, tmp_path: Path, server: str, table: str) -> None:
    made = Pipeline(spark, tmp_path / "ckpt").table_of(ORDERS, changes="upsert")
    given = {"url": server, "dbtable": "t"}
    with pytest.raises(SqlError, match="needs a view with a key"):
        made.view("v", "SELECT cust FROM orders", format="jdbc", output="upsert", options=given)
    wrong = server.replace("/postgres?", "/nowhere?")
    with pytest.raises(SinkError, match='database "nowhere" does not exist'):
        pipeline(spark, tmp_path / "other", wrong, table).advance({"orders": orders(spark, [(1, "a", "1.00", None)])})


def test_a_run_continues_while_the_database_is_unreachable(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "WAITS", (0.1,))
    monkeypatch.setattr(delivery, "PAUSES", (0.2, 1.0))
    give = partial(give_order, tmp_path)
    with skipping():
        jars(POSTGRES)
    with skipping(), postgres() as database:
        write_two_sinks(tmp_path, database.address)
        made = Pipeline.from_script(spark, tmp_path / "shop.sql")
        store = store_of(tmp_path / "shop.checkpoint")
        definition = read_script((tmp_path / "shop.sql").read_text(), tmp_path)
        give(0)
        query = made.start()
        query.processAllAvailable()
        database.stop()
        for number in (1, 2, 3):
            give(number)
            query.processAllAvailable()
        assert query.version == 5 and len(list((tmp_path / "out").iterdir())) == 4
        found = status(store, definition)
        assert found.sinks["by_cust"]["backlog"] == 3 and found.sinks["lines"]["backlog"] == 0
        assert "refused" in found.refused["by_cust"]
        # Stopped while the sink is behind: the next run delivers the missing versions.
        query.stop()
        with pytest.raises(SinkError, match="by_cust did not take it"):
            Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True)
        query = Pipeline.from_script(spark, tmp_path / "shop.sql").start()
        give(4)
        query.processAllAvailable()
        database.start()
        until = time.monotonic() + 180
        while status(store, definition).sinks["by_cust"]["backlog"] and time.monotonic() < until:
            time.sleep(0.1)
        assert rows_in(database.address, "SELECT cust, n FROM by_cust") == [("c0", 3), ("c1", 2)]
        assert rows_in(database.address, "SELECT version FROM freshviews_versions") == [(6,)]
        assert status(store, definition).refused == {}
        give(5)
        query.processAllAvailable()
        assert rows_in(database.address, "SELECT cust, n FROM by_cust") == [("c0", 3), ("c1", 3)]
        # A database that is away for too long ends the run.
        monkeypatch.setattr(delivery, "MOST_BEHIND", 2)
        database.stop()
        with pytest.raises(FreshviewsError, match=r"view by_cust lacks 2 versions, from version 8 on: .*refused"):
            for number in (6, 7, 8):
                give(number)
                query.processAllAvailable()


@pytest.mark.full
@pytest.mark.long("three pipelines in processes of their own")
@pytest.mark.kills
def test_a_kill_while_the_database_is_down_loses_no_version(tmp_path: Path) -> None:
    with skipping():
        jars(POSTGRES)
    words = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--conf", "=".join(*spark_jars().items())]

    def once() -> None:
        done = subprocess.run(
            [*words, "--once"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr

    with skipping(), postgres() as database:
        write_two_sinks(tmp_path, database.address)
        give_order(tmp_path, 0)
        once()
        store = store_of(tmp_path / "shop.checkpoint")
        definition = read_script((tmp_path / "shop.sql").read_text(), tmp_path)
        database.stop()
        with subprocess.Popen(words, cwd=tmp_path, env=environment(), start_new_session=True) as process:
            until = time.monotonic() + 180
            for number in (1, 2, 3):
                give_order(tmp_path, number)
                while status(store, definition).sinks["by_cust"]["backlog"] < number:
                    assert process.poll() is None and time.monotonic() < until
                    time.sleep(0.1)
            os.killpg(process.pid, signal.SIGKILL)
        database.start()
        assert rows_in(database.address, "SELECT cust, n FROM by_cust") == [("c0", 1)]
        give_order(tmp_path, 4)
        once()
        assert rows_in(database.address, "SELECT cust, n FROM by_cust") == [("c0", 3), ("c1", 2)]
        assert status(store, definition).sinks["by_cust"]["backlog"] == 0
    lines = [json.loads(line) for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines()]
    assert sorted((line["o_id"], line["_multiplicity"]) for line in lines) == [(number, 1) for number in range(5)]


def write_two_sinks(folder: Path, address: str) -> None:
    """A script with one view written to a database table, and one written to files."""
    (folder / "in").mkdir()
    (folder / "shop.sql").write_text(f"""
        {ORDERS.replace("TABLE", "STREAMING TABLE")} USING json OPTIONS (path 'in', changes 'upsert');
        CREATE MATERIALIZED VIEW by_cust
          USING jdbc OPTIONS (url '{address}', dbtable 'by_cust', output 'upsert') AS {BY_CUST};
        CREATE MATERIALIZED VIEW lines USING json OPTIONS (path 'out') AS SELECT o_id FROM orders;
    """)


def give_order(folder: Path, number: int) -> None:
    """Write an input file with one order."""
    aside = folder / f"{number}.json"
    aside.write_text(f'{{"o_id": {number}, "cust": "c{number % 2}", "total": "1.00", "at": "2026-01-02"}}\n')
    aside.rename(folder / "in" / aside.name)


PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "jdbc.md"


@pytest.mark.full
@pytest.mark.long("two pipelines in processes of their own")
@pytest.mark.kills
def test_the_jdbc_example_survives_a_kill_within_a_transaction(server: str, tmp_path: Path) -> None:
    # The first block of each language.
    found = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    blocks = dict(reversed(found))
    (tmp_path / "shop.sql").write_text(blocks["sql"])
    (tmp_path / "orders").mkdir()
    lines = ["o_id,cust,total", *(f"{n},{n % 3},{n}.50" for n in range(60))]
    (tmp_path / "orders" / "1.csv").write_text("\n".join(lines))
    rows = ", ".join(f"({n}, 'city {n}')" for n in range(3))
    run_in(server, "CREATE TABLE customers (id BIGINT PRIMARY KEY, city TEXT)", f"INSERT INTO customers VALUES {rows}")
    # Without asking Maven, which takes long.
    line = f"{blocks['sh'].partition(' --packages')[0]} --conf {shlex.quote('='.join(*spark_jars().items()))}"

    def freshviews(fault: Fault | None = None) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "freshviews.cli", *shlex.split(line)[1:]]
        given = environment(fault) | {"DATABASE": server}
        return subprocess.run(words, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=300)

    fault = Fault(tmp_path / "fault")
    fault.plan("rows in the transaction", "kill", "driver")
    killed = freshviews(fault)
    assert (killed.returncode, fault.met) == (-signal.SIGKILL, True), killed.stderr
    assert rows_in(server, "SELECT * FROM by_city") == []
    done = freshviews()
    assert done.returncode == 0, done.stderr
    expected = [(f"city {n}", 20, sum(range(n, 60, 3)) + 10) for n in range(3)]
    assert rows_in(server, "SELECT city, n, total FROM by_city") == expected
    run_in(server, "DELETE FROM customers WHERE id = 1", "UPDATE customers SET city = 'town' WHERE id = 2")
    assert freshviews().returncode == 0
    assert rows_in(server, "SELECT city, n FROM by_city") == [("city 0", 20), ("town", 20)]
