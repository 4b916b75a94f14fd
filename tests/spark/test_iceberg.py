"""Iceberg tables as a source and as sinks, with the real package, which belongs to a release of Spark."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.errors import SqlError
from freshviews.spark import Pipeline
from freshviews.spark.io.reach import tried
from freshviews.spark.io.sinks import SinkError
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault
from tests.spark.jars import lake
from tests.spark.pages import run_command, write_script

pytestmark = pytest.mark.spark

BY_CUST = "SELECT cust, SUM(total) AS total, COUNT(*) AS n FROM orders GROUP BY cust"
PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "iceberg.md"


@pytest.fixture
def name(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """A name in the catalog that no table has yet."""
    lake("iceberg")
    found = "lake.db." + request.node.name.partition("[")[0].removeprefix("test_")
    yield found
    spark.sql(f"DROP TABLE IF EXISTS {found}")


def pipeline(spark: Any, folder: Path, name: str, output: str) -> Pipeline:
    sql = "CREATE TABLE orders (o_id BIGINT NOT NULL, cust STRING, total DECIMAL(12, 2), PRIMARY KEY (o_id))"
    made = Pipeline(spark, folder).table_of(sql, changes="upsert")
    return made.view("by_cust", BY_CUST, format="iceberg", output=output, path=name)


def orders(spark: Any, *rows: tuple[int, str | None, str]) -> dict[str, Any]:
    frame = spark.createDataFrame(list(rows), "o_id BIGINT, cust STRING, total STRING")
    return {"orders": frame.selectExpr("o_id", "cust", "CAST(total AS DECIMAL(12, 2)) AS total")}


def expected(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The view, recomputed by DuckDB."""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE orders (o_id BIGINT, cust TEXT, total DECIMAL(12, 2))")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
        return Counter(db.execute(BY_CUST).fetchall())


@pytest.mark.long("the first commits of a session take long")
@pytest.mark.parametrize("output", ["upsert", "complete", "changes"])
def test_a_repeated_version_is_committed_to_iceberg_once(
    spark: Any, tmp_path: Path, name: str, output: str, fault: Fault
) -> None:
    first = [(1, "ann", "1.50"), (2, "b'b", "2.00"), (3, None, "1.00")]
    pipeline(spark, tmp_path / "ckpt", name, output).advance(orders(spark, *first))
    second = [(2, "ann", "4.00"), (3, None, "2.00")]
    fault.plan("sink written", "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        pipeline(spark, tmp_path / "ckpt", name, output).advance(orders(spark, *second), call="second")
    fault.forget()
    snapshots = spark.table(f"{name}.snapshots").count()
    pipeline(spark, tmp_path / "ckpt", name, output).advance(orders(spark, *second), call="second")
    assert spark.table(f"{name}.snapshots").count() == snapshots
    found = Counter(map(tuple, spark.table(name).collect()))
    if output == "changes":
        signed: Counter[tuple[Any, ...]] = Counter()
        for row, n in found.items():
            signed[row[:3]] += row[3] * n
        found = Counter({row: n for row, n in signed.items() if n})
    assert found == expected([first[0], *second])


def test_a_sink_table_that_does_not_fit_the_view_is_refused(spark: Any, tmp_path: Path, name: str) -> None:
    first = orders(spark, (1, "ann", "1.00"))
    spark.sql(f"CREATE TABLE {name} (cust STRING, total DECIMAL(38, 2)) USING iceberg")
    with pytest.raises(SinkError, match=r"has no column n \(only cust, total\); add the column, or name"):
        pipeline(spark, tmp_path / "one", name, "upsert").advance(first)
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (n BIGINT)")
    pipeline(spark, tmp_path / "two", name, "upsert").advance(first)
    with pytest.raises(SinkError, match="belongs to view by_cust of another checkpoint; name another table, or drop"):
        pipeline(spark, tmp_path / "three", name, "upsert").advance(first)
    with pytest.raises(SinkError, match=r"lake_2\.db\.t did not take it: .*lake_2"):
        pipeline(spark, tmp_path / "four", "lake_2.db.t", "upsert").advance(first)


@pytest.mark.parametrize("changes", ["appends", "snapshot"])
def test_an_iceberg_table_is_read_as_a_source(spark: Any, tmp_path: Path, name: str, changes: str) -> None:
    spark.sql(f"CREATE TABLE {name} (o_id BIGINT, cust STRING, total DECIMAL(12, 2)) USING iceberg")
    kind, form = ("STREAMING TABLE", "") if changes == "appends" else ("TABLE", ", changes 'snapshot'")
    (tmp_path / "shop.sql").write_text(f"""
        CREATE {kind} orders (o_id BIGINT PRIMARY KEY, cust STRING, total DECIMAL(12, 2))
          USING iceberg OPTIONS (path '{name}'{form});
        CREATE MATERIALIZED VIEW v AS {BY_CUST};
    """)
    statements = [
        f"INSERT INTO {name} VALUES (1, 'ann', 1.5), (2, 'bob', 2), (3, NULL, 1)",
        f"INSERT INTO {name} VALUES (4, 'ann', 1.5)",
    ]
    if changes == "snapshot":
        statements += [f"UPDATE {name} SET total = 9 WHERE o_id < 3", f"DELETE FROM {name} WHERE cust IS NULL"]
    for statement in statements:
        spark.sql(statement)
        Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True).awaitTermination()
        store = store_of(tmp_path / "shop.checkpoint")
        found = Counter(tuple(row.values()) for row in contents(store, latest(store), "v").to_pylist())
        assert found == expected([tuple(row) for row in spark.table(name).collect()])


