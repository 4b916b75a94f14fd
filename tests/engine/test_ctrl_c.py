"""Ctrl-C during a change: nothing of it is applied, or the exception says the version in which it is."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes import arrow_plan, encoding
from freshviews.engine.codes.encoding import TableEncoder
from freshviews.engine.commit import commit
from freshviews.engine.commit.data import changes, evaluation, target
from freshviews.engine.commit.data.changes import Changes
from freshviews.engine.durable import durability
from freshviews.engine.relations import Relations
from freshviews.engine.tables import base_table
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.views import folds, texts, view_upkeep
from freshviews.engine.views.maintained import MaintainedView
from freshviews.engine.views.view_block import ViewBlock, ViewBlocks
from freshviews.expr import host_evaluation
from freshviews.kernel.hash import base_store
from freshviews.kernel.machine import beside, compiling
from freshviews.kernel.memory.mem import PURE_PYTHON

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(3)]

SCRIPT = """
CREATE TABLE t (id BIGINT PRIMARY KEY, part STRING, qty INT);
CREATE TABLE s (part STRING, price INT);
CREATE MATERIALIZED VIEW a AS SELECT part, COUNT(*) AS n, SUM(qty) AS q, MAX(qty) AS m FROM t GROUP BY part;
CREATE MATERIALIZED VIEW b AS SELECT t.id, upper(t.part) AS u, s.price FROM t JOIN s USING (part);
CREATE MATERIALIZED VIEW c AS SELECT COUNT(*) AS n FROM a WHERE q > 3;
"""


def rows(first: int, count: int) -> list[tuple[int, str, int]]:
    return [(i, f"p{i % 7}", i % 5) for i in range(first, first + count)]


def database(path: Path | None = None, first: int = 0) -> fv.Database:
    db = fv.Database(path)
    db.execute(SCRIPT)
    db.insert("s", [(f"p{i}", i) for i in range(7)])
    if first:
        db.insert("t", rows(0, first))
    return db


def contents(db: fv.Database) -> dict[str, list[Any]]:
    return {name: sorted(db.view(name)) for name in db.views} | {name: sorted(db.table(name)) for name in db.tables}


@pytest.fixture(autouse=True)
def _small_pieces() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((encoding, "FEW"), (base_table, "PIECE"), (commit, "PIECE"), (encoding, "PIECE")):
            patch.setattr(module, name, 40)
        yield
    signal.signal(signal.SIGINT, before)


def press(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, number: int) -> list[int]:
    """Make the call of a function with this number press Ctrl-C; returns the list of calls."""
    function, calls = getattr(place, name), []

    def pressing(*arguments: Any, **named: Any) -> Any:
        calls.append(len(calls))
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return function(*arguments, **named)

    monkeypatch.setattr(place, name, pressing)
    return calls


def stopped(db: fv.Database, change: Callable[[], Any]) -> None:
    """A change ends by KeyboardInterrupt, and leaves nothing."""
    before, version = contents(db), db.version
    with pytest.raises(KeyboardInterrupt) as caught:
        change()
    assert not isinstance(caught.value, fv.InterruptedAfterCommit)
    assert contents(db) == before and db.version == version
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


PLACES = [(TableEncoder, "_column_piece", 3), (base_store, "add_rows", 2), (MaintainedView, "apply", 2)]
PLACES += [(MaintainedView, "apply", 5)]


@pytest.mark.parametrize("first", [0, 1000])
@pytest.mark.parametrize("place, name, number", PLACES)
def test_an_insert_stopped_by_ctrl_c_applies_no_row(
    place: Any, name: str, number: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views over few rows are backfilled, those over many take the negated batch."""
    db = database(first=first)
    calls = press(monkeypatch, place, name, number)
    stopped(db, lambda: db.insert("t", rows(first, 300)))
    monkeypatch.undo()
    assert len(calls) >= number
    db.insert("t", rows(first, 300))
    assert contents(db) == contents(database(first=first + 300))


