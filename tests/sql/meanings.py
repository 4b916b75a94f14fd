"""Recorded answers of Spark and DuckDB to queries where they differ or might: freshviews follows Spark.

``SAME`` has the queries with equal answers, ``DIFFERENT`` the others; ``ERROR`` is an error of any wording.
The answers of Spark were asked of Spark 4 with ANSI mode, and tests/spark/test_meanings.py asks it again.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

ERROR = "an error"
Answer = list[tuple[Any, ...]] | str

TABLES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "r": ("a INT, b INT", [(7, 2), (-7, 2), (1, None), (None, 3)]),
    "s": ("b INT, c INT", [(2, 5), (None, 6)]),
    "e": ("k INT, v INT", []),
    "z": ("a INT, b INT", [(1, 0)]),
    "g": ("k BIGINT", [(2**63 - 1,), (1,)]),
    "i": ("k INT", [(2**31 - 1,)]),
    "y": ("y DECIMAL(6, 2)", [(Decimal("0.50"),), (Decimal("1.00"),), (Decimal("-1.25"),)]),
    "x": (
        "w STRING, d DOUBLE",
        [("abc", 2.5), ("ABC", -2.5), ("abc ", 1e20), (None, -0.0), ("b", 0.0), ("c", float("nan"))],
    ),
    "n": ("w STRING", [("1",), ("01",), (" 2",)]),
    "d": ("d DATE", [(dt.date(2024, 1, 28),)]),
    "twice": ("g INT, x INT", [(2, 1), (2, 1)]),
    "places": ("x INT, w STRING", [(0, "abc"), (1, "def"), (1, None)]),
    "m": ("k INT, x INT, y INT", [(1, None, 5), (1, 3, 4)]),
}


@dataclass(frozen=True)
class Question:
    """A query, the answers of both, and DuckDB's spelling of the query if it differs."""

    query: str
    spark: Answer
    duckdb: Answer
    spelled: str = ""

    @property
    def in_duckdb(self) -> str:
        return self.spelled or self.query


def _both(query: str, answer: Answer, spelled: str = "") -> Question:
    return Question(query, answer, answer, spelled)


