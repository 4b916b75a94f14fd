"""``Database.serve``: clients read and, where they may, change a database that runs in this process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed; pip install 'freshviews[flight]'")
pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'freshviews[sql]'")
pytest.importorskip("adbc_driver_manager", reason="adbc-driver-manager is not installed")
pytest.importorskip("adbc_driver_flightsql", reason="adbc-driver-flightsql is not installed")

import freshviews as fv
from freshviews.wire import FlightServer
from tests.wire.test_flight_sql import connected

pytestmark = pytest.mark.plain_python(only=True)

TOKEN = "a-token-of-the-tests"
SCRIPT = """
CREATE TABLE items (id INT PRIMARY KEY, part STRING, qty INT);
CREATE TABLE seen (id INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part;
CREATE VIEW parts AS SELECT part FROM by_part;
"""


@pytest.fixture(scope="module")
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        made.insert("items", [(1, "bolt", 3), (2, "nut", 5)])
        yield made


@pytest.fixture(scope="module")
def server(db: fv.Database) -> Iterator[FlightServer]:
    with db.serve(token=TOKEN) as made:
        yield made


def ask(server: FlightServer, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connected(server, server.token) as connection, connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def test_a_client_reads_tables_views_and_plain_views(server: FlightServer) -> None:
    assert ask(server, "SELECT part, qty FROM by_part ORDER BY part") == [("bolt", 3), ("nut", 5)]
    assert ask(server, "SELECT MAX(i.qty) FROM items i JOIN parts USING (part) WHERE i.id > ?", 1) == [(5,)]


def test_the_catalog_lists_readable_tables_and_views(server: FlightServer) -> None:
    with connected(server) as connection:
        (catalog,) = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        found = catalog["catalog_db_schemas"][0]["db_schema_tables"]
    assert {one["table_name"]: one["table_type"] for one in found} == {
        "by_part": "VIEW", "items": "TABLE", "parts": "VIEW"
    }  # fmt: skip


def test_a_result_reports_the_version_at_which_it_was_read(db: fv.Database, server: FlightServer) -> None:
    with connected(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 AS one FROM items")
        metadata = cursor.fetch_arrow_table().schema.metadata
    assert metadata == {b"freshviews.version": str(db.version).encode()}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM `/etc/passwd`",
        'SELECT * FROM "/etc/passwd"',
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM glob('/*')",
        "SELECT read_text('/etc/passwd')",
        "SELECT content FROM read_blob('/etc/passwd')",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM sqlite_scan('x.db', 't')",
        "WITH a AS (SELECT * FROM parquet_scan('/tmp/x')) SELECT * FROM a",
        "SELECT 1; COPY (SELECT 1) TO '/tmp/x'",
        "FROM read_json('/etc/passwd')",
        "TABLE `/etc/passwd`",
    ],
)
def test_clients_cannot_read_files_settings_or_variables(server: FlightServer, sql: str) -> None:
    with pytest.raises(Exception) as error:
        ask(server, sql)
    assert "root:" not in str(error.value) and "an error inside" not in str(error.value)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY items TO '/tmp/items.csv'",
        "ATTACH '/tmp/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '1GB'",
        "PRAGMA database_list",
        "EXPORT DATABASE '/tmp/x'",
        "CREATE TABLE t (id INT)",
        "DROP TABLE items",
        "INSERT INTO items VALUES (3, 'x', 1)",
        "-- SELECT\nDELETE FROM items",
        ";",
    ],
)
def test_a_client_of_a_read_only_server_cannot_change_the_database(
    db: fv.Database, server: FlightServer, sql: str
) -> None:
    before = db.version, db.tables
    with pytest.raises(Exception, match=r"read only; only SELECT is accepted; start it with db.serve\(writable=True\)"):
        ask(server, sql)
    assert (db.version, db.tables) == before


def test_a_read_only_server_refuses_hidden_changes(db: fv.Database, server: FlightServer) -> None:
    assert [row[0] for row in ask(server, "SHOW TABLES")] == ["items", "seen"]
    assert len(ask(server, "DESCRIBE items")) == 3 and ask(server, "EXPLAIN SELECT part FROM items")
    drop = "DROP TABLE items"
    for sql in (f"SHOW TABLES; {drop}", f"SELECT 1; {drop}", "WITH a AS (SELECT 1) DELETE FROM items"):
        with pytest.raises(Exception, match=r"line 1|only statement|read only"):
            ask(server, sql)
    assert "items" in db.tables
    with pytest.raises(Exception, match="did you mean SELECT"):
        ask(server, "SELEC part FROM items")


def test_a_client_of_a_writable_server_changes_rows() -> None:
    with fv.Database() as db, db.serve(token=TOKEN, writable=True) as server:
        ask(server, "CREATE TABLE t (id INT); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
        assert db.tables == ("t",) and ask(server, "SELECT n FROM v") == [(0,)]
        with connected(server) as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100)])
            assert (cursor.rowcount, db.version) == (100, 1)
            cursor.executemany("DELETE FROM t WHERE id = ?", [(1,), (2,)])
            assert (cursor.rowcount, db.version) == (2, 2)
            cursor.execute("UPDATE t SET id = id + ? WHERE id > 90", (1000,))
            assert cursor.fetchall() == [(9,)] and db.version == 3
            with pytest.raises(Exception, match="INT accepts int"):
                cursor.execute("INSERT INTO t VALUES (?)", ("x",))
            with pytest.raises(Exception, match="unknown table u"):
                cursor.executescript("DELETE FROM u")
        assert db.version == 3 and ask(server, "SELECT n FROM v") == [(98,)]


def test_readers_see_whole_versions_while_rows_arrive(db: fv.Database) -> None:
    with fv.Database() as busy, busy.serve(token=TOKEN) as server:
        busy.execute("CREATE TABLE moves (account INT, amount INT)")
        busy.execute("CREATE MATERIALIZED VIEW total AS SELECT SUM(amount) AS total, COUNT(*) AS n FROM moves")
        ended: list[bool] = []

        def write() -> None:
            while not ended:
                busy.insert("moves", [(1, 5), (2, -5)])
                time.sleep(0.001)  # Else the table grows faster than it can be read.

        thread = Thread(target=write)
        thread.start()
        try:
            with connected(server) as connection, connection.cursor() as cursor:
                seen = []
                end = time.monotonic() + 20
                while len(set(seen)) < 5 and time.monotonic() < end:
                    cursor.execute("SELECT t.total, t.n, SUM(m.amount) FROM total t, moves m GROUP BY t.total, t.n")
                    for total, n, amount in cursor.fetchall():
                        assert (total, amount) == (0, 0)
                        seen.append(n)
        finally:
            ended.append(True)
            thread.join()
    assert len(set(seen)) == 5 and seen == sorted(seen)


@pytest.mark.filterwarnings("ignore:Cannot disable autocommit")
def test_polars_reads_from_the_uri_of_a_server_that_needs_no_token(db: fv.Database) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with db.serve(token=False) as server:
        uri = f"flightsql://127.0.0.1:{server.port}?transport=tcp"
        found = polars.read_database_uri("SELECT part, qty FROM by_part ORDER BY part", uri, engine="adbc")
    assert found.rows() == [("bolt", 3), ("nut", 5)] and server.token == ""


def test_pandas_reads_a_view_through_an_adbc_connection(server: FlightServer) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with connected(server) as connection:
        found = pandas.read_sql("SELECT part, qty FROM by_part ORDER BY part", connection)
    assert found.to_dict("list") == {"part": ["bolt", "nut"], "qty": [3, 5]}


def test_a_select_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freshviews.wire.SELECT_SECONDS", 1.0)
    with fv.Database() as large, large.serve(token=TOKEN) as server:
        large.execute("CREATE TABLE n (n INT)")
        large.insert("n", [(number,) for number in range(10_000)])
        with pytest.raises(Exception, match=r"the SELECT took more than 1 s and was stopped"):
            ask(server, "SELECT SUM(a.n * b.n % 7 + c.n) FROM n a, n b, n c")
        assert ask(server, "SELECT COUNT(*) FROM n") == [(10_000,)]


def test_a_statement_whose_select_takes_too_long_is_stopped_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("freshviews.wire.LOCKED_SECONDS", 1.0)
    product = "SELECT a.n FROM n a, n b, n c WHERE a.n * b.n % 7 + c.n = -1"
    with fv.Database() as large, large.serve(token=TOKEN, writable=True) as server:
        large.execute("CREATE TABLE n (n INT PRIMARY KEY)")
        large.insert("n", [(number,) for number in range(10_000)])
        for sql in (
            f"WITH a AS (SELECT 1) INSERT INTO n {product}",
            f"DELETE FROM n WHERE n IN ({product})",
            f"INSERT INTO n VALUES (-1); {product}",
        ):
            with pytest.raises(Exception, match=r"the SELECT took more than 1 s and was stopped"):
                ask(server, sql)
        assert ask(server, "SELECT COUNT(*) FROM n") == [(10_001,)] and large.version == 2
        assert ask(server, "INSERT INTO n SELECT -2 AS n") == [(1,)] and large.version == 3


def test_remote_statements_with_a_select_have_the_same_effect_as_local_statements() -> None:
    statements = [
        ("INSERT INTO items SELECT id + 10, part, n FROM more WHERE id > ?", 1),
        ("CREATE TABLE kept AS SELECT part, qty, 'x' AS x, DATE '2026-01-02' AS day FROM by_part",),
        ("MERGE INTO items USING (SELECT id + 1 AS id, part FROM items) q ON items.id = q.id "
         "WHEN MATCHED THEN UPDATE SET part = q.part WHEN NOT MATCHED THEN INSERT (id, part) VALUES (q.id, q.part)",),
        ("UPDATE items SET qty = (SELECT MAX(qty) FROM items) WHERE id IN (SELECT id FROM more WHERE n > ?)", 4),
        ("BEGIN; INSERT INTO kept SELECT part, qty, NULL, NULL FROM by_part; DELETE FROM items WHERE id = 1; COMMIT",),
    ]  # fmt: skip
    with fv.Database() as here, fv.Database() as there, there.serve(token=TOKEN, writable=True) as server:
        for one in (here, there):
            one.execute(SCRIPT + "CREATE VIEW more AS SELECT id, part, qty + 1 AS n FROM items")
            one.insert("items", [(1, "bolt", 3), (2, "nut", 5), (3, "nut", None)])
        for sql, *parameters in statements:
            here.execute(sql, *parameters)
            ask(server, sql, *parameters)
        for name in ("items", "kept", "by_part"):
            rows = [one.sql(f"SELECT * FROM {name} ORDER BY 1, 2").to_arrow() for one in (here, there)]
            assert rows[0].num_rows > 1 and rows[0] == rows[1], name
        with pytest.raises(Exception, match="line 1, column 26: unknown column zz"):
            ask(server, "INSERT INTO items SELECT zz FROM items")


def test_show_describe_and_explain_statements_beyond_500_characters_are_refused(server: FlightServer) -> None:
    for sql in ("EXPLAIN SELECT 1 FROM items" + 100 * ", items", "SHOW TABLES -- " + 500 * "x"):
        with pytest.raises(Exception, match="of at most 500 characters is accepted"):
            ask(server, sql)


def test_a_client_of_a_closed_database_gets_an_error(server: FlightServer) -> None:
    other = fv.Database()
    with other.serve(token=TOKEN) as serving:
        other.close()
        with pytest.raises(Exception, match="the database is closed"):
            ask(serving, "SELECT 1")
        with pytest.raises(fv.FreshviewsError, match="the database is closed"):
            other.serve()


def test_a_server_prints_its_address_and_never_its_token(server: FlightServer) -> None:
    assert repr(server) == f"server of Arrow Flight SQL at grpc://127.0.0.1:{server.port}, read only"


def test_a_server_reads_its_token_from_the_environment_variable(
    db: fv.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRESHVIEWS_TOKEN", "of-the-environment")
    with db.serve() as server:
        assert server.token == "of-the-environment"
    monkeypatch.setenv("FRESHVIEWS_TOKEN", "short")
    with pytest.raises(fv.ArgumentError, match="FRESHVIEWS_TOKEN must be a text of 16 to 1024 ASCII characters"):
        db.serve()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"port": "80"}, "port must be a whole number"),
        ({"port": 70_000}, "port must be a whole number"),
        ({"host": ""}, "host must be an address"),
        ({"host": "unix:/tmp/x"}, "host must be an address"),
        ({"host": "192.0.2.1"}, "cannot listen at"),
        ({"token": "short"}, "the token must be a text"),
        ({"token": 5}, "the token must be a text"),
        ({"token": False, "host": "0.0.0.0"}, "without a token needs an address"),
        ({"writable": 1}, "writable"),
    ],
)
def test_wrong_arguments_of_serve_are_refused(db: fv.Database, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(fv.ArgumentError, match=message):
        db.serve(**wrong)


def test_a_program_exits_even_if_it_leaves_a_server_open(tmp_path: Path) -> None:
    program = "import freshviews as fv; db = fv.Database(); print(db.serve())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and "grpc://127.0.0.1:" in done.stdout
