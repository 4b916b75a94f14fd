"""The traceback of a user's error ends at the user's call; that of a bug has all frames."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.engine.codes.encoding import TableEncoder
from tests.engine.shop import shop

pytestmark = pytest.mark.plain_python(only=True)

CALLS: dict[str, Callable[[fv.Database], Any]] = {
    "execute": lambda db: db.execute("CREATE MATERIALIZED VIEW v AS SELECT no_column FROM items"),
    "rule": lambda db: db.rule("few(p) <- items(p)."),
    "create_table": lambda db: db.create_table("items", pa.table({"a": [1]})),
    "insert": lambda db: db.insert("items", [(1, 2, 3)]),
    "insert many": lambda db: db.insert("items", [(1, "bolt", "x")] * 100),
    "upsert": lambda db: db.upsert("items", [(1, 2, 3)]),
    "update": lambda db: db.update("items", [(1, 2, 3)]),
    "sql": lambda db: db.sql("SELECT no_column FROM items"),
    "get": lambda db: db.view("by_part").get(5),
    "scan": lambda db: db.view("by_part").scan(5),
    "where": lambda db: db.view("by_part").where(no_column=5),
    "key of a table": lambda db: db.table("items")[5],
    "in a table": lambda db: 5 in db.table("items"),
    "delete": lambda db: db.delete("items", [(1, "screw", 1)]),
    "apply": lambda db: db.apply("items", [(1, "screw", 1)]),
    "batch": lambda db: in_a_batch(db),
    "view": lambda db: db.view("by_parts"),
    "table": lambda db: db.table("by_part"),
    "subscribe": lambda db: db.view("by_part").subscribe(5),  # type: ignore[arg-type]
    "head": lambda db: db.view("by_part").head(-1),
    "explain": lambda db: db.view("by_part").explain(5),  # type: ignore[arg-type]
    "snapshot": lambda db: db.snapshot(),
    "Database": lambda db: fv.Database(threads=0),
}


@pytest.mark.parametrize("key", ["screw", 5])
def test_the_key_error_of_a_missing_key_ends_at_the_call(key: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRESHVIEWS_TRACEBACK", raising=False)
    with shop() as db, pytest.raises(KeyError) as raised:
        db.view("by_part")[key]
    assert len(raised.traceback) == 1


def in_a_batch(db: fv.Database) -> None:
    with db.batch() as batch:
        batch.insert("items", [(1, 2, 3)])


def frames_of(call: Callable[[fv.Database], Any], error: type[Exception] = fv.FreshviewsError) -> list[str]:
    """The files of the traceback of an error, without this function."""
    with shop() as db:
        try:
            call(db)
        except error as caught:
            found = [frame.filename for frame in traceback.extract_tb(caught.__traceback__)]
            printed = "".join(traceback.format_exception(caught))
            shows_context = caught.__context__ is not None and not caught.__suppress_context__
            assert ("During handling" in printed) == shows_context
            return found[1:]
    raise AssertionError("no error was raised")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_traceback_of_an_error_of_the_user_ends_at_the_call(
    call: Callable[[fv.Database], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FRESHVIEWS_TRACEBACK", raising=False)
    assert set(frames_of(call)) == {__file__}
    monkeypatch.setenv("FRESHVIEWS_TRACEBACK", "1")
    assert any("freshviews/" in name and name != __file__ for name in frames_of(call))


def test_the_traceback_of_a_subscriber_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRESHVIEWS_TRACEBACK", raising=False)
    with shop() as db:
        db.view("by_part").subscribe(lambda change: 1 // 0)
        with pytest.raises(fv.SubscriberError) as raised:
            db.insert("items", [(1, "bolt", 1)])
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert traceback.extract_tb(raised.value.__cause__.__traceback__)[-1].filename == __file__


def test_the_traceback_of_a_bug_has_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRESHVIEWS_TRACEBACK", raising=False)

    def broken(self: TableEncoder, rows: Any, sign: int) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(TableEncoder, "encode", broken)
    with fv.Database() as db:
        db.execute("CREATE TABLE t (x INT)")
        with pytest.raises(RuntimeError) as raised:
            db.insert("t", [(i,) for i in range(1000)])
    assert len(raised.traceback) > 2