SAME: dict[str, Question] = {
    "/ of integers is a DOUBLE": _both("SELECT a / b AS q FROM r", [(3.5,), (-3.5,), (None,), (None,)]),
    "DIV rounds towards zero": _both(
        "SELECT a DIV b AS q FROM r", [(3,), (-3,), (None,), (None,)], "SELECT a // b AS q FROM r"
    ),
    "% has the sign of the dividend": _both("SELECT a % b AS q FROM r", [(1,), (-1,), (None,), (None,)]),
    "% by zero": _both("SELECT a % b AS q FROM z", ERROR),
    "DIV by zero": _both("SELECT a DIV b AS q FROM z", ERROR, "SELECT a // b AS q FROM z"),
    "CASE guards a division": _both("SELECT CASE WHEN b <> 0 THEN a / b END AS q FROM z", [(None,)]),
    "INT + INT overflows": _both("SELECT k + 1 AS q FROM i", ERROR),
    "INT * INT overflows": _both("SELECT k * k AS q FROM i", ERROR),
    "BIGINT + INT overflows": _both("SELECT k + 1 AS q FROM g WHERE k > 1", ERROR),
    "a CAST that does not fit": _both("SELECT CAST(k AS TINYINT) AS q FROM i", ERROR),
    "a CAST of a text that is not a number": _both("SELECT CAST(w AS INT) AS q FROM x", ERROR),
    "a string beside a number is a number": _both("SELECT w FROM n WHERE w = 1", [("1",), ("01",)]),
    "a string that is not a number beside a number": _both("SELECT w FROM x WHERE w = 1", ERROR),
    "a string as a BIGINT": _both("SELECT CAST(w AS BIGINT) AS q FROM n", [(1,), (1,), (2,)]),
    "NOT IN with a NULL on the right": _both("SELECT a FROM r WHERE a NOT IN (SELECT b FROM s)", []),
    "NOT IN of nothing": _both(
        "SELECT a FROM r WHERE a NOT IN (SELECT k FROM e)", [(7,), (-7,), (1,), (None,)]
    ),
    "strings are compared by their bytes": _both("SELECT w FROM x WHERE w < 'a'", [("ABC",)]),
    "blanks at the end count": _both("SELECT w FROM x WHERE w = 'abc'", [("abc",)]),
    "NaN is the greatest number": _both("SELECT w FROM x WHERE d > 1E300", [("c",)]),
    "aggregates of no rows": _both("SELECT COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM e", [(0, None, None)]),
    "groups of no rows": _both("SELECT k, COUNT(*) AS n FROM e GROUP BY k", []),
    "HAVING without GROUP BY": _both("SELECT COUNT(*) AS n FROM e HAVING COUNT(*) = 0", [(0,)]),
    "the empty grouping set alone": _both("SELECT COUNT(*) AS n FROM e GROUP BY GROUPING SETS (())", [(0,)]),
    "COUNT of a subquery without rows is 0, SUM is NULL": _both(
        "SELECT a, (SELECT COUNT(*) FROM s WHERE s.b = r.b) AS n, (SELECT SUM(c) FROM s WHERE s.b = r.b) AS t FROM r",
        [(7, 1, 5), (-7, 1, 5), (1, 0, None), (None, 0, None)],
    ),
    "a scalar subquery of two rows": _both("SELECT a, (SELECT c FROM s) AS n FROM r", ERROR),
    "SUM of decimals": _both("SELECT SUM(y) AS q FROM y", [(Decimal("0.25"),)]),
    "a product of decimals has the digits of both": _both(
        "SELECT y * y AS q FROM y", [(Decimal("0.2500"),), (Decimal("1.0000"),), (Decimal("1.5625"),)]
    ),
    "greatest passes over NULL": _both("SELECT greatest(a, b) AS q FROM r", [(7,), (2,), (1,), (3,)]),
    "a sample of one row has no variance": _both(
        "SELECT stddev(a) AS s, var_pop(a) AS v, covar_samp(a, b) AS c FROM z", [(None, 0.0, None)]
    ),
    "TRY_CAST of a value that does not fit": _both(
        "SELECT TRY_CAST(w AS INT) AS a, TRY_CAST(d AS TINYINT) AS b FROM x WHERE d = 1E20", [(None, None)]
    ),
    "the constant of a grouping set": _both(
        "SELECT a, 'x' AS c, COUNT(*) AS n FROM z GROUP BY ROLLUP (a, c)",
        [(1, "x", 1), (1, None, 1), (None, None, 1)],
    ),
    "LIKE ANY": _both(
        "SELECT w FROM x WHERE w LIKE ANY ('a%', '%C')", [("abc",), ("ABC",), ("abc ",)],
        "SELECT w FROM x WHERE w LIKE 'a%' OR w LIKE '%C'",
    ),
    "regexp_extract without a match is empty": _both(
        "SELECT regexp_extract(w, '(x)', 1) AS q FROM x WHERE w = 'b'", [("",)]
    ),
    "months between the last days of months are whole": _both(
        "SELECT months_between(DATE '2024-03-31', DATE '2024-02-29') AS q FROM z", [(1.0,)],
        "SELECT CAST(1.0 AS DOUBLE) AS q FROM z",
    ),
    "|| of NULL is NULL": _both("SELECT w || 'x' AS q FROM x WHERE w IS NULL", [(None,)]),
    "UNION has one NULL": _both("SELECT b FROM s UNION SELECT b FROM r", [(2,), (3,), (None,)]),
}

