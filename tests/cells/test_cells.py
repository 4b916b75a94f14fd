"""N cells and a second stage, simulated by databases, agree with one engine after every version.

Changes are compared with multiplicities, so a row from two cells, or from none, is noticed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from freshviews.cells import plan_cells
from tests.cells.simulated import catalog_of, check, random_versions

COMPILED = {
    "a triangle of one table": "CREATE TABLE e (x BIGINT, y BIGINT); CREATE MATERIALIZED VIEW v AS"
    " SELECT p.x, q.x AS y, o.x AS z FROM e p, e q, e o WHERE p.y = q.x AND q.y = o.x AND o.y = p.x;",
    "a triangle counted": "CREATE TABLE e (x BIGINT, y BIGINT); CREATE MATERIALIZED VIEW v AS"
    " SELECT COUNT(*) AS n, SUM(p.x) AS s, MAX(q.y) AS m, COUNT(DISTINCT o.y) AS d"
    " FROM e p, e q, e o WHERE p.y = q.x AND q.y = o.x AND o.y = p.x;",
    "views of views": "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
    "CREATE MATERIALIZED VIEW u AS SELECT a, COUNT(*) AS n, AVG(b) AS m FROM r JOIN s USING (x) GROUP BY a;"
    "CREATE MATERIALIZED VIEW v AS SELECT a, n FROM u WHERE n > 1 UNION ALL SELECT x, COUNT(*) FROM s GROUP BY x;"
    "CREATE MATERIALIZED VIEW w AS SELECT n, COUNT(*) AS k FROM v GROUP BY n;"
    "CREATE MATERIALIZED VIEW z AS SELECT u.n, s.b FROM u JOIN s ON u.a = s.x;",
    "texts of rows": "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
    "CREATE MATERIALIZED VIEW v AS SELECT x, STRING_AGG(a, ',') AS t, COUNT(*) AS n, PROVENANCE() AS p"
    " FROM r JOIN s USING (x) GROUP BY x;"
    "CREATE MATERIALIZED VIEW w AS SELECT t, STRING_AGG(x, ' ') AS x FROM v GROUP BY t;"
    "CREATE MATERIALIZED VIEW z AS SELECT r.a, o.t FROM r JOIN"
    " (SELECT x, LISTAGG(b) AS t FROM s GROUP BY x) o USING (x);",
    "categories": "CREATE TABLE r (x BIGINT, a BIGINT, c BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
    "CREATE MATERIALIZED VIEW v AS SELECT x, COFACTOR(a, CATEGORY(c), CATEGORY(b)) AS f"
    " FROM r JOIN s USING (x) GROUP BY x;"
    "CREATE MATERIALIZED VIEW w AS SELECT COFACTOR(b, CATEGORY(c)) AS f FROM r JOIN s USING (x);",
    "percentiles": "CREATE TABLE r (x BIGINT, a BIGINT); CREATE TABLE s (x BIGINT, b BIGINT);"
    "CREATE MATERIALIZED VIEW v AS SELECT a, MEDIAN(b) AS m, COUNT(DISTINCT b) AS n, MAX(b) AS x,"
    " PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY r.x DESC) AS p FROM r JOIN s USING (x) GROUP BY a;"
    "CREATE MATERIALIZED VIEW w AS SELECT MEDIAN(r.x) AS m, MODE(b) AS o, BIT_XOR(a) AS y FROM r JOIN s ON r.a = s.b;",
    "the first rows": "CREATE TABLE r (x BIGINT, a BIGINT);"
    "CREATE MATERIALIZED VIEW v AS SELECT x, a FROM r ORDER BY a DESC LIMIT 3 OFFSET 1;",
}
"""A small number, because every view is compiled."""
SAMPLE = ("a triangle of one table", "texts of rows")
"""Cases that are compiled in smaller runs than ``make test-all``; all cases run as plain Python
(test_plain_python.py)."""


@pytest.mark.large(0)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SAMPLE else [pytest.mark.full]) for name in COMPILED]
)
def test_compiled_cells_agree_with_one_engine(name: str) -> None:
    catalog = catalog_of(COMPILED[name])
    check(plan_cells(catalog, 8, {}), catalog, random_versions(catalog, 1, 6))


def test_a_plan_that_puts_a_row_into_several_cells_fails_the_check() -> None:
    catalog = catalog_of(COMPILED["a triangle of one table"])
    plan = plan_cells(catalog, 8, {})
    copied = tuple(replace(role, dims=tuple(replace(d, column=None) for d in role.dims)) for role in plan.roles)
    with pytest.raises(AssertionError, match="cells have"):
        check(replace(plan, roles=copied), catalog, random_versions(catalog, 0, 4))
