"""Five joins compared with programs that are compiled before they start, in batches of 1 to 10,000 rows.

``2-hop``, ``3-hop`` and ``triangle`` are counted in a graph of 300,000 edges with power-law degrees, drawn as in
``triangle``. ``star`` is a SUM by group over 300,000 sales with three dimensions. ``q3`` is TPC-H Q3 at scale factor
0.1, over the columns that it reads.

A window moves over the rows: four fifths of them are inserted before the clock starts; then a batch of inserts and
a batch of deletes of the oldest rows take turns. Each batch is of one table, tables in proportion to their sizes. The
programs of ``benchmarks.peers`` read only integers: ``pattern`` describes the columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring.stream import Relation, Step, Stream, interleaved, spread_over
from benchmarks.workloads import tpch, triangle
from benchmarks.workloads.graph import view_of
from benchmarks.workloads.graphs import chung_lu
from benchmarks.workloads.tpch_queries import QUERIES

TITLE = "compiled"
UNIT = "rows/s"

SIZES = (1, 10, 100, 1_000, 10_000)
VIEWS = ("2-hop", "3-hop", "triangle", "star", "q3")
CASES = tuple(f"{view}, batches of {size}" for view in VIEWS for size in SIZES)
FILLED = 0.8
"""Share of the rows that are inserted before the clock starts."""
POINTS = 10

SALES, PRODUCTS, STORES, CUSTOMERS = 300_000, 2_000, 500, 20_000
STAR = {
    "sale": Relation(
        "sale", "id BIGINT, product BIGINT, store BIGINT, customer BIGINT, quantity BIGINT", ("id",), declared=True
    ),
    "product": Relation("product", "product BIGINT, category BIGINT, price BIGINT", ("product",), declared=True),
    "store": Relation("store", "store BIGINT, region BIGINT", ("store",), declared=True),
    "customer": Relation("customer", "customer BIGINT, segment BIGINT", ("customer",), declared=True),
}
STAR_VIEW = """
    SELECT category, region, segment, SUM(quantity * price) AS worth, COUNT(*) AS n
    FROM sale
    JOIN product ON sale.product = product.product
    JOIN store ON sale.store = store.store
    JOIN customer ON sale.customer = customer.customer
    GROUP BY category, region, segment
"""
Q3_COLUMNS = {
    "customer": ("c_custkey", "c_mktsegment"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_extendedprice", "l_discount", "l_shipdate"),
}


def prepare() -> None:
    """Generate the tables of TPC-H if they are missing."""
    tpch.prepare()


def stream(case: str) -> Stream:
    """The stream of a case, ``view[, small], batches of n``: ``small`` is a hundredth; the same one at every call."""
    name, *more = case.split(", ")
    size = int(more[-1].split()[-1])
    share = 0.01 if "small" in more else 1.0
    if name == "star":
        return star_stream(size, share)
    if name == "q3":
        relations, view, tables = _q3(share)
    else:
        nodes, edges = (round(number * share) for number in (triangle.NODES, triangle.EDGES))
        rows = chung_lu(nodes, edges, 3.0)
        relations = (Relation("edge", "src BIGINT, dst BIGINT", ("src", "dst")),)
        view, tables = view_of(name), {"edge": pa.table({"src": rows[:, 0], "dst": rows[:, 1]})}
    return _stream(name, relations, view, tables, size)


def star_stream(size: int, share: float = 1.0) -> Stream:
    """The stream of the star in batches of ``size``; ``share``: times the rows of each table."""
    return _stream("star", tuple(STAR.values()), STAR_VIEW, _star(share), size)


def _stream(name: str, relations: tuple[Relation, ...], view: str, tables: dict[str, pa.Table], size: int) -> Stream:
    filling, changes = _windowed(tables, size)
    compared = tuple(len(filling) + i for i in spread_over(len(changes), POINTS))
    return Stream(
        relations, view, (*filling, *changes), compared, before=len(filling), pattern={"name": name, "program": name}
    )


def _windowed(tables: dict[str, pa.Table], size: int) -> tuple[list[Step], list[Step]]:
    """The batches that fill the window, and those that move it by the remaining rows."""
    first = {name: round(FILLED * table.num_rows) for name, table in tables.items()}
    filling = interleaved({name: table.slice(0, first[name]) for name, table in tables.items()})
    rest = {name: table.slice(first[name]) for name, table in tables.items()}
    oldest = {name: tables[name].slice(0, table.num_rows) for name, table in rest.items()}
    changes = []
    for one, other in zip(interleaved(rest, size), interleaved(oldest, size), strict=True):
        changes += [one, replace(other, sign=-1)]
    return filling, changes


def _star(share: float) -> dict[str, pa.Table]:
    random = np.random.default_rng(1)
    sales, products, stores, customers = (
        max(20, round(number * share)) for number in (SALES, PRODUCTS, STORES, CUSTOMERS)
    )
    return {
        "sale": pa.table(
            {
                "id": np.arange(sales),
                "product": random.integers(0, products, sales),
                "store": random.integers(0, stores, sales),
                "customer": random.integers(0, customers, sales),
                "quantity": random.integers(1, 100, sales),
            }
        ),
        "product": pa.table(
            {
                "product": random.permutation(products),
                "category": random.integers(0, 20, products),
                "price": random.integers(1, 1000, products),
            }
        ),
        "store": pa.table({"store": random.permutation(stores), "region": random.integers(0, 10, stores)}),
        "customer": pa.table({"customer": random.permutation(customers), "segment": random.integers(0, 5, customers)}),
    }


def _q3(share: float) -> tuple[tuple[Relation, ...], str, dict[str, pa.Table]]:
    place = tpch.DATA / f"tpch-{tpch.SCALES['small' if share < 1 else '']}"
    names, view = QUERIES["q3"]
    tables = {name: pq.read_table(place / f"{name}.parquet", columns=list(Q3_COLUMNS[name])) for name in names.split()}
    relations = []
    for name, columns in Q3_COLUMNS.items():
        whole = tpch.RELATIONS[name]
        chosen = ", ".join(f"{column} {whole.types()[column]}" for column in columns)
        relations.append(Relation(name, chosen, whole.identity))
    return tuple(relations), view, tables
