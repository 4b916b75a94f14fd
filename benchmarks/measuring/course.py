"""One run of a strategy over a stream: times of batches, the limit, progress, and the result."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring.answers import Answer
from benchmarks.measuring.machine import most_resident_bytes
from benchmarks.measuring.stream import Stream

LIMIT = "BENCHMARK_LIMIT"
EXPECTED = "BENCHMARK_EXPECTED"
PROGRESS = "progress"
"""Key of the lines in which a worker reports its progress to the process that may end it."""
REPORT_EVERY = 0.5
"""Seconds between two such lines."""


def limit() -> float:
    """Maximum seconds of a measurement; the run stops after the first batch beyond them."""
    return float(os.environ.get(LIMIT, "inf"))


def expected_answers() -> dict[str, Answer]:
    """Answers of the first strategy of the case, by step, for peers that do not report when they are done."""
    file = os.environ.get(EXPECTED)
    found: dict[str, Answer] = json.loads(Path(file).read_text()) if file else {}
    return found


class Course:
    """Times the batches of a stream one by one.

    ``for i, step in course:`` yields the steps. ``go`` and ``stop`` surround the timed work; a batch may have several
    such pieces. The steps before ``Stream.before`` are not timed. The loop ends with the stream, or with the first
    batch after the limit. If only some steps are timed (``sampled``), the rate is that of their rows. If all steps up
    to a point of comparison are applied at once (``grouped``), batches have no latency.
    """

    def __init__(self, stream: Stream, *, sampled: Sequence[int] | None = None, grouped: bool = False) -> None:
        self.stream = stream
        self.answers: dict[str, Answer] = {}
        self.compared = frozenset(stream.compared)
        self._sampled = None if sampled is None else frozenset(sampled)
        self._grouped = grouped
        self._until = limit()
        self._wall = self._cpu = 0.0
        self._rows = self._steps = self._delta_rows = 0
        self._taken: list[float] = []
        self._batch = 0.0
        self._since = self._cpu_since = 0.0
        self._read_rows, self._read_seconds = 0, 0.0
        self._over = False
        self.ready = 0.0
        """Seconds from the definition of the view to the end of the first batch of a warming run; 0 if unknown."""
        gc.collect()
        gc.freeze()
        self._started = self._reported = time.perf_counter()
        self._tell()

    def _tell(self) -> None:
        print(json.dumps({PROGRESS: self._so_far()}), flush=True)

    def __iter__(self) -> Any:
        for i, step in enumerate(self.stream.steps):
            self._batch = 0.0
            yield i, step
            self._steps = i + 1
            if i >= self.stream.before and (self._sampled is None or i in self._sampled):
                self._rows += len(step.rows)
                if not self._grouped or i in self.compared:
                    self._taken.append(self._batch)
            now = time.perf_counter()
            if now - self._reported > REPORT_EVERY:
                self._reported = now
                self._tell()
            if now - self._started > self._until and i + 1 < len(self.stream.steps):
                self._over = True
                return

    def go(self) -> None:
        """Start the clock."""
        self._since, self._cpu_since = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """Stop the clock."""
        taken = time.perf_counter() - self._since
        if self._steps >= self.stream.before:
            self._cpu += time.process_time() - self._cpu_since
            self._wall += taken
        self._batch += taken

    def give_back(self, seconds: float) -> None:
        """Subtract seconds of waiting."""
        self._wall -= seconds
        self._batch -= seconds

    def read(self, rows: int, seconds: float) -> None:
        """Record a read of the whole view."""
        self._read_rows += rows
        self._read_seconds += seconds

    def delta(self, rows: int) -> None:
        """Record rows of changes that were emitted."""
        self._delta_rows += rows

    def replay(self, taken: Sequence[float], cpu: float) -> None:
        """Use the times of another process: wall seconds of each of its steps, CPU seconds of those that are timed.

        If it ran fewer steps than the stream has, it was cut off.
        """
        for i, step in enumerate(self.stream.steps[: len(taken)]):
            if i >= self.stream.before:
                self._rows += len(step.rows)
                self._taken.append(float(taken[i]))
        self._steps, self._cpu, self._wall = len(taken), cpu, sum(self._taken)
        self._over = self._steps < len(self.stream.steps)

    def _so_far(self) -> dict[str, Any]:
        return {"steps_done": self._steps, "rows": self._rows, "wall_seconds": self._wall}

    def result(self, **more: Any) -> dict[str, Any]:
        """The result: rates by wall time, and by CPU time of the process if it has one."""
        found: dict[str, Any] = {**self._so_far(), "steps": len(self.stream.steps), "cpu_seconds": self._cpu}
        found["rows_per_second"] = self._rows / max(self._wall, 1e-9)
        found["rows_per_cpu_second"] = self._rows / max(self._cpu, 1e-9)
        taken = np.array([] if self._grouped else self._taken) * 1e3
        if len(taken):
            found["p50_ms"] = float(np.percentile(taken, 50))
        # With fewer batches than the percentile needs, it would be the longest one.
        if len(taken) >= 100:
            found["p99_ms"] = float(np.percentile(taken, 99))
        if len(taken) >= 1000:
            found["p999_ms"] = float(np.percentile(taken, 99.9))
        if self._delta_rows:
            found["delta_rows"] = self._delta_rows
            found["delta_rows_per_second"] = self._delta_rows / self._wall
        if self._read_rows:
            found["read_rows_per_second"] = self._read_rows / max(self._read_seconds, 1e-9)
        if self.ready:
            found["ready_seconds"] = self.ready
        if self._over:
            found["cut"] = f"cut off after {self._until:g} s: {self._steps:,} of {len(self.stream.steps):,} batches"
        found["peak_bytes"] = most_resident_bytes()
        return {**found, "answers": self.answers, **more}
