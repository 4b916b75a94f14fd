"""Executors in processes of their own, also under a real master: killed, they are replaced and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark.crash_points import WORKER
from tests.spark.faults import Fault, command_of, descendants, environment, gone, kill
from tests.spark.shop import EVERY_SINK, Shop, check

pytestmark = [pytest.mark.spark, pytest.mark.full]

SECONDS = 180
EXECUTOR = "CoarseGrainedExecutorBackend"


class Running:
    """A pipeline that runs until it is stopped, with its versions as they come."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder = folder
        self.process = process
        self.version = 0

    def next_version(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self.folder / "errors").read_text()
        self.version += 1
        assert json.loads(line)["version"] == self.version

    def stop(self) -> None:
        """As Ctrl-C does."""
        below = descendants(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(SECONDS) == 0, (self.folder / "errors").read_text()
        assert not gone(below)


@contextmanager
def running(folder: Path, master: str, given: dict[str, str]) -> Iterator[Running]:
    command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--json", "--master", master, "--cells", "2"]
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(command, cwd=folder, env=given, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield Running(folder, process)
        finally:
            left = descendants(process.pid)
            process.kill()
            for one in gone(left, 5):
                kill(one)


@pytest.mark.long("a cluster, and a version after each kill, which takes seconds")
def test_executors_of_a_local_cluster_killed_at_every_step(tmp_path: Path) -> None:
    """Spark tries the task again on another executor, in the same micro-batch."""
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    fault = Fault(tmp_path / "fault")
    with running(tmp_path, "local-cluster[2,1,1024]", environment(fault)) as pipeline:
        pipeline.next_version()
        pipeline.next_version()
        for step in WORKER:
            for what in ("kill java", "kill"):
                fault.plan(step, what, "worker")
                shop.write(orders=0)
                pipeline.next_version()
                assert fault.met, (step, what)
        pipeline.stop()
    check(tmp_path, shop)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def standalone(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A master and two workers of one core; they know nothing of this package."""
    import pyspark

    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    master = f"spark://127.0.0.1:{free_port()}"
    given = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    for name in ("PYTHONPATH", "FAULT", "FRESHVIEWS_CACHE_DIR"):
        given.pop(name, None)
    deploy = "org.apache.spark.deploy"
    port = master.rpartition(":")[2]
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[f"{deploy}.master.Master", *where, "--port", port]]
    for number in range(2):
        size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
        commands.append([f"{deploy}.worker.Worker", *where, *size, master])
    started: list[subprocess.Popen[bytes]] = []
    with (folder / "cluster").open("wb") as log:
        try:
            for command in commands:
                started.append(subprocess.Popen([spark_class, *command], env=given, stdout=log, stderr=log))
                wait_for_start(folder / "cluster", len(started))
            yield master, started[1:]
        finally:
            below = [one for process in started for one in descendants(process.pid)]
            for process in reversed(started):
                process.terminate()
            for process in started:
                process.wait(20)
            for one in gone(below, 10):
                kill(one)


def wait_for_start(path: Path, number: int) -> None:
    """Until a log says that the first process is a master that works, or that so many workers are with it."""
    until = time.time() + 60
    while time.time() < until:
        said = path.read_text(errors="replace")
        if ("ALIVE" in said) if number == 1 else (said.count("Successfully registered with master") >= number - 1):
            return
        time.sleep(0.1)
    raise AssertionError(path.read_text())


@pytest.mark.long("a master and two workers start, and an executor is replaced")
def test_a_master_with_two_workers_of_which_one_loses_its_executor(tmp_path: Path) -> None:
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    given = {**environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    with standalone(tmp_path) as (master, workers), running(tmp_path, master, given) as pipeline:
        pipeline.next_version()
        pipeline.next_version()
        for worker in workers:
            shop.write(orders=0)
            executors = [one for one in descendants(worker.pid) if EXECUTOR in command_of(one)]
            assert executors, (tmp_path / "cluster").read_text()
            kill(executors[0])
            pipeline.next_version()
            shop.write(orders=0)
            pipeline.next_version()
        pipeline.stop()
    check(tmp_path, shop)
