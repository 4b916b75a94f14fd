"""Compiled peers give the answers of DuckDB; without a compiler they are reported as missing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.measuring import programs
from benchmarks.measuring.answers import compare_answers
from benchmarks.measuring.stream import Stream, spread_over
from benchmarks.peers.duckdb_sql import recompute
from benchmarks.peers.programs import _integers, cpp, dbsp, differential
from benchmarks.workloads import compiled, tpch

VIEWS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name == "q3" and not (tpch.DATA / "tpch-0.01").exists(), reason="the tables of TPC-H are not generated"
        ),
    )
    for name in compiled.VIEWS
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def of_view(name: str, size: int) -> Stream:
    """A small stream with many points of comparison, also while it is loaded."""
    stream = compiled.stream(f"{name}, small, batches of {size}")
    steps = stream.steps[: stream.before + 200]
    points = spread_over(len(steps), 40)
    return Stream(stream.relations, stream.view, steps, points, before=stream.before, pattern=stream.pattern)


def agrees(stream: Stream, found: dict[str, Any], case: str) -> None:
    one = recompute(stream)
    assert set(one["answers"]) == set(found["answers"]) == {str(i) for i in stream.compared}
    compare_answers(
        {"workload": "compiled", "case": case, "strategy": "DuckDB", **one},
        {"workload": "compiled", "case": case, "strategy": "the program", **found},
    )
    assert found["rows"] == sum(len(step.rows) for step in stream.steps[stream.before :])
    assert found["steps_done"] == len(stream.steps) and found["cpu_seconds"] > 0 and found["p50_ms"] > 0


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ on PATH")
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("name", VIEWS)
def test_cpp_programs_give_the_answers_of_the_query(
    name: str, size: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "FOLDER", folder)
    assert programs.build("cpp")
    stream = of_view(name, size)
    agrees(stream, cpp(stream), f"{name}, batches of {size}")


RUST = {"differential": differential, "dbsp": dbsp}


@pytest.mark.full
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("peer", RUST)
def test_rust_programs_give_the_answers_of_the_query(peer: str, name: str, size: int) -> None:
    """Cargo takes many minutes to build the crates, so a test does not."""
    missing = programs.missing(peer)
    if missing is not None:
        pytest.skip(missing)
    stream = of_view(name, size)
    agrees(stream, RUST[peer](stream), f"{name}, batches of {size}")


def test_a_program_that_is_not_built_is_reported_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "FOLDER", tmp_path)
    stream = compiled.stream("2-hop, small, batches of 100")
    monkeypatch.setattr(shutil, "which", lambda tool: f"/bin/{tool}")
    assert cpp(stream) == {"missing": "not built: python -m benchmarks install cpp"}
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert cpp(stream) == {"missing": "not built: there is no g++ on PATH"}
    assert not programs.build("cpp")
    assert programs.versions()["cpp"] == "missing"
    programs.path_of("cpp").parent.mkdir()
    programs.path_of("cpp").touch()
    assert programs.versions()["cpp"] == "unknown"


def test_a_stream_deletes_only_stored_rows() -> None:
    stream = compiled.stream("star, small, batches of 10")
    there: dict[str, set[Any]] = {relation.name: set() for relation in stream.relations}
    for step in stream.steps:
        rows = {tuple(row.values()) for row in step.rows.to_pylist()}
        assert rows <= there[step.table] if step.sign < 0 else rows.isdisjoint(there[step.table])
        there[step.table] = there[step.table] - rows if step.sign < 0 else there[step.table] | rows
    assert len(there["sale"]) == round(compiled.FILLED * compiled.SALES * 0.01)


def test_columns_of_every_type_become_integers() -> None:
    money = pa.array([12345, -1], pa.int64()).cast(pa.decimal128(19, 0))
    for column, expected in (
        (pa.array(["1.25", "-0.01"]).cast(pa.decimal128(15, 2)), [125, -1]),
        (pa.array([9204, 0], pa.int32()).cast(pa.date32()), [9204, 0]),
        (pa.array(["BUILDING", "AUTOMOBILE"]), [1, 0]),
        (pa.array([1, 2], pa.int32()), [1, 2]),
        (money, [12345, -1]),
    ):
        found = _integers(column)
        assert found.dtype == np.int64 and found.tolist() == expected
