"""``freshviews serve --flight-sql`` over a checkpoint made without Spark."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed; pip install 'freshviews[flight]'")
pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'freshviews[sql]'")
pytest.importorskip("adbc_driver_manager", reason="adbc-driver-manager is not installed")
pytest.importorskip("adbc_driver_flightsql", reason="adbc-driver-flightsql is not installed")

import adbc_driver_flightsql.dbapi as adbc

from freshviews.asking import SelectProcesses
from freshviews.cli.serving.checkpoint import ServedCheckpoint
from freshviews.cli.serving.site import Site
from freshviews.spark.state.stores.addresses import store_of
from freshviews.wire import FlightServer
from tests.cli.sales import commit, sale

TOKEN = "a-token-of-the-tests"


def ask(uri: str, token: str, sql: str, *parameters: Any) -> tuple[list[tuple[Any, ...]], bytes]:
    """The rows of a SELECT and their version."""
    options = {"adbc.flight.sql.authorization_header": f"Bearer {token}"}
    with adbc.connect(uri, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        table = cursor.fetch_arrow_table()
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return rows, table.schema.metadata[b"freshviews.version"]


def _server(site: Site) -> FlightServer:
    processes = SelectProcesses(1)
    return FlightServer(ServedCheckpoint(lambda: site.versions, processes), "127.0.0.1", 0, TOKEN, processes.close)


def test_any_select_over_views_is_answered_at_the_last_version(tmp_path: Path) -> None:
    made = commit(tmp_path, None, [sale(n, f"part {n % 3}") for n in range(10)])
    site = Site("shop.sql", lambda: store_of(tmp_path), lambda: None)
    server = _server(site)
    try:
        sql = ("SELECT b.part, b.n, SUM(k.id) AS ids FROM by_part b JOIN kept k USING (part) WHERE k.id > ? "
               "GROUP BY b.part, b.n ORDER BY b.part")  # fmt: skip
        assert ask(server.uri, TOKEN, sql, 2)[0] == [("part 0", 4, 18), ("part 1", 3, 11), ("part 2", 3, 13)]
        commit(tmp_path, made, [sale(99, "part 9")])
        assert ask(server.uri, TOKEN, "SELECT COUNT(*) FROM by_part") == ([(4,)], b"2")
        options = {"adbc.flight.sql.authorization_header": f"Bearer {TOKEN}"}
        with adbc.connect(server.uri, db_kwargs=options, autocommit=True) as connection:
            (catalog,) = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        found = catalog["catalog_db_schemas"][0]["db_schema_tables"]
        assert {one["table_name"]: one["table_type"] for one in found} == {"by_part": "VIEW", "kept": "VIEW"}
        for sql, message in (
            ("SELECT * FROM sales", "unknown table or view sales"),
            ("SELECT * FROM read_csv('/etc/passwd')", "line 1, column 15"),
            ("DELETE FROM kept", "read only.*change the sources of its pipeline"),
        ):
            with pytest.raises(Exception, match=message):
                ask(server.uri, TOKEN, sql)
    finally:
        server.close()


def test_a_query_before_the_first_version_is_an_error(tmp_path: Path) -> None:
    site = Site("shop.sql", lambda: store_of(tmp_path), lambda: None)
    server = _server(site)
    try:
        with pytest.raises(Exception, match="has no version yet"):
            ask(server.uri, TOKEN, "SELECT 1")
    finally:
        server.close()


def serve(folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "freshviews.cli", "serve", "shop.sql", "--port", "0", *words]
    environment = {**os.environ, **variables}
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.sql").write_text("-- the script of a pipeline\n")
    commit(tmp_path / "shop.checkpoint", None, [sale(1, "bolt")])
    return tmp_path


@pytest.mark.parametrize("given", ["random", "file", "environment"])
def test_the_command_serves_with_a_token_until_it_is_stopped(shop: Path, given: str) -> None:
    (shop / "token").write_text(f"{TOKEN}\n")
    words = ["--token-file", "token"] if given == "file" else []
    variables = {"FRESHVIEWS_TOKEN": TOKEN} if given == "environment" else {}
    process = serve(shop, "--flight-sql", "0", *words, **variables)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"Arrow Flight SQL at (grpc://127\.0\.0\.1:\d+) with the token (of )?(\S+)\n", line)
        assert found is not None, line
        place = {"file": "token", "environment": "FRESHVIEWS_TOKEN"}.get(given)
        assert found[3] == place if place else not found[2]
        token = TOKEN if place else found[3]
        assert TOKEN not in line
        assert ask(found[1], token, "SELECT part, n FROM by_part") == ([("bolt", 1)], b"1")
        with pytest.raises(Exception, match="the token is missing or wrong"):
            ask(found[1], f"{token}x", "SELECT 1")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_wrong_token_file_gives_one_message(shop: Path) -> None:
    (shop / "token").write_text("short")
    for words, message in (
        (("--token-file", "token"), "--token-file is for --flight-sql PORT"),
        (("--flight-sql", "0", "--token-file", "token"), "token must be a text of 16 to 1024 ASCII characters"),
        (("--flight-sql", "0", "--token-file", "absent"), "the token cannot be read from absent: No such file"),
        (("--flight-sql", "0", "--host", "192.0.2.1"), "192.0.2.1"),
    ):
        process = serve(shop, *words)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1 and message in said and "Traceback" not in said, said
