"""Executors in processes of their own, also under a real master: killed ones are replaced and nothing is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import pipeline
from freshviews.spark.crash_points import WORKER
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.state import probe
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from tests.spark.clusters import EXECUTOR, SECONDS, running, standalone
from tests.spark.faults import Fault, command_of, descendants, environment, kill
from tests.spark.shop import EVERY_SINK, Shop, check

pytestmark = [pytest.mark.spark, pytest.mark.full]

EVERY = "KILLS" in os.environ

@pytest.mark.long("a cluster, and a version after each kill, which takes seconds")
@pytest.mark.kills
def test_executors_killed_at_every_step_lose_nothing(tmp_path: Path) -> None:
    """Spark repeats the task on another executor, in the same micro-batch. Its Java process is killed at every second
    step, its Python worker at the others; both at every step under ``make kills``."""
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    fault = Fault(tmp_path / "fault")
    with running(tmp_path, "local-cluster[2,1,1024]", environment(fault)) as started:
        started.next_version()
        started.next_version()
        for number, step in enumerate(WORKER):
            faults = ("kill java", "kill")
            for what in faults if EVERY else faults[number % 2 :][:1]:
                fault.plan(step, what, "worker")
                shop.write(orders=0)
                started.next_version()
                assert fault.met, (step, what)
        started.stop()
    check(tmp_path, shop)


@pytest.mark.long("nine Java processes on the cores of one machine, and a version after each kill")
@pytest.mark.kills
def test_64_cells_survive_kills_of_executors(tmp_path: Path) -> None:
    """Eight cells per executor; the cells of a killed executor continue in another one that has its own in memory."""
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    fault = Fault(tmp_path / "fault")
    small = ("--conf", "spark.executor.memory=512m", "--conf", "spark.network.timeout=600s")
    store = store_of(tmp_path / "shop.checkpoint")
    with running(tmp_path, "local-cluster[8,1,512]", environment(fault), *small, cells=64) as started:
        started.next_version()
        started.next_version()
        for step, what in (("rows applied", "kill java"), ("log written", "kill")):
            fault.plan(step, what, "worker")
            shop.write(orders=0)
            started.next_version()
            assert fault.met, (step, what)
        for _ in range(2):
            shop.write(orders=0)
            executors = [one for one in descendants(started.process.pid) if EXECUTOR in command_of(one)]
            kill(executors[0])
            started.next_version()
        started.stop()
    check(tmp_path, shop)
    manifest = Manifests(store).latest()
    assert manifest is not None and {*map(str, range(64))} <= manifest.cells.keys()


@pytest.mark.long("a master and two workers start, and an executor is replaced")
@pytest.mark.kills
def test_a_master_with_two_workers_replaces_a_killed_executor(tmp_path: Path) -> None:
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    given = {**environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    with standalone(tmp_path) as (master, workers), running(tmp_path, master, given) as started:
        started.next_version()
        started.next_version()
        # Both of them under make kills.
        for worker in workers if EVERY else workers[:1]:
            shop.write(orders=0)
            executors = [one for one in descendants(worker.pid) if EXECUTOR in command_of(one)]
            assert executors, (tmp_path / "cluster").read_text()
            kill(executors[0])
            started.next_version()
            shop.write(orders=0)
            started.next_version()
        started.stop()
    check(tmp_path, shop)


UNSEEN = "does not see the checkpoint of the driver at {}; .*use a folder that is mounted everywhere"


def test_a_worker_with_another_checkpoint_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads other data than this driver wrote. The next test has another disk instead."""
    Shop(tmp_path, script=EVERY_SINK).write()

    def announce(store: Store) -> None:
        probe.announce(store)
        store.write("probe/driver", b"another driver")

    monkeypatch.setattr(pipeline, "announce", announce)
    made = pipeline.Pipeline.from_script(spark, tmp_path / "shop.sql", cells=2)
    with pytest.raises(PipelineError, match=UNSEEN.format(tmp_path / "shop.checkpoint")):
        made.start(once=True)
    assert Manifests(store_of(tmp_path / "shop.checkpoint")).versions() == []
    assert not (tmp_path / "out").exists()


@pytest.mark.long("a master and two workers start")
@pytest.mark.kills
def test_a_worker_with_a_private_disk_is_refused(tmp_path: Path) -> None:
    """One of two workers has a disk of its own at the path of the checkpoint."""
    private = tmp_path / "shop.checkpoint"
    private.mkdir()
    mount = f"mount -t tmpfs tmpfs {private} && exec \"$@\""
    apart = ("unshare", "-m", "sh", "-c", mount, "sh")
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("a disk of its own for a process needs the right to mount one")
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--once", "--cells", "2", "--master"]
    with standalone(tmp_path, before=((), apart)) as (master, _):
        done = subprocess.run(
            [*command, master],
            cwd=tmp_path,
            env={**environment(), "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert done.returncode == 1 and re.search(UNSEEN.format(private), done.stderr), done.stderr
    assert Manifests(store_of(private)).versions() == []
    assert not (tmp_path / "out").exists()
