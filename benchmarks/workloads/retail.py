"""Sales of a retailer joined with items, stores, days and the price of oil: generated data for a model of units sold.

A sale has an item, a store and a day. Items, stores and days have columns of numbers, and each day has a price of oil.
So each sale is a row of the join. The batches of ``window`` insert new sales and delete the oldest, as many of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

TABLES = """
CREATE TABLE sales (item BIGINT NOT NULL, store BIGINT NOT NULL, day BIGINT NOT NULL, promoted INT, price DOUBLE,
  units DOUBLE);
CREATE TABLE items (item BIGINT NOT NULL, perishable INT, weight DOUBLE);
CREATE TABLE stores (store BIGINT NOT NULL, area DOUBLE, income DOUBLE);
CREATE TABLE days (day BIGINT NOT NULL, weekend INT, holiday INT);
CREATE TABLE oil (day BIGINT NOT NULL, barrel DOUBLE);
"""
JOIN = "sales JOIN items USING (item) JOIN stores USING (store) JOIN days USING (day) JOIN oil USING (day)"
FEATURES = ("promoted", "price", "perishable", "weight", "area", "income", "weekend", "holiday", "barrel")
TARGET = "units"
ITEMS, STORES, DAYS = 4_000, 54, 1_000


@dataclass(frozen=True)
class Batch:
    """Inserted and deleted sales, as Arrow tables of the columns of ``sales``."""

    inserted: pa.Table
    deleted: pa.Table


def dimensions(seed: int = 1) -> dict[str, pa.Table]:
    """The rows of items, stores, days and oil."""
    random = np.random.default_rng(seed)
    day = np.arange(DAYS)
    return {
        "items": pa.table({
            "item": np.arange(ITEMS),
            "perishable": (random.random(ITEMS) < 0.25).astype(np.int32),
            "weight": random.gamma(2.0, 1.5, ITEMS),
        }),
        "stores": pa.table({
            "store": np.arange(STORES),
            "area": random.uniform(5.0, 40.0, STORES),
            "income": random.normal(45.0, 8.0, STORES),
        }),
        "days": pa.table({
            "day": day,
            "weekend": (day % 7 >= 5).astype(np.int32),
            "holiday": (random.random(DAYS) < 0.05).astype(np.int32),
        }),
        "oil": pa.table({"day": day, "barrel": 60.0 + np.cumsum(random.normal(0.0, 1.0, DAYS))}),
    }  # fmt: skip


def sales(rows: int, seed: int = 2) -> pa.Table:
    """Random sales; units depend on some columns of all tables, and on noise."""
    random = np.random.default_rng(seed)
    found = dimensions()
    item, store, day = (random.integers(0, n, rows) for n in (ITEMS, STORES, DAYS))
    promoted = (random.random(rows) < 0.1).astype(np.int32)
    price = random.gamma(3.0, 2.0, rows)
    column = {name: table[name].to_numpy() for table in found.values() for name in table.column_names}
    units = 20.0 + 6.0 * promoted - 0.8 * price + 1.5 * column["perishable"][item] - 0.4 * column["weight"][item]
    units += 0.2 * column["area"][store] + 0.1 * column["income"][store] + 3.0 * column["weekend"][day]
    units += 2.0 * column["holiday"][day] - 0.05 * column["barrel"][day] + random.normal(0.0, 4.0, rows)
    columns = {"item": item, "store": store, "day": day, "promoted": promoted, "price": price, "units": units}
    return pa.table(columns)


def window(rows: int, batches: int, size: int) -> tuple[pa.Table, Iterator[Batch]]:
    """The first ``rows`` sales, and batches of ``size`` changes: half inserts, half deletes of the oldest."""
    half = size // 2
    every = sales(rows + batches * half)
    later = (Batch(every.slice(rows + i * half, half), every.slice(i * half, half)) for i in range(batches))
    return every.slice(0, rows), later
