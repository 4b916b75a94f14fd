"""Seconds until a restarted pipeline with state delivers its first new micro-batch.

The clock starts with the creation of the pipeline in a new process, with an unused Spark session. With 20 MB of state
it shows the cost of a cold Java process and a new Python worker; with 1 GB, the additional cost of the state. ``cpu``
has the CPU seconds of all processes meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.measuring.processes import cpu_seconds_of, in_own_process
from benchmarks.pipeline.run import Running, folder, scaled, session
from benchmarks.pipeline.state import bytes_of, filled

TITLE = "pipeline, restart"
CASES = ("20 MB of state", "1 GB of state")
STRATEGIES = ("freshviews",)
UNIT = "s"
TARGETS = {"1 GB of state": 5.0}

BYTES = {"20 MB of state": scaled(20_000_000), "1 GB of state": scaled(1_000_000_000)}
PLACE, SIZE = "BENCHMARK_SHOP", "BENCHMARK_BYTES"


def measure(case: str, strategy: str) -> dict[str, Any]:
    """One process builds the state, a second one restarts and is measured: ``fill`` and ``again``."""
    if case == "fill":
        return _fill(Path(os.environ[PLACE]), int(os.environ[SIZE]))
    if case == "again":
        return _again(Path(os.environ[PLACE]))
    with folder() as place:
        there = {PLACE: str(place / "shop"), SIZE: str(BYTES[case])}
        written = in_own_process("pipeline_restart", "fill", strategy, there)
        found = in_own_process("pipeline_restart", "again", strategy, there)
        return {**found, **written}


def _fill(place: Path, size: int) -> dict[str, Any]:
    with session() as spark:
        with filled(spark, place, size) as (shop, running):
            last = running.versions[-1].manifest
        shop.check()
        # The stopped pipeline has not read this file.
        shop.write_small()
    return {"bytes": bytes_of(last), "items": shop.items, "note": f"{bytes_of(last) / 1e6:,.0f} MB"}


def _again(place: Path) -> dict[str, Any]:
    script = place / "shop.sql"
    with session() as spark:
        used = cpu_seconds_of(os.getpid())
        running = Running(spark, script)
        try:
            running.wait_for(lambda: any(version.manifest.rows for version in running.versions))
            used = cpu_seconds_of(os.getpid()) - used
        finally:
            running.query.stop()
        first = next(version for version in running.versions if version.manifest.rows)
        found = {"made": first.manifest.seconds, "rows": first.manifest.rows, "cpu": used}
        return {"value": first.at - running.started, **found}
