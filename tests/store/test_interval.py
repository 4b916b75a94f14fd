"""A database with ``sync="interval"``: after a killed process, a lost machine, and a failed sync."""

from __future__ import annotations

import errno
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.store import crash_points as steps
from tests.store.killing import killed_at, only
from tests.store.lost_machine import Disk
from tests.store.test_outside import in_child

pytestmark = pytest.mark.plain_python(only=True)

SCHEMA = "CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(a) AS s FROM t"
NEVER = 3600.0
BROKEN = OSError(errno.EIO, "Input/output error")


def opened(path: Path, seconds: float = NEVER, **options: Any) -> fv.Database:
    db = fv.Database(path, sync="interval", sync_seconds=seconds, **options)
    if not db.tables:
        db.execute(SCHEMA)
    return db


def check(db: fv.Database, version: int | None = None) -> int:
    """Check that version n has the rows 1 to n, and so has the view; returns the version."""
    n = db.version
    assert version is None or n == version
    assert sorted(db.table("t")) == [(i,) for i in range(1, n + 1)]
    assert list(db.view("v")) == [(n, n * (n + 1) // 2 if n else None)]
    return n


def put(db: fv.Database, rows: int) -> None:
    for _ in range(rows):
        db.insert("t", [(db.version + 1,)])


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 180
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize("seconds", [NEVER, 0.001])
@pytest.mark.parametrize("seed", range(2))
def test_a_process_killed_at_any_moment_loses_no_version(tmp_path: Path, seconds: float, seed: int) -> None:
    last = 0
    for _ in range(3):
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with opened(tmp_path, seconds, snapshot_bytes=20_000) as db:
                    while True:
                        put(db, 1)
                        os.write(theirs, db.version.to_bytes(8, "little"))
            finally:
                os._exit(1)
        os.close(theirs)
        reported = os.read(ours, 8)
        time.sleep(random.Random(f"{seed} {last}").random() / 10)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(ours, "rb") as pipe:
            reported += pipe.read()
        with fv.Database(tmp_path) as db:
            found = check(db)
            assert found - int.from_bytes(reported[-8:], "little") in (0, 1)
            assert found > last
            last = found


@pytest.mark.parametrize("step", steps.COMMIT)
def test_a_database_killed_at_any_step_of_a_commit_reopens_consistently(tmp_path: Path, step: str) -> None:
    opened(tmp_path).close()
    assert killed_at(step, 3, lambda: put(opened(tmp_path), 5))
    with fv.Database(tmp_path) as db:
        written = step in ("record written", "record synced", "version visible")
        check(db, 3 if written else 2)
        assert (db.recovery.dropped is not None) == (step == "record half written")


def test_a_lost_machine_loses_only_unsynced_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    seen: list[int] = []
    with opened(tmp_path / "db") as db:
        db.view("v").subscribe(lambda change: seen.append(change.version))
        put(db, 5)
        db.sync()
        put(db, 4)
        # Applied, readable and reported at once.
        check(db, 9)
        assert seen == list(range(1, 10))
        with fv.Database(disk.lose_machine(tmp_path / "db", tmp_path / "after")) as lost:
            check(lost, 5)
            put(lost, 1)
    with fv.Database(tmp_path / "db") as db:
        check(db, 9)
    with fv.Database(disk.lose_machine(tmp_path / "db", tmp_path / "closed")) as db:
        check(db, 9)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_may_reach_the_disk_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The file system may keep a record and lose those before it, back to the last sync."""
    disk, order = Disk(monkeypatch), random.Random(seed)
    with opened(tmp_path / "db") as db:
        for turn in range(6):
            put(db, order.randrange(1, 6))
            if turn % 2:
                db.sync()
                synced = db.version
                put(db, order.randrange(6))
                copy = disk.lose_machine(tmp_path / "db", tmp_path / f"copy {turn}", order)
                with fv.Database(copy) as lost:
                    assert synced <= check(lost) <= db.version
                    put(lost, 2)
                with fv.Database(copy) as again:
                    check(again, lost.version)


def test_damage_before_the_last_sync_is_reported_as_corruption(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        log = only(tmp_path, "log-*")
        put(db, 3)
        start = log.stat().st_size
        put(db, 3)
        end = log.stat().st_size
        db.sync()
        put(db, 2)
    data = log.read_bytes()
    for place in range(start, end, 7):
        broken = bytearray(data)
        broken[place] ^= 1
        log.write_bytes(broken)
        with pytest.raises(fv.StoreError, match=r"offset \d+: the record is corrupt, but valid records follow"):
            fv.Database(tmp_path)
    log.write_bytes(data)
    with fv.Database(tmp_path) as db:
        check(db, 8)


def test_each_commit_is_synced_to_disk_within_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    with opened(tmp_path / "db", 0.2) as db:
        log = only(tmp_path / "db", "log-*")
        put(db, 3)
        wait_until(lambda: disk.size(log) == log.stat().st_size)
        # A thread waits for the next sync only if there is something to sync.
        assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        began, committed = time.monotonic(), dict[int, float]()
        while time.monotonic() < began + 1:
            put(db, 1)
            committed[db.version] = time.monotonic()
            time.sleep(0.01)
        assert len([thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]) <= 1
        now = time.monotonic()
        copy = disk.lose_machine(tmp_path / "db", tmp_path / "after")
        with fv.Database(copy) as lost:
            # A second of tolerance for a busy machine.
            assert check(lost) >= max((v for v, at in committed.items() if at < now - 1.2), default=3)


@pytest.mark.parametrize("step", steps.SNAPSHOT)
def test_a_machine_lost_in_a_snapshot_leaves_a_consistent_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    disk = Disk(monkeypatch)
    copies: list[Path] = []

    def lose(name: str) -> None:
        if name == step and not copies:
            copies.append(disk.lose_machine(tmp_path / "db", tmp_path / "after"))

    with opened(tmp_path / "db") as db:
        put(db, 4)
        monkeypatch.setattr(steps, "hook", lose)
        db.snapshot()
        put(db, 2)
        monkeypatch.setattr(steps, "hook", None)
        with fv.Database(copies[0]) as lost:
            check(lost, 4)
            put(lost, 1)
        with fv.Database(disk.lose_machine(tmp_path / "db", tmp_path / "later")) as lost:
            check(lost, 4)
    with fv.Database(tmp_path / "db") as db:
        check(db, 6)


def test_the_log_of_a_killed_process_is_synced_when_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert killed_at("version visible", 5, lambda: put(opened(tmp_path / "db"), 5))
    disk = Disk(monkeypatch)
    with fv.Database(tmp_path / "db") as db:
        check(db, 5)
        with fv.Database(disk.lose_machine(tmp_path / "db", tmp_path / "after")) as lost:
            check(lost, 5)


def test_the_next_commit_reports_a_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(monkeypatch)
    with opened(tmp_path, 0.01) as db:
        put(db, 3)
        db.sync()
        disk.fails = BROKEN
        put(db, 1)
        with caplog.at_level(logging.ERROR):
            wait_until(lambda: "Input/output error" in caplog.text)
        disk.fails = None
        # The contents of memory can be read until then.
        check(db, 4)
        with pytest.raises(fv.StoreError, match=r"log-\d+\.fvlog could not be synced: .*Input/output error.*record"):
            put(db, 1)
        for call in (lambda: put(db, 1), lambda: db.execute("DROP MATERIALIZED VIEW v"), db.sync, db.snapshot):
            with pytest.raises(fv.FreshviewsError, match="reopen the database to see what was committed"):
                call()
    with opened(tmp_path) as db:
        check(db, 4)
        put(db, 1)
        check(db, 5)


@pytest.mark.parametrize("call", ["sync", "snapshot", "close"])
def test_the_next_sync_reports_a_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    disk = Disk(monkeypatch)
    db = opened(tmp_path)
    put(db, 2)
    disk.fails = BROKEN
    with pytest.raises(fv.StoreError, match=r"could not be synced: .*Input/output error"):
        getattr(db, call)()
    disk.fails = None
    if call != "close":
        with pytest.raises(fv.FreshviewsError, match="could not be synced"):
            put(db, 1)
        db.close()
    db.close()
    with fv.Database(tmp_path) as db:
        check(db, 2)


def test_no_batch_is_accepted_after_a_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    with fv.Database(tmp_path) as db:
        db.execute(SCHEMA)
        put(db, 2)
        disk.fails = BROKEN
        with pytest.raises(fv.StoreError, match=r"could not be synced: .*Input/output error"):
            put(db, 1)
        disk.fails = None
        assert db.version == 2
        with pytest.raises(fv.FreshviewsError, match="could not be synced"):
            put(db, 1)
    with fv.Database(tmp_path) as db:
        # The version is there as a whole, or not at all.
        assert check(db) in (2, 3)


def test_a_full_disk_refuses_only_large_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str) -> None:
        if name == "record half written":
            raise OSError(errno.ENOSPC, "No space left on device")

    with opened(tmp_path) as db:
        put(db, 2)
        monkeypatch.setattr(steps, "hook", full)
        with pytest.raises(fv.StoreError, match="No space left"):
            put(db, 1)
        monkeypatch.setattr(steps, "hook", None)
        check(db, 2)
        put(db, 1)
    with fv.Database(tmp_path) as db:
        check(db, 3)
        assert db.recovery.dropped is None


def test_a_forked_child_leaves_the_sync_to_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "db", 0.05) as db:
        put(db, 2)
        assert "a child forked from it" in in_child(db.sync)
        assert "a child forked from it" in in_child(lambda: put(db, 1))
        assert in_child(db.close) == "None"
        disk = Disk(monkeypatch)
        put(db, 1)
        log = only(tmp_path / "db", "log-*")
        wait_until(lambda: disk.size(log) == log.stat().st_size)
    with fv.Database(tmp_path / "db") as db:
        check(db, 3)


def test_the_end_of_the_interpreter_syncs_open_databases(tmp_path: Path) -> None:
    script = f"""
import os, freshviews as fv
db = fv.Database({str(tmp_path)!r}, sync="interval", sync_seconds=3600)
db.execute({SCHEMA!r})
db.insert("t", [(1,)])
sync = os.fsync
os.fsync = lambda file: (sync(file), print("synced", flush=True))
print("end", flush=True)
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["end", "synced"] and done.stderr == ""
    assert time.monotonic() - began < 600
    with fv.Database(tmp_path) as db:
        check(db, 1)


@pytest.mark.parametrize("call", ["sync", "close"])
def test_an_interrupt_is_raised_after_the_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    db = opened(tmp_path)
    put(db, 2)
    disk = Disk(monkeypatch)
    log = only(tmp_path, "log-*")
    sync = disk.sync

    def interrupted(file: int) -> None:
        signal.raise_signal(signal.SIGINT)
        sync(file)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(db, call)()
    monkeypatch.setattr(os, "fsync", sync)
    assert disk.size(log) == log.stat().st_size
    db.close()
    with fv.Database(tmp_path) as db:
        check(db, 2)


def test_threads_may_commit_and_sync_at_the_same_time(tmp_path: Path) -> None:
    with opened(tmp_path, 0.002, snapshot_bytes=5_000) as db:

        def work() -> None:
            for i in range(50):
                db.insert("t", [(1,)])
                if i % 10 == 0:
                    db.sync()
                if i % 20 == 19:
                    db.snapshot()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(db.view("v")) == [(200, 200)]
    with fv.Database(tmp_path) as db:
        assert list(db.view("v")) == [(200, 200)] and db.version == 200


def test_threads_may_sync_while_a_timer_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch was in the log by then, but was refused with an AttributeError."""
    db = opened(tmp_path)
    directory = db._directory
    assert directory is not None

    class Late(threading.Timer):
        @property
        def daemon(self) -> bool:
            return super().daemon

        @daemon.setter
        def daemon(self, daemonic: bool) -> None:
            other = threading.Thread(target=directory.sync)
            other.start()
            other.join()
            threading.Timer.daemon.__set__(self, daemonic)  # type: ignore[attr-defined]

    monkeypatch.setattr("freshviews.store.log.Timer", Late)
    db.sync()
    put(db, 3)
    check(db, 3)
    db.close()


def test_a_snapshot_of_another_thread_waits_for_a_running_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the lock, the snapshot closed the file and sync failed with an OSError for a bad descriptor."""
    db = opened(tmp_path)
    put(db, 2)
    snapshots: list[threading.Thread] = []
    fstat = os.fstat

    def slow(file: int) -> os.stat_result:
        if file == db._directory.log._file and not snapshots:  # type: ignore[union-attr]
            snapshots.append(threading.Thread(target=db.snapshot))
            snapshots[0].start()
            snapshots[0].join(0.5)
        return fstat(file)

    monkeypatch.setattr(os, "fstat", slow)
    db.sync()
    snapshots[0].join()
    put(db, 1)
    check(db, 3)
    db.close()


def test_sync_reports_a_file_that_was_closed_unsynced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot that is due closes the file; the failure of its sync was only a warning in the log."""
    disk = Disk(monkeypatch)
    db = opened(tmp_path)
    put(db, 2)
    log = db._directory.log  # type: ignore[union-attr]
    disk.fails = BROKEN
    with pytest.raises(fv.StoreError, match="could not be synced"):
        log.close()
    disk.fails = None
    with pytest.raises(fv.StoreError, match=r"could not be synced: .*reopen the database to see what"):
        db.sync()
    db.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sync": "intervall"}, "sync must be 'commit' or 'interval', not 'intervall'"),
        ({"sync": "INTERVAL"}, "not 'INTERVAL'"),
        ({"sync": None}, "not NULL"),
        ({"sync": 0.5}, r"not 0\.5"),
        ({"sync_seconds": 0.5}, "sync_seconds needs sync='interval'"),
        *(({"sync": "interval", "sync_seconds": bad}, "more than 0 and at most 3600") for bad in
          (0, -1, 3601, float("nan"), float("inf"), True, "1")),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_before_files_are_created(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fv.Database(tmp_path / "db", **options)
    assert not (tmp_path / "db").exists()


def test_sync_of_a_database_in_memory_does_nothing() -> None:
    with fv.Database(sync="interval") as db, pytest.raises(fv.StoreError, match="is only in memory"):
        db.sync()
