"""VALUES, and SELECT without FROM: rows that never change, joined with tables or alone."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

TABLE = "CREATE TABLE t (a INT, b STRING);"
CASES: dict[str, tuple[str, list[Any]]] = {
    "a join with VALUES": (
        "SELECT t.a, q.n FROM t JOIN (VALUES ('u', 10), ('w', 20)) AS q(b, n) ON t.b = q.b",
        [(1, 10), (2, 20), (3, 10)],
    ),
    "one row without FROM": ("SELECT 1 AS a, upper('x') AS b, DATE '2020-01-02' AS c", [(1, "X", dt.date(2020, 1, 2))]),
    "no row where WHERE is false": ("SELECT 1 AS a WHERE 1 = 2", []),
    "aggregates of the one row": ("SELECT COUNT(*) AS n, MAX(3) AS m", [(1, 3)]),
    "VALUES as a query": ("VALUES (1, 'u'), (2, NULL), (1, 'u')", [(1, "u"), (1, "u"), (2, None)]),
    "values have one type": ("VALUES 1, 2.5, CAST(3 AS BIGINT)", [(Decimal(n),) for n in ("1.0", "2.5", "3.0")]),
    "VALUES on the left of a LEFT JOIN": (
        "SELECT k.a, t.b FROM (VALUES (1), (2), (99)) AS k(a) LEFT JOIN t ON t.a = k.a",
        [(1, "u"), (2, "w"), (99, None)],
    ),
    "a WITH query of VALUES": (
        "WITH k(a) AS (VALUES (1), (2)) SELECT t.b FROM t, k WHERE k.a > 1",
        [("u",), ("u",), ("w",)],
    ),
    "IN a list of VALUES": ("SELECT a FROM t WHERE a IN (SELECT * FROM VALUES (1), (3))", [(1,), (3,)]),
    "IN of a query of VALUES": ("SELECT a FROM t WHERE a IN (VALUES (1), (3))", [(1,), (3,)]),
    "the first rows of VALUES": (
        "VALUES (3, 'x'), (1, 'y'), (2, NULL) ORDER BY col1 DESC LIMIT 2",
        [(3, "x"), (2, None)],
    ),
    "a subquery without FROM": ("SELECT q.x + t.a AS s FROM t, (SELECT 5 AS x) AS q", [(6,), (7,), (8,)]),
    "below set operations": (
        "SELECT b FROM t EXCEPT ALL SELECT 'u' UNION ALL VALUES ('z')",
        [("u",), ("w",), ("z",)],
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_views_with_constants_have_the_expected_rows(claim: str) -> None:
    sql, expected = CASES[claim]
    with fv.Database() as db:
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v AS {sql}")
        db.insert("t", [(1, "u"), (2, "w"), (3, "u"), (4, "x")])
        db.delete("t", [(4, "x")])
        assert Counter(db.view("v")) == Counter(expected)


def test_constants_survive_a_reopen(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        db.execute(
            f"{TABLE} CREATE VIEW k(a, c) AS VALUES (1, 'one'), (2, 'two');"
            "CREATE MATERIALIZED VIEW v AS SELECT t.b, k.c FROM t JOIN k ON t.a = k.a;"
            "CREATE MATERIALIZED VIEW w AS SELECT * FROM k"
        )
        db.insert("t", [(1, "u")])
        db.snapshot()
        db.insert("t", [(2, "w")])
        db.write_image(tmp_path / "image")
    with fv.Database(tmp_path / "db") as db:
        assert sorted(db.view("v")) == [("u", "one"), ("w", "two")]
        db.delete("t", [(1, "u")])
        assert sorted(db.view("v")) == [("w", "two")]
        assert sorted(db.view("w")) == [(1, "one"), (2, "two")]


def test_a_view_of_constants_is_read_like_any_other_view() -> None:
    with fv.Database() as db:
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM VALUES (2, 'b'), (1, 'a') AS k(n, s) ORDER BY s")
        assert db.view("v").to_arrow().to_pylist() == [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}]
        assert len(db.view("v")) == 2
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT MAX(n) AS n FROM v; DROP VIEW w; DROP VIEW v")
        assert db.views == ()
