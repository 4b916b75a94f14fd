"""``python -m benchmarks.scale``: simulates a pipeline with many cells, from a sample of its rows.

The sample is routed to 8 up to 4,096 cells, as Spark would route it, and the engines of some cells run: the largest
and a few at random. So the figures of a cell are measured, those of all cells are sums over the routed rows, and the
driver's are those of a manifest with as many cells. docs/scale.md has the conclusions.

A workload is a script of tables and views, existing rows, and the rows of the next version.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshviews import Database
from freshviews.cells import CellPlan, Role, cell_statements, joined_columns, merge_inputs, merge_statements, plan_cells
from freshviews.kernel.machine.beside import wait_always
from freshviews.spark.state.manifest import Manifest, to_json
from freshviews.sql import Catalog, parse_script

Columns = Mapping[str, NDArray[np.int64]]

VERSION = 0.01
"""The share of the rows of the fact tables that arrive in the next version."""
MOST_HEAVY = 32
SAMPLED = 3
"""Number of cells whose engines run, besides the largest."""
SEGMENTS = 12
"""Segments in the log of a cell: eight of a level are merged (``spark.state.cell``)."""


@dataclass(frozen=True)
class Workload:
    """``facts``: the table that has new rows in a version."""

    name: str
    script: str
    facts: str
    rows: Callable[[int, np.random.Generator], dict[str, Columns]]


def _star(rows: int, chance: np.random.Generator) -> dict[str, Columns]:
    """Sales whose customers are skewed: a few buy most."""
    customers = np.minimum(chance.zipf(1.3, rows), 10_000) - 1
    return {
        "customers": {"cust": np.arange(10_000), "region": chance.integers(0, 25, 10_000)},
        "parts": {"part": np.arange(2_000), "kind": chance.integers(0, 20, 2_000)},
        "dates": {"day": np.arange(730), "month": np.arange(730) // 61},
        "sales": {
            "cust": customers,
            "part": chance.integers(0, 2_000, rows),
            "day": chance.integers(0, 730, rows),
            "qty": chance.integers(1, 50, rows),
        },
    }


def _graph(rows: int, chance: np.random.Generator) -> dict[str, Columns]:
    """Edges whose sources are skewed."""
    nodes = max(1_000, rows // 8)
    source = np.minimum(chance.zipf(1.6, rows), nodes) - 1
    return {"edges": {"src": source, "dst": chance.integers(0, nodes, rows)}}


def _orders(rows: int, chance: np.random.Generator) -> dict[str, Columns]:
    """Orders and their lines, four each."""
    orders = rows // 4
    return {
        "orders": {"o": np.arange(orders), "cust": chance.integers(0, max(1, orders // 10), orders)},
        "lines": {"o": chance.integers(0, orders, rows), "price": chance.integers(1, 10_000, rows)},
    }


WORKLOADS = (
    Workload(
        "star",
        """CREATE TABLE sales (cust BIGINT, part BIGINT, day BIGINT, qty BIGINT);
        CREATE TABLE customers (cust BIGINT PRIMARY KEY, region BIGINT);
        CREATE TABLE parts (part BIGINT PRIMARY KEY, kind BIGINT);
        CREATE TABLE dates (day BIGINT PRIMARY KEY, month BIGINT);
        CREATE MATERIALIZED VIEW totals AS SELECT region, kind, month, SUM(qty) AS qty, COUNT(*) AS n FROM sales
        JOIN customers USING (cust) JOIN parts USING (part) JOIN dates USING (day) GROUP BY region, kind, month;""",
        "sales",
        _star,
    ),
    Workload(
        "triangles",
        """CREATE TABLE edges (src BIGINT, dst BIGINT);
        CREATE MATERIALIZED VIEW triangles AS SELECT COUNT(*) AS n FROM edges a JOIN edges b ON a.dst = b.src
        JOIN edges c ON b.dst = c.src AND c.dst = a.src;""",
        "edges",
        _graph,
    ),
    Workload(
        "orders",
        """CREATE TABLE orders (o BIGINT PRIMARY KEY, cust BIGINT);
        CREATE TABLE lines (o BIGINT, price BIGINT);
        CREATE MATERIALIZED VIEW by_cust AS SELECT cust, SUM(price) AS price, COUNT(*) AS n
        FROM orders JOIN lines USING (o) GROUP BY cust;""",
        "lines",
        _orders,
    ),
)


@dataclass(frozen=True)
class Found:
    """The result for a number of cells. ``sent``: copies of the rows of a version, per row. ``rows``: in a cell, on
    average and in the largest. ``seconds``: CPU of a version in a cell, ``reported``: rows of changes of all cells."""

    cells: int
    sent: float
    mean: float
    largest: int
    bytes: int
    mean_seconds: float
    most_seconds: float
    reported: float
    merge_seconds: float
    manifest_seconds: float
    manifest_bytes: int

    @property
    def skew(self) -> float:
        return self.largest / self.mean


def catalog_of(script: str) -> Catalog:
    catalog = Catalog()
    for statement in parse_script(script, catalog):
        catalog = catalog.after(statement)
    return catalog


def plan_of(catalog: Catalog, rows: Mapping[str, Columns], cells: int) -> CellPlan:
    """The plan of the cells, with the heavy values that a first start finds (``spark.layout.measure``)."""
    heavy: dict[tuple[str, str], dict[Any, float]] = {}
    sizes = {name: float(len(next(iter(columns.values())))) for name, columns in rows.items()}
    for table, columns in rows.items():
        if sizes[table] < 1000 * cells:
            continue
        for column in joined_columns(catalog, table):
            values, counts = np.unique(columns[column], return_counts=True)
            most = np.argsort(-counts)[:MOST_HEAVY]
            found = {int(values[i]): float(counts[i]) for i in most if counts[i] > sizes[table] / (2 * cells)}
            if found:
                heavy[table, column] = found
    return plan_cells(catalog, cells, sizes, heavy)


def routed(role: Role, columns: Columns) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each copy: the positions of the rows that the role accepts, and their cells."""
    count = len(next(iter(columns.values())))
    taken = np.ones(count, bool)
    for one in role.heavy:
        taken &= np.isin(columns[one.column], np.array(one.values)) == one.inside
    places = np.flatnonzero(taken)
    fixed = np.full(len(places), role.offset, np.int64)
    for dim in role.dims:
        if dim.column is not None:
            fixed += _hashed(columns[dim.column][places], dim.seed) % dim.share * dim.stride
    for coordinates in product(*(range(dim.share) if dim.column is None else (0,) for dim in role.dims)):
        more = sum(at * dim.stride for at, dim in zip(coordinates, role.dims, strict=True))
        yield places, (fixed + more) % role.cells


