"""Views over users' rings in a pipeline: workers get the rings with the views, and partial results of cells are added
in the ring."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

import freshviews as fv
from freshviews.spark import Pipeline
from freshviews.spark.layout.layout import layout_of
from freshviews.spark.reading.contents import changes, latest
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.ring.user_rings import PRIME

pytestmark = pytest.mark.spark


@pytest.mark.full
@pytest.mark.parametrize("cells", [1, 2])
def test_cells_get_the_rings_of_their_views(spark: Any, tmp_path: Path, cells: int) -> None:
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
        # The partial results of cells are added modulo the prime, and the view shows the remainder of the total.
        whole = [tuple(row[:3]) for row in pipeline.view("rest").collect()]
        assert whole == [(rest % PRIME, *(sum(complex_[k, part] for k in range(3)) for part in ("re", "im")))]
    parts = layout_of(latest(store_of(tmp_path / "ckpt"))).plan.parts_of("rest")
    assert [(part.span, part.merged) for part in parts] == ([(2, True)] if cells == 2 else [])


@pytest.mark.full
def test_a_view_with_a_changed_ring_is_recomputed(spark: Any, tmp_path: Path) -> None:
    """The SQL is the same; the checkpoint has the ring with which the rows were computed."""

    def advanced(x: int, times: int) -> dict[str, Counter[tuple[Any, ...]]]:
        fv.register_ring(fv.UserRing("scaled", ("BIGINT",), 1, "BIGINT", lift=lambda value: times * value))
        pipeline = Pipeline(spark, tmp_path / "ckpt", cells=2)
        pipeline.table_of("CREATE TABLE t (k BIGINT, x BIGINT)")
        pipeline.view("v", "SELECT k, SCALED(x) AS s FROM t GROUP BY k", sink=None)
        pipeline.view("n", "SELECT COUNT(*) AS n FROM t", sink=None)
        store = store_of(tmp_path / "ckpt")
        first = Manifests(store).versions()[-1] if Manifests(store).versions() else 0
        pipeline.advance({"t": spark.createDataFrame([(1, x)], "k BIGINT, x BIGINT")}, call=f"{x}")
        reported: dict[str, Counter[tuple[Any, ...]]] = {"v": Counter(), "n": Counter()}
        for version in range(first + 1, latest(store).version + 1):
            for view, found in reported.items():
                made = changes(store, Manifests(store).read(version), view)
                for row in [] if made is None else made.to_pylist():
                    m = row.pop("_multiplicity")
                    found[tuple(row[name] for name in ("k", "s") if name in row) or (row["n"],)] += m
        return reported

    assert advanced(5, 2)["v"] == {(1, 10): 1}
    assert advanced(6, 2)["v"] == {(1, 10): -1, (1, 22): 1}
    changed = advanced(7, 3)
    assert {row: m for row, m in changed["v"].items() if m} == {(1, 22): -1, (1, 54): 1}
    assert {row: m for row, m in changed["n"].items() if m} == {(2,): -1, (3,): 1}
