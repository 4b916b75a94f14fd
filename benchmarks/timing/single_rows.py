"""One row at a time: ``Database.insert`` of a list of one tuple, one view over a join of two tables.

It is compared with SQLite, where a trigger maintains the groups, with dicts of plain Python without tables and checks,
and with DuckDB, which recomputes.

The durable cases store a directory on a disk, and insert rows one at a time or a hundred at a time. SQLite has a WAL,
with ``synchronous=FULL`` if each commit is synced, else ``NORMAL``. Plain Python writes a line of JSON for each commit.
"""

from __future__ import annotations

import datetime as dt
import gc
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np

import freshviews as fv

TITLE = "single rows"
DURABLE: dict[str, tuple[Literal["commit", "interval"], int]] = {
    "durable, each commit synced": ("commit", 1),
    "durable, synced each second": ("interval", 1),
    "durable, each commit of 100 synced": ("commit", 100),
    "durable, commits of 100, synced each second": ("interval", 100),
}
"""The time of syncs, and the rows of a commit."""
CASES = ("checked tables", "trusted tables", "with a subscriber", *DURABLE)
STRATEGIES = ("freshviews", "SQLite", "plain Python", "DuckDB")
STRATEGIES_OF = dict.fromkeys(DURABLE, STRATEGIES[:3])
UNIT = "us"
TARGETS = {"checked tables": 4.0, "trusted tables": 3.0, "with a subscriber": 8.0}

ORDERS = 2_000
ITEMS = 20_000
RECOMPUTED = 500
DURABLE_SECONDS = 5.0
"""Seconds after which a durable case ends."""
DISK = Path("/var/tmp")
"""A folder on a disk; the folder of temporary files may be in memory."""
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
    """Microseconds of wall time per row: median and 99th percentile; for a durable case the mean, as a sync delays a
    few commits much."""
    random = np.random.default_rng(1)
    orders = [(i, i % 7, DAY, Decimal("1.20")) for i in range(ORDERS)]
    items = [(int(o), f"part {int(o) % 100}", 5) for o in random.integers(0, ORDERS, ITEMS)]
    if case in DURABLE:
        return _durable(*DURABLE[case], strategy, orders, items)
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


def _durable(
    sync: Literal["commit", "interval"], size: int, strategy: str, orders: list[Any], items: list[Any]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        if strategy == "freshviews":
            database = fv.Database(folder, sync=sync)
            database.execute(TABLES.format(trusted="", key=" PRIMARY KEY") + f"CREATE MATERIALIZED VIEW v AS {VIEW};")
            database.insert("orders", orders)
            taken = _commits(lambda rows: database.insert("items", rows), size, items)
            database.close()
        elif strategy == "SQLite":
            db = _opened(f"{folder}/db", orders, "FULL" if sync == "commit" else "NORMAL")

            def commit(rows: list[Any]) -> None:
                db.execute("BEGIN")
                db.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
                db.execute("COMMIT")

            taken = _commits(commit, size, items)
            db.close()
        else:
            taken = _logged(f"{folder}/log", sync, size, orders, items)
    rows = size * len(taken)
    return {
        "value": sum(taken) / rows / 1e3,
        "median": float(np.median(taken)) / size / 1e3,
        "p99": float(np.percentile(taken, 99)) / size / 1e3,
        "rows": rows,
    }


def _commits(commit: Callable[[list[Any]], Any], size: int, items: list[Any]) -> list[int]:
    """Nanoseconds of each commit, after a few unmeasured ones."""
    for i in range(0, 1000, size):
        commit(items[i : i + size])
    gc.collect()
    gc.freeze()
    taken: list[int] = []
    until = time.monotonic() + DURABLE_SECONDS
    while time.monotonic() < until:
        i = size * len(taken) % len(items)
        taken.append(_timed(lambda rows=items[i : i + size]: commit(rows)))
    return taken


def _logged(path: str, sync: str, size: int, orders: list[Any], items: list[Any]) -> list[int]:
    insert = _inserts(orders)
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    synced = time.monotonic()

    def commit(rows: list[Any]) -> None:
        nonlocal synced
        os.write(log, json.dumps(rows).encode() + b"\n")
        if sync == "commit" or time.monotonic() > synced + 1:
            os.fsync(log)
            synced = time.monotonic()
        for row in rows:
            insert(row)

    taken = _commits(commit, size, items)
    os.close(log)
    return taken


def _opened(path: str, orders: list[Any], synchronous: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; {SQLITE}")
    db.executemany(
        "INSERT INTO orders VALUES (?, ?, ?, ?)", [(o, c, d.isoformat(), int(t * 100)) for o, c, d, t in orders]
    )
    return db


def _sqlite(orders: list[Any], items: list[Any]) -> list[int]:
    execute = _opened(":memory:", orders, "OFF").execute
    return [_timed(lambda row=row: execute("INSERT INTO items VALUES (?, ?, ?)", row)) for row in items]


def _dicts(orders: list[Any], items: list[Any]) -> list[int]:
    insert = _inserts(orders)
    return [_timed(lambda row=row: insert(row)) for row in items]


def _inserts(orders: list[Any]) -> Callable[[Any], None]:
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

    return insert


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
