"""The simulator of many cells routes rows as a grid of cells does, and runs their engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.scale import WORKLOADS, Workload, _hashed, catalog_of, line, plan_of, routed, simulated
from freshviews.cells import cells_of

pytestmark = pytest.mark.plain_python


def hash_of(value: Any, kind: str, seed: int) -> int:
    assert kind == "bigint"
    return int(_hashed(np.array([value], np.int64), seed)[0])


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
@pytest.mark.parametrize("cells", [1, 6, 64])
def test_the_simulation_routes_rows_like_a_grid_of_cells(workload: Workload, cells: int) -> None:
    rows = workload.rows(20_000 if cells == 6 else 400, np.random.default_rng(3))
    plan = plan_of(catalog_of(workload.script), rows, cells)
    for role in plan.roles:
        columns = {name: values[:200] for name, values in rows[role.table].items()}
        found: dict[int, set[int]] = {place: set() for place in range(len(next(iter(columns.values()))))}
        for places, at in routed(role, columns):
            for place, cell in zip(places.tolist(), at.tolist(), strict=True):
                assert cell not in found[place]
                found[place].add(cell)
        for place, there in found.items():
            row = {name: int(values[place]) for name, values in columns.items()}
            assert there == set(cells_of(role, row, hash_of)), (role, row)
    if cells == 6 and workload.name != "orders":
        assert any(role.heavy for role in plan.roles)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
@pytest.mark.full
def test_the_simulation_of_cells_measures_rows_bytes_and_seconds(workload: Workload) -> None:
    found = simulated(workload, 2_000, 4)
    assert found.sent >= 1 and found.largest >= found.mean > 0 and found.bytes > 0
    assert found.most_seconds >= found.mean_seconds > 0 and (found.reported > 0 or workload.name == "triangles")
    assert line(found).startswith("| 4 | ")
