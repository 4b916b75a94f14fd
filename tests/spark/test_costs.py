"""The cost of a version for a store: objects per cell, and in all; and cells restored from the store."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshviews.spark.state import cell_image, image_files
from freshviews.spark.state.bundle import read_change
from freshviews.spark.state.cell import EMPTY, load_cell, loaded, segment_of
from freshviews.spark.state.cell_image import Entry
from freshviews.spark.state.checkpoint import collect
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.cached import Cached
from freshviews.spark.state.stores.store import Store
from freshviews.spark.worker.advance import Wanted, advanced, listening
from freshviews.sql import Catalog, Statement, parse_script
from freshviews.types.columns import MULTIPLICITY

TABLES = ("t", "u", "w")
SCRIPT = "".join(f"CREATE TABLE {name} (k BIGINT, n BIGINT);" for name in TABLES) + """
CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(n) AS n FROM t GROUP BY k;
CREATE MATERIALIZED VIEW joined AS SELECT t.k, COUNT(*) AS c FROM t JOIN u ON t.k = u.k GROUP BY t.k;
CREATE MATERIALIZED VIEW rest AS SELECT k, n FROM w;
CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS c, SUM(n) AS n FROM u
"""
VIEWS = ("sums", "joined", "rest", "total")


class Cell:
    """A cell that runs version by version as in a worker, with a manifest for each version."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.statements: tuple[Statement, ...] = tuple(parse_script(SCRIPT, Catalog()))
        self.manifests = Manifests(store)
        self.entry: Entry = EMPTY
        self.version = 0
        self.random = random.Random(3)
        self.sums: Counter[tuple[Any, ...]] = Counter()

    def step(self) -> None:
        self.version += 1
        new = frozenset(VIEWS) if self.version == 1 else frozenset()
        wanted = Wanted(self.version, VIEWS, new, frozenset({"total"}))
        cell = loaded(self.store, "0", self.entry, self.statements)
        changes = {name: self.rows() for name in TABLES}
        with listening(cell, wanted) as emitted, cell.database.batch() as batch:
            for table, rows in changes.items():
                batch.apply(table, rows)
        segment = segment_of(self.store, "0", changes)
        result = advanced(self.store, "0", self.entry, cell, segment, emitted, wanted)
        self.entry = result["entry"]
        made = {view: [name] for view, name in result["changes"].items()}
        contents = {"total": {"total@0": result["contents"]["total"]}}
        self.manifests.commit(
            Manifest(
                self.version, self.version, "q", 0.0, {}, {}, cells={"0": self.entry}, changes=made, contents=contents
            )
        )
        change = read_change(self.store, made.get("sums", []))
        for row in change.to_pylist() if change is not None else ():
            self.sums[row["k"], row["n"]] += row[MULTIPLICITY]

    def rows(self) -> pa.Table:
        pairs = [(self.random.randrange(20), self.random.randrange(9)) for _ in range(5)]
        columns = [pa.array(column, pa.int64()) for column in (*zip(*pairs, strict=True), [1] * 5)]
        return pa.table(columns, names=["k", "n", MULTIPLICITY])

    def held(self, store: Store) -> Counter[tuple[Any, ...]]:
        """The view ``sums`` of the cell, loaded from a store."""
        cell = load_cell(store, self.entry, self.statements)
        try:
            return Counter(cell.database.view("sums"))
        finally:
            cell.database.close()


@pytest.fixture
def cell(store: Store) -> Iterator[Cell]:
    yield Cell(store)


def objects(store: Store, *folders: str) -> set[str]:
    return {found.name for folder in folders or ("state", "changes", "manifest") for found in store.list(f"{folder}/")}


def test_a_version_writes_two_objects_per_cell(cell: Cell) -> None:
    before: set[str] = set()
    counts = []
    for _ in range(40):
        cell.step()
        after = objects(cell.store, "state", "changes")
        counts.append(len(after - before))
        before = after
    assert max(counts) == 2
    assert any(part["level"] for part in cell.entry["log"])
    assert cell.held(cell.store) == +cell.sums


@pytest.mark.large(0)
def test_the_number_of_objects_does_not_grow_with_versions(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESHVIEWS_FORK", "0")
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 200)
    counts = []
    for version in range(1, 121):
        cell.step()
        if version % 10 == 0:
            collect(cell.store, cell.manifests, versions=10, states=3, orphan_seconds=0)
            counts.append(len(objects(cell.store)))
    assert max(counts[6:]) <= max(counts[:6]) + 10 and max(counts) < 90
    assert cell.held(cell.store) == +cell.sums


def test_a_cell_without_its_cache_is_restored_from_parts_of_an_image(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another machine, and for the same cell after its cache was deleted between versions."""
    if not isinstance(cell.store, Cached):
        pytest.skip("a folder has no cache")
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 100)
    monkeypatch.setattr(image_files, "PART", 700)
    images = set()
    for _ in range(30):
        cell.step()
        pending = cell.entry.get("pending")
        until = time.monotonic() + 120
        while pending is not None and not image_files.is_whole(cell.store, pending["folder"]):
            assert time.monotonic() < until
            time.sleep(0.01)
        if cell.entry["image"]:
            images.add(cell.entry["image"]["folder"])
    assert len(images) > 1
    parts = [name for name in objects(cell.store, "state") if name.startswith(cell.entry["image"]["folder"] + "/")]
    assert any(name.endswith(".00001") for name in parts)
    elsewhere = Cached(cell.store._store, tmp_path / "elsewhere")
    assert cell.held(elsewhere) == +cell.sums
    assert list((tmp_path / "elsewhere").rglob("table-1"))
