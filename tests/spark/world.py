"""Two random tables, their expected contents, and every view recomputed by DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.stores.addresses import store_of

TABLES = """
CREATE STREAMING TABLE edges (src BIGINT, dst BIGINT) USING parquet OPTIONS (path 'edges', changes 'signed');
CREATE STREAMING TABLE sales (id BIGINT PRIMARY KEY, shop STRING, node BIGINT, price DECIMAL(9, 2), weight DOUBLE)
  USING parquet OPTIONS (path 'sales', changes 'upsert');
"""
VIEWS = {
    "triangles": "SELECT COUNT(*) AS n FROM edges a JOIN edges b ON a.dst = b.src JOIN edges c "
    "ON b.dst = c.src AND c.dst = a.src",
    "hops": "SELECT COUNT(*) AS n FROM edges a JOIN edges b ON a.dst = b.src",
    "paths": "SELECT a.src, b.dst FROM edges a JOIN edges b ON a.dst = b.src WHERE a.src < b.dst",
    "by_shop": "SELECT shop, COUNT(*) AS n, SUM(price) AS price, AVG(price) AS mean, MIN(price) AS least, "
    "MAX(node) AS most, COUNT(DISTINCT node) AS nodes FROM sales GROUP BY shop HAVING COUNT(*) > 1",
    "reached": "SELECT DISTINCT shop, dst FROM sales JOIN edges ON node = src",
    "weights": "SELECT shop, SUM(weight) AS weight FROM sales JOIN edges ON node = src GROUP BY shop",
    "shops": "SELECT COUNT(*) AS shops, SUM(n) AS sales FROM by_shop",
    "dearest": "SELECT shop, id, price FROM sales ORDER BY price DESC, id LIMIT 7 OFFSET 2",
    "hubs": "SELECT src, COUNT(*) AS n FROM edges GROUP BY src ORDER BY n DESC, src LIMIT 3",
}


class World:
    """Two tables: the rows written to them, and their expected contents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.random = random.Random(11)
        self.edges: Counter[tuple[int, int]] = Counter()
        self.sales: dict[int, tuple[Any, ...]] = {}
        self.files = 0
        for name in ("edges", "sales"):
            (folder / name).mkdir()

    def write(self, count: int = 60) -> None:
        self.files += 1
        pick = self.random.randrange
        rows = []
        for _ in range(count):
            if self.edges and pick(3) == 0:
                edge = self.random.choice(list(self.edges))
                self.edges -= Counter([edge])
                rows.append((*edge, -1))
            else:
                edge = (pick(12), 3 if pick(3) == 0 else pick(12))
                self.edges[edge] += 1
                rows.append((*edge, 1))
        src, dst, signs = zip(*rows, strict=True)
        self._put("edges", pa.table({"src": src, "dst": dst, "_multiplicity": signs}))
        sales = []
        for _ in range(count):
            key = pick(40)
            self.sales[key] = (f"shop {pick(5)}", pick(12), pick(9999), pick(100) / 7)
            sales.append((key, *self.sales[key]))
        ids, shops, nodes, prices, weights = zip(*sales, strict=True)
        price = pa.array([p / 100 for p in prices]).cast(pa.decimal128(9, 2))
        columns = {"id": ids, "shop": shops, "node": nodes, "price": price, "weight": weights}
        self._put("sales", pa.table(columns))

    def _put(self, table: str, rows: pa.Table) -> None:
        pq.write_table(rows, self.folder / f".{table}")
        (self.folder / f".{table}").rename(self.folder / table / f"{self.files}.parquet")

    def expected(self, sql: str) -> Counter[tuple[Any, ...]]:
        """The rows of the view, recomputed by DuckDB from the contents of the tables."""
        with duckdb.connect() as db:
            db.execute("CREATE TABLE edges (src BIGINT, dst BIGINT)")
            db.execute("CREATE TABLE sales (id BIGINT, shop TEXT, node BIGINT, price DECIMAL(9, 2), weight DOUBLE)")
            db.executemany("INSERT INTO edges VALUES (?, ?)", list(self.edges.elements()))
            for key, (shop, node, price, weight) in self.sales.items():
                row = f"{key}, '{shop}', {node}, {price}::DECIMAL(9, 2) / 100, {weight}"
                db.execute(f"INSERT INTO sales VALUES ({row})")
            db.execute(f"CREATE VIEW by_shop AS {VIEWS['by_shop']}")
            return Counter(_plain(row) for row in db.execute(sql).fetchall())


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rounds averages and sums of doubles to six digits, as DuckDB adds them in no fixed order."""
    return tuple(value if isinstance(value, (int, str)) or value is None else round(float(value), 6) for value in row)


def write_script(folder: Path, views: list[str]) -> Path:
    made = "\n".join(
        f"CREATE MATERIALIZED VIEW {name} USING parquet OPTIONS (path 'out/{name}') AS {VIEWS[name]};" for name in views
    )
    path = folder / "script.sql"
    path.write_text(TABLES + made)
    return path


def held_by(world: World, views: list[str]) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of each view in the latest version."""
    root = world.folder / "script.checkpoint"
    version = latest(store_of(root))
    rows = {name: contents(store_of(root), version, name).to_pylist() for name in views}
    return {name: Counter(_plain(tuple(row.values())) for row in found) for name, found in rows.items()}


def check(world: World, views: list[str]) -> None:
    for name, found in held_by(world, views).items():
        expected = world.expected(VIEWS[name])
        assert found == expected, name
        delivered: Counter[tuple[Any, ...]] = Counter()
        for path in (world.folder / "out" / name).glob("*.parquet"):
            for row in pq.read_table(path).to_pylist():
                multiplicity, _ = row.pop("_multiplicity"), row.pop("_version")
                delivered[_plain(tuple(row.values()))] += multiplicity
        assert {row: count for row, count in delivered.items() if count} == expected, name
