"""Terms that exclude rows from failing expressions: at CREATE, in joins and in tables of deltas."""

from __future__ import annotations

import pytest

from freshviews import Database
from freshviews.errors import EvaluationError, SqlError

pytestmark = pytest.mark.plain_python
_NEVER = "'a' RLIKE '^[0-9]+$' AND CAST('a' AS INT) > 1"


def _view(query: str, properties: str = "") -> Database:
    db = Database()
    db.execute(f"CREATE TABLE t (k INT, b STRING) {properties}; CREATE TABLE u (k INT, z INT)")
    db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    return db


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT k FROM t WHERE {_NEVER} AND k IN (SELECT k FROM u)", []),
        ("SELECT k FROM t WHERE ('a' = 'b' AND NOT (CAST('a' AS INT) > 1)) AND EXISTS (SELECT 1 FROM u)", []),
        (f"SELECT t.k FROM t JOIN u ON t.k = u.k AND {_NEVER} AND t.k IN (SELECT k FROM u)", []),
        (f"SELECT t.k FROM t LEFT JOIN u ON t.k = u.k AND {_NEVER} AND t.k IN (SELECT k FROM u)", [(1,)]),
        (f"SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING {_NEVER} AND k > (SELECT MAX(z) FROM u)", []),
        (f"SELECT k, COUNT(*) FILTER (WHERE {_NEVER}) AS n FROM t GROUP BY k", [(1, 0)]),
        (f"SELECT k, RANK() OVER (ORDER BY k) AS n FROM t QUALIFY {_NEVER} AND n > 1", []),
        ("SELECT k FROM t WHERE 1 IN (1, CAST('a' AS INT))", [(1,)]),
        ("SELECT k FROM t WHERE 1 BETWEEN 5 AND CAST('a' AS INT)", []),
        ("SELECT CASE 'a' WHEN 'a' THEN 1 WHEN CAST('b' AS INT) THEN 2 END AS n FROM t", [(1,)]),
        ("SELECT CASE WHEN k > 0 THEN TRY_CAST('a' AS INT) END AS n FROM t", [(None,)]),
        ("SELECT k FROM t WHERE CASE WHEN k > 0 THEN TRY_CAST('a' AS BIGINT) / k END IS NULL", [(1,)]),
    ],
)
def test_an_earlier_condition_may_exclude_a_failing_constant(query: str, rows: list[tuple[int, ...]]) -> None:
    db = _view(query)
    db.insert("u", [(1, 5)])
    db.insert("t", [(1, "x")])
    assert sorted(db.view("v")) == rows


@pytest.mark.parametrize("term", ["CAST('a' AS INT) > 1 AND k > 1", "k IN (1, CAST('a' AS INT))", "10 / 0 > k"])
def test_a_failing_constant_is_refused_by_create_view(term: str) -> None:
    with pytest.raises(SqlError, match="line 1, column"):
        _view(f"SELECT k FROM t WHERE {term} AND k IN (SELECT k FROM u)")


@pytest.mark.parametrize(
    ("on", "partners"),
    [
        ("CAST(t.b AS INT) < u.z", [60]),
        ("u.z <= CAST(t.b AS INT)", [5]),
        ("CAST(t.b AS DECIMAL(8, 2)) + 1 >= u.z", [5]),
        ("TRY_CAST(t.b AS BIGINT) < u.z", [60]),
        ("100 DIV CAST(t.b AS INT) > u.z", [5]),
    ],
)
def test_a_failing_range_condition_is_an_error_for_joined_rows(on: str, partners: list[int]) -> None:
    db = _view(f"SELECT COUNT(*) AS n, SUM(u.z) AS s FROM t JOIN u ON t.k = u.k AND {on}")
    assert "O(log N)" in str(db.view("v").explain())
    db.insert("t", [(1, "x"), (2, "7"), (None, "y")])
    db.insert("u", [(2, 5), (2, 60), (3, 0)])
    assert list(db.view("v")) == [(len(partners), sum(partners))]
    if "TRY" in on:
        return
    with pytest.raises(EvaluationError, match="fails for a row"):
        db.insert("u", [(1, 9)])
    assert list(db.view("v")) == [(len(partners), sum(partners))]
    db.delete("t", [(1, "x")])
    db.insert("u", [(1, 9)])


def test_failing_rows_of_a_trusted_table_cancel_out() -> None:
    query = "SELECT t.k, SUM(CAST(t.b AS INT)) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.k"
    db = _view(query, "TBLPROPERTIES ('freshviews.trusted' = 'true')")
    db.insert("u", [(1, 5)])
    db.apply("t", [(1, "x", 1), (1, "y", -1), (1, "7", 1)])
    assert list(db.view("v")) == [(1, 7)]
    with pytest.raises(EvaluationError, match="fails for a row"):
        db.insert("t", [(1, "y")])
    db.apply("t", [(1, "y", 1), (1, "x", -1)])
    assert list(db.view("v")) == [(1, 7)]


def test_an_expression_of_a_nullable_column_is_computed_once() -> None:
    db = _view("SELECT k, SUM(CAST(b AS INT)) AS n FROM t WHERE b <> 'x' AND CAST(b AS INT) > 5 GROUP BY k")
    (block,) = db._relations.views["v"].maintained.blocks
    assert [len(columns.found) for columns in block.host.values()] == [1]
    db.insert("t", [(1, "x"), (1, "7"), (1, "3")])
    assert list(db.view("v")) == [(1, 7)]
