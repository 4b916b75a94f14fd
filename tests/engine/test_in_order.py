"""The change of a view by each update, in order, in bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from itertools import chain, islice

import numpy as np
import pyarrow as pa
import pytest

from freshviews import BatchError, CatalogError, Change, Database, EvaluationError, FreshviewsError
from freshviews.engine.blocks import runtime
from freshviews.kernel.memory import mem
from freshviews.kernel.output import buffer as buffers

pytestmark = pytest.mark.compiled(6)

TABLE = "CREATE TABLE g (src BIGINT NOT NULL, dst BIGINT NOT NULL);"
HOPS = """
    SELECT g1.src AS a, g2.src AS b, g3.src AS c, g3.dst + 1 AS d FROM g g1, g g2, g g3
    WHERE g1.dst = g2.src AND g2.dst = g3.src
"""
VIEWS = {
    "enumerated": f"CREATE MATERIALIZED VIEW v AS {HOPS};",
    "distinct": "CREATE MATERIALIZED VIEW v AS SELECT DISTINCT g1.src AS a, g1.dst AS b FROM g g1, g g2, g g3"
    " WHERE g1.dst = g2.src AND g2.dst = g3.src;",
    "grouped": "CREATE MATERIALIZED VIEW v AS SELECT g1.src AS a, COUNT(*) AS n FROM g g1, g g2"
    " WHERE g1.dst = g2.src GROUP BY g1.src;",
    "groups that are enumerated": "CREATE MATERIALIZED VIEW v AS SELECT g1.src AS a, g1.dst AS b, g2.dst AS c,"
    " COUNT(*) AS n FROM g g1, g g2 WHERE g1.dst = g2.src GROUP BY g1.src, g1.dst, g2.dst HAVING COUNT(*) > 1;",
    "by way of another": "CREATE MATERIALIZED VIEW u AS SELECT dst, COUNT(*) AS n FROM g GROUP BY dst;"
    "CREATE MATERIALIZED VIEW v AS SELECT g.src, g.dst, u.n FROM g JOIN u ON g.src = u.dst;",
    "a set": "CREATE MATERIALIZED VIEW v AS SELECT p.src, q.dst FROM g p JOIN g q ON p.dst = q.src"
    " EXCEPT SELECT src, dst FROM g;",
    "nested": "CREATE MATERIALIZED VIEW v AS SELECT a, n FROM"
    f" (SELECT b AS a, COUNT(*) AS n FROM ({HOPS}) GROUP BY b);",
}


def updates(size: int, seed: int) -> list[tuple[int, int, int]]:
    """Edges of a small graph come and go."""
    rng = random.Random(seed)
    here: list[tuple[int, int]] = []
    made = []
    for _ in range(size):
        if here and rng.random() < 0.4:
            made.append((*here.pop(rng.randrange(len(here))), -1))
        else:
            here.append((rng.randrange(6), rng.randrange(6)))
            made.append((*here[-1], 1))
    return made


def batch_of(rows: list[tuple[int, int, int]]) -> pa.Table:
    return pa.table(dict(zip(("src", "dst", "_multiplicity"), map(list, zip(*rows, strict=True)), strict=True)))


def rows_of(db: Database) -> Counter[tuple[object, ...]]:
    return Counter(db.view("v"))


@pytest.mark.parametrize("name", VIEWS)
def test_apply_in_order_reports_the_change_of_each_single_update(name: str) -> None:
    stream = updates(120, 1)
    with Database() as db, Database() as single:
        for one in (db, single):
            one.execute(TABLE + VIEWS[name])
        found: dict[int, Counter[tuple[object, ...]]] = {}
        for batch in db.apply_in_order("g", batch_of(stream), "v", rows=7):
            assert 0 < batch.num_rows <= 7
            for *row, m, update in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                found.setdefault(update, Counter())[tuple(row)] += m
        for i, row in enumerate(stream):
            before = rows_of(single)
            single.apply("g", [row])
            after = rows_of(single)
            expected = Counter(after)
            expected.subtract(before)
            assert {k: m for k, m in found.get(i, Counter()).items() if m} == {k: m for k, m in expected.items() if m}
        assert rows_of(db) == rows_of(single)


def test_apply_in_order_applies_updates_only_while_changes_are_read() -> None:
    with Database() as db:
        db.execute(TABLE + VIEWS["enumerated"])
        changes = db.apply_in_order("g", [(i % 9, (i + 1) % 9, 1) for i in range(9000)], "v", rows=10)
        assert len(db.table("g")) == 0
        assert len(list(islice(changes, 3))) == 3
        assert 3 <= len(db.table("g")) < 100
        del changes


@pytest.mark.full
@pytest.mark.parametrize("window", [False, True], ids=["deletes", "window"])
def test_apply_in_order_takes_bounded_memory_for_changes_of_any_size(window: bool) -> None:
    """After thousands of updates that change nothing, each changes 200 rows: 400,000 in all, of 5 words."""
    hub = 200
    quiet = [(i, i + 1, 1) for i in range(1000, 9000, 2)]
    loud = [(i, 0, 1 if window or i % 2 == 0 else -1) for i in (j - j % 2 for j in range(-2000, 0))]
    table = TABLE.replace(";", " TBLPROPERTIES ('freshviews.window' = '4300 rows');") if window else TABLE
    with Database() as db:
        db.execute(f"{table} CREATE MATERIALIZED VIEW v AS"
                   " SELECT p.src AS a, q.src AS b, q.dst AS c FROM g p JOIN g q ON p.dst = q.src;")  # fmt: skip
        changes = db.apply_in_order("g", [*quiet, *((0, 10**6 + i, 1) for i in range(hub)), *loud], "v", rows=500)
        told: Counter[tuple[object, ...]] = Counter()
        number = -1
        first = next(changes)  # compiles, which is not counted
        tracemalloc.start()
        for batch in chain([first], changes):
            assert batch.num_rows <= 500
            behind = batch.column("_update").to_numpy()
            assert number <= behind[0] and (np.diff(behind) >= 0).all()
            number = int(behind[-1])
            told["come"] += int((batch.column("_multiplicity").to_numpy() > 0).sum())
            told["all"] += batch.num_rows
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert told["all"] >= 300_000
        assert told["come"] - (told["all"] - told["come"]) == len(db.view("v"))
        assert peak < 3_000_000


def test_updates_that_cancel_out_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_SLICE", 16)
    monkeypatch.setattr(runtime, "_MERGED", 1000)
    with Database() as db:
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v AS"
                   " SELECT p.src AS a, q.dst + 0 AS b FROM g p JOIN g q ON p.dst = q.src;")  # fmt: skip
        told: list[dict[tuple[int, ...], int]] = []
        cut: list[int] = []

        def note(change: Change) -> None:
            told.append(dict(change))
            cut.extend(batch.num_rows for batch in change.to_batches(40))

        db.view("v").subscribe(note)
        db.insert("g", [(0, i) for i in range(1, 101)])
        buffer = db.view("v").state.maintained.blocks[0].state.changes
        db.apply("g", [*((-1, 0, 1), (-1, 0, -1)) * 500, (-2, 0, 1)])
        assert told == [{(-2, i): 1 for i in range(1, 101)}] and cut == [40, 40, 20]
        assert mem.load(buffer, buffers.CAPACITY) < 12_000  # of 100,100 rows


@pytest.mark.parametrize("name", ["enumerated", "distinct"])
def test_a_delete_before_the_insert_of_its_row_is_refused(name: str) -> None:
    """A piece is checked as a whole, so no piece deletes a row before inserting it."""
    quiet = [(50, 60 + i, 1) for i in range(12)]
    with Database() as db:
        db.execute(TABLE + VIEWS[name])
        told = []
        with pytest.raises(BatchError, match="row 13"):
            for batch in db.apply_in_order("g", [(1, 1, 1), *quiet, (2, 2, -1), (2, 2, 1)], "v"):
                told += batch.column("a").to_pylist()
        assert told == [1]
        told.clear()
        comes_and_goes = [(2, 2, 1), (2, 2, -1)] * 20
        for batch in db.apply_in_order("g", comes_and_goes, "v"):
            told += zip(batch.column("_multiplicity").to_pylist(), batch.column("_update").to_pylist(), strict=True)
        assert told == [(m, i) for i, (_, _, m) in enumerate(comes_and_goes)]


def test_reading_changes_of_a_dropped_view_fails() -> None:
    stream = [(i % 9, (i + 1) % 9, 1) for i in range(9000)]
    with Database() as db:
        db.execute(TABLE + VIEWS["enumerated"])
        changes = db.apply_in_order("g", stream, "v", rows=10)
        next(changes)
        there = len(db.table("g"))
        db.execute("DROP MATERIALIZED VIEW v")
        with pytest.raises(CatalogError, match="v was dropped"):
            for _ in changes:
                pass
        assert len(db.table("g")) == there
        db.execute(VIEWS["enumerated"])
        changes = db.apply_in_order("g", stream, "v", rows=10)
        next(changes)
    with pytest.raises(FreshviewsError, match="closed"):
        list(changes)


def test_the_error_of_apply_in_order_names_the_update_that_fails() -> None:
    with Database() as db:
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v AS"
                   " SELECT p.src AS a, q.dst AS b FROM g p JOIN g q ON p.dst = 10 div q.src;")  # fmt: skip
        db.view("v").subscribe(lambda change: None)
        with pytest.raises(EvaluationError, match="row 40"):
            list(db.apply_in_order("g", [*((1, i, 1) for i in range(40)), (0, 1, 1), (1, 1, 1), (0, 2, 1)], "v"))
        before = Counter(db.view("v"))
        with pytest.raises(EvaluationError, match="row 9000"):
            db.insert("g", [*((1, i) for i in range(9000)), (0, 1), (2, 2)])
        assert Counter(db.view("v")) == before


def test_pieces_of_a_stream_before_a_refused_update_stay_committed() -> None:
    with Database() as db:
        db.execute(TABLE + VIEWS["enumerated"])
        stream = [(1, 2, 1), (2, 3, 1), (3, 4, 1), *[(5, 6, 1)] * 60, (7, 7, -1)]
        with pytest.raises(BatchError, match="row 63"):
            for _ in db.apply_in_order("g", stream, "v"):
                pass
        assert 3 <= len(db.table("g")) <= 63
        assert list(db.view("v")) == [(1, 2, 3, 5)]


def test_subscribers_get_the_changes_of_each_piece_of_a_stream() -> None:
    with Database() as db:
        db.execute(TABLE + VIEWS["enumerated"])
        told: Counter[tuple[object, ...]] = Counter()

        def note(change: object) -> None:
            for row, m in change:  # type: ignore[attr-defined]
                told[row] += m

        db.view("v").subscribe(note)
        seen: Counter[tuple[object, ...]] = Counter()
        for batch in db.apply_in_order("g", updates(200, 5), "v"):
            for *row, m, _ in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                seen[tuple(row)] += m
        assert +told == +seen == rows_of(db)


@pytest.mark.parametrize("name", VIEWS)
def test_a_net_change_equals_the_change_of_one_batch(name: str) -> None:
    stream = updates(120, 1)
    with Database() as db, Database() as single:
        for one in (db, single):
            one.execute(TABLE + VIEWS[name])
            one.apply("g", stream[:60])
        before = rows_of(single)
        single.apply("g", stream[60:])
        expected = Counter(rows_of(single))
        expected.subtract(before)
        found: Counter[tuple[object, ...]] = Counter()
        for batch in db.apply_net("g", batch_of(stream[60:]), "v", rows=7):
            assert 0 < batch.num_rows <= 7
            for *row, m in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                found[tuple(row)] += m
        assert {k: m for k, m in found.items() if m} == {k: m for k, m in expected.items() if m}
        assert rows_of(db) == rows_of(single)


def test_the_net_change_of_a_join_has_each_row_once() -> None:
    """Edges are inserted, deleted, and inserted again: rows that are back at the end are not reported."""
    rng = random.Random(9)
    edges = [(a, b) for a in range(8) for b in range(8)]
    with Database() as db:
        db.execute("CREATE TABLE g (src BIGINT NOT NULL, dst BIGINT NOT NULL, PRIMARY KEY (src, dst));"
                   "CREATE MATERIALIZED VIEW v AS SELECT p.src AS a, p.dst AS b, q.dst AS c, r.dst AS d"
                   " FROM g p, g q, g r WHERE p.dst = q.src AND q.dst = r.src;")  # fmt: skip
        here = set(rng.sample(edges, 30))
        db.insert("g", sorted(here))
        before = rows_of(db)
        stream = []
        for _ in range(200):
            edge = rng.choice(edges)
            stream.append((*edge, -1 if edge in here else 1))
            here ^= {edge}
        told = [
            tuple(row)
            for batch in db.apply_net("g", stream, "v", rows=50)
            for row in zip(*[column.to_pylist() for column in batch.columns], strict=True)
        ]
        expected = Counter(rows_of(db))
        expected.subtract(before)
        assert sorted(told) == sorted((*row, m) for row, m in expected.items() if m)
        assert len(db.table("g")) == len(here)
