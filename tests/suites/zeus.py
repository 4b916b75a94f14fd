"""DBToaster's zeus: what a generator of random queries over r(a, b), s(b, c), t(c, d) found to break it.

Output columns have other names than there, where they were random words.
"""

from __future__ import annotations

from tests.suites.simple import TABLES
from tests.suites.suite import Query, Suite

QUERIES = {
    "11564068": "SELECT 26.81 AS x1, s.b AS x2, 6 AS x3 FROM s AS s1, s, s AS s2 WHERE 66.82 > s2.b + s2.c",
    "12811747": """
        SELECT t2.c AS x1, 6 AS x2, 5 AS x3, 5 AS x4, t2.d + t2.d AS x5, 79.16 AS x6
        FROM s AS s1, t AS t1, t AS t2 WHERE t1.c = t2.d
    """,
    "36688054": """
        SELECT t.c AS x1, t.d AS x2, r.b * (81.76 * 0 * r.b) * 8 AS x3, t.d AS x4, r.b AS x5, t.d AS x6,
          2 * (t.d * 5 * r.a) * 83.08 AS x7, 0 AS x8, 5 AS x9, t.c AS x10
        FROM r, t WHERE r.a <= 7 * r.a
    """,
    "37494577": """
        SELECT s1.c * (7 * s1.b * s1.b) * (0 + s1.b + 26.04) AS x1, 57.75 * s1.c * 45.94 AS x2
        FROM s AS s1 WHERE s1.b * s1.c <> s1.c * s1.b * 25.23
    """,
    "39765730": """
        SELECT t1.c AS x1, t1.d AS x2, t.c AS x3, t.d AS x4, COUNT(*) AS n
        FROM s, t AS t1, t
        WHERE (t1.d = t.c OR (t.c <> 5 AND t.d * (s.c - 56.44) < (0 - s.b) * 3 AND NOT 0 <= t1.d) OR 2 = s.b * t1.d)
          AND t.d <> t.c + t.c + 7
        GROUP BY t1.c, t1.d, t.c, t.d
    """,
    "48183500": """
        SELECT r1.a AS x1, r1.b AS x2, s.b AS x3, s.c AS x4, s1.b AS x5, s1.c AS x6, s.c / 68.12 AS x7, 3 AS x8,
          87.0 AS x9, 45.75 * 4 * 97.76 * s.c AS x10
        FROM r AS r1, s, s AS s1
        WHERE (5 + (r1.a - s.c) + 7 + r1.a + 8 = s.b OR 0 < ((s1.b - 8) - s1.b / NULLIF(r1.b, 0)) * -7)
          AND NOT s1.c = r1.b
    """,
    "52548748": """
        SELECT r1.a AS x1, r1.b AS x2, r.a AS x3, t.c AS x4, t.d AS x5, 9 AS x6, r1.a * r.b * r.a AS x7,
          r1.a * 94.75 * r1.a AS x8
        FROM r AS r1, r, t
        WHERE (((6 >= r1.a OR t.d >= r1.a) AND r1.a > t.d AND (r.b = t.d AND r.a + 0 + r.b <= 3.15 AND r1.a = r.a))
          OR 9 + t.d > t.d) AND 3 = r1.b
    """,
    "59977251": "SELECT 0 AS x1, t.c AS x2, t.c * t.c * 12.82 AS x3 FROM t WHERE NOT (NOT t.c = t.c)",
    "75453299": "SELECT s1.b AS x1, (s1.b + 2) - s1.b AS x2, 85.06 AS x3 FROM s AS s1 WHERE NOT s1.c >= s1.b",
    "89938332": """
        SELECT 8 * 2 AS x1, t.d * (7 - 54.59) * (t1.d * (44.14 * 4) * 0) AS x2 FROM t, t AS t1 WHERE 0 = t.c
    """,
    "94384934": "SELECT t.d AS x1, 39.61 AS x2 FROM r, t, t AS t1 WHERE t1.d * 0 = r.b",
    "95497049": """
        SELECT * FROM t AS t1
        WHERE (t1.d <> t1.c - t1.d * (t1.c / NULLIF(t1.d, 0)) * ((6 - 78.8) * t1.c)
          OR ((0 >= t1.d AND t1.c >= t1.d AND 8 > t1.c) AND t1.d = 0 AND 6 > t1.c * (t1.d + t1.d))
          OR (((t1.c * ((t1.c * 0) * 0) * t1.d > t1.c AND ((8 - t1.d * t1.d * (1 * t1.c)) = 59.03 OR 1 <> 0)
                AND NOT 88.3 = t1.c) OR 9 < t1.d - t1.d OR 10.72 = 2)
              AND t1.c = t1.c - t1.c AND (0 + t1.c) * 7 * t1.d * 22.93 * 6 >= 3 + t1.c + t1.d))
          AND t1.c = t1.d
          AND NOT (NOT (t1.d > t1.c AND 5 > 0) AND 6 <= 2 AND (56.94 >= t1.c OR 5 = t1.c) AND t1.d = t1.d)
    """,
    "96434723": """
        SELECT s2.b AS x1, s2.c AS x2, s2.b + s1.b * s1.c AS x3, s2.c * s2.b * (1 * s2.b) AS x4, s1.c AS x5
        FROM s AS s1, s AS s2 WHERE NOT 2 = s2.c AND 0 = s2.b
    """,
}

SUITE = Suite(TABLES, {name: Query(text) for name, text in QUERIES.items()})
