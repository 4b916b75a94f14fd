"""Measures how many seconds each phase of making a version takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

PHASES = {
    "plan": "build the plan of the Spark job",
    "read": "the rest of the Spark job: its start, reading, routing, the shuffle, handing rows to the workers",
    "load": "load cells that are not in memory",
    "compile": "compile the functions of the views, or load their machine code from the cache",
    "apply": "apply rows to the engine",
    "sync": "write the log and the changes of the views, and sync them",
    "merge": "bring changes of groups that cells share through the merge",
    "manifest": "write and sync the manifest, which commits the version",
    "sinks": "deliver to all sinks, and note that",
    "collect": "delete files that no kept version needs",
}
"""The work of each phase, in order."""


class Phases:
    """Seconds by phase. One thread adds, others may read meanwhile."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PHASES, 0.0)

    def add(self, phase: str, seconds: float) -> None:
        """Add seconds to a phase. Raises KeyError for a phase that does not exist."""
        self._seconds[phase] += seconds

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the seconds of a block, also of one that fails."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(phase, time.perf_counter() - start)

    def add_job(self, seconds: float, cells: Sequence[Mapping[str, float]]) -> None:
        """Add a Spark job that took ``seconds``, in which each cell took seconds by phase: load, compile, apply, sync.
        """
        slowest = max(cells, key=lambda by_phase: sum(by_phase.values()), default={})
        for phase, own in slowest.items():
            self.add(phase, own)
        self.add("read", max(0.0, seconds - sum(slowest.values())))

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by phase since the run began, a copy."""
        return dict(self._seconds)
