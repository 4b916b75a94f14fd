"""Spark's own ``spark-pipelines``, over a server of Spark Connect whose catalog lasts from run to run."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from freshviews.spark.java import java_home

PARTS = ("grpc", "grpc_status", "zstandard", "google.rpc", "yaml")
"""The packages that spark-pipelines needs in addition to pyspark."""
_SECONDS = 240


def lacking() -> list[str]:
    """The parts that are not installed."""
    return [name for name in PARTS if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True)
class SparkPipelines:
    """A server. ``folder``: where its tables are."""

    folder: Path
    remote: str

    def run(self, spec: Path, *options: str) -> subprocess.CompletedProcess[str]:
        """Run a project by Spark's command."""
        command = [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(spec), *options]
        given = {**os.environ, "SPARK_REMOTE": self.remote}
        return subprocess.run(command, env=given, capture_output=True, text=True, timeout=_SECONDS, cwd=self.folder)

    def table(self, name: str) -> Path:
        return self.folder / "spark-warehouse" / name


@contextmanager
def server(folder: Path) -> Iterator[SparkPipelines]:
    """Start a server, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = str(Path(pyspark.__file__).parent)
    java = java_home(os.environ)
    given = {**os.environ, "SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable} | ({"JAVA_HOME": java} if java else {})
    settings = {"spark.connect.grpc.binding.port": str(port), "spark.ui.enabled": "false", "spark.driver.memory": "1g",
                "spark.sql.shuffle.partitions": "1"}  # fmt: skip
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [f"{home}/bin/spark-class", "org.apache.spark.deploy.SparkSubmit", "--master", "local[1]", *words]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=given, stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.time() + _SECONDS
        while "Spark Connect server started" not in (folder / "log").read_text():
            assert process.poll() is None and time.time() < end, (folder / "log").read_text()
            time.sleep(0.2)
        yield SparkPipelines(folder, f"sc://localhost:{port}")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
