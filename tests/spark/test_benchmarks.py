"""All strategies of the benchmarks on Spark give the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from benchmarks.pipeline import graph as pipeline_graph

pytestmark = [pytest.mark.spark, pytest.mark.full]


@pytest.mark.large(0)
@pytest.mark.parametrize("case", pipeline_graph.CASES)
def test_all_strategies_give_the_same_counts_over_a_changing_graph(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(pipeline_graph, "CHANGES", 60)
    ends = np.random.default_rng(3).permutation(30 * 30)[:400]
    edges = np.column_stack([ends // 30, ends % 30])
    view = pipeline_graph.VIEWS[case]
    ways = (pipeline_graph._freshviews, pipeline_graph._recomputed, pipeline_graph._joined)
    ours, anew, joined = (way(spark, tmp_path / way.__name__, edges, view)["answers"] for way in ways)
    assert len(ours) == 14
    assert ours["13"] == [["0"]]
    assert len(anew) > 5
    assert joined
    for other in (anew, joined):
        assert other == {step: ours[step] for step in other}
    assert any(answer != [["0"]] for answer in joined.values())
