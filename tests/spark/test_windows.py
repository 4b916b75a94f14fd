"""Tables with a window in several cells: an engine before the cells maintains the window, and is recovered."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.errors import UnsupportedSql
from freshviews.spark import Pipeline
from freshviews.spark.definition import catalog_of
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAMING TABLE clicks (page BIGINT, person BIGINT) USING parquet OPTIONS (path 'clicks')
  TBLPROPERTIES ('freshviews.window' = '50 rows');
CREATE STREAMING TABLE visits (id BIGINT, person BIGINT, at TIMESTAMP NOT NULL, PRIMARY KEY (id))
  USING parquet OPTIONS (path 'visits', bad_rows 'bad') TBLPROPERTIES ('freshviews.window' = '60 seconds on at');
CREATE MATERIALIZED VIEW by_page USING parquet OPTIONS (path 'out/by_page')
  AS SELECT page, COUNT(*) AS n FROM clicks JOIN visits USING (person) GROUP BY page;
CREATE MATERIALIZED VIEW people AS SELECT person, COUNT(*) AS n FROM visits GROUP BY person;
CREATE MATERIALIZED VIEW latest_clicks AS SELECT page, person FROM clicks;
"""
LATER = "CREATE MATERIALIZED VIEW pages AS SELECT page, COUNT(*) AS n FROM clicks GROUP BY page;"


