"""Delta tables as a source and as sinks, with the real package, which belongs to a release of Spark."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.errors import SourceError, SqlError
from freshviews.spark import Pipeline
from freshviews.spark.io.reach import tried
from freshviews.spark.io.sinks import SinkError
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault
from tests.spark.jars import lake, lakes
from tests.spark.pages import run_command, write_script

pytestmark = pytest.mark.spark

ORDERS = "CREATE TABLE orders (o_id BIGINT NOT NULL, cust STRING, total DECIMAL(12, 2), PRIMARY KEY (o_id))"
BY_CUST = "SELECT cust, SUM(total) AS total, COUNT(*) AS n FROM orders GROUP BY cust"
PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "delta.md"


def pipeline(spark: Any, folder: Path, table: Path, output: str = "upsert") -> Pipeline:
    made = Pipeline(spark, folder).table_of(ORDERS, changes="upsert")
    return made.view("by_cust", BY_CUST, format="delta", output=output, path=table)


def orders(spark: Any, *rows: tuple[int, str | None, str]) -> dict[str, Any]:
    frame = spark.createDataFrame(list(rows), "o_id BIGINT, cust STRING, total STRING")
    return {"orders": frame.selectExpr("o_id", "cust", "CAST(total AS DECIMAL(12, 2)) AS total")}


def held(spark: Any, table: Path, *columns: str) -> Counter[tuple[Any, ...]]:
    frame = spark.read.format("delta").load(str(table))
    return Counter(map(tuple, (frame.select(*columns) if columns else frame).collect()))


def expected(rows: dict[int, tuple[str | None, str]]) -> Counter[tuple[Any, ...]]:
    """The view, recomputed by DuckDB."""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE orders (o_id BIGINT, cust TEXT, total DECIMAL(12, 2))")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(key, *row) for key, row in rows.items()])
        return Counter(db.execute(BY_CUST).fetchall())


@pytest.mark.long("a commit of Delta takes seconds")
def test_every_output_mode_gives_the_rows_of_the_view(spark: Any, tmp_path: Path) -> None:
    lake("delta")
    made = pipeline(spark, tmp_path / "ckpt", tmp_path / "upsert")
    for output in ("complete", "changes"):
        made.view(f"v_{output}", BY_CUST, format="delta", output=output, path=tmp_path / output)
    rows: dict[int, tuple[str | None, str]] = {}
    for step in ([(1, "ann", "1.50"), (2, "b'b", "2.00"), (3, None, "1.00")], [(2, "ann", "4.00"), (3, None, "2.00")]):
        made.advance(orders(spark, *step))
        rows |= {key: (cust, total) for key, cust, total in step}
        assert held(spark, tmp_path / "upsert") == held(spark, tmp_path / "complete") == expected(rows)
        signed: Counter[tuple[Any, ...]] = Counter()
        for *row, sign, _ in held(spark, tmp_path / "changes", "cust", "total", "n", "_multiplicity", "_version"):
            signed[tuple(row)] += sign
        assert Counter({row: n for row, n in signed.items() if n}) == expected(rows)


@pytest.mark.long("a commit of Delta takes seconds")
@pytest.mark.full
@pytest.mark.large(2)
@pytest.mark.parametrize("output", ["upsert", "changes"])
def test_a_version_whose_delivery_was_interrupted_is_delivered_once(
    spark: Any, tmp_path: Path, output: str, fault: Fault
) -> None:
    lake("delta")
    table = tmp_path / "table"
    pipeline(spark, tmp_path / "ckpt", table, output).advance(orders(spark, (1, "ann", "1.00"), (2, "bob", "2.00")))
    fault.plan("sink written", "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        pipeline(spark, tmp_path / "ckpt", table, output).advance(orders(spark, (1, "bob", "1.00")), call="second")
    fault.forget()
    commits = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").count()
    # A commit of another program, such as a compaction, has no note.
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES (a = 'b')")
    again = pipeline(spark, tmp_path / "ckpt", table, output)
    assert again.advance(orders(spark, (1, "bob", "1.00")), call="second") == 2
    assert spark.sql(f"DESCRIBE HISTORY delta.`{table}`").count() == commits + 1
    assert held(spark, table).total() == (1 if output == "upsert" else 5)


@pytest.mark.long("a commit of Delta takes seconds")
def test_a_sink_table_with_foreign_rows_is_refused(spark: Any, tmp_path: Path) -> None:
    lake("delta")
    table, first = tmp_path / "table", orders(spark, (1, "ann", "1.00"))
    spark.sql(f"CREATE TABLE delta.`{table}` (cust STRING, total DECIMAL(22, 2), n BIGINT) USING delta")
    pipeline(spark, tmp_path / "ckpt", table).advance(first)
    with pytest.raises(SinkError, match="belongs to view by_cust of another checkpoint; name another table, or drop"):
        pipeline(spark, tmp_path / "other", table).advance(first)
    spark.range(1).write.format("delta").save(str(tmp_path / "foreign"))
    with pytest.raises(SinkError, match="has rows that are not of this view"):
        pipeline(spark, tmp_path / "third", tmp_path / "foreign").advance(first)
    spark.sql(f"CREATE TABLE delta.`{tmp_path / 'narrow'}` (cust STRING) USING delta")
    with pytest.raises(SinkError, match=r"has no column total \(only cust\); add the column, or name another"):
        pipeline(spark, tmp_path / "fourth", tmp_path / "narrow").advance(first)


@pytest.mark.long("a commit of Delta takes seconds")
def test_a_change_feed_is_read_as_a_source(spark: Any, tmp_path: Path) -> None:
    lake("delta")
    table = f"delta.`{tmp_path / 'orders'}`"
    spark.sql(
        f"CREATE TABLE {table} (o_id BIGINT, cust STRING, total DECIMAL(12, 2)) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    (tmp_path / "shop.sql").write_text(f"""
        CREATE STREAMING TABLE orders (o_id BIGINT, cust STRING, total DECIMAL(12, 2))
          USING delta OPTIONS (path 'orders', readChangeFeed 'true', changes 'delta');
        CREATE MATERIALIZED VIEW v AS {BY_CUST};
    """)
    statements = (
        f"INSERT INTO {table} VALUES (1, 'ann', 1.5), (2, 'bob', 2), (3, NULL, 1)",
        f"UPDATE {table} SET total = total + 1 WHERE o_id < 3",
        f"DELETE FROM {table} WHERE cust = 'bob'",
    )
    for batch in (statements[:1], statements[1:]):
        for statement in batch:
            spark.sql(statement)
        Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True).awaitTermination()
        store = store_of(tmp_path / "shop.checkpoint")
        found = Counter(tuple(row.values()) for row in contents(store, latest(store), "v").to_pylist())
        rows = spark.read.format("delta").load(str(tmp_path / "orders")).collect()
        assert found == expected({row.o_id: (row.cust, str(row.total)) for row in rows})


@pytest.mark.full
@pytest.mark.kills
@pytest.mark.long("two pipelines in processes of their own")
def test_the_delta_example_survives_a_kill(spark: Any, tmp_path: Path) -> None:
    package = lake("delta")
    write_script(PAGE, tmp_path)
    table = f"delta.`{tmp_path / 'orders'}`"
    feed = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    spark.sql(f"CREATE TABLE {table} (o_id BIGINT, cust STRING, total DECIMAL(12, 2)) USING delta {feed}")
    spark.sql(f"INSERT INTO {table} SELECT id, concat('c', id % 3), id + 0.5 FROM range(60)")
    fault = Fault(tmp_path / "fault")
    fault.plan("sink written", "kill", "driver")
    killed = run_command(PAGE, tmp_path, package, fault)
    assert (killed.returncode, fault.met) == (-signal.SIGKILL, True), killed.stderr
    commits = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 'by_cust'}`").count()
    done = run_command(PAGE, tmp_path, package)
    assert done.returncode == 0, done.stderr
    assert spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 'by_cust'}`").count() == commits
    rows = held(spark, tmp_path / "by_cust", "cust", "total", "n")
    assert rows == expected({n: (f"c{n % 3}", f"{n}.50") for n in range(60)})


def test_wrong_scripts_for_delta_tables_are_refused(tmp_path: Path) -> None:
    script = f"{ORDERS.replace('TABLE', 'STREAMING TABLE')} USING json OPTIONS (path '.', changes 'upsert');"
    view = "CREATE MATERIALIZED VIEW v USING delta OPTIONS (path 'out', output 'upsert'{}) AS SELECT cust FROM orders;"
    with pytest.raises(SqlError, match="view v: output 'upsert' needs a view with a key"):
        read_script(script + view.format(""), tmp_path)
    with pytest.raises(SqlError, match="the view has no column 'nobody'; it has cust"):
        read_script(script + view.format(", key 'nobody'"), tmp_path)
    source = "CREATE STREAMING TABLE t (a INT) USING delta OPTIONS (path '.', skipChangeCommits 'true');"
    with pytest.raises(SqlError, match="skipChangeCommits 'true': changes of rows would be lost unnoticed; leave it"):
        read_script(source, tmp_path)


def test_the_error_names_the_missing_delta_package(spark: Any, tmp_path: Path) -> None:
    if lakes():
        pytest.skip("this Spark has the package")
    remedy = r"start with --packages io\.delta:delta-spark_4\.\d_2\.13:VERSION, if there is one"
    with pytest.raises(SinkError, match=remedy):
        pipeline(spark, tmp_path / "ckpt", tmp_path / "table").advance(orders(spark, (1, "ann", "1.00")))
    (tmp_path / "t").mkdir()
    (tmp_path / "shop.sql").write_text("""
        CREATE STREAMING TABLE t (a INT) USING delta OPTIONS (path 't');
        CREATE MATERIALIZED VIEW v AS SELECT a FROM t;
    """)
    with pytest.raises(SourceError, match=f"table t: delta cannot be read: .*{remedy}"):
        Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True)


def test_delta_tables_are_checked_before_a_run(spark: Any, tmp_path: Path) -> None:
    lake("delta")
    spark.range(3).write.format("delta").save(str(tmp_path / "ids"))
    (tmp_path / "none").mkdir()
    script = f"""
        CREATE STREAMING TABLE ids (id BIGINT) USING delta OPTIONS (path '{tmp_path / "ids"}');
        CREATE STREAMING TABLE none (id BIGINT) USING delta OPTIONS (path '{tmp_path / "none"}');
        CREATE MATERIALIZED VIEW v USING delta OPTIONS (path '{tmp_path / "v"}', output 'upsert')
          AS SELECT id, COUNT(*) AS n FROM ids GROUP BY id;
    """
    found = {one.name: one.cause for one in tried(lambda: spark, read_script(script, tmp_path))}
    assert found["table ids"] is found["view v"] is None and not (tmp_path / "v").exists()
    assert "table schema is not set" in str(found["table none"]).lower()
