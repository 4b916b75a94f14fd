"""Queries as printed blocks: predicates placed, variables named, sums as products of lifts."""

# ruff: noqa: E501
from __future__ import annotations

import pytest

from freshviews.catalog.definitions import ViewDef
from freshviews.sql import ViewDefs, parse_script
from tests.sql.printed import catalog, printed, view, views

PRINTED = [
    (
        "the example of the front page",
        """SELECT e, SUM(r.b) AS b, COUNT(*) AS n FROM r JOIN s USING (a) WHERE d >= DATE '2026-01-01' GROUP BY e""",
        """v: e STRING, b BIGINT, n BIGINT NOT NULL
  groups v(e) = r(a | ge(d, 20454) & is_not_null(a)) s(a, e | is_not_null(a)); n_b:integer r[is_not_null(b)]; sum_b:integer r[coalesce(b, 0)]
  sum_b = sum(sum_b, n_b) BIGINT
  count = count(count) BIGINT
  -> e, b=sum_b, n=count""",
    ),
    (
        "in a self join, columns of the same name get their alias as a prefix, joined columns do not",
        "SELECT x.a, x.b, y.b AS yb FROM r x JOIN r y ON x.a = y.a AND x.c <=> y.c",
        """v: a INT NOT NULL, b INT, yb INT
  bag v(a, x_b, y_b) = x:r(a, x_b=b, c | is_not_null(a)) y:r(a, y_b=b, c | is_not_null(a))
  -> a, b=x_b, yb=y_b""",
    ),
    (
        "the first rows of a table are ordered by ORDER BY, then by all columns of the list",
        "SELECT a, -b AS b FROM r ORDER BY b DESC, c + 1 NULLS LAST, 2 LIMIT 3 OFFSET 1",
        """v: a INT, b INT
  bag v(neg_b, add_c, a) = r(a, neg_b=check_range(neg_int(b), -2147483648, 2147483647), add_c=add_int(c, 1))
  -> a, b=neg_b
  order by neg_b desc, add_c nulls last, a limit 3 offset 1""",
    ),
    (
        "the first rows of a join, of groups or of a subquery are in an internal view",
        "SELECT t.e FROM (SELECT e, SUM(r.b) AS b FROM r JOIN s USING (a) GROUP BY e ORDER BY COUNT(*) LIMIT 3) AS t",
        """v#1: e STRING, b BIGINT, order_1 BIGINT NOT NULL
  groups v#1(e) = r(a | is_not_null(a)) s(a, e | is_not_null(a)); n_b:integer r[is_not_null(b)]; sum_b:integer r[coalesce(b, 0)]
  sum_b = sum(sum_b, n_b) BIGINT
  count = count(count) BIGINT
  -> e, b=sum_b, order_1=count
v#2: e STRING, b BIGINT
  bag v#2(order_1, e, b) = v:v#1(e, b, order_1)
  -> e, b
  order by order_1, e, b limit 3 offset 0
v: e STRING
  bag v(e) = t:v#2(e)
  -> e""",
    ),
    (
        "equalities are transitive, filters are repeated, and two columns of one table become a filter",
        "SELECT r.a FROM r, s, k WHERE r.a = s.b AND s.b = k.id AND r.b = r.a AND k.id > 3",
        """v: a INT NOT NULL
  bag v(a) = r(a | eq(b, a) & gt(a, 3)) s(a=b | gt(b, 3)) k(a=id | gt(id, 3))
  -> a""",
    ),
    (
        "a condition over several sources is a filter of one source if equalities allow it",
        "SELECT r.b FROM r JOIN s ON r.a = s.a WHERE r.b > s.a",
        """v: b INT NOT NULL
  bag v(b) = r(a, b | gt(b, a)) s(a | is_not_null(a))
  -> b""",
    ),
    (
        "any other condition over several sources compares variables",
        "SELECT r.a FROM r JOIN s ON r.a = s.a WHERE r.b * 2 > s.b",
        """v: a INT NOT NULL
  bag v(a) = r(a, mul_b=check_range(mul_int(b, 2), -2147483648, 2147483647) | is_not_null(b) & is_not_null(a)) s(a, b | is_not_null(a)) if gt(mul_b, b)
  -> a""",
    ),
    (
        "a term of every branch of an OR becomes a term before it",
        "SELECT r.c FROM r, s WHERE (r.a = s.a AND r.b = 1) OR (r.a = s.a AND r.b = 2)",
        """v: c BIGINT
  bag v(c) = r(a, c | or(eq(b, 1), eq(b, 2)) & is_not_null(a)) s(a | is_not_null(a))
  -> c""",
    ),
    (
        "join columns of different types are cast to their common type",
        "SELECT k.name FROM r JOIN k ON r.p = k.id",
        """v: name STRING NOT NULL
  bag v(name) = r(floor_decimal_p=floor_decimal(p, 100) | eq(floor_decimal(p, 100), ceil_decimal(p, 100))) k(floor_decimal_p=id, name)
  -> name""",
    ),
    (
        "a subquery that selects, projects and joins dissolves",
        "SELECT q.z FROM (SELECT a + 1 AS z, b FROM r WHERE c > 2) AS q JOIN s ON s.b = q.b WHERE q.z < 9",
        """v: z INT NOT NULL
  bag v(z) = q:r(z=check_range(add_int(a, 1), -2147483648, 2147483647), b | gt(c, 2) & lt(check_range(add_int(a, 1), -2147483648, 2147483647), 9) & is_not_null(b)) s(b)
  -> z""",
    ),
    (
        "a subquery that groups becomes an internal view",
        "SELECT q.n FROM (SELECT a, count(*) AS n FROM r GROUP BY a) AS q JOIN s ON s.b = q.a",
        """v#1: a INT, n BIGINT NOT NULL
  groups v#1(a) = r(a)
  count = count(count) BIGINT
  -> a, n=count
v: n BIGINT NOT NULL
  bag v(n) = q:v#1(a, n | is_not_null(a)) s(a=b)
  -> n""",
    ),
    (
        "a string condition across tables needs the join as an internal view",
        "SELECT r.a, count(*) AS n FROM r JOIN s ON r.a = s.a WHERE r.s < s.e GROUP BY r.a",
        """v#1: s STRING, e STRING, a INT NOT NULL
  bag v#1(s, e, a) = r(a, s | is_not_null(a)) s(a, e | is_not_null(a))
  -> s, e, a
v: a INT NOT NULL, n BIGINT NOT NULL
  groups v(a) = v:v#1(a | lt_string(s, e))
  count = count(count) BIGINT
  -> a, n=count""",
    ),
    (
        "UNION is of the distinct rows of each SELECT",
        "SELECT a FROM r UNION SELECT b FROM s",
        """v: a INT
  groups v.1(a) = r(a)
  -> a
  groups v.2(b) = s(b)
  -> a=b
  1 UNION 2""",
    ),
    (
        "INTERSECT goes before EXCEPT; UNION ALL below a set operation is UNION",
        "(SELECT a FROM r UNION ALL SELECT b FROM s) EXCEPT SELECT a FROM s INTERSECT SELECT b FROM r",
        """v: a INT
  groups v.1(a) = r(a)
  -> a
  groups v.2(b) = s(b)
  -> a=b
  groups v.3(a) = s(a)
  -> a
  groups v.4(b) = r(b)
  -> a=b
  (1 UNION 2) EXCEPT (3 INTERSECT 4)""",
    ),
    (
        "UNION ALL above a set operation has all rows of both",
        "SELECT a FROM r UNION ALL (SELECT b FROM s EXCEPT SELECT a FROM s)",
        """v: a INT
  bag v.1(a) = r(a)
  -> a
  groups v.2(b) = s(b)
  -> a=b
  groups v.3(a) = s(a)
  -> a
  1 UNION ALL (2 EXCEPT 3)""",
    ),
    (
        "aggregates below a set operation are an internal view, whose distinct rows are read",
        "SELECT a FROM r GROUP BY a, b EXCEPT SELECT DISTINCT a FROM s",
        """v#1: a INT
  groups v#1(a, b) = r(a, b)
  -> a
v: a INT
  groups v.1(a) = v:v#1(a)
  -> a
  groups v.2(a) = s(a)
  -> a
  1 EXCEPT 2""",
    ),
    (
        "EXCEPT ALL and INTERSECT ALL count rows that are not distinct already",
        "SELECT a FROM r EXCEPT ALL (SELECT b FROM s INTERSECT ALL SELECT a FROM s GROUP BY a)",
        """v: a INT
  groups v.1(a) = r(a)
  count = count(count) BIGINT
  -> a
  groups v.2(b) = s(b)
  count = count(count) BIGINT
  -> a=b
  groups v.3(a) = s(a)
  -> a
  1 EXCEPT ALL (2 INTERSECT ALL 3)""",
    ),
    (
        "a set operation below another one reads distinct rows",
        "SELECT a FROM r INTERSECT (SELECT b FROM s INTERSECT ALL SELECT a FROM s)",
        """v: a INT
  groups v.1(a) = r(a)
  -> a
  groups v.2(b) = s(b)
  -> a=b
  groups v.3(a) = s(a)
  -> a
  1 INTERSECT (2 INTERSECT 3)""",
    ),
    (
        "a cast after a set operation may make different rows equal",
        "(SELECT c FROM r EXCEPT SELECT b FROM s) UNION SELECT x FROM r",
        """v#1: c BIGINT
  groups v#1.1(c) = r(c)
  -> c
  groups v#1.2(b) = s(b)
  -> c=b
  1 EXCEPT 2
v: c DOUBLE
  groups v.1(c) = v:v#1(c=int_to_float(c))
  -> c
  groups v.2(x) = r(x)
  -> c=x
  1 UNION 2""",
    ),
    (
        "a sum of products over two tables is a product of lifts, and so is its count",
        "SELECT sum(r.p * s.b * 2) AS z FROM r JOIN s ON r.a = s.a",
        """v: z DECIMAL(35, 2)
  global v() = r(a | is_not_null(a)) s(a | is_not_null(a)); n_p_b:integer r[is_not_null(p)]; sum_p_b:integer r[mul_int(2, coalesce(p, 0))] * s[b]
  sum_p_b = sum(sum_p_b, n_p_b) DECIMAL(35, 2)
  -> z=sum_p_b""",
    ),
    (
        "CASE WHEN c THEN v ELSE 0 END is 1 or 0 times v",
        "SELECT sum(CASE WHEN s.e LIKE 'a%' THEN k.price ELSE 0 END) AS z FROM k JOIN s ON k.id = s.b",
        """v: z DECIMAL(22, 2)
  global v() = k(id) s(id=b); sum_e_price:integer k[price] * s[is_true(like(e, 'a%'))]
  sum_e_price = sum(sum_e_price, count) DECIMAL(22, 2)
  -> z=sum_e_price""",
    ),
    (
        "a sum of a sum over two tables has one lift over variables",
        "SELECT sum(r.c + s.b) AS z FROM r JOIN s ON r.a = s.a",
        """v: z BIGINT
  global v() = r(a, c | is_not_null(a)) s(a, b | is_not_null(a)); n_c_b:integer r[is_not_null(c)]; sum_c_b:integer [coalesce(add_int(c, b), 0)]
  sum_c_b = sum(sum_c_b, n_c_b) BIGINT
  -> z=sum_c_b""",
    ),
    (
        "a comparison with a running sum selects the rows of a source",
        "SELECT sum(s.b) AS z FROM s WHERE 0.5 * (SELECT sum(b) FROM s) > (SELECT sum(t.b) FROM s AS t WHERE t.a > s.a)",
        """v#1: limit BIGINT
  global v#1() = s(); sum_b:integer s[b]
  sum_b = sum(sum_b, count) BIGINT
  -> limit=ceil_decimal(mul_int(5, sum_b), 10)
v#2: b INT NOT NULL
  bag v#2(b) = s(b, a) weights:s(a | is_not_null(a)) limits:v#1(limit); weight:integer weights[b]
  -> b
  selected before or NULL of weights( | a desc nulls first) < limit
v: z BIGINT
  global v() = s:v#2(); sum_b:integer s[b]
  sum_b = sum(sum_b, count) BIGINT
  -> z=sum_b""",
    ),
    (
        "sums of doubles are real and have one lift",
        "SELECT sum(r.x) AS z, sum(r.x * s.b) AS y FROM r JOIN s ON r.a = s.a",
        """v: z DOUBLE, y DOUBLE
  global v() = r(a, x | is_not_null(a)) s(a, b=int_to_float(b) | is_not_null(a)); n_x:integer r[is_not_null(x)]; sum_x:real r[coalesce(x, 0.0)]; sum_x_b:real [coalesce(mul_float(x, b), 0.0)]
  sum_x = sum(sum_x, n_x) DOUBLE
  sum_x_b = sum(sum_x_b, n_x) DOUBLE
  -> z=sum_x, y=sum_x_b""",
    ),
    (
        "MIN, MAX and COUNT(DISTINCT) count by their argument, NULL left out",
        "SELECT a, min(b) AS lo, count(DISTINCT b, upper(s)) AS n FROM r GROUP BY a HAVING max(a) > 1",
        """v: a INT, lo INT, n BIGINT NOT NULL
  groups v(a) = r(a)
  distinct min_b = min v.min_b(a, b) = r(a, b | is_not_null(b))
  distinct count_distinct_b_s = count v.count_distinct_b_s(a, b, upper_s) = r(a, b, upper_s=upper(s) | is_not_null(b) & is_not_null(upper(s)))
  distinct max_a = max v.max_a(a, max_argument) = r(a, max_argument=a | is_not_null(a))
  min_b = min(min_b) INT
  count_distinct_b_s = count(count_distinct_b_s) BIGINT
  max_a = max(max_a) INT
  -> a, lo=min_b, n=count_distinct_b_s
  having gt(max_a, 1)""",
    ),
    (
        "GROUP BY takes expressions, positions and aliases",
        "SELECT year(d) AS y, a % 2 AS parity, sum(b) + 1 AS z FROM r GROUP BY y, 2",
        """v: y INT, parity INT, z BIGINT
  groups v(y, parity) = r(parity=mod_int(a, 2), y=year(d)); n_b:integer r[is_not_null(b)]; sum_b:integer r[coalesce(b, 0)]
  sum_b = sum(sum_b, n_b) BIGINT
  -> y, parity, z=add_int(sum_b, 1)""",
    ),
]


