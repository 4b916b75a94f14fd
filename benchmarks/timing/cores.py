"""What a second core gives: batches of sales, with all cores beside one thread.

``two views`` are groups of the sales by two pairs of columns, over a trusted table: each view is a thread. ``star`` is
one view over four stored tables, those of ``workloads.compiled``, and runs in one thread. Batches of 1,000 are too
small for threads, and must not be slower.
"""

from __future__ import annotations

import gc
import os
import time
from typing import Any

from benchmarks.measuring.strategies import PLANNED
from benchmarks.workloads import compiled
from freshviews import Database

TITLE = "cores"
UNIT = "us"
ONE = "one thread"
STRATEGIES = (PLANNED, ONE)
CASES = (
    "two views, batches of 10000",
    "two views, batches of 1000",
    "star, batches of 10000",
    "star, batches of 1000",
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
STAR = "".join(one.ddl(checked=True) for one in compiled.STAR.values()) + (
    f"CREATE MATERIALIZED VIEW v AS {compiled.STAR_VIEW};"
)


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Microseconds of wall time per row, of batches that are inserted and deleted in turn."""
    name, _, batches = case.partition(", ")
    stream = compiled.stream(f"star, {batches}")
    filling = stream.steps[: stream.before]
    timed = [one for one in stream.steps[stream.before :] if one.table == "sale"]
    with Database(threads=1 if strategy == ONE else None) as db:
        db.execute(STAR if name == "star" else TWO_VIEWS)
        for step in filling:
            if name == "star" or step.table == "sale":
                db.insert(step.table, step.rows)
        gc.collect()
        rows, start = 0, time.perf_counter()
        for step in timed:
            change = db.insert if step.sign > 0 else db.delete
            change(step.table, step.rows)
            rows += len(step.rows)
        seconds = time.perf_counter() - start
    return {"value": seconds / rows * 1e6, "rows": rows, "note": f"{os.cpu_count()} cores"}
