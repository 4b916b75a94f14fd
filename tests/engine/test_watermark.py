"""Tables with a watermark: late rows are refused or dropped, and the watermark outlives its process."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path

import pytest

import freshviews as fv
from freshviews.sql import Catalog, parse_script

pytestmark = pytest.mark.plain_python

CLICKS = """
    CREATE TABLE clicks (id INT{key}, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10' MINUTES)
      TBLPROPERTIES ('freshviews.late' = '{late}', 'freshviews.trusted' = '{trusted}');
    CREATE MATERIALIZED VIEW n AS SELECT date_trunc('HOUR', ts) AS hour, COUNT(*) AS n, MAX(id) AS last
      FROM clicks GROUP BY date_trunc('HOUR', ts);
"""


def at(minute: int | None) -> dt.datetime | None:
    return None if minute is None else dt.datetime(2026, 3, 1, 12) + dt.timedelta(minutes=minute)


def clicks(late: str = "refuse", key: str = "", trusted: str = "false", path: Path | None = None) -> fv.Database:
    db = fv.Database(path)
    db.execute(CLICKS.format(late=late, key=key, trusted=trusted))
    return db


def stats(db: fv.Database) -> tuple[object, object]:
    found = db.stats()["tables"]["clicks"]
    return found["watermark"], found["late"]


def test_the_error_of_a_late_row_names_the_table_and_the_row() -> None:
    db = clicks()
    db.insert("clicks", [(1, at(30)), (2, at(0)), (3, None)])  # a version has any order
    assert stats(db) == (at(20), 0)
    db.insert("clicks", [(4, at(20)), (5, None)])  # the watermark itself is in time
    with pytest.raises(fv.BatchError) as caught:
        db.insert("clicks", [(6, at(40)), (7, at(19)), (8, at(20)), (9, at(0))])
    assert str(caught.value) == (
        "table clicks, row 1: ts 2026-03-01 12:19:00 is before the watermark 2026-03-01 12:20:00: insert it in time, "
        "or let the table drop late rows by 'freshviews.late' = 'drop'"
    )
    assert (caught.value.rule, caught.value.column, caught.value.value) == ("WATERMARK", "ts", at(19))
    assert caught.value.rows == (1, 3)
    assert stats(db) == (at(20), 0)  # a refused batch does not move it
    assert db.view("n")[at(0)] == (at(0), 3, 4)


def test_a_stored_row_before_the_watermark_is_deleted() -> None:
    db = clicks(key=" PRIMARY KEY")
    db.insert("clicks", [(1, at(0)), (2, at(60))])
    db.delete("clicks", [(1, at(0))])
    db.delete("clicks", keys=[2])
    assert list(db.table("clicks")) == []
    assert stats(db) == (at(50), 0)
    before = "before the watermark 2026-03-01 12:50:00"
    with pytest.raises(fv.BatchError, match=before):
        db.upsert("clicks", [(3, at(49))])
    with pytest.raises(fv.BatchError, match=before):
        db.execute("INSERT INTO clicks VALUES (3, TIMESTAMP '2026-03-01 12:49:00')")


def test_a_table_drops_late_rows_and_counts_them() -> None:
    db = clicks("drop")
    db.insert("clicks", [(1, at(30))])
    version = db.insert("clicks", [(2, at(19)), (3, at(20)), (4, at(-60))])
    assert (version, stats(db)) == (2, (at(20), 2))
    db.execute("INSERT INTO clicks VALUES (5, TIMESTAMP '2026-03-01 12:00:00')")
    with db.batch() as batch:
        batch.insert("clicks", [(6, at(25)), (7, at(1))])
    db.apply("clicks", [(8, at(2), 1), (9, at(50), 1)])
    assert sorted(db.table("clicks")) == [(1, at(30)), (3, at(20)), (6, at(25)), (9, at(50))]
    assert stats(db) == (at(40), 5)


def test_a_late_row_that_replaces_a_stored_row_is_refused_and_not_dropped() -> None:
    replaces = "it replaces a deleted row, so it is not dropped; delete the row alone, or give it a later time"
    db = clicks("drop", key=" PRIMARY KEY")
    db.insert("clicks", [(1, at(30)), (2, at(0))])
    with pytest.raises(fv.BatchError, match=replaces):
        db.upsert("clicks", [(1, at(5))])
    with pytest.raises(fv.BatchError, match=replaces):
        db.execute("UPDATE clicks SET ts = ts - INTERVAL '1' HOUR WHERE id = 2")
    db.apply("clicks", [(1, at(30), -1), (3, at(0), 1)])  # of another key
    assert (list(db.table("clicks")), stats(db)) == ([(2, at(0))], (at(20), 1))
    db = clicks("drop")
    db.insert("clicks", [(1, at(30))])
    with pytest.raises(fv.BatchError, match=replaces):
        db.apply("clicks", [(1, at(30), -1), (3, at(0), 1)])


def test_a_trusted_table_refuses_deletes_of_rows_before_the_watermark() -> None:
    db = clicks(trusted="true")
    db.insert("clicks", [(1, at(0)), (2, at(60))])
    db.delete("clicks", [(2, at(60))])
    with pytest.raises(fv.BatchError) as caught:
        db.delete("clicks", [(1, at(0))])
    assert str(caught.value) == (
        "table clicks, row 0: ts 2026-03-01 12:00:00 is before the watermark 2026-03-01 12:50:00: the table stores no "
        "rows, so what its rows have come to there is final; delete none of them"
    )
    assert dict(db.stats()["tables"]["clicks"])["rows"] is None
    assert list(db.view("n")) == [(at(0), 1, 1)]


def test_a_window_frees_the_rows_of_a_table_with_a_watermark() -> None:
    db = fv.Database()
    db.execute("""
        CREATE TABLE t (id INT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL '10' MINUTES)
          TBLPROPERTIES ('freshviews.window' = '1 hour on ts');
        CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n FROM t;
    """)
    db.insert("t", [(1, at(0))])
    db.insert("t", [(2, at(59))])
    with pytest.raises(fv.BatchError, match="before the watermark"):
        db.insert("t", [(3, at(48))])
    db.insert("t", [(4, at(60))])
    assert sorted(db.table("t")) == [(2, at(59)), (4, at(60))]
    assert list(db.view("n")) == [(2,)]


@pytest.mark.parametrize("late", ["refuse", "drop"])
@pytest.mark.seeds(2)
def test_random_batches_agree_with_the_definition_of_the_watermark(seed: int, late: str) -> None:
    """Rows by key, the largest time so far, and the count of dropped rows, beside a table that is changed at random."""
    draw = random.Random(f"{seed} {late}")
    db = clicks(late, key=" PRIMARY KEY")
    rows: dict[int, int | None] = {}
    latest, dropped, refusals = -1000, 0, 0
    for i in range(60):
        gone = [(key, rows[key]) for key in draw.sample([*rows], min(len(rows), draw.choice((0, 0, 1, 2))))]
        near = [4 * i + draw.randrange(-25, 6) for _ in range(9)]
        times = [draw.choice((None, *near)) for _ in range(draw.randrange(4))]
        keys = [key for key, _ in gone] + [100 + 10 * i + j for j in range(4)]
        come = list(zip(draw.sample(keys, len(times)), times, strict=True))
        changes = [(key, at(time), -1) for key, time in gone] + [(key, at(time), 1) for key, time in come]
        out = {key for key, time in come if time is not None and time < latest - 10}
        if out and (late == "refuse" or out & {key for key, _ in gone}):
            refusals += 1
            with pytest.raises(fv.BatchError, match="is before the watermark"):
                db.apply("clicks", changes)
        else:
            db.apply("clicks", changes)
            rows = {key: time for key, time in rows.items() if (key, time) not in gone}
            rows |= {key: time for key, time in come if key not in out}
            dropped += len(out)
            latest = max([latest, *(time for _, time in come if time is not None)])
        assert dict(db.table("clicks")) == {key: at(time) for key, time in rows.items()}
        assert stats(db) == (None if latest == -1000 else at(latest - 10), dropped)
    assert (refusals > 2 or late == "drop") and (dropped > 2) == (late == "drop")


@pytest.mark.parametrize("trusted", ["false", "true"])
@pytest.mark.parametrize("kept", ["log", "snapshots", "image"])
def test_a_watermark_survives_a_reopen(tmp_path: Path, kept: str, trusted: str) -> None:
    """Reopened after every other batch, or restored from an image, the table drops what one that stayed open drops."""
    draw = random.Random(7)
    stays = clicks("drop", trusted=trusted)
    again = clicks("drop", trusted=trusted, path=None if kept == "image" else tmp_path / "db")
    dropped = 0
    for i in range(16):
        rows = [(draw.randrange(9), at(5 * i + draw.randrange(-30, 5))) for _ in range(draw.randrange(5))]
        for db in (stays, again):
            db.insert("clicks", rows)
        assert Counter(again.view("n")) == Counter(stays.view("n"))
        assert stats(again)[0] == stats(stays)[0]
        if i == 4 and trusted == "false":
            last = max((row for row in stays.table("clicks")), key=lambda row: row[1])
            for db in (stays, again):
                db.delete("clicks", [last])  # no row has the largest time any more
        if i % 2:
            continue
        dropped += int(again.stats()["tables"]["clicks"]["late"])
        if kept == "image":
            again.write_image(tmp_path / f"image-{i}")
            script = CLICKS.format(late="drop", key="", trusted=trusted)
            again.close()
            again = fv.Database.from_image(tmp_path / f"image-{i}", parse_script(script, Catalog()))
            continue
        if kept == "snapshots" and i % 4:
            again.snapshot()
        again.close()
        again = fv.Database(tmp_path / "db")
    assert dropped > 5


def test_a_watermark_is_kept_by_alter_table_and_by_show_create_table(tmp_path: Path) -> None:
    db = clicks(path=tmp_path / "db")
    db.insert("clicks", [(1, at(30))])
    db.execute("ALTER TABLE clicks ADD COLUMN page STRING")
    created = str(db.execute("SHOW CREATE TABLE clicks").fetchall()[0][0])
    db.close()
    db = fv.Database(tmp_path / "db")
    with pytest.raises(fv.BatchError, match="before the watermark 2026-03-01 12:20:00"):
        db.insert("clicks", [(1, at(0), "a")])
    again = fv.Database()
    again.execute(created)
    again.insert("clicks", [(1, at(30), "a")])
    assert stats(again) == (at(20), 0)


def test_a_replayed_batch_is_never_late() -> None:
    db = clicks()
    db.insert("clicks", [(1, at(30))])
    with db.batch(replayed=True) as batch:
        batch.insert("clicks", [(2, at(0))])
    assert db.view("n")[at(0)] == (at(0), 2, 2)


def test_a_table_with_a_watermark_refuses_changes_that_make_several_versions() -> None:
    db = clicks()
    for several in (db.apply_in_order, db.apply_net):
        with pytest.raises(fv.CatalogError, match="table clicks has a watermark, which moves once per version, but"):
            several("clicks", [(1, at(0), 1)], "n")


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("WATERMARK FOR ts AS ts + INTERVAL '1' DAY", "WATERMARK FOR ts AS ts + INTERVAL '1' DAY is not supported"),
        ("WATERMARK FOR ts AS id - INTERVAL '1' DAY", "AS id - INTERVAL '1' DAY is not supported; write WATERMARK"),
        ("WATERMARK FOR ts AS ts - INTERVAL '-1' DAY", "the delay of the watermark is INTERVAL '-1' DAY; write"),
        ("WATERMARK FOR ts AS ts - INTERVAL '1' MONTH", "the delay of the watermark, INTERVAL '1' MONTH for"),
        ("WATERMARK FOR ts AS ts - id", "the delay of the watermark: id is a column"),
        ("WATERMARK FOR id AS id", "id is not a TIMESTAMP column of table t; it has ts, at"),
        ("WATERMARK FOR no AS no", "no is not a TIMESTAMP column of table t; it has ts, at"),
        ("WATERMARK FOR ts AS ts, WATERMARK FOR at AS at", "table t has two watermarks; leave out one"),
        ("WATERMARK FOR ts", "WATERMARK FOR column needs AS"),
    ],
)  # fmt: skip
def test_an_invalid_watermark_is_refused_with_its_place(clause: str, message: str) -> None:
    with pytest.raises(fv.SqlError) as caught:
        fv.Database().execute(f"CREATE TABLE t (id INT, ts TIMESTAMP, at TIMESTAMP, {clause})")
    assert message in str(caught.value) and str(caught.value).startswith("line 1, column ")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'freshviews.late' = 'drop'", "freshviews.late needs a watermark; add WATERMARK FOR ts"),
        ("'freshviews.late' = 'keep', 'freshviews.watermark' = '1 day on ts'", "must be 'refuse' or 'drop', not"),
        ("'freshviews.watermark' = '1 day'", "'1 day' is not a watermark; write for example '10 minutes on ts'"),
        ("'freshviews.watermark' = '99999999999 days on ts'", "is never reached; shorten the delay"),
    ],
)  # fmt: skip
def test_invalid_properties_of_a_watermark_are_refused(properties: str, message: str) -> None:
    with pytest.raises(fv.SqlError, match=message):
        fv.Database().execute(f"CREATE TABLE t (ts TIMESTAMP) TBLPROPERTIES ({properties})")


@pytest.mark.parametrize(
    ("delay", "minutes"),
    [("", 0), (" - INTERVAL '0' SECOND", 0), (" - INTERVAL '0 00:30' DAY TO MINUTE", 30), (" - INTERVAL 2 HOURS", 120)],
)
def test_the_delay_of_a_watermark_may_be_any_constant_interval(delay: str, minutes: int) -> None:
    db = fv.Database()
    db.execute(f"CREATE TABLE clicks (watermark INT, `my ts` TIMESTAMP, WATERMARK FOR `my ts` AS `my ts`{delay})")
    db.insert("clicks", [(1, at(120))])
    assert stats(db) == (at(120 - minutes), 0)
