"""``freshviews.dbapi`` reads as PEP 249 says, alone and under pandas and polars."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import freshviews as fv
from freshviews import dbapi

pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'freshviews[sql]'")

pytestmark = pytest.mark.plain_python(only=True)

SCRIPT = """
CREATE TABLE items (id INT PRIMARY KEY, part STRING NOT NULL, price DECIMAL(8, 2), day DATE, at TIMESTAMP, ok BOOLEAN,
  weight DOUBLE);
CREATE MATERIALIZED VIEW by_part AS SELECT part, COUNT(*) AS n, SUM(price) AS price FROM items GROUP BY part;
"""
DAY, AT = date(2026, 1, 31), datetime(2026, 1, 31, 12, 30, 0, 5)
ROWS = [
    (1, "bolt", Decimal("1.50"), DAY, AT, True, 0.5),
    (2, "nut", Decimal("0.25"), None, None, False, None),
    (3, "bolt", None, DAY, AT, None, 1.0),
]


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        made.insert("items", ROWS)
        yield made


@pytest.fixture
def cursor(db: fv.Database) -> dbapi.Cursor:
    return dbapi.connect(db).cursor()


def test_the_module_defines_all_names_that_pep_249_requires() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    parents = {
        "Warning": "FreshviewsError", "Error": "FreshviewsError", "InterfaceError": "Error", "DatabaseError": "Error",
        "DataError": "DatabaseError", "OperationalError": "DatabaseError", "IntegrityError": "DatabaseError",
        "InternalError": "DatabaseError", "ProgrammingError": "DatabaseError", "NotSupportedError": "DatabaseError",
    }  # fmt: skip
    assert {name: getattr(dbapi, name).__mro__[1].__name__ for name in parents} == parents
    for name in ("close", "commit", "rollback", "cursor"):
        assert callable(getattr(dbapi.Connection, name))
    for name in ("execute", "executemany", "fetchone", "fetchmany", "fetchall", "setinputsizes", "setoutputsize"):
        assert callable(getattr(dbapi.Cursor, name))
    assert inspect.signature(dbapi.Cursor.fetchmany).parameters["size"].default is None
    assert dbapi.Date(2026, 1, 31) == DAY and dbapi.Binary(b"x") == b"x"


def test_a_cursor_fetches_one_row_several_rows_or_all_remaining_rows(cursor: dbapi.Cursor) -> None:
    cursor.execute("SELECT id FROM items ORDER BY id")
    assert (cursor.rowcount, cursor.fetchone(), cursor.fetchmany(1), cursor.fetchmany(5)) == (3, (1,), [(2,)], [(3,)])
    assert (cursor.fetchone(), cursor.fetchmany(), cursor.fetchall()) == (None, [], [])
    cursor.arraysize = 2
    assert cursor.execute("SELECT id FROM items ORDER BY id").fetchmany() == [(1,), (2,)]
    assert list(cursor) == [(3,)]
    assert cursor.execute("SELECT id FROM items ORDER BY id").fetchone() == (1,)
    assert cursor.fetch_arrow_table().to_pydict() == {"id": [2, 3]}
    assert cursor.fetchall() == [] and cursor.fetch_arrow_table().num_rows == 0


def test_fetched_values_have_the_expected_python_types(cursor: dbapi.Cursor) -> None:
    assert cursor.execute("SELECT * FROM items ORDER BY id").fetchall() == ROWS


def test_the_description_of_a_cursor_lists_column_names_and_types(cursor: dbapi.Cursor) -> None:
    assert cursor.description is None
    found = cursor.execute("SELECT * FROM items").description
    assert found is not None and all(len(column) == 7 for column in found)
    assert [column[:2] for column in found] == [
        ("id", "INT"), ("part", "STRING"), ("price", "DECIMAL(8, 2)"), ("day", "DATE"), ("at", "TIMESTAMP"),
        ("ok", "BOOLEAN"), ("weight", "DOUBLE"),
    ]  # fmt: skip
    assert found[2][4:6] == (8, 2)
    kinds = [dbapi.NUMBER, dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME, dbapi.DATETIME, dbapi.NUMBER, dbapi.NUMBER]
    assert [column[1] for column in found] == kinds
    assert found[0][1] != dbapi.STRING and {dbapi.NUMBER, dbapi.NUMBER} == {dbapi.NUMBER}


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT id FROM items WHERE part = ? AND price > ?", ("bolt", Decimal("1.00"))),
        ("SELECT id FROM items WHERE part = :part AND price > :least", {"part": "bolt", "least": Decimal("1.00")}),
        ("SELECT id FROM items WHERE day = ? AND at = ? AND ok = ?", [DAY, AT, True]),
        ("SELECT id FROM items WHERE part || '?' = ? -- ?\n AND id < 2", ["bolt?"]),
    ],
)
def test_parameters_are_given_by_position_or_by_name(cursor: dbapi.Cursor, sql: str, parameters: Any) -> None:
    assert cursor.execute(sql, parameters).fetchall() == [(1,)]


def test_a_parameter_is_never_parsed_as_sql(cursor: dbapi.Cursor) -> None:
    assert cursor.execute("SELECT id FROM items WHERE part = ?", ["x' OR '1' = '1"]).fetchall() == []


def test_a_cursor_reports_the_version_that_its_select_read(db: fv.Database, cursor: dbapi.Cursor) -> None:
    cursor.execute("SELECT SUM(n) FROM by_part")
    db.insert("items", [(4, "nut", None, None, None, None, None)])
    assert (cursor.version, cursor.fetchall()) == (1, [(3,)])
    assert cursor.execute("SELECT SUM(n) FROM by_part").fetchall() == [(4,)] and cursor.version == 2


def test_commit_and_rollback_without_begin_do_nothing(db: fv.Database) -> None:
    with dbapi.connect(db) as connection:
        connection.commit()
        connection.rollback()
        assert connection.cursor().execute("SELECT COUNT(*) FROM items").fetchall() == [(3,)]
    assert db.version == 1


def test_a_closed_cursor_or_connection_refuses_every_call(db: fv.Database) -> None:
    connection = dbapi.connect(db)
    cursor, other = connection.cursor(), connection.cursor()
    cursor.execute("SELECT 1")
    cursor.close()
    for call in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
            call()
    connection.close()
    connection.close()
    for call in (connection.cursor, connection.commit, connection.rollback, lambda: other.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError, match="the connection is closed"):
            call()
    assert len(db.table("items")) == 3


def test_fetching_rows_before_a_select_is_refused(cursor: dbapi.Cursor) -> None:
    for call in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.fetch_arrow_table):
        with pytest.raises(dbapi.InterfaceError, match="there are no rows to fetch"):
            call()


@pytest.mark.parametrize(
    ("sql", "parameters", "kind", "cause"),
    [
        ("SELECT part FROM itms", None, dbapi.ProgrammingError, fv.CatalogError),
        ("SELECT parts FROM items", None, dbapi.ProgrammingError, fv.SqlError),
        ("SELECT FROM", None, dbapi.ProgrammingError, fv.SqlError),
        ("SELECT ?", [], dbapi.ProgrammingError, fv.SqlError),
        ("SELECT ?", [1j], dbapi.ProgrammingError, fv.ArgumentError),
        ("CREATE TABLE items (id INT)", None, dbapi.ProgrammingError, fv.CatalogError),
        ("CREATE MATERIALIZED VIEW r AS SELECT RAND() AS r FROM items", [], dbapi.NotSupportedError, fv.UnsupportedSql),
    ],
)
def test_a_pep_249_error_keeps_the_freshviews_error_as_its_cause(
    cursor: dbapi.Cursor, sql: str, parameters: Any, kind: type[dbapi.Error], cause: type[fv.FreshviewsError]
) -> None:
    with pytest.raises(kind) as error:
        cursor.execute(sql, parameters)
    assert type(error.value) is kind and isinstance(error.value.cause, cause)
    assert str(error.value) == str(error.value.cause) and error.value.__context__ is None


def test_every_error_of_freshviews_maps_to_a_class_of_pep_249() -> None:
    from freshviews.dbapi.exceptions import error_for

    def refused(rule: str, value: object = 1) -> fv.BatchError:
        return fv.BatchError("refused", table="items", rule=rule, value=value)

    expected = [
        (refused("PRIMARY KEY (id)"), dbapi.IntegrityError),
        (refused("FOREIGN KEY (id) REFERENCES parts (id)"), dbapi.IntegrityError),
        (refused("STRING NOT NULL", None), dbapi.IntegrityError),
        (refused("a deleted row must be stored"), dbapi.IntegrityError),
        (refused("INT NOT NULL", "x"), dbapi.DataError),
        (fv.EvaluationError("overflow", table="items"), dbapi.DataError),
        (fv.OutOfMemory("full"), dbapi.OperationalError),
        (fv.StoreError("disk"), dbapi.OperationalError),
        (fv.QueueFull("queue"), dbapi.OperationalError),
        (fv.SubscriberError("function"), dbapi.OperationalError),
        (fv.PlanError("strategy"), dbapi.ProgrammingError),
        (fv.FreshviewsError("the database is closed"), dbapi.DatabaseError),
    ]
    assert [type(error_for(cause)) for cause, _ in expected] == [kind for _, kind in expected]
    note = fv.StoreError("disk")
    note.add_note("version 3 counts")
    assert error_for(note).__notes__ == ["version 3 counts"]
    assert error_for(error := dbapi.DataError("x")) is error


def test_execute_refuses_a_number_and_executemany_refuses_a_select(cursor: dbapi.Cursor) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="a statement must be a str, not int"):
        cursor.execute(5)  # type: ignore[arg-type]
    with pytest.raises(dbapi.ProgrammingError, match="executemany takes only statements that change rows"):
        cursor.executemany("SELECT ?", [(1,)])


def test_a_connection_closes_the_database_that_it_opened(tmp_path: Path) -> None:
    for version in (0, 0):
        with dbapi.connect(tmp_path / "shop", sync="interval") as connection:
            if not connection.database.tables:
                connection.cursor().execute("CREATE TABLE items (id INT)")
            assert connection.cursor().execute("SELECT COUNT(*) FROM items").fetchall() == [(0,)]
            assert connection.database.version == version
    with pytest.raises(fv.FreshviewsError, match="closed"):
        connection.database.tables  # noqa: B018
    with dbapi.connect(str(tmp_path / "shop")), pytest.raises(dbapi.OperationalError, match="open"):
        dbapi.connect(tmp_path / "shop")


def test_without_a_path_the_database_is_in_memory() -> None:
    for one in (dbapi.connect(), dbapi.connect(":memory:")):
        assert one.cursor().execute("SELECT 1 AS one").fetchall() == [(1,)]
        one.close()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dbapi.connect(5), "connect takes a Database or the path"),
        (lambda: dbapi.connect(fv.Database(), sync="commit"), "the database is open"),
        (lambda: dbapi.connect(wrong=1), "wrong"),
        (lambda: dbapi.connect(threads=0), "threads must be"),
    ],
)
def test_wrong_arguments_of_connect_are_refused(call: Any, message: str) -> None:
    with pytest.raises(dbapi.ProgrammingError, match=message):
        call()


def test_threads_can_share_a_connection(db: fv.Database) -> None:
    connection = dbapi.connect(db)
    found: list[Any] = []

    def read() -> None:
        for _ in range(10):
            found.append(connection.cursor().execute("SELECT part, n FROM by_part ORDER BY part").fetchall())

    threads = [Thread(target=read) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [[("bolt", 2), ("nut", 1)]] * 40


@pytest.mark.parametrize("style", ["%s", "%(qty)s", ":1"])
def test_the_error_of_a_parameter_in_another_style_lists_the_accepted_styles(
    db: fv.Database, style: str
) -> None:
    message = f"{style} is not accepted as a parameter; write ? or :name"
    given: Any = {"qty": 1} if "qty" in style else [1]
    cursor = dbapi.connect(db).cursor()
    select, insert = f"SELECT part FROM items WHERE id > {style}", f"INSERT INTO items (id) VALUES ({style})"
    for kind, call in (
        (fv.SqlError, lambda: db.sql(select, given)),
        (fv.SqlError, lambda: db.execute(insert, given)),
        (dbapi.ProgrammingError, lambda: cursor.execute(select, given)),
        (dbapi.ProgrammingError, lambda: cursor.execute(insert, given)),
        (dbapi.ProgrammingError, lambda: cursor.executemany(insert, [given])),
    ):
        with pytest.raises(kind, match=f"line 1, column [0-9]+: {re.escape(message)}"):
            call()
    with pytest.raises(fv.SqlError, match=r"\$1 is not supported; write \? or :name for a parameter"):
        db.sql("SELECT part FROM items WHERE id > $1", [1])
    with pytest.raises(fv.SqlError, match=r"has 0 parameters \?, but 1 value was passed; write \? or :name"):
        db.sql("SELECT id % s FROM (SELECT id, 2 AS s FROM items)", [1])


def test_pandas_reads_sql(db: fv.Database) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with dbapi.connect(db) as connection, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # It asks for SQLAlchemy.
        found = pandas.read_sql("SELECT part, n FROM by_part WHERE n > ? ORDER BY part", connection, params=[0])
        (part,) = pandas.read_sql("SELECT part, n FROM by_part ORDER BY part", connection, chunksize=5)
    assert found.to_dict("list") == {"part": ["bolt", "nut"], "n": [2, 1]} and part.equals(found)


def test_polars_reads_sql(db: fv.Database) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with dbapi.connect(db) as connection:
        found = polars.read_database("SELECT part, n FROM by_part ORDER BY part", connection)
    assert found.rows() == [("bolt", 2), ("nut", 1)]
