"""Views over the clock in several cells agree with one engine, and a cell's log has what the clock moves."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshviews.catalog.clock import CLOCK
from freshviews.cells import cell_statements, locations, plan_cells
from freshviews.spark.state.cell import EMPTY, appended, load_cell, new_token, segment_of
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.worker.intake import Feed, Intake, take_in
from tests.agreement.scenario import Version
from tests.cells.simulated import catalog_of, check
from tests.engine.test_clock import SHAPES, TABLES, at

pytestmark = pytest.mark.plain_python(only=True)

VIEWS = (
    *SHAPES,
    "SELECT d, n FROM (SELECT d, COUNT(*) AS n FROM t GROUP BY d) AS days WHERE d >= current_date() - 1",
    "SELECT COUNT(*) AS n, MAX(ts) AS m FROM t WHERE ts > now()",
)


def script(queries: Iterable[str]) -> str:
    return TABLES + ";".join(f"CREATE MATERIALIZED VIEW v{i} AS {query}" for i, query in enumerate(queries))


def versions(seed: int) -> list[Version]:
    """Changes of both tables, and of the clock in each version."""
    draw = random.Random(seed)
    held: dict[str, dict[int, tuple[Any, ...]]] = {"t": {}, "a": {}}
    minute, number = 0.0, 0
    found: list[Version] = []
    for version in range(5):
        changes: dict[str, list[tuple[tuple[Any, ...], int]]] = {"t": [], "a": []}
        for _ in range(draw.choice((0, 4, 9))):
            name = draw.choice("ttta")
            if held[name] and draw.random() < 0.35:
                changes[name].append((held[name].pop(draw.choice(list(held[name]))), -1))
                continue
            number += 1
            ts = None if draw.random() < 0.1 else at(minute + draw.choice((-120, -60, -30, 0, 0, 30, 60)))
            row: tuple[Any, ...] = (number, draw.randrange(3))
            held[name][number] = row + ((ts, at(draw.randrange(-3, 3) * 1440).date()) if name == "t" else ())
            changes[name].append((held[name][number], 1))
        before, minute = minute, minute + draw.choice((15, 30, 60, 60, 300))
        clock = [((at(minute),), 1), *([((at(before),), -1)] if version else [])]
        found.append([("t", changes["t"]), ("a", changes["a"]), (CLOCK.name, clock)])
    return found


@pytest.mark.seeds(1)
def test_cells_agree_with_one_engine_while_the_clock_moves(seed: int, tmp_path: Path) -> None:
    """The views are drawn from all: more take too long."""
    catalog = catalog_of(script([*VIEWS[-2:], *random.Random(seed).sample(SHAPES, 2)]))
    check(plan_cells(catalog, 3, {"t": 1000.0, "a": 10.0}), catalog, versions(seed), tmp_path)


def test_every_cell_gets_the_clock_and_no_table_is_split_by_the_clock() -> None:
    catalog = catalog_of(script([SHAPES[0], VIEWS[-2]]))
    plan = plan_cells(catalog, 4, {"t": 1000.0})
    assert all(dim.column is None for role in plan.roles_of(CLOCK.name) for dim in role.dims)
    assert [(one.name, one.where) for one in locations(plan, catalog, {"t": 1000.0}) if "#" not in one.name] == [
        ("v0", "second stage"),
        ("v1", "second stage"),
        ("table t", "4 cells"),
        ("table a", "4 cells"),
    ]


def test_the_log_of_a_cell_contains_the_rows_that_the_clock_moves(tmp_path: Path) -> None:
    catalog = catalog_of(script([SHAPES[1]]))
    statements = cell_statements(plan_cells(catalog, 1, {}), catalog, 0)
    store = store_of(tmp_path)
    feed = Feed("t", "t", {"id": "id", "k": "k", "ts": "ts", "d": "d"}, None, {}, False, False, frozenset([0]))
    rows = pa.RecordBatch.from_pylist([{"id": i, "k": 1, "ts": at(20 * i), "d": None} for i in range(4)])
    cell, entry = load_cell(store, EMPTY, statements), EMPTY
    for minute, given, expected in ((30, rows, [(0,), (1,)]), (30, None, [(0,), (1,)]), (70, None, [(1,), (2,), (3,)])):
        clock = int((at(minute) - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1))
        moved = take_in(cell, [Intake(feed, cell.tables["t"], given)], clock)
        assert sorted(cell.database.view("v0")) == expected
        tables = {name: pa.Table.from_batches([one]) for name, one in moved.items()}
        segment = segment_of(store, "0", tables)
        entry = appended(store, "0", entry, cell, segment, new_token(), log_only=True)
        segment.wait()
        cell.database.close()
        # A replay of the log leads to the same rows at the same time.
        cell = load_cell(store, entry, statements)
        assert sorted(cell.database.view("v0")) == expected
        assert list(cell.database.table(CLOCK.name)) == [(at(minute),)]
    assert len(entry["log"]) == 2
