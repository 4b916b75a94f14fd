"""Seconds from CREATE to the first answer of a view over three relations, with an empty cache and in the next process.

With an empty cache of compiled code, freshviews has never run on the machine: the first answer comes from plain Python,
while another process compiles (``freshviews.kernel.machine.beside``). The time to import the package is shown apart.
"""

from __future__ import annotations

import datetime as dt
import tempfile
import time
from decimal import Decimal
from typing import Any

from benchmarks.measuring.processes import in_own_process

TITLE = "first use"
CASES = ("first process", "second process")
STRATEGIES = ("freshviews",)
UNIT = "s"
TARGETS = {"first process": 1.0, "second process": 0.5}

SCRIPT = """
    CREATE TABLE customer (c_id BIGINT PRIMARY KEY, segment STRING);
    CREATE TABLE orders (o_id BIGINT PRIMARY KEY, c_id BIGINT, day DATE);
    CREATE TABLE items (o_id BIGINT, price DECIMAL(12, 2), discount DECIMAL(12, 2));
    CREATE MATERIALIZED VIEW revenue AS
      SELECT o_id, day, SUM(price * (1 - discount)) AS revenue, COUNT(*) AS n
      FROM customer JOIN orders USING (c_id) JOIN items USING (o_id) WHERE segment = 'BUILDING'
      GROUP BY o_id, day;
"""


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Run both processes and return the result of one; ``once`` is the work of each of them."""
    if case == "once":
        return _once()
    with tempfile.TemporaryDirectory() as folder:
        caches = {"FRESHVIEWS_CACHE_DIR": folder, "FRESHVIEWS_COMPILE": "beside"}
        found = in_own_process("first_use", "once", strategy, caches)
        if case == "second process":
            found = in_own_process("first_use", "once", strategy, caches)
    return found


def _once() -> dict[str, Any]:
    start = time.perf_counter()
    import freshviews as fv

    imported, cpu = time.perf_counter(), time.process_time()
    with fv.Database() as db:
        db.execute(SCRIPT)
        created = time.perf_counter()
        db.insert("customer", [(1, "BUILDING")])
        db.insert("orders", [(1, 1, dt.date(2026, 1, 1))])
        db.insert("items", [(1, Decimal("2.50"), Decimal("0.10"))])
        inserted = time.perf_counter()
        rows = list(db.view("revenue"))
        answered, cpu = time.perf_counter(), time.process_time() - cpu
    assert rows == [(1, dt.date(2026, 1, 1), Decimal("2.25"), 1)], rows
    return {
        "value": answered - imported,
        "cpu": cpu,
        "import": imported - start,
        "create": created - imported,
        "insert": inserted - created,
        "read": answered - inserted,
    }
