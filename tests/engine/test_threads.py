"""Views that run in threads have the contents, changes and errors of one thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest

import freshviews as fv
from freshviews.engine import database
from freshviews.engine.commit import threads
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.views.maintained import MaintainedView
from freshviews.expr import host_evaluation
from tests.in_threads import in_threads

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(4)]

TABLES = """
CREATE TABLE r (k BIGINT NOT NULL, g BIGINT, x BIGINT, w STRING);
CREATE TABLE s (k BIGINT NOT NULL, g BIGINT, PRIMARY KEY (k));
"""
VIEWS = """
CREATE MATERIALIZED VIEW by_g AS SELECT g, COUNT(*) AS n, SUM(x) AS x FROM r GROUP BY g;
CREATE MATERIALIZED VIEW joined AS SELECT s.g, r.w, MAX(r.x) AS most, MIN(r.w) AS first FROM r JOIN s USING (k)
    GROUP BY s.g, r.w;
CREATE MATERIALIZED VIEW ends AS SELECT g, MIN(w) AS low, MAX(w) AS high FROM r GROUP BY g;
CREATE MATERIALIZED VIEW quotients AS SELECT k, SUM(100 / (x - 7)) AS q FROM r GROUP BY k;
CREATE MATERIALIZED VIEW upper_words AS SELECT upper(w) AS u, COUNT(*) AS n FROM r WHERE w LIKE 'a%' GROUP BY upper(w);
CREATE MATERIALIZED VIEW words AS SELECT g, upper(MAX(w)) AS u FROM r GROUP BY g;
CREATE MATERIALIZED VIEW counts AS SELECT n, COUNT(*) AS c FROM by_g GROUP BY n;
CREATE MATERIALIZED VIEW squares AS SELECT g, n * n * 4611686018427387904 AS b FROM by_g WHERE g > 5;
CREATE MATERIALIZED VIEW rows_of_both AS SELECT r.w, s.g FROM r JOIN s USING (k);
CREATE MATERIALIZED VIEW without AS SELECT k FROM r EXCEPT SELECT k FROM s;
CREATE MATERIALIZED VIEW firsts AS SELECT w, x FROM r ORDER BY w, x LIMIT 4;
CREATE MATERIALIZED VIEW again TBLPROPERTIES ('freshviews.strategy' = 'recompute')
    AS SELECT DISTINCT reverse(w) AS w FROM r WHERE x > 3;
"""
BY_TRIGGERS = VIEWS[: VIEWS.index("CREATE MATERIALIZED VIEW firsts")]
"""The views that only triggers maintain: the rows are stored beside them."""


@pytest.fixture(autouse=True)
def threads_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with in_threads(monkeypatch, 2):
        yield


def contents(db: fv.Database) -> dict[str, list[Any]]:
    found = {view: sorted(db.view(view), key=repr) for view in db.views}
    return found | {name: sorted(db.table(name), key=repr) for name in db.tables}


def updates(db: fv.Database) -> dict[str, int]:
    return {name: view["updates"] for name, view in db.stats()["views"].items()}


def subscribed(db: fv.Database) -> list[Any]:
    """The list of all changes of the views from now on, in order."""
    seen: list[Any] = []
    for view in db.views:
        db.view(view).subscribe(lambda change: seen.append((change.view, change.version, sorted(change, key=repr))))
    return seen


class Stream:
    """Random batches of both tables. Some are refused: for a key, a delete of a missing row, a division or an
    overflow."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._rows: list[tuple[Any, ...]] = []

    def row(self) -> tuple[Any, ...]:
        draw = self._random
        bad = draw.random() < 0.01
        group = draw.choice([None, *range(6)]) if draw.random() > 0.004 else 9
        word = draw.choice("ab") + draw.choice("xyzé") * draw.randrange(3)
        return (draw.randrange(12), group, 7 if bad else draw.randrange(8, 30), word)

    def batch(self, both: fv.Database) -> Any:
        """A function that commits the next batch to a database."""
        draw = self._random
        inserts = [self.row() for _ in range(draw.randrange(12, 40))]
        deletes = [row for row in self._rows if draw.random() < 0.3]
        inserts, deletes = draw.choice([(inserts, deletes), (inserts, []), ([], deletes)])
        changes = [(*row, 1) for row in inserts] + [(*row, -1) for row in deletes]
        if draw.random() < 0.1:
            changes.append((99, 0, 0, "not there", -1))
        others = [(draw.randrange(12), draw.randrange(5), draw.choice((1, -1))) for _ in range(draw.randrange(3))]

        def commit(db: fv.Database) -> None:
            with db.batch() as batch:
                batch.apply("r", changes)
                if others:
                    batch.apply("s", others)

        try:
            commit(both)
        except fv.FreshviewsError:
            pass
        else:
            for row in deletes:
                self._rows.remove(row)
            self._rows += inserts
        return commit


