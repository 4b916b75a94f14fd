"""Ctrl-C ends a long evaluation of strings within a commit, and the batch is refused as a whole."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.expr import host_evaluation
from freshviews.kernel.codes import ingest
from freshviews.kernel.memory.mem import PURE_PYTHON

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(3)]

SCRIPT = """
CREATE TABLE r (a BIGINT, w STRING);
CREATE TABLE s (w STRING, c BIGINT);
CREATE MATERIALIZED VIEW joined AS SELECT r.a, upper(r.w) AS u, s.c FROM r JOIN s ON r.w = s.w WHERE r.w LIKE '%1%';
CREATE MATERIALIZED VIEW grouped AS SELECT lower(w) AS l, COUNT(*) AS n FROM r GROUP BY lower(w);
CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM grouped WHERE l RLIKE '1$';
CREATE MATERIALIZED VIEW again TBLPROPERTIES ('freshviews.strategy' = 'recompute')
    AS SELECT DISTINCT reverse(w) AS w FROM r WHERE w RLIKE '[02468]$';
CREATE MATERIALIZED VIEW without AS SELECT upper(w) AS w FROM r EXCEPT SELECT w FROM s;
"""

R = [(i, f"w{i}") for i in range(40)]
S = [(f"w{i}", i) for i in range(0, 60, 2)]


def contents(db: fv.Database) -> dict[str, list[Any]]:
    found = {view: sorted(db.view(view)) for view in db.views}
    return found | {name: sorted(db.table(name)) for name in db.tables}


def batch(db: fv.Database) -> None:
    with db.batch() as both:
        both.insert("r", [(i, f"w{i}") for i in range(40, 80)])
        both.delete("r", R[:5])
        both.insert("s", [("w41", 1), ("w43", 2)])


def interrupting(monkeypatch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Make the evaluation of the host operation with this number press Ctrl-C; returns the list of evaluations."""
    code_of, seen = host_evaluation.literal_code, []

    def pressing(*arguments: Any) -> int:
        seen.append(len(seen))
        if len(seen) == number:
            signal.raise_signal(signal.SIGINT)
        return code_of(*arguments)

    monkeypatch.setattr(host_evaluation, "literal_code", pressing)
    return seen


def database() -> fv.Database:
    db = fv.Database()
    db.execute(SCRIPT)
    db.view("above").subscribe(lambda change: None)
    db.view("again").subscribe(lambda change: None)
    db.insert("r", R)
    db.insert("s", S)
    return db


