"""ASOF JOIN: each row beside the nearest row of another table, in an order."""

from __future__ import annotations

import datetime as dt
import operator
import random
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

import freshviews as fv

pytestmark = [pytest.mark.compiled(2), pytest.mark.plain_python]

TABLES = """
    CREATE TABLE t (id INT, k INT, ts TIMESTAMP, x INT);
    CREATE TABLE p (n INT, k INT, ts TIMESTAMP, price INT);
    CREATE TABLE u (id INT, z INT);
"""
SHAPES = (
    "SELECT t.id, p.price FROM t ASOF JOIN p ON t.k = p.k AND t.ts >= p.ts",
    "SELECT t.id, p.price FROM t ASOF JOIN p ON t.k = p.k AND t.ts > p.ts",
    "SELECT t.id, p.price FROM t ASOF JOIN p ON t.k = p.k AND t.ts <= p.ts",
    "SELECT t.id, p.price FROM t ASOF JOIN p ON p.k = t.k AND p.ts > t.ts",
    "SELECT t.id, p.price FROM t ASOF LEFT JOIN p ON t.k = p.k AND t.ts >= p.ts",
    "SELECT id, k, ts, price FROM t ASOF LEFT JOIN p USING (k, ts)",
    "SELECT p.n, SUM(t.x) AS s, COUNT(*) AS c FROM t ASOF JOIN p ON t.k = p.k AND t.ts >= p.ts GROUP BY p.n",
    "SELECT t.k, COUNT(DISTINCT p.n) AS c, MAX(p.price) AS m FROM t ASOF LEFT JOIN p ON t.k = p.k AND t.ts < p.ts"
    " GROUP BY t.k",
    "SELECT t.id, p.price, u.z FROM t JOIN u ON t.id = u.id ASOF JOIN p ON u.z = p.k AND t.ts >= p.ts",
    "SELECT t.id, p.price, q.price AS q FROM t ASOF JOIN p ON t.k = p.k AND t.ts >= p.ts"
    " ASOF LEFT JOIN p AS q ON t.k = q.k AND p.ts > q.ts",
    "SELECT t.id, p.m FROM t ASOF JOIN (SELECT k, ts, MAX(price) AS m FROM p GROUP BY k, ts) AS p"
    " ON t.k = p.k AND t.ts >= p.ts WHERE t.x > 2",
)
MADE = "CREATE MATERIALIZED VIEW {} AS {}"


def at(minute: int | None) -> dt.datetime | None:
    return None if minute is None else dt.datetime(2026, 1, 1) + dt.timedelta(minutes=minute)


def batches(seed: int, count: int, ties: bool) -> Any:
    """Batches of inserts and deletes, and the rows that are there after each. Unless ``ties``, no two rows of p have
    one key and moment."""
    draw = random.Random(seed)
    held: dict[str, list[tuple[Any, ...]]] = {"t": [], "p": [], "u": []}
    number = 0
    for _ in range(count):
        changes: dict[str, list[tuple[Any, ...]]] = {name: [] for name in held}
        for _ in range(draw.randrange(1, 6)):
            name = draw.choice("ttpppu")
            if held[name] and draw.random() < 0.35:
                changes[name].append((*held[name].pop(draw.randrange(len(held[name]))), -1))
                continue
            number += 1
            key, ts = draw.choice((None, 1, 2)), at(draw.choice((None, *range(12))))
            row: tuple[Any, ...] = (draw.randrange(8), key, ts, draw.randrange(9))
            if name == "u":
                row = row[0], draw.randrange(3)
            elif name == "p":
                row = (draw.randrange(3), *row[1:3], draw.randrange(3)) if ties else (number, key, ts, number)
                if not ties and any(one[1:3] == row[1:3] for one in held["p"]):
                    continue
            held[name].append(row)
            changes[name].append((*row, 1))
        yield changes, held


def apply(db: fv.Database, changes: dict[str, list[tuple[Any, ...]]]) -> None:
    with db.batch() as batch:
        for name, rows in changes.items():
            batch.apply(name, rows)


@pytest.mark.plain_python(only=True)
@pytest.mark.seeds(2)
def test_asof_joins_return_the_same_rows_as_duckdb(seed: int) -> None:
    db, duck = fv.Database(), duckdb.connect()
    db.execute(TABLES)
    duck.execute(TABLES)
    for i, query in enumerate(SHAPES):
        db.execute(MADE.format(f"v{i}", query))
    for changes, held in batches(seed, 25, False):
        apply(db, changes)
        for name, rows in held.items():
            duck.execute(f"DELETE FROM {name}")
            if rows:
                duck.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for i, query in enumerate(SHAPES):
            assert sorted(db.view(f"v{i}"), key=repr) == sorted(duck.execute(query).fetchall(), key=repr), query


def least_first(row: tuple[Any, ...]) -> Any:
    """The order of rows by their moment, then by the other columns."""
    return row[2], row[0], row[3]


@pytest.mark.seeds(1)
@pytest.mark.parametrize("strategy", ["", "first_order", "crown", "incremental_trie_join", "change_propagation"])
def test_among_equal_times_an_asof_join_takes_the_last_row_before_or_the_first_row_after(
    seed: int, strategy: str
) -> None:
    tests: dict[str, Callable[[Any, Any], bool]] = {
        ">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt,
    }  # fmt: skip
    db = fv.Database()
    db.execute(TABLES)
    how = f" TBLPROPERTIES ('freshviews.strategy' = '{strategy}')" if strategy else ""
    for i, sign in enumerate(tests):
        query = f"SELECT t.id, p.n, p.price FROM t ASOF JOIN p ON t.k = p.k AND t.ts {sign} p.ts"
        db.execute(MADE.format(f"v{i}{how}", query))
    for changes, held in batches(seed, 15, True):
        apply(db, changes)
        for i, (sign, test) in enumerate(tests.items()):
            expected = []
            for row in held["t"]:
                of_key = [p for p in held["p"] if None not in (*row[1:3], *p[1:3]) and p[1] == row[1]]
                found = sorted((p for p in of_key if test(row[2], p[2])), key=least_first)
                if found:
                    match = found[-1] if sign in (">", ">=") else found[0]
                    expected.append((row[0], match[0], match[3]))
            assert sorted(db.view(f"v{i}")) == sorted(expected), sign


def test_an_asof_join_with_match_condition_keeps_rows_without_a_match() -> None:
    db = fv.Database()
    query = "SELECT t.id, p.n FROM t ASOF JOIN p MATCH_CONDITION (t.ts >= p.ts) ON t.k = p.k"
    db.execute(TABLES + MADE.format("v", query))
    db.insert("t", [(1, 1, at(5), 0), (2, 1, at(1), 0), (3, 2, at(5), 0)])
    db.insert("p", [(7, 1, at(3), 0), (8, 1, at(4), 0)])
    assert sorted(db.view("v")) == [(1, 8), (2, None), (3, None)]


def test_explain_shows_that_the_cost_of_an_update_grows_with_the_rows_whose_match_changes() -> None:
    db = fv.Database()
    db.execute(TABLES + MADE.format("v", SHAPES[0]) + ";" + MADE.format("s", SHAPES[6]))
    text = str(db.view("v").explain())
    assert "per row of t or changed row of v#2: O(log N), and again O(log N) for each row whose match changes" in text
    assert "in last of p_by_p_ts[k, p_ts <= t_ts]:" in text
    assert "update    O(log N)\n" in str(db.view("s").explain())
