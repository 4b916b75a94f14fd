"""Every error points at the wrong part of a script: below, at the § sign."""

from __future__ import annotations

import pytest

from freshviews.errors import CatalogError, SqlError, UnsupportedSql
from freshviews.sql import parse_script
from freshviews.sql.text.parse import SqlText, parse
from tests.sql.printed import catalog

WRONG = [
    # names
    ("SELECT §zz FROM r", "unknown column zz"),
    ("SELECT a,\n       b + §prize\nFROM r JOIN k ON r.c = k.id", "unknown column prize; did you mean price"),
    ("SELECT §r.zz FROM r", "unknown column r.zz"),
    ("SELECT §q.a FROM r", "unknown table q in q.a; there are r"),
    ("SELECT a FROM §rr", "unknown table or view rr; did you mean r"),
    ("SELECT a\nFROM r\nJOIN §kk ON kk.id = r.c", "unknown table or view kk"),
    ("SELECT §b FROM r, s WHERE r.a = s.a", "ambiguous; write r.b or s.b"),
    ("SELECT 1 AS one FROM r x, §s x", "x is given twice in FROM"),
    ("SELECT b FROM r GROUP BY b, session_window(d, §s)", "a session takes a gap that is a constant interval"),
    ("SELECT a FROM r §JOIN s USING (zz)", "the left side of the join has no column zz"),
    ("SELECT * EXCEPT (§zz) FROM r", "unknown column zz"),
    ("SELECT a FROM §db.r", "write r; all tables are in the schema default"),
    ("SELECT a FROM r WHERE (a, b) IN (§SELECT a FROM s)", "a row of 2 values with a subquery of equally many columns"),
    ("SELECT a FROM r §QUALIFY a > 1", "QUALIFY needs a window function"),
    ("SELECT §rank() OVER (PARTITION BY a) AS x FROM r", "RANK needs an order"),
    ("SELECT rank() OVER §w AS x FROM r", "unknown window w"),
    ("SELECT §lag(a) OVER (PARTITION BY a) AS x FROM r", "LAG needs an order"),
    ("SELECT lag(a, §b) OVER (ORDER BY a) AS x FROM r", "LAG must be a number of rows, a constant"),
    ("SELECT nth_value(a, §0) OVER (ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM r",
     "NTH_VALUE must be a number of rows, 1 or more"),
    ("SELECT first_value(a, §b) OVER (ORDER BY a) AS x FROM r", "argument 2 of FIRST_VALUE must be TRUE to ignore"),
    ("SELECT lag(a, 1, 2, §3) OVER (ORDER BY a) AS x FROM r", "argument 4 of LAG must be TRUE to ignore NULL"),
    ("SELECT §rank() IGNORE NULLS OVER (ORDER BY a) AS x FROM r", "RANK(...) IGNORE NULLS is not supported; only ANY"),
    ("SELECT §ntile(4) OVER (PARTITION BY b) AS x FROM r", "NTILE needs an order"),
    ("SELECT ntile(§0) OVER (ORDER BY b) AS x FROM r", "the argument of NTILE must be a number of parts, 1 or more"),
    ("SELECT §cume_dist(a) OVER (ORDER BY b) AS x FROM r", "CUME_DIST takes no arguments"),
    ("SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN §1 PRECEDING AND 2 PRECEDING) AS x FROM r",
     "the frame ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING ends before it begins"),
    ("SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN §1 FOLLOWING AND 1 PRECEDING) AS x FROM r", "ends before it begins"),
    ("SELECT §sum(a) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) AS x FROM r", "ends before it"),
    ("SELECT §sum(a) OVER (ORDER BY b ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) AS x FROM r", "ends before it"),
    ("SELECT sum(a) OVER (ORDER BY b ROWS §b PRECEDING) AS x FROM r", "a bound of ROWS must be a constant number"),
    ("SELECT sum(a) OVER (RANGE §1 PRECEDING) AS x FROM r", "a frame of RANGE needs an order"),
    ("SELECT sum(a) OVER (ORDER BY a, b RANGE §1 PRECEDING) AS x FROM r", "needs one expression in ORDER BY"),
    ("SELECT sum(a) OVER (ORDER BY b RANGE §INTERVAL '1' DAY PRECEDING) AS x FROM r", "cannot be added to INT"),
    ("SELECT sum(a) OVER (ORDER BY d RANGE §INTERVAL '1' HOUR PRECEDING) AS x FROM r", "cannot be added to DATE"),
    ("SELECT sum(a) OVER (ORDER BY b RANGE §-1 PRECEDING) AS x FROM r", "a finite constant of 0 or more, not -1"),
    ("SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN §a PRECEDING AND CURRENT ROW) AS x FROM r",
     "must be a constant of 0 or more, not a"),
    ("SELECT §sum(a) RESPECT NULLS AS x FROM r", "SUM(...) RESPECT NULLS is not supported; only ANY_VALUE, FIRST"),
    ("SELECT sum(a) OVER v AS x FROM r WINDOW v AS w, w AS §v", "unknown window v"),
    ("SELECT sum(a) OVER (PARTITION BY b§, ORDER BY a) AS x FROM r", "something is missing after the comma"),
    ("SELECT sum(a) OVER (ORDER BY b§,) AS x FROM r", "something is missing after the comma"),
    ("SELECT sum(a) OVER (§PARTITION BY) AS x FROM r", "PARTITION BY needs an expression"),
    ("SELECT a§, FROM r", "something is missing after the comma"),
    ("SELECT a FROM r WHERE a IN (1§,)", "something is missing after the comma"),
    ("SELECT b, rank() OVER (ORDER BY b) AS x FROM r GROUP BY b, §2", "GROUP BY 2 has a window function, which is"),
    ("SELECT b, rank() OVER (ORDER BY b) AS n FROM r GROUP BY ROLLUP (b, §n)", "GROUP BY n has a window function"),
    ("SELECT b, §1 + rank() OVER (ORDER BY b) AS x FROM r GROUP BY ALL", "compute the window function in a subquery"),
    ("SELECT §lead(a, 1, 2, TRUE, 3) OVER (ORDER BY a) AS x FROM r", "LEAD takes 1 to 4 arguments"),
    ("SELECT a FROM r GROUP BY a HAVING §count(*) OVER () > 1", "a window function cannot stand in HAVING"),
    ("§SELECT a, a FROM r", "column a is given twice in view v"),
    ("SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = §r.prize)", "unknown column r.prize; there are a"),
    ("SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = §q.a)", "unknown table q in q.a; there are s, r"),
    ("SELECT price FROM k WHERE EXISTS (SELECT 1 FROM s WHERE s.a = §prize)", "prize; did you mean price"),
    ("SELECT 1 AS n FROM r, r AS q WHERE EXISTS (SELECT 1 FROM k WHERE id = §a)", "ambiguous; write r.a or q.a"),
    # WITH queries that nothing reads
    ("WITH q AS (SELECT §zz FROM r) SELECT a FROM r", "unknown column zz"),
    ("WITH q AS (SELECT a FROM r), p AS (SELECT §b FROM q) SELECT a FROM r", "unknown column b; there are a"),
    ("SELECT a FROM (WITH q AS (SELECT a FROM §rr) SELECT a FROM r) AS x", "unknown table or view rr"),
    ("WITH §q (x, y) AS (SELECT a FROM r) SELECT a FROM r", "q lists 2 columns, but its query has 1"),
    ("WITH q AS (SELECT a FROM r), §Q AS (SELECT b FROM r) SELECT a FROM q", "Q is given twice in WITH"),
    # types
    ("SELECT a FROM r WHERE §d > 3", "DATE and INT have no common type"),
    ("SELECT a FROM r WHERE §t AND b", "AND takes a BOOLEAN, not INT"),
    ("SELECT a FROM r WHERE §b", "WHERE takes a BOOLEAN, not INT"),
    ("SELECT a FROM r WHERE d > §DATE '2020-13-45'", "'2020-13-45' is not a date"),
    ("SELECT a FROM r WHERE §d > '2020-13-45'", "'2020-13-45' is not a date"),
    ("SELECT §1 / 0 AS x FROM r", "division by zero"),
    ("SELECT §2147483647 + 1 AS x FROM r", "outside -2147483648 to 2147483647"),
    ("SELECT §a + INTERVAL 3 DAYS AS x FROM r", "not to INT"),
    ("SELECT §INTERVAL 3 DAYS + a AS x FROM r", "an INTERVAL can be added only to"),
    ("SELECT §INTERVAL 3 DAYS - d AS x FROM r", "DATE cannot be subtracted from an INTERVAL"),
    ("SELECT §INTERVAL 3 DAYS + INTERVAL '1' YEAR AS x FROM r", "not both"),
    ("SELECT §INTERVAL 3 DAYS * d AS x FROM r", "only by a number, not by DATE"),
    ("SELECT §2 / INTERVAL '1' DAY AS x FROM r", "INT cannot be divided by an INTERVAL"),
    ("SELECT §INTERVAL '1' DAY < INTERVAL '1' YEAR AS x FROM r", "have no common type"),
    ("SELECT §INTERVAL '1-12' YEAR TO MONTH AS x FROM r", "MONTH must be 0 to 11"),
    ("SELECT CAST(s AS §INTERVAL MONTH TO DAY) AS x FROM r", "INTERVAL MONTH TO DAY is not a type"),
    ("SELECT §EXTRACT(YEAR FROM d - d) AS x FROM r", "accepted: DAY"),
    ("SELECT §CAST(d - d AS DOUBLE) AS x FROM r", "INTERVAL DAY cannot be cast to DOUBLE"),
    ("SELECT §median(d - d) AS x FROM r", "median takes numbers, not INTERVAL DAY"),
    ("SELECT §sum(d) AS x FROM r", "sum takes numbers, not DATE"),
    ("SELECT §cofactor(a, s) AS x FROM r", "cofactor takes numbers, not STRING; write CATEGORY(...)"),
    ("SELECT §year(a) AS x FROM r", "a DATE is needed here, not INT"),
    ("SELECT §substring(s) AS x FROM r", "substring takes 2 or 3 arguments, not 1"),
    # patterns
    ("SELECT a FROM r WHERE §s LIKE '!' ESCAPE '!'", "must stand before"),
    ("SELECT a FROM r WHERE §s RLIKE '(a'", "has a ( without its )"),
    ("SELECT §regexp_like(s, '(?=a)') AS x FROM r", "looking ahead is not supported in the regular expression"),
    # grouping
    ("SELECT §a FROM r GROUP BY b", "column a is neither in GROUP BY nor inside an aggregate"),
    ("SELECT a, a + §b AS x\nFROM r GROUP BY a", "column b is neither"),
    ("SELECT count(*) AS n FROM r HAVING §b > 1", "column b is neither"),
    ("SELECT a FROM r WHERE §sum(b) > 1", "an aggregate function cannot stand in WHERE"),
    ("SELECT a, (SELECT §sum(r.a) + count(*) FROM s) AS n FROM r GROUP BY a", "sum(r.a) in a subquery, an aggregate"),
    ("SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s HAVING §max(r.a) > 1)", "name a column of the subquery in the"),
    ("SELECT n FROM r, LATERAL (SELECT §var_pop(r.a) AS n FROM s)", "var_pop(r.a) in a subquery, an aggregate of"),
    ("SELECT sum(§sum(b)) AS x FROM r", "cannot stand in an aggregate function"),
    ("SELECT a FROM r GROUP BY §3", "the SELECT list has only columns 1 to 1"),
    ("SELECT sum(a) AS x FROM r GROUP BY §1", "is an aggregate"),
    ("SELECT upper(§DISTINCT s) AS x FROM r", "DISTINCT is accepted only in an aggregate"),
    ("SELECT count(*) AS n FROM r §GROUP BY", "GROUP BY needs columns"),
    ("SELECT a FROM r WHERE §s LIKE 'a' ESCAPE '!!'", "ESCAPE takes one character"),
    ("SELECT coalesce(1, §b) AS x, count(*) AS n FROM r", "column b is neither"),
    ("SELECT sum(b) + (§b + NULL) AS x FROM r GROUP BY a", "column b is neither"),
    ("SELECT CASE WHEN a > 1 THEN a WHEN FALSE THEN §b END AS x FROM r GROUP BY a", "column b is neither"),
    ("SELECT FALSE AND §b > a AS x, count(*) AS n FROM r GROUP BY a", "column b is neither"),
    ("SELECT count(*) AS n FROM k GROUP BY name HAVING §id IS NOT NULL", "column id is neither"),
    ("SELECT coalesce(1, a + 1, a, §b) AS x, count(*) AS n FROM r GROUP BY a + 1, a", "column b is neither"),
    ("SELECT date_add(MONTH, 1, CAST(NULL AS DATE) + §b) AS x, count(*) AS n FROM r", "column b is neither"),
    ("SELECT a, sum(b) AS n FROM r GROUP BY a ORDER BY coalesce(1, §b) LIMIT 3", "column b is neither"),
    ("SELECT a FROM r WHERE §a IN ()", "IN takes at least one value"),
    ("SELECT cast(a AS §DECIMAL(1.5)) AS x FROM r", "DECIMAL has a precision and a scale"),
    ("SELECT cast(a AS §DECIMAL(5, 2, 1)) AS x FROM r", "DECIMAL has a precision and a scale"),
    ("SELECT §0.5E AS x FROM r", "an exponent has digits"),
    ("SELECT a, §grouping(a) OVER (PARTITION BY a) AS x FROM r GROUP BY a", "GROUPING OVER is not supported"),
    ("SELECT a FROM r WHERE §user = 'x'", "function user, which depends on the session,"),
    # grouping sets
    ("SELECT a, NULL + §b AS x FROM r GROUP BY CUBE (a)", "column b is neither"),
    ("SELECT §b FROM r GROUP BY ROLLUP (a)", "column b is neither in GROUP BY nor inside an aggregate"),
    ("SELECT §* FROM s GROUP BY CUBE (a, b)", "column e is neither in GROUP BY"),
    ("SELECT §y FROM (SELECT a AS x, a AS y FROM r) AS q GROUP BY ROLLUP (x)", "is neither in GROUP BY"),
    ("SELECT a FROM r GROUP BY ROLLUP (a, §zz)", "unknown column zz"),
    ("SELECT a FROM r GROUP BY §GROUPING SETS ()", "GROUPING SETS needs sets, as in GROUPING SETS ((a), ())"),
    ("SELECT a FROM r GROUP BY ROLLUP (a), §GROUPING SETS ()", "GROUPING SETS needs sets"),
    ("SELECT a FROM r GROUP BY §ROLLUP ()", "ROLLUP needs columns or expressions"),
    ("SELECT sum(a) AS n FROM r GROUP BY CUBE (§n)", "GROUP BY n is an aggregate"),
    ("SELECT grouping(a) AS g FROM r GROUP BY a, ROLLUP (§g)", "GROUP BY g is an aggregate"),
    ("SELECT a FROM r GROUP BY GROUPING SETS ((a), (§2))", "GROUP BY 2: the SELECT list has only columns 1 to 1"),
    ("SELECT a FROM r GROUP BY a WITH §ROLLUP, b", "ROLLUP after the groups must be the only one, and last"),
    ("SELECT a FROM r GROUP BY ROLLUP (a) WITH §CUBE", "CUBE after the groups must be the only one, and last"),
    ("SELECT a FROM r GROUP BY §ALL WITH CUBE", "unknown column ALL"),
    ("SELECT a FROM r ORDER BY §ALL, a LIMIT 3", "unknown column ALL"),
    ("SELECT a FROM r ORDER BY a, §ALL LIMIT 3", "unknown column ALL"),
    (
        "SELECT a FROM r GROUP BY §CUBE (a, b, c, d, t, x, s)",
        "this GROUP BY makes 128 grouping sets; 64 are accepted, as CUBE of 6 columns makes; list those that are",
    ),
    ("SELECT a FROM r GROUP BY §ROLLUP (a, b, c, d), CUBE (a, t, x, s)", "makes 80 grouping sets; 64 are accepted"),
    ("SELECT a, grouping(§b) AS g FROM r GROUP BY ROLLUP (a)", "GROUPING takes groups of this GROUP BY (a), not b"),
    ("SELECT a, grouping_id(a, §a + 1) AS g FROM r GROUP BY ROLLUP (a)", "GROUPING_ID takes groups of this GROUP BY"),
    ("SELECT a, §grouping(a, b) AS g FROM r GROUP BY ROLLUP (a, b)", "GROUPING takes 1 argument, not 2; GROUPING_ID"),
    ("SELECT a, §grouping() AS g FROM r GROUP BY ROLLUP (a, b)", "GROUPING takes 1 argument, not 0"),
    ("SELECT a, §grouping(a) AS g FROM r GROUP BY a", "GROUPING needs grouping sets; use it with GROUP BY ROLLUP"),
    ("SELECT §grouping_id() AS g FROM r", "GROUPING_ID needs grouping sets"),
    ("SELECT a FROM r GROUP BY a HAVING §grouping(a) = 0", "GROUPING needs grouping sets"),
    ("SELECT a FROM r WHERE §grouping(a) = 0 GROUP BY ROLLUP (a)", "GROUPING cannot stand in WHERE; write"),
    ("SELECT sum(§grouping(a)) AS s FROM r GROUP BY ROLLUP (a)", "GROUPING cannot stand in an aggregate function"),
    ("SELECT a FROM r GROUP BY ROLLUP (§grouping(a))", "GROUPING cannot stand in GROUP BY"),
    ("SELECT §grouping(a) FILTER (WHERE b > 1) AS g FROM r GROUP BY ROLLUP (a)", "FILTER (WHERE ...) is accepted"),
    # sets
    ("SELECT a FROM r UNION ALL §SELECT a, b FROM r", "equally many columns, not 1 and 2"),
    ("SELECT a FROM r UNION ALL §SELECT d FROM r", "INT and DATE have no common type"),
    ("SELECT a FROM r EXCEPT ALL §SELECT d FROM r", "column 1 of EXCEPT ALL: INT and DATE have no common type"),
    ("SELECT a FROM r EXCEPT §SELECT d FROM r", "column 1 of EXCEPT: INT and DATE have no common type"),
    ("SELECT a FROM r INTERSECT §SELECT a, b FROM r", "INTERSECT takes queries with equally many columns"),
    ("SELECT a FROM r EXCEPT SELECT a FROM s ORDER BY §zz", "unknown column zz"),
    # the first rows
    # constants
    ("VALUES (1), §(2, 3)", "a row of VALUES has 2 columns, but the first one has 1"),
    ("VALUES (§a)", "a is a column, and VALUES accepts"),
    ("§VALUES (1), (DATE '2020-01-01')", "column 1 of VALUES: INT and DATE have no common type"),
    ("VALUES (§1 / 0)", "division by zero"),
    ("SELECT §a", "unknown column a"),
    ("§SELECT *", "view v has no columns"),
    ("SELECT a FROM r ORDER BY §zz LIMIT 3", "unknown column zz"),
    ("SELECT a FROM r ORDER BY a, §zz", "unknown column zz"),
    ("SELECT a FROM (SELECT a FROM r ORDER BY §zz) AS q", "unknown column zz"),
    ("SELECT DISTINCT a FROM r ORDER BY §b", "ORDER BY of SELECT DISTINCT accepts only columns"),
    ("SELECT a FROM r ORDER BY §2 LIMIT 3", "ORDER BY 2: the SELECT list has only columns 1 to 1"),
    ("SELECT a FROM r ORDER BY a LIMIT §b", "LIMIT takes a constant, a whole number from 0 to 2147483647"),
    ("SELECT a FROM r ORDER BY a LIMIT §2147483648", "LIMIT takes a constant, a whole number"),
    ("SELECT a FROM r ORDER BY a LIMIT 3 OFFSET §-1", "OFFSET takes a constant, a whole number"),
    ("SELECT DISTINCT a FROM r ORDER BY §b LIMIT 3", "ORDER BY of SELECT DISTINCT accepts only columns"),
    ("SELECT a, COUNT(*) AS n FROM r GROUP BY a ORDER BY §b LIMIT 3", "column b is neither in GROUP BY"),
    ("SELECT x.a FROM r x, s y ORDER BY §b LIMIT 3", "ambiguous; write x.b or y.b"),
    ("SELECT §median(DISTINCT a) AS x FROM r", "median of DISTINCT values"),
    ("SELECT §percentile(a, 0.5, 2) AS x FROM r", "percentile with a frequency"),
    ("SELECT a FROM r UNION SELECT a FROM s ORDER BY §b LIMIT 3", "unknown column b; there are a"),
]


