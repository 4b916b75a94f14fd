"""``freshviews.dbapi`` changes rows: each statement is a version, and BEGIN makes one of several."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

import freshviews as fv
from freshviews import dbapi

pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'freshviews[sql]'")

pytestmark = pytest.mark.plain_python(only=True)

SCRIPT = """
CREATE TABLE items (id INT PRIMARY KEY, part STRING, qty INT);
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part;
"""
DAY = date(2026, 1, 31)
INSERT = "INSERT INTO items VALUES (?, ?, ?)"


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        made.insert("items", [(1, "bolt", 3), (2, "nut", 5)])
        yield made


@pytest.fixture
def connection(db: fv.Database) -> dbapi.Connection:
    return dbapi.connect(db)


def rows(connection: dbapi.Connection) -> list[tuple[Any, ...]]:
    return connection.cursor().execute("SELECT * FROM items ORDER BY id").fetchall()


def test_each_statement_makes_one_version_and_sets_rowcount(
    db: fv.Database, connection: dbapi.Connection
) -> None:
    cursor = connection.cursor()
    assert cursor.execute(INSERT, (3, "bolt", 4)).rowcount == 1 and db.version == 2
    assert cursor.description is None
    update = "UPDATE items SET qty = qty + :more WHERE part = :part"
    assert cursor.execute(update, {"more": 1, "part": "bolt"}).rowcount == 2
    assert cursor.execute("DELETE FROM items WHERE id = ?", [2]).rowcount == 1 and db.version == 4
    assert list(db.view("by_part")) == [("bolt", 9)]
    connection.rollback()
    assert rows(connection) == [(1, "bolt", 4), (3, "bolt", 5)]


def test_one_call_of_executemany_makes_one_version(db: fv.Database, connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.executemany(INSERT, [(n, "nut", n) for n in range(3, 503)]).rowcount == 500
    assert db.version == 2 and len(db.table("items")) == 502
    assert cursor.executemany("DELETE FROM items WHERE id = ?", [[3], [4], [9999]]).rowcount == 2
    update = "UPDATE items SET qty = :qty WHERE id = :id"
    assert cursor.executemany(update, [{"id": 5, "qty": 0}, {"id": 6, "qty": 1}]).rowcount == 2
    assert db.version == 4
    assert cursor.executemany(INSERT, []).rowcount == 0 and db.version == 4
    assert cursor.executemany(INSERT, iter([(9000, None, None)])).rowcount == 1


@pytest.mark.parametrize(
    ("sql", "row", "expected"),
    [
        ("INSERT INTO days VALUES (?, ?, ?)", (1, "2026-01-31", None), (1, DAY, None)),
        ("insert into `days` (day, id) values (?,?);", (DAY, 1), (1, DAY, "none")),
        ("INSERT INTO DAYS (`ID`, Note) VALUES ( :id, :note )", {"note": "?", "id": 1}, (1, None, "?")),
        ("INSERT INTO days (id, note) VALUES (?, upper(?))", (1, "a"), (1, None, "A")),
        ("INSERT INTO days SELECT ?, NULL, ?", (1, "b"), (1, None, "b")),
        ("INSERT INTO days VALUES (?, ?, DEFAULT)", (1, None), (1, None, "none")),
    ],
)
def test_executemany_equals_repeated_calls_of_execute(
    sql: str, row: Any, expected: tuple[Any, ...]
) -> None:
    found = []
    for many in (False, True):
        with fv.Database() as db, dbapi.connect(db) as connection:
            db.execute("CREATE TABLE days (id INT, day DATE, note STRING DEFAULT 'none')")
            cursor = connection.cursor()
            if many:
                assert cursor.executemany(sql, [row, row]).rowcount == 2
            else:
                cursor.execute(sql, row).execute(sql, row)
            found.append((list(db.table("days")), db.version))
    assert found == [([expected, expected], 2), ([expected, expected], 1)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT INTO item VALUES (?, ?, ?)", "^line 1, column 13: unknown table item"),
        ("INSERT INTO by_part VALUES (?, ?, ?)", "by_part"),
        ("INSERT INTO items (id, parts, qty) VALUES (?, ?, ?)", "^line 1, column 24: unknown column items.parts"),
        ("INSERT INTO items (id, id, qty) VALUES (?, ?, ?)", "column id is given twice"),
        ("INSERT INTO items (id, part) VALUES (?, ?, ?)", "3 values for 2 columns"),
        ("INSERT INTO items VALUES (?, ?, ?)", "table items, row 1, column qty: 'x'"),
    ],
)
def test_executemany_refuses_a_wrong_insert_and_names_the_table_column_or_row_at_fault(
    connection: dbapi.Connection, sql: str, message: str
) -> None:
    with pytest.raises(dbapi.DatabaseError, match=message):
        connection.cursor().executemany(sql, [(3, "a", 1), (4, "b", "x")])
    assert len(rows(connection)) == 2


def test_executemany_that_fails_changes_nothing(db: fv.Database, connection: dbapi.Connection) -> None:
    with pytest.raises(dbapi.IntegrityError, match="PRIMARY KEY"):
        connection.cursor().executemany(INSERT, [(3, "nut", 1), (1, "nut", 1)])
    with pytest.raises(dbapi.ProgrammingError, match="3 parameters, but 2 values"):
        connection.cursor().executemany(INSERT, [(3, "nut", 1), (4, "nut")])
    assert db.version == 1


@pytest.mark.parametrize("begin", ["BEGIN", "begin transaction;", "START TRANSACTION", " BEGIN WORK "])
def test_statements_between_begin_and_commit_take_effect_only_at_the_commit(
    db: fv.Database, connection: dbapi.Connection, begin: str
) -> None:
    cursor = connection.cursor().execute(begin)
    assert cursor.execute(INSERT, (3, "bolt", 4)).rowcount == -1
    cursor.execute("UPDATE items SET qty = ? WHERE id = 3", (40,)).execute("DELETE FROM items WHERE part = 'nut';")
    named = "INSERT INTO items (id, part) VALUES (:id, :part)"
    cursor.executemany(named, [{"id": 7, "part": "a:b"}, {"part": "c", "id": 8}])
    assert db.version == 1 and len(rows(connection)) == 2
    connection.commit()
    assert db.version == 2
    assert rows(connection) == [(1, "bolt", 3), (3, "bolt", 40), (7, "a:b", None), (8, "c", None)]
    connection.commit()
    assert db.version == 2


def test_commit_and_rollback_may_also_be_executed_as_sql_statements(
    db: fv.Database, connection: dbapi.Connection
) -> None:
    cursor = connection.cursor().execute("BEGIN").execute(INSERT, (3, "bolt", 4))
    assert cursor.execute("COMMIT").rowcount == 1 and db.version == 2
    cursor.execute("BEGIN").execute("DELETE FROM items").execute("ROLLBACK")
    connection.commit()
    assert db.version == 2 and len(rows(connection)) == 3
    with pytest.raises(dbapi.ProgrammingError, match="a batch is open"):
        cursor.execute("BEGIN").execute("BEGIN")


def test_a_batch_that_fails_has_no_effect_and_is_closed(db: fv.Database, connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("BEGIN").execute(INSERT, (3, "bolt", 4)).execute(INSERT, (1, "bolt", 4))
    with pytest.raises(dbapi.IntegrityError):
        connection.commit()
    assert db.version == 1
    connection.commit()
    assert cursor.execute(INSERT, (3, "bolt", 4)).rowcount == 1


def test_the_error_of_a_batch_names_the_failing_statement(
    connection: dbapi.Connection
) -> None:
    cursor = connection.cursor().execute("BEGIN").execute("DELETE FROM items\nWHERE id = 1")
    cursor.execute("UPDATE items SET qty = 1\n  WHERE ids = 2").execute("DELETE FROM items")
    with pytest.raises(dbapi.ProgrammingError, match=r"^line 2, column 9: unknown .*; in 'UPDATE") as error:
        connection.commit()
    assert error.value.cause.line == 2


def test_a_statement_of_a_batch_may_end_in_a_comment(db: fv.Database, connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute("BEGIN")
    cursor.execute("INSERT INTO items VALUES (11, 'bolt', 1) -- the first").execute("DELETE FROM items WHERE id = 11;")
    connection.commit()
    assert db.version == 2
    cursor.execute("BEGIN").execute("DELETE FROM items -- all\nWHERE id = 1")
    cursor.execute("DELETE FROM items WHERE\n nope = 1")
    with pytest.raises(dbapi.ProgrammingError, match=r"line 2, column 2: .*nope.* in 'DELETE FROM items WHERE"):
        connection.commit()


@pytest.mark.parametrize("parameters", ["ab", 5, b"ab"])
def test_parameters_of_a_wrong_type_are_refused(
    connection: dbapi.Connection, parameters: Any
) -> None:
    sql, words = "INSERT INTO items (id, part) VALUES (?, ?)", "parameters must be a list, a tuple or a dict"
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match=words):
        cursor.executemany(sql, [parameters])
    with pytest.raises(dbapi.ProgrammingError, match="executemany takes an iterable of parameters, not 5"):
        cursor.executemany(sql, 5)  # type: ignore[arg-type]
    cursor.execute("BEGIN")
    with pytest.raises(dbapi.ProgrammingError, match=words):
        cursor.execute(sql, parameters)


def test_an_exception_in_a_with_block_drops_the_open_batch(db: fv.Database) -> None:
    with pytest.raises(KeyError), dbapi.connect(db) as connection:
        connection.cursor().execute("BEGIN").execute("DELETE FROM items")
        raise KeyError
    with dbapi.connect(db) as connection:
        connection.cursor().execute("BEGIN").execute("DELETE FROM items")
    assert db.version == 2 and len(db.table("items")) == 0


def test_execute_accepts_a_script_with_begin_and_commit(
    db: fv.Database, connection: dbapi.Connection
) -> None:
    cursor = connection.cursor()
    cursor.execute("BEGIN; INSERT INTO items VALUES (3, 'a', 1); INSERT INTO items VALUES (4, 'b', 2); COMMIT")
    assert db.version == 2
    cursor.execute("CREATE TABLE notes (text STRING); CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM notes")
    assert db.tables == ("items", "notes")


@pytest.mark.parametrize(
    ("sql", "parameters", "kind"),
    [
        (INSERT, (1, "bolt", 1), dbapi.IntegrityError),
        (INSERT, (None, "bolt", 1), dbapi.IntegrityError),
        (INSERT, (3, "bolt", 2**40), dbapi.DataError),
        ("UPDATE items SET qty = qty / (id - 1)", (), dbapi.DatabaseError),
        ("INSERT INTO nothing VALUES (1)", (), dbapi.ProgrammingError),
        (INSERT, (3,), dbapi.ProgrammingError),
        (INSERT.replace("?", ":a", 1), {"a": 1}, dbapi.ProgrammingError),
    ],
)
def test_a_refused_change_raises_an_exception_class_of_pep_249(
    db: fv.Database, connection: dbapi.Connection, sql: str, parameters: Any, kind: type[dbapi.Error]
) -> None:
    with pytest.raises(kind):
        connection.cursor().execute(sql, parameters)
    assert db.version == 1


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE TABLE t (id INT)", "only INSERT, DELETE, UPDATE, MERGE and TRUNCATE are accepted"),
        ("INSERT INTO", "line 1"),
        ("DELETE FROM items; COMMIT", "line 1, column 20: COMMIT has no BEGIN"),
    ],
)
def test_unsupported_statements_of_a_batch_are_refused_at_once(
    connection: dbapi.Connection, sql: str, message: str
) -> None:
    cursor = connection.cursor().execute("BEGIN")
    with pytest.raises(dbapi.DatabaseError, match=message):
        cursor.execute(sql)
    assert cursor.execute("COMMIT").rowcount == -1


def test_the_statements_show_describe_and_explain_work_while_a_batch_is_open(
    connection: dbapi.Connection
) -> None:
    cursor = connection.cursor().execute("BEGIN")
    assert [row[0] for row in cursor.execute("SHOW TABLES")] == ["items"]
    assert cursor.execute("DESCRIBE items").rowcount == 3 and cursor.description is not None
    plan = cursor.execute("EXPLAIN SELECT part, SUM(qty) AS qty FROM items GROUP BY part").fetchall()
    assert cursor.description == [("plan", "STRING", None, None, None, None, None)] and len(plan) > 3
    assert cursor.execute("-- a comment\nshow tables").rowcount == 1
    for sql in ("SHOW TABLES; DELETE FROM items", "SELECT 1; DELETE FROM items"):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(sql)
    assert len(rows(connection)) == 2


def test_an_insert_with_a_with_clause_is_a_change(
    db: fv.Database, connection: dbapi.Connection
) -> None:
    insert = "WITH new AS (SELECT ? AS id) INSERT INTO items BY NAME SELECT id FROM new"
    assert connection.cursor().execute(insert, [3]).rowcount == 1
    assert connection.cursor().execute("WITH a AS (SELECT id FROM items) SELECT MAX(id) FROM a").fetchall() == [(3,)]


def test_rows_of_a_data_frame_are_written(db: fv.Database, connection: dbapi.Connection) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"id": [3, 4], "part": ["x", None], "qty": [1, 2]})
    connection.cursor().executemany(INSERT, frame.astype(object).where(frame.notna(), None).to_numpy().tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert len(pandas.read_sql("SELECT * FROM items", connection)) == 4
    assert db.version == 2