@pytest.mark.seeds(4)
def test_several_threads_give_the_same_results_as_one_thread(seed: int) -> None:
    one, several, both = fv.Database(threads=1), fv.Database(threads=3), fv.Database(threads=1)
    script = TABLES + (BY_TRIGGERS if seed % 4 < 2 else VIEWS)
    both.execute(script)
    for db in (one, several):
        db.execute(script)
    seen = [subscribed(db) for db in (one, several)] if seed % 2 else [[], []]
    stream, errors = Stream(seed), 0
    for _ in range(25):
        commit = stream.batch(both)
        said = []
        for db in (one, several):
            try:
                commit(db)
                said.append("")
            except fv.FreshviewsError as error:
                said.append(f"{type(error).__name__}: {error}, {getattr(error, 'row', None)}")
        errors += said[0] != ""
        assert said[1] == said[0]
        assert contents(several) == contents(one)
        assert several.version == one.version
    assert seen[0] == seen[1] and bool(seen[0]) == bool(seed % 2)
    assert 1 < errors < 24
    assert updates(several) == updates(one)


TWO = """
CREATE TABLE t (k BIGINT NOT NULL, x BIGINT NOT NULL, w STRING NOT NULL);
CREATE MATERIALIZED VIEW a AS SELECT k, SUM(x) AS s FROM t GROUP BY k;
CREATE MATERIALIZED VIEW b AS SELECT x, COUNT(*) AS n FROM t GROUP BY x;
"""
ROWS = [(i % 7, i % 5, f"w{i % 3}") for i in range(60)]


def two() -> fv.Database:
    db = fv.Database(threads=2)
    db.execute(TWO)
    return db


