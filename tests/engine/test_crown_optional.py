"""Outer joins and NOT EXISTS over join trees, in a database: plans, rows read a few at a time, changes, lookups."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from freshviews import Database
from freshviews.errors import PlanError

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(1)]

TABLES = """
CREATE TABLE r (x BIGINT NOT NULL, k BIGINT);
CREATE TABLE s (k BIGINT NOT NULL, y BIGINT);
CREATE TABLE t (y BIGINT, z BIGINT NOT NULL);
CREATE TABLE u (x BIGINT NOT NULL);
"""
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "r": [(1, 1), (2, 1), (3, 2), (4, 9), (5, None), (6, 3), (7, 2)],
    "s": [(1, 10), (1, 11), (2, None), (3, 10), (8, 10)],
    "t": [(10, 100), (10, 101), (None, 102), (12, 103)],
    "u": [(2,), (7,), (7,)],
}
CHAIN = """SELECT r.x, r.k, s.y, t.z FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON s.y = t.y
WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.x = r.x)"""
ALL = [
    (1, 1, 10, 100), (1, 1, 10, 101), (1, 1, 11, None), (3, 2, None, None), (4, 9, None, None),
    (5, None, None, None), (6, 3, 10, 100), (6, 3, 10, 101),
]  # fmt: skip


def database(select: str, properties: str = "", rows: bool = True) -> Database:
    db = Database()
    db.execute(TABLES + f"CREATE MATERIALIZED VIEW v {properties} AS {select}")
    if rows:
        for name, found in ROWS.items():
            db.insert(name, found)
    return db


def test_the_planner_chooses_a_join_tree_and_explain_draws_it() -> None:
    text = database(CHAIN).view("v").explain()
    assert "crown: free-connex: semi-joins along a join tree, no join is kept" in text
    for line in ("r(k, x)", "!u(x)", "s?(k, y)", "t?(y, z)"):
        assert line in text


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_rows_of_an_outer_join_can_be_read_in_small_batches(rows: int) -> None:
    found: list[Any] = []
    for batch in database(CHAIN).view("v").to_batches(rows):
        assert batch.num_rows <= rows
        found += [tuple(row.values())[:4] for row in batch.to_pylist()]
    assert Counter(found) == Counter(ALL)


@pytest.mark.parametrize("strategy", ["crown", "trie_join", "incremental_trie_join"])
def test_changes_are_exact_when_default_rows_appear_and_vanish(strategy: str) -> None:
    db = database(CHAIN, f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')")
    changes: list[dict[Any, int]] = []
    db.view("v").subscribe(lambda change: changes.append({tuple(row): m for row, m in change}))
    db.insert("s", [(9, 12)])
    db.delete("s", [(1, 11), (1, 10)])
    db.delete("u", [(7,)])
    db.delete("u", [(7,)])
    db.insert("t", [(None, 1)])
    db.delete("t", [(10, 100), (10, 101)])
    assert changes == [
        {(4, 9, None, None): -1, (4, 9, 12, 103): 1},
        {(1, 1, 11, None): -1, (1, 1, 10, 100): -1, (1, 1, 10, 101): -1, (1, 1, None, None): 1},
        {(7, 2, None, None): 1},
        {(6, 3, 10, 100): -1, (6, 3, 10, 101): -1, (6, 3, 10, None): 1},
    ]


@pytest.mark.parametrize("kind", ["EXCEPT", "INTERSECT", "UNION"])
def test_set_operations_over_outer_joins_have_the_right_rows(kind: str) -> None:
    left = "SELECT DISTINCT r.x, r.k, s.y FROM r LEFT JOIN s ON r.k = s.k"
    right = "SELECT DISTINCT r.x, r.k, s.y FROM r JOIN s ON r.k = s.k AND s.y > 10"
    expected = {(1, 1, 11), (2, 1, 11)}
    every = {row[:3] for row in ALL} | {(2, 1, 10), (2, 1, 11), (7, 2, None)}
    db = database(f"{left} {kind} {right}")
    expected = {"EXCEPT": every - expected, "INTERSECT": expected, "UNION": every}[kind]
    assert Counter(db.view("v")) == Counter(expected)
    db.delete("s", [(1, 11)])
    back = Counter(database(f"{right} {kind} {left}").view("v"))
    assert back == Counter({"EXCEPT": set(), "INTERSECT": {(1, 1, 11), (2, 1, 11)}, "UNION": every}[kind])


def test_an_unused_outer_join_of_distinct_rows_is_dropped() -> None:
    select = "SELECT DISTINCT r.x, r.k, s.k AS other FROM r LEFT JOIN t ON r.k = t.y JOIN s ON s.k = r.k"
    db = database(select, "TBLPROPERTIES ('freshviews.strategy' = 'crown')")
    assert set(db.view("v")) == {(1, 1, 1), (2, 1, 1), (3, 2, 2), (6, 3, 3), (7, 2, 2)}
    assert "t?" not in db.view("v").explain().split("class")[1]


def test_outer_joins_without_a_join_tree_use_another_strategy() -> None:
    select = "SELECT r.x, t.z FROM r JOIN s ON s.k = r.k LEFT JOIN t ON t.z = r.x AND t.y = s.y"
    with pytest.raises(PlanError, match=r"outer join with t, because no node .*; set first_order, or no strategy"):
        database(select, "TBLPROPERTIES ('freshviews.strategy' = 'crown')")
    counts = {(1, None): 2, (2, None): 2, (3, None): 1, (6, None): 1, (7, None): 1}
    assert Counter(database(select).view("v")) == Counter(counts)


def test_a_join_tree_property_cannot_name_tables_of_outer_joins() -> None:
    db = database(CHAIN, "TBLPROPERTIES ('freshviews.join_tree' = 'r')", rows=False)
    assert "s?(k, y)" in db.view("v").explain()
    with pytest.raises(PlanError, match=r"'s' is not a relation .* r; leave out s, t, u, which outer joins"):
        database(CHAIN, "TBLPROPERTIES ('freshviews.join_tree' = 'r(s)')", rows=False)


@pytest.mark.parametrize("strategy", ["ivm_eps", "ivm_eps_linear"])
def test_ivm_eps_and_ivm_eps_linear_refuse_outer_joins_and_negation(strategy: str) -> None:
    properties = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    with pytest.raises(PlanError, match=f"strategy {strategy} does not accept NOT EXISTS; set .*, or no"):
        database(CHAIN, properties, rows=False)
    with pytest.raises(PlanError, match=f"strategy {strategy} does not accept outer joins; set .*, or no"):
        database("SELECT r.x, s.y FROM r LEFT JOIN s ON r.k = s.k", properties, rows=False)


def test_a_union_is_replanned_without_a_join_tree_for_each_block() -> None:
    part = "SELECT r.x, r.k, t.z FROM r JOIN s ON s.k = r.k LEFT JOIN t ON t.z = r.x AND t.y = s.y"
    db = database(f"SELECT r.x, s.k, s.y FROM r JOIN s ON r.k = s.k UNION ALL {part}")
    before = Counter(db.view("v"))
    db.replan("v")
    assert Counter(db.view("v")) == before


def test_an_update_never_reports_a_row_and_its_retraction() -> None:
    db = database("SELECT r.x, r.k, s.y FROM r LEFT JOIN s ON r.k = s.k")
    updates = pa.table({"k": [9, 9, 9, 9], "y": [None, 5, None, 5], "_multiplicity": [1, 1, -1, -1]})
    found = [row for batch in db.apply_in_order("s", updates, "v", rows=100) for row in batch.to_pylist()]
    # A row of s of NULLs, equal to the default row, replaces it, and nothing changes.
    assert [tuple(row.values()) for row in found] == [
        (4, 9, 5, 1, 1), (4, 9, None, -1, 2), (4, 9, 5, -1, 3), (4, 9, None, 1, 3),
    ]  # fmt: skip
