"""``Database.sql``: answers, parameters, names, errors, and what a SELECT reads."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sqlglot import exp

import freshviews as fv
from freshviews import asking
from freshviews.asking import question, translation
from freshviews.engine import asked
from freshviews.engine.asked import AskedRows
from freshviews.engine.relations import Relation
from freshviews.sql.text.parse import SqlText, parse

pytestmark = pytest.mark.plain_python(only=True)

SCRIPT = """
CREATE TABLE items (part STRING, qty INT, Price DECIMAL(6, 2), at TIMESTAMP, day DATE, big BIGINT, x DOUBLE);
CREATE TABLE parts (part STRING PRIMARY KEY, weight INT);
CREATE VIEW heavy AS SELECT * FROM parts WHERE weight > 3;
CREATE VIEW heaviest (p, w) AS SELECT * FROM heavy ORDER BY weight DESC LIMIT 1;
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS Qty FROM items GROUP BY part;
CREATE MATERIALIZED VIEW ordered AS SELECT part, qty FROM items ORDER BY qty DESC;
CREATE TABLE gone (k INT) TBLPROPERTIES ('freshviews.trusted' = 'true')
"""
AT = dt.datetime(2026, 1, 2, 3, 4, 5, 600)
ROWS: list[tuple[Any, ...]] = [
    ("bolt", 3, Decimal("1.50"), AT, dt.date(2026, 1, 2), 2**40, 0.5),
    ("nut", 5, Decimal("2.25"), None, None, None, None),
]


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        made.insert("items", ROWS)
        made.insert("parts", [("bolt", 3), ("nut", 7)])
        yield made


def test_tables_and_views_are_joined_summed_and_ordered(db: fv.Database) -> None:
    answer = db.sql(
        "SELECT v.part, SUM(v.qty * weight) AS load, COUNT(*) FROM by_part v JOIN parts USING (part) "
        "GROUP BY part ORDER BY load DESC"
    )
    assert answer.columns == ("part", "load", "count(1)") and answer.version == 2
    assert list(answer) == [("nut", 35, 1), ("bolt", 9, 1)]
    assert db.sql("SELECT * FROM items").fetchall() == ROWS
    assert db.sql("WITH q AS (SELECT MAX(qty) AS m FROM by_part) SELECT m + 1 AS n FROM q").fetchall() == [(6,)]
    assert db.sql("VALUES (1, 'a'), (2, 'b')").columns == ("col1", "col2")


def test_a_plain_view_keeps_the_columns_of_its_definition(db: fv.Database) -> None:
    db.execute("ALTER TABLE parts ADD COLUMN colour STRING")
    assert db.sql("SELECT * FROM heavy").columns == ("part", "weight")
    assert db.sql("SELECT W, p FROM heaviest h").fetchall() == [(7, "nut")]
    assert db.sql("SELECT COLOUR FROM parts").columns == ("COLOUR",)


def test_a_select_returns_rows_in_the_order_of_the_view(db: fv.Database) -> None:
    assert db.sql("SELECT part FROM ordered").fetchall() == [("nut",), ("bolt",)]


def test_an_answer_converts_to_tuples_arrow_pandas_polars_and_html(db: fv.Database) -> None:
    answer = db.sql("SELECT part, qty FROM items ORDER BY qty")
    assert answer.fetchone() == ("bolt", 3) and answer.fetchmany(5) == [("nut", 5)]
    assert answer.fetchone() is None and answer.fetchall() == []
    assert len(answer) == 2 and list(answer) == list(answer) == [("bolt", 3), ("nut", 5)]
    assert answer.to_arrow().schema == pa.schema([("part", pa.string()), ("qty", pa.int32())]) == answer.schema
    assert pa.table(answer).equals(answer.to_arrow())
    assert answer.to_pandas()["qty"].tolist() == answer.to_polars()["qty"].to_list() == [3, 5]
    assert repr(answer).splitlines()[0].startswith("answer at version 2: 2 rows") and "bolt" in repr(answer)
    assert "<td" in answer._repr_html_()
    with pytest.raises(AttributeError):
        answer.version = 3  # type: ignore[misc]


def test_parameters_are_passed_as_values_and_never_parsed_as_sql(db: fv.Database) -> None:
    for value, column in zip(ROWS[0], ("part", "qty", "price", "at", "day", "big", "x"), strict=True):
        assert db.sql(f"SELECT part FROM items WHERE {column} = ?", [value]).fetchall() == [("bolt",)], column
    assert db.sql("SELECT :a AS a, :b AS b, :a AS c", {"a": "x' OR 1=1 --", "b": None}).fetchall() == [
        ("x' OR 1=1 --", None, "x' OR 1=1 --")
    ]
    assert db.sql("SELECT ? + 1 AS q, ? AS w", (2**40, 1)).fetchall() == [(2**40 + 1, 1)]
    assert db.sql("SELECT :c, :a AS b", {"a": 1, "c": 2}).columns == (":c", "b")
    assert db.sql("SELECT ? AS a, ? AS b", [np.int16(3), np.datetime64("2026-01-02")]).fetchall() == [
        (3, dt.date(2026, 1, 2))
    ]
    assert db.sql("SELECT ? AS a, ? AS b", [pd.NaT, pd.NA]).fetchall() == [(None, None)]
    later = dt.datetime(2026, 1, 2, 5, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert db.sql("SELECT ? AS at", [later]).fetchall() == [(dt.datetime(2026, 1, 2, 3),)]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ([], "the SELECT has 1 parameter ?, but 0 values were passed"),
        ([1, 2], "the SELECT has 1 parameter ?, but 2 values were passed"),
        ({"a": 1}, "the parameters are a dict, but the SELECT has no :name"),
        ("x", "parameters must be a list, a tuple or a dict, not 'x'"),
        ([[1]], "parameter 1: [1] is a list; a str, int,"),
        ([Decimal("NaN")], "parameter 1: NaN is not a DECIMAL"),
        ([10**40], "has 41 digits"),
        (["\ud800"], "is not valid Unicode"),
        ([np.array([1, 2])], "is a ndarray"),
        ([np.datetime64("2026-01-02T03:04:05.123456789")], "is a datetime64"),
        ([dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))], "is outside the years 1 to 9999 in UTC"),
    ],
)
def test_wrong_parameters_are_refused(db: fv.Database, parameters: Any, message: str) -> None:
    with pytest.raises((fv.SqlError, fv.ArgumentError)) as refused:
        db.sql("SELECT part FROM items WHERE qty = ?", parameters)
    assert message in str(refused.value)
    with pytest.raises(fv.SqlError, match="line 1, column 8: parameter :a has no value"):
        db.sql("SELECT :a", {})
    with pytest.raises(fv.SqlError, match="no parameter :b; it has :a"):
        db.sql("SELECT :a", {"a": 1, "b": 2})
    with pytest.raises(fv.SqlError, match="write only one kind"):
        db.sql("SELECT :a, ?", [1])


@pytest.mark.parametrize(
    "sql, message",
    [
        ("SELECT nope FROM items", "line 1, column 8: unknown column nope"),
        ("SELECT i.prat FROM items i", "line 1, column 8: unknown column i.prat; did you mean part"),
        ("SELECT part FROM item", "line 1, column 18: unknown table or view item; did you mean items?"),
        ("SELECT z.part FROM items i", "line 1, column 8: unknown table z in FROM; there are i"),
        ("SELECT part FROM items, parts", "line 1, column 8: column part is in several tables; write table.part"),
        ("SELECT q.k FROM (SELECT part AS k, qty AS K FROM items) q", "line 1, column 8: column k is ambiguous"),
        ("WITH q AS (SELECT 1 AS k, 2 AS k) SELECT 3 FROM q WHERE k > 1", "column 57: column k is ambiguous"),
        ("FROM items |> EXTEND qty + 1 AS qty |> WHERE qty > 1", "line 1, column 46: column qty is ambiguous"),
        ("SELECT summ(qty) FROM items", "line 1, column 8: unknown function summ; did you mean sum"),
        ("SELECT FROM items", "SELECT needs at least one column"),
        ("SELECT qty FROM items; SELECT 1", "line 1, column 24: one SELECT is accepted, not several statements"),
        ("", "a SELECT is expected, not an empty text"),
        ("SELEC 1", "line 1, column"),
        ("INSERT INTO items VALUES (1)", "line 1, column 1: a SELECT over tables and views is accepted, not INSERT"),
        ("SELECT qty / 0 AS q FROM items", "the SELECT cannot be computed: division by zero"),
        ("SELECT length(repeat(part, qty * 1000000)) AS q FROM items", "a text of more than 1,048,576 characters"),
        ("SELECT length(repeat('x', 2000000000)) AS q", "a text of more than 1,048,576 characters"),
        ("SELECT length(rpad(part, qty * 1000000, '-')) AS q FROM items", "a text of more than 1,048,576 characters"),
        ("SELECT length(space(2000000000)) AS q", "a text of more than 1,048,576 characters"),
        ("SELECT CAST(part AS INT) AS q FROM items", "'bolt' is not a whole number"),
        ("SELECT k FROM gone", "table gone: a trusted table does not store its rows"),
        ("SELECT length(part, 1, 2) FROM items", "line 1, column 8: length takes another number of arguments"),
        ("SELECT qty FROM main.items", "line 1, column 17: the name main.items is not supported"),
    ],
)
def test_an_error_shows_its_line_its_column_and_similar_names(db: fv.Database, sql: str, message: str) -> None:
    with pytest.raises(fv.FreshviewsError) as refused:
        db.sql(sql)
    assert message in str(refused.value)


def test_a_select_caches_only_the_columns_that_it_reads(db: fv.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, tuple[str, ...]]] = []
    decode = AskedRows.__dict__["columns"]
    inner = decode.__globals__["_read"]

    def noted(state: Relation, names: list[str]) -> Any:
        read.append((state.name, tuple(names)))
        return inner(state, names)

    monkeypatch.setitem(decode.__globals__, "_read", noted)
    query = "SELECT SUM(qty) AS q FROM items WHERE part <> 'x'"
    assert db.sql(query).fetchall() == db.sql(query).fetchall() == [(8,)]
    assert read == [("items", ("part", "qty"))]
    db.insert("parts", [("screw", 1)])
    assert db.sql(query).fetchall() == [(8,)] and len(read) == 1
    with db.batch() as batch:
        batch.insert("items", [("nut", 10, None, None, None, None, None)])
    assert db.sql(query).fetchall() == [(18,)] and len(read) == 2
    assert db.sql("SELECT qty FROM by_part WHERE part = 'nut'").fetchall() == [(15,)]
    db.delete("items", [("nut", 10, None, None, None, None, None)])
    assert db.sql("SELECT qty FROM by_part WHERE part = 'nut'").fetchall() == [(5,)]
    db.upsert("parts", {"part": "nut", "weight": 1})
    assert db.sql("SELECT SUM(weight) AS w FROM parts").fetchall() == [(5,)]
    view = "CREATE OR REPLACE MATERIALIZED VIEW by_part AS SELECT part, MAX(qty) + 1 AS qty FROM items GROUP BY part"
    db.execute(view)
    assert db.sql("SELECT qty FROM by_part WHERE part = 'nut'").fetchall() == [(6,)]
    db.execute("ALTER TABLE parts ADD COLUMN c INT DEFAULT 4")
    assert db.sql("SELECT SUM(c) AS c, SUM(weight) AS w FROM parts").fetchall() == [(12, 5)]


def test_another_thread_may_alter_a_table_while_a_select_is_translated(
    db: fv.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one whose table changes meanwhile is translated again."""
    made = asking.translated
    calls: list[Any] = []

    def translated(*given: Any) -> Any:
        found = made(*given)
        if not calls:
            other = Thread(target=db.execute, args=("ALTER TABLE parts ADD COLUMNS (colour STRING DEFAULT 'red')",))
            other.start()
            other.join(20)
            assert not other.is_alive()
        calls.append(found)
        return found

    monkeypatch.setattr(asking, "translated", translated)
    assert sorted(db.sql("SELECT * FROM parts")) == [("bolt", 3, "red"), ("nut", 7, "red")]
    assert len(calls) == 2


