"""The gain of a second core: batches of sales, with all cores and with one thread.

``two views`` are groups of the sales by two pairs of columns, over a trusted table: each view is a thread. ``star`` is
one view over four stored tables, four times as large as those of ``workloads.compiled``. Its trigger has two lanes; the
one that stores the sales takes most of the time. Over ``trusted`` tables without keys it has four. Batches of 1,000 are
too small for threads, and must not be slower. Lanes are compiled while the stream is applied and undone before the
clock starts.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.measuring.strategies import PLANNED
from benchmarks.measuring.stream import Step
from benchmarks.workloads import compiled
from freshviews import Database

TITLE = "cores"
UNIT = "us"
ONE = "one thread"
STRATEGIES = (PLANNED, ONE)
CASES = tuple(
    f"{name}, batches of {size}"
    for name in ("two views", "star", "trusted star")
    for size in (100_000, 10_000, 1_000)
)
TARGETS: dict[str, float] = {}

TWO_VIEWS = """
    CREATE TABLE sale (id BIGINT, product BIGINT, store BIGINT, customer BIGINT, quantity BIGINT)
        TBLPROPERTIES ('freshviews.trusted' = 'true');
    CREATE MATERIALIZED VIEW by_product AS
        SELECT product, store, SUM(quantity) AS sold, COUNT(*) AS n FROM sale GROUP BY product, store;
    CREATE MATERIALIZED VIEW by_customer AS
        SELECT customer, store, SUM(quantity) AS bought, COUNT(*) AS n FROM sale GROUP BY customer, store;
"""
VIEW = f"CREATE MATERIALIZED VIEW v AS {compiled.STAR_VIEW};"
SCRIPTS = {
    "two views": TWO_VIEWS,
    "star": "".join(one.ddl(checked=True) for one in compiled.STAR.values()) + VIEW,
    "trusted star": "".join(one.ddl(checked=False) for one in compiled.STAR.values()) + VIEW,
}
LARGER = 4.0
"""Times the rows of ``compiled.STAR``, so that two batches of 100,000 follow the filling."""
COMPILED_IN = 10.0
"""Seconds allowed for compiling lanes."""
ROUNDS = 15
"""Runs of the stream, each undone afterwards; the median counts, as other programs share the memory's bandwidth."""


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Microseconds of wall time per row, of batches of inserted rows."""
    name, _, batches = case.partition(", ")
    stream = compiled.star_stream(int(batches.split()[-1]), LARGER)
    filling = stream.steps[: stream.before]
    timed = [one for one in stream.steps[stream.before :] if one.table == "sale"]
    back = [replace(step, sign=-step.sign) for step in reversed(timed)]
    with Database(threads=1 if strategy == ONE else None) as db:
        db.execute(SCRIPTS[name])
        for step in filling:
            if name != "two views" or step.table == "sale":
                db.insert(step.table, step.rows)
        ready = time.perf_counter() + COMPILED_IN
        while time.perf_counter() < ready:
            _run(db, timed)
            _run(db, back)
        gc.collect()
        rounds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            rows = _run(db, timed)
            rounds.append((time.perf_counter() - start) / rows * 1e6)
            _run(db, back)
    return {"value": statistics.median(rounds), "rows": rows, "note": f"{os.cpu_count()} cores"}


def _run(db: Database, steps: Sequence[Step]) -> int:
    """Run steps; returns the number of their rows."""
    for step in steps:
        change = db.insert if step.sign > 0 else db.delete
        change(step.table, step.rows)
    return sum(len(step.rows) for step in steps)
