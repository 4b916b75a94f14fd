"""Cells agree with one engine on random views and streams, with kernels and generated code run as plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from freshviews.cells import CellPlan, describe, extended, plan_cells
from freshviews.errors import UnsupportedSql
from freshviews.kernel.memory import mem
from tests.agreement.cases import CASES
from tests.agreement.choices import Choices, seeded
from tests.agreement.random_tables import versions
from tests.agreement.scenario import Scenario
from tests.agreement.sql_places import places_scenario, range_scenario
from tests.agreement.sql_queries import scenario
from tests.agreement.sql_sets import set_scenario
from tests.agreement.sql_top import top_scenario
from tests.cells.simulated import catalog_of, check, random_versions
from tests.tiers import in_turn

pytestmark = pytest.mark.plain_python(only=True)

CELLS = (2, 3, 4, 8)


def test_kernels_run_as_plain_python_in_this_module() -> None:
    assert mem.PURE_PYTHON


@pytest.mark.seeds(200)
def test_cells_agree_with_one_engine_on_random_views(seed: int) -> None:
    found = scenario(seeded(seed))
    rng = random.Random(seed)
    catalog = catalog_of(found.script)
    sizes = {table.name: rng.choice((1.0, 10.0, 1000.0)) for table in found.tables}
    heavy = often(found, rng) if seed % 2 else {}
    # Some plans begin with only the first view, and grow.
    begun = catalog_of(replace(found, views=found.views[:1]).script) if seed % 3 == 0 else catalog
    plan = extended(plan_cells(begun, rng.choice(CELLS), sizes, heavy), catalog, sizes)
    assert CellPlan.from_json(plan.to_json()) == plan
    told = describe(plan, catalog, sizes)
    try:
        check(plan, catalog, found.versions)
    except Exception as failure:
        raise AssertionError(f"seed {seed}\n{found}\n{told}") from failure


@pytest.mark.parametrize(
    "made", [set_scenario, top_scenario, partial(places_scenario, refused=False), range_scenario]
)
@pytest.mark.seeds(25)
def test_cells_agree_with_one_engine_on_many_constructs(
    made: Callable[[Choices], Scenario], seed: int
) -> None:
    """Set operations, first rows, subqueries in every place, range joins and running sums."""
    found = made(seeded(seed))
    try:
        catalog = catalog_of(found.script)
    except UnsupportedSql:
        return
    plan = plan_cells(catalog, CELLS[seed % len(CELLS)], {})
    assert CellPlan.from_json(plan.to_json()) == plan
    check(plan, catalog, found.versions)


@pytest.mark.large(0)
@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] if i % 2 else []) for i, name in enumerate(sorted(CASES))]
)
def test_cells_agree_with_one_engine_on_the_table_of_cases(name: str) -> None:
    case = CASES[name]
    catalog = catalog_of(case.script)
    for cells in in_turn(CELLS, sorted(CASES).index(name) // 2):
        stream = versions(seeded(cells), case.tables, cells == 3)
        check(plan_cells(catalog, cells, {}), catalog, stream)


@pytest.mark.parametrize("cells", [2, 3, 8])
def test_heavy_values_change_only_the_routing(cells: int) -> None:
    script = (
        "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM r JOIN s USING (x);"
        "CREATE MATERIALIZED VIEW w AS SELECT x, COUNT(*) AS n FROM r JOIN s USING (x) GROUP BY x;"
        "CREATE MATERIALIZED VIEW u AS SELECT a, COUNT(*) AS n, MIN(b) AS b FROM r JOIN s USING (x) GROUP BY a;"
    )
    catalog = catalog_of(script)
    plan = plan_cells(catalog, cells, {"r": 100, "s": 100}, {("r", "x"): {1: 70.0}, ("s", "x"): {1: 70.0, 2: 20.0}})
    assert all(len(plan.parts_of(view)) == 2 for view in "vwu")
    check(plan, catalog, random_versions(catalog, 1, 4))


def often(found: Scenario, rng: random.Random) -> dict[tuple[str, str], dict[Any, float]]:
    """The most frequent value of some columns, declared to be most of the table."""
    heavy: dict[tuple[str, str], dict[Any, float]] = {}
    for table in found.tables:
        rows = [row for v in found.versions for name, updates in v if name == table.name for row, _ in updates]
        for i, column in enumerate(table.columns):
            values = Counter(row[i] for row in rows if row[i] is not None)
            if values and rng.random() < 0.6:
                heavy[table.name, column.name] = {values.most_common(1)[0][0]: 500.0}
    return heavy


@pytest.mark.parametrize("cells", [2, 3, 8])
@pytest.mark.parametrize("heavy", [False, True])
def test_views_with_not_exists_over_several_cells_agree_with_one_engine(cells: int, heavy: bool) -> None:
    script = (
        "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
        "CREATE TABLE t (x BIGINT, y BIGINT);"
        "CREATE MATERIALIZED VIEW u AS SELECT a, x FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.x = r.x);"
        "CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM r WHERE NOT EXISTS "
        "(SELECT 1 FROM s WHERE s.x = r.x AND s.b = r.a) GROUP BY a;"
        "CREATE MATERIALIZED VIEW w AS SELECT y, MIN(a) AS a FROM r JOIN t USING (x) WHERE NOT EXISTS "
        "(SELECT 1 FROM s WHERE s.x = t.y) GROUP BY y;"
        "CREATE MATERIALIZED VIEW z AS SELECT COUNT(*) AS n FROM u WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.n = u.x);"
    )
    catalog = catalog_of(script)
    often_there = {("r", "x"): {1: 70.0}, ("s", "x"): {1: 70.0, 2: 20.0}, ("s", "b"): {1: 70.0}}
    plan = plan_cells(catalog, cells, {"r": 100, "s": 100, "t": 10}, often_there if heavy else {})
    check(plan, catalog, random_versions(catalog, cells, 12))
