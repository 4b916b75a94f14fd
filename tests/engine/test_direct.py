"""The direct way of small batches: the batches that take it, and agreement with the general way."""

from __future__ import annotations

import random
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshviews import Database
from freshviews.engine import database
from freshviews.engine.change import Change
from freshviews.engine.codes.code_batch import CodeBatch, ViewRows
from freshviews.errors import BatchError, CatalogError, EvaluationError, FreshviewsError, OutOfMemory, SubscriberError
from freshviews.kernel import direct as kernel
from freshviews.kernel.memory.mem import PURE_PYTHON

pytestmark = pytest.mark.plain_python

SCRIPT = """CREATE TABLE r (k BIGINT PRIMARY KEY, a INT NOT NULL, b SMALLINT);
CREATE TABLE s (a INT NOT NULL, c DOUBLE);
CREATE TABLE t (a INT NOT NULL, word STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE w (unread STRING, a INT NOT NULL, other DOUBLE NOT NULL, b INT)
TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW groups AS SELECT a, COUNT(*) AS n, SUM(b) AS b FROM r GROUP BY a;
CREATE MATERIALIZED VIEW joined AS SELECT r.k, s.c, t.word FROM r JOIN s ON r.a = s.a LEFT JOIN t ON t.a = s.a;
CREATE MATERIALIZED VIEW edge AS SELECT MAX(c) AS c, COUNT(DISTINCT a) AS n FROM s;
CREATE MATERIALIZED VIEW loops AS SELECT COUNT(*) AS n FROM s x JOIN s y ON x.a = y.a;
CREATE MATERIALIZED VIEW narrow AS SELECT SUM(CAST(100 / (b - 7) AS INT)) AS v FROM r;
CREATE MATERIALIZED VIEW last AS SELECT a, MAX(word) AS word, COUNT(*) AS n FROM t GROUP BY a;
CREATE MATERIALIZED VIEW wide AS SELECT a, COUNT(*) AS n, SUM(b) AS b FROM w GROUP BY a"""
VIEWS = ("groups", "joined", "edge", "loops", "narrow", "last", "wide")


