"""``make soak``: a window of 100,000 live rows with unique string ids moves over 30 million rows, in flat memory.

``python -m tests.soak --rows N --live N --batch N [--path FOLDER]`` prints the memory of the process and the size of
the dictionary twenty times on the way, and the longest commit in CPU time. It exits with 1 if the second half shows
growth.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from freshviews import Database
from freshviews.engine.codes.string_codes import codes_of

_MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Held:
    """Sizes after ``rows`` rows have passed. ``longest``: the commit with the most CPU time since the last ones."""

    rows: int
    process: int
    strings: int
    codes: int
    heap: int
    longest: float

    def __str__(self) -> str:
        return (
            f"{self.rows:>12,} rows  process {self.process / _MEGABYTE:8.1f} MB  strings {self.strings:>9,}  "
            f"codes {self.codes:>9,}  heap {self.heap / _MEGABYTE:6.1f} MB  longest commit {self.longest * 1e3:7.2f} ms"
        )


def resident() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def moved(rows: int, live: int, batch: int, path: Path | None = None) -> Iterator[Held]:
    """Move the window; returns the sizes at twenty points."""
    with Database(path) as db:
        db.execute(f"""
          CREATE TABLE events (id STRING, kind STRING, n BIGINT) TBLPROPERTIES ('freshviews.window' = '{live} rows');
          CREATE MATERIALIZED VIEW by_id AS SELECT id, COUNT(*) AS n, SUM(n) AS total FROM events GROUP BY id;
          CREATE MATERIALIZED VIEW by_kind AS SELECT kind, COUNT(*) AS n, MIN(id) AS least FROM events GROUP BY kind""")
        longest, reported = 0.0, 0
        for first in range(0, rows, batch):
            numbers = range(first, min(first + batch, rows))
            ids = [f"event number {i:012d}" for i in numbers]
            table = pa.table({"id": ids, "kind": [f"kind {i % 7}" for i in numbers], "n": pa.array(numbers)})
            start = time.thread_time()
            db.insert("events", table)
            longest = max(longest, time.thread_time() - start)
            if 20 * (first + batch) // rows > reported:
                reported = 20 * (first + batch) // rows
                dictionary = db._dictionary
                yield Held(
                    first + batch,
                    resident(),
                    dictionary.strings(),
                    len(dictionary),
                    codes_of(dictionary).bytes(),
                    longest,
                )
                longest = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--live", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--path", type=Path, help="keep the database there, durable")
    given = parser.parse_args()
    seen = []
    for held in moved(given.rows, given.live, given.batch, given.path):
        print(held, flush=True)
        seen.append(held)
    half = seen[len(seen) // 2]
    grown = seen[-1].process - half.process
    print(f"in the second half the process grew by {grown / _MEGABYTE:.1f} MB")
    return int(grown > half.process // 20 or seen[-1].codes > 2 * given.live)


if __name__ == "__main__":
    sys.exit(main())
