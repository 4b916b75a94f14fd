"""A pipeline whose checkpoint is in an object store or in HDFS, with processes that share no disk.

Scratch folders of executors are private, and are deleted with them: all that a version needs is on the server.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.crash_points import DRIVER, WORKER
from freshviews.spark.reading.contents import latest, status
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.clusters import EXECUTOR, running, standalone
from tests.spark.conftest import address_elsewhere
from tests.spark.faults import Fault, command_of, descendants, environment, kill
from tests.spark.shop import EVERY_SINK, Shop, check

pytestmark = [pytest.mark.spark, pytest.mark.full]

KILLS = int(os.environ.get("KILLS", "1"))
EVERY = "KILLS" in os.environ
"""If set, the driver is killed at every step, else only at those of ``FEW``."""
STEPS = (*WORKER, *(step for step in DRIVER if not step.startswith("manifest ") or step == "manifest in place"))
"""A put is whole or not at all, so a manifest is never half written."""
FEW = {"s3": STEPS[4:5], "gcs": STEPS[3::8], "hdfs": ("manifest in place",), "azure": STEPS[5::8]}
IMAGES = {"FRESHVIEWS_SMALLEST_IMAGE": "50"}
"""Small images, so that cells are restored from images, too."""
MOST_VERSIONS = 20
"""Number of versions after which a cell has an image, although images are written in the background."""


@pytest.fixture(params=["s3", "gcs", "hdfs", "azure"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return address_elsewhere(kind, request, monkeypatch)


def run(folder: Path, address: str, fault: Fault | None = None) -> tuple[int, str]:
    command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--once", "--master", "local[2]"]
    done = subprocess.run(
        [*command, "--cells", "2", "--checkpoint", address],
        cwd=folder,
        env={**environment(fault), **IMAGES},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stderr


@pytest.fixture
def whole(request: pytest.FixtureRequest, address: str) -> Callable[[Path], None]:
    """Runs that are not killed: in processes of their own under ``make kills``, else in the session of the tests, which
    takes a third of the time. The workers of the session get the environment by which they find the server."""

    def in_process(folder: Path) -> None:
        code, error = run(folder, address)
        assert code == 0, error

    def in_session(folder: Path) -> None:
        spark = request.getfixturevalue("spark")
        before = spark.sparkContext.environment
        spark.sparkContext.environment = {**before, **os.environ, **IMAGES}
        try:
            pipeline = Pipeline.from_script(spark, folder / "shop.sql", cells=2, checkpoint=address)
            pipeline.start(once=True).awaitTermination()
        finally:
            spark.sparkContext.environment = before

    return in_process if EVERY else in_session


@pytest.mark.kills
@pytest.mark.long("a pipeline starts anew after each kill, which takes seconds")
def test_a_killed_driver_restores_the_spark_checkpoint_from_the_server(
    tmp_path: Path, kind: str, address: str, whole: Callable[[Path], None]
) -> None:
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    whole(tmp_path)
    fault = Fault(tmp_path / "fault")
    for number, step in enumerate(STEPS if EVERY else FEW[kind]):
        shop.write()
        fault.plan(step, "kill" if number % 2 else "kill java", "driver")
        code, error = run(tmp_path, address, fault)
        assert (code, fault.met) == (-signal.SIGKILL if number % 2 else 1, True), (step, code, error)
    assert run(tmp_path, address)[0] == 0
    check(tmp_path, shop, checkpoint=address)
    before = latest(store_of(address)).version
    whole(tmp_path)
    assert latest(store_of(address)).version == before
    assert not list(tmp_path.glob("*checkpoint*")) and not list(tmp_path.glob(f"{kind}*"))
    found = status(store_of(address))
    assert found.running is None and found.delivered == before and found.error is None


def vanish(scratch: Path) -> None:
    """Delete a worker's scratch disk."""
    for path in scratch.glob("*"):
        shutil.rmtree(path, ignore_errors=True)


@pytest.mark.long("a master and two workers start, and executors are replaced")
@pytest.mark.kills
def test_executors_killed_at_random_lose_nothing(tmp_path: Path, address: str) -> None:
    """Executors, their Python workers and the driver, while input is written; cells continue elsewhere."""
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    seed = int(os.environ.get("KILLS_SEED", "5"))
    chance = random.Random(seed)
    given = {**environment(), **IMAGES, "SPARK_LOCAL_IP": "127.0.0.1"}
    smallest = IMAGES["FRESHVIEWS_SMALLEST_IMAGE"]
    more = ["--checkpoint", address, "--conf", f"spark.executorEnv.FRESHVIEWS_SMALLEST_IMAGE={smallest}"]
    with standalone(tmp_path) as (master, workers):
        left = KILLS
        while left > 0:
            with running(tmp_path, master, given, *more) as pipeline:
                pipeline.version = (Manifests(store_of(address)).versions() or [0])[-1]
                for _ in range(MOST_VERSIONS):
                    shop.write(orders=0)
                    pipeline.next_version()
                    if any(cell["image"] for cell in latest(store_of(address)).cells.values()):
                        break
                else:
                    pytest.fail(f"no cell has an image after {MOST_VERSIONS} versions")
                while left > 0:
                    left -= 1
                    victim = chance.choice(("executor", "executor", "python", "driver"))
                    if victim == "driver":
                        shop.write(orders=0)
                        break
                    number = chance.randrange(2)
                    below = descendants(workers[number].pid)
                    wanted = EXECUTOR if victim == "executor" else "pyspark.daemon"
                    found = [one for one in below if wanted in command_of(one)]
                    assert found or victim == "python", (seed, (tmp_path / "cluster").read_text())
                    for one in found:
                        kill(one)
                    if victim == "executor":
                        vanish(tmp_path / f"scratch{number}")
                    shop.write(orders=0)
                    pipeline.next_version()
                    shop.write(orders=0)
                    pipeline.next_version()
                else:
                    pipeline.stop()
        with running(tmp_path, master, given, *more, "--once") as pipeline:
            assert pipeline.process.wait(180) == 0, (tmp_path / "errors").read_text()
    check(tmp_path, shop, checkpoint=address)


@pytest.mark.large(4)
@pytest.mark.long("a pipeline runs once, and two commands start")
def test_the_query_and_status_commands_read_the_checkpoint_on_the_server(
    tmp_path: Path, address: str, whole: Callable[[Path], None]
) -> None:
    shop = Shop(tmp_path)
    shop.write()
    whole(tmp_path)
    for command in (["query", "shop.sql", "SELECT * FROM by_part"], ["status", "shop.sql"]):
        done = subprocess.run(
            [sys.executable, "-m", "freshviews.cli", *command, "--checkpoint", address, "--json"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert "bolt" in done.stdout if command[0] == "query" else '"running": null' in done.stdout
        if command[0] == "status":
            assert '"waiting": {"orders": 0, "items": 0}' in done.stdout or '"items": 0' in done.stdout
