"""Views over the clock on Spark: rows leave them with the time of each version."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.driver import run, version
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.running_query import Query
from freshviews.spark.state.stores.addresses import store_of
from freshviews.types.columns import MULTIPLICITY
from tests.spark.faults import Fault

pytestmark = pytest.mark.spark

START = dt.datetime(2026, 1, 31, 22, 0)
SCRIPT = """
CREATE STREAMING TABLE logins (name STRING, ts TIMESTAMP) USING parquet OPTIONS (path 'in');
CREATE MATERIALIZED VIEW active USING parquet OPTIONS (path 'out') AS
  SELECT name, ts FROM logins WHERE ts > now() - INTERVAL '1' HOUR;
"""
OLD = """
CREATE MATERIALIZED VIEW old AS SELECT name FROM logins WHERE ts + INTERVAL '1' HOUR <= current_timestamp;
"""


class Clocked:
    """A pipeline whose machine has the time that the test sets, in minutes."""

    def __init__(self, spark: Any, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.spark, self.folder, self.minute, self.files = spark, folder, 0, 0
        patch.setattr(run, "CLOCK_EVERY", 0.5)
        patch.setattr(version, "machine_time", lambda: self.micros(self.minute))
        (folder / "in").mkdir()
        self.store = store_of(folder / "script.checkpoint")

    @staticmethod
    def micros(minute: int) -> int:
        return int((START - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1)) + minute * 60_000_000

    def write(self, *rows: tuple[str, int]) -> None:
        """Rows, each with its minute."""
        times = [START + dt.timedelta(minutes=minute) for _, minute in rows]
        self.files += 1
        table = pa.table({"name": [name for name, _ in rows], "ts": pa.array(times, pa.timestamp("us", "UTC"))})
        pq.write_table(table, self.folder / "in" / f"{self.files}.parquet")

    def start(self, minute: int, script: str = SCRIPT, cells: int | None = None, **options: Any) -> Query:
        self.minute = minute
        (self.folder / "script.sql").write_text(script)
        return Pipeline.from_script(self.spark, self.folder / "script.sql", cells=cells).start(**options)

    def once(self, minute: int, script: str = SCRIPT, cells: int | None = None) -> None:
        self.start(minute, script, cells, once=True).awaitTermination()

    def names(self, view: str = "active") -> list[str]:
        return sorted(contents(self.store, latest(self.store), view).column("name").to_pylist())

    @property
    def clock(self) -> int:
        """The minute of the last version's clock."""
        found = latest(self.store).clock
        assert found is not None
        return (found - self.micros(0)) // 60_000_000

    def delivered(self) -> list[str]:
        """The rows of all changes in the sink, added up."""
        total: dict[str, int] = {}
        for one in pq.read_table(self.folder / "out").to_pylist():
            total[one["name"]] = total.get(one["name"], 0) + one[MULTIPLICITY]
        assert all(total[name] >= 0 for name in total)
        return sorted(name for name in total for _ in range(total[name]))


def until(true: Callable[[], bool], query: Query) -> None:
    for _ in range(1200):
        if true():
            return
        assert query.exception() is None and query.isActive
        query.awaitTermination(0.1)
    raise AssertionError("it takes too long")


@pytest.mark.full
@pytest.mark.long("runs in two and in three cells, and a backfill")
def test_rows_leave_views_as_each_version_moves_the_clock(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    made = Clocked(spark, tmp_path, monkeypatch)
    made.write(("ada", -50), ("ben", -10), ("cid", -90))
    made.once(0, cells=2)
    assert (made.names(), made.clock) == (["ada", "ben"], 0)
    # The time of a version that is not committed is forgotten; the next try has its own.
    made.write(("dot", 20), ("eve", 35))
    fault.plan("cells done", "raise", "driver")
    with pytest.raises(Exception, match="a fault"):
        made.once(45)
    fault.forget()
    assert (made.names(), made.clock) == (["ada", "ben"], 0)
    # Another number of cells takes nothing back by itself; the versions after it do.
    made.once(80, cells=3)
    assert (made.names(), made.delivered(), made.clock) == (["eve"], ["eve"], 80)
    # A start without rows moves the clock, and a new view begins at it.
    query = made.start(85, SCRIPT + OLD)
    try:
        assert made.clock == 85
        query.processAllAvailable()
        assert (query.filling, made.names("old")) == ((), ["ada", "ben", "cid", "dot"])
        # The clock of a machine that is set back does not take the views back.
        made.minute, before = 10, query.version
        until(lambda: query.version > before + 1, query)
        assert (made.names(), made.clock) == (["eve"], 85)
        made.minute = 95
        until(lambda: made.clock == 95, query)
        assert (made.names(), made.delivered()) == ([], [])
        made.write(("fay", 90))
        query.processAllAvailable()
        assert (made.names(), made.delivered()) == (["fay"], ["fay"])
    finally:
        query.stop()
    assert query.exception() is None and made.names("old") == ["ada", "ben", "cid", "dot", "eve"]


@pytest.mark.full
def test_a_call_of_advance_without_frames_moves_the_clock(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Clocked(spark, tmp_path, monkeypatch)
    job = Pipeline(spark, tmp_path / "ckpt", cells=1).table_of("CREATE TABLE logins (name STRING, ts TIMESTAMP)")
    job.view("active", "SELECT name FROM logins WHERE ts > now() - INTERVAL '1' HOUR")
    rows = spark.createDataFrame(
        [("ada", START - dt.timedelta(minutes=50)), ("ben", START)], "name STRING, ts TIMESTAMP_NTZ"
    )
    assert job.advance({"logins": rows}) == 1
    made.minute = 30
    assert job.advance() == 2
    assert [tuple(row) for row in job.view("active").collect()] == [("ben",)]
    assert [tuple(row) for row in job.changes("active").collect()] == [("ada", -1, 2)]