class Clicks:
    """Both tables, and their rows that are in the windows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.random = random.Random(3)
        self.clicks: list[tuple[int, int]] = []
        self.visits: list[tuple[int, int, dt.datetime]] = []
        self.latest = dt.datetime(2026, 1, 1)
        self.files = self.ids = self.bad = 0
        for name in ("clicks", "visits"):
            (folder / name).mkdir()

    def write(self, bad: int = 1) -> None:
        """A file per table. ``bad``: rows with a key that is in the window; rows that are too late are never bad."""
        self.files += 1
        pick = self.random.randrange
        clicks = [(pick(4), pick(6)) for _ in range(pick(5, 70))]
        self.clicks = [*self.clicks, *clicks][-50:]
        visits = []
        for _ in range(20):
            self.ids += 1
            at = self.latest + dt.timedelta(seconds=pick(-80, 9))
            visits.append((self.ids, pick(6), at))
            self.latest = max(self.latest, at)
            since = self.latest - dt.timedelta(seconds=60)
            self.visits = [row for row in [*self.visits, visits[-1]] if row[2] > since]
        visits += [(self.visits[-1][0], 0, self.latest)] * bad
        self.bad += bad
        for name, columns, rows in (("clicks", ("page", "person"), clicks), ("visits", ("id", "person", "at"), visits)):
            pq.write_table(pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True))), self.folder / "aside")
            (self.folder / "aside").rename(self.folder / name / f"{self.files}.parquet")
            os.utime(self.folder / name / f"{self.files}.parquet", (1_000_000_000 + self.files,) * 2)

    def check(self) -> None:
        store = store_of(self.folder / "clicks.checkpoint")
        manifest = latest(store)
        expected = {
            "by_page": Counter(
                Counter(page for page, person in self.clicks for visit in self.visits if visit[1] == person).items()
            ),
            "people": Counter(Counter(visit[1] for visit in self.visits).items()),
            "latest_clicks": Counter(self.clicks),
            "pages": Counter(Counter(page for page, _ in self.clicks).items()),
        }
        for view in manifest.views:
            rows = Counter(tuple(row.values()) for row in contents(store, manifest, view).to_pylist())
            assert rows == expected[view], view
        reported: Counter[tuple[Any, ...]] = Counter()
        for path in (self.folder / "out" / "by_page").glob("*.parquet"):
            for row in pq.read_table(path).to_pylist():
                reported[row["page"], row["n"]] += row["_multiplicity"]
        assert {row: m for row, m in reported.items() if m} == expected["by_page"]
        assert manifest.totals["bad"] == {"visits": self.bad}
        reported_bad = [json.loads(path.read_text()) for path in (self.folder / "bad").iterdir()]
        assert len(reported_bad) == self.bad and {one["row"] for one in reported_bad} == {21}


def run(spark: Any, folder: Path, cells: int | None = None, more: str = "") -> None:
    (folder / "clicks.sql").write_text(SCRIPT + more)
    Pipeline.from_script(spark, folder / "clicks.sql", cells=cells).start(once=True).awaitTermination()


@pytest.mark.full
@pytest.mark.long("a version after each fault, and programs for two numbers of cells, which are compiled first")
def test_windows_in_several_cells_equal_a_window_over_all_rows(spark: Any, tmp_path: Path, fault: Fault) -> None:
    clicks = Clicks(tmp_path)
    store = store_of(tmp_path / "clicks.checkpoint")
    clicks.write()
    run(spark, tmp_path, 3)
    clicks.check()
    # A version that fails in the stage before the cells, or after both stages when windows have moved in the memory of
    # a worker, leaves them as they were.
    for step, what, who in (("changes written", "kill", "worker"), ("cells done", "raise", "driver")):
        clicks.write()
        before = latest(store)
        fault.plan(step, what, who)
        with pytest.raises((PipelineError, RuntimeError)):
            run(spark, tmp_path)
        assert fault.met and latest(store) == before
        fault.forget()
    run(spark, tmp_path)
    clicks.check()
    clicks.write()
    run(spark, tmp_path, 2, LATER)
    clicks.check()
    assert sorted(latest(store).cells) == ["0", "1", "2", "merge"]
    # Two files in a version: the older one is applied first.
    clicks.write(bad=0)
    clicks.write(bad=0)
    run(spark, tmp_path, more=LATER)
    clicks.check()
    with pytest.raises(CheckpointError, match="the window of table clicks cannot continue in one cell: its rows in 2"):
        run(spark, tmp_path, 1, more=LATER)


def test_a_window_keeps_its_rows_in_more_cells(spark: Any, tmp_path: Path) -> None:
    clicks = Clicks(tmp_path)
    clicks.write()
    run(spark, tmp_path)
    store = store_of(tmp_path / "clicks.checkpoint")
    assert list(latest(store).cells) == ["0"]  # Unless more are requested.
    clicks.check()
    clicks.write()
    run(spark, tmp_path, 2)
    clicks.check()
    clicks.write()
    run(spark, tmp_path)
    clicks.check()


LATE = """
CREATE STREAMING TABLE clicks (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10' MINUTES)
  USING parquet OPTIONS (path 'clicks', bad_rows 'bad');
CREATE MATERIALIZED VIEW known AS SELECT id, COUNT(*) AS n FROM clicks GROUP BY id;
"""


@pytest.mark.full
def test_late_rows_of_several_cells_are_set_aside(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "clicks").mkdir()
    (tmp_path / "clicks.sql").write_text(LATE)
    store = store_of(tmp_path / "clicks.checkpoint")

    def arrive(number: int, rows: dict[int, int]) -> None:
        """Rows in a file, each with its minute, and a run that takes them."""
        times = [dt.datetime(2026, 3, 1, 12) + dt.timedelta(minutes=minute) for minute in rows.values()]
        table = pa.table({"id": [*rows], "ts": pa.array(times, pa.timestamp("us", "UTC"))})
        pq.write_table(table, tmp_path / "clicks" / f"{number}.parquet")
        Pipeline.from_script(spark, tmp_path / "clicks.sql", cells=2).start(once=True).awaitTermination()

    arrive(1, {1: 0, 2: 60, 3: 5})
    arrive(2, {4: 49, 5: 50, 6: 70, 7: 49})
    arrive(3, {8: 59, 9: 60})
    manifest = latest(store)
    rows = contents(store, manifest, "known").to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 5, 6, 9]
    assert manifest.totals["bad"] == {"clicks": 3}
    files = (tmp_path / "bad").iterdir()
    bad = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    reasons = {one["input"]["id"]: one["reason"] for one in bad}
    assert reasons.keys() == {4, 7, 8}
    assert "ts 2026-03-01 12:59:00 is before the watermark 2026-03-01 13:00:00" in reasons[8]


def test_a_pipeline_drops_no_late_rows() -> None:
    script = "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts) TBLPROPERTIES ('freshviews.late' = 'drop')"
    with pytest.raises(UnsupportedSql, match=r"of table t in a pipeline is not supported; write OPTIONS \(bad_rows"):
        catalog_of(script)
