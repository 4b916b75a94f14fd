"""The progress of a run, for users of Spark's progress: its listeners, and the names of its fields."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from pyspark.sql.streaming import StreamingQueryListener

from freshviews.spark import Pipeline, Query
from freshviews.spark.driver.progress import KEPT, OURS, Recent, progress
from freshviews.spark.phases import PHASES, Phases
from freshviews.spark.reading.contents import contents, latest, status
from freshviews.spark.script import read_script
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.shop import SCRIPT, Shop

pytestmark = pytest.mark.spark

MERGED = ("durationMs", "stateOperators")
"""Fields of Spark's progress that ours has, too."""


class Listener(StreamingQueryListener):
    """A listener of a Spark user that also reads the run's progress of the same micro-batch."""

    def __init__(self) -> None:
        self.query: Query | None = None
        self.started: list[str] = []
        self.reported: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self.ended: list[str] = []

    def onQueryStarted(self, event: Any) -> None:
        self.started.append(str(event.id))

    def onQueryProgress(self, event: Any) -> None:
        found = [] if self.query is None else self.query.recentProgress
        self.reported.append((event.progress, [one for one in found if one["batchId"] == event.progress.batchId]))

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        self.ended.append(str(event.id))


@pytest.mark.full
def test_progress_records_have_the_same_fields_as_in_spark(
    spark: Any, tmp_path: Path
) -> None:
    shop = Shop(tmp_path)
    shop.write()
    definition, root = read_script(SCRIPT, tmp_path), tmp_path / "ckpt"
    listener, phases = Listener(), Phases()
    spark.streams.addListener(listener)
    try:
        query = Pipeline.of(spark, definition, root, cells=2).start(phases=phases)
        listener.query = query
        try:
            query.processAllAvailable()
            shop.write()
            query.processAllAvailable()
            last = latest(store_of(root))
            end = time.monotonic() + 30
            while not any(one["batchId"] == last.batch for one, _ in listener.reported) and time.monotonic() < end:
                time.sleep(0.1)  # Spark calls its listeners in a thread of its own.
            found = query.recentProgress
        finally:
            query.stop()
        while not listener.ended and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)
    assert listener.started == listener.ended == [query.id]
    # Version 1 is made before Spark's query begins.
    assert [one["version"] for one in found] == list(range(1, last.version + 1)) and found[0]["spark"] is None
    assert found[0]["numInputRows"] == 0 and found[0]["batchId"] == -1
    for one in found[1:]:
        own = next(theirs for theirs, _ in listener.reported if theirs["batchId"] == one["batchId"])
        # Each field that Spark's listeners get exists under Spark's name.
        assert json.loads(one["spark"].json) == json.loads(own.json)
        assert all(one[name] == value for name, value in one["spark"].items() if name not in MERGED)
        assert own["durationMs"].items() <= one["durationMs"].items() and one["sources"] and not own["stateOperators"]
        assert (str(one["id"]), str(one["runId"])) == (query.id, query.runId)
        ours = {name.removeprefix(OURS): ms for name, ms in one["durationMs"].items() if name.startswith(OURS)}
        assert set(ours) == set(PHASES) and 0 < sum(ours.values()) <= own["durationMs"]["triggerExecution"]
    for own, ours in listener.reported:
        if own["numInputRows"] and listener.query is not None and ours:
            assert sum(ours[-1]["rows"].values()) == sum(source["numInputRows"] for source in own["sources"])
    # The sums over the run equal those of status and metrics.
    said = status(store_of(root), definition)
    for table, numbers in said.tables.items():
        assert sum(one["rows"].get(table, 0) for one in found) == numbers["rows"]
    for phase, seconds in phases.seconds.items():
        milliseconds = sum(one["durationMs"][f"{OURS}{phase}"] for one in found)
        assert milliseconds == pytest.approx(1000 * seconds, abs=len(found))
    held = {one["operatorName"]: one for one in found[-1]["stateOperators"]}
    for view, numbers in said.views.items():
        rows = contents(store_of(root), last, view).num_rows
        assert held[f"view {view}"]["numRowsTotal"] == numbers["rows"] == rows
        assert held[f"view {view}"]["memoryUsedBytes"] == numbers["bytes"]
    assert (found[-1]["lag"], found[-1]["version"]) == (said.lag, said.version)
    assert json.loads(json.dumps(found, default=str))[-1]["changed"] == last.changed


def test_progress_is_kept_for_a_hundred_versions() -> None:
    phases = Phases()
    recent = Recent(phases)
    phases.add("apply", 2.0)
    recent.add(Manifest(1, 7, "q", 0.0625, {"t": ""}, {"v": ""}, rows={"t": 3}, seconds=2.5), of_batch=True)
    phases.add("apply", 1.0)
    recent.add(Manifest(2, 7, "q", 1.0, {}, {}), of_batch=False)
    of_batch, filled = recent.versions
    spark = [{"batchId": 6, "numInputRows": 1}, {"batchId": 7, "durationMs": {}}, {"batchId": 7, "numInputRows": 9}]
    made = progress(of_batch, spark)
    assert made["numInputRows"] == 9 and made["spark"] == spark[-1] and made["durationMs"][f"{OURS}apply"] == 2000
    assert made["timestamp"] == "1970-01-01T00:00:00.062Z" and made["batchDuration"] == 2500
    assert made["stateOperators"][1] == {"operatorName": "view v", "numRowsUpdated": 0, "memoryUsedBytes": 0}
    # A backfill is a version of its own, after the previous micro-batch.
    assert progress(filled, spark)["spark"] is None and progress(filled, spark)["durationMs"][f"{OURS}apply"] == 1000
    assert progress(of_batch, [])["numInputRows"] == 3
    for version in range(3, 2 * KEPT):
        recent.add(Manifest(version, version, "q", 1.0, {}, {}), of_batch=True)
    assert [one.manifest.version for one in recent.versions] == list(range(KEPT, 2 * KEPT))
