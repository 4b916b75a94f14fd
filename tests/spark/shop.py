"""A shop's streams for tests: orders by key and items as signed words, and what the views over them must be."""

from __future__ import annotations

import csv
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SCRIPT = """
CREATE STREAMING TABLE orders (o_id BIGINT, cust BIGINT, day DATE, total DECIMAL(12, 2), PRIMARY KEY (o_id))
  USING csv OPTIONS (path 'in/orders', header 'true', changes 'op');
CREATE STREAMING TABLE items (o_id BIGINT, part STRING, qty INT)
  USING csv OPTIONS (path 'in/items', header 'true', changes 'op');
CREATE MATERIALIZED VIEW by_part USING parquet OPTIONS (path 'out/by_part', output 'changes')
  AS SELECT part, SUM(qty) AS qty, COUNT(*) AS n FROM orders JOIN items USING (o_id) GROUP BY part;
CREATE MATERIALIZED VIEW all_of_it USING json OPTIONS (path 'out/all_of_it', output 'complete')
  AS SELECT COUNT(*) AS parts, SUM(qty) AS qty FROM by_part;
"""


class Shop:
    """Input files, and the tables that they come to."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.orders: dict[int, tuple[Any, ...]] = {}
        self.items: list[tuple[int, str, int]] = []
        self.files = 0
        for name in ("orders", "items"):
            (folder / "in" / name).mkdir(parents=True)
        (folder / "shop.sql").write_text(SCRIPT)

    def write(self, orders: int = 20, items: int = 60) -> None:
        """A file per table: rows that come, and rows of before that go."""
        self.files += 1
        lines: list[tuple[Any, ...]] = []
        for _ in range(orders):
            if self.orders and self.random.random() < 0.3:
                lines.append(("delete", *self.orders.pop(self.random.choice(list(self.orders)))))
            else:
                key = self.files * 1000 + len(lines)
                total = Decimal(self.random.randrange(999)) / 100
                self.orders[key] = (key, self.random.randrange(9), "2026-01-05", total)
                lines.append(("insert", *self.orders[key]))
        self._file("orders", ("op", "o_id", "cust", "day", "total"), lines)
        lines = []
        for _ in range(items):
            if self.items and self.random.random() < 0.3:
                lines.append(("-", *self.items.pop(self.random.randrange(len(self.items)))))
            else:
                order = self.random.choice([*self.orders, 7])
                self.items.append((order, self.random.choice(("bolt", "nut", "cog")), self.random.randrange(1, 9)))
                lines.append(("+", *self.items[-1]))
        self._file("items", ("op", "o_id", "part", "qty"), lines)

    def _file(self, table: str, header: tuple[str, ...], lines: list[tuple[Any, ...]]) -> None:
        aside = self.folder / f"{table}-{self.files}"
        with aside.open("w", newline="") as file:
            csv.writer(file).writerows([header, *lines])
        aside.rename(self.folder / "in" / table / f"{self.files:04d}.csv")

    def by_part(self) -> Counter[tuple[Any, ...]]:
        """The view, recomputed from everything that was written."""
        groups: dict[str, list[int]] = {}
        for order, part, qty in self.items:
            if order in self.orders:
                groups.setdefault(part, []).append(qty)
        return Counter((part, sum(found), len(found)) for part, found in groups.items())


def delivered(folder: Path) -> Counter[tuple[Any, ...]]:
    """What the parquet files of a changes sink come to, each change counted once; rows that cancel out are gone."""
    total: Counter[tuple[Any, ...]] = Counter()
    for path in sorted(folder.glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            total[tuple(row[name] for name in row if not name.startswith("_"))] += row["_multiplicity"]
            assert f"{row['_version']:012d}" in path.name
    assert all(count >= 0 for count in total.values()), total
    return Counter({row: count for row, count in total.items() if count})
