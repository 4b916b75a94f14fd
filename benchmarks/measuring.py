"""Clocks, processes, statistics, and what the machine is."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("freshviews", "numba", "llvmlite", "numpy", "pyarrow", "duckdb", "pyspark")


class Stopwatch:
    """CPU seconds of the process and wall seconds, from its making on, without what is paused."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0
        self.go()

    def go(self) -> None:
        """Count from now on."""
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def pause(self) -> None:
        """Stop counting until ``go``."""
        self.cpu += time.process_time() - self._cpu
        self.wall += time.perf_counter() - self._wall

    def rates(self, rows: int) -> dict[str, float]:
        """Seconds, and rows per second of either clock."""
        return {
            "rows": rows,
            "cpu_seconds": self.cpu,
            "wall_seconds": self.wall,
            "rows_per_cpu_second": rows / self.cpu,
            "rows_per_second": rows / self.wall,
        }


def in_own_process(
    workload: str, case: str, strategy: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """One measurement of a workload by ``python -m benchmarks.worker`` in a new process."""
    command = [sys.executable, "-m", "benchmarks.worker", workload, case, strategy]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float]) -> float:
    """Half the distance from the least to the greatest, in parts of the median."""
    middle = median(values)
    return (max(values) - min(values)) / 2 / middle if middle else 0.0


def resident_bytes() -> int:
    """Bytes of memory the process has in use (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), platform.processor())
