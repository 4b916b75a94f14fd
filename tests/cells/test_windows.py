"""Windows in several cells: one engine in front decides which rows leave, and views agree with one engine."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import pytest

from freshviews import BatchError
from freshviews.catalog.definitions import TableDef
from freshviews.cells import cell_statements, describe, locations, plan_cells, window_statements, windowed_tables
from tests.agreement.scenario import Row
from tests.cells.simulated import Cells, Engine, catalog_of

SCRIPT = """
CREATE TABLE e (src BIGINT, dst BIGINT) TBLPROPERTIES ('freshviews.window' = '25 rows');
CREATE TABLE s (id BIGINT, node BIGINT, at TIMESTAMP NOT NULL, PRIMARY KEY (id))
  TBLPROPERTIES ('freshviews.window' = '40 seconds on at');
CREATE TABLE n (node BIGINT, name STRING);
CREATE MATERIALIZED VIEW hops AS SELECT a.src, b.dst FROM e a JOIN e b ON a.dst = b.src;
CREATE MATERIALIZED VIEW triangles AS SELECT COUNT(*) AS n FROM e a, e b, e c
  WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src;
CREATE MATERIALIZED VIEW by_name AS SELECT name, COUNT(*) AS n, MIN(at) AS first, MAX(id) AS last
  FROM s JOIN n USING (node) GROUP BY name;
CREATE MATERIALIZED VIEW reached AS SELECT DISTINCT s.id, e.dst FROM s JOIN e ON s.node = e.src;
"""


@pytest.mark.parametrize("cells", [3, *(pytest.param(cells, marks=pytest.mark.full) for cells in (2, 8))])
def test_views_over_windows_agree_with_one_engine(cells: int) -> None:
    catalog = catalog_of(SCRIPT)
    plan = plan_cells(catalog, cells, {})
    rng = random.Random(cells)
    views = ("hops", "triangles", "by_name", "reached")
    one = Engine((*catalog.tables.values(), *cell_statements(plan_cells(catalog, 1, {}), catalog, 0)[3:]), views)
    many = Cells(plan, catalog)
    start, seconds, ids = dt.datetime(2026, 1, 1), 0, 0
    left = 0
    for _ in range(25):
        edges = [((rng.randrange(5), rng.randrange(5)), 1) for _ in range(rng.choice((0, 1, 5, 40)))]
        sales: list[tuple[Row, int]] = []
        for _ in range(rng.choice((0, 3, 12))):
            seconds += rng.choice((0, 0, 1, 5, 60) if rng.random() < 0.2 else (0, 1))
            ids += 1
            late = rng.choice((0, 0, 0, 10, 39, 40, 50))  # the last two are too late for the window
            sales.append(((ids, rng.randrange(5), start + dt.timedelta(seconds=seconds - late)), 1))
        nodes = [((rng.randrange(5), rng.choice("xyz")), 1) for _ in range(rng.randrange(2))]
        version = [("e", edges), ("s", sales), ("n", nodes)]
        one.take()
        one.apply(dict(version))
        own = one.take()
        told = many.apply(version)
        left += sum(-m for m in told["hops"].values() if m < 0)
        for view in views:
            assert {row: m for row, m in told[view].items() if m} == {
                row: m for row, m in own.get(view, Counter()).items() if m
            }, view
            assert many.contents[view] == one.contents(view), view
    assert left > 50


def test_one_engine_in_front_of_several_cells_maintains_the_windows() -> None:
    catalog = catalog_of(SCRIPT)
    assert windowed_tables(plan_cells(catalog, 1, {}), catalog) == {}
    plan = plan_cells(catalog, 4, {})
    assert windowed_tables(plan, catalog) == {"e": "e@window", "s": "s@window"}
    assert "\nwindows of e, s: maintained by one engine in front of the cells\n" in describe(plan, catalog, {})
    tables = [one for one in cell_statements(plan, catalog, 0) if isinstance(one, TableDef)]
    assert len(tables) > 3 and not any(one.properties for one in tables)
    kept = [one for one in window_statements(plan, catalog) if isinstance(one, TableDef)]
    assert [(one.name, len(one.properties)) for one in kept] == [("e", 1), ("s", 1)]


LATE = """
CREATE TABLE s (id BIGINT PRIMARY KEY, node BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '40' SECONDS);
CREATE MATERIALIZED VIEW by_node AS SELECT node, COUNT(*) AS n, MAX(ts) AS last FROM s GROUP BY node;
"""


@pytest.mark.plain_python
def test_the_rows_of_all_cells_decide_which_rows_are_late() -> None:
    catalog = catalog_of(LATE)
    plan = plan_cells(catalog, 3, {})
    assert windowed_tables(plan, catalog) == {"s": "s@window"}
    assert describe(plan, catalog, {}).endswith("\nwatermarks of s: maintained by one engine in front of the cells\n")
    assert locations(plan, catalog, {})[-1].where == "a watermark before 3 cells"
    tables = [one for one in cell_statements(plan, catalog, 0) if isinstance(one, TableDef)]
    assert tables and not any(one.properties for one in tables)
    many = Cells(plan, catalog)
    start, rows = dt.datetime(2026, 1, 1), dict[int, Row]()
    rng = random.Random(3)
    for i in range(8):
        times = [start + dt.timedelta(seconds=20 * i - rng.randrange(20)) for _ in range(4)]
        arriving: list[Row] = [(10 * i + j, rng.randrange(5), time) for j, time in enumerate(times)]
        rows |= {row[0]: row for row in arriving}
        many.apply([("s", [(row, 1) for row in arriving])])
        gone = rng.choice([*rows.values()])
        many.apply([("s", [(rows.pop(gone[0]), -1)])])
        # No cell but one, if any, has the latest row of all.
        late = (1000 + i, rng.randrange(5), max(times) - dt.timedelta(seconds=41))
        with pytest.raises(BatchError, match=r"table s, row 0: ts .* is before the watermark"):
            many.apply([("s", [(late, 1)])])
    expected = Counter(row[1] for row in rows.values())
    assert {node: n for node, n, _ in many.contents["by_node"]} == expected
