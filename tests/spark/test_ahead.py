"""Rows applied in pieces while others arrive: versions equal those applied at once, and a refused one leaves
nothing."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshviews.cells import plan_cells
from freshviews.engine.commit import free_memory
from freshviews.engine.commit.free_memory import Limit
from freshviews.engine.database import Database
from freshviews.spark.definition import catalog_of
from freshviews.spark.layout.layout import Layout
from freshviews.spark.script import read_script
from freshviews.spark.state import cell as state
from freshviews.spark.state.bundle import read_all
from freshviews.spark.state.cell import EMPTY, load_cell
from freshviews.spark.state.probe import announce, run_of
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.worker import ahead
from freshviews.spark.worker.advance import Wanted
from freshviews.spark.worker.intake import Feed
from freshviews.spark.worker.rows import TO, slots_of
from freshviews.spark.worker.worker import Task, load_partition, run_partition

SCRIPT = """
CREATE STREAMING TABLE sales (cust BIGINT, qty BIGINT NOT NULL) USING parquet OPTIONS (path 'sales');
CREATE STREAMING TABLE returns (cust BIGINT, qty BIGINT) USING parquet OPTIONS (path 'returns', changes 'signed');
CREATE STREAMING TABLE customers (cust BIGINT PRIMARY KEY, region STRING) USING parquet OPTIONS (path 'customers');
CREATE MATERIALIZED VIEW totals AS
  SELECT region, SUM(qty) AS qty, COUNT(*) AS n FROM sales JOIN customers USING (cust) GROUP BY region;
CREATE MATERIALIZED VIEW best AS SELECT MAX(qty) AS most FROM totals;
CREATE MATERIALIZED VIEW pairs AS SELECT sales.qty, returns.qty AS back FROM sales JOIN returns USING (cust);
"""
COLUMNS = {
    "sales": {"cust": "bigint", "qty": "bigint"},
    "returns": {"cust": "bigint", "qty": "bigint", "_multiplicity": "bigint"},
    "customers": {"cust": "bigint", "region": "string"},
}
TYPES = {"bigint": pa.int64(), "string": pa.string()}


class Worker:
    """One cell that runs version by version as in a worker."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in COLUMNS:
            (root / name).mkdir(parents=True)
        definition = read_script(SCRIPT, root)
        catalog = catalog_of(definition.script)
        self.layout = Layout(plan_cells(catalog, 1, {}), catalog)
        slots = slots_of(list(COLUMNS.values()))
        self.feeds = tuple(
            Feed(name, name, own, "signed" if name == "returns" else None, {}, False, False, frozenset({0}))
            for name, own in zip(COLUMNS, slots, strict=True)
        )
        self.entry: Any = EMPTY
        announce(store_of(root))
        self.version = 0

    def batch(self, table: str, *rows: tuple[object, ...]) -> pa.RecordBatch:
        """Rows of a table as Spark passes them to a worker."""
        number = list(COLUMNS).index(table)
        kinds = {slot: COLUMNS[f.table][name] for f in self.feeds for name, slot in f.slots.items()}
        found = {slot: pa.nulls(len(rows), TYPES[kind]) for slot, kind in kinds.items()}
        for place, (name, slot) in enumerate(self.feeds[number].slots.items()):
            found[slot] = pa.array([row[place] for row in rows], TYPES[COLUMNS[table][name]])
        return pa.record_batch({TO: pa.array([number + 1] * len(rows), pa.int32()), **found})

    def run(self, batches: list[pa.RecordBatch] | Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """The result of a version, which is committed unless it was refused."""
        self.version += 1
        views = self.layout.cell_views
        wanted = Wanted(self.version, views, frozenset(views) if self.version == 1 else frozenset())
        run, first = run_of(store_of(self.root)), self.version == 1
        task = Task(str(self.root), run, self.layout.statements, self.feeds, (self.entry,), wanted, first)
        (answer,) = run_partition(task, batches)
        _, found = [json.loads(text) for text in answer.column(0).to_pylist()]
        self.entry = found.get("entry", self.entry)
        return found

    def rows(self, name: str) -> Counter[Any]:
        """Rows of a file with their multiplicities."""
        return Counter(tuple(row.values()) for row in read_all(store_of(self.root), [name]).to_pylist())


def random_batches(worker: Worker, rng: random.Random, new: range) -> list[pa.RecordBatch]:
    """Customers, sales and returns, in batches in any order."""
    found = [worker.batch("customers", *((c, f"r{c % 3}") for c in new))]
    for _ in range(rng.randrange(1, 8)):
        some = [(rng.randrange(20), rng.randrange(100)) for _ in range(rng.randrange(0, 12))]
        found.append(worker.batch("sales", *some))
    found.append(worker.batch("returns", *((rng.randrange(20), rng.randrange(9), 1) for _ in range(4))))
    rng.shuffle(found)
    return found


def test_a_version_applied_in_pieces_equals_a_version_applied_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces, at_once = Worker(tmp_path / "pieces"), Worker(tmp_path / "at-once")
    applied = []
    apply = Database.apply
    monkeypatch.setattr(Database, "apply", lambda self, table, rows: (applied.append(table), apply(self, table, rows)))
    for version in range(30):
        found = []
        for worker, piece in ((pieces, 10), (at_once, 10**9)):
            monkeypatch.setattr(ahead, "PIECE", piece)
            batches = random_batches(worker, random.Random(version), range(version, version + 1))
            found.append(worker.run(batches))
        one, other = found
        assert "refused" not in one
        assert (one["rows"], one["changed"], one["bad"]) == (other["rows"], other["changed"], other["bad"])
        for view, name in one["changes"].items():
            assert pieces.rows(name) == at_once.rows(other["changes"][view])
    assert len(applied) > 30 and set(applied) == {"sales"}
    # Replaying the log gives the same tables and views.
    for name in ("sales", "totals", "best", "pairs"):
        contents = []
        for worker in (pieces, at_once):
            with load_cell(store_of(worker.root), worker.entry, worker.layout.statements[0]).database as database:
                relation = database.table(name) if name == "sales" else database.view(name)
                contents.append(Counter(tuple(row.values()) for row in relation.to_arrow().to_pylist()))
        assert contents[0] == contents[1] and contents[0]


def test_a_bad_row_is_reported_and_earlier_pieces_are_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "PIECE", 10)
    worker = Worker(tmp_path)
    good = [worker.batch("customers", (1, "north")), *(worker.batch("sales", *[(1, 2)] * 12) for _ in range(3))]
    worker.run(good)
    files = sorted(path for path in tmp_path.rglob("*.arrow"))
    refused = worker.run([*good[1:], worker.batch("sales", (1, None))])
    assert "table sales" in refused["refused"] and "NULL" in refused["refused"]
    assert "returns" in worker.run([*good[1:], worker.batch("returns", (1, 5, -1))])["refused"]
    assert sorted(path for path in tmp_path.rglob("*.arrow")) == files
    after = worker.run([worker.batch("sales", (1, 4))])
    assert worker.rows(after["changes"]["totals"]) == Counter({("north", 72, 36, -1): 1, ("north", 76, 37, 1): 1})