DIFFERENT: dict[str, Question] = {
    "/ by zero": Question("SELECT a / b AS q FROM z", ERROR, [(float("inf"),)]),
    "SUM of BIGINTs overflows": Question("SELECT SUM(k) AS q FROM g", ERROR, [(2**63,)]),
    "a constant has no correlation": Question(
        "SELECT corr(a, k) AS q FROM (SELECT a, 1 AS k FROM r) AS s", [(None,)], [(float("nan"),)]
    ),
    "TRY_CAST of a fraction to an integer": Question("SELECT TRY_CAST('1.5' AS INT) AS q FROM z", [(None,)], [(2,)]),
    "NULL is first where the order rises": Question(
        "SELECT a FROM r ORDER BY a LIMIT 2", [(-7,), (None,)], [(-7,), (1,)]
    ),
    "grouping sets of no rows have no row": Question(
        "SELECT k, COUNT(*) AS n FROM e GROUP BY ROLLUP (k)", [], [(None, 0)]
    ),
    "AVG of decimals is a decimal of four more digits": Question(
        "SELECT AVG(y) AS q FROM y", [(Decimal("0.083333"),)], [(0.25 / 3,)]
    ),
    "a quotient of decimals is a decimal": Question(
        "SELECT y / 3 AS q FROM y WHERE y < 0", [(Decimal("-0.416667"),)], [(-1.25 / 3,)]
    ),
    "there is one zero in groups": Question(
        "SELECT CAST(d AS STRING) AS q, n FROM (SELECT d, COUNT(*) AS n FROM x WHERE d = 0 GROUP BY d) AS g",
        [("0.0", 2)],
        [("-0.0", 2)],
    ),
    "a large DOUBLE as a string": Question(
        "SELECT CAST(d AS STRING) AS q FROM x WHERE d > 3 AND w <> 'c'", [("1.0E20",)], [("1e+20",)]
    ),
    "concat of NULL is NULL": Question("SELECT concat(w, 'x') AS q FROM x WHERE w IS NULL", [(None,)], [("x",)]),
    "position 0 of substring is the first": Question(
        "SELECT substring(w, 0, 2) AS q FROM x WHERE w = 'abc'", [("ab",)], [("a",)]
    ),
    "upper of a sharp s": Question("SELECT upper('ß') AS q FROM z", [("SS",)], [("ẞ",)]),
    "the days of a week are 1 to 7": Question("SELECT dayofweek(d) AS q FROM d", [(1,)], [(0,)]),
    "ln of 0 is NULL": Question("SELECT ln(b) AS q FROM z", [(None,)], [(float("-inf"),)]),
    "MAX_BY takes a NULL": Question("SELECT MAX_BY(x, y) AS q FROM m", [(None,)], [(3,)]),
    "FULL JOIN USING shows its column first": Question(
        "SELECT * FROM r FULL JOIN s USING (b) WHERE c = 5",
        [(2, 7, 5), (2, -7, 5)],
        [(7, 2, 5), (-7, 2, 5)],
    ),
}
"""A row per difference that the random generators rewrite or avoid."""

