"""The workloads of models at small sizes: all peers compute the same numbers, and sizes are as in the case's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.measuring.answers import compare_answers
from benchmarks.measuring.strategies import PLANNED, run
from benchmarks.measuring.stream import Relation, Step, Stream
from benchmarks.peers import numpy_arrays
from benchmarks.reporting.curves import draw_curves
from benchmarks.running.schedule import APART, apart
from benchmarks.timing import cofactor_ready, ridge
from benchmarks.workloads import cofactor, inventory, retail, star

pytestmark = pytest.mark.compiled(100)


def named(workload: str, case: str, strategy: str, found: dict[str, Any]) -> dict[str, Any]:
    return {"workload": workload, "case": case, "strategy": strategy, **found}


@pytest.mark.parametrize(("case", "others"), [("m = 4", ("numpy", "DuckDB")), ("m = 3, DOUBLE", ("numpy",))])
def test_freshviews_and_its_peers_compute_equal_cofactors(
    case: str, others: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(star, "KEYS", 100)
    stream = cofactor.stream(case)
    found = {name: named("cofactor", case, name, run(stream, name)) for name in (PLANNED, *others)}
    ours = found[PLANNED]["answers"]
    m = int(case[4])
    (last,) = ours[str(len(stream.steps) - 1)]
    assert last[0] == str(100 * 3**4) and len(last) == 1 + m + m * (m + 1) // 2
    for name in others:
        assert found[name]["answers"].keys() == ours.keys()
        compare_answers(found[name], found[PLANNED])


def test_freshviews_and_its_peers_compute_equal_cofactors_of_a_snowflake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "ROWS", 300)
    monkeypatch.setattr(inventory, "DAYS", 3)
    monkeypatch.setattr(inventory, "ITEMS", 20)
    monkeypatch.setattr(inventory, "LOCATIONS", 10)
    all_variables = inventory.variables()
    assert len(set(all_variables)) == 43
    # One column of each table: compiling all 43 takes too long here.
    monkeypatch.setattr(inventory, "variables", lambda: [all_variables[i] for i in (3, 9, 20, 36, 40)])
    stream = cofactor.stream(cofactor.SNOWFLAKE)
    ours, *others = (named("cofactor", "", name, run(stream, name)) for name in (PLANNED, "numpy", "DuckDB"))
    (last,) = ours["answers"][str(len(stream.steps) - 1)]
    assert last[0] == "300" and len(last) == 1 + 5 + 15
    for other in others:
        compare_answers(other, ours)


def test_the_cofactor_benchmark_has_variables_of_all_tables_and_columns() -> None:
    assert [one.partition(".")[0] for one in cofactor.variables_of(6)] == list(star.COLUMNS)
    every = cofactor.variables_of(27)
    assert len(set(every)) == 27 and every[-1] == "house.postcode"


def test_the_numpy_join_returns_the_same_rows_as_nested_loops() -> None:
    random = np.random.default_rng(3)
    kinds = {"a": "kjx", "b": "ky", "c": "jkz"}
    tables = {
        name: {column: random.integers(0, 5 if column in "jk" else 99, 25) for column in columns}
        for name, columns in kinds.items()
    }
    found = numpy_arrays.joined(tables, ["a.x", "b.y", "c.z"])
    rows = {name: list(zip(*table.values(), strict=True)) for name, table in tables.items()}
    expected = [
        (x, y, z)
        for k, j, x in rows["a"]
        for other, y in rows["b"]
        for first, second, z in rows["c"]
        if (other, first, second) == (k, j, k)
    ]
    assert len(expected) > 10 and sorted(map(tuple, found.T.tolist())) == sorted(expected)


def test_the_numpy_peer_is_missing_for_views_without_cofactors() -> None:
    rows = pa.record_batch({"x": [1]})
    stream = Stream((Relation("t", "x BIGINT", ("x",)),), "SELECT COUNT(*) AS n FROM t", (Step(1, "t", rows),), (0,))
    assert "missing" in numpy_arrays.recompute(stream)


def test_the_benchmarked_model_equals_scikit_learn_after_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "BATCHES", 3)
    found = [named("ridge", "few", name, ridge.measure("join of 2,000 rows", name)) for name in ridge.STRATEGIES]
    assert [list(one["answers"]) for one in found] == [["0", "1", "2", "3"]] * 2
    assert found[0]["answers"]["0"] != found[0]["answers"]["3"]
    compare_answers(found[1], found[0])
    assert all(one["value"] > 0 and one["rows"] == 2_000 for one in found)


def test_a_window_of_sales_keeps_its_size() -> None:
    first, batches = retail.window(100, 4, 10)
    held = first
    for batch in batches:
        assert held.slice(0, 5).equals(batch.deleted) and len(batch.inserted) == 5
        held = pa.concat_tables([held.slice(5), batch.inserted])
    assert len(held) == 100


def test_the_measured_time_to_readiness_includes_the_create_statement() -> None:
    assert not hasattr(cofactor_ready, "stream"), "the worker would take it for a stream"
    found = cofactor_ready.measure("once m = 3", PLANNED)
    assert found["value"] >= found["create"] > 0


def test_the_learning_benchmarks_have_two_line_charts(tmp_path: Any) -> None:
    assert "learning" in APART
    entries = [entry for entry in apart() if entry.group == "learning"]
    assert {entry.workload for entry in entries} == {"cofactor", "cofactor_ready", "ridge"}
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    rows = [
        named(e.workload, e.case, s, {"value": 1.0, "rows_per_second": 2.0, "peak_bytes": 1, "rows": len(e.case)})
        for e in entries
        for s in e.strategies
    ]
    drawn = draw_curves("learning", rows, tmp_path)
    assert [path.name for path, _ in drawn] == ["learning-variables.svg", "learning-rows.svg"]
    assert "another view" in drawn[0][0].read_text() and "scikit-learn" in drawn[1][0].read_text()
