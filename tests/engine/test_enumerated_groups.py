"""Enumerated groups in a database: reads, lookups, changes, overflow."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from freshviews import BatchError, Change, Database, EvaluationError

pytestmark = pytest.mark.compiled(2)

TABLES = "CREATE TABLE r (a BIGINT, b BIGINT, x BIGINT); CREATE TABLE s (b BIGINT, c BIGINT, y BIGINT, z DOUBLE);"
VIEW = """
    CREATE MATERIALIZED VIEW v AS SELECT r.a, r.b, s.c, COUNT(*) AS n, SUM(r.x * s.y) AS x, SUM(s.z) AS z
    FROM r JOIN s ON r.b = s.b GROUP BY r.a, r.b, s.c;
"""
BIG = 2**40


def made() -> Database:
    database = Database()
    database.execute(TABLES + VIEW)
    return database


def test_stored_rows_do_not_grow_with_enumerated_groups() -> None:
    with made() as db:
        view = db.view("v")
        db.insert("r", [(i, 0, 1) for i in range(200)])
        db.insert("s", [(0, i, 2, 0.5) for i in range(200)])
        assert sum(batch.num_rows for batch in view.to_batches(1000)) == 40_000
        assert sum(rows for rows, _ in view.state.maintained.sizes().values()) <= 401
        assert "strategy  crown" in view.explain() and "space     O(N)" in view.explain()


def test_enumerated_groups_can_be_looked_up() -> None:
    with made() as db:
        told: list[dict[tuple[Any, ...], int]] = []
        db.view("v").subscribe(lambda change: told.append(dict(change)))
        db.insert("r", [(1, 0, 5), (2, 0, 7)])
        db.insert("s", [(0, 9, 2, 0.25)])
        assert told == [{(1, 0, 9, 1, 10, 0.25): 1, (2, 0, 9, 1, 14, 0.25): 1}]
        assert db.view("v")[1, 0, 9] == (1, 0, 9, 1, 10, 0.25)
        with pytest.raises(KeyError):
            db.view("v")[1, 0, 8]
        db.insert("r", [(1, 0, 3)])
        assert told[1:] == [{(1, 0, 9, 1, 10, 0.25): -1, (1, 0, 9, 2, 16, 0.5): 1}]
        # A row is replaced by one with equal sums; a group that stays the same has no change.
        db.apply("r", [(1, 0, 3, -1), (1, 0, 3, 1), (2, 0, 7, -1)])
        assert told[2:] == [{(2, 0, 9, 1, 14, 0.25): -1}]
        db.delete("s", [(0, 9, 2, 0.25)])
        assert told[3:] == [{(1, 0, 9, 2, 16, 0.5): -1}]


def test_changes_add_up_to_the_result_over_unobserved_versions() -> None:
    rng = random.Random(3)
    with made() as db:
        here: dict[str, list[tuple[Any, ...]]] = {"r": [], "s": []}
        told: Counter[tuple[Any, ...]] = Counter()

        def note(change: Change) -> None:
            for row, m in change:
                told[row] += m

        for i in range(40):
            if i % 10 == 3:
                told = Counter(db.view("v"))
                subscription = db.view("v").subscribe(note)
            name = rng.choice("rs")
            rows = here[name]
            gone = [rows.pop(rng.randrange(len(rows))) for _ in range(rng.randrange(len(rows) // 2 + 1))]
            come = [
                (rng.randrange(3), rng.randrange(3), rng.randrange(5), *([rng.random() - 0.5] if name == "s" else []))
                for _ in range(rng.randrange(5))
            ]
            rows += come
            db.apply(name, [*((*row, -1) for row in gone), *((*row, 1) for row in come)])
            if i % 10 >= 3:
                assert +told == Counter(db.view("v")) and not -told
            if i % 10 == 9:
                subscription.unsubscribe()


def test_reads_fail_while_a_group_overflows() -> None:
    with made() as db:
        db.insert("r", [(1, 0, BIG)])
        db.insert("s", [(0, 9, BIG, 0.0), (1, 1, 1, 0.0)])
        with pytest.raises(EvaluationError, match="view v: an output column cannot be computed for a row: overflow"):
            list(db.view("v"))
        with pytest.raises(EvaluationError, match="overflow"):
            db.view("v")[1, 0, 9]
        assert db.stats()["views"]["v"]["rows"] is None
        db.insert("r", [(1, 1, 1)])
        assert db.view("v")[1, 1, 1][4] == 1
        db.delete("r", [(1, 0, BIG)])
        assert len(list(db.view("v"))) == 1
        db.view("v").subscribe(lambda change: None)
        with pytest.raises(BatchError, match="overflow"):
            db.insert("r", [(1, 0, BIG)])
        assert list(db.view("v")) == [(1, 1, 1, 1, 1, 0.0)]
