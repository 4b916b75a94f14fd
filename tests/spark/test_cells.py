"""Several cells on Spark: every view equals that of one engine, with joins, merges and views added later."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.errors import PlanError
from freshviews.spark import Pipeline
from freshviews.spark.layout.layout import layout_of
from freshviews.spark.reading.contents import latest
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.world import VIEWS, World, check, write_script

pytestmark = pytest.mark.spark

def run(spark: Any, folder: Path, views: list[str], cells: int | None) -> None:
    query = Pipeline.from_script(spark, write_script(folder, views), cells=cells).start(once=True)
    query.awaitTermination()
    assert query.exception() is None


CELLS = [1, 3, 8] if os.environ.get("LONG") else [3]
"""``LONG=1 pytest tests/spark/test_cells.py`` is the long form."""


@pytest.mark.full
@pytest.mark.long("several runs of a pipeline")
@pytest.mark.parametrize("cells", CELLS)
def test_cells_equal_one_engine_while_views_are_added(
    spark: Any, tmp_path: Path, cells: int
) -> None:
    world = World(tmp_path)
    first = ["triangles", "by_shop", "shops"]
    world.write()
    run(spark, tmp_path, first, cells)
    check(world, first)
    world.write()
    run(spark, tmp_path, first, None)
    check(world, first)
    # Views that need rows that no cell has yet, and one over an existing view.
    world.write()
    run(spark, tmp_path, list(VIEWS), None)
    check(world, list(VIEWS))
    kept = ["paths", "reached"]
    world.write()
    run(spark, tmp_path, kept, None)
    check(world, kept)
    begun = latest(store_of(tmp_path / "script.checkpoint")).cells
    assert len([number for number in begun if number != "merge"]) == cells


def test_a_row_copied_to_several_cells_is_counted_once(spark: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(50)
    run(spark, tmp_path, ["paths", "reached"], 8)
    assert latest(store_of(tmp_path / "script.checkpoint")).totals["rows"] == {"edges": 50, "sales": 50}


@pytest.mark.full
def test_heavy_values_are_measured_and_split(spark: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    hub = [(3, n) for n in range(2000)] + [(n, 3) for n in range(2000)] + [(n, n + 1) for n in range(4, 900)]
    world.edges.update(hub)
    src, dst = zip(*hub, strict=True)
    rows = pa.table({"src": src, "dst": dst, "_multiplicity": [1] * len(hub)})
    pq.write_table(rows, tmp_path / "edges" / "hub.parquet")
    world.write(20)
    run(spark, tmp_path, ["hops"], 4)
    check(world, ["hops"])
    layout = layout_of(latest(store_of(tmp_path / "script.checkpoint")))
    assert {(one.column.lower(), one.values) for one in layout.plan.heavy} == {("src", (3,)), ("dst", (3,))}
    assert any(role.heavy for role in layout.roles)


@pytest.mark.full
@pytest.mark.long("several runs of a pipeline")
def test_changing_the_number_of_cells_distributes_all_rows_again(spark: Any, tmp_path: Path) -> None:
    """Views stay exact and no change is delivered twice, also if a view is added or dropped in the same start."""
    world = World(tmp_path)
    views = ["paths", "by_shop"]
    for number in (2, 3, 1):
        world.write(60)
        run(spark, tmp_path, views, number)
        check(world, views)
        found = latest(store_of(tmp_path / "script.checkpoint"))
        assert layout_of(found).cells == number
        assert len([name for name in found.cells if name != "merge"]) == number
        world.write(30)
        run(spark, tmp_path, views, None)
        check(world, views)
        assert layout_of(latest(store_of(tmp_path / "script.checkpoint"))).cells == number
        views = ["by_shop", "triangles"]


def test_scripts_that_need_one_cell_are_refused_for_several_cells(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = "CREATE STREAMING TABLE t (k INT) USING json OPTIONS (path 'in', changes 'debezium');"
    (tmp_path / "script.sql").write_text(table + "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;")
    with pytest.raises(PlanError, match=r"table t: .*Debezium.*PRIMARY KEY.*none; use one cell"):
        Pipeline.from_script(spark, tmp_path / "script.sql", cells=2).start(once=True)
    spoiled = SHOP.replace("'customers'", "'customers', bad_rows 'bad'")
    (tmp_path / "script.sql").write_text(spoiled)
    for folder in ("customers", "orders"):
        (tmp_path / folder).mkdir()
    with pytest.raises(PlanError, match=r"table customers: a row that a foreign key refuses .* use one cell"):
        Pipeline.from_script(spark, tmp_path / "script.sql", cells=2).start(once=True)


SHOP = """
CREATE STREAMING TABLE customers (id INT PRIMARY KEY, city STRING) USING json OPTIONS (path 'customers');
CREATE STREAMING TABLE orders (id INT PRIMARY KEY, customer INT REFERENCES customers)
  USING json OPTIONS (path 'orders');
