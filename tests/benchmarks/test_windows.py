"""The windowed graph under all strategies on a small graph; streams have the intended enclosureness."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring.answers import compare_answers
from benchmarks.measuring.strategies import PLANNED
from benchmarks.timing import enclosure, windowed_graph
from benchmarks.workloads.graphs import chung_lu
from freshviews.advice.enclosure import of_stream, of_tree

pytestmark = pytest.mark.compiled(100)


@pytest.fixture
def small_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A small graph instead of Epinions; its number of edges."""
    edges = chung_lu(60, 600, 2.5)
    file = tmp_path / "edges.csv"
    file.write_text("".join(f"{src},{dst}\n" for src, dst in edges.tolist()))
    monkeypatch.setenv("EPINIONS", str(file))
    # Not whole, so sizes are not compared with those of Epinions.
    monkeypatch.setenv("BENCHMARK_SCALE", "0.99")
    return len(edges)


@pytest.mark.parametrize("case", ["star, COUNT", "3-hop projected, deltas"])
def test_all_strategies_report_equal_result_sizes_at_ten_points(case: str, small_graph: int) -> None:
    found = {name: windowed_graph.measure(case, name) for name in (PLANNED, "first_order", "DuckDB")}
    ours = {"workload": "windowed_graph", "case": case, "strategy": PLANNED, **found[PLANNED]}
    assert len(ours["answers"]) == 10
    assert any(rows != [["0"]] for rows in ours["answers"].values())
    for name, other in found.items():
        assert set(other["answers"]) == set(ours["answers"])
        compare_answers({**other, "workload": "windowed_graph", "case": case, "strategy": name}, ours)


def test_streams_through_windows_are_measured_at_ten_points(small_graph: int) -> None:
    whole, half = windowed_graph.through_window(), windowed_graph.through_window(share=2)
    assert whole is not None and half is not None
    assert half[2] == whole[2] // 2
    for updates, places, _ in (whole, half):
        assert len(places) == 10 and places == sorted(places) and places[-1] < len(updates)
        assert sum(updates["_multiplicity"].to_pylist()) == 0


@pytest.mark.parametrize("within", [4, 16, 64])
def test_streams_have_the_intended_enclosureness(within: int) -> None:
    spans = enclosure.spans_of(enclosure.updates_within(within, 1024))
    assert of_stream(spans) == within / 2
    found = {name: of_tree(enclosure.tree_of(name), spans) for name in enclosure.TREES}
    assert found == {"r(s, t)": within / 2, "[b] with r(t), s": 1}