WINDOWS: dict[str, Question] = {
    "equal rows: a number and the row after": _both(
        "SELECT g, x, ROW_NUMBER() OVER w AS n, LEAD(x) OVER w AS l FROM twice WINDOW w AS (PARTITION BY g ORDER BY x)",
        [(2, 1, 1, 1), (2, 1, 2, None)],
    ),
    "equal rows: the rows before and after": _both(
        "SELECT LAG(x, 1, 100) OVER w AS a, LEAD(x, 1, 100) OVER w AS b FROM twice WINDOW w AS (ORDER BY x)",
        [(100, 1), (1, 100)],
    ),
    "equal rows: a frame and the row after": _both(
        "SELECT SUM(x) OVER (ORDER BY x ROWS 1 PRECEDING) AS s, LEAD(x) OVER (ORDER BY x) AS l FROM twice",
        [(1, 1), (2, None)],
    ),
    "equal rows: numbers of two orders": _both(
        "SELECT ROW_NUMBER() OVER (ORDER BY x) AS n, ROW_NUMBER() OVER (ORDER BY x DESC) AS m FROM twice",
        [(1, 1), (2, 2)],
    ),
    "equal rows of a view: a number and the row after": _both(
        "SELECT n, LEAD(n) OVER (ORDER BY x, n) AS l, LAG(x) OVER (ORDER BY g, n DESC) AS m FROM "
        "(SELECT *, ROW_NUMBER() OVER (ORDER BY x) AS n FROM twice) AS q",
        [(1, 2, 1), (2, None, None)],
    ),
    "a frame in lower case": _both(
        "SELECT SUM(x) OVER (ORDER BY x rows between 1 preceding and current row) AS s FROM places", [(0,), (1,), (2,)]
    ),
    "a frame in mixed case": _both(
        "SELECT SUM(x) OVER (ORDER BY x Range Between unbounded Preceding And Current Row) AS s FROM places",
        [(0,), (2,), (2,)],
    ),
    "LAST_VALUE without NULL": _both(
        "SELECT x, LAST_VALUE(w, true) OVER (ORDER BY x, w DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
        "FOLLOWING) AS l FROM places",
        [(0, "def"), (1, "def"), (1, "def")],
        "SELECT x, LAST_VALUE(w IGNORE NULLS) OVER (ORDER BY x, w DESC NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND "
        "UNBOUNDED FOLLOWING) AS l FROM places",
    ),
    "FIRST_VALUE without NULL is NULL up to the first value": _both(
        "SELECT x, FIRST_VALUE(w) IGNORE NULLS OVER (ORDER BY x DESC, w) AS l FROM places",
        [(0, "def"), (1, "def"), (1, None)],
        "SELECT x, FIRST_VALUE(w IGNORE NULLS) OVER (ORDER BY x DESC, w NULLS FIRST) AS l FROM places",
    ),
    "NTH_VALUE without NULL": _both(
        "SELECT NTH_VALUE(w, 2, true) OVER (ORDER BY x DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) "
        "AS l FROM places",
        [("abc",), ("abc",), ("abc",)],
        "SELECT NTH_VALUE(w, 2 IGNORE NULLS) OVER (ORDER BY x DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
        "FOLLOWING) AS l FROM places",
    ),
    "ANY_VALUE of an order is its first": Question(
        "SELECT x, ANY_VALUE(w) OVER (ORDER BY x DESC, w) AS l FROM places",
        [(0, None), (1, None), (1, None)],
        [(0, "def"), (1, "def"), (1, "def")],
        "SELECT x, ANY_VALUE(w) OVER (ORDER BY x DESC, w NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
        "FOLLOWING) AS l FROM places",
    ),
    "LAG by 0 rows is the row": _both(
        "SELECT x, LAG(w, 0, 'z') OVER (ORDER BY x) AS l FROM places", [(0, "abc"), (1, "def"), (1, None)]
    ),
    "LAG by -1 rows is LEAD": _both(
        "SELECT x, LAG(w, -1, 'z') OVER (ORDER BY x, w) AS l FROM places",
        [(0, None), (1, "def"), (1, "z")],
        "SELECT x, LAG(w, -1, 'z') OVER (ORDER BY x, w NULLS FIRST) AS l FROM places",
    ),
    "equal rows: a frame, the row before and a number that QUALIFY compares": _both(
        "SELECT n, s, l FROM (SELECT ROW_NUMBER() OVER (ORDER BY x) AS n, SUM(x) OVER (ORDER BY x ROWS 1 PRECEDING) AS "
        "s, LAG(x) OVER (ORDER BY x) AS l FROM twice) AS q WHERE n <= 1",
        [(1, 1, None)],
    ),
    "a window named by another name": _both(
        "SELECT x, SUM(x) OVER v AS s FROM places WINDOW v AS w, w AS (ORDER BY x)",
        [(0, 0), (1, 2), (1, 2)],
        "SELECT x, SUM(x) OVER (ORDER BY x) AS s FROM places",
    ),
    "a window function of a window function": _both(
        "SELECT x, SUM(RANK() OVER (ORDER BY x)) OVER () AS s FROM places",
        [(0, 5), (1, 5), (1, 5)],
        "SELECT x, SUM(n) OVER () AS s FROM (SELECT x, RANK() OVER (ORDER BY x) AS n FROM places) AS q",
    ),
    "a window function ordered by a window function": _both(
        "SELECT x, LAG(SUM(ROW_NUMBER() OVER (ORDER BY x)) OVER (ORDER BY x)) OVER (ORDER BY x, w) AS s FROM places",
        [(0, None), (1, 1), (1, 6)],
        "SELECT x, LAG(s) OVER (ORDER BY x, w NULLS FIRST) AS s FROM (SELECT x, w, SUM(n) OVER (ORDER BY x) AS s FROM "
        "(SELECT x, w, ROW_NUMBER() OVER (ORDER BY x) AS n FROM places) AS q) AS q",
    ),
    "GROUPING in a window": _both(
        "SELECT x, RANK() OVER (PARTITION BY GROUPING(x) ORDER BY x DESC) AS n, SUM(COUNT(*)) OVER (PARTITION BY "
        "GROUPING(x)) AS m FROM places GROUP BY ROLLUP(x)",
        [(0, 2, 3), (1, 1, 3), (None, 1, 3)],
    ),
    "GROUP BY ALL excludes window functions of aggregates": _both(
        "SELECT x, RANK() OVER (ORDER BY COUNT(*)) AS n FROM places GROUP BY ALL",
        [(0, 1), (1, 2)],
        "SELECT x, RANK() OVER (ORDER BY COUNT(*)) AS n FROM places GROUP BY x",
    ),
    "a window function of groups in GROUP BY": Question(
        "SELECT x, RANK() OVER (ORDER BY x) AS n FROM places GROUP BY x, 2", ERROR, ERROR
    ),
    "a comma before ORDER BY": Question(
        "SELECT x, SUM(x) OVER (PARTITION BY x, ORDER BY w) AS n FROM places", ERROR, [(0, 0), (1, 1), (1, 2)]
    ),
    "a frame of RANK": Question(
        "SELECT x, RANK() OVER (ORDER BY x ROWS 1 PRECEDING) AS n FROM places", ERROR, [(0, 1), (1, 2), (1, 2)]
    ),
}
"""Window functions whose answer the order of rows and NULL determine."""