CREATE MATERIALIZED VIEW by_city AS
SELECT city, COUNT(*) AS n FROM orders JOIN customers ON customer = customers.id GROUP BY city;
"""


@pytest.mark.full
@pytest.mark.long("several runs of a pipeline")
def test_a_foreign_key_is_checked_in_the_cells(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text(SHOP)

    def write(customers: dict[int, str], orders: dict[int, int | None]) -> None:
        for table, rows in (
            ("customers", [{"id": number, "city": city} for number, city in customers.items()]),
            ("orders", [{"id": number, "customer": customer} for number, customer in orders.items()]),
        ):
            (tmp_path / table).mkdir(exist_ok=True)
            kept = tmp_path / table / f"{len(list((tmp_path / table).iterdir()))}.json"
            kept.write_text("\n".join(map(json.dumps, rows)))

    def cities() -> dict[str, int]:
        pipeline = Pipeline.from_script(spark, tmp_path / "script.sql", cells=3)
        pipeline.start(once=True).awaitTermination()
        return {row["city"]: row["n"] for row in pipeline.view("by_city").collect()}

    write({number: "oslo" if number % 2 else "rome" for number in range(20)}, {n: n % 20 for n in range(50)})
    assert cities() == {"oslo": 25, "rome": 25}
    write({20: "bern"}, {50: 20, 51: 3, 52: None})
    assert cities() == {"oslo": 26, "rome": 25, "bern": 1}
    write({}, {53: 3, 54: 21})
    broken = r"table orders, .*FOREIGN KEY \(customer\) REFERENCES customers \(id\).*no row for 21 .*json, row 2"
    with pytest.raises(Exception, match=broken):
        cities()
    # The micro-batch stays the same, so the file is corrected.
    (tmp_path / "orders" / "2.json").write_text('{"id": 53, "customer": 3}')
    assert cities() == {"oslo": 27, "rome": 25, "bern": 1}
    (tmp_path / "script.sql").write_text(SHOP.replace("'orders')", "'orders', bad_rows 'bad')"))
    with pytest.raises(PlanError, match=r"table orders: a row that a foreign key refuses .* --cells 1"):
        cities()


FROM_DATABASES = """
CREATE STREAMING TABLE customers (ID INT PRIMARY KEY, city STRING)
  USING text OPTIONS (path 'customers', changes 'debezium', bad_rows 'bad');
CREATE STREAMING TABLE orders (id BIGINT, customer INT, line INT, PRIMARY KEY (id, customer))
  USING text OPTIONS (path 'orders', changes 'debezium-upsert');
CREATE MATERIALIZED VIEW by_city AS
SELECT city, COUNT(*) AS n, SUM(line) AS lines FROM orders JOIN customers ON customer = customers.id GROUP BY city;
"""


@pytest.mark.full
@pytest.mark.long("several runs of a pipeline")
def test_debezium_envelopes_are_routed_by_their_keys(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text(FROM_DATABASES)

    def write(table: str, *messages: Any) -> None:
        (tmp_path / table).mkdir(exist_ok=True)
        kept = tmp_path / table / f"{len(list((tmp_path / table).iterdir()))}.txt"
        kept.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in messages))

    def cities() -> dict[str, tuple[int, int]]:
        pipeline = Pipeline.from_script(spark, tmp_path / "script.sql", cells=3)
        pipeline.start(once=True).awaitTermination()
        assert layout_of(latest(store_of(tmp_path / "script.checkpoint"))).cells == 3
        return {row["city"]: (row["n"], row["lines"]) for row in pipeline.view("by_city").collect()}

    def order(number: int, customer: int, line: int) -> dict[str, int]:
        return {"id": number, "customer": customer, "line": line}

    # A field may be spelled as in the database, and an envelope may have its schema with it.
    write("customers", *({"op": "r", "after": {"Id": n, "city": "oslo" if n % 2 else "rome"}} for n in range(20)))
    write("orders", *({"schema": {}, "payload": {"op": "c", "after": order(n, n % 20, n)}} for n in range(50)), "")
    assert cities() == {"oslo": (25, 625), "rome": (25, 600)}
    old = {"ID": 1, "city": "oslo"}
    write("customers", {"op": "u", "before": old, "after": {**old, "city": "bern"}}, '{"op": "x"}', "{")
    write("orders", {"op": "u", "after": order(2, 2, 102)}, {"op": "d", "before": {"id": 4, "customer": 4}})
    write("orders", {"op": "c", "after": order(50, 0, 0)}, {"op": "u", "after": order(50, 0, 1)}, "null")
    assert cities() == {"oslo": (22, 562), "rome": (25, 697), "bern": (3, 63)}
    bad = [json.loads(line) for file in sorted((tmp_path / "bad").glob("*")) for line in file.read_text().splitlines()]
    assert sorted(row["row"] for row in bad) == [2, 3]
    write("customers", {"op": "u", "before": {"ID": 3, "city": "oslo"}, "after": {"ID": 5, "city": "oslo"}})
    with pytest.raises(Exception, match=r"the primary key is .*'ID': 3.* before and .*5.* after; .* or use one cell"):
        cities()
