"""Batch DataFrames of changes as versions: a nightly job needs no stream."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.errors import SourceError
from freshviews.spark import Pipeline
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault

pytestmark = pytest.mark.spark

ORDERS = "CREATE TABLE orders (o_id BIGINT NOT NULL, cust BIGINT, total BIGINT, PRIMARY KEY (o_id))"
ITEMS = "CREATE TABLE items (o_id BIGINT, part STRING)"
BY_CUST = "SELECT cust, part, SUM(total) AS total, COUNT(*) AS n FROM orders JOIN items USING (o_id) GROUP BY ALL"


def job(spark: Any, folder: Path, seen: list[tuple[Any, ...]] | None = None, cells: int = 1) -> Pipeline:
    """The pipeline as each night's process makes it."""

    def note(rows: Any, _: int) -> None:
        assert seen is not None
        seen.extend(map(tuple, rows.collect()))

    made = Pipeline(spark, folder / "ckpt", cells=cells)
    made.table_of(ORDERS, changes="upsert").table_of(ITEMS, changes="op")
    made.view("by_cust", BY_CUST, sink=None if seen is None else note)
    return made


def orders(spark: Any, rows: list[tuple[int, int | None, int | None]]) -> Any:
    return spark.createDataFrame(rows, "o_id BIGINT, cust BIGINT, total BIGINT").coalesce(1)


def items(spark: Any, rows: list[tuple[str, int, str]]) -> Any:
    return spark.createDataFrame(rows, "op STRING, o_id BIGINT, part STRING")