GROUPS: dict[str, Question] = {
    "ORDER BY of a column of the list beside a group of this name": Question(
        "SELECT -MAX(x) AS x, COUNT(*) AS n FROM places GROUP BY places.x + 1 ORDER BY 1 + x LIMIT 1",
        [(-1, 2)],
        ERROR,
    ),
    "NOT of a grouped condition": _both("SELECT NOT (x IS NULL) AS y FROM places GROUP BY x IS NULL", [(True,)]),
    "NOT of a grouped comparison with the opposite sign": Question(
        "SELECT NOT (x > 0) AS y, COUNT(*) AS n FROM places GROUP BY x <= 0",
        [(False, 2), (True, 1)], ERROR,
    ),
    "<> over a grouped =": Question(
        "SELECT x <> 0 AS y, COUNT(*) AS n FROM places GROUP BY x = 0",
        [(False, 1), (True, 2)], ERROR,
    ),
    "NOT LIKE over a grouped LIKE": Question(
        "SELECT w NOT LIKE 'a%' AS y, COUNT(*) AS n FROM places GROUP BY w LIKE 'a%'",
        [(False, 1), (None, 1), (True, 1)], ERROR,
    ),
    "a grouped sum in another order": Question(
        "SELECT 1 + x AS y, COUNT(*) AS n FROM places GROUP BY x + 1",
        [(1, 1), (2, 2)], ERROR,
    ),
    "a part of an expression in another order": Question(
        "SELECT 2 * (1 + x) AS y, COUNT(*) AS n FROM places GROUP BY x + 1",
        [(2, 1), (4, 2)], ERROR,
    ),
    "a grouped chain in another order": Question(
        "SELECT 1 + x + 2 AS y FROM places GROUP BY x + (2 + 1)",
        [(3,), (4,)], ERROR,
    ),
    "a part of a grouped chain": _both("SELECT x + 2 + 1 AS y FROM places GROUP BY x + 1", ERROR),
    "a grouped difference as a sum": _both("SELECT x - 1 AS y FROM places GROUP BY -1 + x", ERROR),
    "a grouped comparison with swapped sides": Question(
        "SELECT 0 < x AS y, 0 <= x AS z FROM places GROUP BY x > 0, x >= 0",
        [(False, True), (True, True)], ERROR,
    ),
    "a grouped <=> with swapped sides": Question(
        "SELECT NOT (0 <=> x) AS y FROM places GROUP BY x <=> 0",
        [(False,), (True,)], ERROR,
        "SELECT 0 IS DISTINCT FROM x AS y FROM places GROUP BY x IS NOT DISTINCT FROM 0",
    ),
    "a grouped AND in another order": Question(
        "SELECT x > 0 AND w > 'a' AS y FROM places GROUP BY 'a' < w AND x > 0",
        [(False,), (None,), (True,)], ERROR,
    ),
    "grouped bits in another order": Question(
        "SELECT x & 1 AS y, x | 1 AS z FROM places GROUP BY 1 & x, 1 | x",
        [(0, 1), (1, 1)], ERROR,
    ),
    "a grouped greatest in another order": Question(
        "SELECT greatest(x, 1) AS y FROM places GROUP BY greatest(1, x)",
        [(1,)], ERROR,
    ),
    "a grouped coalesce in another order": _both(
        "SELECT coalesce(x, 1) AS y FROM places GROUP BY coalesce(1, x)",
        ERROR,
    ),
    "a grouped IN in another order": Question(
        "SELECT x IN (1, 2) AS y, x NOT IN (2, 1) AS z FROM places GROUP BY x IN (2, 1)",
        [(False, True), (True, False)], ERROR,
    ),
    "HAVING and ORDER BY of a group in another order": Question(
        "SELECT x + 1 AS y FROM places GROUP BY x + 1 HAVING 1 + x > 1 ORDER BY 1 + x",
        [(2,)], ERROR,
    ),
    "HAVING of a group by number in another order": Question(
        "SELECT x + 1 AS y FROM places GROUP BY 1 HAVING 1 + x > 1",
        [(2,)], ERROR,
    ),
    "a window function of a group in another order": Question(
        "SELECT x + 1 AS y, RANK() OVER (ORDER BY 1 + x) AS n FROM places GROUP BY x + 1",
        [(1, 1), (2, 2)], ERROR,
    ),
    "a group of ROLLUP in another order": Question(
        "SELECT 1 & x AS y, COUNT(*) AS n FROM places GROUP BY ROLLUP (x & 1)",
        [(0, 1), (1, 2), (None, 3)], ERROR,
    ),
    "<> over a group of ROLLUP": Question(
        "SELECT x <> 0 AS y, COUNT(*) AS n FROM places GROUP BY ROLLUP (x = 0)",
        [(False, 1), (None, 3), (True, 2)], ERROR,
    ),
    "GROUP BY ALL": _both("SELECT x, COUNT(*) AS n FROM places GROUP BY ALL", [(0, 1), (1, 2)]),
    "GROUP BY ALL without aggregates": _both("SELECT * FROM places GROUP BY ALL", [(0, 'abc'), (1, 'def'), (1, None)]),
    "GROUP BY ALL of aggregates alone": _both(
        "SELECT SUM(x) AS n FROM places GROUP BY ALL",
        [(2,)],
        "SELECT SUM(x) AS n FROM places",
    ),
    "GROUP BY ALL of a column beside an aggregate": _both("SELECT x + SUM(x) AS n FROM places GROUP BY ALL", ERROR),
    "GROUP BY ALL and a column": _both("SELECT x, COUNT(*) AS n FROM places GROUP BY ALL, x", ERROR),
    "GROUP BY ALL and HAVING": _both("SELECT x, COUNT(*) AS n FROM places GROUP BY ALL HAVING 0 < x", [(1, 2)]),
    "an array beside a number": _both("SELECT x = array(1) AS y FROM places", ERROR),
    "an array in IN": _both("SELECT x IN (array(1)) AS y FROM places", ERROR),
}
"""Groups that are written in another form than in GROUP BY, GROUP BY ALL, and arrays."""