def test_a_reader_keeps_its_version_after_ctrl_c(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """The groups of the view are in another order after the backfill."""
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (id INT, q INT); CREATE MATERIALIZED VIEW a AS SELECT q, MAX(id) AS m FROM t GROUP BY q;"
        "CREATE MATERIALIZED VIEW b AS SELECT q, COUNT(*) AS n FROM t GROUP BY q"
    )
    db.insert("t", [(i, i) for i in range(200)])
    db.insert("t", [(1000 + i, i) for i in reversed(range(200))])
    db.delete("t", [(i, i) for i in range(200)])
    reader = db.view("b").to_batches(50)
    read = next(reader).to_pylist()
    press(monkeypatch, MaintainedView, "apply", 8)
    stopped(db, lambda: db.insert("t", [(i, 7) for i in range(400)]))
    for batch in reader:
        read += batch.to_pylist()
    assert sorted((row["q"], row["n"]) for row in read) == [(i, 1) for i in range(200)]


def test_a_backfill_after_ctrl_c_restores_all_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (id INT, x BIGINT); CREATE MATERIALIZED VIEW a AS SELECT SUM(x) AS s FROM t")
    large = 9 * 10**18
    for id, x in enumerate((-large, large, large, -large, 0)):
        db.insert("t", [(id, x)])
    db.delete("t", [(0, -large)])
    press(monkeypatch, MaintainedView, "apply", 3)
    stopped(db, lambda: db.insert("t", [(i, 1) for i in range(400)]))
    monkeypatch.undo()
    db.insert("t", [(5, 1)])
    assert list(db.view("a")) == [(large + 1,)]


def test_ctrl_c_stops_a_union_view_in_its_first_select(monkeypatch: pytest.MonkeyPatch) -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (part STRING); CREATE MATERIALIZED VIEW a AS SELECT upper(part) AS p, COUNT(*) AS n FROM t "
        "GROUP BY upper(part) UNION ALL SELECT reverse(part) AS p, COUNT(*) AS n FROM t GROUP BY reverse(part)"
    )
    db.insert("t", [(f"p{i}",) for i in range(30)])
    calls = press(monkeypatch, ViewBlock, "columns", 2)
    stopped(db, lambda: db.insert("t", [(f"q{i}",) for i in range(30)]))
    assert len(calls) == 2


