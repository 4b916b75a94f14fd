"""State and manifests, without Spark: a cell comes back from its files, and one of another try is not used."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from freshviews.spark import state
from freshviews.spark.checkpoint import collect
from freshviews.spark.definition import tables_of
from freshviews.spark.manifest import Manifest, Manifests, VersionExists
from freshviews.spark.state import EMPTY, Entry, appended, keep, load_cell, loaded, new_token

TABLES = "CREATE TABLE t (a BIGINT, b STRING)"
SCRIPT = TABLES + "; CREATE MATERIALIZED VIEW v AS SELECT b, COUNT(*) AS n FROM t GROUP BY b"


def rows(*given: tuple[int, str, int]) -> pa.Table:
    schema = state.changes_schema(tables_of(TABLES)["t"])
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*given, strict=True), schema, strict=True)], schema=schema
    )


def step(root: Path, entry: Entry, change: pa.Table) -> Entry:
    """Take a change through a cell, as a worker does."""
    cell = loaded(root, "0", entry, tables_of(TABLES), SCRIPT)
    cell.database.apply("t", change)
    after = appended(root, "0", entry, cell, {"t": change}, new_token())
    cell.token = after["token"]
    keep(root, "0", cell)
    return after


def view(root: Path, entry: Entry) -> list[tuple[object, ...]]:
    return sorted(load_cell(root, entry, tables_of(TABLES), SCRIPT).database.view("v"))


def test_a_cell_comes_back_from_images_and_merged_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "SMALLEST_IMAGE", 60)
    entry, seen = EMPTY, {"image": False, "merged": False}
    for i in range(120):
        gone = [(i - 1, f"b{(i - 1) % 3}", -1)] if i % 5 == 0 and i else []
        entry = step(tmp_path, entry, rows((i, f"b{i % 3}", 1), *gone))
        seen["image"] |= entry["image"] is not None
        seen["merged"] |= any(segment["level"] for segment in entry["log"])
        if i % 17 == 0:
            live = sorted(loaded_view(tmp_path, entry))
            assert view(tmp_path, entry) == live
    assert seen == {"image": True, "merged": True}
    assert sum(int(str(n)) for _, n in view(tmp_path, entry)) == 120 - 23


def loaded_view(root: Path, entry: Entry) -> list[tuple[object, ...]]:
    cell = loaded(root, "0", entry, tables_of(TABLES), SCRIPT)
    keep(root, "0", cell)
    return list(cell.database.view("v"))


def test_a_cell_of_a_try_that_was_thrown_away_is_not_used(tmp_path: Path) -> None:
    first = step(tmp_path, EMPTY, rows((1, "x", 1)))
    step(tmp_path, first, rows((2, "lost", 1)))
    again = step(tmp_path, first, rows((3, "y", 1)))
    assert view(tmp_path, again) == [("x", 1), ("y", 1)] == sorted(loaded_view(tmp_path, again))


def test_a_cell_that_lags_reads_the_missing_segments_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = step(tmp_path, EMPTY, rows((1, "x", 1)))
    lagging = state._CELLS.pop((str(tmp_path), "0"))
    second = step(tmp_path, first, rows((2, "y", 1)))
    state._CELLS[(str(tmp_path), "0")] = lagging
    monkeypatch.setattr(state, "load_cell", lambda *given: pytest.fail("loaded anew"))
    assert sorted(loaded_view(tmp_path, second)) == [("x", 1), ("y", 1)]


def manifest(version: int, **given: object) -> Manifest:
    return Manifest(version, version, "q", 0.0, {}, {}, **given)  # type: ignore[arg-type]


def test_of_two_that_commit_a_version_one_is_told(tmp_path: Path) -> None:
    Manifests(tmp_path).commit(manifest(1))
    with pytest.raises(VersionExists):
        Manifests(tmp_path).commit(manifest(1, rows={"t": 1}))
    assert Manifests(tmp_path).latest() == manifest(1)
    assert [path.name for path in (tmp_path / "manifest").iterdir()] == ["000000000001.json"]


def test_what_a_kept_version_needs_is_not_collected(tmp_path: Path) -> None:
    entry = EMPTY
    for version in range(1, 9):
        entry = step(tmp_path, entry, rows((version, "x", 1)))
        Manifests(tmp_path).commit(manifest(version, cells={"0": entry}))
    orphan = tmp_path / "state" / "0" / "orphan.arrow"
    orphan.write_bytes(b"")
    assert collect(tmp_path, Manifests(tmp_path), versions=3, states=2, orphan_seconds=3600) == 0
    assert collect(tmp_path, Manifests(tmp_path), versions=3, states=2, orphan_seconds=-1) == 1
    assert Manifests(tmp_path).versions() == [6, 7, 8]
    assert view(tmp_path, Manifests(tmp_path).read(7).cells["0"]) == [("x", 7)]