def _hashed(values: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """A non-negative hash of integers (splitmix64)."""
    mixed = values.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    with np.errstate(over="ignore"):
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def simulated(workload: Workload, rows: int, cells: int, seed: int = 1) -> Found:
    """Route the rows, and run the largest cell and some others."""
    chance = np.random.default_rng(seed)
    catalog = catalog_of(workload.script)
    given = workload.rows(rows, chance)
    plan = plan_of(catalog, given, cells)
    total = len(next(iter(given[workload.facts].values())))
    new = int(total * VERSION)
    before = {
        name: {c: v[: total - new] for c, v in columns.items()} if name == workload.facts else columns
        for name, columns in given.items()
    }
    version = {c: v[total - new :] for c, v in given[workload.facts].items()}
    counts = np.zeros(cells, np.int64)
    for role in plan.roles:
        for _, at in routed(role, before[role.table]):
            counts += np.bincount(at, minlength=cells)
    sent = sum(len(at) for role in plan.roles_of(workload.facts) for _, at in routed(role, version))
    largest = int(np.argmax(counts))
    others = [int(one) for one in chance.choice(cells, min(SAMPLED, cells), replace=False) if one != largest]
    runs = {cell: _run(plan, catalog, cell, before, workload.facts, version) for cell in (largest, *others)}
    seconds = [run.seconds for run in runs.values()]
    reported = float(np.mean([run.reported for run in runs.values()])) * cells
    manifest_seconds, manifest_bytes = _manifest(plan, workload.script)
    return Found(
        cells,
        sent / new,
        float(counts.mean()),
        int(counts.max()),
        runs[largest].bytes,
        float(np.mean(seconds)),
        max(seconds),
        reported,
        _merge_seconds(plan, catalog, [run.changes for run in runs.values()], reported),
        manifest_seconds,
        manifest_bytes,
    )


@dataclass
class _Ran:
    seconds: float
    bytes: int
    reported: int
    changes: dict[str, pa.Table]


def _run(
    plan: CellPlan, catalog: Catalog, cell: int, before: Mapping[str, Columns], facts: str, version: Columns
) -> _Ran:
    """Run the engine of a cell: its rows, then those of the version."""
    with Database(threads=1) as db:
        db.define(cell_statements(plan, catalog, cell))
        for role in plan.roles:
            db.insert(role.name, _rows_of(role, before[role.table], cell))
        # The first small batch of a table is not measured: it makes plans of the direct way.
        for role in plan.roles_of(facts):
            part = _rows_of(role, before[facts], cell).slice(0, 1)
            db.insert(role.name, part)
            db.delete(role.name, part)
        reported: dict[str, list[pa.Table]] = {}
        for name in db.views:
            db.view(name).subscribe(lambda change, name=name: reported.setdefault(name, []).append(change.to_arrow()))
        parts = {role.name: _rows_of(role, version, cell) for role in plan.roles_of(facts)}
        gc.collect()
        start = time.process_time()
        with db.batch() as batch:
            for name, part in parts.items():
                batch.insert(name, part)
        seconds = time.process_time() - start
        changes = {name: pa.concat_tables(some) for name, some in reported.items()}
        return _Ran(seconds, db.stats()["bytes"], sum(one.num_rows for one in changes.values()), changes)


def _rows_of(role: Role, columns: Columns, cell: int) -> pa.Table:
    places = [places[at == cell] for places, at in routed(role, columns)]
    kept = np.concatenate(places)
    return pa.table({name: values[kept] for name, values in columns.items()})


def _merge_seconds(plan: CellPlan, catalog: Catalog, changes: Sequence[Mapping[str, pa.Table]], sent: float) -> float:
    """CPU seconds of the merge of ``sent`` rows, computed from those of the cells that ran, as one batch; 0 without
    a merge."""
    inputs = merge_inputs(plan, catalog)
    taken = {
        table: [one[view] for view in views for one in changes if view in one] for table, views in inputs.items()
    }
    rows = sum(one.num_rows for some in taken.values() for one in some)
    if not rows:
        return 0.0
    with Database(threads=1) as db:
        db.define(merge_statements(plan, catalog))
        again = max(1, min(int(sent), 100_000) // rows)
        seconds = 0.0
        # The first pass prepares functions that are called for the first time.
        for _ in range(2):
            start = time.process_time()
            with db.batch() as batch:
                for table, some in taken.items():
                    if some:
                        batch.apply(table, pa.concat_tables(some * again).combine_chunks())
            seconds = time.process_time() - start
        return seconds * sent / (rows * again)


def _manifest(plan: CellPlan, script: str) -> tuple[float, int]:
    """Seconds to write and to read a manifest with this number of cells, and its bytes."""
    token = "0" * 32
    files = {role.name: f"state/0/{token}.arrow@0+1000" for role in plan.roles}
    log = [{"token": token, "level": 0, "rows": 1000, "files": files} for _ in range(SEGMENTS)]
    entry = {"token": token, "image": {"folder": f"state/{token}", "token": token}, "log": log, "pending": None}
    cells = {str(number): entry for number in range(plan.cells)}
    sizes = {number: {role.name: 1_000_000 for role in plan.roles} for number in cells}
    changes = {"v": [f"changes/{token}.arrow@0+1000"] * plan.cells}
    manifest = Manifest(
        1, 1, token, 0.0, {"t": script}, {}, plan=plan.to_json(), cells=cells, sizes=sizes, changes=changes
    )
    start = time.process_time()
    text = to_json(manifest)
    json.loads(text)
    return time.process_time() - start, len(text)


COLUMNS = (
    "cells", "copies of a row", "rows in a cell", "largest", "skew", "state of the largest", "a version in a cell",
    "in the slowest", "changes, all cells", "merging them", "manifest",
)  # fmt: skip


def line(found: Found) -> str:
    """A line of the table."""
    cells = [
        f"{found.cells:,}",
        f"{found.sent:.3g}",
        f"{found.mean:,.0f}",
        f"{found.largest:,}",
        f"{found.skew:.2f}",
        f"{found.bytes / 1e6:.1f} MB",
        f"{found.mean_seconds * 1e3:.2g} ms",
        f"{found.most_seconds * 1e3:.2g} ms",
        f"{found.reported:,.0f}",
        f"{found.merge_seconds * 1e3:.2g} ms",
        f"{found.manifest_seconds * 1e3:.2g} ms, {found.manifest_bytes / 1e6:.2g} MB",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table per workload."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the sample")
    parser.add_argument("--cells", type=int, nargs="+", default=[8, 64, 512, 4096])
    parser.add_argument("--only", nargs="+", choices=[one.name for one in WORKLOADS], help="workloads")
    asked = parser.parse_args()
    wait_always()
    for workload in WORKLOADS:
        if not asked.only or workload.name in asked.only:
            print(f"\n{workload.name}, {asked.rows:,} rows, of which {VERSION:.0%} come in a version\n")
            print(f"| {' | '.join(COLUMNS)} |\n|{' ---: |' * len(COLUMNS)}", flush=True)
            for cells in asked.cells:
                print(line(simulated(workload, asked.rows, cells)), flush=True)


if __name__ == "__main__":
    main()
