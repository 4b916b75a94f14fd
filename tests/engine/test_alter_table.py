"""ALTER TABLE ... ADD COLUMNS: existing rows get the DEFAULT, and views, readers and keys continue."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.engine.tables import growing
from freshviews.engine.tables.base_table import BaseTable, Stopped
from freshviews.errors import SqlError

ROWS = [(1, "a"), (2, "b"), (2, "b"), (3, None)]


@pytest.fixture(params=["memory", "durable"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[fv.Database]:
    with fv.Database(tmp_path / "db" if request.param == "durable" else None) as made:
        yield made


def shop(db: fv.Database) -> None:
    db.execute(
        "CREATE TABLE t (id INT, s STRING);"
        "CREATE MATERIALIZED VIEW everything AS SELECT * FROM t;"
        "CREATE MATERIALIZED VIEW n AS SELECT s, COUNT(*) AS n FROM t GROUP BY s"
    )
    db.insert("t", ROWS)


def test_old_rows_get_the_default_of_a_new_column(db: fv.Database) -> None:
    shop(db)
    changes: list[Any] = []
    everything, n, table = db.view("everything"), db.view("n"), db.table("t")
    n.subscribe(lambda change: changes.extend(change))
    db.execute("ALTER TABLE t ADD COLUMN c STRING NOT NULL DEFAULT 'new'; ALTER TABLE T ADD COLUMNS (D INT, x DOUBLE)")
    assert Counter(table) == Counter((*row, "new", None, None) for row in ROWS)
    assert db.table("t").schema.names == ["id", "s", "c", "D", "x"]
    assert Counter(everything) == Counter(ROWS)
    db.insert("t", [(4, "d", "told", 5, 0.5), {"id": 5, "s": "e"}])
    db.insert("t", pa.table({"id": [6], "s": ["b"]}))
    db.delete("t", [{"id": 2, "s": "b"}])
    db.delete("t", [(3, None, "new", None, None)])
    left = [*ROWS[:2], (4, "d"), (5, "e"), (6, "b")]
    assert Counter(everything) == Counter(left)
    assert Counter(n) == Counter(dict.fromkeys([("a", 1), ("b", 2), ("d", 1), ("e", 1)], 1))
    assert changes[0][1] != 0 and everything.schema.names == ["id", "s"]
    db.execute("CREATE MATERIALIZED VIEW later AS SELECT c, SUM(d) AS d, COUNT(*) AS n FROM t GROUP BY c")
    assert Counter(db.view("later")) == Counter([("new", None, 4), ("told", 5, 1)])
    db.execute("CREATE OR REPLACE MATERIALIZED VIEW everything AS SELECT * FROM t")
    assert Counter(db.view("everything")) == Counter(db.table("t"))
    with pytest.raises(fv.BatchError, match="a row has 5 values: id, s, c, D, x; this one has 2"):
        db.insert("t", [(7, "g")])


def test_a_reader_keeps_the_rows_and_columns_of_its_version() -> None:
    db = fv.Database()
    shop(db)
    tuples, batches = iter(db.table("t")), db.table("t").to_batches()
    db.execute("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    db.insert("t", [(9, "z", 1)])
    assert Counter(tuples) == Counter(ROWS)
    assert next(batches).schema.names == ["id", "s"]


def test_a_plain_view_keeps_its_columns_until_the_view_is_replaced(db: fv.Database) -> None:
    shop(db)
    db.execute(
        "CREATE TABLE u (id INT, c STRING); CREATE VIEW p AS SELECT * FROM t; CREATE VIEW q (a, b) AS SELECT * FROM p;"
        # c is a column of u only; t gets one later.
        "CREATE VIEW j AS SELECT t.id, c FROM t JOIN u ON t.id = u.id;"
        "ALTER TABLE t ADD COLUMN c INT DEFAULT 7;"
        "CREATE MATERIALIZED VIEW of_p AS SELECT * FROM p; CREATE MATERIALIZED VIEW of_q AS SELECT * FROM q;"
        "CREATE MATERIALIZED VIEW of_j AS SELECT * FROM j; CREATE MATERIALIZED VIEW of_t AS SELECT * FROM t"
    )
    db.insert("u", [(1, "one")])
    assert Counter(db.view("of_p")) == Counter(db.view("of_q")) == Counter(ROWS)
    assert list(db.view("of_j")) == [(1, "one")]
    assert Counter(db.view("of_t")) == Counter((*row, 7) for row in ROWS)
    with pytest.raises(SqlError, match="unknown column"):
        db.execute("CREATE MATERIALIZED VIEW no AS SELECT c FROM p")
    db.execute("DROP MATERIALIZED VIEW of_p; DROP MATERIALIZED VIEW of_q; DROP VIEW q")
    db.execute("CREATE OR REPLACE VIEW p AS SELECT * FROM t; CREATE MATERIALIZED VIEW of_p AS SELECT c FROM p")
    assert Counter(db.view("of_p")) == Counter({(7,): 4})


def test_keys_and_foreign_keys_are_enforced_after_columns_are_added(db: fv.Database) -> None:
    db.execute(
        "CREATE TABLE p (x INT, id INT PRIMARY KEY, code INT UNIQUE);"
        "CREATE TABLE c (id INT, up INT REFERENCES p, PRIMARY KEY (id));"
        "CREATE TABLE self (id INT PRIMARY KEY, up INT REFERENCES self)"
    )
    db.insert("p", [(0, 1, 10), (0, 2, 20)])
    db.insert("c", [(1, 1)])
    db.insert("self", [(1, None), (2, 1)])
    for name in ("p", "c", "self"):
        db.execute(f"ALTER TABLE {name} ADD COLUMN more STRING DEFAULT 'm'")
    for name, row, message in [
        ("p", (0, 1, 30, "x"), r"PRIMARY KEY \(id\)"),
        ("p", (0, 3, 20, "x"), r"UNIQUE \(code\)"),
        ("c", (2, 9, "x"), "there is no row for 9"),
        ("self", (3, 9, "x"), "there is no row for 9"),
    ]:
        with pytest.raises(fv.BatchError, match=message):
            db.insert(name, [row])
    with pytest.raises(fv.BatchError, match="rows of c still refer to 1"):
        db.delete("p", [(0, 1, 10, "m")])
    with pytest.raises(fv.BatchError, match="rows of self still refer to 1"):
        db.delete("self", [(1, None, "m")])
    db.insert("c", [(2, 2, "x")])
    assert db.table("p").lookup(pa.table({"id": [2]})).to_pylist() == [{"x": 0, "id": 2, "code": 20, "more": "m"}]
    db.execute("CREATE TABLE d (up INT REFERENCES p (code)); ALTER TABLE p ADD COLUMN last INT")
    with pytest.raises(fv.BatchError, match="there is no row for 5"):
        db.insert("d", [(5,)])
    db.insert("d", [(10,)])
    with pytest.raises(fv.BatchError, match="rows of d still refer to 10"):
        db.apply("p", [(0, 1, 10, "m", None, -1), (0, 1, 11, "m", None, 1)])


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("window", ["3 rows", "2 days"])
def test_a_window_keeps_deleting_old_rows_after_columns_are_added(tmp_path: Path, window: str, trusted: bool) -> None:
    def day(n: int) -> dt.date:
        return dt.date(2026, 1, n)

    with fv.Database(tmp_path / "db") as db:
        db.execute(
            f"CREATE TABLE t (id INT, day DATE NOT NULL) TBLPROPERTIES ('freshviews.window' = '{window}', "
            f"'freshviews.trusted' = '{str(trusted).lower()}');"
            "CREATE MATERIALIZED VIEW v AS SELECT id, day FROM t"
        )
        db.insert("t", [(1, day(1)), (2, day(2)), (3, day(2))])
        db.execute("ALTER TABLE t ADD COLUMN more DATE NOT NULL DEFAULT '2020-01-01'")
        db.insert("t", [(4, day(3), day(9))])
        expected = [(2, day(2)), (3, day(2)), (4, day(3))]
        assert sorted(db.view("v")) == expected
        db.snapshot()
        db.insert("t", [{"id": 5, "day": day(4)}])
        expected = [*expected[1:], (5, day(4))] if window == "3 rows" else [(4, day(3)), (5, day(4))]
        assert sorted(db.view("v")) == expected
    with fv.Database(tmp_path / "db") as db:
        assert sorted(db.view("v")) == expected
        db.insert("t", [{"id": 6, "day": day(5)}])
        assert sorted(db.view("v"))[-2:] == [(5, day(4)), (6, day(5))]
        if not trusted:
            assert {row[2] for row in db.table("t")} <= {dt.date(2020, 1, 1), day(9)}


def test_columns_are_added_to_a_trusted_table(db: fv.Database) -> None:
    db.execute(
        "CREATE TABLE t (id INT, s STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT s, COUNT(*) AS n FROM t GROUP BY s"
    )
    db.insert("t", ROWS)
    with pytest.raises(fv.CatalogError, match="table t: the stored rows have no value for the NOT NULL column c"):
        db.execute("ALTER TABLE t ADD COLUMN c INT NOT NULL")
    db.execute("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 1")
    db.insert("t", [(5, "a", 2), {"id": 6, "s": "c"}])
    db.delete("t", [(1, "a", 1)])
    assert Counter(db.view("v")) == Counter(dict.fromkeys([("a", 1), ("b", 2), (None, 1), ("c", 1)], 1))
    with pytest.raises(fv.CatalogError, match="trusted table t are not stored"):
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT c FROM t")


def test_a_not_null_column_without_a_default_needs_an_empty_table(db: fv.Database) -> None:
    shop(db)
    script = "CREATE TABLE other (a INT);\nALTER TABLE t ADD COLUMNS (a INT,\n  c INT NOT NULL)"
    with pytest.raises(SqlError, match="give the column a DEFAULT, or leave NOT NULL out") as raised:
        db.execute(script)
    assert (raised.value.line, raised.value.column) == (3, 3)
    assert isinstance(raised.value, fv.CatalogError)
    # No statement of the script took effect.
    assert db.tables == ("t",) and db.table("t").schema.names == ["id", "s"]
    db.delete("t", ROWS)
    db.execute(script)
    with pytest.raises(fv.BatchError, match="column c: NULL"):
        db.insert("t", [{"id": 1}])
    db.insert("t", [{"id": 1, "c": 4}])
    assert list(db.table("t")) == [(1, None, None, 4)]


def test_a_table_is_unchanged_if_memory_runs_out_in_alter_table(monkeypatch: pytest.MonkeyPatch) -> None:
    db = fv.Database()
    shop(db)
    monkeypatch.setattr(growing, "ROWS", 1)
    add, calls = BaseTable.add, iter(range(9))
    monkeypatch.setattr(BaseTable, "add", lambda *given: Stopped(0, True) if next(calls) == 2 else add(*given))
    with pytest.raises(fv.OutOfMemory, match="while table t got its new columns; the table is as before"):
        db.execute("CREATE TABLE u (a INT); ALTER TABLE t ADD COLUMN c INT")
    monkeypatch.undo()
    assert db.tables == ("t",) and Counter(db.table("t")) == Counter(ROWS)
    db.delete("t", ROWS)
    assert list(db.view("n")) == []


def test_rows_of_an_open_batch_get_the_columns_that_are_added(db: fv.Database) -> None:
    shop(db)
    with db.batch() as batch:
        batch.insert("t", [(7, "old")])
        db.execute("ALTER TABLE t ADD COLUMN c STRING DEFAULT 'new'")
        batch.insert("t", [(8, "told", "c"), {"id": 9}])
        batch.delete("t", [(1, "a", "new")])
    rows = [(*row, "new") for row in ROWS[1:]]
    assert Counter(db.table("t")) == Counter([*rows, (7, "old", "new"), (8, "told", "c"), (9, None, "new")])
    db.execute("CREATE TABLE u (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM u")
    pieces = db.apply_in_order("u", [(1, 1), (2, 1)], "v")
    db.execute("ALTER TABLE u ADD COLUMN b INT DEFAULT 3")
    assert [row["a"] for batch in pieces for row in batch.to_pylist()] == [1, 2]
    assert Counter(db.table("u")) == Counter([(1, 3), (2, 3)])
    db.delete("u", [(1, 3), (2, 3)])
    with pytest.raises(fv.BatchError, match="NOT NULL column d was added while the batch was open"), db.batch() as late:
        late.insert("u", [(1, 1)])
        db.execute("ALTER TABLE u ADD COLUMN d INT NOT NULL")
    assert list(db.table("u")) == []


def test_one_script_may_create_alter_and_drop_several_tables(db: fv.Database) -> None:
    shop(db)
    db.execute(
        "ALTER TABLE t ADD COLUMN a INT DEFAULT 1; CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS a FROM t;"
        "ALTER TABLE t ADD COLUMN b INT DEFAULT 2; CREATE MATERIALIZED VIEW w AS SELECT SUM(a + b) AS s FROM t;"
        "CREATE TABLE made (x INT); ALTER TABLE made ADD COLUMN y INT NOT NULL;"
        "CREATE TABLE gone (x INT); ALTER TABLE gone ADD COLUMN y INT; DROP TABLE gone;"
        "ALTER VIEW n SET TBLPROPERTIES ('freshviews.strategy' = 'first_order')"
    )
    assert (list(db.view("v")), list(db.view("w"))) == ([(4,)], [(12,)])
    db.insert("made", [(1, 2)])
    db.insert("t", [(1, "a", 5, 5)])
    assert (list(db.view("v")), list(db.view("w"))) == ([(9,)], [(22,)])
    db.execute(
        "DROP MATERIALIZED VIEW v; DROP MATERIALIZED VIEW w; DROP MATERIALIZED VIEW n; DROP MATERIALIZED VIEW "
        "everything; ALTER TABLE t ADD COLUMN z INT; DROP TABLE t; CREATE TABLE t (k INT)"
    )
    db.insert("t", [(1,)])
    assert list(db.table("t")) == [(1,)]


@pytest.mark.parametrize("snapshot", ["none", "before", "after", "both"])
def test_a_durable_database_reopens_with_added_columns(tmp_path: Path, snapshot: str) -> None:
    with fv.Database(tmp_path / "db") as db:
        shop(db)
        if snapshot in ("before", "both"):
            db.snapshot()
        db.insert("t", [(5, "before")])
        db.execute("ALTER TABLE t ADD COLUMN c STRING NOT NULL DEFAULT 'new'")
        db.insert("t", [(6, "after", "told"), {"id": 7}])
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT c, COUNT(*) AS n FROM t GROUP BY c")
        if snapshot in ("after", "both"):
            db.snapshot()
        db.insert("t", [(8, None, "told")])
        expected = Counter(db.table("t"))
        version = db.version
    for _ in range(2):
        with fv.Database(tmp_path / "db") as db:
            assert Counter(db.table("t")) == expected and db.version == version
            assert Counter(db.view("v")) == Counter([("new", 6), ("told", 2)])
            assert len(list(db.view("everything"))) == 8
            db.snapshot()


def test_an_image_is_restored_with_added_columns(tmp_path: Path) -> None:
    from freshviews.sql import Catalog, parse_script

    script = (
        "CREATE TABLE t (id INT, s STRING); CREATE MATERIALIZED VIEW v AS SELECT * FROM t;"
        "ALTER TABLE t ADD COLUMN c STRING DEFAULT 'new'; CREATE MATERIALIZED VIEW w AS SELECT * FROM t"
    )
    statements = parse_script(script, Catalog())
    db = fv.Database()
    db.define(statements)
    db.insert("t", [{"id": 1}, (2, "b", None)])
    db.write_image(tmp_path / "image")
    again = fv.Database.from_image(tmp_path / "image", statements)
    again.insert("t", [{"id": 3}])
    assert Counter(again.view("w")) == Counter([(1, None, "new"), (2, "b", None), (3, None, "new")])
    assert Counter(again.view("v")) == Counter([(1, None), (2, "b"), (3, None)])


def test_a_column_may_get_a_wider_type(db: fv.Database) -> None:
    db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, f FLOAT, d DECIMAL(4, 2), s VARCHAR(2), n TINYINT DEFAULT 7);"
        "CREATE MATERIALIZED VIEW v AS SELECT d, COUNT(*) AS n FROM t GROUP BY d;"
        "CREATE MATERIALIZED VIEW w AS SELECT SUM(n) AS n, MAX(s) AS s FROM t"
    )
    db.insert("t", [(1, 0.5, Decimal("1.25"), "ab", 100), (2, None, None, None, None)])
    with pytest.raises(fv.CatalogError, match="column n is TINYINT, and w may read it"):
        db.execute("ALTER TABLE t ALTER COLUMN n TYPE BIGINT")
    with db.batch() as batch:
        batch.insert("t", [{"id": 3}])
        db.execute("ALTER TABLE t ALTER COLUMN id TYPE BIGINT; ALTER TABLE t ALTER COLUMN f TYPE DOUBLE")
    db.execute(
        "DROP MATERIALIZED VIEW w; ALTER TABLE t ALTER COLUMN n TYPE BIGINT; ALTER TABLE t ALTER COLUMN s TYPE STRING;"
        "CREATE MATERIALIZED VIEW w AS SELECT SUM(n) AS n, MAX(s) AS s FROM t"
    )
    big = (2**40, 0.1, Decimal("99.99"), "longer", 2**60)
    db.insert("t", [big])
    rows = [(1, 0.5, Decimal("1.25"), "ab", 100), (2, None, None, None, None), (3, None, None, None, 7), big]
    assert Counter(db.table("t")) == Counter(rows)
    assert list(db.view("w")) == [(2**60 + 107, "longer")]
    db.execute("DROP MATERIALIZED VIEW v; ALTER TABLE t ALTER COLUMN d TYPE DECIMAL(9, 2)")
    db.insert("t", [(4, 1.5, Decimal("1234567.25"), "x", 1)])
    with pytest.raises(fv.BatchError, match="PRIMARY KEY"):
        db.insert("t", [(4, 1.5, None, "x", 1)])


def test_an_altered_trusted_table_does_not_count_as_empty(db: fv.Database) -> None:
    db.execute(
        "CREATE TABLE t (id INT, n INT) TBLPROPERTIES ('freshviews.trusted' = 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS n FROM t"
    )
    db.insert("t", [(1, 5)])
    for later, refused in (
        ("ALTER VIEW v SET TBLPROPERTIES ('freshviews.strategy' = 'first_order')", "trusted table t are not stored"),
        ("CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) AS n FROM t", "trusted table t are not stored"),
        ("ALTER TABLE t ADD COLUMN y INT NOT NULL", "the stored rows have no value for the NOT NULL column y"),
    ):
        with pytest.raises(fv.FreshviewsError, match=refused):
            db.execute(f"ALTER TABLE t ADD COLUMN x INT DEFAULT 1; {later}")
    db.execute("ALTER TABLE t ADD COLUMN x INT DEFAULT 1")
    db.insert("t", [(2, 7, 3)])
    assert list(db.view("v")) == [(12,)]


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("VARCHAR(4)", "does not hold its values unchanged"),
        ("CHAR(9)", r"line 1, column 35: type CHAR\(9\) is not supported"),
        ("VARCHAR(9)", ""),
        ("STRING", ""),
    ],
)
def test_the_limit_of_a_varchar_column_may_only_rise(kind: str, refused: str) -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT, s VARCHAR(5))")
    if refused:
        with pytest.raises(SqlError, match=refused):
            db.execute(f"ALTER TABLE t ALTER COLUMN s TYPE {kind}")
        return
    db.execute(f"ALTER TABLE t ALTER COLUMN s TYPE {kind}")
    db.insert("t", [(1, "x" * 9)])
    if kind != "STRING":
        with pytest.raises(fv.BatchError, match=r"VARCHAR\(9\) accepts 9 characters, not 10"):
            db.insert("t", [(1, "x" * 10)])


@pytest.mark.parametrize(("kind", "text"), [("FLOAT", "1e300"), ("FLOAT", "16777217"), ("DOUBLE", "9007199254740993")])
def test_a_default_that_would_be_rounded_is_refused(kind: str, text: str) -> None:
    with pytest.raises(SqlError, match=r"the value would be rounded|the value does not fit FLOAT"):
        fv.Database().execute(f"CREATE TABLE t (a INT, b {kind} DEFAULT {text})")


def test_readers_get_all_rows_while_another_thread_alters_the_table() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (id INT)")
    db.insert("t", [(number,) for number in range(10)])
    table, ends = db.table("t"), threading.Event()

    def read() -> int:
        found = 0
        while not ends.is_set():
            found += len(table.to_arrow())
        return found

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(20):
            db.execute(f"ALTER TABLE t ADD COLUMN c{number} INT DEFAULT {number}")
        ends.set()
        assert all(reader.result() % 10 == 0 for reader in readers)
