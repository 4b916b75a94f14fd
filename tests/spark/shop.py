"""A shop's streams for tests: orders by key and items as signed words, and the expected views over them."""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.stores.addresses import store_of

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


EVERY_SINK = (
    SCRIPT
    + """
CREATE MATERIALIZED VIEW by_cust USING csv OPTIONS (path 'out/by_cust', header 'true')
  AS SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust;
CREATE MATERIALIZED VIEW parts USING json OPTIONS (path 'out/parts')
  AS SELECT part, COUNT(*) AS n FROM items GROUP BY part;
CREATE MATERIALIZED VIEW shown USING console OPTIONS (numRows '1000')
  AS SELECT part, n FROM by_part;
"""
)
"""The same script with a view for each kind of sink."""


class Shop:
    """Input files, and the contents of the tables that they describe."""

    def __init__(self, folder: Path, seed: int = 1, script: str = SCRIPT) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.orders: dict[int, tuple[Any, ...]] = {}
        self.items: list[tuple[int, str, int]] = []
        self.files = 0
        for name in ("orders", "items"):
            (folder / "in" / name).mkdir(parents=True)
        (folder / "shop.sql").write_text(script)

    def write(self, orders: int = 20, items: int = 60) -> None:
        """Write a file per table: new rows, and deletes of earlier rows.

        A running pipeline may read one of the files before it sees the other, so a test that checks the next version
        writes to one table: ``orders=0``.
        """
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
        if not lines:
            return
        aside = self.folder / f"{table}-{self.files}"
        with aside.open("w", newline="") as file:
            csv.writer(file).writerows([header, *lines])
        aside.rename(self.folder / "in" / table / f"{self.files:04d}.csv")

    def by_part(self) -> Counter[tuple[Any, ...]]:
        """The view, recomputed from all files."""
        groups: dict[str, list[int]] = {}
        for order, part, qty in self.items:
            if order in self.orders:
                groups.setdefault(part, []).append(qty)
        return Counter((part, sum(found), len(found)) for part, found in groups.items())

    def by_cust(self) -> Counter[tuple[Any, ...]]:
        return Counter(dict.fromkeys(Counter(order[1] for order in self.orders.values()).items(), 1))

    def parts(self) -> Counter[tuple[Any, ...]]:
        return Counter(dict.fromkeys(Counter(item[1] for item in self.items).items(), 1))


def delivered(folder: Path) -> Counter[tuple[Any, ...]]:
    """The net rows of the files of a changes sink, each change counted once."""
    total: Counter[tuple[Any, ...]] = Counter()
    for path in sorted(folder.glob("[!.]*")):
        for row in rows_in(path):
            total[tuple(row[name] for name in row if not name.startswith("_"))] += row["_multiplicity"]
            assert f"{row['_version']:012d}" in path.name
    return _contents(total)


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The rows of a sink's file; digits in a CSV file are read as numbers."""
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    if path.suffix == ".json":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{n: int(v) if v.lstrip("-").isdigit() else v for n, v in row.items()} for row in rows]


def shown(text: str, view: str) -> Counter[tuple[Any, ...]]:
    """The net rows that a console sink has printed. A version that is printed again is marked and must be the same."""
    versions: dict[int, list[str]] = {}
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if found := re.match(rf"-- {view}, version (\d+)( \(perhaps shown before\))?: (\d+) rows", line):
            rows = lines[at + 1 : at + 1 + int(found[3])]
            if int(found[1]) in versions:
                assert found[2] and versions[int(found[1])] == rows
            versions[int(found[1])] = rows
    total: Counter[tuple[Any, ...]] = Counter()
    for rows in versions.values():
        for row in rows:
            values = dict(pair.split("=") for pair in row.strip().split(", "))
            total[tuple(v for n, v in values.items() if not n.startswith("_"))] += int(values["_multiplicity"])
    return _contents(total)


def _contents(total: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    assert all(count >= 0 for count in total.values()), total
    return Counter({row: count for row, count in total.items() if count})


def check(folder: Path, shop: Shop, printed: str | None = None, checkpoint: str | None = None) -> None:
    """Check all views of EVERY_SINK, stored and delivered, against the input; ``printed`` is the console's text."""
    store = store_of(checkpoint or folder / "shop.checkpoint")
    manifest = latest(store)
    for view, expected in (("by_part", shop.by_part()), ("by_cust", shop.by_cust()), ("parts", shop.parts())):
        assert Counter(tuple(row.values()) for row in contents(store, manifest, view).to_pylist()) == expected, view
        assert delivered(folder / "out" / view) == expected, view
    by_part = shop.by_part()
    total = json.loads((folder / "out" / "all_of_it" / "contents.json").read_text())
    assert total == {"parts": len(by_part), "qty": sum(qty for _, qty, _ in by_part)}
    if printed is not None:
        assert shown(printed, "shown") == Counter((part, str(n)) for part, _, n in by_part)
    left = [path for path in (folder / "out").rglob("*") if path.name.startswith(".")]
    assert not left, left
