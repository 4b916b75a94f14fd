"""The workloads of the trie joins on small graphs: counts, moves of cursors, steps of a binary plan, a loaded tree."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks.counting import moves, slice_intersections
from benchmarks.measuring import ours
from benchmarks.measuring.answers import compare_answers
from benchmarks.measuring.strategies import PLANNED
from benchmarks.reporting.tables import table
from benchmarks.running.schedule import APART, TRIE, apart
from benchmarks.timing import single_edits, tree_load, trie
from benchmarks.workloads import graph, kept_listing
from benchmarks.workloads.graphs import chung_lu

pytestmark = pytest.mark.compiled(100)


@pytest.fixture
def small_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of a few edges instead of Epinions."""
    monkeypatch.setitem(trie.GRAPHS, "Epinions", lambda: chung_lu(60, 900, 2.5))


@pytest.mark.parametrize(("pattern", "strategies"), [("triangle", trie.STRATEGIES), ("4-clique", (PLANNED, "DuckDB"))])
def test_all_strategies_count_the_same_matches_of_a_pattern(
    pattern: str, strategies: tuple[str, ...], small_graph: None
) -> None:
    found = [trie.measure(f"{pattern}, Epinions", name) for name in strategies]
    named = [
        {"workload": "trie", "case": pattern, "strategy": name, **one}
        for name, one in zip(strategies, found, strict=True)
    ]
    assert int(found[0]["answers"]["count"][0][0]) > 0
    for one in named[1:]:
        assert "cut" not in one
        compare_answers(one, named[0])


def test_a_strategy_that_is_too_slow_is_cut_off(monkeypatch: pytest.MonkeyPatch, small_graph: None) -> None:
    monkeypatch.setattr(trie, "PATIENCE", -1.0)
    found = trie.measure("triangle, Epinions", "first_order")
    assert "longer" in found["cut"] and found["value"] > 0 and "answers" not in found


def test_a_missing_graph_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trie.GRAPHS, "Epinions", lambda: None)
    assert "Epinions" in trie.measure("triangle, Epinions", PLANNED)["missing"]


def test_a_speed_up_is_compared_with_the_target_of_its_case() -> None:
    def line(case: str, seconds: float) -> str:
        figures = ((PLANNED, 1.0), ("DuckDB", seconds))
        rows = [
            {"workload": "trie", "case": case, "strategy": name, "repetition": 0, "value": value}
            for name, value in figures
        ]
        return table(rows).splitlines()[-1]

    assert "3.00 times as fast" in line("triangle, Epinions", 3.0)
    assert "target 2 times: reached" in line("triangle, Epinions", 3.0)
    assert "target 10 times: missed" in line("4-cycle, Epinions", 3.0)
    assert "target" not in line("4-cycle, skew 2.5", 3.0)


@pytest.mark.parametrize("query", moves.QUERIES)
def test_binary_joins_take_more_steps_than_a_trie_join(query: str) -> None:
    found = [moves.measure(f"{query}, N = 2,000", name) for name in moves.STRATEGIES]
    assert found[0]["answers"] == found[1]["answers"]
    assert 0 < found[0]["value"] < found[1]["value"]


@pytest.mark.parametrize("case", tree_load.CASES)
def test_a_loaded_tree_stores_all_rows_in_few_bytes(case: str) -> None:
    found = tree_load.measure(case, PLANNED, 200_000)
    assert found["rows"] == 200_000 and found["bytes"] <= tree_load.MOST_BYTES
    assert np.isfinite(found["value"]) and "reached" in found["note"]


def test_the_trie_benchmarks_run_apart_from_the_other_benchmarks() -> None:
    assert "trie" in APART
    assert {entry.workload for entry in apart() if entry.group == "trie"} == set(TRIE)


def test_maintained_counts_equal_recomputed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(single_edits.SIZES, "few", 3_000)
    monkeypatch.setattr(single_edits, "EDITS", 10)
    found = [single_edits.measure("few", name) for name in (PLANNED, "first_order", "trie_join", "DuckDB")]
    assert all(one["answers"] == found[0]["answers"] and one["value"] > 0 for one in found)
    assert int(found[0]["answers"]["count"][0][0]) > 0


@pytest.mark.parametrize("case", kept_listing.CASES)
def test_benchmarks_that_list_triangles_also_emit_changes(case: str) -> None:
    stream = kept_listing.stream(case)
    assert stream.deltas and stream.pattern is not None and stream.pattern["name"] == "triangle listed"


@pytest.mark.full
def test_the_size_of_a_trace_is_reported() -> None:
    found = ours.keep_fresh(graph.stream("triangle, skew 3.0 tenth"), "incremental_trie_join")
    note = re.fullmatch(r"at most ([\d,]+) intervals for a trace of ([\d,]+) operations", found["note"])
    assert note is not None
    held, operations = note.groups()
    assert 5_000 < int(held.replace(",", "")) <= int(operations.replace(",", ""))
    assert found["state_rows"] > int(held.replace(",", ""))


@pytest.mark.full
@pytest.mark.parametrize("case", slice_intersections.CASES)
def test_tries_and_hash_tables_give_the_same_intersections(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_intersections, "BATCHES", 8)
    monkeypatch.setattr(slice_intersections, "ROWS", 100)
    tables = slice_intersections.tables_of(case, 15_000)
    count, _, _, operations = slice_intersections.by_tries(tables, case)
    for strategy in slice_intersections.STRATEGIES:
        same, _, steps = slice_intersections.by_strategy(strategy, tables, case, counted=True)
        assert same == count
        # The ends of two slices of a thousand values show that their ranges are disjoint.
        assert case != "ranges" or (steps > 1_000) == (strategy == "first_order")
    assert (count == 0) == (case == "ranges") and operations > 0