@pytest.mark.parametrize(("marked", "message"), WRONG)
def test_a_wrong_query_is_refused_at_the_place_of_its_error(marked: str, message: str) -> None:
    _check("CREATE MATERIALIZED VIEW v AS\n" + marked, message, SqlError)


UNSUPPORTED = [
    ("SELECT r.a FROM r §RIGHT SEMI JOIN s ON r.a = s.a", "RIGHT SEMI JOIN"),
    ("SELECT a FROM r §LIMIT 3 UNION ALL SELECT a FROM s", "LIMIT in a SELECT of UNION, without parentheses,"),
    ("SELECT §product(a) AS x FROM r", "aggregate function product"),
    ("SELECT §array_agg(a) AS x FROM r", "collects all values of a group"),
    ("SELECT §window(d, '1 day') AS x FROM r", "GROUP BY window"),
    ("SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING EXCLUDE §TIES) AS x FROM r", "EXCLUDE in a frame"),
    ("SELECT max(a) OVER w AS x FROM r WINDOW w AS (ORDER BY b rows 1 preceding exclude §current row)",
     "EXCLUDE in a frame"),
    ("SELECT §sum(a) OVER (w ROWS 1 PRECEDING) AS x FROM r WINDOW w AS (ORDER BY a)",
     "a window that refers to another one"),
    ("SELECT §rank() OVER (ORDER BY a ROWS 1 PRECEDING) AS x FROM r", "a frame of RANK"),
    ("SELECT §lag(a) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING) AS x FROM r", "a frame of LAG"),
    ("SELECT b, §sum(sum(a)) OVER (ORDER BY rank() OVER (ORDER BY b)) AS x FROM r GROUP BY b",
     "a window function in a window function of a SELECT that groups"),
    ("SELECT §rank(0.5) WITHIN GROUP (ORDER BY a) AS x FROM r", "RANK(...) WITHIN GROUP"),
    ("SELECT §rank(0.5) WITHIN GROUP (ORDER BY a) OVER () AS x FROM r", "WITHIN GROUP ... OVER"),
    ("SELECT b, §session_window(d, '1 day') AS w FROM r", "session_window here is not supported; GROUP BY session_w"),
    ("SELECT r.a FROM r ASOF JOIN §s ON r.a = s.a", "an ASOF JOIN with 0 comparisons by <"),
    ("SELECT r.a FROM r ASOF JOIN §s ON r.a <> s.a AND r.b > s.b", "this ON of an ASOF JOIN"),
    ("SELECT r.a FROM r ASOF JOIN §s ON r.s > s.e", "an ASOF JOIN by a STRING"),
    ("SELECT a FROM r ORDER BY a §FETCH FIRST 3 PERCENT ROWS ONLY", "FETCH ... PERCENT"),
    ("SELECT §first_value(a) FILTER (WHERE a > 1) OVER (ORDER BY b) AS x FROM r", "FIRST_VALUE OVER"),
    ("SELECT sum(a) OVER (ORDER BY b GROUPS §1 PRECEDING) AS x FROM r", "the frame GROUPS BETWEEN 1 PRECEDING"),
    ("SELECT a FROM r WHERE §rank() OVER (ORDER BY b) = 1", "a window function (OVER) here"),
    ("SELECT a FROM r ORDER BY a §LIMIT 10 PERCENT", "this LIMIT"),
    ("SELECT a FROM r ORDER BY a §LIMIT 1, 2", "LIMIT of two numbers is not supported; write ORDER BY"),
    ("SELECT a FROM r ORDER BY a OFFSET 2 §LIMIT 3", "LIMIT after OFFSET is not supported; write ORDER BY ... LIMIT n"),
    ("(SELECT a FROM r) ORDER BY a OFFSET 2 §LIMIT 3", "LIMIT after OFFSET"),
    ("SELECT a FROM r LIMIT 3 §ORDER BY a", "ORDER BY after LIMIT"),
    ("SELECT a FROM r §ORDER BY a LIMIT 3 UNION SELECT a FROM s", "ORDER BY in a SELECT of UNION, without parenth"),
    ("SELECT a FROM r UNION SELECT a FROM s §ORDER BY a LIMIT 2 EXCEPT SELECT a FROM r", "put that SELECT in parenth"),
    ("SELECT a FROM r §GROUP BY a WITH TOTALS", "WITH TOTALS is not supported; write GROUP BY"),
    ("SELECT a FROM r §GROUP BY DISTINCT ROLLUP (a)", "GROUP BY DISTINCT is not supported; leave DISTINCT out"),
    ("SELECT a FROM r GROUP BY §(a, b), ROLLUP (a)", "a row of values here"),
    ("SELECT r.a FROM r §RIGHT JOIN LATERAL (SELECT 1) q ON TRUE", "RIGHT JOIN LATERAL"),
    ("SELECT a FROM r §LATERAL VIEW explode(b) q AS z", "LATERAL VIEW"),
    ("SELECT §rand() AS x FROM r", "rand, which is not deterministic,"),
    ("SELECT §current_date AS x FROM r", "current_date here is not supported; compare the clock only in WHERE"),
    ("SELECT §current_timestamp() AS x FROM r", "current_timestamp here"),
    ("SELECT a FROM r WHERE a = 1 OR d < §now()", "now() here is not supported; compare the clock"),
    ("SELECT a FROM r WHERE r.d <> §now()", "now() here"),
    ("SELECT a FROM r GROUP BY a HAVING SUM(CASE WHEN d > §now() THEN 1 END) > 1", "now() here"),
    ("SELECT COUNT(*) FILTER (WHERE d > §now()) AS n FROM r", "now here"),
    ("SELECT r.a FROM r JOIN s ON r.a = s.a WHERE date_add(r.d, s.a) > §current_date", "current_date here"),
    ("SELECT r.a FROM r FULL JOIN s ON r.a = s.a AND r.d > §now()", "now() here"),
    ("SELECT §flor(a) AS x FROM r", "did you mean floor"),
    ("SELECT §explode(a) AS x FROM r", "generator"),
    ("SELECT cast(a AS §VARIANT) AS x FROM r", "type VARIANT"),
    ("SELECT 1 AS one FROM (VALUES (§rand()), (2)) AS q(a)", "function rand"),
    ("SELECT a FROM r §TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("SELECT a FROM r §VERSION AS OF 1", "time travel"),
    ("SELECT a FROM r §TIMESTAMP AS OF '2026-01-01' AS q", "time travel"),
    ("SELECT a FROM s JOIN r §FOR SYSTEM_TIME AS OF '2026-01-01' USING (a)", "time travel"),
    ("SELECT a FROM r§@v1", "time travel"),
    ("SELECT a FROM s JOIN r§@20260101000000000 USING (a)", "time travel"),
    ("SELECT a FROM r WITH (§NOLOCK)", "WITH (...) after a table"),
    ("WITH q AS §(DELETE FROM r) SELECT a FROM r", "DELETE"),
    ("WITH §q AS MATERIALIZED (SELECT a FROM r) SELECT a FROM q", "MATERIALIZED"),
    ("§WITH RECURSIVE q AS (SELECT a FROM r) SELECT a FROM q", "WITH RECURSIVE"),
    ("SELECT a FROM r WHERE a = §:parameter", "parameter"),
    ("SELECT a FROM r §SORT BY a", "SORT BY"),
]


@pytest.mark.parametrize(("marked", "construct"), UNSUPPORTED)
def test_an_unsupported_construct_is_refused_with_an_alternative(marked: str, construct: str) -> None:
    error = _check("CREATE MATERIALIZED VIEW v AS\n" + marked, construct, UnsupportedSql)
    assert " is not supported; " in str(error)


_TREE = "CREATE TABLE tree (a INT PRIMARY KEY, b INT REFERENCES tree)"
SCRIPTS = [
    ("CREATE TABLE n (a INT, b §BLOB)", "type BLOB", UnsupportedSql),
    ("CREATE TABLE n (\n  a INT,\n  §a INT\n)", "column a is given twice", SqlError),
    ("CREATE TABLE n (a INT, PRIMARY KEY (§b))", "unknown column b; there are a", SqlError),
    ("CREATE TABLE n (a INT PRIMARY KEY, §PRIMARY KEY (a))", "two primary keys", SqlError),
    ("CREATE TABLE n (a INT REFERENCES §zz (a))", "unknown table zz", CatalogError),
    ("CREATE TABLE n (a INT REFERENCES §r (a))", "r has none", SqlError),
    ("CREATE TABLE n (a BIGINT REFERENCES k (§ids))", "unknown column k.ids; did you mean id?", SqlError),
    ("CREATE TABLE n (a INT §REFERENCES k (id))", "column a is INT, but k.id is BIGINT", SqlError),
    ("CREATE TABLE n (a §DECIMAL(40, 2))", "the precision is 1 to 38", SqlError),
    ("CREATE TABLE n (a INT §CHECK (a > 3))", "column constraint CHECK", UnsupportedSql),
    ("CREATE TABLE n (a INT DEFAULT 1 §DEFAULT 2)", "column constraint DEFAULT 2", UnsupportedSql),
    ("CREATE TABLE n (a INT DEFAULT §b)", "DEFAULT of column a: b is a column; a constant such as 5", SqlError),
    ("CREATE TABLE n (a INT DEFAULT §5.5)", "5.5 for INT: the value would be rounded", SqlError),
    ("CREATE TABLE n (a DATE DEFAULT §TIMESTAMP '2026-01-01 01:00:00')", "for DATE: the value would be", SqlError),
    ("CREATE TABLE n (a TINYINT DEFAULT §300)", "300 is outside -128 to 127", SqlError),
    ("CREATE TABLE n (a INT DEFAULT §'x')", "'x' for INT: 'x' is not an integer", SqlError),
    ("CREATE TABLE n (a DATE DEFAULT §'x')", "'x' for DATE: 'x' is not a date", SqlError),
    ("CREATE TABLE n (a DATE DEFAULT §5)", "5 for DATE: INT cannot be cast to DATE", SqlError),
    ("CREATE TABLE n (a BOOLEAN DEFAULT §1)", "a constant of INT is not a BOOLEAN; write TRUE", SqlError),
    ("CREATE TABLE n (a VARCHAR(3) DEFAULT §'abcd')", "VARCHAR(3) accepts 3 characters, not 4", SqlError),
    ("CREATE TABLE n (a INT NOT NULL DEFAULT §NULL)", "leave out DEFAULT NULL", SqlError),
    ("CREATE TABLE n (a INT DEFAULT §NULL, PRIMARY KEY (a))", "leave out DEFAULT NULL", SqlError),
    ("CREATE TABLE n (a INT DEFAULT §1 / 0)", "division by zero", SqlError),
    ("CREATE TABLE n (a INT DEFAULT §(SELECT 1))", "a subquery as a value here", UnsupportedSql),
    ("CREATE TABLE n (a DATE DEFAULT §current_date())", "current_date here", UnsupportedSql),
    ("CREATE TABLE n (a INT DEFAULT §COUNT(*))", "cannot stand in DEFAULT of column a", SqlError),
    ("CREATE TABLE n (a INT §DEFAULT)", "something is missing after DEFAULT", SqlError),
    ("CREATE TABLE n (a INT) TBLPROPERTIES (§'freshviews.thrust' = 'true')", "known: ", SqlError),
    ("CREATE TABLE n (§_multiplicity INT)", "choose another name", SqlError),
    ("CREATE TABLE n (a INT) §USING parquet", "is not supported", UnsupportedSql),
    ("CREATE TABLE n AS §SELECT a FROM r", "CREATE TABLE AS SELECT", UnsupportedSql),
    ("CREATE TABLE §r (a INT)", "table r exists already", CatalogError),
    ("CREATE TABLE §R (a INT)", "table r exists already", CatalogError),
    ("§CREATE OR REPLACE TABLE n (a INT)", "CREATE OR REPLACE TABLE", UnsupportedSql),
    ("§CREATE OR REPLACE VIEW IF NOT EXISTS n AS SELECT a FROM r", "leave out one", SqlError),
    ("§CREATE TEMPORARY VIEW n AS SELECT a FROM r", "CREATE TEMPORARY VIEW", UnsupportedSql),
    ("§CREATE VIEW n TBLPROPERTIES ('freshviews.strategy' = 'crown') AS SELECT a FROM r", "maintained", SqlError),
    ("CREATE VIEW n AS SELECT §zz FROM r", "unknown column zz", SqlError),
    ("CREATE VIEW n AS §SELECT FROM r", "at least one column", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FROM r WHERE EXISTS (§SELECT FROM r)", "at least one column", SqlError),
    ("CREATE TABLE m (a INT); CREATE VIEW n AS §SELECT * EXCEPT (a) FROM m", "view n has no columns", SqlError),
    ("CREATE MATERIALIZED VIEW n AS §SELECT a, a FROM r", "as in n (a, a_2) AS", SqlError),
    ("CREATE MATERIALIZED VIEW §n (x, y) AS SELECT a FROM r", "lists 2 columns, but its query has 1", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FROM §n", "unknown table or view n", CatalogError),
    (
        "CREATE MATERIALIZED VIEW n AS SELECT a FROM r ORDER BY a LIMIT 3;\n"
        "§ALTER VIEW n SET TBLPROPERTIES ('freshviews.strategy' = 'crown')",
        "for view n, which has a LIMIT",
        UnsupportedSql,
    ),
    ("DROP TABLE §zz", "unknown table zz", CatalogError),
    ("ALTER TABLE §zz ADD COLUMN x INT", "unknown table zz", CatalogError),
    ("CREATE VIEW w AS SELECT a FROM r; ALTER TABLE §w ADD COLUMN x INT", "w is not a table", CatalogError),
    ("§ALTER TABLE IF EXISTS r ADD COLUMN x INT", "IF EXISTS of ALTER TABLE", UnsupportedSql),
    ("ALTER TABLE r ALTER COLUMN §zz TYPE BIGINT", "unknown column r.zz", SqlError),
    ("ALTER TABLE r ALTER COLUMN a TYPE §DOUBLE", "does not hold its values unchanged; INT to BIGINT", SqlError),
    ("ALTER TABLE k ALTER COLUMN id TYPE §INT", "column id is BIGINT NOT NULL, and INT NOT NULL does not", SqlError),
    ("CREATE TABLE n (a DECIMAL(9, 2)); ALTER TABLE n ALTER COLUMN a TYPE §DECIMAL(12, 3)", "unchanged", SqlError),
    (f"{_TREE}; ALTER TABLE tree ALTER COLUMN §a TYPE BIGINT", "a foreign key compares it", SqlError),
    (f"{_TREE}; ALTER TABLE tree ALTER COLUMN §b TYPE BIGINT", "a foreign key compares it", SqlError),
    (
        "CREATE TABLE n (a INT, b INT); CREATE MATERIALIZED VIEW w AS SELECT b FROM n WHERE a > 3;"
        "ALTER TABLE n ALTER COLUMN §a TYPE BIGINT",
        "column a is INT, and w may read it; DROP them first",
        CatalogError,
    ),
    (
        "CREATE TABLE n (a INT, b INT); CREATE VIEW w AS SELECT b FROM n; ALTER TABLE n ALTER COLUMN §a TYPE BIGINT",
        "w may read it",
        CatalogError,
    ),
    (
        "CREATE TABLE n (a INT, b INT); CREATE MATERIALIZED VIEW w AS SELECT b, SUM(a) AS s FROM n GROUP BY b;"
        "ALTER TABLE n ALTER COLUMN §a TYPE BIGINT",
        "w may read it",
        CatalogError,
    ),
    ("§ALTER TABLE r DROP COLUMN a", "this ALTER TABLE", UnsupportedSql),
    ("§ALTER TABLE r RENAME TO q", "this ALTER TABLE", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN §A INT", "table r already has a column A", SqlError),
    ("ALTER TABLE r ADD COLUMNS (z1 INT, §Z1 INT)", "column Z1 is given twice", SqlError),
    ("ALTER TABLE r ADD COLUMN §_multiplicity INT", "choose another name", SqlError),
    ("ALTER TABLE r ADD COLUMN z1 §BLOB", "type BLOB", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN IF NOT EXISTS §z1 INT", "IF NOT EXISTS of a column", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN §z1 INT FIRST", "a new column is always the last", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN §z1 INT AFTER a", "a new column is always the last", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN z1 INT §UNIQUE", "NOT NULL, DEFAULT and COMMENT are accepted", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN z1 INT §PRIMARY KEY", "NOT NULL, DEFAULT and COMMENT are accepted", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN z1 BIGINT §REFERENCES k", "NOT NULL, DEFAULT and COMMENT", UnsupportedSql),
    ("ALTER TABLE r ADD COLUMN z1 INT NOT NULL DEFAULT §NULL", "leave out DEFAULT NULL", SqlError),
    ("ALTER TABLE r ADD COLUMN z1 INT DEFAULT §a", "a is a column", SqlError),
    ("DROP MATERIALIZED VIEW §r", "r is not a view; write DROP TABLE", CatalogError),
    ("§INSERT INTO r VALUES (1)", "INSERT", UnsupportedSql),
    ("§SELECT a FROM r", "a query by itself", UnsupportedSql),
    ("CREATE TABLE n (a INT); CREATE TABLE §n (a INT)", "exists already", CatalogError),
    ("CREATE TABLE n (a INT);\n\n  DROP TABLE §m", "unknown table m", CatalogError),
    ("CREATE TABLE n (a INT) §foo", "Unexpected token, at 'foo'", SqlError),
    # misspelt keywords
    ("CREATE MATERIALIZED VIEW n AS SELCT §a FROM r", "at 'a'; did you mean SELECT instead of SELCT?", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FORM §r", "did you mean FROM instead of FORM?", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FROM r WEHRE §a > 1", "did you mean WHERE instead of WEHRE?", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FROM r §LEFT JION s USING (a)", "mean JOIN instead of JION?", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FROM r JOIN s ONN §r.a = s.a", "mean ON instead of ONN?", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FROM r GRUOP §BY a", "did you mean GROUP instead of GRUOP?", SqlError),
    ("CREATE §VEIW n AS SELECT a FROM r", "did you mean VIEW instead of VEIW?", SqlError),
    ("CREATE TABLE n (a §INTT)", "did you mean INT instead of INTT?", SqlError),
    ("CREATE TABLE form (a INT); CREATE VIEW n AS SELECT a FROM form §,,", "a table is missing after ,", SqlError),
    # missing words
    ("CREATE VIEW n AS SELECT a FROM r §WHERE", "something is missing after WHERE", SqlError),
    ("CREATE VIEW n AS SELECT a FROM r WHERE a §>", "something is missing after >", SqlError),
    ("CREATE VIEW n AS SELECT a FROM r WHERE §AND a > 3", "something is missing before AND", SqlError),
    ("CREATE VIEW n AS SELECT a FROM r §ORDER BY", "something is missing after ORDER BY", SqlError),
    ("CREATE VIEW n AS SELECT a §FROM", "the name of a table or view is missing", SqlError),
    ("CREATE VIEW §AS SELECT a FROM r", "the name of a table or view is missing", SqlError),
    ("CREATE VIEW n AS SELECT r.a FROM r JOIN s §ON", "ON needs a condition", SqlError),
    ("CREATE VIEW n AS SELECT r.a FROM r JOIN s §USING", "USING needs columns in parentheses", SqlError),
    ("CREATE VIEW n AS SELECT a FROM r§, WHERE a > 1", "a table is missing after ,", SqlError),
    ("CREATE VIEW n AS SELECT r.a FROM r JOIN s USING (§)", "USING needs columns in parentheses", SqlError),
    ("CREATE TABLE n (a INT); §/* open", "Missing */ to close", SqlError),
    ("§%", "Unexpected token, at '%'", SqlError),
    ("CREATE VIEW w AS SELECT a FROM r; DROP TABLE §ww", "unknown table ww", CatalogError),
    ("CREATE VIEW w AS SELECT a FROM r; DROP VIEW §ww", "unknown view ww; did you mean w?", CatalogError),
    ("§SHOW " + "x" * 1000, "x... (1005 characters) is not supported", UnsupportedSql),
    ("CREATE MATERIALIZED VIEW n AS SELECT a FROM r WHERE s = §'x", "Missing ' to close", SqlError),
    ("CREATE MATERIALIZED VIEW n AS SELECT §(a FROM r", "Missing ) to close what begins here", SqlError),
]


@pytest.mark.parametrize(("marked", "message", "kind"), SCRIPTS)
def test_a_wrong_statement_is_refused_at_the_place_of_its_error(
    marked: str, message: str, kind: type[Exception]
) -> None:
    if message == "at 'FROM'":
        marked = marked.replace("§", "").replace("FROM", "§FROM")
    _check(marked, message, kind)


def test_every_node_of_a_syntax_tree_has_a_place_within_its_parent() -> None:
    text = SqlText(
        "CREATE MATERIALIZED VIEW v AS\n-- a comment\nSELECT a, sum(b) FROM r\nWHERE /* x */ c = 1 GROUP BY a"
    )
    for node in parse(text)[0].walk():
        line, column = text.at(node)
        assert line >= 1 and column >= 1
        assert node.parent is None or text.at(node.parent) <= (line, column)


def test_a_column_number_counts_characters() -> None:
    _check("CREATE MATERIALIZED VIEW v AS SELECT 'äöü€𝄞' AS x,\t§zz FROM r", "unknown column zz", SqlError)


def _check(marked: str, message: str, kind: type[Exception]) -> SqlError:
    before, _, after = marked.partition("§")
    with pytest.raises(kind) as caught:
        parse_script(before + after, catalog())
    error = caught.value
    assert isinstance(error, SqlError)
    assert message in str(error)
    assert (error.line, error.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    return error


def test_a_statement_that_is_refused_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    _check("§SHOW TABLES", "the statement SHOW TABLES is not supported", UnsupportedSql)
    assert not caplog.records
