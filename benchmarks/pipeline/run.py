"""A pipeline on Spark, fed with files and timed by the wall clock: shared by the ``pipeline_*`` workloads.

Every file of input is one micro-batch. Its time is from the delivery of the previous version to that of its own. It
includes Spark's planning and notes, the cells, the commit and the sinks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring.machine import median

SCALE = float(os.environ.get("BENCHMARK_SCALE", "1"))
"""Factor of all sizes; see ``python -m benchmarks --scale``."""
LOCAL = "local[2]"
WARMING = 2
"""Micro-batches at the beginning that are not timed: workers start, code is loaded."""
LONGEST = 600.0
"""Seconds to wait for a result that should arrive at once."""


def scaled(size: int, least: int = 1) -> int:
    """A size multiplied by the scale of this run."""
    return max(least, round(size * SCALE))


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder, below BENCHMARK_FOLDER if set."""
    made = Path(tempfile.mkdtemp(prefix="benchmark-", dir=os.environ.get("BENCHMARK_FOLDER")))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def session(master: str = LOCAL, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A session of Spark with the settings of pipelines; its Python workers can import this package."""
    from freshviews.spark.session import start_session

    spark = start_session(master, settings, quiet=True)
    try:
        yield spark
    finally:
        spark.stop()


def put(rows: pa.Table, path: Path) -> None:
    """Put a file in place atomically, with a later time than the files before it."""
    global _last
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}")
    pq.write_table(rows, aside)
    # Spark reads files in the order of their times, in milliseconds; files of one time in any order.
    _last = max(time.time(), _last + 0.002)
    os.utime(aside, (_last, _last))
    aside.rename(path)


_last = 0.0


@dataclass(frozen=True)
class Version:
    """A version, its delivery by the clock of ``time.perf_counter``, and the change of a view if requested."""

    manifest: Any
    at: float
    change: pa.Table | None


class Running:
    """A running pipeline; ``versions`` are the delivered ones, with the changes of ``view``."""

    def __init__(
        self, spark: Any, script: Path, cells: int | None = None, *, view: str | None = None, once: bool = False
    ) -> None:
        from freshviews.spark import Pipeline

        self.versions: list[Version] = []
        self._script = script
        self._view = view
        self.started = time.perf_counter()
        made = Pipeline.from_script(spark, script, cells=cells)
        self.query = made.start(once=once, listener=self._delivered)

    def _delivered(self, manifest: Any) -> None:
        at = time.perf_counter()
        # Read at once: files of older versions are deleted.
        change = None if self._view is None else change_of(self._script, manifest, self._view)
        self.versions.append(Version(manifest, at, change))

    def wait_for(self, ready: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises the error of the pipeline."""
        until = time.perf_counter() + LONGEST
        while not ready():
            if not self.query.isActive:
                self.query.awaitTermination()
                raise RuntimeError("the pipeline has ended")
            if time.perf_counter() > until:
                raise TimeoutError(f"no result within {LONGEST:g} seconds")
            time.sleep(0.02)

    def wait_for_batch(self, batch: int) -> Any:
        """The manifest of the version with a micro-batch of Spark's, once it is delivered."""
        self.wait_for(lambda: bool(self.versions) and self.versions[-1].manifest.batch >= batch)
        return self.versions[-1].manifest


def run_once(spark: Any, script: Path, cells: int | None = None, view: str | None = None) -> list[Version]:
    """The versions made of the present files."""
    running = Running(spark, script, cells, view=view, once=True)
    running.query.awaitTermination()
    return running.versions


def seconds_between(moments: Sequence[float]) -> list[float]:
    """Seconds from one moment to the next."""
    return [b - a for a, b in pairwise(moments)]


def seconds_of(versions: Sequence[Version]) -> list[float]:
    """Seconds of each micro-batch except the first, whose beginning is unknown."""
    batches = [version for version in versions if version.manifest.batch >= 0]
    return seconds_between([version.at for version in batches])


def after_warming(seconds: Sequence[float], warming: int = WARMING) -> list[float]:
    """The timed micro-batches; if there are too few, all except the first."""
    return list(seconds[warming:] or seconds[1:] or seconds)


def rate(rows: int, seconds: Sequence[float]) -> dict[str, Any]:
    """Rows per second of the median micro-batch, each of ``rows`` rows."""
    return {"value": rows / median(seconds), "rows": rows, "batches": len(seconds), "seconds": list(seconds)}


def counts_of(versions: Sequence[Version]) -> dict[int, int]:
    """The value of a view of one row with one count, ``n``, after each micro-batch, from its changes."""
    now = 0
    found = {}
    for version in versions:
        if version.change is not None:
            rows = zip(*(version.change.column(name).to_pylist() for name in ("n", "_multiplicity")), strict=True)
            now = next((n for n, multiplicity in rows if multiplicity > 0), now)
        found[version.manifest.batch] = now
    return found


def contents_of(script: Path, view: str) -> pa.Table:
    """Contents of a view at the last version, read from the checkpoint."""
    from freshviews.spark.pipeline import default_checkpoint
    from freshviews.spark.reading.contents import contents, latest
    from freshviews.spark.state.stores.addresses import store_of

    root = default_checkpoint(script)
    return contents(store_of(root), latest(store_of(root)), view)


def change_of(script: Path, manifest: Any, view: str) -> pa.Table | None:
    """The change of a view at a version, with ``_multiplicity``; None if there is none."""
    from freshviews.spark.pipeline import default_checkpoint
    from freshviews.spark.state.bundle import read_all
    from freshviews.spark.state.stores.addresses import store_of

    return read_all(store_of(default_checkpoint(script)), manifest.changes.get(view, []))
