"""Pipelines in processes of their own, and Spark clusters for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from demo.servers import free_port
from tests.spark.faults import descendants, gone, kill
from tests.tiers import QUICK_JAVA

SECONDS = 180
EXECUTOR = "CoarseGrainedExecutorBackend"


class Running:
    """A pipeline that runs until it is stopped, and the versions that it reports."""

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
        """Stop it as Ctrl-C does."""
        below = descendants(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(SECONDS) == 0, (self.folder / "errors").read_text()
        assert not gone(below)


@contextmanager
def running(folder: Path, master: str, given: dict[str, str], *more: str, cells: int = 2) -> Iterator[Running]:
    """Start a pipeline. ``more``: options of ``freshviews run``."""
    command = [sys.executable, "-m", "freshviews.cli", "run", "shop.sql", "--json", "--master", master]
    command += ["--cells", str(cells), "--conf", f"spark.executor.extraJavaOptions={QUICK_JAVA}", *more]
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


@contextmanager
def standalone(
    folder: Path, given: Mapping[str, str] | None = None, before: tuple[tuple[str, ...], ...] = ((), ())
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A master and two workers of one core each, without this package.

    Executors of worker n have their scratch in the folder ``scratch<n>``. ``given``: additions to the environment of
    the workers; ``before[n]``: a command that runs the command of worker n.
    """
    import pyspark

    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    master = f"spark://127.0.0.1:{free_port()}"
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", **(given or {})}
    for name in ("PYTHONPATH", "FAULT", "FRESHVIEWS_CACHE_DIR", "FRESHVIEWS_WEBHDFS"):
        env.pop(name, None)
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
            for number, command in enumerate(commands):
                own = {**env, "SPARK_LOCAL_DIRS": str(folder / f"scratch{number - 1}")} if number else env
                whole = [*(before[number - 1] if number else ()), spark_class, *command]
                started.append(subprocess.Popen(whole, env=own, stdout=log, stderr=log))
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
    """Wait until the log shows that the first process is a running master, or that this number of workers has
    joined."""
    until = time.time() + 180
    while time.time() < until:
        said = path.read_text(errors="replace")
        if ("ALIVE" in said) if number == 1 else (said.count("Successfully registered with master") >= number - 1):
            return
        time.sleep(0.1)
    raise AssertionError(path.read_text())
