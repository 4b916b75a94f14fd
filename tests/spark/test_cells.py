"""Several cells on Spark: every view is what one engine would keep, whatever is joined, merged or added later."""

from __future__ import annotations

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
def test_views_are_those_of_one_engine_and_views_come_and_go(spark: Any, tmp_path: Path, cells: int) -> None:
    world = World(tmp_path)
    first = ["triangles", "by_shop", "shops"]
    world.write()
    run(spark, tmp_path, first, cells)
    check(world, first)
    world.write()
    run(spark, tmp_path, first, None)
    check(world, first)
    # Views that need rows where no cell has them yet, and one over a view that was there before.
    world.write()
    run(spark, tmp_path, list(VIEWS), None)
    check(world, list(VIEWS))
    kept = ["paths", "reached"]
    world.write()
    run(spark, tmp_path, kept, None)
    check(world, kept)
    begun = latest(store_of(tmp_path / "script.checkpoint")).cells
    assert len([number for number in begun if number != "merge"]) == cells


def test_rows_are_counted_once_however_often_they_are_copied(spark: Any, tmp_path: Path) -> None:
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
def test_another_number_of_cells_splits_all_rows_anew(spark: Any, tmp_path: Path) -> None:
    """Views stay exact and no change is delivered twice, also where a view is added or dropped in the same start."""
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


def test_what_cannot_be_split_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = "CREATE STREAMING TABLE t (k INT PRIMARY KEY) USING json OPTIONS (path 'in', changes 'debezium');"
    (tmp_path / "script.sql").write_text(table + "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;")
    with pytest.raises(PlanError, match=r"table t: .*Debezium.*use one cell"):
        Pipeline.from_script(spark, tmp_path / "script.sql", cells=2).start(once=True)