def test_a_long_select_is_not_cached(db: fv.Database) -> None:
    text = "SELECT part FROM items WHERE " + " AND ".join(f"qty <> {number}" for number in range(4, 2000))
    kept = question._known.cache_info().currsize, translation._known.cache_info().currsize
    assert db.sql(text).fetchall() == [("bolt",)]
    assert (question._known.cache_info().currsize, translation._known.cache_info().currsize) == kept
    tree = parse(SqlText(text))[0]
    translation._balance(tree)
    terms = list(tree.find_all(exp.NEQ))
    assert len(terms) == 1996 and max(term.depth for term in terms) < 20


def test_columns_above_the_size_limit_are_not_cached(db: fv.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "KEPT_BYTES", 10)
    assert db.sql("SELECT SUM(qty) AS q FROM items JOIN parts USING (part)").fetchall() == [(8,)]
    assert len(db._asked.rows._kept) == 0


@pytest.mark.parametrize(
    "sql, rows",
    [
        ("SELECT part FROM items WHERE part RLIKE '^[0-9]+$' AND CAST(part AS INT) > 1", []),
        ("SELECT part FROM items WHERE qty - 3 = 0 OR 10 / (qty - 3) > 100", [("bolt",)]),
        ("SELECT part, COUNT(*) AS n FROM items WHERE qty > 99 GROUP BY ROLLUP (part)", []),
        ("SELECT COUNT(*) AS n FROM items WHERE qty > 99 GROUP BY GROUPING SETS (())", [(0,)]),
        ("SELECT part, COUNT(*) AS n FROM items GROUP BY part WITH ROLLUP HAVING COUNT(*) > 1", [(None, 2)]),
        ("SELECT qty % 2 AS k, SUM(qty) AS s FROM items GROUP BY ALL", [(1, 8)]),
        ("SELECT SUM(qty) AS s FROM items GROUP BY ALL", [(8,)]),
        ("SELECT COUNT(part, big) AS n FROM items", [(1,)]),
        ("SELECT 1.0 / 3 AS q, 7 DIV -2 AS d, price / 7 AS p FROM items WHERE qty = 3",
         [(Decimal("0.333333"), -3, Decimal("0.214286"))]),
        (r"SELECT 'a%' LIKE 'a\%' AS p, 'ab' LIKE 'a\%' AS q, 'ab' NOT ILIKE 'A\_' AS r", [(True, False, True)]),
        (r"SELECT 'a%' LIKE part || '\%' AS p FROM items WHERE qty = 3", [(False,)]),
        ("SELECT ln(0) AS a, log10(-1.5) AS b, log2(0) AS c, log(0, 2) AS d, ln(1) AS e",
         [(None, None, None, None, 0)]),
        ("SELECT CAST(CAST('NaN' AS DOUBLE) AS STRING) AS a, CAST('-inf' AS DOUBLE) || '' AS b, "
         "upper(CAST('inf' AS FLOAT)) AS c, concat(CAST('inf' AS DOUBLE), 1) AS d",
         [("NaN", "-Infinity", "INFINITY", "Infinity1")]),
        ("SELECT concat(qty) AS a, left(part, qty - 4) AS b, right(part, -1) AS c FROM items",
         [("3", "", ""), ("5", "n", "")]),
        ("SELECT left(part, CAST(NULL AS INT)) AS a, substring(part, qty - 3, 1) AS b, "
         "substring(part, 2, 2 - qty) AS c FROM items WHERE qty = 3", [(None, "b", "")]),
        ("SELECT unix_seconds(TIMESTAMP '1969-12-31 23:59:59.5') AS a, "
         "unix_millis(TIMESTAMP '1969-12-31 23:59:59.9999') AS b", [(-1, -1)]),
        ("SELECT max_by(a, b) AS x, min_by(a, b) AS y, max_by(a, b) FILTER (WHERE b < 2) AS z "
         "FROM VALUES (NULL, 2), (1, 1), (0, NULL) AS t(a, b)", [(None, 1, 1)]),
        ("SELECT b, arg_min(a, b) OVER (ORDER BY b DESC) AS x FROM VALUES (NULL, 1), (5, 2) AS t(a, b) ORDER BY b",
         [(1, None), (2, 5)]),
        ("SELECT isnan(x) AS a FROM items", [(False,), (False,)]),
        ("SELECT bit_count(-qty) AS a FROM items WHERE qty = 3", [(63,)]),
        ("SELECT crc32(part), crc32(NULL) AS n FROM items WHERE qty = 3", [(1841364231, None)]),
    ],
)  # fmt: skip
def test_a_select_returns_the_rows_that_spark_returns(db: fv.Database, sql: str, rows: list[tuple[Any, ...]]) -> None:
    assert db.sql(sql).fetchall() == rows


