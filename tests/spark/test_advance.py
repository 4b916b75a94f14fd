"""Batch DataFrames of changes as versions: a nightly job without a stream."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
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
    """The pipeline as the process of each night creates it."""

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


@pytest.mark.full
@pytest.mark.large(2)
@pytest.mark.parametrize("cells", [2, 1])
def test_each_call_of_advance_makes_a_version(spark: Any, tmp_path: Path, cells: int) -> None:
    chance = random.Random(cells)
    bought: dict[int, tuple[int, int]] = {}
    parts: Counter[tuple[int, str]] = Counter()
    reported: Counter[tuple[Any, ...]] = Counter()
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
            reported[tuple(row)] += m
        assert +reported == rows_of(pipeline.view("by_cust")) and not -reported
        # The job is repeated: nothing is read twice, and nothing is delivered twice.
        again: list[tuple[Any, ...]] = []
        assert job(spark, tmp_path, again, cells).advance(given, call=f"night {night}") == night and not again
    all_of_it: Counter[tuple[Any, ...]] = Counter()
    for *row, m, _ in pipeline.changes("by_cust", after=0).collect():
        all_of_it[tuple(row)] += m
    assert +all_of_it == rows_of(pipeline.view("by_cust"))
    assert pipeline.advance({"orders": orders(spark, [(1, 1, 1)])}, call="night 1") == 1


@pytest.mark.parametrize("step", ["cells done", "manifest in place", "delivery noted", "call noted"])
def test_a_repeated_call_of_advance_applies_rows_once(
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


def test_a_stream_may_run_before_advance_is_repeated(
    spark: Any, tmp_path: Path, fault: Fault
) -> None:
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


def test_the_error_of_a_frame_that_does_not_fit_names_the_table(spark: Any, tmp_path: Path) -> None:
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
    with pytest.raises(CheckpointError, match="table orders differs from its definition"):
        other.advance()


def test_a_second_start_skips_a_data_frame_with_a_warning(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def pipeline(rows: list[tuple[int]]) -> Pipeline:
        frame = spark.createDataFrame(rows, "a BIGINT")
        return Pipeline(spark, tmp_path / "ckpt", cells=1).table("r", frame).view("v", "SELECT a FROM r")

    pipeline([(1,)]).start().awaitTermination()
    assert not caplog.records
    second = pipeline([(2,)])
    second.start().awaitTermination()
    assert "the DataFrame of table r was read by an earlier start" in caplog.text
    assert rows_of(second.view("v")) == Counter([(1,)])
    assert second.advance({"r": spark.createDataFrame([(2,)], "a BIGINT")}) == 2
    assert rows_of(second.view("v")) == Counter([(1,), (2,)])


GOODS = (
    "CREATE TABLE goods (a BIGINT, b STRING, price DECIMAL(9, 2) NOT NULL, note STRING NOT NULL, PRIMARY KEY (a, b))"
)


def goods(spark: Any, folder: Path, changes: str | None = "upsert", cells: int = 2, **options: str) -> Pipeline:
    made = Pipeline(spark, folder / "ckpt", cells=cells).table_of(GOODS, changes=changes, options=options)
    return made.view("v", "SELECT a, b, price FROM goods").view("s", "SELECT a, SUM(price) AS p FROM goods GROUP BY a")


def sold(spark: Any, *rows: tuple[int, str, int], **more: str) -> Any:
    frame = spark.createDataFrame(list(rows), "a BIGINT, b STRING, price INT")
    return frame.selectExpr("a", "b", "CAST(price AS DECIMAL(9, 2)) AS price", "'x' AS note", *more.values())


@pytest.mark.large(2)
@pytest.mark.parametrize(
    "changes", ["upsert", pytest.param("append", marks=pytest.mark.full), pytest.param("op", marks=pytest.mark.full)]
)
def test_advance_deletes_rows_by_a_frame_of_keys(
    spark: Any, tmp_path: Path, changes: str
) -> None:
    more = {"op": "'insert' AS op"} if changes == "op" else {}

    def pipeline() -> Pipeline:
        return goods(spark, tmp_path, changes)

    pipeline().advance({"goods": sold(spark, (1, "x", 1), (1, "y", 2), (2, "x", 3), **more)})
    # Other columns are ignored, and so is a key without a row.
    keys = spark.createDataFrame([("y", 1, "?"), ("z", 9, "?")], "B STRING, a BIGINT, price STRING")
    assert pipeline().advance(deletes={"GOODS": keys}, call="gone") == 2
    assert pipeline().advance(deletes={"goods": keys}, call="gone") == 2
    assert rows_of(pipeline().view("v")) == Counter([(1, "x", 1), (2, "x", 3)])
    assert rows_of(pipeline().view("s")) == Counter([(1, 1), (2, 3)])


@pytest.mark.parametrize("step", ["cells done", "manifest in place"])
def test_advance_applies_deletes_before_other_changes(
    spark: Any, tmp_path: Path, step: str, fault: Fault
) -> None:
    goods(spark, tmp_path).advance({"goods": sold(spark, (1, "x", 1), (2, "x", 2), (3, "x", 3))}, call="one")
    keys = spark.createDataFrame([(1, "x"), (2, "x")], "a BIGINT, b STRING")
    second = {"goods": sold(spark, (2, "x", 20), (4, "x", 4))}
    fault.plan(step, "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        goods(spark, tmp_path).advance(second, deletes={"goods": keys}, call="two")
    fault.forget()
    assert goods(spark, tmp_path).advance(second, deletes={"goods": keys}, call="two") == 2
    assert rows_of(goods(spark, tmp_path).view("v")) == Counter([(2, "x", 20), (3, "x", 3), (4, "x", 4)])


@pytest.mark.parametrize(("changes", "options"), [("upsert", {"op": "op"}), ("op", {})])
def test_a_frame_of_deletes_needs_only_the_key_and_the_op_column(
    spark: Any, tmp_path: Path, changes: str, options: dict[str, str]
) -> None:
    made = goods(spark, tmp_path, changes, **options)
    made.advance({"goods": sold(spark, (1, "x", 1), (2, "x", 2), (3, "x", 3), op="'insert' AS op")})
    made.advance({"goods": spark.createDataFrame([("delete", 1, "x")], "op STRING, a BIGINT, b STRING")})
    # A repeated key, and a key without a row, are ignored.
    keys = spark.createDataFrame([("x", 2), ("x", 2), ("z", 9)], "b STRING, a BIGINT")
    made.advance({"goods": sold(spark, (5, "x", 5), op="'insert' AS op")}, deletes={"goods": keys})
    assert rows_of(made.view("v")) == Counter([(3, "x", 3), (5, "x", 5)])
    with pytest.raises(PipelineError, match=r"table goods, .*column price: .*the input has no column price"):
        made.advance({"goods": spark.createDataFrame([("insert", 7, "x")], "op STRING, a BIGINT, b STRING")})


def test_the_error_of_a_frame_that_cannot_delete_by_key_names_the_table(spark: Any, tmp_path: Path) -> None:
    one = spark.createDataFrame([(1, "x")], "a BIGINT, b STRING")
    made = goods(spark, tmp_path).table_of(ITEMS).table_of(
        "CREATE TABLE sure (a BIGINT PRIMARY KEY) TBLPROPERTIES ('freshviews.trusted' = 'true')"
    )
    for deletes, message in (
        ({"good": one}, "unknown table good; did you mean goods"),
        ({"items": one}, "table items: keys to delete need a PRIMARY KEY, but the table has none"),
        ({"sure": one}, "table sure: keys to delete need stored rows, but the table is trusted"),
        ({"goods": one.drop("b")}, "table goods: keys to delete need the column b; the DataFrame has a"),
        ({"goods": spark.readStream.format("rate").load()}, "table goods: a streaming DataFrame has no end"),
    ):
        with pytest.raises(SourceError, match=message):
            made.advance(deletes=deletes)
    with pytest.raises(SourceError, match="keys to delete need changes 'upsert' or an op column"):
        goods(spark, tmp_path, "append").advance({"goods": sold(spark, (1, "x", 1))}, deletes={"goods": one})
    with pytest.raises(SourceError, match=r"keys to delete are applied before the DataFrame's rows and ignore at"):
        at = sold(spark, (1, "x", 1), at="1 AS at")
        goods(spark, tmp_path, "upsert", order="at").advance({"goods": at}, deletes={"goods": one})


def test_two_spellings_of_a_table_name_mean_the_same_table(spark: Any, tmp_path: Path) -> None:
    made = goods(spark, tmp_path)
    first, second = sold(spark, (1, "x", 1)), sold(spark, (2, "x", 2))
    with pytest.raises(SourceError, match="table goods: Goods and GOODS name the same table"):
        made.advance({"Goods": first, "GOODS": second})
    with pytest.raises(SourceError, match="table goods: goods and GOODS name the same table"):
        made.advance(deletes={"goods": first, "GOODS": second})
    made.advance({"Goods": first})
    made.advance({"Goods": second}, deletes={"GOODS": first})
    assert rows_of(made.view("v")) == Counter([(2, "x", 2)])


@pytest.mark.large(3)
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("json", "changes 'op'"),
        ("csv", "changes 'upsert', op 'op'"),
        ("parquet", "changes 'op'"),
        pytest.param("parquet", "changes 'upsert', op 'op'", marks=pytest.mark.full),
        pytest.param("json", "changes 'upsert', op 'op'", marks=pytest.mark.full),
        pytest.param("csv", "changes 'op'", marks=pytest.mark.full),
    ],
)
def test_files_of_deletes_need_only_key_and_op(
    spark: Any, tmp_path: Path, kind: str, changes: str
) -> None:
    (tmp_path / "in").mkdir()
    script = tmp_path / "shop.sql"
    script.write_text(f"""
        {GOODS.replace("TABLE", "STREAMING TABLE")} USING {kind} OPTIONS (path 'in', header 'true', {changes});
        CREATE MATERIALIZED VIEW v AS SELECT a, b, price, note FROM goods;
    """)

    def put(frame: Any, number: int) -> None:
        # One file, with a later time than the previous one.
        rows = frame.toArrow()
        if kind == "csv":
            pyarrow.csv.write_csv(rows, tmp_path / "new")
        elif kind == "json":
            given = [{name: value for name, value in row.items() if value is not None} for row in rows.to_pylist()]
            (tmp_path / "new").write_text("\n".join(json.dumps(row, default=str) for row in given))
        else:
            pyarrow.parquet.write_table(rows, tmp_path / "new")
        os.utime(tmp_path / "new", (number, number))
        (tmp_path / "new").rename(tmp_path / "in" / f"{number}.{kind}")

    def view() -> Counter[tuple[Any, ...]]:
        made = Pipeline.from_script(spark, script)
        made.start(once=True).awaitTermination()
        return rows_of(made.view("v"))

    whole = sold(spark, (1, "x", 1), (2, "x", 2), (3, "x", 3), op="'insert' AS op")
    whole = whole.select("op", "a", "b", "price", "note")
    gone = spark.createDataFrame([("delete", 1, "x")], "op STRING, a BIGINT, b STRING")
    if kind == "csv":  # All its files have the same columns.
        gone = gone.selectExpr("op", "a", "b", "CAST(NULL AS DECIMAL(9, 2)) AS price", "CAST(NULL AS STRING) AS note")
    put(whole, 1000)
    put(gone, 2000)
    assert view() == Counter([(2, "x", 2, "x"), (3, "x", 3, "x")])
    put(gone.selectExpr("op", "CAST(2 AS BIGINT) AS a", "b", *gone.columns[3:]), 3000)
    assert view() == Counter([(3, "x", 3, "x")])


def test_an_option_of_a_table_names_the_op_column_of_its_frame(spark: Any, tmp_path: Path) -> None:
    rows = [("upsert", 1, 10), ("upsert", 2, 20), ("delete", 1, None)]
    frame = spark.createDataFrame(rows, "kind STRING, a BIGINT, b BIGINT").coalesce(1)
    made = Pipeline(spark, tmp_path / "ckpt", cells=1)
    made.table("t", frame, changes="upsert", primary_key=["a"], options={"op": "kind"}).view("v", "SELECT * FROM t")
    made.start().awaitTermination()
    assert rows_of(made.view("v")) == Counter([(2, 20)])
