"""``Database.execute`` of statements that change rows, and of questions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freshviews as fv
from freshviews.engine.tables.base_table import BaseTable
from freshviews.sql import Catalog, parse_script
from freshviews.sql.statements.streaming import split_streaming

pytestmark = pytest.mark.plain_python(only=True)

SCRIPT = """
CREATE TABLE players (
  id BIGINT PRIMARY KEY, name STRING NOT NULL DEFAULT 'nobody', points INT DEFAULT 7, code VARCHAR(3));
CREATE TABLE games (player INT, won INT);
CREATE VIEW few AS SELECT id FROM players;
CREATE MATERIALIZED VIEW by_name AS SELECT name, SUM(points) AS points FROM players GROUP BY name
"""
ROWS = [(1, "Ida", 5, None), (2, "Bo", 7, "b"), (3, "Ida", None, "c")]


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        made.insert("players", ROWS)
        yield made


def players(db: fv.Database) -> list[tuple[Any, ...]]:
    assert sorted(db.view("by_name"), key=str) == sorted(
        db.sql("SELECT name, SUM(points) FROM players GROUP BY name").fetchall(), key=str
    )
    return sorted(db.table("players"))


def test_insert_accepts_constants_parameters_and_the_word_default(db: fv.Database) -> None:
    found = db.execute("INSERT INTO players VALUES (4, 'Kim', 2 + 3, NULL), (?, ?, ?, ?)", 5, "Lo", None, "x")
    assert (found.inserted, found.deleted, found.updated, found.rows, found.version) == (2, 0, 0, 2, 2)
    assert repr(found) == "2 rows inserted, version 2"
    db.execute("INSERT INTO Players (points, ID) VALUES (:p, :i), (DEFAULT, 7)", i=6, p=1)
    db.execute("INSERT INTO players (id) VALUES (?)", (8,))
    db.execute("INSERT INTO players (id, code) VALUES (:id, 'q')", {"id": 9})
    assert players(db)[3:] == [
        (4, "Kim", 5, None),
        (5, "Lo", None, "x"),
        (6, "nobody", 1, None),
        (7, "nobody", 7, None),
        (8, "nobody", 7, None),
        (9, "nobody", 7, "q"),
    ]


def test_insert_maps_columns_by_position_or_name(db: fv.Database) -> None:
    db.execute("INSERT INTO games VALUES (1, 3), (1, 4), (2, 5)")
    sums = "SELECT player + 10, SUM(won) FROM games GROUP BY player"
    assert db.execute(f"INSERT INTO players (id, points) {sums}").rows == 2
    db.execute("WITH q AS (SELECT ? AS name) INSERT INTO players BY NAME SELECT name, 20 AS id FROM q", "Kim")
    assert db.execute("INSERT INTO games TABLE games").rows == 3
    copied = "SELECT id + 100, name, points, code FROM players WHERE id < ? AND name = ?"
    db.execute(f"INSERT INTO players {copied}", 3, "Bo")
    new = [(11, "nobody", 7, None), (12, "nobody", 5, None), (20, "Kim", 7, None), (102, "Bo", 7, "b")]
    assert players(db)[3:] == new


def test_an_update_statement_computes_new_values_from_the_old_row(db: fv.Database) -> None:
    found = db.execute("UPDATE players AS p SET points = p.points + 1, code = name, name = DEFAULT WHERE name = 'Ida'")
    assert repr(found) == "2 rows updated, version 2"
    assert players(db) == [(1, "nobody", 6, "Ida"), (2, "Bo", 7, "b"), (3, "nobody", None, "Ida")]


def test_update_and_delete_statements_may_have_subqueries(db: fv.Database) -> None:
    db.execute("INSERT INTO games VALUES (1, 3), (1, 4), (2, 5)")
    sums = "UPDATE players SET points = (SELECT SUM(won) FROM games WHERE player = id), code = ? WHERE id < ?"
    assert db.execute(sums, "new", 3).updated == 2
    assert players(db) == [(1, "Ida", 7, "new"), (2, "Bo", 5, "new"), (3, "Ida", None, "c")]
    assert db.execute("DELETE FROM players WHERE id NOT IN (SELECT player FROM games)").deleted == 1


def test_delete_and_truncate_count_every_copy_of_a_row(db: fv.Database) -> None:
    db.insert("games", [(1, 3)] * 3 + [(2, 4)])
    assert repr(db.execute("DELETE FROM games WHERE won = 3")) == "3 rows deleted, version 3"
    assert repr(db.execute("DELETE FROM games WHERE won = 3")) == "no rows changed, version 3"
    assert repr(db.execute("TRUNCATE TABLE games")) == "1 row deleted, version 4"


def test_an_update_statement_changes_all_copies_of_a_row(db: fv.Database) -> None:
    db.insert("games", [(1, 3)] * 3)
    assert db.execute("UPDATE games SET won = won + 1").updated == 3
    assert list(db.table("games")) == [(1, 4)] * 3


def test_an_update_may_reuse_the_old_key_of_another_row(db: fv.Database) -> None:
    assert db.execute("UPDATE players SET id = id + 1").rows == 3
    assert [row[0] for row in players(db)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        ("DELETE FROM players WHERE id = 2", ()),
        ("DELETE FROM players WHERE ? = id AND name = 'Bo'", (2,)),
        ("DELETE FROM players WHERE id IN (2, 99, NULL)", ()),
        ("UPDATE players SET points = points + ? WHERE id = ?", (1, 2)),
        ("MERGE INTO players p USING (SELECT 2 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE", ()),
        ("INSERT INTO players (id) VALUES (2) ON CONFLICT DO UPDATE SET points = 1", ()),
    ],
)
def test_a_statement_by_key_does_not_scan_the_table(
    db: fv.Database, statement: str, parameters: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a scan")

    monkeypatch.setattr(BaseTable, "batches", refuse)
    assert db.execute(statement, *parameters).rows == 1


def test_statements_with_constants_run_without_duckdb(db: fv.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    db.execute("INSERT INTO players (id) VALUES (?) ON CONFLICT (id) DO NOTHING", 4)
    db.execute("UPDATE players SET points = 3 WHERE points > 4; DELETE FROM players WHERE id = 1")
    assert sorted(db.table("players"))[0] == (2, "Bo", 3, "b")


def test_a_merge_applies_the_first_clause_that_holds(db: fv.Database) -> None:
    db.execute("CREATE TABLE news (id INT, name STRING, points INT, code STRING)")
    db.insert("news", [(2, "Bo", 70, "n"), (3, "Kim", 1, "n"), (4, None, 2, "n"), (5, "Lo", 3, "n")])
    found = db.execute("""
        MERGE INTO players AS p USING news AS n ON p.id = n.id
        WHEN MATCHED AND n.points > 50 THEN DELETE
        WHEN MATCHED THEN UPDATE SET points = n.points + coalesce(p.points, 0), p.name = n.name
        WHEN NOT MATCHED AND n.name IS NULL THEN INSERT (id, points) VALUES (n.id, DEFAULT)
        WHEN NOT MATCHED BY TARGET THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND p.points > 4 THEN UPDATE SET code = 'old'
    """)
    assert repr(found) == "2 rows inserted, 1 deleted, 2 updated, version 3"
    assert players(db) == [(1, "Ida", 5, "old"), (3, "Kim", 1, "c"), (4, "nobody", 7, None), (5, "Lo", 3, "n")]
    star = "WHEN MATCHED AND news.id > 4 THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE THEN DELETE"
    assert db.execute(f"MERGE INTO players USING news ON players.id = news.id {star}").rows == 2
    assert players(db) == [(3, "Kim", 1, "c"), (4, "nobody", 7, None), (5, "Lo", 3, "n")]


def test_a_merge_statement_may_join_on_any_condition_and_read_from_views(db: fv.Database) -> None:
    on = "p.name = v.name AND p.points < v.points"
    db.insert("players", [(4, "Bo", 1, None)])
    db.execute(f"MERGE INTO players p USING by_name AS v ON {on} WHEN MATCHED THEN UPDATE SET points = v.points")
    assert players(db)[-1] == (4, "Bo", 8, None) and db.table("players")[2] == (2, "Bo", 8, "b")
    db.execute("MERGE INTO players p USING few AS f (i) ON p.id < f.i - 2 WHEN MATCHED THEN UPDATE SET points = f.i")
    assert db.table("players")[1] == (1, "Ida", 4, None)


def test_a_merge_refuses_two_source_rows_for_one_row(db: fv.Database) -> None:
    twice = "MERGE INTO players p USING (SELECT 1 AS id UNION ALL SELECT 1) s ON p.id = s.id WHEN MATCHED"
    with pytest.raises(fv.BatchError, match=r"table players: MERGE: several rows of the source match the row \(id = 1"):
        db.execute(f"{twice} AND p.points > 100 THEN UPDATE SET points = 1")
    assert db.version == 1
    assert db.execute(f"{twice} THEN DELETE").deleted == 1


def test_an_on_conflict_clause_updates_or_keeps_the_stored_row(db: fv.Database) -> None:
    adding = "ON CONFLICT (id) DO UPDATE SET points = players.points + excluded.points, name = excluded.name"
    found = db.execute(f"INSERT INTO players (id, name, points) VALUES (1, 'Eve', 10), (9, 'New', 1) {adding}")
    assert repr(found) == "1 row inserted, 1 updated, version 2"
    found = db.execute("INSERT INTO players (id, code) VALUES (9, 'no'), (10, 'a'), (10, 'b') ON CONFLICT DO NOTHING")
    assert repr(found) == "1 row inserted, version 3"
    found = db.execute(f"INSERT INTO players (id, points) VALUES (2, 100) {adding} WHERE players.points > 50")
    assert found.rows == 0
    assert players(db) == [
        (1, "Eve", 15, None), (2, "Bo", 7, "b"), (3, "Ida", None, "c"), (9, "New", 1, None), (10, "nobody", 7, "a")
    ]  # fmt: skip
    with pytest.raises(fv.BatchError, match="row 1: ON CONFLICT DO UPDATE: several new rows have the key"):
        db.execute(f"INSERT INTO players (id) VALUES (20), (20) {adding}")


def test_rows_whose_unique_columns_are_null_never_conflict(db: fv.Database) -> None:
    db.execute("CREATE TABLE mails (id INT, mail STRING UNIQUE); INSERT INTO mails VALUES (1, 'a'), (2, NULL)")
    adding = "INSERT INTO mails VALUES (3, 'a'), (4, NULL), (5, NULL), (6, 'b') ON CONFLICT (mail) DO UPDATE SET id = 7"
    assert repr(db.execute(adding)) == "3 rows inserted, 1 updated, version 3"
    assert sorted(row[0] for row in db.table("mails")) == [2, 4, 5, 6, 7]


def test_a_transaction_makes_one_version(db: fv.Database) -> None:
    seen: list[Any] = []
    db.view("by_name").subscribe(lambda change: seen.append(change.version))
    found = db.execute("""
        BEGIN;
        INSERT INTO players (id) VALUES (4), (5);
        UPDATE players SET points = points + 1 WHERE id > 1;
        UPDATE players SET code = 'x' WHERE id = 4;
        DELETE FROM players WHERE id = 5;
        INSERT INTO games VALUES (1, 1);
        COMMIT
    """)
    assert repr(found) == "3 rows inserted, 1 deleted, 5 updated, version 2" and seen == [2]
    assert players(db)[-1] == (4, "nobody", 8, "x") and list(db.table("games")) == [(1, 1)]
    assert db.execute("BEGIN; TRUNCATE TABLE players; ROLLBACK").rows == 0 and len(players(db)) == 4


def test_an_error_in_a_script_reports_the_finished_statements(db: fv.Database) -> None:
    answer = db.execute("CREATE TABLE a (x INT); INSERT INTO a VALUES (1), (2); SELECT SUM(x) AS s FROM a")
    assert answer.fetchall() == [(3,)]
    assert db.execute("CREATE TABLE b (x INT)") is None
    with pytest.raises(fv.BatchError) as caught:
        db.execute("CREATE TABLE c (x INT); INSERT INTO c VALUES (1); INSERT INTO players (id) VALUES (1)")
    assert str(caught.value).endswith("; statements 1 to 2 of the script took effect, so the version is 3")
    assert list(db.table("c")) == [(1,)]
    with pytest.raises(fv.SqlError):
        db.execute("INSERT INTO c VALUES (1); INSERT INTO c VALEUS (2)")
    with pytest.raises(fv.SqlError):
        db.execute("CREATE TABLE d (x INT); CREATE TABLE e (x NOTHING)")
    assert list(db.table("c")) == [(1,)] and "d" not in db.tables


def test_changes_by_statements_survive_a_reopen(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        db.execute(SCRIPT + ";INSERT INTO players (id) VALUES (1), (2); CREATE TABLE later (x INT)")
        db.execute("UPDATE players SET points = 1 WHERE id = 1; DELETE FROM players WHERE id = 2")
    with fv.Database(tmp_path / "db") as db:
        assert players(db) == [(1, "nobody", 1, None)] and "later" in db.tables and db.version == 3


STORED = [
    ("INT", "1.7", 1),
    ("INT", "-1.7D", -1),
    ("STRING", "1.50", "1.50"),
    ("STRING", "TRUE", "true"),
    ("STRING", "DATE '2026-01-02'", "2026-01-02"),
    ("DATE", "TIMESTAMP '2026-01-02 03:04:05'", dt.date(2026, 1, 2)),
    ("TIMESTAMP", "DATE '2026-01-02'", dt.datetime(2026, 1, 2)),
    ("DECIMAL(5, 2)", "1.005", Decimal("1.01")),
    ("DECIMAL(5, 2)", "1.015", Decimal("1.02")),
    ("DECIMAL(5, 2)", "1.005D", Decimal("1.01")),
    ("FLOAT", "0.1", 0.10000000149011612),
    ("FLOAT", "1e300D", float("inf")),
    ("BIGINT", "1e10D", 10**10),
    ("VARCHAR(3)", "123", "123"),
    ("INT", "NULL", None),
]
"""Types of a column, values, and what Spark stores."""


@pytest.mark.parametrize(("kind", "value", "stored"), STORED)
def test_values_are_stored_as_spark_stores_them(kind: str, value: str, stored: Any) -> None:
    with fv.Database() as db:
        db.execute(f"CREATE TABLE t (k INT PRIMARY KEY, a {kind}); INSERT INTO t VALUES (1, {value})")
        db.execute(f"INSERT INTO t SELECT 2, {value}")
        db.execute(f"INSERT INTO t (k) VALUES (3); UPDATE t SET a = {value} WHERE k = 3")
        assert [row[1] for row in db.table("t")] == [stored] * 3


REFUSED = ["INT 3000000000", "TINYINT 300", "INT '5'", "INT TRUE", "DATE '2026-01-02'", "DECIMAL(5,2) 12345.6",
           "BOOLEAN 1", "BOOLEAN 'true'", "INT DATE'2026-01-02'", "TIMESTAMP 5", "VARCHAR(3) 'abcd'",
           "VARCHAR(3) 12345", "INT CAST(NULL AS STRING)"]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_spark_does_not_store_are_refused(case: str) -> None:
    kind, value = case.split(" ", 1)
    with fv.Database() as db:
        db.execute(f"CREATE TABLE t (a {kind})")
        for statement in (f"INSERT INTO t VALUES ({value})", f"INSERT INTO t SELECT {value}"):
            with pytest.raises((fv.SqlError, fv.BatchError), match=r"column (t\.)?a"):
                db.execute(statement)
        assert not list(db.table("t")) and db.version == 0


ERRORS: list[tuple[str, type[Exception], str]] = [
    ("INSERT INTO player VALUES (1)", fv.errors.NameProblem, "line 1, column 13: unknown table player; did"),
    ("INSERT INTO players (idd) VALUES (1)", fv.SqlError, "column 22: unknown column players.idd; did you mean id"),
    ("INSERT INTO players VALUES (1)", fv.SqlError, "column 28: 1 value for 4 columns of players: id, name"),
    ("INSERT INTO players (id, id) VALUES (1, 2)", fv.SqlError, "column 26: column id is given twice"),
    ("INSERT INTO players SELECT 1", fv.SqlError, "the query of INSERT has 1 columns, but players takes 4"),
    ("INSERT INTO players (id) VALUES (points)", fv.SqlError, "column 34: points is a column, and VALUES accepts only"),
    ("INSERT INTO by_name VALUES (1)", fv.errors.NameProblem, "by_name is a view .* change the tables .*: players"),
    ("DELETE FROM few", fv.errors.NameProblem, "few is a view"),
    ("UPDATE players SET pints = 1", fv.SqlError, "column 20: unknown column players.pints; did you mean points"),
    ("UPDATE players SET points = 1 WHERE idd = 1", fv.SqlError, "column 37: unknown column idd; did you mean id"),
    ("UPDATE players SET points = 1, points = 2", fv.SqlError, "column points is set twice"),
    ("UPDATE players SET points = 'x'", fv.SqlError, "players.points is INT and does not accept STRING; write"),
    ("UPDATE players SET name = NULL", fv.BatchError, "table players, column name, for .id = 1.*: NULL in"),
    ("UPDATE players SET code = 'abcd' WHERE id = 2", fv.BatchError, "column code, for .id = 2.*: 'abcd': VARCHAR"),
    ("UPDATE players SET points = points * 1000000000", fv.EvaluationError, "column points: .* .id = 1.*: overflow"),
    ("DELETE FROM players WHERE points", fv.SqlError, "WHERE takes a BOOLEAN, not INT"),
    ("UPDATE players SET points = 1 FROM games", fv.errors.UnsupportedSql, "write MERGE INTO t USING s ON ..."),
    ("DELETE FROM players USING games", fv.SqlError, "MERGE INTO"),
    ("DELETE players WHERE id = 1", fv.errors.UnsupportedSql, "DELETE FROM t WHERE"),
    ("INSERT OVERWRITE players VALUES (1)", fv.errors.UnsupportedSql, "TRUNCATE TABLE and INSERT"),
    ("INSERT INTO players (id) VALUES (1) RETURNING id", fv.errors.UnsupportedSql, "RETURNING"),
    ("INSERT INTO players (id) VALUES (1)", fv.BatchError, r"table players, row 0, column id: PRIMARY KEY \(id\)"),
    ("UPDATE players SET id = 1", fv.BatchError, r"PRIMARY KEY \(id\) would have"),
    ("INSERT INTO players (id) VALUES (9) ON CONFLICT (points) DO NOTHING", fv.SqlError, "keys of players are .id"),
    ("INSERT INTO games VALUES (1, 1) ON CONFLICT DO NOTHING", fv.SqlError, "table games has no PRIMARY KEY"),
    ("BEGIN; INSERT INTO games VALUES (1, 2)", fv.SqlError, "line 1, column 1: BEGIN has no COMMIT"),
    ("COMMIT", fv.SqlError, "COMMIT has no BEGIN"),
    ("BEGIN; BEGIN; COMMIT", fv.SqlError, "column 8: BEGIN is inside an open transaction"),
    ("BEGIN; CREATE TABLE x (a INT); COMMIT", fv.SqlError, "a statement that creates, alters or drops between"),
    ("BEGIN; DELETE FROM players; INSERT INTO games SELECT 1, 1 FROM few; COMMIT", fv.SqlError, "column 29: .* COM"),
    ("MERGE INTO players USING games ON id = plyer WHEN MATCHED THEN DELETE", fv.SqlError, "unknown column plyer"),
    ("MERGE INTO players p USING games p ON 1 = 1 WHEN MATCHED THEN DELETE", fv.SqlError, "both named p"),
    ("MERGE INTO players USING games ON id = player WHEN MATCHED THEN INSERT *", fv.SqlError, "UPDATE SET or DEL"),
    ("MERGE INTO players USING games ON id = player WHEN NOT MATCHED THEN INSERT *", fv.SqlError, "source has no id"),
    ("MERGE INTO players USING games ON id = player", fv.SqlError, "WHEN is missing"),
    ("UPDATE players points = 1", fv.SqlError, "SET is missing"),
    ("INSERT INTO gone VALUES (1) ON CONFLICT DO NOTHING", fv.SqlError, "gone is trusted"),
    ("DELETE FROM gone", fv.SqlError, "DELETE: table gone is trusted: its rows are not stored"),
    ("UPDATE recent SET at = 1", fv.SqlError, "UPDATE: table recent has a window"),
]


@pytest.mark.parametrize(("statement", "kind", "message"), ERRORS)
def test_a_refused_statement_changes_no_row(
    db: fv.Database, statement: str, kind: type[Exception], message: str
) -> None:
    db.execute("""CREATE TABLE gone (k INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
        CREATE TABLE recent (at INT) TBLPROPERTIES ('freshviews.window' = '2 rows')""")
    before = players(db)
    with pytest.raises(kind, match=message):
        db.execute(statement)
    assert players(db) == before and db.version == 1


def test_trusted_tables_and_tables_with_a_window_accept_insert_statements(db: fv.Database) -> None:
    db.execute("""CREATE TABLE gone (k INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
        CREATE TABLE recent (at INT) TBLPROPERTIES ('freshviews.window' = '2 rows');
        CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM gone;
        INSERT INTO gone VALUES (1), (2);
        INSERT INTO recent VALUES (1), (2), (3)""")
    assert list(db.view("counted")) == [(2,)] and sorted(db.table("recent")) == [(2,), (3,)]


PARAMETERS: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("VALUES (?)", (), {}, "column 34: parameter 1 has no value; 0 of 1 values are given"),
    ("VALUES (?)", (1, 2), {}, "the script has 1 parameters, but 2 values were passed"),
    ("VALUES (1)", (1,), {}, "0 parameters, but 1 values were passed; write . or :name"),
    ("VALUES (:a)", (), {"b": 1}, "parameter :a has no value; there are b"),
    ("VALUES (:a)", (), {"a": 1, "b": 1}, "no parameter :b; it has :a"),
    ("VALUES (?)", (), {"a": 1}, "values are passed by name, but the script has ?"),
    ("VALUES (:a)", (1,), {}, "values are passed by position, but the script has :a"),
    ("VALUES (:a), (?)", (1,), {}, "one kind"),
    ("VALUES (?)", ([(1,), (2,)],), {}, "2 rows of values were passed; use Database.insert, upsert, update or delete"),
    ("VALUES (?)", (1,), {"a": 1}, "pass values by position for ., or by name"),
    ("VALUES (?)", (), {"parameters": [1, 2]}, "1 parameters, but 2 values"),
    ("VALUES (?)", ("x",), {}, "table players, row 0, column id: 'x': BIGINT accepts int, not str"),
    ("VALUES (? + 1)", (object(),), {}, "object.* None, bool, int, float, str"),
]


@pytest.mark.parametrize(("values", "given", "named", "message"), PARAMETERS)
def test_parameters_that_are_missing_extra_or_wrong_are_refused(
    db: fv.Database, values: str, given: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(fv.FreshviewsError, match=message):
        db.execute(f"INSERT INTO players (id) {values}", *given, **named)
    assert db.version == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("\ud800", "is not valid Unicode"),
        (np.array([1, 2]), "is a ndarray"),
        (np.datetime64("2026-01-02T03:04:05.123456789"), "is a datetime64"),
        (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))), "is outside the years 1 to 9999 in UTC"),
        (Decimal("1E+100000"), "more digits than a DECIMAL"),
        (Decimal("1E-100000"), "more digits than a DECIMAL"),
    ],
)
@pytest.mark.parametrize("statement", ["UPDATE players SET name = ?", "DELETE FROM players WHERE name = ?"])
def test_a_parameter_that_cannot_become_a_sql_constant_is_refused(
    db: fv.Database, statement: str, value: object, message: str
) -> None:
    with pytest.raises(fv.SqlError, match=f"line 1.*{message}"):
        db.execute(statement, value)


def test_a_parameter_in_a_view_definition_is_refused(db: fv.Database) -> None:
    with pytest.raises(fv.errors.UnsupportedSql, match="a parameter in a definition"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT id FROM players WHERE id = ?", 1)


def test_parameters_may_have_every_type_that_constants_have(db: fv.Database) -> None:
    db.execute("CREATE TABLE moments (d DATE, t TIMESTAMP, x DECIMAL(6, 2), y DOUBLE, b BOOLEAN)")
    row = (dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, 4, 5, 6), Decimal("-1.25"), -0.5, True)
    db.execute("INSERT INTO moments VALUES (?, ?, ?, ?, ?)", row)
    db.execute("INSERT INTO moments (d, t) VALUES (?, ?)", "2026-01-02", "2026-01-02 03:04:05")
    where = "d = ? AND t = ? AND x = ? AND y = ? AND b = ?"
    assert db.execute(f"UPDATE moments SET d = ?, x = ? WHERE {where}", ["2027-01-01", Decimal("2"), *row]).rows == 1
    assert sorted(db.table("moments"), key=str)[1] == (dt.date(2027, 1, 1), row[1], Decimal("2.00"), -0.5, True)


def test_the_statements_show_and_describe_list_tables_views_and_columns(db: fv.Database) -> None:
    db.execute("CREATE TABLE `a b` (x DECIMAL(6, 2) NOT NULL DEFAULT 0.05, "
               "d DATE DEFAULT DATE '2026-01-02', n INT UNIQUE)")  # fmt: skip
    assert db.execute("SHOW TABLES").fetchall() == [("players", None), ("games", None), ("a b", None)]
    assert db.execute("SHOW TABLES LIKE 'G*|p%'").fetchall() == [("players", None), ("games", None)]
    # A pattern that makes a backtracking matcher take years.
    assert db.execute(f"SHOW TABLES LIKE '{400 * '*'}z'").fetchall() == []
    assert db.execute("SHOW VIEWS").fetchall() == [("by_name", "YES", None), ("few", "NO", None)]
    assert db.execute("SHOW COLUMNS IN by_name").fetchall() == [("name",), ("points",)]
    assert db.execute("DESCRIBE TABLE `a b`").fetchall() == [
        ("x", "DECIMAL(6, 2)", "NO", None, "0.05", None),
        ("d", "DATE", "YES", None, "DATE '2026-01-02'", None),
        ("n", "INT", "YES", "UNIQUE", None, None),
    ]
    assert db.execute("DESC players").fetchall()[0] == ("id", "BIGINT", "NO", "PRIMARY KEY", None, None)


def test_the_text_of_show_create_recreates_the_same_table_or_view() -> None:
    script = """
        CREATE TABLE p (id BIGINT PRIMARY KEY, name STRING NOT NULL DEFAULT 'it\\'s', y DOUBLE DEFAULT 1.5,
            v VARCHAR(3) UNIQUE COMMENT 'short', ts TIMESTAMP DEFAULT TIMESTAMP '2026-01-01 03:04:05',
            b BOOLEAN DEFAULT TRUE,
            x INT DEFAULT NULL)
            TBLPROPERTIES ('freshviews.rows' = '5');
        CREATE TABLE q (k BIGINT REFERENCES p (id));
        CREATE VIEW few AS SELECT id FROM p
    """
    with fv.Database() as db, fv.Database() as other:
        db.execute(script)
        for statement in ("SHOW CREATE TABLE p", "SHOW CREATE TABLE q", "SHOW CREATE VIEW few"):
            ((text,),) = db.execute(statement).fetchall()
            other.execute(text)
            assert other.execute(statement).fetchall() == [(text,)]
        assert [t.definition for t in db._relations.tables.values()] == [
            t.definition for t in other._relations.tables.values()
        ]


def test_explain_accepts_a_view_a_select_or_a_create_view(db: fv.Database) -> None:
    assert db.execute("EXPLAIN by_name") == db.view("by_name").explain()
    text = db.execute("EXPLAIN SELECT name, COUNT(*) AS n FROM players GROUP BY name")
    assert text.startswith("view the query(name STRING, n BIGINT)\nreads players\n")
    assert text.to_dict()["blocks"][0]["strategy"] == "view_tree" and "by_name" in db.views
    assert "view later(n BIGINT)" in db.execute("EXPLAIN CREATE MATERIALIZED VIEW later AS SELECT COUNT(*) n FROM few")
    assert db.views == ("by_name",)


QUESTIONS = [
    ("SHOW DATABASES", "SHOW DATABASES is not supported; SHOW TABLES"),
    ("SHOW COLUMNS IN player", "unknown table or view player; did you mean players"),
    ("DESCRIBE nothing", "line 1, column 10: unknown table or view nothing"),
    ("EXPLAIN players", "players is not a materialised view"),
    ("EXPLAIN\n SELECT idd FROM players", "line 2, column 9: unknown column idd; did you mean id"),
    ("EXPLAIN DELETE FROM players", "EXPLAIN DELETE is not supported"),
    ("EXPLAIN", "EXPLAIN takes"),
]


@pytest.mark.parametrize(("question", "message"), QUESTIONS)
def test_wrong_show_describe_and_explain_statements_are_refused(db: fv.Database, question: str, message: str) -> None:
    with pytest.raises(fv.SqlError, match=message):
        db.execute(question)


def test_comments_on_tables_views_and_columns_are_stored_until_removed(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        db.execute("CREATE TABLE t (a INT COMMENT 'first', b INT) COMMENT 'numbers'; CREATE VIEW v AS SELECT a FROM t")
        db.execute("CREATE MATERIALIZED VIEW m AS SELECT COUNT(*) AS n FROM t")
        db.execute("COMMENT ON COLUMN t.b IS 'second'; COMMENT ON VIEW v IS 'it\\'s'; COMMENT ON VIEW m IS 'count'")
        db.snapshot()
        db.execute("COMMENT ON COLUMN t.a IS NULL; COMMENT ON COLUMN M.N IS 'rows'")
    with fv.Database(tmp_path / "db") as db:
        assert db.execute("SHOW TABLES").fetchall() == [("t", "numbers")]
        assert db.execute("SHOW VIEWS").fetchall() == [("m", "YES", "count"), ("v", "NO", "it's")]
        assert [row[-1] for row in db.execute("DESCRIBE t")] == [None, "second"]
        assert [row[-1] for row in db.execute("DESCRIBE m")] == ["rows"]
        db.execute("DROP VIEW v; DROP VIEW m; DROP TABLE t; CREATE TABLE t (b INT)")
        assert [row[-1] for row in db.execute("DESCRIBE t")] == [None] and db.version == 0


COMMENTS = [
    ("COMMENT ON TABLE player IS 'x'", "line 1, column 18: unknown table player; did you mean players"),
    ("COMMENT ON VIEW players IS 'x'", "players is not a view; write COMMENT ON TABLE"),
    ("COMMENT ON COLUMN players.pints IS 'x'", "unknown column players.pints; did you mean points"),
    ("COMMENT ON COLUMN points IS 'x'", "write COMMENT ON COLUMN table.column"),
    ("COMMENT ON TABLE players 'x'", "IS is missing"),
    ("COMMENT ON TABLE players IS 5", "a text or NULL is missing after IS"),
    ("COMMENT ON DATABASE d IS 'x'", "TABLE, VIEW or COLUMN is accepted"),
]


@pytest.mark.parametrize(("statement", "message"), COMMENTS)
def test_a_wrong_comment_statement_is_refused_with_the_reason(db: fv.Database, statement: str, message: str) -> None:
    with pytest.raises(fv.SqlError, match=message):
        db.execute(statement)


def test_scripts_of_definitions_refuse_changes_of_rows() -> None:
    with pytest.raises(fv.errors.UnsupportedSql, match=r"line 1, column 25: INSERT in .* call Database.execute"):
        parse_script("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)", Catalog())
    script = "CREATE STREAMING TABLE t (a INT) USING csv OPTIONS (path 'in');\nDELETE FROM t"
    with pytest.raises(fv.SqlError, match="line 2, column 1: DELETE is refused here: the rows of a stream"):
        split_streaming(script)


def test_a_repeated_statement_uses_its_new_parameters(db: fv.Database) -> None:
    adding = "INSERT INTO players (id, points) VALUES (?, ?); INSERT INTO games VALUES (?, 1)"

    def again(change: fv.Change) -> None:
        if len(db.table("players").to_arrow()) < 5:
            db.execute(adding, 11, 2, 12)

    db.view("by_name").subscribe(again)
    db.execute(adding, 9, 1, 10)
    assert [row[:3:2] for row in players(db)[3:]] == [(9, 1), (11, 2)]
    assert sorted(db.table("games")) == [(10, 1), (12, 1)]


def test_create_table_as_select_stores_the_rows_of_the_select() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a INT, s STRING, d DECIMAL(6, 2))")
        db.insert("t", [(1, "x", 1), (2, "y", None)])
        made = db.execute("CREATE TABLE `big t` AS SELECT a * 2 AS twice, s, d FROM t WHERE a > ?", 1)
        assert (made.inserted, made.version) == (1, db.version)
        assert list(db.table("big t")) == [(4, "y", None)]
        assert [str(column.type) for column in db.table("big t").schema] == ["int32", "string", "decimal128(6, 2)"]
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT SUM(twice) AS n FROM `big t`")
        db.execute("INSERT INTO `big t` VALUES (3, 'z', 1)")
        assert list(db.view("v")) == [(7,)]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("CREATE TABLE t AS SELECT 1 AS a", "line 1, column 14: t exists already; DROP t, or INSERT the rows into t"),
        ("CREATE OR REPLACE TABLE n AS SELECT 1 AS a", "a clause of CREATE TABLE AS SELECT"),
        ("CREATE TABLE IF NOT EXISTS n AS SELECT 1 AS a", "a clause of CREATE TABLE AS SELECT"),
        ("CREATE TABLE n AS SELECT b FROM t", "unknown column b"),
        ("CREATE TABLE n AS SELECT a, a FROM t", "have the same name"),
        ("BEGIN; CREATE TABLE n AS SELECT a FROM t; COMMIT", "a statement that creates, alters or drops between"),
    ],
)
def test_a_refused_create_table_as_select_makes_no_table(script: str, message: str) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a INT)")
        with pytest.raises(fv.FreshviewsError, match=message):
            db.execute(script)
        assert db.tables == ("t",)
