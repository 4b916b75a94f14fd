"""Subqueries below outer, semi and anti joins that name enclosing queries, compared with DuckDB after every batch."""

from __future__ import annotations

import pytest

from tests.agreement.choices import seeded
from tests.agreement.random_tables import versions
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text
from tests.agreement.sql_dependent import dependent_scenario
from tests.agreement.states import Course, Totals, replay, run_number

pytestmark = pytest.mark.plain_python(only=True)

TABLES = tuple(
    BaseTable(name, tuple(TableColumn(column, "BIGINT") for column in columns))
    for name, columns in (("r", "ab"), ("s", "ac"), ("t", "kv"))
)
BELOW = {
    "a subquery below a LEFT JOIN, over the side that is there": (
        "(SELECT SUM(u.a) FROM r u LEFT JOIN r w ON u.b = w.b AND w.a < p.a"
        " WHERE EXISTS (SELECT 1 FROM s WHERE s.a < u.a))"
    ),
    "over the optional side, in two levels": (
        "(SELECT COUNT(w.a) FROM r u LEFT JOIN s w ON u.a >= w.a AND w.c = p.b + 1 WHERE NOT EXISTS"
        " (SELECT x.v FROM t x LEFT JOIN t y ON x.k > y.k AND w.a <> y.k WHERE x.k <= p.a))"
    ),
    "IN below a RIGHT JOIN": (
        "(SELECT MAX(w.c) FROM r u RIGHT JOIN s w ON u.a > w.a AND u.b <> p.b"
        " WHERE w.c IN (SELECT x.v FROM t x WHERE x.k < w.a OR x.k = u.b))"
    ),
    "a scalar subquery below a FULL JOIN": (
        "(SELECT COUNT(*) FROM s u FULL JOIN t w ON u.a < w.k AND w.v > p.b"
        " WHERE w.v >= (SELECT MIN(x.b) FROM r x WHERE x.a < u.c))"
    ),
    "LATERAL below a LEFT JOIN": (
        "(SELECT SUM(q.n) FROM r u LEFT JOIN s w ON w.a < p.a LEFT JOIN LATERAL"
        " (SELECT COUNT(x.v) AS n FROM t x WHERE x.k <> w.c) AS q ON TRUE)"
    ),
    "nests beside each other": (
        "(SELECT COUNT(w.a) + 2 * COUNT(z.b) + SUM(u.k) FROM t u LEFT JOIN (s w LEFT JOIN r x ON x.a < p.a)"
        " ON w.c > u.k LEFT JOIN (s y LEFT JOIN r z ON z.a > p.a) ON y.a <> u.k)"
    ),
    "a nest with an anti join": (
        "(SELECT COUNT(w.k) FROM r u LEFT JOIN (t w LEFT ANTI JOIN s x ON x.a = p.a) ON u.a < w.k)"
    ),
    "a semi join": "(SELECT SUM(u.a) FROM r u LEFT SEMI JOIN s w ON u.b = w.c AND w.a < p.a)",
    "an anti join of rows of a FULL JOIN": (
        "(SELECT COUNT(*) FROM r u FULL JOIN s w ON u.a = w.a AND w.c < p.b LEFT ANTI JOIN t x"
        " ON x.k > u.a AND x.v <> p.a)"
    ),
    "a subquery in ON that names no side": (
        "(SELECT COUNT(w.k) FROM r u LEFT JOIN t w ON u.a < w.k AND NOT EXISTS (SELECT 1 FROM s x WHERE x.a = p.a))"
    ),
    "a subquery in ON of a FULL JOIN": (
        "(SELECT MIN(w.k) FROM s u FULL JOIN t w ON u.c < w.k AND w.v NOT IN (SELECT x.b FROM r x WHERE x.a < p.a))"
    ),
    "a value that NULL does not make NULL": (
        "(SELECT SUM(w.e) FROM s u LEFT JOIN (SELECT x.k, COALESCE(x.v, p.a) AS e FROM t x WHERE x.v < p.b) w"
        " ON u.c < w.k)"
    ),
    "window functions over a LEFT JOIN": (
        "(SELECT MAX(q.n) FROM (SELECT COUNT(*) OVER (PARTITION BY u.k) AS n FROM t u LEFT JOIN s w ON w.a < p.a"
        " WHERE EXISTS (SELECT 1 FROM r x WHERE x.a < u.k)) AS q)"
    ),
    "a NULL that only a subquery keeps out of a RIGHT JOIN": (
        "(SELECT SUM(w.c) FROM s u RIGHT JOIN s w ON u.a <= w.c"
        " WHERE w.c > p.a AND w.c > (SELECT COUNT(*) FROM r x WHERE x.b <= u.c + 1))"
    ),
    "groups of two queries around, the outer one first": (
        "(SELECT COUNT(*) FROM r u WHERE NOT EXISTS (SELECT DISTINCT x.v FROM t x WHERE x.k <= p.a + u.a))"
    ),
}


def scenario_of(query: str, seed: int) -> Scenario:
    duck = query.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    return Scenario(TABLES, (NamedView("v1", Text(query, duck)),), versions(seeded(seed), TABLES, False))


@pytest.mark.parametrize("what", BELOW)
def test_correlated_subqueries_below_outer_semi_and_anti_joins_agree_with_duckdb(what: str) -> None:
    for seed in range(4):
        replay(scenario_of(f"SELECT p.a AS c1, p.b AS c2, {BELOW[what]} AS c3 FROM r AS p", seed), Course())
    replay(scenario_of(f"SELECT p.a AS c1 FROM r AS p WHERE p.a >= {BELOW[what]}", 4), Course())


@pytest.mark.seeds(12)
def test_random_correlated_subqueries_agree_with_duckdb(seed: int) -> None:
    shown: list[str] = []
    assert not run_number(0, seed, Totals(), shown.append, [dependent_scenario]), "\n".join(shown)
