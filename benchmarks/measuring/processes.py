"""A measurement in a process of its own, with limits of time and memory."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.measuring.course import LIMIT, PROGRESS
from benchmarks.measuring.environments import python_of
from benchmarks.measuring.machine import ROOT
from benchmarks.measuring.strategies import environment_of

LOOK_EVERY = 0.5
"""Seconds between two samples of the memory of a process and its children."""
GRACE = 10.0
"""Seconds beyond its limit in which a process may end by itself, after its current batch."""
START = 90.0
"""Maximum seconds before the clock of a process starts: Spark and Flink start, data is read, code is compiled."""
_ERROR = re.compile(r"(Caused by: )?[\w.]*(Error|Exception)\b.*:")


def measured(
    workload: str,
    case: str,
    strategy: str,
    *,
    limit: float = float("inf"),
    memory: float = float("inf"),
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Measure a strategy. ``limit`` in seconds of the run itself, ``memory`` in bytes of the process and its children.

    The result has ``missing`` if the peer is not installed; ``cut``, with the rate so far, if the process was ended;
    and ``failed``, with its last line, if it failed.
    """
    python: Path | str = sys.executable
    variables = dict(environment or {})
    peers = environment_of(strategy)
    if peers is not None:
        found = python_of(peers)
        if found is None:
            return {"missing": f"not installed: python -m benchmarks install {peers}"}
        python = found
    if peers == "flink":
        from freshviews.spark.java import JavaError, java_home

        try:
            home = java_home(os.environ)
        except JavaError as error:
            return {"missing": str(error)}
        variables |= {"JAVA_HOME": home} if home else {}
    worker = Worker([str(python), "-m", "benchmarks.measuring.worker", workload, case, strategy], limit, memory)
    return worker.run(variables)


def in_own_process(
    workload: str, case: str, strategy: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a part of a measurement in a process of its own, in our environment and without limits."""
    command = [sys.executable, "-m", "benchmarks.measuring.worker", workload, case, strategy]
    worker = Worker(command, float("inf"), float("inf"))
    found = worker.run(environment)
    if "failed" in found:
        raise RuntimeError(f"{workload} {case}: {strategy}: {found['failed']}")
    return found


class Worker:
    """A measuring process: its reports so far, and the maximum of its memory."""

    def __init__(self, command: list[str], limit: float, memory: float) -> None:
        self._command = command
        self._limit, self._memory = limit, memory
        self._result: dict[str, Any] | None = None
        self._progress: dict[str, Any] = {}
        self._last = self._error = ""
        self._most = 0
        self._begun: float | None = None

    def run(self, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        variables = {**os.environ, "PYTHONPATH": path, LIMIT: str(self._limit), **(environment or {})}
        process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        ended = self._watch(process)
        if process.poll() is None or self._result is not None:
            _end(process)
        process.wait()
        reader.join(5)
        if self._result is not None:
            self._result["peak_bytes"] = max(self._most, self._result.get("peak_bytes", 0))
            return self._result
        if ended or process.returncode == -signal.SIGKILL:
            return self._cut(ended or "the system ended it")
        return {"failed": self._error or self._last or f"ended with {process.returncode}"}

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                try:
                    report = json.loads(line)
                except ValueError:
                    continue
                if PROGRESS in report:
                    self._progress = report[PROGRESS]
                    self._begun = self._begun or time.perf_counter()
                else:
                    self._result = report
                    return
            elif line.strip():
                self._last = line.strip()
                if _ERROR.match(self._last):
                    self._error = self._last[:300]

    def _watch(self, process: subprocess.Popen[str]) -> str:
        """Wait for the process; return the reason for which it was killed, or nothing."""
        start = looked = time.perf_counter()
        while process.poll() is None and self._result is None:
            time.sleep(0.02)
            now = time.perf_counter()
            if now - looked > LOOK_EVERY:
                looked = now
                used = resident_of(process.pid)
                self._most = max(self._most, used)
                if used > self._memory:
                    return f"out of memory, with {used / 2**30:.1f} GiB"
            if self._begun is None and now - start > self._limit + START:
                return f"cut off after {self._limit + START:g} s, before the first batch"
            if self._begun is not None and now - self._begun > self._limit + GRACE:
                return f"cut off after {self._limit:g} s"
        return ""

    def _cut(self, why: str) -> dict[str, Any]:
        report = self._progress
        found: dict[str, Any] = {"cut": why, "peak_bytes": self._most, **report}
        if report.get("rows") and report.get("wall_seconds"):
            found["cut"] = f"{why}, in batch {report['steps_done'] + 1:,}"
            # The time of the unfinished batch counts.
            found["rows_per_second"] = report["rows"] / max(report["wall_seconds"], self._limit)
        elif self._begun is not None:
            found["cut"] = f"{why}, in the first batch"
        return found


def resident_of(root: int) -> int:
    """Bytes of memory in use by a process and its descendants (Linux)."""
    return sum(int(stat[21]) for stat in _tree_of(root)) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds_of(root: int) -> float:
    """CPU seconds that a process, its descendants, and the children that they waited for have used (Linux)."""
    ticks = sum(int(word) for stat in _tree_of(root) for word in stat[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _tree_of(root: int) -> list[list[str]]:
    """The words of /proc/PID/stat after the name, of a process and its descendants."""
    children: dict[int, list[int]] = {}
    found: dict[int, list[str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(stat[1]), []).append(int(entry))
            found[int(entry)] = stat
    stats, waiting = [], [root]
    while waiting:
        one = waiting.pop()
        if one in found:
            stats.append(found[one])
        waiting += children.get(one, [])
    return stats


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