@pytest.mark.parametrize(
    "expression",
    [
        *("hash(qty)", "xxhash64(qty)", "typeof(qty)", "ceil(price, 1)", "sha2(part, qty)", "first()", "nth_value()"),
        "max_by(part, qty, 2)",
    ],
)
def test_functions_that_differ_between_duckdb_and_spark_are_refused(db: fv.Database, expression: str) -> None:
    with pytest.raises(fv.SqlError, match="line 1, column 8"):
        db.sql(f"SELECT {expression} AS x FROM items")


def test_names_in_a_with_clause_never_clash_with_internal_names_of_duckdb(db: fv.Database) -> None:
    queries = "WITH r0 AS (SELECT 9 AS weight), R2 AS (SELECT 8 AS weight)"
    found = sorted(db.sql(f"{queries} SELECT parts.weight, i.qty FROM parts, r0, r2, items i"))
    assert found == [(3, 3), (3, 5), (7, 3), (7, 5)]


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("qty = ANY (ARRAY[3, 7])", ["bolt"]),
        ("qty <> ALL (ARRAY[3, ?])", ["nut"]),
        ("part LIKE ANY ('b%', 'x%')", ["bolt"]),
        ("part NOT LIKE ALL ('b%', 'x%')", ["nut"]),
        ("part LIKE ANY ('b!%', 'n%') ESCAPE '!'", ["nut"]),
        ("qty < 4 = (qty > 4) IS NULL", []),
        ("(qty < 4) = (part = 'bolt')", ["bolt", "nut"]),
        ("qty < 4 <> (qty > 4)", ["bolt", "nut"]),
        ("(qty + ~qty + 2 ^ qty) = 2", ["bolt"]),
    ],
)
def test_comparisons_with_lists_give_the_same_results_as_in_spark(
    db: fv.Database, condition: str, parts: list[str]
) -> None:
    answer = db.sql(f"SELECT part FROM items WHERE {condition} ORDER BY part", [4] if "?" in condition else None)
    assert [part for (part,) in answer] == parts


