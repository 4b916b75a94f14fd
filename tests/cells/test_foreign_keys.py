"""Cells refuse a batch for a foreign key exactly if one engine does."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from freshviews import BatchError
from freshviews.cells import CellPlan, describe, extended, plan_cells
from tests.agreement.scenario import Row
from tests.cells.simulated import Cells, Engine, catalog_of, comparable, one_engine, same

pytestmark = pytest.mark.plain_python(only=True)

TABLES = {
    "customers": "id INT PRIMARY KEY, city STRING",
    "orders": "id INT PRIMARY KEY, customer INT REFERENCES customers",
    "items": "order_id INT REFERENCES orders, n INT, price INT, PRIMARY KEY (order_id, n)",
    "notes": "customer INT REFERENCES customers, order_id INT REFERENCES orders (id)",
    "places": "country INT, city INT, kind INT, UNIQUE (city, country), UNIQUE (city, kind)",
    "visits": "city INT, country INT, who INT, FOREIGN KEY (country, city) REFERENCES places (country, city)",
    "people": "id INT PRIMARY KEY, boss INT REFERENCES people, next INT REFERENCES people, at INT REFERENCES customers",
}
VIEWS = (
    "SELECT city, COUNT(*) AS n, SUM(price) AS total FROM customers JOIN orders ON customers.id = customer "
    "JOIN items ON orders.id = order_id GROUP BY city",
    "SELECT price, COUNT(*) AS n FROM items GROUP BY price",
    "SELECT a.id, b.boss, a.at FROM people a JOIN people b ON a.boss = b.id",
    "SELECT kind, COUNT(*) AS n FROM visits JOIN places USING (city) GROUP BY kind",
    "SELECT orders.id, COUNT(*) AS n FROM orders LEFT JOIN notes ON orders.id = order_id GROUP BY orders.id",
)


def script(views: list[str]) -> str:
    tables = [f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items()]
    kept = [f"CREATE MATERIALIZED VIEW v{VIEWS.index(view)} AS {view}" for view in views]
    return ";\n".join([*tables, *kept]) + ";"


def some_row(table: str, rng: random.Random) -> Row:
    """A row of small values, with some NULLs in nullable columns."""
    widths = {"customers": (6, -3), "orders": (8, 6), "items": (8, 2, 3), "notes": (6, 8), "places": (3, 3, 3)}
    widths |= {"visits": (3, 3, 5), "people": (8, 8, 8, 6)}
    given: list[Any] = [str(rng.randrange(-w)) if w < 0 else rng.randrange(w) for w in widths[table]]
    free = {"orders": (1,), "notes": (0, 1), "visits": (0, 1), "people": (1, 2, 3)}.get(table, ())
    return tuple(None if i in free and rng.random() < 0.2 else value for i, value in enumerate(given))


def changes(held: dict[str, Counter[Row]], rng: random.Random) -> dict[str, list[tuple[Row, int]]]:
    """Inserts and deletes of a few tables; foreign keys forbid some of them."""
    found: dict[str, list[tuple[Row, int]]] = {}
    for table in rng.sample(sorted(TABLES), rng.choice((1, 2, len(TABLES)))):
        there = list(held[table].elements())
        for _ in range(rng.choice((1, 1, 3))):
            if there and rng.random() < 0.3:
                found.setdefault(table, []).append((there.pop(rng.randrange(len(there))), -1))
            else:
                found.setdefault(table, []).append((some_row(table, rng), 1))
    return found


def accepted(engine: Engine, tables: dict[str, list[tuple[Row, int]]]) -> bool:
    try:
        engine.apply(tables)
    except BatchError:
        return False
    return True


@pytest.mark.seeds(60)
def test_cells_refuse_exactly_the_batches_that_one_engine_refuses(seed: int) -> None:
    rng = random.Random(seed)
    views = rng.sample(VIEWS, rng.choice((0, 1, 2, len(VIEWS))))
    catalog = catalog_of(script(views))
    sizes = {table: rng.choice((1.0, 10.0, 1000.0)) for table in TABLES}
    begun = catalog_of(script(views[:1])) if seed % 3 == 0 else catalog
    plan = extended(plan_cells(begun, rng.choice((2, 3, 4, 8)), sizes), catalog, sizes)
    assert CellPlan.from_json(plan.to_json()) == plan
    told = describe(plan, catalog, sizes)
    assert told.count(" REFERENCES ") == 8
    one = Engine(one_engine(catalog), [])
    cells = Cells(plan, catalog)
    held: dict[str, Counter[Row]] = {table: Counter() for table in TABLES}
    refused = 0
    for _ in range(60):
        given = changes(held, rng)
        routed = cells.routed(tuple(given.items()))
        good = [accepted(cell, tables) for cell, tables in zip(cells.cells, routed, strict=True)]
        assert all(good) == accepted(one, given), (seed, given, told)
        if not all(good):
            refused += 1
            for cell, tables, was in zip(cells.cells, routed, good, strict=True):
                if was:
                    cell.apply({name: [(row, -m) for row, m in rows] for name, rows in tables.items()})
            continue
        for table, rows in given.items():
            for row, m in rows:
                held[table][row] += m
        cells.collect()
    assert 5 < refused < 60
    same(cells.contents, {view: comparable(one.contents(view)) for view in cells.outputs}, f"seed {seed}", True)
    cells.close()
    one.database.close()
