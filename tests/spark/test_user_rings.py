"""Views over users' rings in a pipeline: workers have the rings by the views that they are sent, and what cells have of
one group is added in its ring."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.layout.layout import layout_of
from freshviews.spark.reading.contents import latest
from freshviews.spark.state.stores.addresses import store_of
from tests.ring.user_rings import PRIME

pytestmark = pytest.mark.spark


@pytest.mark.full
@pytest.mark.parametrize("cells", [1, 2])
def test_cells_know_the_rings_of_their_views(spark: Any, tmp_path: Path, cells: int) -> None:
    rows: dict[str, Counter[tuple[int, int]]] = {"a": Counter(), "b": Counter()}
    for version in range(1, 4):
        pipeline = Pipeline(spark, tmp_path / "ckpt", cells=cells)
        for name in rows:
            pipeline.table_of(f"CREATE TABLE {name} (k BIGINT, {name}x BIGINT)", changes="op")
        pipeline.view("complex", "SELECT k, GAUSS(ax, bx) AS z FROM a JOIN b USING (k) GROUP BY k", sink=None)
        pipeline.view("rest", "SELECT MODULO(ax, bx) AS m, GAUSS(ax, bx) AS z FROM a JOIN b USING (k)", sink=None)
        given = {}
        for name, held in rows.items():
            new = [("insert", k, 100 * version + k - len(name)) for k in range(3)]
            gone = [("delete", *row) for row in list(+held)[:1]]
            for op, *row in (*new, *gone):
                held[row[0], row[1]] += 1 if op == "insert" else -1
            given[name] = spark.createDataFrame([*new, *gone], f"op STRING, k BIGINT, {name}x BIGINT")
        assert pipeline.advance(given, call=f"version {version}") == version
        complex_, rest = Counter[tuple[int, str]](), 0
        for (k, x), n in (+rows["a"]).items():
            for (other, y), m in (+rows["b"]).items():
                if k == other:
                    complex_[k, "re"] += n * m * (x * y - 1)
                    complex_[k, "im"] += n * m * (x + y)
                    rest += n * m * x * y
        found = {row[0]: tuple(row[1:3]) for row in pipeline.view("complex").collect()}
        assert found == {k: (complex_[k, "re"], complex_[k, "im"]) for k in range(3)}
        # The parts of cells are added modulo the prime, and what is read is the rest of the total.
        whole = [tuple(row[:3]) for row in pipeline.view("rest").collect()]
        assert whole == [(rest % PRIME, *(sum(complex_[k, part] for k in range(3)) for part in ("re", "im")))]
    parts = layout_of(latest(store_of(tmp_path / "ckpt"))).plan.parts_of("rest")
    assert [(part.span, part.merged) for part in parts] == ([(2, True)] if cells == 2 else [])