def test_coalesce_in_a_plain_view_replaces_null(db: fv.Database) -> None:
    db.execute("CREATE VIEW known AS SELECT COALESCE(MAX(qty), 0) AS most FROM items WHERE qty > 100")
    assert db.sql("SELECT most FROM known").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window.end AS e, COUNT(*) AS n FROM t GROUP BY window(at, '7 hours', '3 hours', '1 hour')",
        "SELECT id, window_start FROM HOP(TABLE t, DESCRIPTOR(at), INTERVAL '1' HOUR, INTERVAL '5' HOUR)",
        "SELECT id, hop_start(at, INTERVAL '1' HOUR, INTERVAL '2' HOUR, id, INTERVAL '7' MINUTE) AS s FROM t",
        "SELECT id, tumble_start(at, INTERVAL '3' HOUR, INTERVAL '20' MINUTE) AS s FROM t",
    ],
)
def test_hopping_windows_give_the_same_rows_in_a_select_and_in_a_view(sql: str) -> None:
    db = fv.Database()
    db.execute(f"CREATE TABLE t (id INT, at TIMESTAMP); CREATE MATERIALIZED VIEW v AS {sql}")
    start = dt.datetime(1970, 1, 1)
    db.insert("t", [(1, None), *((i, start + dt.timedelta(minutes=47 * (i - 9))) for i in range(20))])
    assert sorted(db.sql(sql).fetchall(), key=repr) == sorted(db.view("v"), key=repr)


