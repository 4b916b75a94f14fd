"""One row at a time: ``Database.insert`` of a list of one tuple, one view over a join of two tables.

Beside it: SQLite with a trigger that keeps the groups, dicts of plain Python that have no tables and no checks, and
DuckDB, which recomputes.
"""

from __future__ import annotations

import datetime as dt
import gc
import sqlite3
import time
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np

import freshviews as fv

TITLE = "single rows"
CASES = ("checked tables", "trusted tables", "with a subscriber")
STRATEGIES = ("freshviews", "SQLite", "plain Python", "DuckDB")
UNIT = "us"
TARGETS = {"checked tables": 4.0, "trusted tables": 3.0, "with a subscriber": 8.0}

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

DAY = dt.date(2026, 1, 1)
SQLITE = """
    CREATE TABLE orders (o_id INTEGER PRIMARY KEY, cust INT, day TEXT, total INT);
    CREATE TABLE items (o_id INT, part TEXT, qty INT);
    CREATE TABLE v (part TEXT PRIMARY KEY, qty INT, n INT) WITHOUT ROWID;
    CREATE TRIGGER fresh AFTER INSERT ON items BEGIN
        INSERT INTO v SELECT new.part, new.qty, 1 FROM orders WHERE o_id = new.o_id AND day >= '2026-01-01'
        ON CONFLICT (part) DO UPDATE SET qty = qty + excluded.qty, n = n + 1;
    END;
"""


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Microseconds of wall time per row: median and 99th percentile."""
    random = np.random.default_rng(1)
    orders = [(i, i % 7, DAY, Decimal("1.20")) for i in range(ORDERS)]
    items = [(int(o), f"part {int(o) % 100}", 5) for o in random.integers(0, ORDERS, ITEMS)]
    if strategy == "freshviews":
        taken = _freshviews(case, orders, items)
    else:
        taken = {"SQLite": _sqlite, "plain Python": _dicts, "DuckDB": _duckdb}[strategy](orders, items)
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
        if case == "with a subscriber":
            db.view("v").subscribe(lambda change: None)
        db.insert("orders", orders)
        for row in items[:1000]:
            db.insert("items", [row])
        gc.collect()
        gc.freeze()
        return [_timed(lambda row=row: db.insert("items", [row])) for row in items]


def _sqlite(orders: list[Any], items: list[Any]) -> list[int]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(SQLITE)
    db.executemany(
        "INSERT INTO orders VALUES (?, ?, ?, ?)", [(o, c, d.isoformat(), int(t * 100)) for o, c, d, t in orders]
    )
    execute = db.execute
    return [_timed(lambda row=row: execute("INSERT INTO items VALUES (?, ?, ?)", row)) for row in items]


def _dicts(orders: list[Any], items: list[Any]) -> list[int]:
    by_id = {order[0]: order for order in orders}
    stored: list[Any] = []
    groups: dict[str, list[int]] = {}

    def insert(row: Any) -> None:
        stored.append(row)
        order = by_id.get(row[0])
        if order is not None and order[2] >= DAY:
            group = groups.get(row[1])
            if group is None:
                group = groups[row[1]] = [0, 0]
            group[0] += row[2]
            group[1] += 1

    return [_timed(lambda row=row: insert(row)) for row in items]


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
