"""``make soak-spark``: a window of 100,000 live rows with unique string ids moves over 30 million rows on Spark.

``python -m tests.spark.soak --rows N --live N --file N --cells N`` prints, twenty times on the way, the memory of the
Python workers, the driver and Java, and the size of the checkpoint on disk. It exits with 1 if workers, driver or
checkpoint grew in the second half. Java's heap is bounded by its own settings, and is only printed. The checkpoint
keeps the changes of 200 versions, so it is flat after that many files.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from freshviews.spark import Pipeline
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.session import start_session
from freshviews.spark.state.checkpoint import CheckpointError
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import command_of, descendants

_MEGABYTE = 1 << 20
AHEAD = 3
"""Number of files written ahead, so that the stream never waits for one."""
PATIENCE = 600.0
"""Maximum seconds of one version."""


@dataclass(frozen=True)
class Held:
    """Bytes after ``rows`` rows have passed. For processes: private resident memory, and a proportional part of the
    shared one."""

    rows: int
    workers: int
    driver: int
    java: int
    checkpoint: int

    def __str__(self) -> str:
        parts = {"workers": self.workers, "driver": self.driver, "java": self.java, "checkpoint": self.checkpoint}
        listed = "  ".join(f"{name} {value / _MEGABYTE:8.1f} MB" for name, value in parts.items())
        return f"{self.rows:>12,} rows  {listed}"


def moved(spark: Any, folder: Path, rows: int, live: int, file: int, cells: int) -> Iterator[Held]:
    """Move the window over files of ``file`` rows; returns the sizes at twenty points."""
    script = folder / "soak.sql"
    script.write_text(f"""
      CREATE STREAMING TABLE events (id STRING, kind STRING, n BIGINT) USING parquet
        OPTIONS (path 'events', maxFilesPerTrigger '1') TBLPROPERTIES ('freshviews.window' = '{live} rows');
      CREATE MATERIALIZED VIEW by_id AS SELECT id, COUNT(*) AS n, SUM(n) AS total FROM events GROUP BY id;
      CREATE MATERIALIZED VIEW by_kind AS SELECT kind, COUNT(*) AS n, MIN(id) AS least FROM events GROUP BY kind;
    """)
    (folder / "events").mkdir()
    checkpoint = folder / "soak.checkpoint"
    files = -(-rows // file)
    query = Pipeline.from_script(spark, script, cells=cells).start()
    try:
        written = taken = reported = 0
        while taken < files:
            while written < min(files, taken + AHEAD):
                _write(folder / "events", written, range(written * file, min(rows, (written + 1) * file)))
                written += 1
            taken = _after(query, checkpoint, taken)
            if 20 * taken // files > reported:
                reported = 20 * taken // files
                yield _held(min(rows, taken * file), checkpoint)
    finally:
        query.stop()
    store = store_of(checkpoint)
    counted = sum(contents(store, latest(store), "by_kind").column("n").to_pylist())
    assert counted == min(rows, live), f"{counted} rows are in the window"


def _write(folder: Path, number: int, numbers: range) -> None:
    ids = [f"event number {i:012d}" for i in numbers]
    rows = pa.table({"id": ids, "kind": [f"kind {i % 7}" for i in numbers], "n": pa.array(numbers)})
    aside = folder / f".{number}"
    pq.write_table(rows, aside)
    # Spark takes files in the order of their times.
    os.utime(aside, (time.time(), time.time() + 0.01 * number))
    aside.rename(folder / f"{number:06d}.parquet")


def _after(query: Any, checkpoint: Path, taken: int) -> int:
    """The number of files taken, once it exceeds the earlier one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            now = latest(store_of(checkpoint)).batch + 1
        except CheckpointError:
            now = 0
        if now > taken:
            return now
        if not query.isActive:
            query.awaitTermination()
        time.sleep(0.05)
    raise AssertionError(f"no version after {PATIENCE:.0f} s")


def _held(rows: int, checkpoint: Path) -> Held:
    below = [(process, command_of(process)) for process in descendants(os.getpid())]
    java = [process for process, command in below if "java" in command.partition(" ")[0]]
    workers = [process for process, _ in below if process not in java]
    files = (Path(folder) / name for folder, _, names in os.walk(checkpoint) for name in names)
    on_disk = sum(map(_size, files))
    return Held(rows, sum(map(_resident, workers)), _resident(os.getpid()), sum(map(_resident, java)), on_disk)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # It was collected in the meantime.
        return 0


def _resident(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # It has ended.
        return 0
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def grown(seen: list[Held]) -> dict[str, float]:
    """The relative growth of each part in the second half: the median of the last quarter and of the one before."""
    quarter = max(1, len(seen) // 4)
    before, after = seen[-2 * quarter : -quarter], seen[-quarter:]
    return {
        name: median(getattr(one, name) for one in after) / max(1, median(getattr(one, name) for one in before)) - 1
        for name in ("workers", "driver", "checkpoint")
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.soak")
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--live", type=int, default=100_000)
    parser.add_argument("--file", type=int, default=50_000)
    parser.add_argument("--cells", type=int, default=1)
    given = parser.parse_args()
    spark = start_session("local[2]", None, quiet=True)
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        for held in moved(spark, Path(folder), given.rows, given.live, given.file, given.cells):
            print(held, flush=True)
            seen.append(held)
    spark.stop()
    found = grown(seen)
    print("in the second half: " + ", ".join(f"{name} {share:+.1%}" for name, share in found.items()))
    return int(max(found.values()) > 0.1)


if __name__ == "__main__":
    sys.exit(main())
