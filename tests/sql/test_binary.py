"""BINARY columns hold bytes, compare by their bytes, and mean what they mean in Spark.

The answers of ``EXPRESSIONS`` are those of Spark 4.1 over the same rows.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from freshviews import BatchError, Database, EvaluationError, SqlError, UnsupportedSql
from freshviews.spark.definition import catalog_of

pytestmark = pytest.mark.plain_python(only=True)

SCRIPT = "CREATE TABLE t (id INT, b BINARY, s STRING)"
VALUES = [b"\x02\xff", b"\x80", None, b"", b"abc", "é".encode()]
EXPRESSIONS = {
    "length(b)": [2, 1, None, 0, 3, 2],
    "hex(b)": ["02FF", "80", None, "", "616263", "C3A9"],
    "substring(b, 2)": [b"\xff", b"", None, b"", b"bc", b"\xa9"],
    "left(b, 1)": [b"\x02", b"\x80", None, b"", b"a", b"\xc3"],
    "b || X'FF'": [b"\x02\xff\xff", b"\x80\xff", None, b"\xff", b"abc\xff", b"\xc3\xa9\xff"],
    "lpad(b, 3, X'00')": [b"\x00\x02\xff", b"\x00\x00\x80", None, b"\x00\x00\x00", b"abc", b"\x00\xc3\xa9"],
    "CAST(b AS STRING)": ["\x02\ufffd", "\ufffd", None, "", "abc", "é"],
    "b < X'80'": [True, False, None, True, True, False],
    "b IN (X'02FF', X'')": [True, False, None, True, False, False],
    "b = s": [False, False, None, False, True, False],
    "b <=> X''": [False, False, False, True, False, False],
    "coalesce(b, X'00')": [b"\x02\xff", b"\x80", b"\x00", b"", b"abc", b"\xc3\xa9"],
    "greatest(b, X'10')": [b"\x10", b"\x80", b"\x10", b"\x10", b"abc", b"\xc3\xa9"],
    "startswith(b, X'80')": [False, True, None, False, False, False],
    "contains(b, X'FF')": [True, False, None, False, False, False],
    "endswith(b, X'A9')": [False, False, None, False, False, True],
    "overlay(b PLACING X'AA' FROM 1)": [b"\xaa\xff", b"\xaa", None, b"\xaa", b"\xaabc", b"\xaa\xa9"],
    "is_valid_utf8(b)": [False, False, None, True, True, True],
    "try_validate_utf8(b)": [None, None, None, "", "abc", "é"],
    "make_valid_utf8(b)": ["\x02\ufffd", "\ufffd", None, "", "abc", "é"],
    "unhex(hex(b))": VALUES,
}
ROWS = [(i, value, "abc") for i, value in enumerate(VALUES)]


def made(script: str = SCRIPT, **options: Any) -> Database:
    db = Database(**options)
    db.execute(script)
    return db


def test_expressions_over_bytes_have_the_values_of_spark() -> None:
    db = made()
    listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(EXPRESSIONS))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {listed} FROM t")
    db.insert("t", ROWS)
    found = sorted(db.view("v"))
    for i, (text, answers) in enumerate(EXPRESSIONS.items()):
        assert [row[i + 1] for row in found] == answers, text


def test_views_group_join_order_and_aggregate_bytes() -> None:
    db = made()
    db.execute(
        "CREATE MATERIALIZED VIEW g AS SELECT b, COUNT(*) AS n FROM t GROUP BY b;"
        "CREATE MATERIALIZED VIEW j AS SELECT x.id, y.id AS other FROM t x JOIN t y ON x.b = y.b;"
        "CREATE MATERIALIZED VIEW e AS SELECT MIN(b) AS lo, MAX(b) AS hi, COUNT(DISTINCT b) AS n, MODE(b) AS m FROM t;"
        "CREATE MATERIALIZED VIEW o AS SELECT b FROM t ORDER BY b DESC LIMIT 2;"
        "CREATE MATERIALIZED VIEW l AS SELECT LISTAGG(b, X'2C') WITHIN GROUP (ORDER BY id) AS x FROM t;"
        "CREATE MATERIALIZED VIEW w AS SELECT id, LAG(b) OVER (ORDER BY id) AS last FROM t;"
        "CREATE MATERIALIZED VIEW c AS SELECT * FROM VALUES (X'01', 1), (NULL, 2)"
    )
    db.insert("t", [(1, b"\x80", None), (2, b"a", None), (3, b"\x80", None), (4, None, None)])
    db.delete("t", [(2, b"a", None)])
    assert set(db.view("g")) == {(b"\x80", 2), (None, 1)} and db.view("g")[b"\x80"] == (b"\x80", 2)
    assert set(db.view("j")) == {(1, 1), (1, 3), (3, 1), (3, 3)}
    assert list(db.view("e")) == [(b"\x80", b"\x80", 1, b"\x80")]
    assert list(db.view("o")) == [(b"\x80",), (b"\x80",)]
    assert list(db.view("l")) == [(b"\x80,\x80",)]
    assert set(db.view("w")) == {(1, None), (3, b"\x80"), (4, b"\x80")}
    assert set(db.view("c")) == {(b"\x01", 1), (None, 2)}


def test_bytes_come_from_arrow_pandas_and_polars_and_go_there() -> None:
    db = made("CREATE TABLE t (b BINARY)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT b FROM t")
    kinds = (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2), pa.dictionary(pa.int8(), pa.binary()))
    for kind in kinds:
        db.insert("t", pa.table({"b": pa.array([b"\xff\x00", None], kind)}))
    db.insert("t", pd.DataFrame({"b": [b"\xff\x00", None]}))
    db.insert("t", pl.DataFrame({"b": [b"\xff\x00", None]}))
    db.insert("t", [(bytearray(b"\xff\x00"),), {"b": memoryview(b"\xff\x00")}])
    assert Counter(db.view("v")) == {(b"\xff\x00",): 9, (None,): 7}
    assert db.view("v").to_arrow().schema.field("b").type == pa.binary()
    assert pl.DataFrame(db.view("v")).schema["b"] == pl.Binary
    db.create_table("made", pl.DataFrame({"k": [b"1", b"2"], "n": [1, 2]}), key="k")
    assert db.table("made")[b"2"] == (b"2", 2)


def test_rows_are_changed_by_a_key_of_bytes() -> None:
    db = made("CREATE TABLE t (k BINARY PRIMARY KEY, b BINARY DEFAULT X'07', n INT)")
    db.insert("t", [{"k": b"\x01", "n": 1}, {"k": b"\x02", "b": None, "n": 2}])
    db.upsert("t", {"k": b"\x01", "b": b"\x08", "n": 3})
    db.update("t", {"k": b"\x02", "n": 9})
    assert sorted(db.table("t")) == [(b"\x01", b"\x08", 3), (b"\x02", None, 9)]
    assert b"\x02" in db.table("t") and db.table("t").get(b"other") is None
    db.delete("t", keys=[b"\x02"])
    db.execute("INSERT INTO t VALUES (X'03', X'', 1), (?, ?, 2)", [b"\x04", bytearray(b"x")])
    db.execute("INSERT INTO t (k, n) VALUES (X'05', 1)")
    db.execute("UPDATE t SET b = X'0102' WHERE k = ?; DELETE FROM t WHERE b < X'01'", [b"\x04"])
    assert sorted(db.table("t")) == [(b"\x01", b"\x08", 3), (b"\x04", b"\x01\x02", 2), (b"\x05", b"\x07", 1)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("text", 1)], "table u, row 0, column b: 'text': BINARY accepts bytes, not str; write text.encode()"),
        ([(5, 1)], "table u, row 0, column b: 5: BINARY accepts bytes, not int"),
        (pa.table({"b": ["x"], "n": [1]}), "BINARY accepts a column of binary values, not of string"),
        (pa.table({"b": [1], "n": [1]}), "BINARY accepts a column of binary values, not of int64"),
    ],
)
def test_a_column_of_bytes_refuses_other_values(rows: Any, message: str) -> None:
    db = made("CREATE TABLE u (b BINARY, n INT)")
    with pytest.raises(BatchError) as error:
        db.insert("u", rows)
    assert message in str(error.value)


def test_a_durable_database_keeps_bytes(tmp_path: Path) -> None:
    with made("CREATE TABLE t (b BINARY, n INT)", path=tmp_path / "d") as db:
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT b, SUM(n) AS n FROM t GROUP BY b")
        db.insert("t", [(b"\xff", 1), (None, 2)])
        db.insert("t", pa.table({"b": [b"\xff\xfe", b""], "n": [3, 4]}))
        expected = Counter(db.view("v"))
    with Database(tmp_path / "d") as db:
        assert Counter(db.view("v")) == expected
        db.delete("t", [(b"\xff", 1)])
        assert db.view("v").get(b"\xff") is None


def test_forms_without_a_meaning_for_bytes_are_refused() -> None:
    db = made()
    for text, message in {
        "SUM(b)": "sum takes numbers, not BINARY",
        "b + 1": "BINARY",
        "CAST(b AS INT)": "BINARY cannot be cast to INT",
        "LISTAGG(b, ',')": "the separator of listagg must be BINARY, as in listagg(x, X'2C')",
    }.items():
        with pytest.raises(SqlError) as error:
            db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {text} AS x FROM t")
        assert message in str(error.value)
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT validate_utf8(b) AS x FROM t")
    with pytest.raises(EvaluationError, match="the bytes are not text in utf-8"):
        db.insert("t", [(1, b"\xff", None)])
    with pytest.raises(UnsupportedSql, match=r"t\.b, a BINARY, as a column of a pipeline is not supported"):
        catalog_of(SCRIPT)


def test_a_select_moves_and_compares_bytes() -> None:
    db = made()
    db.insert("t", ROWS)
    answers: dict[str, list[tuple[Any, ...]]] = {
        "SELECT b FROM t ORDER BY b": [(value,) for value in (None, b"", b"\x02\xff", b"abc", b"\x80", b"\xc3\xa9")],
        "SELECT id FROM t WHERE b > X'02' AND b <= X'80' ORDER BY id": [(0,), (1,), (4,)],
        "SELECT MAX(b), MIN(b), COUNT(DISTINCT b) FROM t": [(b"\xc3\xa9", b"", 5)],
        "SELECT hex(b), coalesce(b, X'00') FROM t WHERE id IN (1, 2) ORDER BY id": [("80", b"\x80"), (None, b"\x00")],
        "SELECT id, LAG(b) OVER (ORDER BY id) FROM t WHERE id < 2 ORDER BY id": [(0, None), (1, b"\x02\xff")],
        "SELECT x.id FROM t x JOIN t y ON x.b = y.b AND y.b = X'80'": [(1,)],
        "SELECT X'0a' UNION SELECT b FROM t WHERE id = 3 ORDER BY 1": [(b"",), (b"\n",)],
    }
    for query, rows in answers.items():
        assert db.sql(query).fetchall() == rows, query
    assert db.sql("SELECT id FROM t WHERE b = ?", [b"\x80"]).fetchall() == [(1,)]
    assert db.sql("SELECT b FROM t").to_arrow().schema.field("b").type == pa.binary()
    refused = (
        *("length(b)", "b || b", "b FROM t UNION ALL SELECT s", "b = s", "coalesce(b, s)", "md5(b)"),
        *("CAST(s AS BINARY)", "CAST(b AS STRING)"),
    )
    for query in refused:
        with pytest.raises(SqlError, match=r"a BINARY here is not supported in a SELECT; write hex\(x\), or compute"):
            db.sql(f"SELECT {query} FROM t")


@pytest.mark.seeds(10)
def test_views_over_bytes_agree_with_duckdb(seed: int) -> None:
    drawn = random.Random(seed)
    db = made("CREATE TABLE t (a BINARY, b BINARY, n INT); CREATE TABLE u (b BINARY, m INT)")
    queries = {
        "g": "SELECT a, MIN(b) AS lo, MAX(b) AS hi, COUNT(DISTINCT b) AS d, SUM(n) AS s FROM t GROUP BY a",
        "j": "SELECT t.a, u.m FROM t JOIN u ON t.b = u.b WHERE t.a >= {low}",
        "l": "SELECT t.b, COUNT(u.m) AS c FROM t LEFT JOIN u ON t.a = u.b GROUP BY t.b",
        "d": "SELECT DISTINCT a || b AS x FROM t",
        "w": "SELECT a, n, RANK() OVER (PARTITION BY a ORDER BY b, n) AS r FROM t",
        "x": "SELECT a FROM t WHERE b IN (SELECT b FROM u) UNION ALL SELECT b FROM u WHERE m > 2",
    }
    with duckdb.connect() as other:
        other.execute("CREATE TABLE t (a BLOB, b BLOB, n INT); CREATE TABLE u (b BLOB, m INT)")
        for name, query in queries.items():
            # DuckDB puts NULL last in an order, Spark first.
            db.execute("CREATE MATERIALIZED VIEW " + name + " AS " + query.format(low="X'01'"))
        stored: dict[str, list[tuple[Any, ...]]] = {"t": [], "u": []}

        def some() -> bytes | None:
            return drawn.choice([None, b"", b"\x00", b"\x01\xff", b"\x80", b"a", drawn.randbytes(2)])

        for _ in range(7):
            table = drawn.choice("tu")
            if stored[table] and drawn.random() < 0.3:
                gone = drawn.sample(stored[table], drawn.randint(1, len(stored[table])))
                db.delete(table, gone)
                for row in gone:
                    stored[table].remove(row)
            else:
                width = 2 if table == "t" else 1
                new = [(*(some() for _ in range(width)), drawn.randrange(4)) for _ in range(drawn.randint(1, 6))]
                db.insert(table, new)
                stored[table] += new
            for name, rows in stored.items():
                other.execute(f"DELETE FROM {name}")
                if rows:
                    other.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            for name, query in queries.items():
                text = query.format(low="'\\x01'::BLOB").replace("ORDER BY b, n", "ORDER BY b NULLS FIRST, n")
                assert Counter(db.view(name)) == Counter(other.execute(text).fetchall()), (name, stored)
