"""BIT_AND, BIT_OR, MIN_BY and MAX_BY in views, through the public API."""

from __future__ import annotations

import operator
import random
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.kernel.memory.mem import PURE_PYTHON

pytestmark = pytest.mark.compiled(4)

SCRIPT = """
CREATE TABLE t (g INT, x INT, y BIGINT, w STRING);
CREATE MATERIALIZED VIEW v AS
SELECT g, BIT_AND(x) AS every, BIT_OR(x) AS some, MAX_BY(w, y) AS latest, MIN_BY(w, y) AS first, MAX(x) AS x
FROM t GROUP BY g;
CREATE MATERIALIZED VIEW all_of_it AS
SELECT BIT_OR(y) FILTER (WHERE x > 3) AS bits, MAX_BY(x, w) FILTER (WHERE y < 5) AS x FROM t;
"""
ROWS = 80 if PURE_PYTHON else 2_000
Row = tuple[Any, ...]


def pair(rows: list[Row], value: int, by: int, last: bool) -> Any:
    """The value of the least or greatest pair; NULL is the least value, and rows without the other do not count."""
    known = sorted((r for r in rows if r[by] is not None), key=lambda r: (rank(r[by]), rank(r[value])))
    return known[-1 if last else 0][value] if known else None


def rank(value: Any) -> Any:
    """The rank of a value in the order."""
    return () if value is None else (value.encode(),) if isinstance(value, str) else (value,)