def test_timestamp_seconds_accepts_numbers_of_every_type(db: fv.Database) -> None:
    of = ("1230219000", "1230219000L", "CAST(1230219000 AS DECIMAL(13, 3))", "1230219000.5", "1230219000.5D")
    second, half = dt.datetime(2008, 12, 25, 15, 30), dt.datetime(2008, 12, 25, 15, 30, 0, 500_000)
    found = db.sql(f"SELECT {', '.join(f'timestamp_seconds({one})' for one in of)}").fetchall()
    assert found == [(second, second, second, half, half)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_selects_from_its_own_rows(end: str) -> None:
    script = f"""
import os, sys
import freshviews as fv
db = fv.Database()
db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
db.sql("SELECT a FROM t")
child = os.fork()
if not child:
    db.execute("INSERT INTO t VALUES (2)")
    print(len(db.sql("SELECT a FROM t")), flush=True)
    {end}
assert os.waitpid(child, 0)[1] == 0
print(len(db.sql("SELECT a FROM t")))
"""
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert made.stdout.split() == ["2", "1"], made.stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("median(day)", "median takes numbers, not DATE"),
        ("percentile(part = 'bolt', 0.5)", "percentile takes numbers, not BOOLEAN"),
        ("percentile(qty, 1.5)", "the fraction of percentile must be a constant from 0 to 1"),
        ("percentile_cont(x) WITHIN GROUP (ORDER BY qty)", "the fraction of percentile_cont must be a constant"),
        ("percentile(qty, 0.5, 2)", "percentile with a frequency is not supported"),
        ("percentile_disc(qty)", r"percentile_disc needs an order; write PERCENTILE_DISC\(fraction\) WITHIN GROUP"),
        ("median(DISTINCT qty)", "median of DISTINCT values is not supported"),
        ("mode(qty, 1)", "the second argument of mode must be TRUE or FALSE"),
        ("quantile(qty, 0.5)", "aggregate function quantile is not supported"),
        ("max(x << 1)", "a shift takes an INT or a BIGINT, and a number of bits, not DOUBLE"),
        ("max(get_json_object(part))", "get_json_object takes another number of arguments"),
    ],
)
def test_the_error_shows_a_function_name_as_written_in_the_query(db: fv.Database, call: str, message: str) -> None:
    with pytest.raises(fv.SqlError, match=message):
        db.sql(f"SELECT {call} AS y FROM items")