def rows_of(frame: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("cells", [1, 2])
def test_each_call_is_a_version_and_views_are_exact(spark: Any, tmp_path: Path, cells: int) -> None:
    chance = random.Random(cells)
    bought: dict[int, tuple[int, int]] = {}
    parts: Counter[tuple[int, str]] = Counter()
    told: Counter[tuple[Any, ...]] = Counter()
    for night in range(1, 4):
        seen: list[tuple[Any, ...]] = []
        new = [(chance.randrange(12), chance.randrange(3), chance.randrange(100)) for _ in range(6)]
        bought.update({o: (cust, total) for o, cust, total in new})
        changes = [("insert", chance.randrange(12), chance.choice("abc")) for _ in range(8)]
        changes += [("delete", *one) for one in list(parts)[:2]]
        for op, o, part in changes:
            parts[o, part] += 1 if op == "insert" else -1
        parts = +parts
        pipeline = job(spark, tmp_path, seen, cells)
        given = {"orders": orders(spark, new), "ITEMS": items(spark, changes)}
        assert pipeline.advance(given, call=f"night {night}") == night
        expected: dict[tuple[int, str], list[int]] = {}
        for (o, part), n in parts.items():
            if o in bought:
                group = expected.setdefault((bought[o][0], part), [0, 0])
                group[0] += n * bought[o][1]
                group[1] += n
        assert rows_of(pipeline.view("by_cust")) == Counter((*key, *sums) for key, sums in expected.items())
        change = pipeline.changes("by_cust").collect()
        assert {row["_version"] for row in change} <= {night}
        assert Counter(map(tuple, change)) == Counter(seen)
        for *row, m, _ in change:
            told[tuple(row)] += m
        assert +told == rows_of(pipeline.view("by_cust")) and not -told
        # The job is tried again: nothing is read twice, and nothing is delivered twice.
        again: list[tuple[Any, ...]] = []
        assert job(spark, tmp_path, again, cells).advance(given, call=f"night {night}") == night and not again
    all_of_it: Counter[tuple[Any, ...]] = Counter()
    for *row, m, _ in pipeline.changes("by_cust", after=0).collect():
        all_of_it[tuple(row)] += m
    assert +all_of_it == rows_of(pipeline.view("by_cust"))
    assert pipeline.advance({"orders": orders(spark, [(1, 1, 1)])}, call="night 1") == 1


@pytest.mark.parametrize("step", ["cells done", "manifest in place", "delivery noted", "call noted"])
def test_a_call_that_fails_and_is_tried_again_takes_its_rows_once(
    spark: Any, tmp_path: Path, step: str, fault: Fault
) -> None:
    seen: list[tuple[Any, ...]] = []
    first = {"orders": orders(spark, [(1, 7, 10)]), "items": items(spark, [("insert", 1, "a")])}
    job(spark, tmp_path, seen).advance(first, call="one")
    second = {"items": items(spark, [("insert", 1, "a"), ("insert", 1, "b")])}
    fault.plan(step, "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        job(spark, tmp_path, seen).advance(second, call="two")
    fault.forget()
    assert job(spark, tmp_path, seen).advance(second, call="two") == 2
    assert rows_of(job(spark, tmp_path).view("by_cust")) == Counter([(7, "a", 20, 2), (7, "b", 10, 1)])
    assert Manifests(store_of(tmp_path / "ckpt")).versions() == [1, 2]


def test_a_stream_between_a_call_that_failed_and_its_repetition(spark: Any, tmp_path: Path, fault: Fault) -> None:
    (tmp_path / "in").mkdir()

    def give(number: int) -> None:
        (tmp_path / f"{number}.json").write_text(f'{{"a": {number}}}\n')
        (tmp_path / f"{number}.json").rename(tmp_path / "in" / f"{number}.json")

    def pipeline() -> Pipeline:
        stream = spark.readStream.schema("a BIGINT").json(str(tmp_path / "in"))
        made = Pipeline(spark, tmp_path / "ckpt", cells=1).table("r", stream).table_of("CREATE TABLE s (a BIGINT)")
        return made.view("v", "SELECT a FROM r UNION ALL SELECT a FROM s")

    give(1)
    pipeline().start(once=True).awaitTermination()
    rows = {"s": spark.createDataFrame([(10,)], "a BIGINT")}
    fault.plan("manifest in place", "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        pipeline().advance(rows, call="night")
    fault.forget()
    give(2)
    pipeline().start(once=True).awaitTermination()
    pipeline().advance(rows, call="night")
    assert rows_of(pipeline().view("v")) == Counter([(1,), (2,), (10,)])


def test_what_cannot_be_taken_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    pipeline = job(spark, tmp_path)
    with pytest.raises(SourceError, match="unknown table order; did you mean orders"):
        pipeline.advance({"order": orders(spark, [])})
    with pytest.raises(SourceError, match="table items: the source has no column part; its columns are o_id"):
        pipeline.advance({"items": orders(spark, [])})
    with pytest.raises(SourceError, match="table orders: a streaming DataFrame has no end"):
        pipeline.advance({"orders": spark.readStream.format("rate").load()})
    assert pipeline.advance() == 1
    with pytest.raises(PipelineError, match="delete of a row that is not there"):
        pipeline.advance({"items": items(spark, [("insert", 1, "a"), ("delete", 9, "x")])}, call="wrong")
    assert pipeline.advance({"items": items(spark, [("insert", 1, "a")])}, call="wrong") == 2
    other = Pipeline(spark, tmp_path / "ckpt").table_of(ORDERS.replace("BIGINT, total", "STRING, total"))
    with pytest.raises(CheckpointError, match="table orders is not what it was"):
        other.advance()


def test_a_second_batch_frame_of_a_start_is_told_and_taken_by_advance(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def pipeline(rows: list[tuple[int]]) -> Pipeline:
        frame = spark.createDataFrame(rows, "a BIGINT")
        return Pipeline(spark, tmp_path / "ckpt", cells=1).table("r", frame).view("v", "SELECT a FROM r")

    pipeline([(1,)]).start().awaitTermination()
    assert not caplog.records
    second = pipeline([(2,)])
    second.start().awaitTermination()
    assert "table r has the rows of its DataFrame since an earlier start" in caplog.text
    assert rows_of(second.view("v")) == Counter([(1,)])
    assert second.advance({"r": spark.createDataFrame([(2,)], "a BIGINT")}) == 2
    assert rows_of(second.view("v")) == Counter([(1,), (2,)])