def bits(kind: Any, values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return reduce(kind, known) if known else None


def expected(held: Counter[Row]) -> tuple[list[Row], list[Row]]:
    """The expected rows of both views, from the rows of the table."""
    groups: dict[int, list[Row]] = {}
    for row in held:
        groups.setdefault(row[0], []).append(row)
    grouped = [
        (
            g,
            bits(operator.and_, [r[1] for r in rows]),
            bits(operator.or_, [r[1] for r in rows]),
            pair(rows, 3, 2, True),
            pair(rows, 3, 2, False),
            max((r[1] for r in rows if r[1] is not None), default=None),
        )
        for g, rows in groups.items()
    ]
    every = [row for rows in groups.values() for row in rows]
    some = [r[2] for r in every if r[1] is not None and r[1] > 3]
    greatest = pair([r for r in every if r[2] is not None and r[2] < 5], 1, 3, True)
    return grouped, [(bits(operator.or_, some), greatest)]


def test_aggregates_of_semigroups_follow_inserts_and_deletes(tmp_path: Path) -> None:
    order, held = random.Random(7), Counter[Row]()
    told: Counter[Row] = Counter()
    db = fv.Database(tmp_path / "db")
    db.execute(SCRIPT)
    db.view("v").subscribe(lambda change: told.update(dict(change)))
    for turn in range(ROWS):
        row = (
            order.randrange(3),
            order.choice((None, *range(-8, 8))),
            order.choice((None, *range(8))),
            order.choice((None, "b", "a", "é", "")),
        )
        if held[row] and order.random() < 0.7:
            db.delete("t", [row])
            held -= Counter([row])
        else:
            db.insert("t", [row])
            held += Counter([row])
        if turn % (ROWS // 20) == 0:
            groups, every = expected(held)
            assert Counter(db.view("v")) == Counter(groups) == +told
            assert list(db.view("all_of_it")) == every
        if turn == ROWS // 2:
            db.snapshot()
            db.close()
            told.clear()
            db = fv.Database(tmp_path / "db")
            db.view("v").subscribe(lambda change: told.update(dict(change)))
            told.update(db.view("v"))
    db.delete("t", [row for row, n in held.items() for _ in range(n)])
    assert list(db.view("v")) == [] and list(db.view("all_of_it")) == [(None, None)]
    db.close()


def test_the_function_max_by_returns_the_greatest_of_tied_values() -> None:
    db = fv.Database()
    db.execute(SCRIPT)
    db.insert("t", [(1, 0, 5, "a"), (1, 0, 5, "c"), (1, 0, 5, "b"), (1, 0, None, "z")])
    assert list(db.view("v")) == [(1, 0, 0, "c", "a", 0)]
    db.insert("t", [(1, 0, 5, None)])
    assert list(db.view("v")) == [(1, 0, 0, "c", None, 0)]


LEAST = -(2**63)


def test_a_batch_is_refused_if_a_bitwise_aggregate_equals_the_least_int64() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (x BIGINT); CREATE MATERIALIZED VIEW v AS SELECT BIT_AND(x) AS x FROM t")
    db.insert("t", [(LEAST + 1,)])
    for _ in range(2):
        with pytest.raises(fv.BatchError, match="BIT_AND of these values is -9223372036854775808"):
            db.insert("t", [(LEAST + 2,)])
        assert list(db.view("v")) == [(LEAST + 1,)]
    db.insert("t", [(LEAST + 3,)])
    assert list(db.view("v")) == [(LEAST + 1,)]


def test_a_bitwise_aggregate_may_be_the_least_int64_inside_a_batch() -> None:
    """Only the result of a batch is checked, in any order of its rows; likewise in a backfill."""
    db = fv.Database()
    db.execute("CREATE TABLE t (x BIGINT); CREATE MATERIALIZED VIEW v AS SELECT BIT_AND(x) AS x FROM t")
    db.insert("t", [(LEAST + 1,), (LEAST + 2,), (5,)])
    db.execute("CREATE MATERIALIZED VIEW late AS SELECT BIT_AND(x) AS x FROM t")
    assert list(db.view("v")) == list(db.view("late")) == [(0,)]
    db.delete("t", [(5,), (LEAST + 1,)])
    assert list(db.view("v")) == list(db.view("late")) == [(LEAST + 2,)]
    db.apply("t", [(LEAST + 1, 1), (LEAST + 2, -1)])
    assert list(db.view("v")) == list(db.view("late")) == [(LEAST + 1,)]


def test_a_batch_is_accepted_after_refused_averages() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (d DECIMAL(18, 0)); CREATE MATERIALIZED VIEW v AS SELECT AVG(d) AS a FROM t")
    db.insert("t", [(1,)])
    for row in ((10**18 - 1,), (10**18 - 2,)):
        with pytest.raises(fv.BatchError, match="the unscaled average of decimals does not fit"):
            db.insert("t", [row])
    db.insert("t", [(3,)])
    assert list(db.view("v")) == [(2,)]


@pytest.mark.parametrize(
    "guarded",
    [
        "CASE WHEN COUNT(*) <> 2 THEN ONLY_VALUE(x) END AS one FROM t GROUP BY g",
        "ONLY_VALUE(x) AS one FROM t GROUP BY g HAVING COUNT(*) <> 2",
    ],
)
def test_the_error_of_the_function_only_value_names_the_group(guarded: str) -> None:
    db = fv.Database()
    db.execute(f"CREATE TABLE t (g INT, x INT); CREATE MATERIALIZED VIEW v AS SELECT g, {guarded}")
    with pytest.raises(fv.BatchError, match="for g = 2, one has two values, 5 and 6; one is allowed"):
        db.insert("t", [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6), (2, 5), (3, 7), (3, 8)])
    db.insert("t", [(0, 1), (0, 2), (2, 6)])
    assert (2, 6) in list(db.view("v"))


def test_the_function_only_value_raises_its_error_inside_a_string_function() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (g INT, w STRING)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT g, UPPER(ONLY_VALUE(w)) AS w FROM t GROUP BY g")
    db.insert("t", [(1, "a")])
    with pytest.raises(fv.BatchError, match="for g = 2, w has two values, 'b' and 'c'; one is allowed"):
        db.insert("t", [(1, "a"), (2, "b"), (2, "c")])
    assert list(db.view("v")) == [(1, "A")]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("BIT_AND(w)", "bit_and takes integers, not STRING"),
        ("BIT_OR(x, y)", "bit_or takes 1 argument, not 2"),
        ("MAX_BY(x)", r"max_by takes 2 arguments \(a value and the value to order by\), not 1"),
        ("PRODUCT(x)", "aggregate function product is not supported"),
    ],
)
def test_an_unsupported_aggregate_is_refused(sql: str, message: str) -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (g INT, x INT, y BIGINT, w STRING)")
    with pytest.raises(fv.SqlError, match=message):
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {sql} AS y FROM t")
