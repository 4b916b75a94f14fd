"""Forms of Spark's SQL that become others, with the answers of Spark 4.1; tests/spark/test_forms.py asks it again."""

from __future__ import annotations

from typing import Any

TABLES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "r": ("a INT, b INT, c STRING", [(1, 10, "x"), (1, 20, "y"), (2, 30, "x"), (3, None, "z"), (None, 40, "x")]),
    "s": ("a INT, d INT", [(1, 100), (2, 200), (2, 300), (4, 400)]),
}

FORMS: dict[str, list[tuple[Any, ...]]] = {
    "FROM r |> WHERE r.a = 1": [(1, 10, "x"), (1, 20, "y")],
    "FROM r |> EXTEND b + 1 AS y |> WHERE r.a = 1": [(1, 10, "x", 11), (1, 20, "y", 21)],
    "FROM r |> SELECT a, b |> WHERE r.a = 1": [(1, 10), (1, 20)],
    "FROM r |> WHERE a = 1 |> JOIN s ON r.a = s.a |> SELECT r.a, s.d": [(1, 100), (1, 100)],
    "FROM r |> JOIN s ON r.a = s.a |> WHERE r.b > 10 |> JOIN s AS t ON t.a = r.a |> SELECT r.b, s.d, t.d AS e": [
        (20, 100, 100), (30, 200, 200), (30, 200, 300), (30, 300, 200), (30, 300, 300),
    ],
    "FROM r |> JOIN s ON r.a = s.a |> SELECT r.a, b + d AS e |> WHERE e > 150": [(2, 230), (2, 330)],
    "FROM r |> EXTEND a + 1 AS y, y + 1 AS z": [
        (1, 10, "x", 2, 3), (1, 20, "y", 2, 3), (2, 30, "x", 3, 4), (3, None, "z", 4, 5), (None, 40, "x", None, None),
    ],
    "FROM r |> SET a = a + 1, b = a": [(2, 2, "x"), (2, 2, "y"), (3, 3, "x"), (4, 4, "z"), (None, None, "x")],
    "FROM r |> SET a = a + 1, a = a + 1": [(3, 10, "x"), (3, 20, "y"), (4, 30, "x"), (5, None, "z"), (None, 40, "x")],
    "FROM r |> DROP a |> SELECT *": [(10, "x"), (20, "y"), (30, "x"), (40, "x"), (None, "z")],
    "FROM r |> AS t |> SELECT t.a": [(1,), (1,), (2,), (3,), (None,)],
    "FROM r |> AS x |> JOIN r AS y ON x.a = y.a |> SELECT x.a, y.b": [
        (1, 10), (1, 10), (1, 20), (1, 20), (2, 30), (3, None),
    ],
    "FROM r |> AGGREGATE SUM(b) AS s GROUP BY a": [(1, 30), (2, 30), (3, None), (None, 40)],
    "FROM r |> AGGREGATE SUM(b) AS s": [(100,)],
    "FROM r |> AGGREGATE SUM(b) AS s, COUNT(*) AS n GROUP BY a AS k, c": [
        (1, "x", 10, 1), (1, "y", 20, 1), (2, "x", 30, 1), (3, "z", None, 1), (None, "x", 40, 1),
    ],
    "FROM r |> AGGREGATE SUM(b) AS s GROUP BY a + 1": [(2, 30), (3, 30), (4, None), (None, 40)],
    "FROM r |> AGGREGATE GROUP BY a": [(1,), (2,), (3,), (None,)],
    "FROM r |> AGGREGATE SUM(b) AS s GROUP BY 1": [(1, 30), (2, 30), (3, None), (None, 40)],
    "FROM r |> SELECT c, a |> AGGREGATE COUNT(*) AS n GROUP BY 2, 1": [
        (1, "x", 1), (1, "y", 1), (2, "x", 1), (3, "z", 1), (None, "x", 1),
    ],
    "FROM r |> JOIN s USING (a) |> AGGREGATE COUNT(*) AS n GROUP BY 4": [(100, 2), (200, 1), (300, 1)],
    "FROM r |> JOIN s ON r.a = s.a |> AGGREGATE SUM(b) AS t GROUP BY 4 |> AGGREGATE COUNT(*) AS n GROUP BY 2": [
        (30, 1), (60, 1),
    ],
    "FROM r |> AGGREGATE SUM(b) AS s GROUP BY a |> WHERE s > 10 |> AGGREGATE COUNT(*) AS n": [(3,)],
    "FROM r |> SELECT a, SUM(b) OVER (PARTITION BY a) AS x": [(1, 30), (1, 30), (2, 30), (3, None), (None, 40)],
    "FROM r |> SELECT a, SUM(b) OVER w AS x WINDOW w AS (PARTITION BY a)": [
        (1, 30), (1, 30), (2, 30), (3, None), (None, 40),
    ],
    "FROM r |> EXTEND SUM(b) OVER (PARTITION BY a) AS x |> WHERE x > 20": [
        (1, 10, "x", 30), (1, 20, "y", 30), (2, 30, "x", 30), (None, 40, "x", 40),
    ],
    "FROM r |> ORDER BY a, b |> LIMIT 2": [(1, 10, "x"), (None, 40, "x")],
    "FROM r |> ORDER BY b DESC |> LIMIT 2 |> SELECT a": [(2,), (None,)],
    "FROM r |> ORDER BY a, b |> LIMIT 3 OFFSET 1": [(1, 10, "x"), (1, 20, "y"), (2, 30, "x")],
    "FROM r |> ORDER BY a, b |> OFFSET 2 |> LIMIT 1": [(1, 20, "y")],
    "FROM r |> ORDER BY a, b |> LIMIT 3 |> OFFSET 1": [(1, 10, "x"), (1, 20, "y")],
    "FROM r |> SELECT a |> UNION ALL SELECT a FROM s": [(1,), (1,), (1,), (2,), (2,), (2,), (3,), (4,), (None,)],
    "FROM r |> SELECT a |> UNION ALL (SELECT a FROM s) |> WHERE a = 1": [(1,), (1,), (1,)],
    "FROM r |> SELECT a |> UNION DISTINCT (SELECT a FROM s) |> EXCEPT SELECT 1": [(2,), (3,), (4,), (None,)],
    "FROM r |> SELECT a |> INTERSECT SELECT a FROM s": [(1,), (2,)],
    "FROM r |> SELECT a, b |> WHERE a = 1 |> SELECT r.*": [(1, 10), (1, 20)],
    "FROM r |> DROP c |> ORDER BY b |> LIMIT 2 |> SELECT r.*": [(1, 10), (3, None)],
    "FROM r |> SELECT a |> UNION ALL SELECT 7 |> INTERSECT SELECT 7": [(7,)],
    "FROM r |> SELECT a |> EXCEPT SELECT 7 |> INTERSECT SELECT 1": [(1,)],
    "FROM r |> PIVOT (SUM(b) FOR c IN ('x', 'y' AS why))": [
        (1, 10, 20), (2, 30, None), (3, None, None), (None, 40, None),
    ],
    "FROM s |> UNPIVOT (v FOR n IN (a, d)) |> WHERE v > 3": [("a", 4), ("d", 100), ("d", 200), ("d", 300), ("d", 400)],
    "SELECT a FROM r UNION ALL SELECT a FROM s |> WHERE a = 1": [(1,), (1,), (1,)],
    "(SELECT a FROM r ORDER BY a LIMIT 2) |> WHERE a = 1": [(1,)],
    "SELECT a FROM r |> WHERE a = 1 ORDER BY a": [(1,), (1,)],
    "VALUES (1), (2) |> SELECT col1 + 1 AS x": [(2,), (3,)],
    "TABLE r |> SELECT a": [(1,), (1,), (2,), (3,), (None,)],
    "WITH q AS (FROM r |> WHERE a = 1) FROM q |> SELECT a": [(1,), (1,)],
    "SELECT * FROM (FROM r |> WHERE a = 1)": [(1, 10, "x"), (1, 20, "y")],
    "SELECT a, EXISTS (FROM s |> WHERE s.a = r.a) AS e FROM r": [
        (1, True), (1, True), (2, True), (3, False), (None, False),
    ],
    "FROM r |> SELECT DISTINCT a": [(1,), (2,), (3,), (None,)],
    "FROM r, s |> WHERE r.a = s.a |> SELECT r.a, d": [(1, 100), (1, 100), (2, 200), (2, 300)],
    "FROM r |> LEFT JOIN s USING (a) |> DROP d": [
        (1, 10, "x"), (1, 20, "y"), (2, 30, "x"), (2, 30, "x"), (3, None, "z"), (None, 40, "x"),
    ],
    "FROM r |> LEFT SEMI JOIN s USING (a) |> WHERE b > 10": [(1, 20, "y"), (2, 30, "x")],
    "FROM r |> CROSS JOIN s |> AGGREGATE COUNT(*) AS n": [(20,)],
    "FROM r |> JOIN LATERAL (SELECT s.d FROM s WHERE s.a = r.a) AS q |> SELECT a, d": [
        (1, 100), (1, 100), (2, 200), (2, 300),
    ],
    "FROM r SELECT a |> WHERE a = 1": [(1,), (1,)],
    "FROM r SELECT a, b WHERE b > 10": [(1, 20), (2, 30), (None, 40)],
    "SELECT * FROM r PIVOT (SUM(b) FOR c IN ('x', 'y'))": [
        (1, 10, 20), (2, 30, None), (3, None, None), (None, 40, None),
    ],
    "SELECT * FROM r PIVOT (SUM(b) AS t, COUNT(*) AS n FOR c IN ('x', 'y' AS w))": [
        (1, 10, 1, 20, 1), (2, 30, 1, None, None), (3, None, None, None, None), (None, 40, 1, None, None),
    ],
    "SELECT * FROM r PIVOT (COUNT(*) FOR c IN ('x', 'y'))": [
        (1, 10, 1, None), (1, 20, None, 1), (2, 30, 1, None), (3, None, None, None), (None, 40, 1, None),
    ],
    "SELECT * FROM r PIVOT (COUNT(b) AS n, MAX(b) AS m FOR (a, c) IN ((1, 'x') AS one, (2, 'x')))": [(1, 10, 1, 30)],
    "SELECT * FROM r PIVOT (SUM(b) FOR a IN (1, NULL, 3))": [
        ("x", 10, 40, None), ("y", 20, None, None), ("z", None, None, None),
    ],
    "SELECT * FROM r PIVOT (SUM(b) + COUNT(*) FOR c IN ('x'))": [(1, 11), (2, 31), (3, None), (None, 41)],
    "SELECT * FROM (SELECT b, c FROM r) PIVOT (SUM(b) FOR c IN ('x', 'q'))": [(80, None)],
    "SELECT * FROM (SELECT b, c FROM r WHERE FALSE) PIVOT (SUM(b) FOR c IN ('x', 'q'))": [(None, None)],
    "SELECT r.a, x FROM r PIVOT (SUM(b) FOR c IN ('x'))": [(1, 10), (2, 30), (3, None), (None, 40)],
    "SELECT p.x, s.d FROM (SELECT * FROM r PIVOT (SUM(b) FOR c IN ('x'))) AS p JOIN s ON p.a = s.a": [
        (10, 100), (30, 200), (30, 300),
    ],
    "SELECT * FROM r JOIN s USING (a) PIVOT (SUM(d) FOR c IN ('x', 'y'))": [
        (1, 10, 100, None), (1, 20, None, 100), (2, 30, 500, None),
    ],
    "SELECT * FROM r PIVOT (SUM(DISTINCT b) FOR c IN ('x'))": [(1, 10), (2, 30), (3, None), (None, 40)],
    "SELECT * FROM r PIVOT (SUM(b) FILTER (WHERE b > 10) FOR c IN ('x'))": [(1, None), (2, 30), (3, None), (None, 40)],
    "SELECT * FROM r PIVOT (MIN(b) FOR c IN ('x', 'z')) WHERE x > 10": [(2, 30, None), (None, 40, None)],
    "SELECT * FROM s UNPIVOT (v FOR n IN (a, d))": [
        ("a", 1), ("a", 2), ("a", 2), ("a", 4), ("d", 100), ("d", 200), ("d", 300), ("d", 400),
    ],
    "SELECT * FROM r UNPIVOT (v FOR n IN (a, b))": [
        ("x", "a", 1), ("x", "a", 2), ("x", "b", 10), ("x", "b", 30), ("x", "b", 40), ("y", "a", 1), ("y", "b", 20),
        ("z", "a", 3),
    ],
    "SELECT * FROM r UNPIVOT EXCLUDE NULLS (v FOR n IN (a AS first, b)) AS u": [
        ("x", "b", 10), ("x", "b", 30), ("x", "b", 40), ("x", "first", 1), ("x", "first", 2), ("y", "b", 20),
        ("y", "first", 1), ("z", "first", 3),
    ],
    "SELECT u.v FROM r UNPIVOT INCLUDE NULLS (v FOR n IN (a, b)) AS u": [
        (1,), (1,), (10,), (2,), (20,), (3,), (30,), (40,), (None,), (None,),
    ],
    "SELECT * FROM r UNPIVOT ((v, w) FOR n IN ((a, b), (b, a) AS ba))": [
        ("x", "a_b", 1, 10), ("x", "a_b", 2, 30), ("x", "a_b", None, 40), ("x", "ba", 10, 1), ("x", "ba", 30, 2),
        ("x", "ba", 40, None), ("y", "a_b", 1, 20), ("y", "ba", 20, 1), ("z", "a_b", 3, None), ("z", "ba", None, 3),
    ],
    "SELECT * FROM r UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((a, b), (b, a) AS ba))": [
        ("x", "a_b", 1, 10), ("x", "a_b", 2, 30), ("x", "a_b", None, 40), ("x", "ba", 10, 1), ("x", "ba", 30, 2),
        ("x", "ba", 40, None), ("y", "a_b", 1, 20), ("y", "ba", 20, 1), ("z", "a_b", 3, None), ("z", "ba", None, 3),
    ],
    "SELECT r.c, SUM(v) AS t FROM r UNPIVOT (v FOR n IN (a, b)) GROUP BY r.c": [("x", 83), ("y", 21), ("z", 3)],
    "SELECT * FROM r UNPIVOT (v FOR n IN (r.a, r.b))": [
        ("x", "a", 1), ("x", "a", 2), ("x", "b", 10), ("x", "b", 30), ("x", "b", 40), ("y", "a", 1), ("y", "b", 20),
        ("z", "a", 3),
    ],
    "FROM r": [(1, 10, "x"), (1, 20, "y"), (2, 30, "x"), (3, None, "z"), (None, 40, "x")],
    "TABLE r": [(1, 10, "x"), (1, 20, "y"), (2, 30, "x"), (3, None, "z"), (None, 40, "x")],
    "(TABLE r) UNION ALL TABLE r": [
        (1, 10, "x"), (1, 10, "x"), (1, 20, "y"), (1, 20, "y"), (2, 30, "x"), (2, 30, "x"), (3, None, "z"),
        (3, None, "z"), (None, 40, "x"), (None, 40, "x"),
    ],
    "SELECT * FROM s ORDER BY d OFFSET 2": [(2, 300), (4, 400)],
    "SELECT a FROM s EXCEPT (SELECT a FROM r ORDER BY a OFFSET 3)": [(1,), (4,)],
    "SELECT q.* FROM r, LATERAL (SELECT r.*) AS q": [
        (1, 10, "x"), (1, 20, "y"), (2, 30, "x"), (3, None, "z"), (None, 40, "x"),
    ],
    "SELECT q.* FROM r, LATERAL (SELECT r.*, s.d FROM s WHERE s.a = r.a) AS q": [
        (1, 10, "x", 100), (1, 20, "y", 100), (2, 30, "x", 200), (2, 30, "x", 300),
    ],
    "SELECT a, (WITH q AS (SELECT d FROM s WHERE s.a = r.a) SELECT SUM(d) FROM q) AS t FROM r": [
        (1, 100), (1, 100), (2, 500), (3, None), (None, None),
    ],
    "SELECT a, EXISTS (WITH q AS (SELECT d FROM s WHERE s.a = r.a) SELECT 1 FROM q) AS t FROM r": [
        (1, True), (1, True), (2, True), (3, False), (None, False),
    ],
    (
        "SELECT a, (WITH q AS (SELECT COUNT(*) AS n FROM s WHERE s.a = r.a) SELECT x.n + y.n FROM "
        "q AS x, q AS y) AS t FROM r"
    ): [
        (1, 2), (1, 2), (2, 4), (3, 0), (None, 0),
    ],
    (
        "SELECT r.a, z.n FROM r, LATERAL (WITH q AS (SELECT COUNT(*) AS n FROM s WHERE s.a = r.a) "
        "SELECT n FROM q) AS z"
    ): [
        (1, 1), (1, 1), (2, 2), (3, 0), (None, 0),
    ],
    "SELECT * EXCEPT (a, b, c), SUM(b) AS x FROM r GROUP BY ALL": [(100,)],
    "SELECT r.* EXCEPT (b), SUM(b) AS x FROM r GROUP BY ALL": [
        (1, "x", 10), (1, "y", 20), (2, "x", 30), (3, "z", None), (None, "x", 40),
    ],
    "SELECT a, b FROM r ORDER BY ALL LIMIT 3": [(1, 10), (1, 20), (None, 40)],
    "SELECT t.x, z FROM r AS t(x, y, z) WHERE y > 10": [(1, "y"), (2, "x"), (None, "x")],
    "SELECT * FROM range(5)": [(0,), (1,), (2,), (3,), (4,)],
    "SELECT * FROM range(1, 10, 3)": [(1,), (4,), (7,)],
    "SELECT x FROM range(0, 5) AS t(x)": [(0,), (1,), (2,), (3,), (4,)],
    "SELECT r.a, id FROM r JOIN range(3) ON r.a = id": [(1, 1), (1, 1), (2, 2)],
    "SELECT * FROM range(5, 0, -2)": [(1,), (3,), (5,)],
    "SELECT * FROM range(-2, 2)": [(-1,), (-2,), (0,), (1,)],
    "SELECT * FROM range(3, 0)": [],
    "SELECT * FROM range(3), range(2) AS u(v)": [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)],
    "SELECT 'a' 'b' \"c\" || r'\\d' AS x": [("abc\\d",)],
    "SELECT 'it''s' 'a' \"b\"\"c\" r'd''e' AS x": [("it'sab\"cde",)],
    "SELECT c RLIKE r'^[xy]\\z' AS t FROM r": [(False,), (True,), (True,), (True,), (True,)],
    "SELECT (a, b) > (1, 10) AS p, (a, b) >= (1, 10) AS q, (a, b) <= (1, 10) AS t, (a, b) < (a, 20) AS u FROM r": [
        (False, False, True, False), (False, True, True, True), (True, True, False, False),
        (True, True, False, False), (True, True, False, True),
    ],
    "SELECT (a, c) < (2, 'y') AS p, (a, b, c) >= (1, 20, 'x') AS q FROM r": [
        (False, True), (True, False), (True, False), (True, True), (True, True),
    ],
    "SELECT (a, b) BETWEEN (1, 10) AND (2, 20) AS p FROM r": [(False,), (False,), (False,), (True,), (True,)],
    "SELECT (a, b) <=> (1, 10) AS p, (a, b) IS DISTINCT FROM (1, 10) AS q FROM r": [
        (False, True), (False, True), (False, True), (False, True), (True, False),
    ],
    "SELECT a FROM r WHERE (a, b) > (1, 10) AND (c, a) <= ('x', 2)": [(2,)],
    "SELECT r.a, s.d FROM r JOIN s ON (r.a, r.b) < (s.a, s.d)": [
        (1, 100), (1, 100), (1, 200), (1, 200), (1, 300), (1, 300), (1, 400), (1, 400), (2, 200), (2, 300), (2, 400),
        (3, 400), (None, 100), (None, 200), (None, 300), (None, 400),
    ],
}
