"""The change of a view that each update makes, in order, and the memory that takes."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pyarrow as pa
import pytest

from freshviews import BatchError, Database

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
def test_the_changes_of_updates_are_those_of_single_batches(name: str) -> None:
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


def test_nothing_is_applied_before_it_is_asked_for() -> None:
    with Database() as db:
        db.execute(TABLE + VIEWS["enumerated"])
        changes = db.apply_in_order("g", [(i % 9, (i + 1) % 9, 1) for i in range(9000)], "v", rows=10)
        assert len(db.table("g")) == 0
        assert len(list(islice(changes, 3))) == 3
        assert 3 <= len(db.table("g")) < 100
        del changes


def test_updates_up_to_a_refused_one_stand() -> None:
    with Database() as db:
        db.execute(TABLE + VIEWS["enumerated"])
        stream = [(1, 2, 1), (2, 3, 1), (3, 4, 1), *[(5, 6, 1)] * 60, (7, 7, -1)]
        with pytest.raises(BatchError, match="row 63"):
            for _ in db.apply_in_order("g", stream, "v"):
                pass
        assert 3 <= len(db.table("g")) <= 63
        assert list(db.view("v")) == [(1, 2, 3, 5)]


def test_a_subscriber_hears_of_the_versions_meanwhile() -> None:
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
