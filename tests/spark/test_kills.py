"""Killed at any step of a version, a pipeline recovers: views are exact, and every change is delivered once.

The driver and the Java process are killed in pipelines in processes of their own; Python workers, which Spark restarts,
in the session of all tests.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.crash_points import DRIVER, WORKER
from freshviews.spark.reading.contents import latest
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.clusters import running
from tests.spark.faults import Fault, descendants, environment, gone, kill
from tests.spark.shop import EVERY_SINK, Shop, check, delivered
from tests.tiers import QUICK

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("KILLS", "2"))
"""Number of random kills; ``make kills`` has a hundred."""
EVERY = "KILLS" in os.environ
"""If set, driver and Java are killed at every step with one cell and with two; else the driver at each fifth step with
two, and Java at others with one."""


def run(folder: Path, fault: Fault | None = None, cells: int = 1) -> tuple[int, str]:
    """Run the pipeline in a process of its own; returns the exit code and the output. The console's text is stored."""
    command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--once", "--master", "local[2]"]
    with (folder / "printed").open("a") as printed:
        done = subprocess.run(
            [*command, "--cells", str(cells)],
            cwd=folder,
            env=environment(fault),
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    return done.returncode, done.stderr


Whole = Callable[[Path, int], None]
"""Runs a pipeline in a folder, with a number of cells, until it has read the whole input."""


@pytest.fixture
def whole(spark: Any, capsys: pytest.CaptureFixture[str]) -> Whole:
    """Complete runs before and after the killed ones: in processes of their own under ``make kills``, else in the
    session of the tests, which takes a quarter of the time."""

    def in_process(folder: Path, cells: int) -> None:
        code, error = run(folder, cells=cells)
        assert code == 0, error

    def in_session(folder: Path, cells: int) -> None:
        capsys.readouterr()
        Pipeline.from_script(spark, folder / "shop.sql", cells=cells).start(once=True).awaitTermination()
        with (folder / "printed").open("a") as printed:
            printed.write(capsys.readouterr().out)

    return in_process if EVERY else in_session


def begun(folder: Path, cells: int, whole: Whole) -> Shop:
    """A pipeline that has run once, so a kill hits a micro-batch and not the first, empty version."""
    shop = Shop(folder, script=EVERY_SINK)
    shop.write()
    whole(folder, cells)
    return shop


def finish(folder: Path, shop: Shop, cells: int, whole: Whole) -> None:
    """Run once without a fault, then once without input, which makes no version and delivers nothing."""
    whole(folder, cells)
    check(folder, shop, (folder / "printed").read_text())
    version = latest(store_of(folder / "shop.checkpoint")).version
    whole(folder, cells)
    assert latest(store_of(folder / "shop.checkpoint")).version == version
    check(folder, shop, (folder / "printed").read_text())


BOTH = tuple(("worker", step) for step in WORKER) + tuple(("driver", step) for step in DRIVER)
DRIVER_KILLED = [(1, DRIVER), (2, (*WORKER, *DRIVER))] if EVERY else [(2, (*WORKER, *DRIVER)[2::5])]
"""Cells and steps. With several cells the driver has a stage of its own, which runs through the steps of a worker."""
JAVA_KILLED = [(1, BOTH), (2, BOTH)] if EVERY else [(1, BOTH[3::5])]
"""Cells, and steps with the kind of process that runs through them."""


@pytest.mark.long("a pipeline starts anew after each kill, which takes seconds")
@pytest.mark.full
@pytest.mark.parametrize("cells, reached", DRIVER_KILLED)
def test_killing_the_driver_loses_nothing(tmp_path: Path, cells: int, reached: tuple[str, ...], whole: Whole) -> None:
    shop = begun(tmp_path, cells, whole)
    fault = Fault(tmp_path / "fault")
    for step in reached:
        # New input for every kill: the next run must complete the killed one.
        shop.write()
        fault.plan(step, "kill", "driver")
        code, error = run(tmp_path, fault, cells)
        assert (code, fault.met) == (-signal.SIGKILL, True), (step, code, error)
    finish(tmp_path, shop, cells, whole)


@pytest.mark.long("a pipeline starts anew after each kill, which takes seconds")
@pytest.mark.full
@pytest.mark.kills
@pytest.mark.parametrize("cells, reached", JAVA_KILLED)
def test_killing_java_loses_nothing(
    tmp_path: Path, cells: int, reached: tuple[tuple[str, str], ...], whole: Whole
) -> None:
    shop = begun(tmp_path, cells, whole)
    fault = Fault(tmp_path / "fault")
    for who, step in reached:
        shop.write()
        fault.plan(step, "kill java", who)
        code, error = run(tmp_path, fault, cells)
        assert (code, fault.met) == (1, True), (step, code, error)
        assert "resume with: freshviews run shop.sql" in error, (step, error)
        # The state of Spark's own threads differs from run to run.
        assert not EVERY or "Traceback" not in error, (step, error)
    finish(tmp_path, shop, cells, whole)


class InSession:
    """Runs of a pipeline in the session of the tests, whose workers survive from one to the next."""

    def __init__(self, spark: Any, folder: Path, cells: int, capture: pytest.CaptureFixture[str]) -> None:
        self.spark = spark
        self.folder = folder
        self.cells = cells
        self.shop = Shop(folder, script=EVERY_SINK)
        self._capture = capture
        self._printed = ""

    def run(self) -> BaseException | None:
        """Read the input; returns the error that ended the run, if any."""
        try:
            pipeline = Pipeline.from_script(self.spark, self.folder / "shop.sql", cells=self.cells)
            pipeline.start(once=True).awaitTermination()
        except Exception as error:
            return error
        finally:
            self._printed += self._capture.readouterr().out
        return None

    def check(self) -> None:
        assert self.run() is None
        check(self.folder, self.shop, self._printed)


@pytest.fixture(params=[1, 2] if EVERY else [2])
def pipeline(
    request: pytest.FixtureRequest, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[InSession]:
    made = InSession(spark, tmp_path, request.param, capsys)
    made.shop.write()
    assert made.run() is None
    yield made


@pytest.mark.long("two runs of a pipeline for each step and each fault")
def test_a_worker_killed_at_any_step_loses_no_row(pipeline: InSession, fault: Fault) -> None:
    # make test has one kill.
    for number, step in enumerate(WORKER[1:2] if QUICK else WORKER):
        for what in ("kill",) if QUICK else ("kill", "exit" if number % 2 else "raise"):
            pipeline.shop.write(6, 9)
            before = latest(store_of(pipeline.folder / "shop.checkpoint")).version
            fault.plan(step, what, "worker")
            assert pipeline.run() is not None and fault.met, (step, what)
            assert latest(store_of(pipeline.folder / "shop.checkpoint")).version == before
        pipeline.check()


@pytest.mark.long("two runs of a pipeline for each step")
@pytest.mark.full
@pytest.mark.kills
def test_no_process_keeps_the_state_of_a_discarded_try(pipeline: InSession, fault: Fault) -> None:
    """The workers finish and keep their cells, then the version or its delivery fails."""
    reached = DRIVER if pipeline.cells == 1 else (*WORKER, *DRIVER)
    for step in reached:
        pipeline.shop.write(6, 9)
        fault.plan(step, "raise", "driver")
        error = pipeline.run()
        assert fault.met and "a fault" in str(error), (step, error)
        pipeline.check()


@pytest.mark.full
def test_a_repeated_task_applies_no_row_twice(tmp_path: Path) -> None:
    """With three tries per task, the death of a worker is repaired within the micro-batch."""
    shop = Shop(tmp_path)
    shop.write()
    fault = Fault(tmp_path / "fault")
    with running(tmp_path, "local[2,3]", environment(fault)) as pipeline:
        pipeline.next_version()
        pipeline.next_version()
        for step, what in zip(WORKER, ("kill", "exit", "raise"), strict=True):
            fault.plan(step, what, "worker")
            shop.write(orders=0)
            pipeline.next_version()
            assert fault.met, (step, what)
        pipeline.stop()
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()


@pytest.mark.long("a pipeline starts anew after each kill, which takes seconds")
@pytest.mark.full
@pytest.mark.kills
def test_a_pipeline_killed_at_random_moments_stays_exact(tmp_path: Path, whole: Whole) -> None:
    """Kills the driver, the Java process or a Python worker while input is written."""
    shop = Shop(tmp_path, script=EVERY_SINK)
    seed = int(os.environ.get("KILLS_SEED", "7"))
    chance = random.Random(seed)
    command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--master", "local[2]", "--cells", "2"]
    for number in range(KILLS):
        with (
            (tmp_path / "printed").open("a") as printed,
            subprocess.Popen(
                command, cwd=tmp_path, env=environment(), stdout=printed, stderr=subprocess.DEVNULL
            ) as process,
        ):
            shop.write()
            before = versions(tmp_path)
            if chance.random() < 0.8:  # else it is killed while it starts
                wait_for(lambda: versions(tmp_path) > before or process.poll() is not None)  # noqa: B023
            until = time.time() + chance.uniform(0, 3)
            while time.time() < until and process.poll() is None:
                shop.write(10, 30)
                time.sleep(0.2)
            all_of_it = [process.pid, *descendants(process.pid)]
            victim = chance.choice(all_of_it)
            kill(victim)
            if victim != process.pid:
                time.sleep(chance.uniform(0, 1))
            all_of_it += descendants(process.pid)
            process.kill()
        left = gone(all_of_it)
        assert not left, (seed, number, left)
    finish(tmp_path, shop, 2, whole)


def versions(folder: Path) -> int:
    return len(list((folder / "shop.checkpoint" / "manifest").glob("[0-9]*.json")))


def wait_for(condition: Any, seconds: float = 120) -> None:
    until = time.time() + seconds
    while time.time() < until and not condition():
        time.sleep(0.05)