def test_percentiles_accept_over_and_filter_clauses(db: fv.Database) -> None:
    items = "median(qty) OVER (PARTITION BY part) AS m, median(qty) FILTER (WHERE part = 'nut') OVER () AS f"
    found = db.sql(f"SELECT part, {items} FROM items ORDER BY part").fetchall()
    assert found == [("bolt", 3.0, 5.0), ("nut", 5.0, 5.0)]
    assert db.sql("SELECT mode(qty) OVER () AS y FROM items").fetchall() == [(3,), (3,)]


def test_a_grouping_expression_is_recognised_with_reordered_operands(db: fv.Database) -> None:
    listed = "qty + weight AS y, COUNT(*) AS n, NOT weight + qty > 6 AS z"
    of = "items JOIN parts USING (part) GROUP BY weight + qty, 6 < weight + qty"
    assert db.sql(f"SELECT {listed} FROM {of} HAVING qty + weight > 1 ORDER BY qty + weight").fetchall() == [
        (6, 1, True), (12, 1, False),
    ]  # fmt: skip


def test_count_of_a_table_star_counts_only_rows_without_nulls(db: fv.Database) -> None:
    items = "COUNT(*), COUNT(items.*), COUNT(*, part), COUNT(* EXCEPT (at, day, big, x)), COUNT(DISTINCT items.*)"
    assert db.sql(f"SELECT {items} FROM items").fetchall() == [(2, 1, 1, 2, 1)]
    assert db.sql("WITH a AS (SELECT part, x FROM items) SELECT COUNT(a.*) AS n FROM a").fetchall() == [(1,)]


@pytest.mark.parametrize("second", ["FULL", "LEFT", "RIGHT", "INNER"])
@pytest.mark.parametrize("first", ["FULL", "LEFT", "RIGHT"])
def test_a_chain_of_outer_joins_with_using_returns_the_same_rows_as_a_view(first: str, second: str) -> None:
    with fv.Database() as chain:
        chain.execute("; ".join(f"CREATE TABLE t{i} (k INT, x{i} INT)" for i in range(3)))
        text = f"SELECT k, x0, x1, x2 FROM t0 {first} JOIN t1 USING (k) {second} JOIN t2 USING (k)"
        chain.execute(f"CREATE MATERIALIZED VIEW v AS {text}")
        chain.insert("t0", [(1, 1), (4, 4)])
        chain.insert("t1", [(2, 2), (4, 5)])
        chain.insert("t2", [(2, 3), (3, 6), (4, 7), (1, 8)])
        assert sorted(chain.sql(text).fetchall(), key=str) == sorted(chain.view("v"), key=str)
