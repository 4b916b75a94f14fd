"""``freshviews check --connect``: reachable sources and sinks, and unreachable ones with their causes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from demo.servers.maven import jars
from demo.servers.postgres import postgres, run_in
from demo.shop.packages import POSTGRES
from freshviews.cli.main import UNREACHED, app
from freshviews.spark.connectors.declarations import place_of
from freshviews.spark.connectors.secrets import server_of, without_secrets
from freshviews.spark.io.reach import tried
from freshviews.spark.io.sink_kinds import message_sink
from freshviews.spark.script import read_script
from tests.spark.jars import skipping
from tests.spark.topics import Topic

NOBODY = "127.0.0.1:1"
"""Nothing listens on this port."""
FOLDERS = """
CREATE STREAMING TABLE items (part STRING, qty INT) USING json OPTIONS (path '{there}', bad_rows '{aside}');
CREATE MATERIALIZED VIEW parts USING parquet OPTIONS (path '{out}') AS SELECT part FROM items;
"""
SERVERS = """
CREATE STREAMING TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT) USING kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', subscribe '{topic}', values 'json', changes 'upsert');
CREATE TABLE custs (id BIGINT PRIMARY KEY, city STRING) USING jdbc OPTIONS (url '{database}', dbtable '{table}');
CREATE TABLE few (id BIGINT) USING jdbc OPTIONS (url '{database}', query 'SELECT id FROM {table}', poll '{column}');
CREATE MATERIALIZED VIEW by_city USING jdbc OPTIONS (url '{database}', dbtable 'by_city', output 'upsert')
  AS SELECT city, COUNT(*) AS n FROM orders JOIN custs ON cust = id GROUP BY city;
CREATE MATERIALIZED VIEW lines USING kafka OPTIONS (kafka.bootstrap.servers '{broker}', topic 'lines')
  AS SELECT city FROM custs;
"""


def check(folder: Path, *words: str, **places: str) -> tuple[int, list[str], str]:
    """The exit code, the warnings, and the last line of ``freshviews check``."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "shop.sql").write_text(FOLDERS.format_map({"there": "in", "aside": "bad", "out": "out"} | places))
    done = CliRunner().invoke(app, ["check", str(folder / "shop.sql"), "--connect", *words])
    return done.exit_code, done.stderr.splitlines(), done.stdout.splitlines()[-1]


def test_the_check_leaves_nothing_in_usable_folders(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text("{}")
    where = str(tmp_path / "new" / "ckpt")
    code, warnings, last = check(tmp_path, "--checkpoint", where)
    assert (code, warnings) == (0, []) and last.endswith("shop.sql: 4 of 4 places can be reached")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "shop.sql"]