def _general(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every batch take the general way from here on."""
    monkeypatch.setattr(database, "direct_of", lambda *_: None)


def _direct_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the general way refuse every batch from here on."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the general way")

    monkeypatch.setattr(database.Database, "_commit", refuse)


def _contents(db: Database) -> list[Any]:
    """Rows of all views and stored tables in a fixed order, and the counts of updates."""
    rows: list[Any] = [sorted(map(repr, db.view(name))) for name in VIEWS]
    rows += [sorted(map(repr, db.table(name))) for name in ("r", "s")]
    stats = db.stats()
    return [*rows, stats["version"], {name: one["updates"] for name, one in stats["tables"].items()}]


def _step(random: random.Random) -> tuple[str, int, Any]:
    """A table, a sign and rows: good ones, and ones that are refused for each reason."""
    table = random.choice("rstw")
    number = random.choice((0, 1, 1, 1, 2, 3, 20))
    rows: list[Any] = []
    for _ in range(number):
        a = random.randrange(3)
        if table == "r":
            rows.append((random.randrange(6), a, random.choice((None, 1, 2, 7 if random.random() < 0.1 else 3))))
        elif table == "s":
            rows.append((a, random.choice((None, 0.1, 1e300, -2.5))))
        elif table == "t":
            rows.append((a, random.choice((None, "x", "yy", "zß"))))
        else:
            other = random.choice((0.5, 2.0, None if random.random() < 0.1 else 1.0))
            rows.append((random.choice((None, "x")), a, other, random.choice((None, 1, 2))))
    wrong = random.random()
    if rows and wrong < 0.05:
        rows[-1] = random.choice([(1,), ("a", "b"), {"a": 2**40}, None, [1, 2, 3], (None, None, None)])
    elif rows and wrong < 0.2 and all(isinstance(row, tuple) for row in rows):
        names = {"r": ("k", "a", "b"), "s": ("a", "c"), "t": ("a", "word")}
        names["w"] = ("unread", "a", "other", "b")
        named: list[dict[str, Any]] = [dict(zip(names[table], row, strict=True)) for row in rows]
        sign = random.choice((1, -1, 0))
        if sign == 0:
            named = [row | {"_multiplicity": random.choice((1, 1, -1, 2, 0))} for row in named]
        return table, sign, pa.RecordBatch.from_pylist(named)
    sign = random.choice((1, 1, -1, 0))
    if sign == 0:
        signs = (1, 1, 1, -1, -1, 2, -2, None if random.random() < 0.1 else 1, 0 if random.random() < 0.1 else 1)
        rows = [(*row, random.choice(signs)) if isinstance(row, tuple) else row for row in rows]
        # A row is replaced by another one with its key.
        rows += [(*row[:-2], 4, -row[-1]) for row in rows if table == "r" and isinstance(row, tuple) and row[-1] == -1]
    return table, sign, rows


def _note(changes: list[Any], change: Change) -> None:
    changes.append((change.view, change.version, sorted(map(repr, change))))


def _act(db: Database, step: tuple[str, int, Any]) -> object:
    table, sign, rows = step
    try:
        return (db.apply if sign == 0 else db.insert if sign > 0 else db.delete)(table, rows)
    except FreshviewsError as error:
        return type(error), str(error).partition(" would have")[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_direct_way_of_a_batch_agrees_with_the_general_way(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = random.Random(seed)
    steps = [_step(chosen) for _ in range(160)]
    found: list[list[Any]] = []
    for general in (False, True):
        if general:
            _general(monkeypatch)
        results: list[Any] = []
        with Database(tmp_path / str(general) if seed == 2 else None) as db:
            db.execute(SCRIPT)
            changes: list[Any] = []
            for i, step in enumerate(steps):
                if i == 40:
                    for name in VIEWS:
                        db.view(name).subscribe(partial(_note, changes))
                reader = db.view("joined").to_batches() if i % 7 == 0 else None
                results += [_act(db, step), _contents(db) if i % 5 == 0 else None]
                if reader is not None:
                    results.append(sorted(repr(row) for read in reader for row in read.to_pylist()))
                if i == 80:
                    db.execute("DROP VIEW loops; CREATE MATERIALIZED VIEW loops AS SELECT COUNT(*) AS n FROM s")
            results += [changes, _contents(db)]
        if seed == 2:
            with Database(tmp_path / str(general)) as again:
                results.append(_contents(again)[:-1])
        found.append(results)
    for direct, general in zip(*found, strict=True):
        assert direct == general


def test_python_rows_and_record_batches_take_the_direct_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with Database() as db:
        db.execute(SCRIPT)
        changes: list[Change] = []
        db.view("groups").subscribe(changes.append)
        _direct_alone(monkeypatch)
        assert db.insert("r", [(1, 2, 3)]) == 1
        assert db.insert("r", [(k, 2, 3) for k in range(2, 10)]) == 2
        batch = pa.RecordBatch.from_pylist([{"k": 10, "a": 2, "b": 3}])
        assert db.insert("r", batch) == 3
        assert db.delete("r", batch) == 4
        assert db.insert("t", [(1, "new")]) == 5
        assert db.insert("w", [("not read", 1, 0.5, 2), (None, 1, 0.5, 3)]) == 6
        assert db.insert("w", pa.RecordBatch.from_pylist([{"unread": "nor this", "a": 1, "other": 0.5, "b": 4}])) == 7
        assert list(db.view("wide")) == [(1, 3, 9)]
        assert db.apply("r", [(2, 2, 3, -1), (2, 2, 4, 1)]) == 8
        assert db.apply("t", [(1, "new", -1), (1, "newer", 2)]) == 9
        updated = [{"k": 2, "a": 2, "b": 4, "_multiplicity": -1}, {"k": 2, "a": 2, "b": 3, "_multiplicity": 1}]
        assert db.apply("r", pa.RecordBatch.from_pylist(updated)) == 10
        added = [row for change in changes for row, m in change if m > 0]
        assert added == [(2, 1, 3), (2, 9, 27), (2, 10, 30), (2, 9, 27), (2, 9, 28), (2, 9, 27)]
        with pytest.raises(AssertionError, match="the general way"):
            db.insert("r", [(1, 2, 3)])


def test_errors_on_the_direct_way_have_the_messages_of_the_general_way() -> None:
    with Database() as db:
        db.execute(SCRIPT)
        db.insert("r", [(1, 2, 3)])
        for rows, words in (
            ([(1, 5, 5)], r"PRIMARY KEY \(k\) would have"),
            ([(2, 2**40, 5)], "column a"),
            ([(2, 5)], "a row has 3 values"),
        ):
            with pytest.raises(BatchError, match=words):
                db.insert("r", rows)
        with pytest.raises(EvaluationError, match="division by zero"):
            db.insert("r", [(3, 4, 7)])
        with pytest.raises(BatchError, match="not there"):
            db.delete("r", [(9, 9, 9)])
        with pytest.raises(CatalogError, match="unknown table"):
            db.insert("q", [(1,)])
        assert (db.version, list(db.view("groups")), list(db.view("narrow"))) == (1, [(2, 1, 3)], [(-25,)])
        db.view("groups").subscribe(lambda change: 1 // 0)
        with pytest.raises(SubscriberError):
            db.insert("r", [(4, 2, 1)])
        assert db.view("groups")[2] == (2, 2, 4)
    with pytest.raises(FreshviewsError, match="closed"):
        db.insert("r", [(5, 2, 1)])


class _Listed(list[Any]):
    """A list of a type of its own."""


def test_lists_of_a_type_of_their_own_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database()
    db.execute(SCRIPT)
    db.insert("s", _Listed([(1, 0.5)] * 20))
    _direct_alone(monkeypatch)
    db.insert("s", _Listed([(1, 0.5), {"a": 2}]))
    db.delete("s", _Listed([(2, None)]))
    db.apply("s", _Listed([(1, 0.5, -1)]))
    db.upsert("r", _Listed([(1, 2, 3)]))
    db.update("r", _Listed([{"k": 1, "b": 4}]))
    assert sorted(db.table("s")) == [(1, 0.5)] * 20 and sorted(db.table("r")) == [(1, 2, 4)]


@pytest.mark.parametrize("noted", [False, True])
def test_views_are_backfilled_if_memory_runs_out_on_the_direct_way(
    noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database() as db:
        db.execute(SCRIPT)
        db.insert("r", [(1, 2, 3)])
        if noted:
            db.view("groups").subscribe(lambda change: None)
        for step in ("apply_rows", "apply_and_read", "commit_rows"):
            monkeypatch.setattr(db._direct["r"], f"_{step}", lambda plan: kernel.LOST)
        with pytest.raises(OutOfMemory, match="state is as before"):
            db.insert("r", [(2, 2, 3)])
        assert (db.version, list(db.view("groups"))) == (1, [(2, 1, 3)])
        monkeypatch.undo()
        assert db.insert("r", [(2, 2, 3)]) == 2
        db.insert("t", [(1, "x")])
        for step in ("apply_and_read", "commit_rows"):
            monkeypatch.setattr(db._direct["t"], f"_{step}", lambda plan: kernel.LOST)
        with pytest.raises(FreshviewsError, match="trusted"):
            db.insert("t", [(1, "x")])
        with pytest.raises(FreshviewsError, match="open the database again"):
            db.insert("r", [(3, 2, 3)])


@pytest.mark.skipif(PURE_PYTHON, reason="no compiled code reads changes then")
def test_a_change_that_compiled_code_cannot_read_is_read_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    with Database() as db:
        db.execute(SCRIPT)
        db.insert("r", [(1, 2, 3)])
        changes: list[list[object]] = []
        db.view("groups").subscribe(lambda change: changes.append(sorted(change)))
        assert db.insert("r", [(2, 2, 3)]) == 2
        direct = db._direct["r"]
        assert direct is not None and direct._readers
        read = direct._apply_and_read
        monkeypatch.setattr(direct, "_apply_and_read", lambda plan: read(plan) or kernel.UNREAD)
        assert db.insert("r", [(3, 2, 3)]) == 3
        assert list(db.view("groups")) == [(2, 3, 9)]
        assert changes == [[((2, 1, 3), -1), ((2, 2, 6), 1)], [((2, 2, 6), -1), ((2, 3, 9), 1)]]


def test_ctrl_c_never_leaves_a_batch_half_applied() -> None:
    """Signals at random times: the version, the contents and the changes agree afterwards."""
    with Database() as db:
        db.execute(SCRIPT)
        heard: list[int] = []
        stop = db.view("groups").subscribe(lambda change: heard.append(change.version))
        before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        interrupted = 0
        try:
            for k in range(400):
                if k == 200:
                    db.insert("r", [(-1, 0, 1)])
                    # A signal may end the callback as it begins: that change is not reported again.
                    assert heard == sorted(set(heard)) and db.version - len(heard) <= interrupted
                    stop()
                try:
                    signal.setitimer(signal.ITIMER_REAL, random.Random(k).uniform(1e-6, 1e-4))
                    db.insert("r", [(k, k % 5, 1)])
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert interrupted > 0
        assert sum(n for _, n, _ in db.view("groups")) == db.version == len(db.table("r"))


def test_a_batch_made_of_rows_equals_a_batch_made_of_columns() -> None:
    rows = np.array([[1, 2, 1], [3, 4, -1]])
    late, now = ViewRows("v", ("a", "b"), rows), CodeBatch("v", {"a": rows[:, 0], "b": rows[:, 1]}, rows[:, 2])
    assert len(late) == 2
    for one, other in ((late, now), (late.between(1, 2), now.between(1, 2)), (late.negated(), now.negated())):
        assert one.relation == other.relation and one.computed == other.computed == {}
        assert one.multiplicities.tolist() == other.multiplicities.tolist()
        assert {n: c.tolist() for n, c in one.columns.items()} == {n: c.tolist() for n, c in other.columns.items()}
    assert late.columns is late.columns
    with pytest.raises(AttributeError, match="no attribute other"):
        _ = late.other  # type: ignore[attr-defined]