@pytest.mark.parametrize("error", [EOFError, OSError])
def test_an_error_of_spark_while_reading_is_raised(error, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "PIECE", 10)
    worker = Worker(tmp_path)

    def broken() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            yield worker.batch("sales", *[(1, 2)] * 12)
        raise error("the socket is closed")

    before = threading.active_count()
    with pytest.raises(error, match="socket"):
        worker.run(broken())
    assert threading.active_count() == before


def test_a_cell_loaded_in_advance_is_not_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(tmp_path)
    worker.run([worker.batch("customers", (1, "north")), worker.batch("sales", (1, 5))])
    state._CELLS.clear()
    run = run_of(store_of(tmp_path))
    task = Task(str(tmp_path), run, worker.layout.statements, (), (worker.entry,), Wanted(1, ()), False)
    list(load_partition(task, [pa.record_batch({TO: pa.array([0], pa.int32())})]))
    assert [cell.token for cell in state._CELLS.values()] == [worker.entry["token"]]
    monkeypatch.setattr(state, "load_cell", None)  # it cannot be loaded from files
    found = worker.run([worker.batch("sales", (1, 6))])
    assert worker.rows(found["changes"]["totals"]) == Counter({("north", 11, 2, 1): 1, ("north", 5, 1, -1): 1})


def test_a_cell_without_memory_refuses_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "PIECE", 3)
    monkeypatch.setattr(free_memory, "LONGEST", 0.0)
    monkeypatch.setattr(free_memory, "SHORTEST", 0.0)
    worker = Worker(tmp_path)
    worker.run([worker.batch("customers", (1, "north")), worker.batch("sales", *((1, q) for q in range(5)))])
    loads: list[str] = []

    def load(*given: Any) -> Any:
        loads.append(given[1])
        return state.loaded(*given)

    monkeypatch.setattr("freshviews.spark.worker.worker.loaded", load)

    def full(root: Path) -> list[Limit]:
        return [Limit("its control group", 1 << 30, 0)]

    monkeypatch.setattr(free_memory, "limits_of_process", full)
    sales = [worker.batch("sales", *((1, q) for q in range(5))) for _ in range(10)]
    refused = worker.run(iter(sales))
    assert refused["refused"].startswith("memory: 0 MB of 1.1 GB (its control group) are left, the rows may take ")
    assert refused["no_row"] and refused["place"] is None
    assert loads == ["0"]
    # The log is replayed without a check: its rows were accepted.
    load_cell(store_of(tmp_path), worker.entry, worker.layout.statements[0]).database.close()
    back = worker.batch("returns", (1, 1, 1))
    assert "refused" in worker.run([back])
    monkeypatch.setattr(free_memory, "limits_of_process", lambda root: [])
    assert "refused" not in worker.run([back])