@pytest.mark.parametrize("number", [1, 30, 70, 90, 110])
def test_a_commit_is_undone_if_its_evaluation_is_interrupted(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, other = database(), database()
    before, version = contents(db), db.version
    seen = interrupting(monkeypatch, number)
    with pytest.raises(KeyboardInterrupt):
        batch(db)
    monkeypatch.undo()
    # The later evaluations undid the batch.
    assert len(seen) <= number + 80
    assert contents(db) == before and db.version == version
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    batch(db)
    batch(other)
    assert contents(db) == contents(other)


def test_signal_handlers_are_called_after_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()
    version = db.version
    called: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        called.append(db.version)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        interrupting(monkeypatch, 30)
        batch(db)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert called == [version + 1] == [db.version]


@pytest.mark.parametrize("kind", ["BIGINT", "STRING"])
def test_a_signal_handler_that_inserts_leaves_the_running_batch_unchanged(kind: str) -> None:
    def value(i: int) -> Any:
        return i if kind == "BIGINT" else f"text {i}"

    own: list[Any] = []
    handled: list[Any] = []
    # A handler may interrupt itself.
    numbers = count(1_000_000)

    def insert(*_: object) -> None:
        row = (value(next(numbers)),)
        try:
            db.insert("t", [row])
        except fv.FreshviewsError as error:
            assert "in the middle of a change" in str(error)
        else:
            handled.append(row)

    with fv.Database() as db:
        db.execute(f"CREATE TABLE t (a {kind})")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a")
        db.insert("t", [(value(0),)])
        before = signal.signal(signal.SIGALRM, insert)
        try:
            signal.setitimer(signal.ITIMER_REAL, *((0.01, 0.01) if PURE_PYTHON else (0.0005, 0.0004)))
            while len(handled) < (20 if PURE_PYTHON else 1000):
                # Batches of more than 16 rows take the general way.
                rows = [(value(len(own) + i + 1),) for i in range(20 if len(own) % 50 == 0 else 1)]
                db.insert("t", rows)
                own += rows
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        expected = sorted([(value(0),), *own, *handled])
        assert sorted(db.table("t")) == expected
        assert sorted(db.view("v")) == [(a, 1) for (a,) in expected]
        assert db.insert("t", [(value(2_000_000),)]) == db.version


@pytest.mark.skipif(PURE_PYTHON, reason="a signal comes after the whole batch then")
@pytest.mark.parametrize("signed", [False, True])
def test_a_signal_handler_may_read_record_batches(
    signed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All batches of a schema once shared the structure through which Arrow passes rows, so it was released twice."""
    read = ingest.read_and_release
    waiting: list[int] = []

    def interrupted(*arguments: Any) -> Any:
        if waiting:
            signal.raise_signal(waiting.pop())
        return read(*arguments)

    monkeypatch.setattr(ingest, "read_and_release", interrupted)
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a BIGINT, b BIGINT)")
        db.execute("CREATE MATERIALIZED VIEW sums AS SELECT a, COUNT(*) AS n, SUM(b) AS b FROM t GROUP BY a")

        def put(a: int) -> None:
            rows = {"a": [a] * 3, "b": [10 * a] * 3} | ({"_multiplicity": [1, 1, 1]} if signed else {})
            (db.apply if signed else db.insert)("t", pa.RecordBatch.from_pydict(rows))

        before = signal.signal(signal.SIGUSR1, lambda *_: put(7))
        try:
            for a in range(20):
                waiting.append(signal.SIGUSR1)
                put(a)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert db.version == 40 and len(waiting) == 0
        assert db.view("sums")[7] == (7, 63, 4410) and db.view("sums")[19] == (19, 3, 570)


@pytest.mark.parametrize("rows", [1, 30])
def test_a_signal_handler_that_raises_leaves_no_partial_batch(rows: int) -> None:
    def late(*_: object) -> None:
        raise TimeoutError

    raised = 0
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a BIGINT, s STRING)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT s, COUNT(*) AS n FROM t GROUP BY s")
        given = [(i, f"s{i % 5}") for i in range(rows)]
        start = time.perf_counter()
        db.insert("t", given)
        spent = 1.5 * (time.perf_counter() - start)
        before = signal.signal(signal.SIGALRM, late)
        draw = random.Random(rows)
        try:
            for _ in range(60 if PURE_PYTHON else 1000):
                start = time.perf_counter()
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, spent))
                    db.insert("t", given)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except TimeoutError:
                    raised += 1
                else:
                    spent = min(spent, 1.5 * (time.perf_counter() - start))
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert raised > 0
        assert db.version * rows == db.table("t").to_arrow().num_rows == sum(n for _, n in db.view("v"))


def test_a_signal_handler_closes_the_database_after_the_commit(tmp_path: Path) -> None:
    def end(*_: object) -> None:
        db.close()
        raise SystemExit

    for k in range(3 if PURE_PYTHON else 20):
        db = fv.Database(tmp_path / str(k) if k % 2 else None)
        db.execute("CREATE TABLE t (a BIGINT, s STRING)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT s, COUNT(*) AS n FROM t GROUP BY s")
        before = signal.signal(signal.SIGTERM, end)
        made = 0
        timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM))
        try:
            with pytest.raises(SystemExit):
                timer.start()
                while True:
                    made = db.insert("t", [(i, f"s{made}") for i in range(1 + 20 * (k % 3))])
        finally:
            timer.join()
            signal.signal(signal.SIGTERM, before)
        with pytest.raises(fv.FreshviewsError, match="closed"):
            db.insert("t", [(1, "one")])
        if k % 2:
            with fv.Database(tmp_path / str(k)) as again:
                assert made <= again.version <= made + 1


def test_a_signal_handler_cannot_insert_during_a_backfill() -> None:
    taken: list[int] = []
    refused: list[str] = []

    def insert(*_: object) -> None:
        try:
            taken.append(db.insert("t", [(-1, "x")]))
        except fv.FreshviewsError as error:
            refused.append(str(error))

    rows = 300 if PURE_PYTHON else 100_000
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a BIGINT, s STRING)")
        db.insert("t", [(i, f"s{i % 50}") for i in range(rows)])
        before = signal.signal(signal.SIGALRM, insert)
        try:
            for k in range(2):
                signal.setitimer(signal.ITIMER_REAL, 0.001, 0.002)
                db.execute(f"CREATE MATERIALIZED VIEW v{k} AS SELECT s, COUNT(*) AS n, {k} AS k FROM t GROUP BY s")
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert refused and all("in the middle of a change" in one for one in refused)
        for k in range(2):
            assert sum(n for _, n, _ in db.view(f"v{k}")) == rows + len(taken)
