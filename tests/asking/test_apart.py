"""SELECTs of strangers are answered in processes of their own, which have limits of time and of memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.asking import (
    Asked,
    AskedRelation,
    Limits,
    Names,
    Reading,
    Reads,
    SelectProcesses,
    UnknownRelation,
    relations_named,
)
from freshviews.asking.apart import pool
from freshviews.types import INT
from tests.asking.questions import ANSWERS, TABLES, printed
from tests.asking.test_meaning import CATALOG, answer

pytestmark = [
    pytest.mark.plain_python(only=True),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the memory of a process"),
]

MEMORY = 400 << 20
LIMITS = Limits(10.0, 1 << 22)
SHORT = Limits(0.5, 1 << 22)


@pytest.fixture(scope="module")
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute("CREATE TABLE t (a INT, s STRING); CREATE VIEW p AS SELECT a + 1 AS b FROM t")
        made.insert("t", [(number, f"text {number}") for number in range(300)])
        yield made


@pytest.fixture(scope="module")
def processes() -> Iterator[SelectProcesses]:
    made = SelectProcesses(1, MEMORY)
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def ready(processes: SelectProcesses, db: fv.Database) -> SelectProcesses:
    assert ask(processes, db, "SELECT COUNT(*) AS n FROM t") == [{"n": 300}]
    return processes


def ask(processes: SelectProcesses, db: fv.Database, sql: str, limits: Limits = LIMITS) -> list[dict[str, object]]:
    found: list[dict[str, object]] = processes.answer(sql, None, db._asked, limits)[0].to_pylist()
    return found


def child(processes: SelectProcesses) -> pool._Process:
    return processes._idle[0]


def doubled(text: str) -> str:
    """A SELECT over 32 steps, each of which makes a text twice as long or longer."""
    steps = ["w0 AS (SELECT 'abcdefgh' AS s)", *(f"w{n} AS (SELECT {text} AS s FROM w{n - 1})" for n in range(1, 33))]
    return f"WITH {', '.join(steps)} SELECT length(s) AS n FROM w32"


@pytest.mark.parametrize(
    "sql",
    [
        doubled("s || s"),
        doubled("replace(s, 'a', 'abababa')"),
        "SELECT string_agg(x.s, '" + 200 * "a" + "') AS n FROM t x, t y, t z",
        "SELECT x.a FROM t x, t y, t z ORDER BY x.s || y.s || z.s",
    ],
)
def test_a_select_with_texts_beyond_the_memory_is_refused_and_the_next_select_works(
    ready: SelectProcesses, db: fv.Database, sql: str
) -> None:
    with pytest.raises(fv.OutOfMemory, match=r"more than the 400 MB of memory that a SELECT has here; read fewer rows"):
        ask(ready, db, sql, Limits(60.0, 1 << 22))
    assert ask(ready, db, "SELECT MAX(a) AS a FROM t") == [{"a": 299}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE " + " OR ".join(f"a = {number}" for number in range(10_000)),
        "SELECT COUNT(*) AS n FROM t a, t b, t c, t d, t e WHERE a.a + b.a + c.a + d.a + e.a = 7",
    ],
    ids=["translation", "execution"],
)
def test_a_select_that_takes_too_long_to_translate_or_to_run_is_stopped(
    ready: SelectProcesses, db: fv.Database, sql: str
) -> None:
    began = time.monotonic()
    with pytest.raises(fv.FreshviewsError, match=r"took more than 0\.5 s and was stopped; read fewer rows"):
        ask(ready, db, sql, SHORT)
    assert time.monotonic() - began < 10
    assert ask(ready, db, "SELECT MAX(a) AS a FROM t") == [{"a": 299}]


def test_an_answer_with_more_bytes_than_the_limit_is_refused(ready: SelectProcesses, db: fv.Database) -> None:
    with pytest.raises(fv.FreshviewsError, match="the answer has more than 4 MB; select fewer rows or columns"):
        ask(ready, db, "SELECT x.a, y.s FROM t x, t y, t z")


def test_a_process_that_is_killed_is_replaced(ready: SelectProcesses, db: fv.Database) -> None:
    os.kill(child(ready)._process.pid, signal.SIGKILL)
    with suppress(fv.FreshviewsError):  # It may be seen before or after the question is sent.
        ask(ready, db, "SELECT a FROM t")
    assert ask(ready, db, "SELECT MAX(a) AS a FROM t") == [{"a": 299}]


@pytest.mark.parametrize(
    "number, message",
    [
        (signal.SIGKILL, r"killed from outside \(SIGKILL\), by the system where memory ran out or by a user"),
        (signal.SIGTERM, r"ended from outside \(SIGTERM\); ask again"),
    ],
)
def test_a_process_ended_by_a_signal_is_not_reported_as_out_of_memory(
    ready: SelectProcesses, db: fv.Database, number: int, message: str
) -> None:
    ask(ready, db, "SELECT MAX(a) AS a FROM t")
    threading.Timer(0.5, os.kill, (child(ready)._process.pid, number)).start()
    with pytest.raises(fv.FreshviewsError, match=message) as caught:
        ask(ready, db, "SELECT COUNT(*) AS n FROM t a, t b, t c, t d, t e WHERE a.a + b.a + c.a + d.a + e.a = 7")
    assert not isinstance(caught.value, fv.OutOfMemory)
    assert ask(ready, db, "SELECT MAX(a) AS a FROM t") == [{"a": 299}]


def test_errors_keep_their_class_place_and_message(ready: SelectProcesses, db: fv.Database) -> None:
    for sql in ("SELECT a FROM q", "SELECT zz FROM t", "SELEC 1", "SELECT 1 / (a - a) AS x FROM t", "SELECT ? AS x",
                "WITH RECURSIVE w AS (SELECT 1 AS x) SELECT x FROM w"):  # fmt: skip
        with pytest.raises(fv.FreshviewsError) as expected:
            db.sql(sql)
        with pytest.raises(fv.FreshviewsError) as found:
            ask(ready, db, sql)
        assert type(found.value) is type(expected.value) and str(found.value) == str(expected.value), sql
        assert vars(found.value) == vars(expected.value), sql


def test_an_answer_has_the_same_rows_and_types_as_in_this_process(ready: SelectProcesses) -> None:
    class Given:
        def __init__(self, key: str) -> None:
            self.key = key

        def relations(self, names: Names) -> Asked | UnknownRelation:
            return relations_named(names, CATALOG)

        def read(self, names: Names, asked: Asked, reads: Reads) -> Reading:
            return Reading(3, {name: (self.key, TABLES[self.key]) for name, _, _ in reads})

    for table, sql, types, _ in ANSWERS[::12]:
        if types is not None:
            try:
                expected = answer(sql, TABLES[table])
            except fv.FreshviewsError:
                continue
            found, version = ready.answer(sql, None, Given(table), LIMITS)
            assert (found.schema, printed(found), version) == (expected.schema, printed(expected), 3), sql


def test_each_column_is_sent_once_per_version_and_old_columns_are_dropped(
    ready: SelectProcesses, db: fv.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> dict[str, list[str]]:
        return {name: [*one.columns] for name, one in child(ready)._kept.items()}

    sent: list[pa.Table] = []
    write = pool.file_of_tables

    def sending(tables: Sequence[pa.Table]) -> int:
        sent.extend(tables)
        return write(tables)

    monkeypatch.setattr(pool, "file_of_tables", sending)
    db.execute("CREATE TABLE u (a INT, b INT); INSERT INTO u VALUES (1, 2)")
    for _ in range(2):
        assert ask(ready, db, "SELECT a FROM u") == [{"a": 1}]
    assert [one.column_names for one in sent] == [["a"]]
    assert ask(ready, db, "SELECT a + b AS c FROM u") == [{"c": 3}]
    assert [one.column_names for one in sent] == [["a"], ["b"]] and kept()["u"] == ["a", "b"]
    db.insert("u", [(5, 6)])
    assert ask(ready, db, "SELECT SUM(a) AS a FROM u") == [{"a": 6}]
    assert kept()["u"] == ["a"] and len(sent) == 3
    db.execute("DROP TABLE u; CREATE TABLE u (a INT, b INT)")
    db.insert("u", [(7, 8)])
    assert ask(ready, db, "SELECT SUM(a) AS a FROM u") == [{"a": 7}]
    monkeypatch.setattr(pool, "KEPT_BYTES", 10)
    for _ in range(2):
        assert ask(ready, db, "SELECT SUM(x.a + y.a) AS a FROM u x, t y WHERE y.a = 1") == [{"a": 8}]
    assert kept() == {}


def test_relations_that_change_while_a_select_is_translated_are_read_again(ready: SelectProcesses) -> None:
    class Changing:
        def __init__(self) -> None:
            self.version = 0

        def relations(self, names: Names) -> Asked:
            return Asked((AskedRelation("t", tuple((name, INT) for name in "abc"[: self.version + 1])),))

        def read(self, names: Names, asked: Asked, reads: Reads) -> Reading | None:
            self.version += 1
            if self.version < 3:
                return None
            return Reading(self.version, {name: (0, pa.table({"a": [7], "b": [8], "c": [9]})) for name, _, _ in reads})

    found, version = ready.answer("SELECT * FROM t", None, Changing(), LIMITS)
    assert found.column_names == ["a", "b", "c"] and version == 3


def test_a_select_without_relations_is_answered(ready: SelectProcesses, db: fv.Database) -> None:
    assert ask(ready, db, "SELECT 1 AS one") == [{"one": 1}]


def test_names_of_unknown_relations_are_looked_up_again(ready: SelectProcesses, db: fv.Database) -> None:
    with pytest.raises(fv.SqlError, match="unknown table or view later"):
        ask(ready, db, "SELECT a FROM later")
    db.execute("CREATE TABLE later (a INT)")
    assert ask(ready, db, "SELECT a FROM later") == []
    db.execute("DROP TABLE later")
    with pytest.raises(fv.SqlError, match="unknown table or view later"):
        ask(ready, db, "SELECT a FROM later")


def test_an_error_of_the_source_is_raised_and_the_process_keeps_running(
    ready: SelectProcesses, db: fv.Database
) -> None:
    class Failing:
        def relations(self, names: Names) -> Asked:
            return Asked((AskedRelation("t", (("a", INT),)),))

        def read(self, names: Names, asked: Asked, reads: Reads) -> Reading:
            raise OSError("no such file")

    before = child(ready)
    with pytest.raises(OSError, match="no such file"):
        ready.answer("SELECT a FROM t", None, Failing(), LIMITS)
    assert ask(ready, db, "SELECT MAX(a) AS a FROM t") == [{"a": 299}] and child(ready) is before


def test_no_file_stays_open_after_questions(ready: SelectProcesses, db: fv.Database) -> None:
    def opened() -> list[int]:
        here, there = (Path(f"/proc/{one}/fd") for one in ("self", child(ready)._process.pid))
        return [len([*one.iterdir()]) for one in (here, there)]

    ask(ready, db, "SELECT a FROM t")
    before = opened()
    for number in range(20):
        ask(ready, db, f"SELECT a, s, {number} AS n FROM t")
        with pytest.raises(fv.FreshviewsError):
            ask(ready, db, "SELECT zz FROM t")
    # The child closes the file of an answer after it has sent it, so one may still be open at each look.
    assert all(abs(after - then) <= 1 for after, then in zip(opened(), before, strict=True))


def test_a_select_waits_for_a_free_process_until_its_time_limit(ready: SelectProcesses, db: fv.Database) -> None:
    with (
        ready._process(LIMITS),
        pytest.raises(fv.FreshviewsError, match="another SELECT is being answered; try again later"),
    ):
        ask(ready, db, "SELECT a FROM t", Limits(0.1))


PARENT = """
import signal, sys, time
from freshviews.asking import SelectProcesses
processes = SelectProcesses(1)
processes.start()
print(processes._idle[0]._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_process_ends_with_its_parent(sent: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        parent.send_signal(sent)
        parent.wait()
    end = time.monotonic() + 60
    while _runs(process) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(process)


def _runs(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_close_ends_the_processes_and_refuses_further_selects(db: fv.Database) -> None:
    processes = SelectProcesses(1)
    processes.start()
    process = child(processes)
    processes.close()
    processes.close()
    assert process._process.poll() is not None
    with pytest.raises(fv.FreshviewsError, match="the server is closed"):
        ask(processes, db, "SELECT a FROM t")
