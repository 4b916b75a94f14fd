"""Functions of texts and of time have Spark's values, and all texts have one limit of length."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.csv import read_csv

from freshviews import Database
from freshviews.errors import EvaluationError, FreshviewsError, SqlError
from freshviews.expr import strings

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]


def rows_of(query: str, columns: str = "x INT, s STRING", rows: Any = ((0, "abc"), (1, "def"), (1, None))) -> list[Any]:
    with Database() as database:
        database.execute(f"CREATE TABLE t ({columns})")
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        database.insert("t", [*rows])
        return sorted(database.view("v"), key=repr)


def value_of(expression: str) -> Any:
    ((value,),) = rows_of(f"SELECT {expression} AS y FROM t WHERE x = 0")
    return value


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("TIMESTAMP_SECONDS(1.25)", dt.datetime(1970, 1, 1, 0, 0, 1, 250_000)),
        ("TIMESTAMP_SECONDS(1.1234560)", dt.datetime(1970, 1, 1, 0, 0, 1, 123_456)),
        ("TIMESTAMP_SECONDS(x + 1.25)", dt.datetime(1970, 1, 1, 0, 0, 1, 250_000)),
        ("TIMESTAMP_SECONDS(x - 1.1234567D)", dt.datetime(1969, 12, 31, 23, 59, 58, 876_544)),
        ("TIMESTAMP_SECONDS(x + CAST(1.5 AS FLOAT))", dt.datetime(1970, 1, 1, 0, 0, 1, 500_000)),
        ("TIMESTAMP_SECONDS(DOUBLE('NaN'))", None),
        ("TIMESTAMP_SECONDS(x + DOUBLE('-inf'))", None),
        ("CAST(x - 1.1234567 AS TIMESTAMP)", dt.datetime(1969, 12, 31, 23, 59, 58, 876_544)),
        ("TRY_CAST(x + DOUBLE('NaN') AS TIMESTAMP)", None),
        ("CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS TINYINT)", -1),
        ("CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS DECIMAL(10, 0))", Decimal(-1)),
        ("TRY_CAST(TIMESTAMP '2020-01-01 00:00:00' AS SMALLINT)", None),
        ("UNIX_TIMESTAMP(TIMESTAMP '1969-12-31 23:59:59.5')", 0),
        ("UNIX_SECONDS(TIMESTAMP '1969-12-31 23:59:59.5')", -1),
        ("UNIX_TIMESTAMP('2020-01-01', 'yyyy-MM-dd')", 1_577_836_800),
        ("DATE_FROM_UNIX_DATE(1L)", dt.date(1970, 1, 2)),
        ("DATEADD(QUARTER, 5, DATE '2022-02-25')", dt.datetime(2023, 5, 25)),
        ("DATE_ADD(MONTH, x + 1, DATE '2022-01-31')", dt.datetime(2022, 2, 28)),
        ("TIMESTAMPADD(HOUR, -1, DATE '2022-02-25')", dt.datetime(2022, 2, 24, 23)),
        ("DATE_ADD(DATE '2022-02-25', '1')", dt.date(2022, 2, 26)),
        ("ADD_MONTHS(DATE '2022-02-25', 1.9)", dt.date(2022, 3, 25)),
        ("DATEDIFF(MONTH, DATE '2020-02-29', DATE '1969-12-31')", -601),
        ("'2020-01-31 10:00:00.5' + INTERVAL '1' HOUR", "2020-01-31 11:00:00.5"),
        ("REGEXP_SUBSTR('1a 2b', '')", None),
        ("REGEXP_SUBSTR(s, 'y*')", None),
        ("REGEXP_SUBSTR(s, 'b')", "b"),
        ("SUBSTRING_INDEX('aaaaa', 'aa', 2)", "a"),
        ("SUBSTRING_INDEX('aaaaa', 'aa', -2)", "a"),
        ("SUBSTRING_INDEX(s, 'b', -1)", "c"),
        ("HEX(s)", "616263"),
        ("HEX('é')", "C3A9"),
        ("HEX(x - 1)", "FFFFFFFFFFFFFFFF"),
        ("HEX(255.9)", "FF"),
        ("+ '1'", 1.0),
        ("-1::STRING || 'a'", "-1a"),
        ("-CAST(1 AS STRING) || 'a'", "-1.0a"),
        ("2 - -1::STRING", 3),
        ("pmod(x - 7.5D, 2D)", 0.5),
        ("'1' & 1S", 1),
        ("year(DATE '1999-01-08 x')", 1999),
        ("log(x + 1, 5)", math.inf),
        ("log(1, 0.5)", -math.inf),
        ("isnan(log(x + 1, 1e0))", True),
        ("log(x, 5)", None),
        ("log(2, x + 8)", 3.0),
        ("try_add(s, 1)", None),
        ("try_add(s, CAST(s AS INT))", None),
        ("try_subtract('a', x)", None),
        ("try_multiply('3', x + 2)", 6),
        ("try_mod(1, s)", None),
        ("try_divide(1.5, s)", None),
        ("to_timestamp_ntz(x + 2020)", dt.datetime(2020, 1, 1)),
        ("to_timestamp_ntz(DATE '2020-01-01')", dt.datetime(2020, 1, 1)),
    ],
)
def test_a_function_returns_the_same_value_as_spark(expression: str, answer: Any) -> None:
    found = value_of(expression)
    assert found == answer and type(found) is type(answer)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("DATE '1999 Jan 08'", "not a date"),
        ("year('1999 01 08')", "not a date"),
        ("to_date('1999T')", "not a date"),
        ("to_timestamp_ntz(TRUE)", "not a timestamp"),
        ("try_make_timestamp(2020, 'abc', 1, 1, 1, 1)", "not an integer"),
        ("try_make_timestamp(2020, s, 1, 1, 1, 1)", "try_make_timestamp of an argument whose"),
        ("TIMESTAMP_SECONDS(1.1234567)", "does not fit the type"),
        ("TIMESTAMP_SECONDS('1')", "takes a number"),
        ("TIMESTAMP_MILLIS(1.5)", "must be an integer, not DECIMAL"),
        ("hour(1.5)", "a TIMESTAMP is needed here"),
        ("s + INTERVAL '1' MONTH", "DATE or TIMESTAMP"),
        ("round(1, 2, 3)", "round takes 1 or 2 arguments, not 3"),
        ("upper()", "upper takes 1 argument, not 0"),
        ("concat()", "concat takes 1 or more arguments, not 0"),
        ("timestampadd(1, 2)", "timestampadd takes 3 arguments, not 2"),
    ],
)
def test_an_invalid_expression_is_refused_with_the_reason(expression: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        value_of(expression)


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        ("replace(repeat('a', 100), 'a', {})", "replace"),
        ("regexp_replace(repeat('a', 100), 'a', {})", "regexp_replace"),
        ("concat({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, 'a')", "concat"),
        ("concat_ws({}, {}, {}, {}, {}, {}, 'b')", "concat_ws"),
        ("lpad({}, 1001)", "lpad"),
        ("rpad({}, 1001)", "rpad"),
        ("repeat({}, 11)", "repeat"),
        ("hex(repeat({}, 6))", "hex"),
    ],
)
def test_a_function_that_lengthens_a_text_has_a_limit(
    expression: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strings, "LONGEST", 1000)
    message = rf"{function}: a text of \d+ characters is too long; at most 1000 are accepted"
    long = "b" * 100
    with pytest.raises(SqlError, match=message):
        value_of(f"length({expression.replace('{}', repr(long))})")
    with pytest.raises(EvaluationError, match=message):
        rows_of(f"SELECT length({expression.replace('{}', 's')}) AS y FROM t", rows=[(0, long)])


def test_the_text_of_string_agg_has_the_same_limit_as_other_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strings, "LONGEST", 1000)
    with Database() as database:
        database.execute("CREATE TABLE t (x INT, s STRING)")
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT x, STRING_AGG(s, '-') AS y FROM t GROUP BY x")
        with pytest.raises(EvaluationError, match=r"string_agg: a text of 1006 characters .* at most 1000"):
            database.apply("t", [(0, "b" * 52, 19)])


@pytest.mark.parametrize("call", ["COUNT(CAST(s AS INT))", "COUNT(1 / (x - 1))", "REGR_COUNT(s, x)"])
def test_the_function_count_evaluates_an_argument_that_may_fail(call: str) -> None:
    with pytest.raises(EvaluationError):
        rows_of(f"SELECT {call} AS y FROM t")
    assert rows_of("SELECT COUNT(CAST(s AS INT)), COUNT(CAST(s AS INT)) FILTER (WHERE x = 1) FROM t", rows=[(0, "7")])


LEAST = -(2**63)


@pytest.mark.parametrize(
    "expression",
    [
        "-9223372036854775808", "-9223372036854775808L", "BIGINT(DOUBLE('-9223372036854775808.5'))",
        "TRY_CAST('-9223372036854775808' AS BIGINT)", "TRY_CAST(-9223372036854775808D AS BIGINT)",
        "-9223372036854775807 - 1", "-4611686018427387904 * 2", "~9223372036854775807", "9223372036854775807 ^ -1",
        "-9223372036854775807 & -9223372036854775806", "floor(-9223372036854775808D)",
        "TIMESTAMP '-290308-12-21 19:59:05.224192'", "x IN (-9223372036854775808)",
        "timestamp_micros(-9223372036854775807 - 1)",
    ],
)  # fmt: skip
def test_the_least_bigint_as_a_constant_is_refused(expression: str) -> None:
    with pytest.raises(SqlError, match=f"{LEAST} cannot be stored: its 64-bit code stands for NULL"):
        value_of(expression)


@pytest.mark.parametrize(
    ("expression", "row"),
    [
        ("CAST(d AS BIGINT)", (0, float(LEAST), "")),
        ("TRY_CAST(d AS BIGINT)", (0, float(LEAST), "")),
        ("floor(d)", (0, float(LEAST), "")),
        ("CAST(w AS BIGINT)", (0, 0.0, str(LEAST))),
        ("TRY_CAST(w AS BIGINT)", (0, 0.0, str(LEAST))),
        ("w + k", (0, 0.0, str(LEAST))),
        ("TRY_CAST(w AS TIMESTAMP)", (0, 0.0, "-290308-12-21 19:59:05.224192")),
        ("k - 1", (LEAST + 1, 0.0, "")),
        ("k * 2", (LEAST // 2, 0.0, "")),
        ("k & -9223372036854775806", (LEAST + 1, 0.0, "")),
        ("~k", (-LEAST - 1, 0.0, "")),
    ],
)
def test_a_batch_with_the_least_bigint_is_refused(expression: str, row: tuple[Any, ...]) -> None:
    with pytest.raises(EvaluationError, match=f"{LEAST}.* stands for NULL"):
        rows_of(f"SELECT {expression} AS y FROM t", "k BIGINT, d DOUBLE, w STRING", [row])


def test_an_aggregate_that_equals_the_least_bigint_is_refused() -> None:
    for rows, function in (([(LEAST + 1,), (-1,)], "SUM"), ([(LEAST + 1,), (LEAST + 2,)], "BIT_AND")):
        with pytest.raises(EvaluationError, match=f"{LEAST}.* stands for NULL"):
            rows_of(f"SELECT {function}(k) AS y FROM t", "k BIGINT", rows)


def test_the_least_bigint_is_refused_by_every_way_into_a_table_and_named_with_its_remedy() -> None:
    column = pa.array([1, LEAST], pa.int64())
    ways: dict[str, Callable[[Database], object]] = {
        "row 0, column k": lambda db: db.insert("t", [(LEAST,)]),
        "row 1, column k": lambda db: db.insert("t", pa.table({"k": column})),
        "row 2, column k": lambda db: db.insert("t", read_csv(BytesIO(f"k\n1\n2\n{LEAST}\n".encode()))),
        "row 0": lambda db: db.delete("t", [(LEAST,)]),
        "t, row 0": lambda db: db.upsert("t", {"k": LEAST}),
        "column k": lambda db: db.execute("INSERT INTO t VALUES (?)", [LEAST]),
        "line 1, column 23": lambda db: db.execute(f"INSERT INTO t VALUES ({LEAST})"),
        "line 1, column 41": lambda db: db.execute(f"CREATE TABLE u (k INT, b BIGINT DEFAULT {LEAST})"),
    }
    for place, way in ways.items():
        db = Database()
        db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        remedy = rf"stands for NULL; a DECIMAL\(19, 0\) holds it, as {LEAST}BD"
        with pytest.raises(FreshviewsError, match=f"{place}.*{remedy}"):
            way(db)
        assert list(db.table("t")) == []


def test_a_decimal_holds_the_least_bigint() -> None:
    assert value_of(f"{LEAST}BD") == value_of("CAST(-9223372036854775807 AS DECIMAL(19, 0)) - 1") == Decimal(LEAST)
    found = rows_of("SELECT SUM(CAST(k AS DECIMAL(19, 0))) AS y FROM t", "k BIGINT", [(LEAST + 1,), (-1,)])
    assert found == [(Decimal(LEAST),)]


def test_try_cast_to_a_decimal_is_null_beyond_38_digits() -> None:
    assert value_of("TRY_CAST(1e20 AS DECIMAL(38, 0))") == Decimal(10**20)
    assert value_of("TRY_CAST(1e38 AS DECIMAL(38, 0))") is None
    found = rows_of("SELECT TRY_CAST(d AS DECIMAL(38, 0)) AS y FROM t", "d DOUBLE", [(1e20,), (1e38,)])
    assert sorted(found, key=repr) == [(Decimal(10**20),), (None,)]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("mask('AbC1-', lowerChar => 'q', upperChar => NULL)", "AqCn-"),
        ("MASK(digitchar => '#', STR => 'AbC1-')", "XxX#-"),
        ("mask('AbC1-', '!', otherChar => '.')", "!x!n."),
    ],
)
def test_named_arguments_of_mask_stand_in_the_places_of_their_parameters(call: str, answer: str) -> None:
    assert value_of(call) == answer


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("mask(s, nochar => 'x')", "mask has no parameter nochar; did you mean otherChar"),
        ("mask(s, str => 'x')", "parameter str of mask is given twice"),
        ("mask(s, upperChar => 'a', 'b')", "name this argument of mask, too"),
        ("mask(lowerChar => 'a')", "parameter str of mask is missing"),
        ("upper(str => s)", "upper takes arguments by position alone; leave str => out"),
    ],
)
def test_a_named_argument_that_has_no_place_is_refused(call: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        value_of(call)


def test_aggregates_of_flags_cast_a_text_to_boolean() -> None:
    flags = "bool_and(s) AS a, bool_or(s) AS b, every(s) AS c, some(s) AS d, any(s) AS e, count_if(s) AS f"
    rows = [(0, "true"), (1, " f "), (2, None)]
    assert rows_of(f"SELECT {flags} FROM t", rows=rows) == [(False, True, False, True, True, 1)]
    assert rows_of("SELECT x, bool_or(s) OVER () AS o FROM t", rows=[(0, "no")]) == [(0, False)]
    with pytest.raises(EvaluationError, match="maybe"):
        rows_of("SELECT bool_and(s) AS a FROM t", rows=[(0, "maybe")])
    with pytest.raises(SqlError, match="bool_or takes a BOOLEAN, not INT"):
        rows_of("SELECT bool_or(x) AS a FROM t")
