"""A pipeline on Spark: every input row counts once, and a second run continues where the first one ended."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

import shutil

from freshviews.spark import Pipeline
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.shop import SCRIPT, Shop, delivered

pytestmark = pytest.mark.spark


def run_once(spark: Any, folder: Path) -> None:
    query = Pipeline.from_script(spark, folder / "shop.sql").start(once=True)
    query.awaitTermination()
    assert query.exception() is None


def rows_of(root: Path, view: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in contents(store_of(root), latest(store_of(root)), view).to_pylist()]


def test_a_view_over_two_folders_stays_fresh_over_several_runs(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    for _ in range(3):
        shop.write()
        run_once(spark, tmp_path)
        expected = shop.by_part()
        assert Counter(rows_of(tmp_path / "shop.checkpoint", "by_part")) == expected
        assert delivered(tmp_path / "out" / "by_part") == expected
        total = json.loads((tmp_path / "out" / "all_of_it" / "contents.json").read_text())
        assert total == {"parts": len(expected), "qty": sum(qty for _, qty, _ in expected)}


def test_a_new_view_is_backfilled_and_a_dropped_view_is_gone(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    run_once(spark, tmp_path)
    added = "CREATE MATERIALIZED VIEW customers AS SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust;"
    kept = SCRIPT.partition("CREATE MATERIALIZED VIEW all_of_it")[0]
    (tmp_path / "shop.sql").write_text(kept + added)
    shop.write()
    run_once(spark, tmp_path)
    root = tmp_path / "shop.checkpoint"
    customers = Counter(order[1] for order in shop.orders.values())
    assert Counter(dict(rows_of(root, "customers"))) == customers
    assert list(latest(store_of(root)).views) == ["by_part", "customers"]
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "old, new, message",
    [
        ("cust BIGINT", "cust STRING", "table orders differs from its definition"),
        ("SUM(qty) AS qty, COUNT(*) AS n", "SUM(qty) AS qty, COUNT(*) AS m", "view by_part has other columns"),
        (
            "CREATE MATERIALIZED VIEW by_part",
            "CREATE STREAMING TABLE more (a INT) USING json OPTIONS (path 'in');\nCREATE MATERIALIZED VIEW by_part",
            "streaming table more is new",
        ),
    ],
)
def test_changes_that_do_not_fit_the_checkpoint_are_refused(
    spark: Any, tmp_path: Path, old: str, new: str, message: str
) -> None:
    shop = Shop(tmp_path)
    shop.write(3, 3)
    run_once(spark, tmp_path)
    assert old in SCRIPT
    (tmp_path / "shop.sql").write_text(SCRIPT.replace(old, new))
    with pytest.raises(CheckpointError, match=message):
        run_once(spark, tmp_path)


def test_a_checkpoint_whose_spark_part_was_deleted_is_refused(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write(3, 3)
    run_once(spark, tmp_path)
    shutil.rmtree(tmp_path / "shop.checkpoint" / "spark")
    shop.write(3, 3)
    with pytest.raises(CheckpointError, match="begin with a new checkpoint"):
        run_once(spark, tmp_path)


def test_a_version_with_a_bad_row_is_not_applied_and_the_error_names_the_row(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write(3, 3)
    run_once(spark, tmp_path)
    before = latest(store_of(tmp_path / "shop.checkpoint"))
    bad = tmp_path / "in" / "items" / "bad.csv"
    bad.write_text("op,o_id,part,qty\n+,1,bolt,2\n+,1,bolt,many\n")
    with pytest.raises(PipelineError, match=r"table items.*bad\.csv, row 2"):
        run_once(spark, tmp_path)
    assert latest(store_of(tmp_path / "shop.checkpoint")) == before


def test_a_file_with_wrong_columns_stops_the_pipeline(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write(3, 3)
    run_once(spark, tmp_path)
    (tmp_path / "in" / "items" / "other.csv").write_text("part,o_id,op,qty\nbolt,1,+,2\n")
    with pytest.raises(PipelineError, match=r"CSV header does not conform.*other\.csv; .* newest file .*: start again"):
        run_once(spark, tmp_path)


def test_bad_rows_are_set_aside_with_the_reason_and_counted(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    (tmp_path / "shop.sql").write_text(SCRIPT.replace("changes 'op')", "changes 'op', bad_rows 'bad')"))
    shop.write()
    header = "op,o_id,part,qty\n"
    (tmp_path / "in" / "items" / "bad.csv").write_text(header + "+,1,bolt,many\n-,99,cog,5\nwhat,1,bolt,2\n+,3,x,1\n")
    shop.items.append((3, "x", 1))
    run_once(spark, tmp_path)
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()
    (file,) = (tmp_path / "bad").glob("items-*.json")
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["row"] for row in found] == [1, 2, 3]
    assert all(row["file"].endswith("bad.csv") and row["table"] == "items" for row in found)
    assert "declared columns and types" in found[0]["reason"]
    assert "not there" in found[1]["reason"]
    assert (found[2]["column"], found[2]["value"]) == ("op", "what") and "the accepted words are" in found[2]["reason"]
    assert latest(store_of(tmp_path / "shop.checkpoint")).totals["bad"] == {"items": 3}


def test_a_sink_function_gets_the_changes_of_a_view(spark: Any, tmp_path: Path) -> None:
    stream = tmp_path / "in"
    stream.mkdir()
    prices = spark.createDataFrame([("bolt", 2), ("nut", 3)], "part string, price int")
    sales = spark.readStream.schema("part string, qty int, `day` date").json(str(stream))
    seen: list[tuple[int, list[tuple[Any, ...]]]] = []
    p = Pipeline(spark, tmp_path / "ckpt")
    p.table("prices", prices, primary_key=["part"]).table("sales", sales)
    p.view(
        "income",
        "SELECT day, SUM(qty * price) AS income FROM sales JOIN prices USING (part) GROUP BY day",
        sink=lambda frame, version: seen.append((version, [tuple(row) for row in frame.collect()])),
    )
    query = p.start()
    try:
        (stream / "1.json").write_text('{"part": "bolt", "qty": 4, "day": "2026-01-01"}\n')
        query.processAllAvailable()
        (stream / "2.json").write_text('{"part": "nut", "qty": 1, "day": "2026-01-01"}\n')
        query.processAllAvailable()
        assert query.isActive and query.lastProgress is not None
    finally:
        query.stop()
    assert query.exception() is None
    day = date(2026, 1, 1)
    assert seen[0] == (2, [(day, 8, 1, 2)])
    assert sorted(seen[1][1], key=lambda row: row[2]) == [(day, 8, -1, 3), (day, 11, 1, 3)]


@pytest.mark.parametrize("by", ["listener", "sink"])
def test_a_listener_or_sink_may_stop_the_pipeline(spark: Any, tmp_path: Path, by: str) -> None:
    shop = Shop(tmp_path)
    shop.write()
    running: list[Any] = []
    seen: list[int] = []

    def stop(version: int) -> None:
        seen.append(version)
        if running:
            running[0].stop()
            assert running[0].isActive  # until the version is finished

    p = Pipeline.from_script(spark, tmp_path / "shop.sql")
    if by == "sink":
        p.view("pieces", "SELECT SUM(qty) AS qty FROM by_part", sink=lambda _, version: stop(version))
    query = p.start(listener=None if by == "sink" else lambda made: stop(made.version))
    query.processAllAvailable()
    running.append(query)
    shop.write()
    assert query.awaitTermination(60)
    assert not query.isActive and query.exception() is None
    assert seen[-1] == query.version
    running.clear()
    shop.write()
    p.start(once=True).awaitTermination()
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()


def test_upserts_replace_rows_in_the_order_of_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "shop.sql").write_text(
        "CREATE STREAMING TABLE t (k INT PRIMARY KEY, x INT) USING csv OPTIONS (path 'in', changes 'upsert');"
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(x) AS x FROM t"
    )
    for number, text in enumerate(("1,10\n2,20\n1,11\n", "2,21\n", "3,30\n1,12\n")):
        (tmp_path / "in" / f"{number}.csv").write_text(text)
        run_once(spark, tmp_path)
    assert rows_of(tmp_path / "shop.checkpoint", "v") == [(3, 12 + 21 + 30)]


def test_a_snapshot_is_compared_with_the_previous_snapshot(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "shop.sql").write_text(
        "CREATE STREAMING TABLE t (k INT, x INT) USING csv OPTIONS (path 'in', changes 'snapshot');"
        "CREATE MATERIALIZED VIEW v USING parquet OPTIONS (path 'out') AS SELECT k, SUM(x) AS x FROM t GROUP BY k"
    )
    for text, expected in (("1,10\n2,20\n", {1: 10, 2: 20}), ("2,20\n3,1\n", {2: 20, 3: 1})):
        (tmp_path / "in" / "t.csv").write_text(text)
        run_once(spark, tmp_path)
        assert delivered(tmp_path / "out") == Counter(expected.items()).__class__(dict.fromkeys(expected.items(), 1))


def test_spark_reads_the_contents_and_changes_of_views(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    run_once(spark, tmp_path)
    shop.write()
    run_once(spark, tmp_path)
    place = {"checkpoint": str(tmp_path / "shop.checkpoint"), "view": "by_part"}
    read = spark.read.format("freshviews").options(**place).load()
    assert Counter(tuple(row) for row in read.collect()) == shop.by_part()
    stream = spark.readStream.format("freshviews").options(**place, changes="true").load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "there"))
    writer.trigger(availableNow=True).start(str(tmp_path / "copy")).awaitTermination()
    total: Counter[tuple[Any, ...]] = Counter()
    for row in spark.read.parquet(str(tmp_path / "copy")).collect():
        total[tuple(row)[:3]] += row["_multiplicity"]
    assert Counter({row: count for row, count in total.items() if count}) == shop.by_part()


def test_a_micro_batch_that_is_committed_is_not_applied_again(spark: Any, tmp_path: Path) -> None:
    """As after a crash between the manifest and Spark's own commit, which then replays the micro-batch."""
    shop = Shop(tmp_path)
    shop.write()
    run_once(spark, tmp_path)
    root = tmp_path / "shop.checkpoint"
    before: Manifest = latest(store_of(root))
    for name in ("0", ".0.crc"):
        (root / "spark" / "commits" / name).unlink(missing_ok=True)
    run_once(spark, tmp_path)
    assert Manifests(store_of(root)).versions()[-1] == before.version
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()