@pytest.mark.parametrize("form", ["arrow", "dicts", "pandas"])
def test_ctrl_c_stops_the_encoding_of_an_insert(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = database()
    given: Any = pa.table([list(column) for column in zip(*rows(0, 300), strict=True)], ["id", "part", "qty"])
    if form == "dicts":
        given = given.to_pylist()
        press(monkeypatch, TableEncoder, "as_tuple", 100)
    else:
        place: Any = arrow_plan.ingest
        press(monkeypatch, place, "read_and_release", 3)
        given = given.to_pandas() if form == "pandas" else given
    if form != "pandas":  # Strings of pandas 3 take the general way.
        stopped(db, lambda: db.insert("t", given))
    else:
        press(monkeypatch, TableEncoder, "_arrow_column", 1)
        press(monkeypatch, arrow_plan.ArrowPlan, "read", 1)
        stopped(db, lambda: db.insert("t", given))


def test_refused_rows_never_cause_a_wait_for_the_compiler(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database with many rows waits for the compiler, also to be closed."""
    db = fv.Database()
    db.execute("CREATE TABLE t (id INT); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
    with pytest.raises(fv.BatchError):
        db.insert("t", [*((i,) for i in range(20_000)), ("x",)])
    press(monkeypatch, TableEncoder, "_column_piece", 3)
    stopped(db, lambda: db.insert("t", [(i,) for i in range(20_000)]))
    assert db._taken.rows == 0
    db.view("v").subscribe(lambda change: 1 / 0)
    with pytest.raises(fv.SubscriberError):
        db.insert("t", [(1,), (2,)])
    assert db._taken.rows == 2


STATEMENTS = {
    "UPDATE t SET qty = qty + 1 WHERE part > 'p1'": (evaluation, "evaluator_for", 1),
    "UPDATE t SET part = upper(part)": (host_evaluation, "literal_code", 4),
    "DELETE FROM t WHERE qty > 1": (target.Target, "batches", 1),
    "MERGE INTO t USING s ON t.part = s.part WHEN MATCHED THEN DELETE": (changes, "pairs_of", 1),
    "INSERT INTO t SELECT id + 9999, part, qty FROM t": (TableEncoder, "encode", 1),
    "INSERT INTO t VALUES (1, 'x', 2) ON CONFLICT (id) DO NOTHING": (Changes, "of_conflict", 1),
    "BEGIN; DELETE FROM t WHERE id = 1; UPDATE t SET qty = 4; COMMIT": (target, "numbered", 1),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_ctrl_c_before_the_commit_stops_a_statement_that_changes_rows(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "MERGE" in statement or "SELECT" in statement:
        pytest.importorskip("duckdb")
    db = database(first=1000)
    place, name, number = STATEMENTS[statement]
    press(monkeypatch, place, name, number)
    commits = press(monkeypatch, fv.Database, "_commit_parts", 0)
    stopped(db, lambda: db.execute(statement))
    assert not commits
    monkeypatch.undo()
    db.execute(statement)


CHANGES: dict[str, Callable[[fv.Database], Any]] = {
    "upsert": lambda db: db.upsert("t", rows(950, 300)),
    "update": lambda db: db.update("t", [{"id": i, "qty": 9} for i in range(300)]),
    "delete": lambda db: db.delete("t", rows(0, 300)),
    "delete by key": lambda db: db.delete("t", keys=[*range(300)]),
    "apply": lambda db: db.apply("t", [(*row, -1) for row in rows(0, 300)]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_ctrl_c_stops_every_kind_of_change(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = database(first=1000)
    press(monkeypatch, MaintainedView, "apply", 3)
    stopped(db, lambda: CHANGES[change](db))


@pytest.mark.parametrize("change", CHANGES)
def test_ctrl_c_after_a_commit_reports_the_version(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db, other = database(first=1000), database(first=1000)
    press(monkeypatch, BaseTable, "settle", 1)
    with pytest.raises(fv.InterruptedAfterCommit) as late:
        CHANGES[change](db)
    monkeypatch.undo()
    assert late.value.version == db.version == CHANGES[change](other)
    assert late.value.__notes__ == [f"the batch is in: version {db.version}"]
    assert contents(db) == contents(other)


CLOCK = """
CREATE TABLE logins (name STRING, at TIMESTAMP);
CREATE MATERIALIZED VIEW hour AS SELECT name FROM logins WHERE at > now() - INTERVAL '1' HOUR;
CREATE MATERIALIZED VIEW day AS SELECT name FROM logins WHERE at > now() - INTERVAL '1' DAY;
CREATE MATERIALIZED VIEW names AS SELECT name, COUNT(*) AS n FROM hour GROUP BY name;
"""


@pytest.mark.plain_python(only=True)
@pytest.mark.parametrize("number", [1, 3, 5, 6])
def test_ctrl_c_stops_a_clock_advance_or_reports_the_new_version(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops between two of the six parts of the views; Ctrl-C in the last one is too late."""
    start = datetime(2026, 1, 1)
    db = fv.Database()
    db.execute(CLOCK)
    db.insert("logins", [(f"n{i % 7}", start + timedelta(minutes=i)) for i in range(300)])
    db.advance(start)
    later = start + timedelta(hours=3)
    calls = press(monkeypatch, MaintainedView, "apply", number)
    if number < 6:
        stopped(db, lambda: db.advance(later))
        assert db.clock == start and number <= len(calls)
        monkeypatch.undo()
        db.advance(later)
    else:
        with pytest.raises(fv.InterruptedAfterCommit) as late:
            db.advance(later)
        assert late.value.version == db.version
    assert db.clock == later and len(db.view("hour")) == 179 and len(db.view("day")) == 300


def test_ctrl_c_inside_a_subscriber_reports_the_version() -> None:
    db = database()
    db.view("a").subscribe(lambda change: signal.raise_signal(signal.SIGINT))
    for count in (1, 300):
        with pytest.raises(fv.InterruptedAfterCommit) as late:
            db.insert("t", rows(1000 * count, count))
        assert late.value.version == db.version
    assert db.version == 3 and len(db.table("t")) == 301


@pytest.mark.skipif(PURE_PYTHON, reason="one call of machine code makes the version")
def test_ctrl_c_after_an_insert_of_one_row_reports_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE u (a INT); CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM u GROUP BY a")
        db.insert("u", [(1,)])
        direct = db._direct["u"]
        assert direct is not None
        for place, name, rows in ((direct, "_commit_rows", 2), (direct, "put", 2)):
            function = getattr(place, name)

            def late(*arguments: Any, function: Any = function) -> Any:
                found = function(*arguments)
                signal.raise_signal(signal.SIGINT)
                return found

            monkeypatch.setattr(place, name, late)
            with pytest.raises(KeyboardInterrupt) as caught:
                db.insert("u", [(1,)])
            assert isinstance(caught.value, fv.InterruptedAfterCommit) is (name == "_commit_rows")
            monkeypatch.undo()
            assert db.version == rows and list(db.view("v")) == [(1, rows)]


@pytest.mark.parametrize("groups", [1, 60])
@pytest.mark.parametrize("removes", [False, True])
def test_ctrl_c_stops_a_python_aggregate_between_two_groups_or_within_a_group(
    removes: bool, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folds, "FEW", 40)
    draw, left = random.Random(groups), [0]
    db, other = database(first=10), database(first=10)

    def add(state: int, qty: int) -> int:
        left[0] -= 1
        if not left[0]:
            signal.raise_signal(signal.SIGINT)
        return state + qty

    def remove(state: int, qty: int) -> int:
        return state - qty

    for one in (db, other):
        one.aggregate("total", takes=["INT"], returns="BIGINT", zero=int, add=add, output=int, nulls=False,
                      **({"remove": remove} if removes else {}))  # fmt: skip
        one.execute(
            f"CREATE MATERIALIZED VIEW folded AS SELECT id % {groups}, total(qty) AS q FROM t GROUP BY id % {groups};"
            "CREATE MATERIALIZED VIEW twice AS SELECT MAX(q) AS q FROM folded"
        )
    for number in range(3):
        left[0] = draw.randrange(1, 200)
        stopped(db, lambda: db.insert("t", rows(10, 300)))
        assert left[0] > -100, number
    left[0] = 0
    db.insert("t", rows(10, 300))
    other.insert("t", rows(10, 300))
    assert contents(db) == contents(other)


@pytest.mark.parametrize("number", [1, 30])
def test_ctrl_c_stops_text_aggregates_between_two_groups(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    db = database(first=10)
    db.execute(
        "CREATE MATERIALIZED VIEW texts AS SELECT id % 60 AS g, STRING_AGG(part, ',') AS parts FROM t GROUP BY id % 60;"
        "CREATE MATERIALIZED VIEW longest AS SELECT MAX(length(parts)) AS n FROM texts"
    )
    checks = press(monkeypatch, texts, "check_length", number)
    stopped(db, lambda: db.insert("t", rows(10, 300)))
    assert len(checks) < number + 20
    monkeypatch.undo()
    db.insert("t", rows(10, 300))
    assert [n for (n,) in db.view("longest")] == [17]


ONCE = {
    "numbers": "AS SELECT id, ROW_NUMBER() OVER (ORDER BY qty, id) AS n FROM t",
    "recompute": "TBLPROPERTIES ('freshviews.strategy' = 'recompute') AS SELECT qty, SUM(id) AS n FROM t GROUP BY qty",
    "trie_join": "TBLPROPERTIES ('freshviews.strategy' = 'trie_join') "
    "AS SELECT t.qty, SUM(s.price) AS n FROM t JOIN s USING (part) GROUP BY t.qty",
}


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("view", ONCE)
def test_what_is_done_once_per_version_is_taken_back_before_the_next_read_or_change(
    view: str, read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, other = database(first=200), database(first=200)
    for one in (db, other):
        one.execute(
            f"CREATE MATERIALIZED VIEW v {ONCE[view]};"
            "CREATE MATERIALIZED VIEW w AS SELECT n, COUNT(*) AS c FROM v GROUP BY n"
        )
    total, stops = Counter(db.view("v")), 0
    db.view("v").subscribe(lambda change: [total.update({row: times}) for row, times in change])
    for number in range(1, 9):
        before = contents(db) if read else {}
        press(monkeypatch, MaintainedView, "apply", number)
        version = db.version
        with suppress(KeyboardInterrupt):
            db.insert("t", rows(300, 50))
        monkeypatch.undo()
        if db.version == version:
            stops += 1
        else:
            db.delete("t", rows(300, 50))
        assert not read or contents(db) == before
        db.insert("t", rows(400 + number, 1))
        other.insert("t", rows(400 + number, 1))
    assert stops > 3 and contents(db) == contents(other)
    assert +total == Counter(db.view("v"))


def test_ctrl_c_stops_a_recomputation_between_two_pieces_of_the_stored_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_upkeep, "PIECE", 40)
    db = database(first=400)
    db.execute(f"CREATE MATERIALIZED VIEW v {ONCE['recompute']}")
    before = contents(db)
    calls = press(monkeypatch, ViewBlocks, "run", 6)
    with pytest.raises(KeyboardInterrupt):
        db.insert("t", rows(400, 10))
    assert len(calls) <= 6 + 3, "taking back runs the other three views, and no stored row"
    assert contents(db) == before


def test_ctrl_c_stops_numbers_before_they_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    db = fv.Database()
    db.execute(f"CREATE TABLE t (id INT, qty INT); CREATE MATERIALIZED VIEW v {ONCE['numbers']}")
    db.insert("t", [(i, i % 5) for i in range(400)])
    press(monkeypatch, ViewBlocks, "run", 3)
    settled = press(monkeypatch, BlockState, "settle", 0)
    with pytest.raises(KeyboardInterrupt):
        db.insert("t", [(i, 7) for i in range(400, 520)])
    assert not settled
    assert sorted(db.view("v"))[-1] == (399, 400)


@pytest.mark.parametrize("number", [1, 3])
def test_ctrl_c_stops_text_aggregates_between_two_pieces_of_their_rows(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "FEW", 40)
    db = database(first=10)
    db.execute(
        "CREATE MATERIALIZED VIEW texts AS SELECT id % 60 AS g, STRING_AGG(part, ',') AS parts FROM t GROUP BY id % 60;"
        "CREATE MATERIALIZED VIEW longest AS SELECT MAX(length(parts)) AS n FROM texts"
    )
    pieces = press(monkeypatch, texts.Texts, "_texts_in", number)
    stopped(db, lambda: db.insert("t", rows(10, 300)))
    monkeypatch.undo()
    assert number <= len(pieces) <= number + 2
    db.insert("t", rows(10, 300))
    assert [n for (n,) in db.view("longest")] == [17]


def test_ctrl_c_drops_a_batch_or_reports_the_new_version(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database(first=10)

    def both(batch: fv.Batch) -> None:
        with batch:
            batch.insert("t", rows(10, 300))
            batch.upsert("t", rows(0, 10))
            batch.insert("s", [("p1", 5)])

    batch = db.batch()
    press(monkeypatch, MaintainedView, "apply", 4)
    stopped(db, lambda: both(batch))
    assert batch.version is None
    monkeypatch.undo()
    press(monkeypatch, BaseTable, "settle", 1)
    batch = db.batch()
    with pytest.raises(fv.InterruptedAfterCommit) as late:
        both(batch)
    assert late.value.version == batch.version == db.version == 3


@pytest.mark.parametrize("place, name, count", [(Changes, "of_rows", 1), (BaseTable, "settle", 2)])
def test_ctrl_c_in_a_script_reports_the_finished_statements(
    place: Any, name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = database()
    insert = "INSERT INTO s VALUES ('x', 1)"
    press(monkeypatch, place, name, 1)
    if place is Changes:
        stopped(db, lambda: db.execute(f"SELECT 1; {insert}; {insert}"))
    monkeypatch.undo()
    press(monkeypatch, place, name, 2)
    with pytest.raises(fv.InterruptedAfterCommit) as late:
        db.execute(f"{insert}; {insert}; {insert}")
    assert late.value.version == db.version == 1 + count and len(db.table("s")) == 7 + count
    said = f"statement{'s 1 to' if count > 1 else ''} {count} of the script took effect"
    assert said in "\n".join(late.value.__notes__)


@pytest.mark.parametrize("method", ["apply_in_order", "apply_net"])
def test_ctrl_c_between_pieces_reports_the_applied_updates(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = database()
    changes = getattr(db, method)("t", [(*row, 1) for row in rows(0, 20)], "c")
    press(monkeypatch, BaseTable, "settle", 5)
    with pytest.raises(fv.InterruptedAfterCommit) as late:
        list(changes)
    done = len(db.table("t"))
    assert late.value.version == db.version == 1 + 5 and 0 < done < 20
    assert late.value.__notes__[1] == f"{done} of 20 updates are in, and nothing of the others"


def test_ctrl_c_in_a_backfill_defines_no_relation(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database(first=300)
    before = contents(db)
    for place, name in ((MaintainedView, "load"), (MaintainedView, "prepare"), (MaintainedView, "joined")):
        press(monkeypatch, place, name, 1)
        with pytest.raises(KeyboardInterrupt) as caught:
            db.execute("CREATE TABLE w (a INT); CREATE MATERIALIZED VIEW d AS SELECT qty, id FROM t WHERE qty > 1")
        assert not isinstance(caught.value, fv.InterruptedAfterCommit)
        monkeypatch.undo()
        assert contents(db) == before


def test_ctrl_c_after_a_script_keeps_its_definitions(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    db = database(first=10)
    press(monkeypatch, Relations, "connect", 1)
    with pytest.raises(fv.InterruptedAfterCommit) as late:
        db.execute("CREATE TABLE w (a INT)")
    assert late.value.__notes__ == ["the definitions are in effect: version 2"] and "w" in db.tables


def test_after_ctrl_c_a_table_made_from_a_frame_is_complete_or_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database()
    frame = pa.table({"a": [*range(300)], "b": ["x"] * 300})
    for place, name in ((Relations, "connect"), (arrow_plan.ArrowPlan, "read"), (BaseTable, "add")):
        press(monkeypatch, place, name, 1)
        stopped(db, lambda: db.create_table("w", frame))
        monkeypatch.undo()
    press(monkeypatch, BaseTable, "settle", 1)
    with pytest.raises(fv.InterruptedAfterCommit) as late:
        db.create_table("w", frame)
    assert late.value.version == db.version == 2 and len(db.table("w")) == 300


def test_a_directory_opens_after_ctrl_c_in_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = database(tmp_path, first=300)
    before = contents(db)
    press(monkeypatch, MaintainedView, "write_image", 1)
    stopped(db, db.snapshot)
    # A snapshot that a commit writes is put off, as the version counts.
    monkeypatch.undo()
    press(monkeypatch, durability, "write_strings", 1)
    monkeypatch.setattr(type(db._directory), "snapshot_due", property(lambda directory: True))
    with pytest.raises(fv.InterruptedAfterCommit) as late:
        db.insert("t", rows(300, 30))
    assert late.value.version == db.version
    monkeypatch.undo()
    assert not list(tmp_path.glob("snapshot-*"))
    after = contents(db)
    db.close()
    with fv.Database(tmp_path) as again:
        assert contents(again) == after != before


def test_ctrl_c_before_a_durable_batch_is_logged_drops_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = database(tmp_path, first=300)
    before = contents(db)
    press(monkeypatch, commit, "record_of", 1)
    stopped(db, lambda: db.insert("t", rows(300, 300)))
    db.close()
    with fv.Database(tmp_path) as again:
        assert contents(again) == before


def test_ctrl_c_stops_a_thread_that_waits_for_the_version() -> None:
    db = database()
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with db.at_one_version():
            held.set()
            go_on.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        db.insert("t", rows(0, 300))
    assert not go_on.is_set()
    go_on.set()
    thread.join()
    timer.join()
    assert db.version == 1 and not len(db.table("t"))


def test_random_signals_leave_all_rows_or_none(tmp_path: Path) -> None:
    size, draw = (400 if PURE_PYTHON else 20_000), random.Random(5)
    db, total, stops = database(tmp_path), 0, 0
    start = time.perf_counter()
    db.insert("t", rows(0, size))
    spent, total = time.perf_counter() - start, size
    for number in range(12 if PURE_PYTHON else 30):
        given, version = rows(total, size), db.version
        timer = threading.Timer(draw.uniform(0, 1.2 * spent), os.kill, (os.getpid(), signal.SIGINT))
        said = False
        try:
            try:
                timer.start()
                db.insert("t", given) if number % 2 else db.insert("t", iter(given))
                said = True
            finally:
                timer.join()
                time.sleep(0.001)
        except fv.InterruptedAfterCommit as late:
            assert late.version == version + 1 or said
            said = True
        except KeyboardInterrupt:
            stops += not said
        total += size * said
        assert db.version == version + said
        assert len(db.table("t")) == total == sum(n for _, n, _, _ in db.view("a")) == len(db.view("b"))
    db.close()
    with fv.Database(tmp_path) as again:
        assert len(again.table("t")) == total == sum(n for _, n, _, _ in again.view("a"))


@pytest.mark.skipif(PURE_PYTHON, reason="nothing is compiled")
def test_ctrl_c_ends_a_wait_for_the_compiler(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    from freshviews.engine.interrupts import Uninterrupted

    waits = beside._Compiler()
    order: Any = (object(), "w")
    monkeypatch.setattr(waits, "order_first", lambda wanted: waits._ordered.__setitem__(order, beside._Order(0)))
    monkeypatch.setattr(waits, "process", object())
    looks: list[float] = []

    def answer(seconds: float) -> bool:
        looks.append(seconds)
        if len(looks) == 2:
            signal.raise_signal(signal.SIGINT)
        return False

    monkeypatch.setattr(waits, "_answers", answer)
    monkeypatch.setattr(waits, "_load_compiled", lambda: waits._ordered.clear() if len(looks) == 6 else None)
    for unchanged in (True, False):
        looks.clear()
        with pytest.raises(KeyboardInterrupt), Uninterrupted(unchanged=unchanged):
            waits.wait_for(*order)
        assert len(looks) == (2 if unchanged else 6)


def test_an_awaited_function_interrupts_unneeded_compilations(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    begun: list[str] = []
    answered: list[int] = []

    class Worker:
        def __init__(self, others: Any) -> None:
            self.order: Any = None
            self.wanted = False

        def begin(self, order: Any) -> None:
            self.order, self.wanted = order, True
            begun.append(order[2])

        def end(self) -> None:
            ended.append(begun[-1])

    monkeypatch.setattr(compiling, "_Worker", Worker)
    monkeypatch.setattr(compiling, "_answer", answered.append)
    monkeypatch.setattr(compiling, "MOST", 1)
    server = compiling._Server(0)
    server._orders = compiling.Orders(answered.append, server._drop)

    def send(what: str, *about: Any) -> None:
        server._orders._note(what, [*about])
        server._hand_out()

    generated = "freshviews_generated_0"
    send("order", 0, generated, "on_0", "w")
    send("order", 1, generated, "on_1", "w")
    send("cancel", 0)
    assert begun == ["on_0"] and not ended
    send("order", 2, generated, "on_0", "w")
    send("first", 2)
    assert answered == [0] and not ended, "it is ordered again"
    send("cancel", 2)
    send("first", 1)
    assert begun == ["on_0", "on_1"] and ended == ["on_0"] and answered == [0, 2]
