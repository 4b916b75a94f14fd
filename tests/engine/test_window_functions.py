"""Window functions and LATERAL first rows agree with DuckDB from scratch after each update."""

from __future__ import annotations

import pytest

from freshviews import Database
from tests.engine.test_subqueries import agrees_after_every_update

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(25)]

QUERIES = [
    "SELECT a, b, SUM(b) OVER (PARTITION BY a) AS s FROM r",
    "SELECT a, COUNT(*) OVER () AS n, MAX(b) OVER (PARTITION BY b, a) AS m FROM r",
    "SELECT a, AVG(c) OVER w AS s, COUNT(c) FILTER (WHERE b > 1) OVER w AS n FROM s WINDOW w AS (PARTITION BY a)",
    "SELECT r.a, s.c, SUM(s.b) OVER (PARTITION BY r.a) AS s FROM r LEFT JOIN s ON r.a = s.a WHERE r.b > 0 OR s.c > 1",
    # A column that only a subquery reads.
    "SELECT r.a, COUNT(r.b) OVER (PARTITION BY r.a) AS n FROM r JOIN s ON r.a = s.a "
    "WHERE (SELECT SUM(u.b) FROM r AS u WHERE u.a <= s.c) < 9",
    "SELECT a, SUM(c) AS s, SUM(SUM(c)) OVER () AS t, AVG(SUM(c)) OVER (PARTITION BY b) AS u FROM s GROUP BY a, b",
    "SELECT a, SUM(c) * 2E0 / SUM(SUM(c)) OVER () AS t FROM s GROUP BY a HAVING COUNT(*) > 1",
    "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) "
    "AS s FROM r",
    "SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST) AS n FROM r",
    "SELECT a, b, DENSE_RANK() OVER (PARTITION BY a ORDER BY b NULLS FIRST, c DESC NULLS LAST) AS n FROM s",
    "SELECT a, c, SUM(b) OVER (PARTITION BY a ORDER BY c NULLS FIRST) AS n FROM s",
    "SELECT a, COUNT(*) OVER (ORDER BY c NULLS FIRST, b DESC NULLS LAST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT "
    "ROW) AS n FROM s",
    "SELECT a, b FROM r QUALIFY RANK() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST) <= 2",
    "SELECT a, s FROM (SELECT a, SUM(b) AS s, RANK() OVER (ORDER BY SUM(b) DESC NULLS LAST) AS n FROM r GROUP BY a) q "
    "WHERE n <= 2",
    "SELECT a, MAX(b) OVER (PARTITION BY a) AS m, (SELECT COUNT(*) FROM s WHERE s.a = r.a) AS n FROM r",
    "SELECT DISTINCT a, COUNT(*) OVER (PARTITION BY a % 2) AS n FROM r",
    "SELECT a, n, ROW_NUMBER() OVER (ORDER BY n DESC NULLS LAST, a NULLS FIRST) AS m FROM (SELECT a, COUNT(*) AS n "
    "FROM r GROUP BY a) q",
    *(
        f"SELECT a, b, c, {called} AS x FROM (SELECT DISTINCT a, b, c FROM s) s"
        for called in (
            "LAG(b) OVER (PARTITION BY a ORDER BY b NULLS FIRST, c NULLS FIRST)",
            "b - LEAD(b + 1, 2, -7) OVER (ORDER BY a NULLS FIRST, b NULLS FIRST, c DESC NULLS LAST)",
            "FIRST_VALUE(c) OVER (PARTITION BY a ORDER BY b NULLS FIRST, c NULLS FIRST)",
            "SUM(b) OVER (PARTITION BY a ORDER BY b NULLS FIRST, c NULLS FIRST ROWS BETWEEN 1 PRECEDING AND CURRENT "
            "ROW)",
            "COUNT(b) OVER (PARTITION BY a ORDER BY b NULLS FIRST, c NULLS FIRST ROWS UNBOUNDED PRECEDING)",
            "MAX(b) OVER (ORDER BY a NULLS FIRST, b NULLS FIRST, c NULLS FIRST ROWS BETWEEN 1 PRECEDING AND 1 "
            "FOLLOWING)",
        )
    ),
    "SELECT a, SUM(b) - LAG(SUM(b)) OVER (ORDER BY a NULLS FIRST) AS x FROM r GROUP BY a",
    "SELECT r.a, q.b, q.n FROM r, LATERAL (SELECT b, RANK() OVER (ORDER BY c NULLS FIRST) AS n FROM s WHERE s.a = r.a) "
    "q",
    "SELECT a, (SELECT MAX(n * m) FROM (SELECT RANK() OVER (ORDER BY SUM(c) DESC NULLS LAST) AS n, SUM(c) AS m FROM s "
    "WHERE s.a < r.a GROUP BY b) q) AS x FROM r",
    "SELECT r.a, q.b FROM r, LATERAL (SELECT b, COUNT(*) AS n FROM s WHERE s.a = r.a GROUP BY b ORDER BY n DESC NULLS "
    "LAST, b NULLS FIRST LIMIT 2) q",
    "SELECT r.a, q.c FROM r LEFT JOIN LATERAL (SELECT c FROM s WHERE s.a <= r.a GROUP BY c ORDER BY c DESC NULLS LAST "
    "LIMIT 1) q ON TRUE",
    "SELECT a, (SELECT c FROM s WHERE s.a = r.a GROUP BY c ORDER BY c DESC NULLS LAST LIMIT 1 OFFSET 1) AS x FROM r",
    "SELECT a FROM r WHERE b IN (SELECT c FROM s WHERE s.a = r.a GROUP BY c ORDER BY c NULLS FIRST LIMIT 2)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_view_with_window_functions_agrees_with_duckdb_after_every_update(query: str) -> None:
    agrees_after_every_update(query, query, 25)


def test_each_copy_of_a_row_has_its_own_row_number() -> None:
    with Database() as db:
        db.execute("CREATE TABLE r (id BIGINT, a BIGINT)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT a, ROW_NUMBER() OVER (ORDER BY a) AS n FROM r")
        db.insert("r", [(1, 5), (2, 5), (3, 1)])
        db.insert("r", [(2, 5)])
        assert sorted(db.view("v")) == [(1, 1), (5, 2), (5, 3), (5, 4)]
        db.delete("r", [(2, 5)])
        assert sorted(db.view("v")) == [(1, 1), (5, 2), (5, 3)]


def test_a_lateral_limit_counts_rows_before_the_projection() -> None:
    with Database() as db:
        db.execute("CREATE TABLE o (k BIGINT); CREATE TABLE r (id BIGINT, k BIGINT, a BIGINT)")
        db.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT o.k, q.a FROM o, LATERAL (SELECT a FROM r WHERE r.k = o.k "
            "ORDER BY a DESC LIMIT 2) q"
        )
        db.insert("o", [(1,), (2,)])
        db.insert("r", [(1, 1, 5), (2, 1, 5), (3, 1, 4), (4, 2, 7)])
        assert sorted(db.view("v")) == [(1, 5), (1, 5), (2, 7)]
        db.delete("r", [(1, 1, 5)])
        assert sorted(db.view("v")) == [(1, 4), (1, 5), (2, 7)]