def test_two_views_process_a_batch_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    db, apply = two(), MaintainedView.apply
    meeting, names = threading.Barrier(2, timeout=180), set()

    def met(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Any:
        names.add(threading.current_thread().name)
        meeting.wait()
        return apply(self, batch, more, widens)

    monkeypatch.setattr(MaintainedView, "apply", met)
    db.insert("t", ROWS)
    assert names == {"freshviews", threading.current_thread().name}
    assert sum(n for _, n in db.view("b")) == len(ROWS)


def test_a_table_stores_a_batch_while_its_views_process_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    db, add, apply = two(), BaseTable.add, MaintainedView.apply
    meeting, names = threading.Barrier(3, timeout=180), []

    def adding(self: BaseTable, batch: Any) -> Any:
        names.append(threading.current_thread().name)
        meeting.wait()
        return add(self, batch)

    def met(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Any:
        meeting.wait()
        return apply(self, batch, more, widens)

    monkeypatch.setattr(BaseTable, "add", adding)
    monkeypatch.setattr(MaintainedView, "apply", met)
    db.insert("t", ROWS)
    db.delete("t", ROWS[:30])
    assert names == ["freshviews"] * 2
    assert sorted(db.table("t")) == sorted(ROWS[30:])
    monkeypatch.setattr(BaseTable, "add", lambda self, batch: names.append(threading.current_thread().name))
    monkeypatch.setattr(MaintainedView, "apply", apply)
    # Triggers take the net effect of inserts and deletes, so they wait for the table.
    db.apply("t", [(*ROWS[0], 1), (*ROWS[1], -1)])
    assert names[2:] == [threading.current_thread().name]


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_of_the_table_is_raised_before_an_error_of_a_view(count: int) -> None:
    db = fv.Database(threads=count)
    db.execute(
        "CREATE TABLE s (k BIGINT PRIMARY KEY, x BIGINT);"
        "CREATE MATERIALIZED VIEW q AS SELECT k % 3 AS g, SUM(10 / (x - 7)) AS q, MAX(x) AS most FROM s GROUP BY k % 3;"
        "CREATE MATERIALIZED VIEW pairs AS SELECT COUNT(*) AS n FROM s a JOIN s b USING (x)"
    )
    rows = [(k, k % 5) for k in range(40)]
    db.insert("s", rows)
    before = contents(db)
    with pytest.raises(fv.EvaluationError, match=r"table s, row 1: view q cannot be computed for .*: division by zero"):
        db.insert("s", [(50, 1), (51, 7)])
    with pytest.raises(fv.BatchError, match=r"table s, row 2, column k: PRIMARY KEY \(k\) would have rows"):
        db.insert("s", [(50, 1), (51, 7), (3, 1)])
    with pytest.raises(fv.BatchError, match=r"table s, row 1: delete of a row that is not there: \(60, 7\)"):
        db.delete("s", [*rows[:1], (60, 7)])
    assert contents(db) == before and db.version == 1
    db.delete("s", rows)
    assert not any(db.view("q")) and list(db.view("pairs")) == [(0,)]


def test_changes_read_in_threads_are_reported_in_the_order_of_the_views() -> None:
    db = two()
    db.execute("CREATE MATERIALIZED VIEW c AS SELECT s, COUNT(*) AS n FROM a GROUP BY s")
    seen = subscribed(db)
    for _ in range(3):
        db.insert("t", ROWS)
    assert [view for view, _, _ in seen] == ["a", "b", "c"] * 3


def test_the_first_error_in_the_order_of_the_views_is_raised() -> None:
    """``later`` fails in the first group of views, ``above`` in the second one."""
    for count in (1, 2):
        db = fv.Database(threads=count)
        db.execute(
            TWO + "CREATE MATERIALIZED VIEW above AS SELECT SUM(10 / (s - 77)) AS q FROM a;"
            "CREATE MATERIALIZED VIEW later AS SELECT SUM(10 / (x - 77)) AS q FROM t;"
            "CREATE MATERIALIZED VIEW last AS SELECT k, SUM(10 / (x - 77)) AS q FROM t GROUP BY k"
        )
        db.insert("t", ROWS)
        before, counted = contents(db), updates(db)
        with pytest.raises(fv.EvaluationError, match=r"view above cannot be computed"):
            db.insert("t", [*ROWS, (100, 77, "w")])
        with pytest.raises(fv.EvaluationError, match=r"table t, row 61: view later cannot be computed"):
            db.insert("t", [*ROWS, (100, 1, "w"), (100, 77, "w")])
        assert contents(db) == before and updates(db) == counted and db.version == 1


def test_a_batch_is_undone_if_a_view_raises_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    db, apply = two(), MaintainedView.apply
    db.insert("t", ROWS)
    before = contents(db)

    def raising(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Any:
        failure = apply(self, batch, more, widens)
        if self.view.name == "b" and batch.multiplicities[0] > 0:
            raise RuntimeError("as no view does")
        return failure

    monkeypatch.setattr(MaintainedView, "apply", raising)
    with pytest.raises(RuntimeError, match="as no view does"):
        db.insert("t", ROWS)
    monkeypatch.undo()
    assert contents(db) == before and db.version == 1


@pytest.mark.parametrize("error", [MemoryError, threads.MemoryRanOut])
def test_the_state_is_unchanged_if_memory_runs_out_in_a_thread(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, apply = two(), MaintainedView.apply
    db.insert("t", ROWS)
    before = contents(db)

    def raising(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Any:
        failure = apply(self, batch, more, widens)
        if self.view.name == "b":
            raise error
        return failure

    monkeypatch.setattr(MaintainedView, "apply", raising)
    with pytest.raises(fv.OutOfMemory):
        db.insert("t", ROWS)
    monkeypatch.undo()
    assert contents(db) == before
    db.insert("t", ROWS)
    assert sum(n for _, n in db.view("b")) == 2 * len(ROWS)


@pytest.mark.parametrize(
    ("error", "raised"), [(threads.MemoryRanOut, fv.OutOfMemory), (KeyboardInterrupt, KeyboardInterrupt)]
)
def test_lost_memory_and_ctrl_c_come_before_the_error_of_a_table(
    error: type[BaseException], raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    db = fv.Database(threads=2)
    db.execute(
        "CREATE TABLE s (k BIGINT PRIMARY KEY, x BIGINT);"
        "CREATE MATERIALIZED VIEW sums AS SELECT k % 3 AS g, SUM(x) AS x, MAX(x) AS most FROM s GROUP BY k % 3"
    )
    db.insert("s", [(k, k % 5) for k in range(40)])
    before, apply = contents(db), MaintainedView.apply

    def losing(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Any:
        monkeypatch.undo()
        if error is KeyboardInterrupt:  # Else no one knows how much of the batch the view has.
            apply(self, batch, more, widens)
        raise error

    monkeypatch.setattr(MaintainedView, "apply", losing)
    with pytest.raises(raised):
        db.insert("s", [(50, 1), (3, 1)])
    assert contents(db) == before and db.version == 1


def test_ctrl_c_while_threads_run_takes_effect_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    db, apply = two(), MaintainedView.apply

    def pressing(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return apply(self, batch, more, widens)

    monkeypatch.setattr(MaintainedView, "apply", pressing)
    with pytest.raises(KeyboardInterrupt):
        db.insert("t", ROWS)
    monkeypatch.undo()
    assert db.version == 1 and sum(n for _, n in db.view("b")) == len(ROWS)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_batch_is_undone_by_ctrl_c_while_strings_are_computed(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = two()
    db.execute(
        "CREATE MATERIALIZED VIEW u AS SELECT reverse(w) AS u, COUNT(*) AS n FROM t GROUP BY reverse(w);"
        "CREATE MATERIALIZED VIEW m AS SELECT k, reverse(MAX(w)) AS u FROM t GROUP BY k"
    )
    db.view("m").subscribe(lambda change: None)
    db.insert("t", ROWS[:1])
    before, code_of, seen = contents(db), host_evaluation.literal_code, []

    def pressing(*arguments: Any) -> int:
        seen.append(0)
        if len(seen) == number:
            signal.raise_signal(signal.SIGINT)
        return code_of(*arguments)

    monkeypatch.setattr(host_evaluation, "literal_code", pressing)
    with pytest.raises(KeyboardInterrupt):
        db.insert("t", [(i, i, f"new{i}") for i in range(30)])
    monkeypatch.undo()
    assert len(seen) >= number
    assert contents(db) == before and db.version == 1


def test_a_child_forked_after_threads_ran_can_commit() -> None:
    running = set(threading.enumerate())
    db = two()
    db.insert("t", ROWS)
    assert not set(threading.enumerate()) - running
    child = os.fork()
    if child == 0:
        try:
            db.insert("t", ROWS)
            os._exit(0 if sum(n for _, n in db.view("b")) == 2 * len(ROWS) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    db.insert("t", ROWS)
    db.close()
    assert not set(threading.enumerate()) - running


def test_a_commit_runs_in_one_thread_if_a_second_thread_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    db = two()
    monkeypatch.setattr(threading.Thread, "start", refused)
    db.insert("t", ROWS)
    assert sum(n for _, n in db.view("b")) == len(ROWS)


def test_rows_older_than_the_window_change_nothing() -> None:
    """It once raised ZeroDivisionError."""
    db = fv.Database()
    db.execute(
        """CREATE TABLE t (d DATE NOT NULL, x BIGINT) TBLPROPERTIES ('freshviews.window' = '2 days on d');
        CREATE MATERIALIZED VIEW a AS SELECT d, SUM(x) AS s FROM t GROUP BY d;
        CREATE MATERIALIZED VIEW b AS SELECT x, COUNT(*) AS n FROM t GROUP BY x"""
    )
    db.insert("t", [(date(2026, 3, 9), 1)])
    assert db.insert("t", [(date(2026, 3, 1), x) for x in range(20)]) == 2
    assert list(db.view("a")) == [(date(2026, 3, 9), 1)] and list(db.view("b")) == [(1, 1)]


def test_a_log_written_with_several_threads_equals_the_log_of_one_thread(tmp_path: Path) -> None:
    logs, found = [], []
    for count in (1, 2):
        folder = tmp_path / str(count)
        with fv.Database(folder, threads=count) as db:
            db.execute(TWO)
            seen = subscribed(db)
            for start in range(0, 60, 20):
                db.insert("t", ROWS[start : start + 20])
            found.append((contents(db), seen))
        logs.append([path.read_bytes() for path in sorted(folder.glob("log-*"))])
        with fv.Database(folder, threads=3 - count) as db:
            assert contents(db) == found[0][0] and db.version == 3
    assert found[0] == found[1]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("few", ["rows", "seconds", "threads"])
def test_views_that_gain_little_from_threads_run_in_one_thread(few: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if few == "rows":
        monkeypatch.setattr(database, "MANY", len(ROWS))
    elif few == "seconds":
        monkeypatch.setattr(threads, "LEAST", 1000.0)
    db = fv.Database(threads=1 if few == "threads" else 2)
    db.execute(TWO)
    monkeypatch.setattr(threads.Threads, "_run_groups", lambda *_: pytest.fail("it runs in threads"))
    db.insert("t", ROWS)
    assert sum(n for _, n in db.view("b")) == len(ROWS)


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2"])
def test_an_invalid_number_of_threads_is_refused(count: Any) -> None:
    with pytest.raises(ValueError, match="threads must be a whole number of 1 or more, not"):
        fv.Database(threads=count)
