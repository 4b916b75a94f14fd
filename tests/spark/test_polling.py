"""PostgreSQL tables polled by a column: every row counts once in the views, also after interruptions."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
pytest.importorskip("psycopg", reason="psycopg is not installed; pip install 'psycopg[binary]'")

import psycopg
from py4j.protocol import Py4JError
from pyspark.sql import types as T

from demo.servers.maven import jars
from demo.servers.postgres import Server, postgres, run_in
from demo.shop.packages import POSTGRES
from freshviews.catalog.definitions import ForeignKey, TableDef
from freshviews.errors import SourceError, SqlError
from freshviews.spark import Pipeline
from freshviews.spark.connectors.declarations import with_timeouts
from freshviews.spark.connectors.polls import Poll
from freshviews.spark.definition import TableSpec, ViewSpec, catalog_of
from freshviews.spark.driver import polling, run
from freshviews.spark.io import polled, sources
from freshviews.spark.io.polled import lowered
from freshviews.spark.io.sink_kinds import table_sink
from freshviews.spark.io.sources import Source
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.script import read_script
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from freshviews.stream import Upserts
from tests.spark.faults import Fault, environment
from tests.spark.jars import skipping, spark_jars

SCRIPT = """
CREATE STREAMING TABLE t ({columns}) USING jdbc OPTIONS (url '{url}', dbtable '{table}', {poll});
CREATE MATERIALIZED VIEW v AS SELECT id, qty, COUNT(*) AS n FROM t GROUP BY id, qty;
"""
BY_KEY = "id BIGINT PRIMARY KEY, qty INT"
ROWS = "id BIGINT, qty INT"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with skipping():
        jars(POSTGRES)
        with postgres() as found:
            yield found


class Polled:
    """A table of the database, and the pipeline that polls it."""

    def __init__(self, spark: Any, folder: Path, server: Server, columns: str, poll: str) -> None:
        self.spark, self.folder, self.url = spark, folder, server.address
        self.table = f"p_{time.monotonic_ns()}"
        self.client = server.address.removeprefix("jdbc:").partition("&")[0]
        run_in(self.url, f"CREATE TABLE {self.table} (id BIGINT, qty INT, n BIGSERIAL, at TIMESTAMPTZ DEFAULT now())")
        self.write(columns, poll)

    def write(self, columns: str, poll: str) -> None:
        text = SCRIPT.format(columns=columns, url=self.url, table=self.table, poll=poll)
        (self.folder / "shop.sql").write_text(text)

    def do(self, *statements: str) -> None:
        run_in(self.url, *(statement.replace("$t", self.table) for statement in statements))

    def put(self, *rows: tuple[int, int], **other: object) -> None:
        names = ", ".join(["id", "qty", *other])
        for row in rows:
            self.do(f"INSERT INTO $t ({names}) VALUES ({', '.join(f'{value!r}' for value in (*row, *other.values()))})")

    def pipeline(self) -> Pipeline:
        return Pipeline.from_script(self.spark, self.folder / "shop.sql")

    def once(self) -> list[tuple[int, int, int]]:
        """The view after one poll."""
        self.pipeline().start(once=True)
        return self.view()

    def view(self) -> list[tuple[int, int, int]]:
        return sorted(tuple(row) for row in self.pipeline().view("v").collect())

    @property
    def version(self) -> int:
        return Manifests(store_of(self.folder / "shop.checkpoint")).versions()[-1]


@pytest.mark.spark
def test_new_and_changed_rows_of_a_polled_table_with_a_key_are_upserted(
    spark: Any, tmp_path: Path, server: Server
) -> None:
    t = Polled(spark, tmp_path, server, BY_KEY, "poll 'AT', poll_lag '0 seconds'")
    at = "2026-01-02 03:04:05.000006+00"
    t.put((1, 10), (2, 20), at=at)
    assert t.once() == [(1, 10, 1), (2, 20, 1)]
    # A tie with the highest value so far, and a row that was changed within the same instant.
    t.put((3, 30), at=at)
    t.do(f"UPDATE $t SET qty = 21, at = '{at}' WHERE id = 2")
    assert t.once() == [(1, 10, 1), (2, 21, 1), (3, 30, 1)]
    t.do("UPDATE $t SET qty = 11, at = now() WHERE id = 1", "DELETE FROM $t WHERE id = 3")
    assert t.once() == [(1, 11, 1), (2, 21, 1), (3, 30, 1)]  # a poll does not see deletes
    version = t.version
    assert t.once() and t.version == version  # without new rows there is no version


@pytest.mark.spark
def test_late_rows_without_a_key_are_appended_once(
    spark: Any, tmp_path: Path, server: Server
) -> None:
    t = Polled(spark, tmp_path, server, ROWS, "poll 'n', poll_lag '3'")
    t.put((1, 1), (1, 1))  # equal rows are two rows
    with psycopg.connect(t.client) as late:
        late.execute(f"INSERT INTO {t.table} (id, qty) VALUES (7, 7)")  # has the number 3, and is not committed
        t.put((2, 2), (2, 2))
        assert t.once() == [(1, 1, 2), (2, 2, 2)]
        late.commit()
    assert t.once() == [(1, 1, 2), (2, 2, 2), (7, 7, 1)]
    t.put((1, 1))
    assert t.once() == [(1, 1, 3), (2, 2, 2), (7, 7, 1)]
    # A row that commits later than the lag allows is missed: this is the meaning of the lag.
    t.put((8, 8), n=1)
    assert t.once() == [(1, 1, 3), (2, 2, 2), (7, 7, 1)]


@pytest.mark.spark
def test_equal_rows_with_the_same_polled_value_are_counted(spark: Any, tmp_path: Path, server: Server) -> None:
    t = Polled(spark, tmp_path, server, ROWS, "poll 'n', poll_lag '0'")
    t.put((1, 1), (1, 1), n=5)
    assert t.once() == [(1, 1, 2)]
    t.put((1, 1), (2, 2), n=5)
    assert t.once() == [(1, 1, 3), (2, 2, 1)]
    assert t.once() == [(1, 1, 3), (2, 2, 1)]


@pytest.mark.spark
def test_polled_rows_never_repeat(
    spark: Any, tmp_path: Path, server: Server
) -> None:
    t = Polled(spark, tmp_path, server, ROWS, "poll 'n', poll_lag '1'")
    t.put((1, 1), (2, 2), (3, 3), (4, 4))
    assert t.once() == [(n, n, 1) for n in (1, 2, 3, 4)]
    t.do("DELETE FROM $t WHERE id = 4")
    t.write(f"{ROWS}, at TIMESTAMP", "poll 'n', poll_lag '100'")
    for id in (5, 6):
        t.put((id, id), n=3)
        assert t.once() == [(n, n, 1) for n in range(1, id + 1)]
    t.do("ALTER TABLE $t ALTER COLUMN qty TYPE NUMERIC(9, 1)")
    with pytest.raises(CheckpointError, match="table t was polled by n, with a column qty that was int in"):
        t.once()


@pytest.mark.spark
@pytest.mark.parametrize("step", ["cells done", "manifest in place"])
def test_an_interrupted_poll_is_applied_in_one_version(
    spark: Any, tmp_path: Path, server: Server, step: str, fault: Fault
) -> None:
    t = Polled(spark, tmp_path, server, ROWS, "poll 'n'")
    t.put((1, 1))
    t.once()
    t.put((2, 2), (3, 3))
    fault.plan(step, "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        t.once()
    fault.forget()
    t.put((4, 4))
    assert t.once() == [(n, n, 1) for n in (1, 2, 3, 4)]


@pytest.mark.spark
def test_polling_continues_after_the_database_was_unreachable(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with skipping():
        jars(POSTGRES)
    with skipping(), postgres() as server:
        t = Polled(spark, tmp_path, server, BY_KEY, "poll 'at', poll_every '1 second'")
        query = t.pipeline().start()
        assert query.isActive and query.awaitTermination(0.01) is False

        def until(expected: list[tuple[int, int, int]]) -> None:
            end = time.monotonic() + 60
            while t.view() != expected:
                assert time.monotonic() < end and query.isActive, query.exception()

        t.put((1, 1))
        until([(1, 1, 1)])
        server.stop()
        with pytest.raises(SourceError, match=r"table t cannot be polled: .*refused"):
            query.processAllAvailable()
        until_warned = time.monotonic() + 60
        while not any("the run continues" in record.message for record in caplog.records):
            assert time.monotonic() < until_warned
            time.sleep(0.05)
        server.start()
        t.put((2, 2))
        until([(1, 1, 1), (2, 2, 1)])
        (warned, *_) = [record.message for record in caplog.records if "the run continues" in record.message]
        assert "refused" in warned and "tries again in 1 seconds" in warned and "at org." not in warned
        query.stop()
        assert not query.isActive and "polling" not in str(threading.enumerate())
        # With a stream as well, both make versions.
        (tmp_path / "in").mkdir()
        both = "CREATE STREAMING TABLE s (x INT) USING json OPTIONS (path 'in');"
        both += "CREATE MATERIALIZED VIEW w AS SELECT x FROM s;"
        (tmp_path / "both.sql").write_text((tmp_path / "shop.sql").read_text() + both)
        made = Pipeline.from_script(spark, tmp_path / "both.sql")
        query = made.start()
        (tmp_path / "in" / "1.json").write_text('{"x": 1}')
        t.put((3, 3))
        query.processAllAvailable()
        assert [made.view("v").count(), made.view("w").count()] == [3, 1]
        # A database that cannot be read for too long ends the run.
        monkeypatch.setattr(polling, "AWAY", 0.0)
        server.stop()
        with pytest.raises(SourceError, match="cannot be polled"):
            query.awaitTermination(120)


@pytest.mark.spark
def test_polled_rows_arrive_after_the_rows_to_which_their_foreign_keys_refer(
    spark: Any, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in(server.address, "CREATE TABLE a_parents (id BIGINT)", "CREATE TABLE b_children (id BIGINT, parent BIGINT)")
    (tmp_path / "shop.sql").write_text(f"""
        CREATE STREAMING TABLE a_parents (id BIGINT PRIMARY KEY)
          USING jdbc OPTIONS (url '{server.address}', dbtable 'a_parents', poll 'id');
        CREATE STREAMING TABLE b_children (id BIGINT, parent BIGINT REFERENCES a_parents (id))
          USING jdbc OPTIONS (url '{server.address}', dbtable 'b_children', poll 'id');
        CREATE MATERIALIZED VIEW v AS SELECT b.id FROM b_children b JOIN a_parents a ON a.id = b.parent;
    """)

    def take_and_insert(*given: Any) -> Any:
        found = taken(*given)
        number = len(rows) + 1
        rows.append(number)
        run_in(server.address, f"INSERT INTO a_parents VALUES ({number})")
        run_in(server.address, f"INSERT INTO b_children VALUES ({number}, {number})")
        return found

    rows: list[int] = []
    taken = run.take
    monkeypatch.setattr(run, "take", take_and_insert)
    for version in (1, 2):
        made = Pipeline.from_script(spark, tmp_path / "shop.sql")
        made.start(once=True)
        assert made.view("v").count() == 2 * version - 2


@pytest.mark.spark
def test_a_table_is_not_polled_without_its_parent_table(
    spark: Any, tmp_path: Path, server: Server
) -> None:
    run_in(server.address, *(f"CREATE TABLE c_{name} (id BIGINT)" for name in "abc"))
    text = ""
    for name, refers in (("c_a", ""), ("c_b", "REFERENCES C_A (id)"), ("c_c", "")):
        options = f"url '{server.address}', dbtable '{name}', poll 'id', poll_every '1 hour'"
        text += f"CREATE STREAMING TABLE {name} (id BIGINT PRIMARY KEY {refers}) USING jdbc OPTIONS ({options});"
        text += f"CREATE MATERIALIZED VIEW of_{name} AS SELECT id FROM {name};"
    (tmp_path / "shop.sql").write_text(text)
    made = Pipeline.from_script(spark, tmp_path / "shop.sql")
    query = made.start()
    run_in(server.address, "ALTER TABLE c_a RENAME TO c_gone")
    run_in(server.address, *(f"INSERT INTO c_{name} VALUES (1)" for name in ("gone", "b", "c")))
    with pytest.raises(SourceError, match=r"table c_a cannot be polled: .*c_a"):
        query.processAllAvailable()
    assert query.isActive and [made.view(f"of_c_{name}").count() for name in "abc"] == [0, 0, 1]
    run_in(server.address, "ALTER TABLE c_gone RENAME TO c_a")
    query.processAllAvailable()
    assert [made.view(f"of_c_{name}").count() for name in "abc"] == [1, 1, 1]
    query.stop()


def _source(name: str, every: int, *parents: str) -> Source:
    keys = tuple(ForeignKey(("id",), parent, ("id",)) for parent in parents)
    spec = TableSpec(name, "", poll=Poll("id", every=every))
    return Source(TableDef(name, (), foreign_keys=keys), spec, Upserts(), None, {}, False)  # type: ignore[arg-type]


def test_tables_connected_by_foreign_keys_are_polled_together() -> None:
    a, b, c, d = _source("a", 9, "A"), _source("b", 5, "A"), _source("c", 7, "b"), _source("d", 1)
    assert polling.referring([c, b, a, d], ["a"]) == {"a", "b", "c"}
    assert polling.referring([c, b, a, d], ["b", "d"]) == {"c"}
    groups = polling._tied_groups([a, c, d, b])
    assert sorted(sorted(one.table.name for one in group) for group in groups) == [["a", "b", "c"], ["d"]]
    assert sorted(map(polling._every, groups)) == [1.0, 5.0]


@pytest.mark.spark
def test_a_poll_by_time_is_right_in_a_session_of_another_time_zone(
    spark: Any, tmp_path: Path, server: Server
) -> None:
    t = Polled(spark, tmp_path, server, ROWS, "poll 'at', poll_lag '0 seconds'")
    settings = {"spark.sql.datetime.java8API.enabled": "true", "spark.sql.session.timeZone": "Asia/Tokyo"}
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        for id in (1, 2):
            t.put((id, id), at=f"2026-01-02 03:04:0{id}+00")
            t.pipeline().start(once=True)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert t.view() == [(1, 1, 1), (2, 2, 1)]


@pytest.mark.spark
@pytest.mark.parametrize("otherwise", ["snapshot", "advance"])
def test_a_table_of_snapshots_is_not_polled(
    spark: Any, tmp_path: Path, server: Server, otherwise: str
) -> None:
    t = Polled(spark, tmp_path, server, ROWS, "poll 'n'")
    t.put((1, 1))
    t.once()
    t.put((2, 2))
    if otherwise == "snapshot":
        t.write(ROWS, "changes 'snapshot'")
        assert t.once() == [(1, 1, 1), (2, 2, 1)]
        t.write(ROWS, "poll 'n'")
    else:
        t.pipeline().advance({"t": spark.createDataFrame([(2, 2)], ROWS)})
    with pytest.raises(CheckpointError, match=r"table t was read in another way in .* declare a PRIMARY KEY"):
        t.once()
    assert t.view() == [(1, 1, 1), (2, 2, 1)]


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections, and closes them silently after some seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Timer(30, listening.close)
        ended.start()
        yield f"jdbc:postgresql://127.0.0.1:{listening.getsockname()[1]}/postgres?user=postgres"
        ended.cancel()


@pytest.mark.spark
def test_a_read_from_a_database_that_does_not_answer_ends_with_a_timeout(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    with skipping():
        jars(POSTGRES)
    monkeypatch.setattr(sources, "LOGIN", 1)
    monkeypatch.setattr(table_sink, "SECONDS", 1)
    begun = time.monotonic()
    text = SCRIPT.format(columns=BY_KEY, url=silent, table="t", poll="poll 'id'")
    (tmp_path / "shop.sql").write_text(text)
    with pytest.raises(SourceError, match=r"table t: jdbc cannot be read: .*(connect to the database|timed out)"):
        Pipeline.from_script(spark, tmp_path / "shop.sql").start(once=True)
    found = read_script(text, tmp_path)
    with pytest.raises(Py4JError, match="timed out"):
        table_sink.database_is_read(lambda: spark, found.tables[0], catalog_of(found.script).tables["t"])
    view = ViewSpec("v", "", "jdbc", {"url": silent, "dbtable": "v"})
    with pytest.raises(Py4JError, match="timed out"):
        table_sink.database_is_written(lambda: spark, view)
    assert time.monotonic() - begun < 25


@pytest.mark.parametrize(
    "options, added",
    [
        ({"url": "jdbc:postgresql://a/b"}, {"loginTimeout": "5", "socketTimeout": "7"}),
        ({"url": "jdbc:mysql://a/b"}, {"connectTimeout": "5000", "socketTimeout": "7000"}),
        ({"URL": "jdbc:postgresql://a/b?socketTimeout=0&user=ann"}, {"loginTimeout": "5"}),
        ({"url": "jdbc:mariadb://a/b", "sockettimeout": "1"}, {"connectTimeout": "5000"}),
        ({"url": "jdbc:h2:mem:a"}, {}),
    ],
)
def test_timeouts_set_by_the_user_override_the_timeouts_of_freshviews(
    options: dict[str, str], added: dict[str, str]
) -> None:
    assert with_timeouts(options, 5, 7) == {**options, **added}


@pytest.mark.spark
def test_the_error_names_a_column_that_cannot_be_polled(spark: Any, tmp_path: Path, server: Server) -> None:
    t = Polled(spark, tmp_path, server, ROWS, "poll 'nothing'")
    t.put((1, 1))
    for poll, message in (
        ("poll 'nothing'", "the polled column 'nothing' is not in the source; the source has id, qty, n, at"),
        ("poll 'n', poll_lag '1 hour'", "n is a bigint, so poll_lag must be a number, such as '1000'"),
        ("poll 'at', poll_lag '7'", "at is a timestamp, so poll_lag must be a time, such as '5 minutes'"),
    ):
        t.write(ROWS, poll)
        with pytest.raises(SourceError, match=message):
            t.once()
    t.write(ROWS, "poll 'n'")
    t.once()
    t.do("INSERT INTO $t (id, qty, at) VALUES (2, 2, NULL)")
    t.write(ROWS, "poll 'at'")
    with pytest.raises(CheckpointError, match=r"table t was polled by n in .* declare a PRIMARY KEY"):
        t.once()
    (tmp_path / "shop.sql").rename(tmp_path / "other.sql")
    with pytest.raises(SourceError, match="1 rows have NULL in at, so a poll by at"):
        Pipeline.from_script(spark, tmp_path / "other.sql").start(once=True)
    t.do("UPDATE $t SET at = '0044-03-15 12:00:00+00 BC'")
    with pytest.raises(SourceError, match="all values of the polled column at are before the year 1"):
        Pipeline.from_script(spark, tmp_path / "other.sql").start(once=True)


@pytest.mark.spark
def test_a_large_polled_lag_needs_a_primary_key(
    spark: Any, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polled, "MOST_KNOWN", 2)
    t = Polled(spark, tmp_path, server, ROWS, "poll 'n'")
    t.put((1, 1), (2, 2), (3, 3))
    with pytest.raises(SourceError, match=r"more than 2 rows .from -997 on., .* declare the PRIMARY KEY"):
        t.once()
    t.write(BY_KEY, "poll 'n'")
    assert t.once() == t.once() == [(1, 1, 1), (2, 2, 1), (3, 3, 1)]


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.long("two pipelines in processes of their own")
@pytest.mark.kills
def test_rows_of_the_hour_repeated_in_autumn_are_read_once(
    tmp_path: Path, server: Server
) -> None:
    run_in(server.address, "CREATE TABLE zones (id BIGINT, plain TIMESTAMP, at TIMESTAMPTZ)")
    (tmp_path / "shop.sql").write_text(f"""
        CREATE STREAMING TABLE t (id BIGINT, plain TIMESTAMP, at TIMESTAMP)
          USING jdbc OPTIONS (url '{server.address}', dbtable 'zones', poll 'at', poll_lag '0 seconds');
        CREATE MATERIALIZED VIEW v AS SELECT id, plain, at FROM t;
    """)
    zone = "spark.driver.extraJavaOptions=-Duser.timezone=Europe/Berlin"
    words = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--once"]
    words += ["--conf", "=".join(*spark_jars().items()), "--conf", zone]
    fault = Fault(tmp_path / "fault")
    fault.plan("manifest in place", "kill", "driver")
    for ids, code in ((((1, "00"),), -signal.SIGKILL), (((2, "00"), (3, "01")), 0)):
        for id, hour in ids:
            run_in(server.address, f"INSERT INTO zones VALUES ({id}, '2026-10-25 02:30', '2026-10-25 {hour}:30+00')")
        done = subprocess.run(
            words, cwd=tmp_path, env=environment(fault), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, done.stderr
    store = store_of(tmp_path / "shop.checkpoint")
    rows = contents(store, latest(store), "v").to_pylist()
    assert sorted((row["id"], f"{row['plain']:%d %H:%M}", f"{row['at']:%H:%M}") for row in rows) == [
        (1, "25 02:30", "00:30"),
        (2, "25 02:30", "00:30"),
        (3, "25 02:30", "01:30"),
    ]


@pytest.mark.parametrize(
    "options, poll",
    [
        ("poll 'at'", Poll("at")),
        ("POLL 'at', Poll_Lag '2 hours', poll_every '1 minute'", Poll("at", 7200, None, 60)),
        ("poll 'n', poll_lag '50'", Poll("n", None, 50)),
    ],
)
def test_options_of_a_poll_are_read(tmp_path: Path, options: str, poll: Poll) -> None:
    text = SCRIPT.format(columns=BY_KEY, url="jdbc:h2:mem", table="t", poll=options)
    (table,) = read_script(text, tmp_path).tables
    assert (table.poll, table.changes, table.form_options) == (poll, "upsert", {"order": poll.column})
    assert set(table.options) == {"url", "dbtable"}
    (table,) = read_script(text.replace(BY_KEY, ROWS), tmp_path).tables
    assert (table.changes, table.form_options) == ("append", {})


@pytest.mark.parametrize(
    "options, message",
    [
        ("poll_lag '1'", "table t: poll must name the column whose values grow"),
        ("poll 'n', poll_lag 'long'", "poll_lag must be like '5 minutes' for times, '1000' for numbers, not 'long'"),
        ("poll 'n', poll_every '0 seconds'", "poll_every must be like '10 seconds'"),
        ("poll 'n', changes 'snapshot'", "changes 'snapshot' reads all rows; leave one out"),
        ("poll 'n', pol_lag '1'", "unknown option pol_lag; did you mean poll_lag?"),
    ],
)
def test_wrong_options_of_a_poll_are_refused_at_their_place(tmp_path: Path, options: str, message: str) -> None:
    text = SCRIPT.format(columns=BY_KEY, url="jdbc:h2:mem", table="t", poll=options)
    with pytest.raises(SqlError, match="line 2, column ") as refused:
        read_script(text, tmp_path)
    assert message in str(refused.value)


def test_polling_a_source_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    text = "CREATE STREAMING TABLE t (a INT) USING json OPTIONS (path '.', poll 'a')"
    with pytest.raises(SqlError, match="poll is for a table of a database; json reads its new rows without poll"):
        read_script(text, tmp_path)


@pytest.mark.parametrize(
    "text, kind, lag, expected",
    [
        ("5", T.IntegerType(), 3, "2"),
        ("-32760", T.ShortType(), 1000, "-32768"),
        ("12.50", T.DecimalType(10, 2), 3, "9.50"),
        ("12345678901234567890123456789012345678", T.DecimalType(38, 0), 1, "12345678901234567890123456789012345677"),
        ("12.50", T.DecimalType(4, 2), 1000, "-99.99"),
        ("2026-03-01 00:00:00", T.TimestampNTZType(), 10**17, "0001-01-01 00:00:00"),
        ("2026-03-01", T.DateType(), 10**17, "0001-01-01"),
        ("60000000", T.TimestampType(), 10**17, "0001-01-01 00:00:00+00:00"),
        ("+10000-01-01 00:00:00", T.TimestampNTZType(), 0, "9999-12-31 23:59:59.999999"),
        ("+10000-01-01", T.DateType(), 86400, "9999-12-30"),
        (str(2**62), T.TimestampType(), 1, "9999-12-31 23:59:58.999999+00:00"),
        ("2026-03-01", T.DateType(), 1, "2026-02-28"),
        ("2026-03-01", T.DateType(), 0, "2026-03-01"),
        ("60000000", T.TimestampType(), 61, "1969-12-31 23:59:59+00:00"),
        ("2026-03-01 00:00:00.5", T.TimestampNTZType(), 60, "2026-02-28 23:59:00.500000"),
        ("0001-01-01 00:00:01", T.TimestampNTZType(), 60, "0001-01-01 00:00:00"),
    ],
)
def test_a_poll_begins_at_the_highest_value_minus_the_lag(text: str, kind: T.DataType, lag: int, expected: str) -> None:
    assert lowered(text, kind, lag) == expected