@pytest.mark.full
@pytest.mark.kills
@pytest.mark.long("two pipelines in processes of their own")
def test_the_iceberg_example_survives_a_kill(tmp_path: Path) -> None:
    package = lake("iceberg")
    write_script(PAGE, tmp_path)
    (tmp_path / "orders").mkdir()
    orders = [(n, f"c{n % 3}", f"{n}.50") for n in range(60)]
    lines = ["o_id,cust,total", *(",".join(map(str, order)) for order in orders)]
    (tmp_path / "orders" / "1.csv").write_text("\n".join(lines))
    fault = Fault(tmp_path / "fault")
    fault.plan("sink written", "kill", "driver")
    killed = run_command(PAGE, tmp_path, package, fault)
    assert (killed.returncode, fault.met) == (-signal.SIGKILL, True), killed.stderr
    done = run_command(PAGE, tmp_path, package)
    assert done.returncode == 0, done.stderr
    table = tmp_path / "lake" / "db" / "by_cust"
    rows = duckdb.sql(f"SELECT cust, total, n FROM '{table}/data/*.parquet'").fetchall()
    assert Counter(rows) == expected(orders)
    assert len(list((table / "metadata").glob("snap-*"))) == 1


def test_an_option_that_would_lose_deletes_is_refused(tmp_path: Path) -> None:
    option = "'streaming-skip-delete-snapshots' 'true'"
    source = f"CREATE STREAMING TABLE t (a INT) USING iceberg OPTIONS (path 'lake.db.t', {option});"
    with pytest.raises(SqlError, match="lost unnoticed; leave it out, and read the table with changes 'snapshot'"):
        read_script(source, tmp_path)
    with pytest.raises(SqlError, match="iceberg needs the option path"):
        read_script("CREATE STREAMING TABLE t (a INT) USING iceberg OPTIONS (changes 'snapshot');", tmp_path)


def test_iceberg_tables_are_checked_before_a_run(spark: Any, tmp_path: Path, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    script = f"""
        CREATE STREAMING TABLE ids (id BIGINT) USING iceberg OPTIONS (path '{name}');
        CREATE STREAMING TABLE none (id BIGINT) USING iceberg OPTIONS (path 'lake.db.none');
        CREATE MATERIALIZED VIEW v USING iceberg OPTIONS (path 'lake.db.v') AS SELECT id FROM ids;
        CREATE MATERIALIZED VIEW w USING iceberg OPTIONS (path 'nowhere.db.v') AS SELECT id FROM ids;
    """
    found = {one.name: one.cause for one in tried(lambda: spark, read_script(script, tmp_path))}
    assert found["table ids"] is found["view v"] is None
    assert "none" in str(found["table none"]) and found["view w"] is not None
