"""Added views are backfilled while the stream continues, and interruptions lose nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark import crash_points as steps
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.reading.contents import latest, status
from freshviews.spark.running_query import Query
from freshviews.spark.script import read_script
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault, environment
from tests.spark.world import VIEWS, World, check, held_by, write_script
from tests.tiers import CHANGE

pytestmark = pytest.mark.spark

FIRST = ["hops", "by_shop"]
ADDED = ["reached", "weights", "shops"] if CHANGE else [name for name in VIEWS if name not in FIRST]
"""Some need rows that no cell has yet, some are merged, and one is over an existing view."""


def once(spark: Any, world: World, views: list[str], cells: int | None = None) -> None:
    query = Pipeline.from_script(spark, write_script(world.folder, views), cells=cells).start(once=True)
    query.awaitTermination()
    assert query.exception() is None


def start(spark: Any, world: World, views: list[str]) -> Query:
    return Pipeline.from_script(spark, write_script(world.folder, views)).start()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The views stay in backfill, with their images written, until this is set."""
    event = threading.Event()

    def wait(step: str) -> None:
        if step == "images filled":
            assert event.wait(300)

    monkeypatch.setattr(steps, "hook", wait)
    return event


def until(true: Callable[[], bool], query: Query) -> None:
    for _ in range(1200):
        if true():
            return
        assert query.exception() is None and query.isActive
        query.awaitTermination(0.1)
    raise AssertionError("it takes too long")


@pytest.mark.full
@pytest.mark.large(2)
@pytest.mark.parametrize("cells", [3, 1])
def test_versions_are_made_while_new_views_are_backfilled(
    spark: Any, tmp_path: Path, cells: int, held: threading.Event
) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, world, FIRST, cells)
    world.write()
    everything = [*FIRST, *ADDED]
    query = start(spark, world, everything)
    root = tmp_path / "script.checkpoint"
    try:
        for _ in range(3):
            world.write()
            batch = latest(store_of(root)).batch
            until(lambda before=batch: latest(store_of(root)).batch > before, query)  # type: ignore[misc]
        query._query.processAllAvailable()  # type: ignore[union-attr]
        check(world, FIRST)
        assert list(latest(store_of(root)).views) == FIRST
        assert query.lastProgress is not None and set(query.lastProgress["filling"]) == set(everything) - set(FIRST)
        reported = status(store_of(root), read_script((tmp_path / "script.sql").read_text(), tmp_path))
        assert reported.running and set(reported.filling) == set(everything) - set(FIRST)
        held.set()
        query.processAllAvailable()
        check(world, everything)
        assert query.lastProgress is not None and query.lastProgress["filling"] == []
        world.write()
        query.processAllAvailable()
        check(world, everything)
    finally:
        held.set()
        query.stop()
    world.write()
    once(spark, world, everything)
    check(world, everything)


@pytest.mark.full
def test_a_backfill_interrupted_by_stop_is_done_at_the_next_start(
    spark: Any, tmp_path: Path, held: threading.Event
) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, world, FIRST)
    query = start(spark, world, [*FIRST, "reached"])
    world.write()
    until(lambda: latest(store_of(tmp_path / "script.checkpoint")).batch > 0, query)
    threading.Timer(1, held.set).start()
    query.stop()
    assert query.exception() is None
    check(world, FIRST)
    assert list(latest(store_of(tmp_path / "script.checkpoint")).views) == FIRST
    once(spark, world, [*FIRST, "reached"])
    check(world, [*FIRST, "reached"])


@pytest.mark.full
def test_a_view_that_cannot_be_backfilled_ends_the_run(spark: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, world, FIRST)
    before: Manifest = latest(store_of(tmp_path / "script.checkpoint"))
    script = write_script(tmp_path, FIRST)
    wrong = "CREATE MATERIALIZED VIEW wrong AS SELECT SUM(9223372036854775807 + src * src) AS x FROM edges;"
    script.write_text(script.read_text() + wrong)
    query = Pipeline.from_script(spark, script).start()
    with pytest.raises(PipelineError, match=r"^wrong cannot be backfilled: .*; remove the view from the script"):
        query.awaitTermination(120)
    assert latest(store_of(tmp_path / "script.checkpoint")) == before
    world.write()
    once(spark, world, FIRST)
    check(world, FIRST)


def test_a_finite_run_backfills_added_views(spark: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, world, FIRST)
    script = write_script(tmp_path, [*FIRST, "paths"])
    Pipeline.from_script(spark, script).start(trigger={"availableNow": True}).awaitTermination()
    check(world, [*FIRST, "paths"])


@pytest.mark.full
def test_a_worker_killed_during_a_backfill_ends_the_run(spark: Any, tmp_path: Path, fault: Fault) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, world, FIRST, 2)
    fault.plan("image filled", "kill", "worker")
    query = start(spark, world, [*FIRST, "reached"])
    with pytest.raises(PipelineError, match=r"reached cannot be backfilled: .*; start again to try once more"):
        query.awaitTermination(120)
    assert fault.met
    world.write()
    query = start(spark, world, [*FIRST, "reached"])
    query.processAllAvailable()
    query.stop()
    check(world, [*FIRST, "reached"])


@pytest.mark.full
@pytest.mark.kills
def test_a_backfill_is_repeated_after_the_driver_is_killed(spark: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write()
    once(spark, world, FIRST, 2)
    before = {name: world.expected(VIEWS[name]) for name in FIRST}
    world.write()
    script = write_script(tmp_path, [*FIRST, "reached"])
    fault = Fault(tmp_path / "fault")
    fault.plan("images filled", "kill", "driver")
    command = [sys.executable, "-m", "freshviews.cli", "run", script.name, "--master", "local[2]"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(fault), capture_output=True, text=True, timeout=300)
    assert (done.returncode, fault.met) == (-signal.SIGKILL, True), done.stderr
    # A version before the end of the backfill may have included the last rows, or not.
    held = held_by(world, FIRST)
    assert held in (before, {name: world.expected(VIEWS[name]) for name in FIRST})
    world.write()
    once(spark, world, [*FIRST, "reached"])
    check(world, [*FIRST, "reached"])
