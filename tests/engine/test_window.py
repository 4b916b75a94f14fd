"""Tables with a window: rows are deleted automatically, first in, first out."""

from __future__ import annotations

import datetime
import random
from collections import Counter, deque
from pathlib import Path

import pytest

from freshviews import BatchError, Database, SqlError
from freshviews.sql import Catalog, parse_script

pytestmark = pytest.mark.compiled(6)

ROWS = """
CREATE TABLE g (src BIGINT, dst BIGINT) TBLPROPERTIES ('freshviews.window' = '5 rows');
CREATE MATERIALIZED VIEW v AS SELECT src, COUNT(*) AS n FROM g GROUP BY src;
"""
DAYS = """
CREATE TABLE e (day DATE NOT NULL, x BIGINT) TBLPROPERTIES ('freshviews.window' = '10 days');
CREATE MATERIALIZED VIEW v AS SELECT x, COUNT(*) AS n FROM e GROUP BY x;
"""


def day(number: int) -> datetime.date:
    return datetime.date(2024, 1, 1) + datetime.timedelta(days=number)


def test_a_window_of_n_rows_keeps_the_latest_n_rows() -> None:
    rng = random.Random(1)
    with Database() as db:
        db.execute(ROWS)
        held: deque[tuple[int, int]] = deque(maxlen=5)
        for _ in range(60):
            rows = [(rng.randrange(3), rng.randrange(3)) for _ in range(rng.choice([0, 1, 2, 4, 7, 13]))]
            db.insert("g", rows)
            held.extend(rows)
            assert Counter(db.table("g")) == Counter(held)
            assert dict(db.view("v")) == Counter(src for src, _ in held)


def test_a_window_of_n_days_drops_older_rows() -> None:
    rng = random.Random(2)
    with Database() as db:
        db.execute(DAYS)
        held: list[tuple[int, int]] = []
        now = 0
        for _ in range(80):
            rows = []
            for _ in range(rng.choice([0, 1, 3, 6])):
                rows.append((max(now + rng.choice([-12, -6, -1, 0, 0, 1, 2, 7]), 0), rng.randrange(3)))
                late = rows[-1][0] <= now - 10
                now = max(now, rows[-1][0])
                held = [row for row in [*held, *([] if late else rows[-1:])] if row[0] > now - 10]
            db.insert("e", [(day(at), x) for at, x in rows])
            assert Counter(db.table("e")) == Counter((day(at), x) for at, x in held)
            assert dict(db.view("v")) == Counter(x for _, x in held)


def test_a_refused_batch_leaves_the_window_unchanged() -> None:
    with Database() as db:
        db.execute(ROWS)
        db.insert("g", [(i, 0) for i in range(5)])
        with pytest.raises(BatchError, match="the window of the table deletes old rows"):
            db.delete("g", [(0, 0)])
        with pytest.raises(BatchError):
            db.insert("g", [(7, 0), ("no", 0)])
        db.insert("g", [(8, 0)])
        assert sorted(db.table("g")) == [(1, 0), (2, 0), (3, 0), (4, 0), (8, 0)]


def test_apply_in_order_reports_rows_displaced_from_a_window() -> None:
    with Database() as db:
        db.execute(
            "CREATE TABLE g (src BIGINT, dst BIGINT) TBLPROPERTIES ('freshviews.window' = '2 rows');"
            "CREATE MATERIALIZED VIEW v AS SELECT src, dst FROM g;"
        )
        batches = db.apply_in_order("g", [(i, i, 1) for i in range(4)], "v")
        told = [row for b in batches for row in zip(*[c.to_pylist() for c in b.columns], strict=True)]
        assert [(src, m, update) for src, _, m, update in told] == [
            (0, 1, 0), (1, 1, 1), (0, -1, 2), (2, 1, 2), (1, -1, 3), (3, 1, 3),
        ]  # fmt: skip


@pytest.mark.parametrize("trusted", [False, True], ids=["stored", "trusted"])
@pytest.mark.parametrize("window", ["7 rows", "7 days"])
@pytest.mark.parametrize("kept", ["log", "snapshots", "image"])
def test_a_window_survives_a_reopen(tmp_path: Path, window: str, trusted: bool, kept: str) -> None:
    """Reopened after every other batch, or restored from an image, it agrees with one that stayed open."""
    script = f"""
        CREATE TABLE e (day DATE NOT NULL, x BIGINT, s STRING)
          TBLPROPERTIES ('freshviews.window' = '{window}', 'freshviews.trusted' = '{str(trusted).lower()}');
        CREATE MATERIALIZED VIEW v AS SELECT day, x, s, COUNT(*) AS n FROM e GROUP BY day, x, s;
    """
    rng = random.Random(5)
    stays = Database()
    stays.execute(script)
    again = Database() if kept == "image" else Database(tmp_path / "db")
    again.execute(script)
    for i in range(24):
        rows = []
        for _ in range(rng.choice([0, 1, 2, 5, 9])):
            at = i + rng.randrange(-9, 4) if window == "7 days" else rng.randrange(3)
            rows.append((day(at), rng.randrange(2), "ab"[i % 2]))
        for db in (stays, again):
            db.insert("e", rows)
        assert Counter(again.view("v")) == Counter(stays.view("v"))
        if i % 2:
            continue
        if kept == "image":
            again.write_image(tmp_path / f"image-{i}")
            again.close()
            again = Database.from_image(tmp_path / f"image-{i}", parse_script(script, Catalog()))
            continue
        if kept == "snapshots" and i % 4:
            again.snapshot()
        again.close()
        again = Database(tmp_path / "db")
    if not trusted:
        assert Counter(again.table("e")) == Counter(stays.table("e"))
    again.close()
    stays.close()


def test_a_window_remembers_the_order_of_equal_rows(tmp_path: Path) -> None:
    """Rows that are inserted again are at the end of the window."""
    with Database(tmp_path / "db") as db:
        db.execute(ROWS)
        db.insert("g", [(3, 0), (1, 0), (3, 0), (2, 0), (1, 0)])
        db.snapshot()
    with Database(tmp_path / "db") as db:
        db.insert("g", [(4, 0)])
        assert dict(db.view("v")) == {1: 2, 2: 1, 3: 1, 4: 1}
    with Database(tmp_path / "db") as db:
        db.insert("g", [(4, 0), (4, 0)])
        assert dict(db.view("v")) == {1: 1, 2: 1, 4: 3}


@pytest.mark.parametrize(
    ("columns", "window", "message"),
    [
        ("a INT", "many rows", "write for example '100000 rows' or '180 days on created'"),
        ("a INT", "0 rows", "is not a window"),
        ("a INT", "5 days", "needs the name of a DATE or TIMESTAMP column"),
        ("a DATE NOT NULL, b DATE NOT NULL", "5 days", "name of a DATE or TIMESTAMP column; write '5 days on column'"),
        ("a DATE", "5 days", "declare column a NOT NULL"),
        ("a DATE NOT NULL", "5 hours", "a is a DATE; write the window in days"),
    ],
)
def test_an_invalid_window_is_refused(columns: str, window: str, message: str) -> None:
    with Database() as db, pytest.raises(SqlError, match=message):
        db.execute(f"CREATE TABLE t ({columns}) TBLPROPERTIES ('freshviews.window' = '{window}')")
