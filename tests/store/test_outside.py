"""Events outside an open durable database: a fork, a deleted directory, deleted files."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from tests.store.killing import killed_at, only

pytestmark = pytest.mark.plain_python(only=True)

SCHEMA = "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a"


def opened(path: Path) -> fv.Database:
    db = fv.Database(path)
    db.execute(SCHEMA)
    db.insert("t", [(1,)])
    return db


def in_child(work: Callable[[], Any]) -> str:
    """The result of ``work`` in a forked child: its value, or the error."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = f"{work()}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


CALLS: dict[str, Callable[[fv.Database], Any]] = {
    "insert": lambda db: db.insert("t", [(2,)]),
    "delete": lambda db: db.delete("t", [(1,)]),
    "execute": lambda db: db.execute("DROP MATERIALIZED VIEW v"),
    "table": lambda db: db.table("t"),
    "view": lambda db: db.view("v"),
    "batch": lambda db: db.batch(),
    "snapshot": lambda db: db.snapshot(),
    "sync": lambda db: db.sync(),
    "stats": lambda db: db.stats(),
    "tables": lambda db: db.tables,
}


def test_a_forked_child_cannot_use_the_database(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        view = db.view("v")
        open_batch = db.batch()
        open_batch.insert("t", [(7,)])
        for call in (*CALLS.values(), lambda db: list(view), lambda db: view[1], lambda db: view.subscribe(print)):
            said = in_child(lambda call=call: call(db))
            assert said.startswith("FreshviewsError: ") and f"is open in process {os.getpid()}" in said
            assert "a child forked from it" in said
        assert "forked" in in_child(lambda: open_batch.__exit__(None, None, None))
        assert "open already" in in_child(lambda: fv.Database(tmp_path))
        in_child(db.close)
        assert db.insert("t", [(2,)]) == 2
        assert "open already" in in_child(lambda: fv.Database(tmp_path))
    with fv.Database(tmp_path) as db:
        assert db.version == 2 and sorted(db.table("t")) == [(1,), (2,)]


def _insert_in_child(db: fv.Database, answers: Any) -> None:
    try:
        answers.put(db.insert("t", [(2,)]))
    except fv.FreshviewsError as error:
        answers.put(str(error))


def test_a_child_of_multiprocessing_cannot_use_the_database(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    with opened(tmp_path) as db:
        answers = fork.Queue()
        child = fork.Process(target=_insert_in_child, args=(db, answers))
        child.start()
        assert "a child forked from it" in answers.get(timeout=180)
        child.join()
        assert db.insert("t", [(3,)]) == 2
    with fv.Database(tmp_path) as db:
        assert sorted(db.table("t")) == [(1,), (3,)]


def test_the_parent_may_reopen_the_database_while_a_child_process_lives(tmp_path: Path) -> None:
    db = opened(tmp_path)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        os.read(ours, 1)
        db.close()
        os._exit(0)
    os.close(ours)
    db.close()
    with fv.Database(tmp_path) as db:
        assert db.insert("t", [(2,)]) == 2
        os.close(theirs)
        os.waitpid(child, 0)
        # The end of the child unlocks nothing.
        assert "open already" in in_child(lambda: fv.Database(tmp_path))
        assert db.insert("t", [(3,)]) == 3


def test_a_child_forked_while_the_lock_is_held_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        inside, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            with db._lock:
                inside.set()
                go_on.wait(180)

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait(180)
        assert "a child forked from it" in in_child(lambda: db.insert("t", [(2,)]))
        go_on.set()
        thread.join()
        assert db.insert("t", [(2,)]) == 2


def test_a_database_in_memory_works_in_parent_and_child(tmp_path: Path) -> None:
    db = fv.Database()
    db.execute(SCHEMA)
    assert in_child(lambda: db.insert("t", [(1,), (1,)]) and list(db.view("v"))) == "[(1, 2)]"
    assert list(db.view("v")) == []


WRITES = {name: CALLS[name] for name in ("insert", "execute", "snapshot", "sync")}


@pytest.mark.parametrize("write", WRITES)
def test_writes_to_a_removed_directory_are_refused(tmp_path: Path, write: str) -> None:
    path = tmp_path / "db"
    with opened(path) as db:
        shutil.rmtree(path)
        with pytest.raises(fv.StoreError, match="was removed, moved or replaced while it was open"):
            WRITES[write](db)
        assert list(db.view("v")) == [(1, 1)] and db.version == 1
    assert not path.exists()


def test_a_directory_removed_before_the_first_statement_raises_a_store_error(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        shutil.rmtree(tmp_path / "db")
        with pytest.raises(fv.StoreError, match="was removed"):
            db.execute(SCHEMA)
        assert db.tables == ()


def test_a_replaced_directory_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with opened(path) as db:
        path.rename(tmp_path / "elsewhere")
        with opened(path) as other:
            for write in WRITES.values():
                with pytest.raises(fv.StoreError, match="replaced"):
                    write(db)
            assert other.insert("t", [(5,)]) == 2
    with fv.Database(path) as db:
        assert sorted(db.table("t")) == [(1,), (5,)]
    with fv.Database(tmp_path / "elsewhere") as db:
        assert list(db.table("t")) == [(1,)]


def test_a_relative_path_survives_chdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(Path("db")) as db:
        monkeypatch.chdir("/")
        db.snapshot()
        assert db.insert("t", [(2,)]) == 2
    with fv.Database(tmp_path / "db") as db:
        assert db.version == 2


def test_writing_is_refused_after_the_open_log_file_was_deleted(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        only(tmp_path, "log-*").unlink()
        for write in (WRITES["insert"], WRITES["sync"]):
            with pytest.raises(fv.StoreError, match=r"log-0+1\.fvlog was deleted while the database was open"):
                write(db)
        assert db.version == 1


def test_a_missing_newest_log_file_is_an_error(tmp_path: Path) -> None:
    opened(tmp_path).close()
    log = only(tmp_path, "log-*")
    data = log.read_bytes()
    log.unlink()
    with pytest.raises(fv.StoreError, match=r"log-0+1\.fvlog, the newest file of the log, is missing; restore it"):
        fv.Database(tmp_path)
    log.write_bytes(data)
    with fv.Database(tmp_path) as db:
        assert db.version == 1


@pytest.mark.parametrize("step", ["segment begun", "segment recorded"])
def test_a_missing_second_log_file_is_an_error(tmp_path: Path, step: str) -> None:
    opened(tmp_path).close()
    assert killed_at(step, 1, lambda: fv.Database(tmp_path).snapshot())
    first, newest = sorted(tmp_path.glob("log-*"))
    if step == "segment recorded":
        with fv.Database(tmp_path) as db:
            db.insert("t", [(2,)])
        newest.unlink()
        with pytest.raises(fv.StoreError, match=f"{newest.name}, the newest file of the log, is missing"):
            fv.Database(tmp_path)
        return
    newest.unlink()
    with fv.Database(tmp_path) as db:
        assert db.version == 1 and db.insert("t", [(2,)]) == 2
    assert first.exists()


def test_a_directory_of_an_earlier_format_is_opened(tmp_path: Path) -> None:
    opened(tmp_path).close()
    meta = tmp_path / "meta.json"
    assert '"log": 1' in meta.read_text()
    meta.write_text('{"format": 1}')
    with fv.Database(tmp_path) as db:
        assert db.insert("t", [(2,)]) == 2
        db.snapshot()
    assert '"log": 4' in meta.read_text()
    meta.write_text('{"format": 1, "log": "x"}')
    with pytest.raises(fv.StoreError, match=r"meta\.json, offset 0: the file is corrupt"):
        fv.Database(tmp_path)
