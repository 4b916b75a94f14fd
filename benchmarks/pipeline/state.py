"""A pipeline with a given size of state: two tables joined and summed, built by large micro-batches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.pipeline.run import Running, contents_of, put

LARGEST = 1_000_000
"""Maximum rows of items in a micro-batch that builds the state."""
BYTES_PER_ITEM = 100
"""Bytes of state for an item, including its part of an order."""
SMALL = 1_000
ITEMS_PER_ORDER = 4
SCRIPT = """
CREATE STREAMING TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT)
  USING parquet OPTIONS (path 'orders', maxFilesPerTrigger '1');
CREATE STREAMING TABLE items (o_id BIGINT, part BIGINT, qty BIGINT)
  USING parquet OPTIONS (path 'items', maxFilesPerTrigger '1', changes 'signed');
CREATE MATERIALIZED VIEW by_cust AS
  SELECT cust, SUM(qty) AS qty, COUNT(*) AS n FROM orders JOIN items USING (o_id) GROUP BY cust;
"""
CUSTOMERS = 1000


def numbers(first: int, count: int, salt: int) -> npt.NDArray[np.int64]:
    """Pseudo-random numbers, a function of the row."""
    state = np.arange(first, first + count, dtype=np.uint64) + np.uint64(salt << 40)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        state = (state ^ (state >> np.uint64(29))) * np.uint64(factor)
    return (state >> np.uint64(16)).astype(np.int64)


def items(first: int, count: int, orders: int, sign: int = 1) -> pa.Table:
    """Rows of items from the ``first`` on, of the first ``orders`` orders."""
    columns = {
        "o_id": numbers(first, count, 1) % orders,
        "part": numbers(first, count, 2) % 100_000,
        "qty": numbers(first, count, 3) % 50 + 1,
        "_multiplicity": np.full(count, sign, np.int64),
    }
    return pa.table(columns)


class Shop:
    """The folder of a pipeline, its files, and the rows written so far; a large file has ``large`` items."""

    def __init__(self, place: Path, large: int) -> None:
        self.place = place
        self.large = large
        self.script = place / "shop.sql"
        self.files = 0
        self.orders = 0
        self.items = 0
        self.deleted = 0

    def begin(self) -> None:
        """Write the script and create the folders."""
        for name in ("orders", "items"):
            (self.place / name).mkdir(parents=True)
        self.script.write_text(SCRIPT)

    def write_large(self) -> None:
        """Write a file for each table; its items are of all orders so far."""
        count = max(self.large // ITEMS_PER_ORDER, 1)
        rows = {"o_id": np.arange(self.orders, self.orders + count)}
        self.orders += count
        put(pa.table({**rows, "cust": numbers(self.orders, count, 4) % CUSTOMERS}), self._file("orders"))
        put(items(self.items, self.large, self.orders), self._file("items"))
        self.items += self.large
        self.files += 1

    def write_small(self) -> None:
        """Write a file of items: nine of ten rows are new, the others are deletes."""
        deleted = SMALL // 10
        new = SMALL - deleted
        # Rows of the first large file are deleted; its items are of its own orders.
        known = max(self.large // ITEMS_PER_ORDER, 1)
        rows = [items(self.items, new, self.orders), items(self.deleted, deleted, known, -1)]
        self.items += new
        self.deleted += deleted
        put(pa.concat_tables(rows), self._file("items"))
        self.files += 1

    def check(self) -> None:
        """Every item has its order, so the view must count them all."""
        counted = sum(contents_of(self.script, "by_cust").column("n").to_pylist())
        assert counted == self.items - self.deleted, (counted, self.items, self.deleted)

    def _file(self, table: str) -> Path:
        return self.place / table / f"{self.files:06d}.parquet"


@contextmanager
def filled(spark: Any, place: Path, size: int) -> Iterator[tuple[Shop, Running]]:
    """A running pipeline with ``size`` bytes of state and no background work left."""
    shop = Shop(place, min(LARGEST, max(size // BYTES_PER_ITEM // 10, SMALL)))
    shop.begin()
    shop.write_large()
    running = Running(spark, shop.script)
    try:
        while True:
            running.wait_for(lambda: running.versions and _items(running.versions[-1].manifest) == shop.items)
            if bytes_of(running.versions[-1].manifest) >= size:
                break
            shop.write_large()
        running.wait_for(lambda: is_quiet(shop.script, running.versions[-1].manifest))
        yield shop, running
    finally:
        running.query.stop()


def _items(manifest: Any) -> int:
    """The number of rows of items that were read."""
    counted: int = manifest.totals.get("rows", {}).get("items", 0)
    return counted


def bytes_of(manifest: Any) -> int:
    """Bytes of the tables and views of a version."""
    total: int = sum(manifest.bytes.values())
    return total


def is_quiet(script: Path, manifest: Any) -> bool:
    """True if no image of the state is being written."""
    root = script.with_suffix(".checkpoint")
    pending = [cell["pending"] for cell in manifest.cells.values() if cell.get("pending")]
    return all((root / image["folder"]).exists() for image in pending)


def settle(seconds: float = 2.0) -> None:
    """Wait for work that is about to end."""
    time.sleep(seconds)
