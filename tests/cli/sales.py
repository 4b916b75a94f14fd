"""Makes a checkpoint of sales without Spark."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from freshviews.cells import plan_cells
from freshviews.spark.definition import catalog_of, tables_of
from freshviews.spark.layout.layout import layout_of
from freshviews.spark.state.cell import EMPTY, appended, changes_schema, load_cell, new_token, segment_of
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of

TABLES = {
    "sales": "CREATE TABLE sales (id BIGINT, part STRING, price DECIMAL(9, 2), weight DOUBLE, day DATE, at TIMESTAMP)"
}
VIEWS = {
    "kept": "CREATE MATERIALIZED VIEW kept AS SELECT id, part, price, weight, day, at FROM sales",
    "by_part": "CREATE MATERIALIZED VIEW by_part AS SELECT part, COUNT(*) AS n FROM sales GROUP BY part",
}
NEVER = dt.datetime(2026, 1, 5, 12, 30, 0, 250000)


def sale(number: int, part: str | None, sign: int = 1, weight: float | None = 1.5) -> dict[str, object]:
    price = None if part is None else Decimal(number) / 4
    row = {"id": number, "part": part, "price": price, "weight": weight, "day": dt.date(2026, 1, 5), "at": NEVER}
    return {**row, "_multiplicity": sign}


def commit(root: Path, before: Manifest | None, rows: list[dict[str, object]]) -> Manifest:
    """Commits the version after ``before``, with further rows."""
    store = store_of(root)
    if before is None:
        plan = plan_cells(catalog_of(";\n".join([*TABLES.values(), *VIEWS.values()])), 1, {})
        before = Manifest(0, -1, None, time.time(), TABLES, VIEWS, plan=plan.to_json())
    layout = layout_of(before)
    (role,) = layout.roles
    entry = before.cells.get("0", EMPTY)
    cell = load_cell(store, entry, layout.statements[0])
    change = pa.Table.from_pylist(rows).cast(changes_schema(tables_of(TABLES["sales"])["sales"]))
    cell.database.apply(role.name, change)
    segment = segment_of(store, "0", {role.name: change})
    after = appended(store, "0", entry, cell, segment, new_token(), log_only=True)
    segment.wait()
    cell.database.close()
    made = replace(before, version=before.version + 1, time=time.time(), cells={"0": after})
    Manifests(store).commit(made)
    return made
