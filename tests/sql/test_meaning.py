"""The blocks of a query, evaluated by nested loops over random rows, have the rows of DuckDB."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from freshviews.types.dictionary import Dictionary
from freshviews.types.values import decode_value, encoder_for
from tests.plan.oracle import Relation, evaluate_view
from tests.sql.printed import catalog, views

pytestmark = pytest.mark.compiled(12)

TABLES = """
CREATE TABLE r (a INT, b INT, c BIGINT, d DATE, t BOOLEAN, x DOUBLE, s STRING, p DECIMAL(12, 2));
CREATE TABLE q (a INT, b INT NOT NULL, e STRING, w DECIMAL(8, 3));
CREATE TABLE k (a BIGINT PRIMARY KEY, name STRING NOT NULL);
"""

QUERIES = [
    # joins
    "SELECT r.a, q.b AS qb FROM r JOIN q ON r.a = q.a",
    "SELECT r.a, q.e, k.name FROM r, q, k WHERE r.a = q.a AND q.b = k.a",
    "SELECT * FROM q JOIN k USING (a)",
    "SELECT * FROM q NATURAL JOIN k",
    "SELECT r.b, q.e FROM r CROSS JOIN q WHERE r.b > 2",
    "SELECT x.b, y.b AS yb FROM q x JOIN q y ON x.a = y.b AND x.b < y.b",
    "SELECT r.a, q.b AS qb FROM r JOIN q ON r.a IS NOT DISTINCT FROM q.a",
    "SELECT r.a, q.b AS qb FROM r JOIN q ON r.a IS NOT DISTINCT FROM q.a AND q.a = r.b",
    "SELECT r.c FROM r JOIN q ON r.a = q.a AND r.b = q.a",
    "SELECT r.c FROM r JOIN q ON r.a + 1 = q.b * 2",
    "SELECT r.c FROM r JOIN q ON r.p = q.w",
    "SELECT r.c FROM r JOIN q ON r.x = q.b",
    "SELECT r.c, q.e FROM r JOIN q ON r.a = q.a WHERE r.b + q.b > 4 OR r.b IS NULL",
    "SELECT r.c FROM r, q WHERE (r.a = q.a AND r.b > 2) OR (r.a = q.a AND q.b > 3)",
    "SELECT r.s, q.e FROM r, q WHERE r.s < q.e",
    "SELECT count(*) AS n FROM q x, q y, q z WHERE x.a = y.b AND y.a = z.b AND z.a = x.b",
    # subqueries, unions
    "SELECT z.a, z.y + 1 AS y1 FROM (SELECT a, b * 2 AS y FROM r WHERE b > 1) AS z WHERE z.a < 4",
    "SELECT m.a, n, q.b FROM (SELECT a, count(*) AS n FROM r GROUP BY a) AS m JOIN q ON m.a = q.a",
    "WITH g AS (SELECT a, sum(b) AS sb FROM r GROUP BY a) SELECT x.sb, y.sb AS o FROM g x JOIN g y ON x.a = y.a",
    "WITH f AS (SELECT a, b FROM r WHERE b > 1) SELECT x.a, y.b FROM f x JOIN f y ON x.a = y.b",
    "SELECT a FROM r UNION ALL SELECT b FROM q UNION ALL SELECT a FROM q",
    "SELECT a FROM r UNION SELECT b FROM q",
    "SELECT a, b FROM r UNION ALL SELECT w, a FROM q",
    "SELECT DISTINCT a, b FROM r",
    "SELECT DISTINCT r.a + q.b AS z FROM r JOIN q ON r.a = q.a",
    "SELECT DISTINCT n FROM (SELECT a, count(*) AS n FROM r GROUP BY a) AS z",
    "SELECT DISTINCT count(*) AS n FROM r GROUP BY a",
    # sums of terms of several tables
    "SELECT r.a, sum(r.b - q.b) AS x, sum(-(q.w + r.a) - r.p + q.a) AS y FROM r JOIN q ON r.a = q.a GROUP BY r.a",
    "SELECT sum(r.b - q.b - k.a) AS x, avg(r.b - q.b) AS y FROM r, q, k",
    "SELECT sum(CASE WHEN r.b > 2 THEN r.c END - q.b * r.a) AS x FROM r LEFT JOIN q ON r.a = q.a",
    # rows selected by a running sum
    "SELECT sum(x.b * x.a) AS n FROM r AS x WHERE 0.5 * (SELECT sum(b) FROM r) > (SELECT sum(y.b) FROM r AS y"
    " WHERE y.a > x.a)",
    "SELECT x.a, x.b FROM r AS x WHERE (SELECT sum(y.b) FROM r AS y WHERE y.a <= x.a) <= 0.75 * (SELECT sum(b) FROM r)",
    "SELECT x.a, x.b FROM r AS x WHERE (SELECT count(*) FROM q WHERE q.b > x.b) * -2 >= -3",
    "SELECT x.a, x.b, q.b AS qb FROM r AS x JOIN q ON x.a = q.a WHERE"
    " (SELECT coalesce(sum(-y.b), 0) FROM r AS y WHERE y.a = q.a AND y.p < x.p) >"
    " (SELECT min(a) FROM k WHERE a = x.a) - 3",
    "SELECT x.c FROM r AS x WHERE (SELECT sum(y.p) FROM r AS y WHERE y.x >= x.x) > 1.5 AND"
    " x.b * 10 > (SELECT avg(b) FROM q)",
    "SELECT x.c FROM r AS x WHERE (SELECT sum(y.b) FROM r AS y JOIN q ON y.a = q.a WHERE y.s < x.s) < 100",
    "SELECT x.c FROM r AS x WHERE (SELECT sum(y.x) FROM r AS y WHERE y.b < x.b) < 3",
    # subqueries in WHERE
    "SELECT a, b FROM r WHERE a IN (SELECT a FROM q)",
    "SELECT a, b FROM r WHERE b > 1 AND a + 1 IN (SELECT q.b FROM q WHERE q.a > 1) AND (s = 'ab' OR t)",
    "SELECT a, c FROM r WHERE c IN (SELECT b FROM q GROUP BY b HAVING count(*) > 2)",
    "SELECT a FROM r WHERE a IN (SELECT a FROM q UNION SELECT a FROM k)",
    "SELECT a FROM r WHERE a IN (SELECT q.b FROM q WHERE q.a = r.b)",
    "SELECT a, b FROM r WHERE a > 0 AND a NOT IN (SELECT b FROM q WHERE q.a = 3)",
    "SELECT a, b FROM r WHERE a + 1 IS NOT NULL AND NOT (a + 1 IN (SELECT b FROM q WHERE q.a = r.b AND e LIKE 'a%'))",
    "SELECT c FROM r WHERE c IS NOT NULL AND c NOT IN (SELECT b FROM q GROUP BY b HAVING count(*) > 2)",
    "SELECT name FROM k WHERE a NOT IN (SELECT a FROM q WHERE a IS NOT NULL UNION SELECT b FROM q WHERE b > 2)",
    "SELECT b FROM q WHERE b NOT IN (SELECT a FROM k WHERE name > 'z') AND b NOT IN (SELECT b FROM q WHERE a > 4)",
    "SELECT a FROM r WHERE a IN (SELECT 3 FROM q)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT * FROM q WHERE q.a = r.a AND e = s)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.a = r.a AND r.b > 2 AND q.b > 1)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.a IS NOT DISTINCT FROM r.a)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM q WHERE b > 4)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM q WHERE b > 400)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT a FROM q GROUP BY a HAVING count(*) > 3)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM q JOIN k ON q.b = k.a WHERE q.a = r.a AND name = 'x')",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.a = r.a AND b IN (SELECT a FROM k WHERE k.a = r.b))",
    "SELECT a, b FROM r WHERE b > (SELECT avg(b) FROM q)",
    "SELECT a, b FROM r WHERE b > (SELECT max(b) FROM q WHERE b > 400)",
    "SELECT a, b FROM r WHERE (SELECT max(b) FROM q WHERE b > 400) IS NULL AND a > 1",
    "SELECT a, b FROM r WHERE b >= 1 + (SELECT count(*) FROM q WHERE e = 'ax')",
    "SELECT a, b FROM r WHERE b >= (SELECT 0.5 * sum(q.b) FROM q WHERE q.a = r.a)",
    "SELECT r.a, r.b FROM r, k WHERE r.a = k.a AND r.b = (SELECT min(b) FROM q WHERE a = k.a AND e LIKE 'a%')",
    "SELECT a, b FROM r WHERE b BETWEEN (SELECT min(b) FROM q WHERE q.a = r.a) AND (SELECT max(b) FROM q)",
    "SELECT a, b FROM r WHERE b >= (SELECT max(b) FROM q WHERE r.t)",
    "SELECT a, b FROM r WHERE b >= (SELECT coalesce(max(b), 3) FROM q WHERE b > 400)",
    "SELECT a, b FROM r WHERE b >= (SELECT max(b) - min(b) FROM q WHERE q.a = r.a)",
    "SELECT a FROM (SELECT a, b AS ambiguous FROM r) AS z WHERE EXISTS (SELECT 1 FROM q WHERE q.a = ambiguous)",
    "SELECT a, b FROM r WHERE b > (SELECT sum(b) FROM q HAVING count(*) > 1000)",
    "SELECT z.a, count(*) AS n FROM (SELECT a, b FROM r WHERE a IN (SELECT a FROM k)) AS z GROUP BY z.a",
    "SELECT * FROM q WHERE a IN (SELECT a FROM r)",
    "WITH g AS (SELECT a, sum(b) AS n FROM q GROUP BY a) SELECT r.a, n FROM r JOIN g ON r.a = g.a "
    "WHERE n = (SELECT max(n) FROM g)",
    # grouping
    "SELECT a, count(*) AS n, count(b) AS nb, sum(b) AS sb, min(b) AS mi, max(c) AS ma FROM r GROUP BY a",
    "SELECT a % 3 AS g, sum(b) AS sb FROM r GROUP BY 1",
    "SELECT year(d) AS y, count(*) AS n FROM r GROUP BY y HAVING count(*) > 1",
    "SELECT upper(s) AS u, sum(p) AS sp FROM r GROUP BY upper(s)",
    "SELECT s || 'x' AS u, max(s) AS ms, min(d) AS md FROM r GROUP BY s",
    "SELECT r.a + q.b AS g, count(*) AS n FROM r JOIN q ON r.a = q.a GROUP BY r.a + q.b",
    "SELECT count(*) AS n, sum(b) AS sb FROM r WHERE a > 100",
    "SELECT max(a) AS m FROM r HAVING count(*) > 1000",
    "SELECT a, a + 1 AS a1 FROM r GROUP BY a",
    "SELECT a, max(a) AS m, count(DISTINCT a) AS n FROM r GROUP BY a",
    # grouping sets
    "SELECT a, b, count(*) AS n, sum(p) AS sp, min(s) AS m, count(DISTINCT a) AS d FROM r GROUP BY ROLLUP (a, b)",
    "SELECT a, b, t, count(c) AS n, grouping(a) AS ga, grouping_id(t, a, b) AS g FROM r GROUP BY CUBE (a, b, t)",
    "SELECT a, b, count(*) AS n FROM r GROUP BY GROUPING SETS ((a), b, (b, a), (), (b), ROLLUP (b, a), CUBE (a))",
    "SELECT a, b, t, count(*) AS n FROM r GROUP BY a, ROLLUP (b), GROUPING SETS ((t), (b, t))",
    "SELECT a, b, t, count(*) AS n FROM r GROUP BY ROLLUP ((a, b), t)",
    "SELECT a % 3 AS g, a % 3 + 1 AS h, upper(s) AS u, count(*) AS n FROM r GROUP BY ROLLUP (g, upper(s))",
    "SELECT b, t, sum(c) AS sc FROM r GROUP BY ROLLUP (2, 1)",
    "SELECT a + 1 AS k, a, count(*) AS n FROM r GROUP BY ROLLUP (a + 1, a)",
    "SELECT b, coalesce(b, -1) AS c, b IS NULL AS i, coalesce(coalesce(a, 0), -1) AS k FROM q "
    "GROUP BY CUBE (b, coalesce(a, 0))",
    "SELECT b, count(*) AS n FROM q GROUP BY ROLLUP (b) HAVING b IS NULL OR count(*) > 5",
    "SELECT a, sum(b) AS sb FROM r GROUP BY CUBE (a, b) HAVING grouping(a) + grouping(b) = 1",
    "SELECT r.a, q.a AS o, q.e, count(*) AS n FROM r JOIN q ON r.a = q.a GROUP BY ROLLUP (r.a, q.a, q.e)",
    "SELECT x, y, k, count(*) AS n FROM (SELECT a AS x, a AS y, 1 AS k FROM r) AS z GROUP BY CUBE (x, y, k)",
    "SELECT x, x + 1 AS x1, k FROM (SELECT a AS x, a + 1 AS k FROM r) AS z GROUP BY ROLLUP (x, k)",
    "SELECT r.a + q.b AS g, count(*) AS n, max(r.c) AS m FROM r JOIN q ON r.a = q.a GROUP BY ROLLUP (r.a + q.b, r.t)",
    "SELECT a, sum(b) FILTER (WHERE a > 2) AS z, avg(x) AS ax FROM r GROUP BY ROLLUP (a)",
    "SELECT a > 1 AS i, b IS NULL AND t AS j, count(*) AS n FROM r GROUP BY CUBE (a > 1, b IS NULL AND t)",
    "SELECT DISTINCT count(*) AS n FROM r GROUP BY CUBE (a, b)",
    "SELECT a, count(*) AS n FROM r GROUP BY ROLLUP (a) EXCEPT SELECT a, 1 FROM q",
    "SELECT m.a, n, q.b FROM (SELECT a, count(*) AS n FROM r GROUP BY ROLLUP (a)) AS m JOIN q ON m.a = q.a",
    "SELECT a, b FROM r WHERE b IN (SELECT a FROM q GROUP BY ROLLUP (a))",
    "SELECT count(*) AS n FROM r WHERE a > 100 GROUP BY GROUPING SETS (())",
    "SELECT a, c AS z, * EXCEPT (a, c, d, t, x, s, p) FROM r GROUP BY ROLLUP (a, c, b)",
    # aggregates over several tables
    "SELECT sum(r.b * q.b) AS z FROM r JOIN q ON r.a = q.a",
    "SELECT r.a, sum(r.p * q.w * 2) AS z, count(r.p * q.w) AS n FROM r JOIN q ON r.a = q.a GROUP BY r.a",
    "SELECT sum(-r.b * q.a) AS z FROM r JOIN q ON r.a = q.a",
    "SELECT sum(r.b + q.b) AS z, min(r.b + q.b) AS m FROM r JOIN q ON r.a = q.a",
    "SELECT r.a, sum(CASE WHEN q.e LIKE 'a%' THEN r.p ELSE 0 END) AS z FROM r JOIN q ON r.a = q.a GROUP BY r.a",
    "SELECT sum(CASE WHEN q.e LIKE 'a%' THEN r.p END) AS z FROM r JOIN q ON r.a = q.a",
    "SELECT sum(CASE WHEN q.e = 'ab' AND r.t THEN 0 ELSE r.p * q.b END) AS z FROM r JOIN q ON r.a = q.a",
    "SELECT r.b, avg(CASE WHEN q.e LIKE 'a%' THEN r.x ELSE 0 END) AS z FROM r JOIN q ON r.a = q.a GROUP BY r.b",
    "SELECT count(CASE WHEN q.b > 2 THEN r.b ELSE r.a END) AS n FROM r JOIN q ON r.a = q.a",
    "SELECT sum(r.x * q.b) AS z FROM r JOIN q ON r.a = q.a",
    "SELECT r.t, sum(r.b) FILTER (WHERE q.b > 2) AS z, count(*) FILTER (WHERE r.b > q.b) AS n FROM r "
    "JOIN q ON r.a = q.a GROUP BY r.t",
    "SELECT count(DISTINCT r.s) AS n, count(DISTINCT r.s || q.e) AS m FROM r JOIN q ON r.a = q.a",
    "SELECT r.a, sum(DISTINCT r.b) AS z, count(DISTINCT q.b) AS n FROM r JOIN q ON r.a = q.a GROUP BY r.a",
    "SELECT avg(x) AS ax, avg(b) AS ab, sum(x) AS sx FROM r",
    "SELECT a, bool_or(t) AS o, bool_and(t) AS n, count_if(b > 2) AS c FROM r GROUP BY a",
    # scalars and NULL
    "SELECT a, coalesce(b, 0) AS b0, nullif(a, 2) AS n2, if(t, a, b) AS i FROM r",
    "SELECT CASE WHEN b > 3 THEN 'hi' WHEN b > 1 THEN s ELSE 'lo' END AS z FROM r",
    "SELECT a FROM r WHERE b IN (1, 3, 5) OR s IN ('ab', 'b')",
    "SELECT a FROM r WHERE b NOT IN (1, 3)",
    "SELECT a FROM r WHERE NOT (b BETWEEN 2 AND 4) AND s IS NOT NULL",
    "SELECT a FROM r WHERE t AND b > 1 OR NOT t",
    "SELECT a FROM r WHERE s LIKE '%b' OR s LIKE 'a_'",
    "SELECT a, s NOT ILIKE 'A%' AS z FROM r WHERE s NOT LIKE '%b' OR a > 1 AND NOT s NOT LIKE 'a!_' ESCAPE '!'",
    "SELECT a FROM r WHERE s NOT LIKE 'a!_%' ESCAPE '!' AND s NOT ILIKE 'b'",
    "SELECT d + INTERVAL 1 MONTH > DATE '2026-03-01' AS z, datediff('day', DATE '2026-01-01', d) AS n FROM r",
    "SELECT a FROM r WHERE d >= DATE '2026-04-01' - INTERVAL '60' DAY",
    "SELECT p * 2 AS p2, p + b AS pb, -p AS np, abs(p) AS ap FROM r",
    "SELECT a / 2 AS h, p > 2.5 AS z, p = b AS pb, x > b AS xb, x < p AS xp FROM r",
    "SELECT substring(s, 1, 1) AS s1, length(s) AS l, s || '-' || name AS c FROM r JOIN k ON r.a = k.a",
    "SELECT greatest(a, b) AS g, least(a, c) AS l FROM r WHERE a IS NOT NULL",
    "SELECT a + 1 AS y, y * 2 AS z FROM r",
]


@pytest.fixture(scope="module")
def database() -> tuple[duckdb.DuckDBPyConnection, dict[str, Relation], Dictionary]:
    random.seed(7)
    known = catalog(TABLES)
    rows: dict[str, list[tuple[Any, ...]]] = {
        "r": [
            (
                _maybe(random.randrange(6)),
                _maybe(random.randrange(6)),
                _maybe(random.randrange(-3, 10**6)),
                _maybe(dt.date(2025 + random.randrange(2), random.randrange(1, 13), random.randrange(1, 29))),
                _maybe(random.random() < 0.5),
                _maybe(random.randrange(20) / 4),
                _maybe(random.choice(["ab", "b", "Ba", "", "aab"])),
                _maybe(Decimal(random.randrange(-500, 500)) / 100),
            )
            for _ in range(40)
        ],
        "q": [
            (
                _maybe(random.randrange(6)),
                random.randrange(6),
                _maybe(random.choice(["ab", "b", "ax"])),
                _maybe(Decimal(random.randrange(9000)) / 1000),
            )
            for _ in range(25)
        ],
        "k": [(i, random.choice("xyz")) for i in range(4)],
    }
    duck = duckdb.connect()
    duck.execute("SET threads = 1")
    duck.execute(TABLES)
    dictionary = Dictionary()
    relations = {}
    for name, found in rows.items():
        columns = known.tables[name].columns
        relations[name] = Relation(tuple(c.name for c in columns))
        duck.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", found)
        for row in found:
            codes = (encoder_for(c.type, True, dictionary)(v) for c, v in zip(columns, row, strict=True))
            relations[name].add(tuple(codes), 1)
    return duck, relations, dictionary


@pytest.mark.parametrize("sql", QUERIES)
def test_the_blocks_of_a_view_return_the_same_rows_as_duckdb(
    database: tuple[duckdb.DuckDBPyConnection, dict[str, Relation], Dictionary], sql: str
) -> None:
    duck, relations, dictionary = database
    known = dict(relations)
    found = views(sql.replace("datediff('day', DATE '2026-01-01', d)", "datediff(d, '2026-01-01')"), catalog(TABLES))
    for one in found:
        rows = evaluate_view(one, known, dictionary)
        known[one.name] = Relation(tuple(c.name for c in one.columns), rows)
    types = [column.type for column in found[-1].columns]
    ours = Counter[tuple[Any, ...]]()
    for codes, times in known["v"].rows.items():
        values = (decode_value(t, code, dictionary) for t, code in zip(types, codes, strict=True))
        ours[tuple(map(_plain, values))] += times
    theirs = Counter(tuple(map(_plain, row)) for row in duck.execute(sql).fetchall())
    assert ours == theirs
    for column, at in zip(found[-1].columns, range(len(types)), strict=True):
        assert column.nullable or all(row[at] is not None for row in ours), column


def _maybe(value: Any) -> Any:
    return None if random.random() < 0.15 else value


def _plain(value: Any) -> Any:
    """Values in a form common to both engines: numbers have nine digits, without their type."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal)):
        return f"{float(value):.9g}"
    return value