def test_the_check_names_each_unusable_folder_and_the_cause(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, warnings, last = check(
        tmp_path, "--checkpoint", str(tmp_path / "file" / "ckpt"), there="nowhere", out="file/out", aside="/proc/bad"
    )
    assert code == UNREACHED and last.endswith("0 of 4 places can be reached")
    shown = [line.replace(str(tmp_path), "...") for line in warnings]
    assert shown[:3] == [
        "warning: table items: json .../nowhere cannot be reached: No such file or directory",
        "warning: bad rows of table items: /proc/bad cannot be reached: No such file or directory",
        "warning: view parts: parquet .../file/out cannot be reached: Not a directory",
    ]
    assert shown[3].startswith("warning: the checkpoint: .../file/ckpt cannot be reached: ")


def test_an_error_in_the_script_fails_the_check(tmp_path: Path) -> None:
    code, errors, _ = check(tmp_path, there="in', changes 'upsert")
    assert code == 1 and "changes by key need a PRIMARY KEY" in errors[0]


@pytest.mark.spark
def test_the_check_names_unreachable_servers(
    spark: Any, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with skipping():
        jars(POSTGRES)
    topic = Topic(kafka).name
    secret = "s3cret%21"

    def found(**places: str) -> dict[str, str | None]:
        given = {"broker": kafka, "topic": topic, "database": address, "table": "custs", "column": "id"} | places
        definition = read_script(SERVERS.format_map(given), tmp_path)
        return {f"{one.name}: {one.place}": one.cause for one in tried(lambda: spark, definition)}

    with skipping(), postgres() as database:
        run_in(database.address, "CREATE TABLE custs (id BIGINT, city TEXT)")
        address = f"{database.address}&password={secret}"
        server = database.address.partition("//")[2].partition("?")[0]
        assert found() == {
            f"table orders: kafka {topic} at {kafka}": None,
            f"table custs: jdbc custs at {server}": None,
            f"table few: jdbc SELECT id FROM custs at {server}": None,
            f"view by_city: jdbc by_city at {server}": None,
            f"view lines: kafka lines at {kafka}": None,
        }
        assert "the polled column 'ids' is not in the source" in str(list(found(column="ids").values())[2])
        orders, custs, _, by_city, lines = found(topic="nothing", table="nowhere").values()
        assert by_city is lines is None
        assert "This server does not host this topic-partition" in str(orders)
        assert 'relation "nowhere" does not exist' in str(custs)
    monkeypatch.setattr(message_sink, "SECONDS", 2)
    begun = time.monotonic()
    orders, custs, _, by_city, lines = found(broker=NOBODY).values()
    assert time.monotonic() - begun < 30
    assert orders == lines == "no broker answers within 2 seconds"
    assert "refused" in str(custs) and "refused" in str(by_city)
    wrong = found(broker=kafka, database=address.replace("127.0.0.1", f"ann:{secret}@127.0.0.1 "))
    assert list(wrong.values())[1:3] != [None, None] and "s3cret" not in str(wrong)


@pytest.mark.parametrize(
    "url, server",
    [
        ("jdbc:postgresql://db:5432/shop?user=ann&password=x", "db:5432/shop"),
        ("jdbc:mysql://ann:x@db/shop", "db/shop"),
        ("jdbc:sqlserver://db:1433;user=ann;password=x", "db:1433"),
        ("jdbc:oracle:thin:ann/x@db:1521/shop", "<url>"),
        ("jdbc:mysql://(host=db,user=ann,password=x)/shop", "<url>"),
    ],
)
def test_no_message_of_the_check_shows_a_password(url: str, server: str) -> None:
    assert server_of(url) == server
    jaas = 'module required username="ann" password="open";'
    options = {"url": url.replace("x", "s3%20cret"), "ssl.Password": "hunter2", "dbtable": "t", "jaas.config": jaas}
    text = f"{options['url']} t, s3%20cret, s3 cret, hunter2 and open"
    assert without_secrets(text, options) == "<url> t, <password>, <password>, <ssl.Password> and <password>"


@pytest.mark.parametrize(
    "options, text, shown",
    [
        ({"url": "jdbc:mysql://ann:se/c?r;et@db/shop"}, "ann, se/c?r;et", "ann, <password>"),
        ({"path": "s3a://KEY:SEC/RET@in/x"}, "no s3a://KEY:SEC/RET@in/x", "no s3a://<user>@in/x"),
        ({"path": "s3a://KEY:SECRETS@in/x"}, "no SECRETS for s3a://in", "no <password> for s3a://in"),
        ({"path": "abfss://in@mine.core/x"}, "no abfss://in@mine.core/x", "no abfss://in@mine.core/x"),
        ({"to": "h:1/?password=ab,cd&x=1"}, "password=ab,cd and ab,cd", "password=<password> and <password>"),
        ({"to": "h:1/?password=abc,def&x=1"}, "abc,def in x=1", "<password> in x=1"),
        ({"to": "//h:5432/db?password=12345@6789"}, "no //h:5432/db?password=12345@6789", "no //<user>@"),
        ({"to": "mongodb://a:pw12@h,b:pw34@h2/x"}, "no pw12 and no pw34", "no <password> and no <password>"),
        ({"es.net.http.auth.pass": "hunter2"}, "hunter2", "<es.net.http.auth.pass>"),
        ({"pwd": "hunter2"}, "hunter2", "<pwd>"),
        ({"connection.uri": "mongodb://db"}, "no mongodb://db", "no <connection.uri>"),
        ({"password": "p"}, "a p of postgresql: password=p", "a p of postgresql: password=<password>"),
        ({"password": "a", "token": "word"}, "password 'a', word", "password '<password>', <token>"),
    ],
)
def test_only_the_secrets_in_a_text_are_hidden(options: dict[str, str], text: str, shown: str) -> None:
    assert without_secrets(text, options) == shown


@pytest.mark.parametrize("password", ["se/cret", "se?cret", "se;cret", "se@cret", "1/?x=@"])
def test_no_part_of_an_unusual_password_is_shown(password: str) -> None:
    assert server_of(f"jdbc:mysql://root:{password}@h/db") == "<url>"
    assert server_of(f"jdbc:mysql://h/db?password={password}@") == "<url>"


def test_the_shown_address_hides_the_user() -> None:
    assert place_of("json", {"path": "s3a://KEY:SEC/RET@bucket/in"}) == "json s3a://<user>@bucket/in"
