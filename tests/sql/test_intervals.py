"""INTERVAL columns and values, in and out of a database; tests/sql/function_calls.py has functions beside Spark."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshviews import BatchError, Database
from freshviews.errors import ArgumentError, EvaluationError, SqlError, UnsupportedSql
from freshviews.expr.nodes import Literal
from freshviews.spark.definition import catalog_of
from freshviews.stream.text import text_reader
from freshviews.types import Dictionary, interval
from tests.sql.printed import catalog, view

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

TABLE = "CREATE TABLE t (k INT PRIMARY KEY, i INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH, at TIMESTAMP)"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
AT = datetime(2024, 1, 31, 12)


ANSWERS: dict[str, list[str | None] | None] = json.loads(Path(__file__).with_name("spark_intervals.json").read_text())
"""By expression over constants, its type and its text in Spark 4.1; only the type if it fails; None if refused."""
KNOWN = catalog("CREATE TABLE q (a INT);")
OTHERWISE = {
    "INTERVAL '1' QUARTER": "accepted here",
    "CAST('106751992' AS INTERVAL DAY)": "an error here, where Spark overflows",
    "CAST('2562047789' AS INTERVAL HOUR)": "an error here, where Spark overflows",
    "CAST('-106751991 04:00:54.775808' AS INTERVAL DAY TO SECOND)": "64 bits that are those of NULL here",
}


def answer(expression: str) -> list[str | None]:
    """The type of an expression over constants, and its text. Raises SqlError."""
    made = view(f"SELECT {expression} AS y, CAST({expression} AS STRING) AS z FROM q", KNOWN)
    text = made.blocks[0].outputs[1].expr
    assert isinstance(text, Literal), expression
    return [str(made.columns[0].type).lower().replace(", ", ","), text.value]  # type: ignore[list-item]


def test_an_expression_of_intervals_has_the_same_type_and_text_as_in_spark() -> None:
    differing = []
    for expression, spark in ANSWERS.items():
        try:
            here = answer(expression)
        except SqlError:
            here = []
        there = [spark[0].replace("timestamp_ntz", "timestamp"), spark[1]] if spark and spark[0] and spark[1:] else []
        if here != there and expression not in OTHERWISE:
            differing.append((expression, here, there))
    assert not differing, f"{len(differing)} differ; the first is {differing[0]}"


def filled(*rows: tuple[Any, ...]) -> Database:
    database = Database()
    database.execute(TABLE)
    database.insert("t", rows)
    return database


def test_intervals_are_read_as_timedeltas_or_numbers_of_months() -> None:
    with filled((1, -HOUR, 14, AT), (2, None, None, None)) as database:
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT k, i * 2 AS i, -m AS m, at + i AS a, at - m AS b FROM t")
        view = database.view("v")
        assert list(view) == [(1, -2 * HOUR, -14, AT - HOUR, datetime(2022, 11, 30, 12)), (2, None, None, None, None)]
        assert [field.type for field in view.to_arrow().schema][1:3] == [pa.duration("us"), pa.int32()]


def test_groups_and_aggregates_of_intervals_follow_inserts_and_deletes() -> None:
    with filled((1, HOUR, 3, AT), (2, DAY, 4, AT), (3, None, None, AT)) as database:
        aggregates = "SUM(i), AVG(i), MIN(m), MAX(i), SUM(m), AVG(m)"
        database.execute(f"CREATE MATERIALIZED VIEW v AS SELECT at, {aggregates} FROM t GROUP BY at")
        database.execute("CREATE MATERIALIZED VIEW w AS SELECT i, COUNT(*) AS n FROM t GROUP BY i ORDER BY i DESC")
        assert list(database.view("v")) == [(AT, DAY + HOUR, (DAY + HOUR) / 2, 3, DAY, 7, 4)]
        assert list(database.view("w")) == [(DAY, 1), (HOUR, 1), (None, 1)]
        database.delete("t", [(2, DAY, 4, AT)])
        database.insert("t", [(2, HOUR, -6, AT)])
        assert list(database.view("v")) == [(AT, 2 * HOUR, HOUR, -6, HOUR, -3, -2)]
        assert list(database.view("w")) == [(HOUR, 2), (None, 1)]


def test_a_sum_of_months_beyond_32_bits_is_an_error_and_try_sum_returns_null() -> None:
    with filled((1, None, 2**31 - 1, None)) as database:
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT TRY_SUM(m) AS m, AVG(m) AS a FROM t")
        database.insert("t", [(2, None, 2**31 - 1, None)])
        assert list(database.view("v")) == [(None, 2**31 - 1)]
        with pytest.raises(EvaluationError, match="does not fit the type"):
            database.execute("CREATE MATERIALIZED VIEW w AS SELECT SUM(m) AS m FROM t")


def test_differences_of_timestamps_may_be_joined_and_summed() -> None:
    with filled((1, HOUR, None, AT), (2, None, None, AT + HOUR), (3, None, None, AT + DAY)) as database:
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, b.k AS l FROM t a JOIN t b ON b.at - a.at = a.i")
        database.execute("CREATE MATERIALIZED VIEW w AS SELECT SUM(at - TIMESTAMP '2024-01-31 00:00:00') AS s FROM t")
        assert list(database.view("v")) == [(1, 2)]
        assert list(database.view("w")) == [(1.5 * DAY + HOUR + DAY,)]


def test_statements_defaults_and_parameters_accept_intervals(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as database:
        columns = "k INT PRIMARY KEY, i INTERVAL DAY DEFAULT INTERVAL '2' DAY, m INTERVAL MONTH"
        database.execute(f"CREATE TABLE u ({columns})")
        database.execute("INSERT INTO u (k, m) VALUES (1, INTERVAL '1-2' YEAR TO MONTH)")
        database.execute("INSERT INTO u VALUES (?, ?, ?)", 2, DAY, 5)
        database.execute("UPDATE u SET i = i + INTERVAL '1' DAY WHERE i = ?", DAY)
        database.execute("ALTER TABLE u ALTER COLUMN i TYPE INTERVAL DAY TO SECOND")
    with Database(tmp_path / "db") as database:
        assert sorted(database.table("u")) == [(1, 2 * DAY, 14), (2, 2 * DAY, 5)]
        assert database.table("u")[2] == (2, 2 * DAY, 5)


def test_arrow_and_numpy_durations_are_read() -> None:
    with Database() as database:
        durations = pa.array([1, None], pa.duration("ms"))
        database.create_table("f", pa.table({"k": pa.array([1, 2], pa.int32()), "d": durations}))
        assert list(database.table("f")) == [(1, timedelta(milliseconds=1)), (2, None)]
        database.insert("f", [(3, np.timedelta64(2, "h")), (4, np.timedelta64(5000, "ns"))])
        assert sorted(database.table("f"))[2:] == [(3, 2 * HOUR), (4, timedelta(microseconds=5))]
        with pytest.raises(BatchError, match="whole microseconds"):
            database.insert("f", [(5, np.timedelta64(5001, "ns"))])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1, 5, None, None), "INTERVAL DAY TO SECOND accepts datetime.timedelta, not int"),
        ((1, None, DAY, None), "INTERVAL YEAR TO MONTH accepts int, a number of months, not timedelta"),
        ((1, None, 2**31, None), "INTERVAL YEAR TO MONTH accepts -2147483648 to 2147483647 months"),
        ((1, timedelta(days=10**9 - 1), None, None), "INTERVAL DAY TO SECOND accepts times that fit 64 bits"),
    ],
)
def test_a_value_that_is_not_an_interval_of_the_column_type_is_refused(row: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BatchError, match=message):
        filled(row)


def test_a_select_and_a_pipeline_refuse_interval_columns() -> None:
    pytest.importorskip("duckdb")
    with filled((1, HOUR, 3, AT)) as database:
        assert database.sql("SELECT k FROM t").fetchall() == [(1,)]
        with pytest.raises(SqlError, match=r"t\.i is an INTERVAL DAY TO SECOND, which a SELECT cannot read"):
            database.sql("SELECT i FROM t")
    with pytest.raises(UnsupportedSql, match=r"t\.i, an INTERVAL DAY TO SECOND, as a column of a pipeline"):
        catalog_of(TABLE)


def test_texts_in_a_source_are_read_like_arguments_of_cast() -> None:
    dictionary = Dictionary()
    assert text_reader(interval("DAY", "SECOND"), dictionary)("INTERVAL '1 00:00:01' DAY TO SECOND") == 86_401_000_000
    assert text_reader(interval("YEAR", "MONTH"), dictionary)("1-2") == 14
    with pytest.raises(ValueError, match="'1' is not an INTERVAL YEAR TO MONTH; '1-0' is accepted"):
        text_reader(interval("YEAR", "MONTH"), dictionary)("1")


def test_a_date_plus_an_interval_of_days_is_a_date() -> None:
    with Database() as database:
        database.execute("CREATE TABLE d (d DATE, i INTERVAL DAY, h INTERVAL HOUR)")
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT d + i AS a, d - h AS b, d - (d + i) AS c FROM d")
        database.insert("d", [(date(2024, 2, 28), 2 * DAY, HOUR)])
        assert list(database.view("v")) == [(date(2024, 3, 1), datetime(2024, 2, 27, 23), -2 * DAY)]


def test_a_difference_of_timestamps_can_be_compared_with_any_interval() -> None:
    db = Database()
    db.execute("CREATE TABLE t (a TIMESTAMP, b TIMESTAMP)")
    for name, size in (("short", "INTERVAL '10' DAY"), ("long", "INTERVAL '106751991' DAY")):
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT b FROM t WHERE b - a < {size}")
    rows = [(datetime(2026, 1, 1), datetime(2026, 1, 2)), (datetime(2026, 1, 1), datetime(2026, 3, 2))]
    db.insert("t", rows)
    assert [len(db.view(name)) for name in ("short", "long")] == [1, 2]
    with pytest.raises(SqlError, match="is not a number"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT '2026-01-03' - '2026-01-01' < INTERVAL '5' DAY AS y FROM t")


@pytest.mark.parametrize("amount", ["1_000", "1.-5", "9" * 5000])
def test_an_interval_whose_amount_is_not_a_plain_number_is_refused(amount: str) -> None:
    db = Database()
    db.execute("CREATE TABLE t (a INT)")
    with pytest.raises(SqlError, match="is not a number of seconds"):
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT INTERVAL '{amount}' SECOND AS y FROM t")


def test_a_registered_function_of_numbers_refuses_an_interval() -> None:
    db = Database()
    db.function("twice_of_number", lambda x: 2 * x, takes=["BIGINT"], returns="BIGINT")
    db.execute("CREATE TABLE t (i INTERVAL DAY TO SECOND)")
    with pytest.raises(SqlError, match="is BIGINT: CAST the INTERVAL DAY TO SECOND"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT twice_of_number(i) AS y FROM t")


@pytest.mark.parametrize(
    "call",
    [
        "date_from_unix_date({})", "from_unixtime({})", "bitmap_bit_position({})", "bitmap_bucket_number({})",
        "make_date({}, 1, 1)", "make_date(1, {}, 1)", "make_timestamp(2024, 1, 1, 1, 1, {})",
        "make_timestamp_ntz(2024, {}, 1, 1, 1, 1)", "add_months(DATE '2024-01-31', {})",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["INTERVAL '1' DAY", "INTERVAL '1' MONTH", "TRUE", "DATE '2024-01-31'"])
def test_a_built_in_function_refuses_an_interval_in_place_of_a_number(call: str, value: str) -> None:
    with pytest.raises(SqlError, match=r"takes numbers, not|a number of months must be"):
        answer(call.format(value))


def test_an_error_of_try_subtract_names_the_function() -> None:
    table = "CREATE TABLE q (i INTERVAL DAY, s STRING);"
    with pytest.raises(UnsupportedSql, match="try_subtract of an argument that may fail"):
        view("SELECT try_subtract(i, CAST(s AS INTERVAL DAY)) AS y FROM q", catalog(table))


def test_a_select_inside_merge_or_insert_cannot_return_an_interval() -> None:
    pytest.importorskip("duckdb")
    with filled((1, HOUR, 3, AT)) as database:
        message = "column m of the query is an INTERVAL, and a SELECT cannot return an INTERVAL"
        source = "(SELECT 1 AS k, INTERVAL '1' MONTH AS m) s"
        with pytest.raises(SqlError, match=message):
            database.execute(f"MERGE INTO t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE SET m = s.m")
        with pytest.raises(SqlError, match=message):
            database.execute("INSERT INTO t (k, m) SELECT 2, INTERVAL '1' MONTH AS m")
        with pytest.raises(ArgumentError, match="INTERVALs of months, days and nanoseconds have no SQL type"):
            database.execute("CREATE TABLE u AS SELECT INTERVAL '1' MONTH AS m")
        source = "(SELECT 1 AS k) s"
        database.execute(f"MERGE INTO t USING {source} ON t.k = s.k WHEN MATCHED THEN UPDATE SET m = INTERVAL '1' YEAR")
        assert list(database.table("t")) == [(1, HOUR, 12, AT)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("INTERVAL DAY DEFAULT 5", 5 * DAY),
        ("INTERVAL DAY DEFAULT '5'", 5 * DAY),
        ("INTERVAL DAY TO SECOND DEFAULT INTERVAL '1' DAY", DAY),
        ("INTERVAL DAY TO SECOND DEFAULT INTERVAL '90 minutes'", 1.5 * HOUR),
        ("INTERVAL DAY DEFAULT INTERVAL '2' DAY * 2", 4 * DAY),
        ("INTERVAL MONTH DEFAULT INTERVAL '1' YEAR", 12),
        ("INTERVAL MONTH DEFAULT 5", 5),
        ("INTERVAL DAY DEFAULT NULL", None),
        ("INT DEFAULT INTERVAL '13' MONTH", 13),
    ],
)
def test_the_default_of_an_interval_column_is_an_interval_or_a_number_of_its_last_field(
    column: str, value: Any
) -> None:
    with Database() as database:
        database.execute(f"CREATE TABLE d (k INT, i {column})")
        database.execute("INSERT INTO d (k) VALUES (1)")
        assert list(database.table("d")) == [(1, value)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("INTERVAL DAY DEFAULT INTERVAL '1' MONTH", "INTERVAL MONTH cannot be cast to INTERVAL DAY"),
        ("INTERVAL MONTH DEFAULT TRUE", "BOOLEAN cannot be cast to INTERVAL MONTH"),
        ("INTERVAL DAY DEFAULT INTERVAL '1' HOUR", "the value would be rounded; write the exact value"),
        ("INTERVAL YEAR DEFAULT INTERVAL '13' MONTH", "the value would be rounded; write the exact value"),
        ("INTERVAL DAY DEFAULT 1.5", "the value would be rounded; write the exact value"),
    ],
)
def test_a_default_that_does_not_fit_an_interval_column_is_refused(column: str, message: str) -> None:
    with Database() as database, pytest.raises(SqlError, match=message):
        database.execute(f"CREATE TABLE d (k INT, i {column})")