@pytest.mark.parametrize(("claim", "sql", "expected"), PRINTED, ids=[claim for claim, _, _ in PRINTED])
def test_a_query_becomes_the_expected_block(claim: str, sql: str, expected: str) -> None:
    assert printed(views(sql)) == expected


SAME = [
    ("SELECT a FROM r WHERE b BETWEEN 1 AND 2", "SELECT a FROM r WHERE b >= 1 AND b <= 2"),
    (
        "SELECT r.a FROM r NATURAL JOIN (SELECT a FROM s) AS q",
        "SELECT r.a FROM r JOIN (SELECT a FROM s) AS q USING (a)",
    ),
    ("SELECT r.b FROM r, s WHERE r.a = s.a", "SELECT r.b FROM r INNER JOIN s ON s.a = r.a AND TRUE"),
    ("SELECT a, sum(b) AS z FROM r GROUP BY ALL", "SELECT a, sum(b) AS z FROM r GROUP BY r.a"),
    ("SELECT count(1) AS n FROM k", "SELECT count(*) AS n FROM k"),
    ("SELECT count(id) AS n FROM k", "SELECT count(*) AS n FROM k"),
    ("SELECT count_if(b > 1) AS n FROM r", "SELECT count(*) FILTER (WHERE b > 1) AS n FROM r"),
    ("WITH q AS (SELECT a FROM r) SELECT a FROM q", "SELECT a FROM (SELECT a FROM r) AS q"),
    ("WITH q (z) AS (SELECT a FROM r) SELECT z FROM q", "SELECT z FROM (SELECT a FROM r) AS q (z)"),
    (
        "WITH q AS (SELECT a, sum(b) AS z FROM r GROUP BY a), p AS (SELECT x.a FROM q AS x, q AS y), u AS (SELECT a "
        "FROM q) SELECT y.z FROM (WITH o AS (SELECT z FROM q) SELECT b FROM r) AS x JOIN q AS y ON x.b = y.a",
        "SELECT y.z FROM (SELECT b FROM r) AS x JOIN (SELECT a, sum(b) AS z FROM r GROUP BY a) AS y ON x.b = y.a",
    ),
    (
        "SELECT id IS NOT NULL AS x, a AS y, count(*) AS n FROM k, r GROUP BY id IS NOT NULL, y",
        "SELECT TRUE AS x, a AS y, count(*) AS n FROM k, r GROUP BY a",
    ),
    (
        "SELECT coalesce(1, a) AS one, a + 1 + NULL AS y, count(*) AS n FROM r GROUP BY one, a, a + 1",
        "SELECT 1 AS one, CAST(NULL AS INT) AS y, count(*) AS n FROM r GROUP BY a, a + 1",
    ),
    (
        "SELECT date_add(YEAR, 1, d) AS z FROM r AS q GROUP BY d",
        "SELECT date_add(YEAR, 1, q.d) AS z FROM (SELECT d, a AS year FROM r) AS q GROUP BY d",
    ),
    (
        "SELECT sum(a) AS a, b FROM r GROUP BY b ORDER BY a + b LIMIT 3",
        "SELECT sum(a) AS a, b FROM r GROUP BY b ORDER BY sum(a) + b LIMIT 3",
    ),
    ("SELECT a AS y, y + 1 AS z FROM r", "SELECT a AS y, a + 1 AS z FROM r"),
    ("SELECT a FROM r WHERE d > '2026-01-01'", "SELECT a FROM r WHERE d > DATE '2026-01-01'"),
    ("SELECT a FROM r WHERE NOT a IS NULL", "SELECT a FROM r WHERE a IS NOT NULL"),
    ("(SELECT a FROM r) UNION ALL (SELECT b FROM s)", "SELECT a FROM r UNION ALL SELECT b FROM s"),
    ("SELECT /*+ BROADCAST(r) */ a FROM r", "SELECT a FROM r"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_of_a_query_become_the_same_block(one: str, other: str) -> None:
    assert printed(views(one)) == printed(views(other))


def test_a_grouped_with_query_is_one_internal_view() -> None:
    sql = "WITH q AS (SELECT a, count(*) AS n FROM r GROUP BY a) SELECT x.n FROM q x JOIN q y ON x.a = y.n"
    assert [one.name for one in views(sql)] == ["v#1", "v"]


def test_a_view_may_read_a_view_of_the_same_script() -> None:
    first, second = parse_script(
        "CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM r GROUP BY a;"
        "CREATE MATERIALIZED VIEW w AS SELECT N FROM V WHERE n > 1",
        catalog(),
    )
    assert isinstance(first, ViewDefs)
    assert isinstance(second, ViewDefs)
    assert second.view.inputs == ("v",)
    assert printed(second.views) == "w: N BIGINT NOT NULL\n  bag w(n) = V:v(n | gt(n, 1))\n  -> N=n"


def test_a_star_lists_first_the_columns_of_the_using_clause() -> None:
    names = [
        c.name
        for c in view("SELECT * FROM s JOIN (SELECT a, e, c FROM r, (SELECT e FROM s)) AS q USING (e, a)").columns
    ]
    assert names == ["e", "a", "b", "c"]
    assert [c.name for c in view("SELECT q.*, r.b FROM r JOIN (SELECT a, e FROM s) AS q USING (a)").columns] == [
        "a",
        "e",
        "b",
    ]
    assert [c.name for c in view("SELECT * EXCEPT (b) FROM s").columns] == ["a", "e"]


def test_a_column_without_an_alias_is_named_after_its_text() -> None:
    assert [c.name for c in view("SELECT count( * ), a +\n  1 FROM r GROUP BY a").columns] == ["count( * )", "a + 1"]


def test_the_atoms_of_a_block_have_different_names() -> None:
    sql = "SELECT x.a FROM (SELECT r.a FROM r, s) AS x, (SELECT r.a FROM r, s) AS y, r, s"
    names = _atoms(view(sql))
    assert len(set(names)) == len(names) == 6


def test_a_guarded_case_branch_is_computed_after_the_join() -> None:
    sql = "SELECT CASE WHEN s.b > 0 THEN r.a / r.b ELSE 0 END AS z FROM r JOIN s ON r.a = s.a"
    (block,) = view(sql).blocks
    assert str(block.outputs[0].expr) == "case(gt_b, div_float(int_to_float(a), b), 0.0)"


def _atoms(one: ViewDef) -> list[str]:
    return [atom.name for block in one.blocks for atom in block.query.atoms]
