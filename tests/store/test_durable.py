"""A durable database reopens as it was committed, or reports what is wrong with its files."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.engine.commit import records
from freshviews.store import crash_points as steps
from freshviews.store.record import HEADER_BYTES, WORDS, Record
from tests.engine.shop import SCHEMA, seen
from tests.store.killing import killed_at, only

pytestmark = pytest.mark.compiled(5)

TRUSTED = """
CREATE TABLE clicks (who STRING, n INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW per AS SELECT who, SUM(n) AS n FROM clicks GROUP BY who;
"""


def history(db: fv.Database) -> list[Any]:
    """A few versions of all kinds of changes; returns the contents at each."""
    found = [seen(db)]
    for i in range(1, 6):
        with db.batch() as batch:
            batch.insert("orders", [(i, i % 2, None, None)])
            batch.insert("items", [(i, f"part {i % 3}", i), (None, None, 2)])
        found.append(seen(db))
    db.delete("items", [(None, None, 2)])
    return [*found, seen(db)]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    db = fv.Database()
    db.execute(SCHEMA)
    return history(db)


def test_a_reopened_database_has_all_committed_rows_of_tables_and_views(tmp_path: Path, expected: list[Any]) -> None:
    with fv.Database(tmp_path / "shop.fresh") as db:
        db.execute(SCHEMA)
        assert history(db) == expected
    for _ in range(2):
        with fv.Database(tmp_path / "shop.fresh") as db:
            assert seen(db) == expected[-1]
            assert db.recovery is not None and db.recovery.dropped is None
            assert db.recovery.replayed == len(expected) - 1
            with pytest.raises(fv.BatchError):
                db.insert("orders", [(1, 1, None, None)])


@pytest.mark.parametrize("step", steps.COMMIT)
@pytest.mark.parametrize("time", [1, 2, 7])
def test_a_kill_at_any_step_keeps_exactly_committed_versions(
    tmp_path: Path, expected: list[Any], step: str, time: int
) -> None:
    def work() -> None:
        db = fv.Database(tmp_path)
        db.execute(SCHEMA)
        history(db)

    killed = killed_at(step, time, work)
    # The script is a record too, but no version.
    scripted = step.startswith("record")
    version = time - 1 - scripted
    with fv.Database(tmp_path) as db:
        if not killed:
            assert not scripted and time == len(expected)
            return
        after = {version + 1} if step in ("record synced", "version visible") else {version}
        if step == "record written":
            # Neither promised nor excluded: whole in the file, but not synced.
            after = {version, version + 1}
        if -1 in after and not db.tables:
            return
        assert db.version in after
        assert seen(db) == expected[db.version]
        assert (db.recovery.dropped is not None) == (step == "record half written")
        db.insert("items", [(None, "later", 1)])
        state = seen(db)
    with fv.Database(tmp_path) as db:
        assert seen(db) == state and db.recovery.dropped is None


@pytest.mark.parametrize("step", steps.SNAPSHOT)
@pytest.mark.parametrize("schema", [SCHEMA, SCHEMA + TRUSTED], ids=["stored", "trusted"])
def test_a_kill_at_any_step_of_a_snapshot_loses_no_committed_version(
    tmp_path: Path, expected: list[Any], step: str, schema: str
) -> None:
    states: list[Any] = []

    def work() -> None:
        db = fv.Database(tmp_path)
        db.snapshot()

    with fv.Database(tmp_path) as db:
        db.execute(schema)
        history(db)
        db.snapshot()
        if schema != SCHEMA:
            db.apply("clicks", [("ann", 5, 2), ("bob", 1, -1)])
        db.insert("items", [(1, "more", 1)])
        states.append(seen(db))
    assert killed_at(step, 1, work)
    for _ in range(2):
        with fv.Database(tmp_path) as db:
            assert seen(db) == states[-1]
            assert not list(tmp_path.glob("*.tmp"))
            db.insert("items", [(1, "more", 1)])
            if schema != SCHEMA:
                db.apply("clicks", [("bob", 1, 1)])
            states.append(seen(db))
            db.snapshot()


def test_a_log_cut_at_any_byte_is_opened_without_its_torn_tail(
    tmp_path: Path, expected: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    with fv.Database(tmp_path) as db:
        db.execute("CREATE TABLE t (a INT, s STRING)")
        db.insert("t", [(1, "one")])
        log = only(tmp_path, "log-*")
        before, whole = log.stat().st_size, seen(db)
        db.insert("t", [(2, "two")])
    data = log.read_bytes()
    for end in range(before, len(data)):
        log.write_bytes(data[:end])
        caplog.clear()
        with caplog.at_level(logging.WARNING), fv.Database(tmp_path) as db:
            assert seen(db) == whole
            if end == before:
                assert db.recovery.dropped is None
            else:
                assert db.recovery.dropped_bytes == end - before
                assert f"{log}: {end - before} bytes from offset {before}" in caplog.text
    broken = bytearray(data)
    for place in range(before, len(data), 7):
        broken[:] = data
        broken[place] ^= 0x20
        log.write_bytes(broken)
        with fv.Database(tmp_path) as db:
            assert db.version == 1
    log.write_bytes(data + bytes(1000))
    with fv.Database(tmp_path) as db:
        assert db.version == 2 and db.recovery.dropped_bytes == 1000


def test_the_error_of_a_corrupt_log_names_file_and_offset(tmp_path: Path) -> None:
    with fv.Database(tmp_path) as db:
        db.execute("CREATE TABLE t (a INT)")
        log = only(tmp_path, "log-*")
        start = log.stat().st_size
        db.insert("t", [(1,)])
        end = log.stat().st_size
        db.insert("t", [(2,)])
    data = log.read_bytes()
    for place in [*range(start, start + HEADER_BYTES), *range(start + HEADER_BYTES, end, 11)]:
        broken = bytearray(data)
        broken[place] ^= 1
        log.write_bytes(broken)
        with pytest.raises(fv.StoreError, match=f"{log}, offset {start}: .*corrupt"):
            fv.Database(tmp_path)
    log.write_bytes(data[:start] + data[end:])
    with pytest.raises(fv.StoreError, match=f"{log}, offset {start}: record 2 is expected, but record 3 was found"):
        fv.Database(tmp_path)
    log.write_bytes(data)
    with fv.Database(tmp_path) as db:
        assert db.version == 2


def test_a_snapshot_replaces_the_log(tmp_path: Path, expected: list[Any]) -> None:
    with fv.Database(tmp_path) as db:
        db.execute(SCHEMA)
        db.execute("CREATE TABLE gone (a INT); CREATE MATERIALIZED VIEW g AS SELECT COUNT(*) AS n FROM gone")
        db.execute("DROP MATERIALIZED VIEW g; DROP TABLE gone; CREATE TABLE empty (a INT)")
        history(db)
        size = only(tmp_path, "log-*").stat().st_size
        db.snapshot()
        assert only(tmp_path, "log-*").stat().st_size == 0 < size
        state = seen(db)
        db.insert("empty", [(1,)])
    with fv.Database(tmp_path) as db:
        assert db.recovery.snapshot_version == len(expected) - 1 and db.recovery.replayed == 1
        assert db.version == len(expected)
        state |= {"empty": {(1,): 1}, "version": db.version}
        assert seen(db) == state
        with pytest.raises(fv.BatchError):
            db.insert("orders", [(1, 1, None, None)])
        db.snapshot()
    with fv.Database(tmp_path) as db:
        assert seen(db) == state and db.recovery.replayed == 0


def test_snapshots_are_written_as_the_log_grows(tmp_path: Path) -> None:
    with fv.Database(tmp_path, snapshot_bytes=20_000) as db:
        db.execute("CREATE TABLE t (a INT, s STRING)")
        for i in range(100):
            db.insert("t", [(i, "x" * 500)])
            db.delete("t", [(i, "x" * 500)])
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 60_000
        db.insert("t", [(1, "kept")])
    with fv.Database(tmp_path) as db:
        assert list(db.table("t")) == [(1, "kept")] and db.version == 201


def test_views_of_trusted_tables_survive_a_reopen(tmp_path: Path) -> None:
    with fv.Database(tmp_path) as db:
        db.execute(TRUSTED)
        db.insert("clicks", [("ann", 1), ("bob", 2)])
        db.snapshot()
        db.delete("clicks", [("ann", 1)])
        db.execute("DROP MATERIALIZED VIEW per; DROP TABLE clicks")
        db.execute(TRUSTED)
        db.insert("clicks", [("cid", 3)])
        db.snapshot()
        db.insert("clicks", [("cid", 4)])
    with fv.Database(tmp_path) as db:
        assert list(db.view("per")) == [("cid", 7)]
        with pytest.raises(fv.CatalogError, match="trusted"):
            db.execute("CREATE MATERIALIZED VIEW w AS SELECT n FROM clicks")


def test_a_corrupt_or_missing_snapshot_or_log_is_an_error(tmp_path: Path) -> None:
    with fv.Database(tmp_path) as db:
        db.execute("CREATE TABLE t (a INT)")
        db.insert("t", [(i,) for i in range(100)])
        db.snapshot()
        db.insert("t", [(1000,)])
    snapshot, log = only(tmp_path, "snapshot-*"), only(tmp_path, "log-*")
    data, tail = snapshot.read_bytes(), log.read_bytes()
    for place in range(0, len(data), 41):
        broken = bytearray(data)
        broken[place] ^= 1
        snapshot.write_bytes(broken)
        with pytest.raises(fv.StoreError, match=f"{snapshot}, offset"):
            fv.Database(tmp_path)
    snapshot.write_bytes(data[:-1])
    with pytest.raises(fv.StoreError, match=f"{snapshot}, offset"):
        fv.Database(tmp_path)
    snapshot.unlink()
    with pytest.raises(fv.StoreError, match="missing"):
        fv.Database(tmp_path)
    snapshot.write_bytes(data)
    log.unlink()
    with pytest.raises(fv.StoreError, match="missing"):
        fv.Database(tmp_path)
    log.write_bytes(tail)
    with fv.Database(tmp_path) as db:
        assert len(db.table("t")) == 101


@pytest.mark.parametrize("step", ["record half written", "record written"])
def test_a_log_that_cannot_be_written_refuses_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(name: str) -> None:
        if name == step:
            raise OSError(28, "No space left on device")

    with fv.Database(tmp_path) as db:
        db.execute(SCHEMA)
        history(db)
        reported: list[fv.Change] = []
        db.view("by_part").subscribe(reported.append)
        before = seen(db)
        monkeypatch.setattr(steps, "hook", full)
        with pytest.raises(fv.StoreError, match="No space left"):
            db.insert("items", [(1, "more", 1)])
        with pytest.raises(fv.StoreError, match="No space left"):
            db.execute("CREATE TABLE more (a INT)")
        monkeypatch.setattr(steps, "hook", None)
        assert seen(db) == before and reported == [] and "more" not in db.tables
        db.insert("items", [(1, "more", 2)])
        assert len(reported) == 1
        before = seen(db)
    with fv.Database(tmp_path) as db:
        assert seen(db) == before and db.recovery.dropped is None


def test_a_failed_snapshot_loses_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(name: str) -> None:
        if name == "snapshot half written":
            raise OSError(28, "No space left on device")

    with fv.Database(tmp_path, snapshot_bytes=0) as db:
        db.execute("CREATE TABLE t (a INT)")
        monkeypatch.setattr(steps, "hook", full)
        assert db.insert("t", [(1,)]) == 1
        assert "No space left" in caplog.text
        with pytest.raises(fv.StoreError, match="No space left"):
            db.snapshot()
    with fv.Database(tmp_path) as db:
        assert list(db.table("t")) == [(1,)]


def test_the_error_in_a_second_process_names_the_first_process(tmp_path: Path) -> None:
    opened = "import freshviews as fv, sys; fv.Database(sys.argv[1])"
    with fv.Database(tmp_path):
        with pytest.raises(fv.StoreError, match=f"open already in process {os.getpid()}"):
            fv.Database(tmp_path)
        other = subprocess.run([sys.executable, "-c", opened, str(tmp_path)], capture_output=True, text=True)
        assert other.returncode == 1 and f"in process {os.getpid()};" in other.stderr
    assert subprocess.run([sys.executable, "-c", opened, str(tmp_path)]).returncode == 0


def test_a_path_without_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(fv.StoreError, match=r"no meta\.json"):
        fv.Database(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    with pytest.raises(fv.StoreError, match="not a directory"):
        fv.Database(tmp_path / "letter.txt")
    with pytest.raises(fv.ArgumentError, match="a path, as text"):
        fv.Database("")
    with pytest.raises(fv.ArgumentError, match="a path, as text"):
        fv.Database(str(tmp_path / "a\0b"))
    other = tmp_path / "db"
    fv.Database(other).close()
    (other / "meta.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(fv.StoreError, match="format 99"):
        fv.Database(other)
    (other / "meta.json").write_text("{")
    with pytest.raises(fv.StoreError, match=r"meta\.json, offset 0"):
        fv.Database(other)


def test_a_directory_without_write_permission_raises_a_store_error(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        db.execute("CREATE TABLE t (a INT)")
    log = next((tmp_path / "db").glob("*.fvlog"))
    kept = log.read_bytes()
    log.unlink()
    log.mkdir()
    with pytest.raises(fv.StoreError, match=r"db cannot be opened: .*not a regular file.*; it needs free space"):
        fv.Database(tmp_path / "db")
    log.rmdir()
    log.write_bytes(kept)
    with fv.Database(tmp_path / "db") as db:
        assert db.tables == ("t",)
    (tmp_path / "new" / "lock").mkdir(parents=True)
    with pytest.raises(fv.StoreError, match="new cannot be opened"):
        fv.Database(tmp_path / "new")


@pytest.mark.parametrize("few", [0, records.FEW], ids=["Arrow", "words"])
def test_values_of_every_type_survive_a_reopen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    import datetime as dt
    from decimal import Decimal

    row = (
        True,
        -1,
        2,
        3,
        -(2**63) + 1,
        1.5,
        float("inf"),
        Decimal("-0.01"),
        "ü\0'",
        dt.date(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    )
    monkeypatch.setattr(records, "FEW", few)
    with fv.Database(tmp_path) as db:
        db.execute(
            "CREATE TABLE t (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE,"
            " h DECIMAL(38, 2), i STRING, j DATE, k TIMESTAMP)"
        )
        db.insert("t", [row, (None,) * 11])
        schema = db.table("t").schema
    for _ in range(2):
        with fv.Database(tmp_path) as db:
            assert list(db.table("t")) == [row, (None,) * 11]
            assert db.table("t").schema == schema
            db.snapshot()


@pytest.mark.parametrize("rows", [1, 2, records.FEW, records.FEW + 1])
def test_batches_of_any_size_are_restored_with_their_strings(tmp_path: Path, rows: int) -> None:
    texts = [None, "", "ü\0'", "part", "\U0001f600 wide", "part"]
    given = [(texts[i % 6], i, texts[i % 5], 1 + i % 3) for i in range(rows)]
    with fv.Database(tmp_path) as db:
        db.execute("CREATE TABLE t (s STRING, n INT, u STRING); CREATE TABLE gone (s STRING)")
        db.apply("t", given)
        db.delete("t", [row[:3] for row in given[:5]])
        db.insert("gone", [("gone",)])
        db.execute("DROP TABLE gone; CREATE TABLE gone (n INT, s STRING)")
        db.insert("gone", [(1, "here")])
        before = sorted(db.table("t"), key=str)
        assert len(before) == sum(times for *_, times in given) - min(rows, 5)
    with fv.Database(tmp_path) as db:
        assert sorted(db.table("t"), key=str) == before and list(db.table("gone")) == [(1, "here")]


def test_a_record_of_another_table_is_an_error(tmp_path: Path) -> None:
    with fv.Database(tmp_path) as db:
        db.execute("CREATE TABLE t (a INT, s STRING)")
        log = only(tmp_path, "log-*")
        size = log.stat().st_size
        db.insert("t", [(1, "one")])
    data = log.read_bytes()
    payload = data[size + HEADER_BYTES :]
    for wrong in (payload[:12], payload[:20], payload[:-3] + b"\xff\xff\xff", payload[:12] + b"\1" + payload[13:]):
        log.write_bytes(data[:size] + Record(WORDS, 2, 1, wrong).to_bytes())
        with pytest.raises(fv.StoreError, match="record 2 of the log cannot be read back"):
            fv.Database(tmp_path)
