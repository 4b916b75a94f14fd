"""ORDER BY without LIMIT: reads of a view return rows in its order."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

TABLE = "CREATE TABLE t (a INT, b STRING, d DOUBLE, e DECIMAL(10, 2));"
NAN = math.nan
ROWS: list[Any] = [
    (1, "u", 2.5, 1),
    (2, None, NAN, 4),
    (3, "é", -1.0, None),
    (None, "u", None, 2),
    (3, "é", 7.0, 2),
    (5, "z", math.inf, 2),
]
CASES = {
    "NULL is first, and last where the order falls; then all columns": (
        "SELECT a, b FROM t ORDER BY b DESC",
        [(3, "é"), (3, "é"), (5, "z"), (None, "u"), (1, "u"), (2, None)],
    ),
    "NaN is after infinity; a column that the view does not show": (
        "SELECT a FROM t ORDER BY d DESC NULLS LAST",
        [(2,), (5,), (3,), (1,), (3,), (None,)],
    ),
    "an aggregate that the view does not show": (
        "SELECT b, COUNT(*) AS n FROM t GROUP BY b ORDER BY SUM(a) DESC, b",
        [("é", 2), ("z", 1), (None, 1), ("u", 2)],
    ),
    "positions and names": (
        "SELECT b, COUNT(*) AS n FROM t GROUP BY b ORDER BY n, 1",
        [(None, 1), ("z", 1), ("u", 2), ("é", 2)],
    ),
    "a set operation by an expression over its columns": (
        "SELECT a AS x FROM t UNION SELECT -a FROM t ORDER BY x % 3, x DESC",
        [(None,), (-2,), (-5,), (-1,), (3,), (-3,), (1,), (5,), (2,)],
    ),
    "LIMIT by a column that the view does not show": (
        "SELECT a FROM t ORDER BY d DESC LIMIT 3",
        [(2,), (5,), (3,)],
    ),
    "the outer ORDER BY of two": (
        "(SELECT a, d FROM t ORDER BY a DESC LIMIT 4) ORDER BY d",
        [(3, -1.0), (3, 7.0), (5, math.inf), (2, NAN)],
    ),
    "one in a subquery has no effect": (
        "SELECT q.e FROM (SELECT a, e FROM t ORDER BY d) AS q ORDER BY ALL DESC",
        [(Decimal("4.00"),), *[(Decimal("2.00"),)] * 3, (Decimal("1.00"),), (None,)],
    ),
    "a join by a column that the view does not show": (
        "SELECT t.a FROM t JOIN t AS s ON t.a = s.a ORDER BY s.b DESC, t.d",
        [(3,), (3,), (3,), (3,), (5,), (1,), (2,)],
    ),
}


def test_reads_return_rows_in_the_order_of_the_view() -> None:
    with fv.Database() as db:
        for i, (sql, _) in enumerate(CASES.values()):
            db.execute(f"{TABLE if i == 0 else ''} CREATE MATERIALIZED VIEW v{i} AS {sql}")
        db.insert("t", [*ROWS, (8, "a", 0.0, 8)])
        db.delete("t", [(8, "a", 0.0, 8)])
        for i, (claim, (_, expected)) in enumerate(CASES.items()):
            view = db.view(f"v{i}")
            assert str(list(view)) == str(expected), claim
            batches = [row for batch in view.to_batches(2) for row in zip(*batch.to_pydict().values(), strict=True)]
            assert str(batches) == str(expected), claim
            assert len(view) == len(expected)


def test_a_read_returns_one_version_even_after_the_view_is_dropped() -> None:
    with fv.Database() as db:
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v AS SELECT a FROM t ORDER BY d DESC NULLS LAST")
        db.insert("t", ROWS)
        batches = db.view("v").to_batches(2)
        next(batches)
        db.insert("t", [(9, "a", 3.0, None)])
        assert [batch.column(0).to_pylist() for batch in batches] == [[3, 1], [3, None]]
        rows = iter(db.view("v"))
        db.execute("DROP VIEW v")
        assert list(rows) == [(2,), (5,), (3,), (9,), (1,), (3,), (None,)]


def test_properties_apply_to_the_internal_view_of_order_by(tmp_path: Path) -> None:
    view = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS"
    with fv.Database(tmp_path / "db") as db:
        db.execute(f"{TABLE} {view} SELECT t.a FROM t JOIN t AS s ON t.a = s.a ORDER BY s.b, s.d")
        assert db.stats()["views"]["v#1"]["strategy"] == "first_order"
        with pytest.raises(fv.SqlError, match="has an ORDER BY of columns that it does not show"):
            db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.strategy' = '')")
        db.insert("t", ROWS)
        db.snapshot()
        before = list(db.view("v"))
    with fv.Database(tmp_path / "db") as db:
        assert list(db.view("v")) == before == [(2,), (1,), (5,), (3,), (3,), (3,), (3,)]


@pytest.mark.seeds(20)
def test_reads_return_rows_in_the_order_of_random_order_by_clauses(seed: int) -> None:
    rng = random.Random(seed)
    columns = "abde"
    chosen = [(rng.choice(columns), rng.random() < 0.5, rng.random() < 0.5) for _ in range(3)]
    listed = [column for column in columns if rng.random() < 0.6] or ["a"]
    values: list[tuple[Any, ...]] = [(None, 1, 2, -3), (None, "a", "B", "é"), (None, 0.5, -2.0), (None, Decimal(7))]
    rows = [tuple(map(rng.choice, values)) for _ in range(40)]
    expected = rows
    for column, descending, nulls_last in reversed([*chosen, *((column, False, False) for column in listed)]):
        place = columns.index(column)
        known = [row for row in expected if row[place] is not None]
        known.sort(key=itemgetter(place), reverse=descending)
        unknown = [row for row in expected if row[place] is None]
        expected = [*known, *unknown] if nulls_last else [*unknown, *known]
    words = [(c, "DESC" if down else "ASC", "LAST" if last else "FIRST") for c, down, last in chosen]
    order = ", ".join(f"{column} {how} NULLS {nulls}" for column, how, nulls in words)
    with fv.Database() as db:
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v AS SELECT {', '.join(listed)} FROM t ORDER BY {order}")
        db.insert("t", rows)
        assert list(db.view("v")) == [tuple(row[columns.index(column)] for column in listed) for row in expected]


def test_explain_says_how_reads_are_sorted() -> None:
    with fv.Database() as db:
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t ORDER BY d, b DESC NULLS FIRST, a DESC")
        assert "sorted when read, by column 3 of v#1, b DESC NULLS FIRST, a DESC\n" in db.view("v").explain()
