"""One row at a time: ``Database.insert`` of a list of one tuple, one view over a join of two tables."""

from __future__ import annotations

import datetime as dt
import gc
import time
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np

import freshviews as fv

TITLE = "single rows"
CASES = ("checked tables", "trusted tables")
STRATEGIES = ("freshviews", "DuckDB")
UNIT = "us"
TARGETS = {"checked tables": 30.0, "trusted tables": 30.0}

ORDERS = 2_000
ITEMS = 20_000
RECOMPUTED = 500
TABLES = """
    CREATE TABLE orders (o_id BIGINT{key}, cust BIGINT, day DATE, total DECIMAL(12, 2)){trusted};
    CREATE TABLE items (o_id BIGINT, part STRING, qty INT){trusted};
"""
VIEW = """
    SELECT part, SUM(qty) AS qty, COUNT(*) AS n FROM orders JOIN items USING (o_id)
    WHERE day >= DATE '2026-01-01' GROUP BY part
"""


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Microseconds of wall time per row: median and 99th percentile."""
    random = np.random.default_rng(1)
    orders = [(i, i % 7, dt.date(2026, 1, 1), Decimal("1.20")) for i in range(ORDERS)]
    items = [(int(o), f"part {int(o) % 100}", 5) for o in random.integers(0, ORDERS, ITEMS)]
    taken = _freshviews(case, orders, items) if strategy == "freshviews" else _duckdb(orders, items)
    return {
        "value": float(np.median(taken)) / 1e3,
        "median": float(np.median(taken)) / 1e3,
        "p99": float(np.percentile(taken, 99)) / 1e3,
        "rows": len(taken),
    }


def _freshviews(case: str, orders: list[Any], items: list[Any]) -> list[int]:
    trusted = " TBLPROPERTIES ('freshviews.trusted' = 'true')" if case == "trusted tables" else ""
    key = "" if trusted else " PRIMARY KEY"
    with fv.Database() as db:
        db.execute(TABLES.format(trusted=trusted, key=key) + f"CREATE MATERIALIZED VIEW v AS {VIEW};")
        db.insert("orders", orders)
        for row in items[:1000]:
            db.insert("items", [row])
        gc.collect()
        gc.freeze()
        return [_timed(lambda row=row: db.insert("items", [row])) for row in items]


def _duckdb(orders: list[Any], items: list[Any]) -> list[int]:
    db = duckdb.connect(config={"threads": 1})
    db.execute(TABLES.format(trusted="", key=""))
    db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
    db.executemany("INSERT INTO items VALUES (?, ?, ?)", items[:1000])

    def step(row: Any) -> None:
        db.execute("INSERT INTO items VALUES (?, ?, ?)", row)
        db.execute(VIEW).fetchall()

    return [_timed(lambda row=row: step(row)) for row in items[:RECOMPUTED]]


def _timed(action: Any) -> int:
    start = time.perf_counter_ns()
    action()
    return time.perf_counter_ns() - start