CONSTANTS: dict[str, Question] = {
    "HAVING casts to BOOLEAN": _both("SELECT x FROM places GROUP BY x HAVING 5", [(0,), (1,)]),
    "HAVING casts a column to BOOLEAN": _both("SELECT x FROM places GROUP BY x HAVING x", [(1,)]),
    "HAVING casts a text to BOOLEAN": _both("SELECT x FROM places GROUP BY x HAVING 'no'", []),
    "HAVING does not cast a DATE": _both("SELECT x FROM places GROUP BY x HAVING DATE '2024-01-01'", ERROR),
    "WHERE casts nothing to BOOLEAN": Question("SELECT x FROM places WHERE x", ERROR, [(1,), (1,)]),
    "LIMIT of a constant expression": _both("SELECT x FROM places ORDER BY x LIMIT 2 + 1 OFFSET 1 + 1", [(1,)]),
    "LIMIT of a function": _both("SELECT x FROM places ORDER BY x LIMIT length('ab')", [(0,), (1,)]),
    "LIMIT of a BIGINT": _both("SELECT x FROM places ORDER BY x LIMIT 2L", ERROR),
    "LIMIT below 0": _both("SELECT x FROM places ORDER BY x LIMIT 1 - 2", ERROR),
    "LIMIT of a column": _both("SELECT x FROM places ORDER BY x LIMIT x", ERROR),
    "LIMIT ALL": _both("SELECT x FROM places ORDER BY x LIMIT ALL", [(0,), (1,), (1,)]),
    "a column of NULL": _both("SELECT NULL AS z, x FROM places", [(None, 0), (None, 1), (None, 1)]),
    "distinct NULLs": _both("SELECT DISTINCT NULL AS z FROM places", [(None,)]),
    "CASE of NULL alone": _both(
        "SELECT CASE WHEN x > 0 THEN NULL END AS z, COUNT(*) AS n FROM places GROUP BY 1",
        [(None, 3)],
    ),
    "NULL in UNION ALL with a type": _both(
        "SELECT NULL AS z FROM places UNION ALL SELECT w FROM places",
        [('abc',), ('def',), (None,), (None,), (None,), (None,)],
    ),
    "NULL in UNION without a type": _both("SELECT NULL AS z FROM places UNION SELECT NULL FROM places", [(None,)]),
    "a subquery with a column of NULL in UNION ALL": _both(
        "SELECT z FROM (SELECT DISTINCT NULL AS z FROM places) AS q UNION ALL SELECT w FROM places",
        [('abc',), ('def',), (None,), (None,)],
    ),
    "the sum of a column of NULL": _both(
        "SELECT z + 1 AS w FROM (SELECT NULL AS z, x FROM places GROUP BY x) AS q",
        [(None,), (None,)],
    ),
    "NULL in VALUES": _both("SELECT * FROM VALUES (NULL), (NULL) AS q(a)", [(None,), (None,)]),
    "NULL in IN": _both(
        "SELECT x IN (1, NULL) AS y, NULL IN (1, 2) AS z FROM places",
        [(None, None), (True, None), (True, None)],
    ),
    "COALESCE of NULL and a value": _both(
        "SELECT coalesce(NULL, x) AS y, coalesce(NULL, NULL) AS z FROM places",
        [(0, None), (1, None), (1, None)],
    ),
    "the first rows of NULL": _both("SELECT NULL AS z, x FROM places ORDER BY z, x LIMIT 1", [(None, 0)]),
    "LAG of NULL": _both("SELECT LAG(NULL) OVER (ORDER BY x) AS z FROM places", [(None,), (None,), (None,)]),
    "an outer join with a column of NULL": _both(
        "SELECT a.x, z FROM places AS a LEFT JOIN (SELECT NULL AS z, COUNT(*) AS n FROM places) AS b ON a.x = b.n",
        [(0, None), (1, None), (1, None)],
    ),
    "a frame without BETWEEN": _both(
        "SELECT SUM(x) OVER (ORDER BY x ROWS 1 PRECEDING AND CURRENT ROW) AS s FROM places",
        ERROR,
    ),
    "a frame without its second bound": _both(
        "SELECT SUM(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING) AS s FROM places",
        ERROR,
    ),
    "a window without AS": _both("SELECT SUM(x) OVER w AS s FROM places WINDOW w (PARTITION BY x)", ERROR),
    "SIMILAR TO": Question("SELECT x FROM places WHERE w SIMILAR TO '(a|b)%'", ERROR, []),
    "too many arguments": _both("SELECT round(1, 2, 3) AS y FROM places", ERROR),
}
"""Constants in the place of a BOOLEAN or a number, NULL without a type, and syntax errors."""

REFUSED: dict[str, Question] = {
    "an array as a value": Question("SELECT array(x) AS y FROM places", [([0],), ([1],), ([1],)], ERROR),
    "comparison of arrays": Question(
        "SELECT array(1) = array(x) AS y FROM places",
        [(False,), (True,), (True,)], ERROR,
    ),
}
"""Queries that Spark answers and freshviews refuses by name."""

QUESTIONS = SAME | DIFFERENT | WINDOWS | GROUPS | CONSTANTS


def comparable(rows: Any) -> list[str]:
    """Rows as sorted texts; types count, and NaN equals itself."""
    return sorted(repr(tuple(row)) for row in rows)
