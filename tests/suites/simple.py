"""DBToaster's simple queries over r(a, b), s(b, c) and t(c, d), by their names there, in standard SQL.

freshviews needs a name for each output column, and no name twice; the suite has neither. A divisor that may be 0 is
written NULLIF(..., 0), since Spark refuses a division by 0. The dialect alone has CREATE STREAM ... FROM FILE, several
queries in one view, LISTMIN and LISTMAX (LEAST and GREATEST here), and a SUM in a subquery over a column of the query
around (in r_aggcomparison; in standard SQL that is an aggregate of the query around, and here a product with a COUNT).
"""

from __future__ import annotations

from tests.suites.suite import Column, Query, Suite, Table


def _ints(name: str) -> Column:
    return Column(name, "INT", (0, 1, 2, 3, 4, 5))


TABLES = (
    Table("r", (_ints("a"), _ints("b")), rows=10),
    Table("s", (_ints("b"), _ints("c")), rows=9),
    Table("t", (_ints("c"), _ints("d")), rows=8),
)

QUERIES = {
    "r_adivb": "SELECT a / NULLIF(b, 0) AS x FROM r",
    "r_adivconst": "SELECT a / 2 AS x FROM r",
    "r_anotb": "SELECT a FROM r WHERE a = 3 AND NOT b = 3",
    "r_anotorb": "SELECT a FROM r WHERE NOT (a = 3 OR b = 2)",
    "r_aorb": "SELECT a FROM r WHERE a = 3 OR b = 2",
    "r_aorb_div": "SELECT a / NULLIF(b, 0) AS x FROM r WHERE a = 3 OR b = 2",
    "r_exists": "SELECT r1.a FROM r AS r1 WHERE EXISTS (SELECT r2.a FROM r AS r2 WHERE r1.a = r2.b)",
    "r_exists_nested": "SELECT r1.a / 2.0 AS x FROM r AS r1 WHERE EXISTS (SELECT * FROM r AS r2 WHERE r1.a = 3)",
    "r_inequal": "SELECT a, b FROM r WHERE a <> 3",
    "r_inequal_ab": "SELECT a, b FROM r WHERE a <> b",
    "r_inequal_empty": "SELECT a, b FROM r WHERE a <> a",
    "r_lessthan": "SELECT a, b FROM r WHERE a < b",
    "r_multi_tlq, first": "SELECT SUM(a) AS x FROM r",
    "r_multi_tlq, second": "SELECT SUM(b) AS x FROM r",
    "r_nested_inequal": "SELECT r1.a FROM r AS r1 WHERE r1.a <> (SELECT SUM(r2.b) FROM r AS r2 WHERE r2.a = r1.a)",
    "r_newcolumn": "SELECT a, b, 5 AS c FROM r",
    "r_notexists": "SELECT r1.a FROM r AS r1 WHERE NOT EXISTS (SELECT r2.a FROM r AS r2 WHERE r1.a = r2.b)",
    "r_simplenested": "SELECT r1.a FROM (SELECT r2.a FROM r AS r2) AS r1",
    "r_simplenested2": "SELECT x.a FROM (SELECT y.a, y.b FROM r AS y WHERE y.b > 1) AS x WHERE x.a < 4",
    "r_simplenested_empty": "SELECT x.a FROM (SELECT y.a FROM r AS y WHERE y.a <> y.a) AS x",
    "r_sumab": "SELECT SUM(a + b) AS x FROM r",
    "r_sumab3": "SELECT SUM(a + b) * 3 AS x FROM r",
    "inequality_selfjoin": "SELECT r1.a, r2.b FROM r AS r1, r AS r2 WHERE r1.a < r2.a",
    "invalid_schema_fn": "SELECT r1.a FROM r AS r1 WHERE (SELECT COUNT(*) / 2 FROM r) IN (SELECT r3.a FROM r AS r3)",
    "m3k3unable2escalate": "SELECT 1 AS x WHERE 5.0 IN (SELECT r3.a FROM r AS r3)",
    "miraculous_minus": "SELECT r1.a FROM r AS r1 WHERE r1.a = (SELECT SUM(r2.b) FROM r AS r2 WHERE r2.a = r1.b)",
    "miraculous_minus2": """
        SELECT r1.a FROM r AS r1 WHERE r1.a = (SELECT SUM(r2.b) * 0.5 FROM r AS r2 WHERE r2.a = r1.b)
    """,
    "multiagg_all": "SELECT a, SUM(b) AS x, COUNT(*) AS n, AVG(b) AS m FROM r GROUP BY a",
    "multiagg_distinct": "SELECT a, COUNT(DISTINCT b) AS n, SUM(b) AS x FROM r GROUP BY a",
    "multiagg_nested": """
        SELECT r.b, x.s / x.c AS avg_a
        FROM r, (SELECT y.b, COUNT(*) AS c, SUM(y.a) AS s FROM r AS y GROUP BY y.b) AS x WHERE r.b = x.b
    """,
    "multiagg_simple": "SELECT SUM(a) AS x, SUM(b) AS y FROM r",
    "r_aggcomparison": """
        SELECT r1.a, r1.b, x.c FROM r AS r1, (SELECT SUM(r3.b) AS c FROM r AS r3) AS x
        WHERE r1.a > x.c * (SELECT COUNT(*) FROM r AS r2) - 300
    """,
    "r_aggofnested": "SELECT SUM(x.a) AS y FROM (SELECT r1.a FROM r AS r1) AS x",
    "r_aggofnestedagg": "SELECT SUM(1) AS x FROM (SELECT SUM(1) AS y FROM r) AS n",
    "r_agtb": "SELECT r1.a FROM r AS r1 WHERE r1.a > r1.b",
    "r_agtbexists": "SELECT a FROM r AS r1 WHERE EXISTS (SELECT r2.b FROM r AS r2 WHERE r1.a > r2.b)",
    "r_avg": "SELECT AVG(a) AS x FROM r",
    "r_bigsumstar": "SELECT SUM(2 * a * b + b + 3) AS x FROM r",
    "r_btimesa": "SELECT a, SUM(b * a) AS x FROM r GROUP BY a",
    "r_btimesacorrelated": """
        SELECT a, SUM(b * (SELECT SUM(r2.a) FROM r AS r2 WHERE r1.a = r2.a)) AS x FROM r AS r1 GROUP BY a
    """,
    "r_case": "SELECT CASE WHEN a < 2 THEN b WHEN a < 4 THEN b * 2 ELSE 0 END AS x FROM r",
    "r_count": "SELECT COUNT(*) AS n FROM r",
    "r_count_of_one": "SELECT a, COUNT(1) AS n FROM r GROUP BY a",
    "r_count_of_one_prime": "SELECT COUNT(*) AS n FROM (SELECT r1.a, COUNT(*) AS c FROM r AS r1 GROUP BY r1.a) AS x",
    "r_deepscoping": """
        SELECT r3.a FROM (SELECT r1.a FROM r AS r1, (SELECT r2.a FROM r AS r2) AS r2b WHERE r1.a = r2b.a) AS r3, r AS r4
        WHERE r3.a = r4.a
    """,
    "r_deletions": "SELECT a, SUM(b) AS x FROM r GROUP BY a",
    "r_distinct": "SELECT DISTINCT a FROM r",
    "r_distincttest": "SELECT COUNT(DISTINCT a) AS n, COUNT(DISTINCT b) AS m FROM r",
    "r_divb": "SELECT 1 / NULLIF(b, 0) AS x FROM r",
    "r_existsnestedagg": """
        SELECT r1.a, SUM(1) AS n FROM r AS r1
        WHERE EXISTS (SELECT 1 FROM (SELECT SUM(r2.b) AS b FROM r AS r2 WHERE r2.a = r1.b) AS n1 WHERE r1.a * 3 < n1.b)
        GROUP BY r1.a
    """,
    "r_gbasumb": "SELECT a, SUM(b) AS x FROM r GROUP BY a",
    "r_gtealldynamic": "SELECT * FROM r AS r2 WHERE r2.b >= ALL (SELECT r1.a FROM r AS r1)",
    "r_gtesomedynamic": "SELECT * FROM r AS r2 WHERE r2.b >= SOME (SELECT r1.a FROM r AS r1)",
    "r_gtsomedynamic": "SELECT * FROM r AS r2 WHERE r2.b > SOME (SELECT r1.a FROM r AS r1)",
    "r_impossibleineq": "SELECT * FROM r WHERE a < b AND a > b",
    "r_indynamic": "SELECT * FROM r AS r2 WHERE r2.b IN (SELECT r1.a FROM r AS r1)",
    "r_ineqandeq": "SELECT * FROM r WHERE a = b AND a <= b",
    "r_inlist": "SELECT * FROM r WHERE a IN (1, 2, 3)",
    "r_instatic": "SELECT * FROM r AS r2 WHERE r2.b IN (1, 2, 3, 4)",
    "r_lift_of_count": "SELECT r2.c FROM (SELECT r1.a, COUNT(*) AS c FROM r AS r1 GROUP BY r1.a) AS r2",
    "r_ltallagg": "SELECT * FROM r AS r2 WHERE r2.b < ALL (SELECT SUM(r1.a) FROM r AS r1)",
    "r_ltallavg": "SELECT * FROM r AS r2 WHERE r2.b < ALL (SELECT AVG(r1.a) FROM r AS r1)",
    "r_ltallcorravg": "SELECT * FROM r AS r2 WHERE r2.a < ALL (SELECT AVG(r1.a) FROM r AS r1 WHERE r1.b = r2.b)",
    "r_ltalldynamic": "SELECT * FROM r AS r2 WHERE r2.b <= ALL (SELECT r1.a FROM r AS r1)",
    "r_multinest": """
        SELECT * FROM (
          SELECT y.d, SUM(y.c) AS e FROM (
            SELECT x.c, SUM(x.a) AS d FROM (SELECT r1.a, SUM(r1.b) AS c FROM r AS r1 GROUP BY r1.a) AS x
            GROUP BY x.c) AS y
          GROUP BY d) AS z
    """,
    "r_multiors": "SELECT * FROM r WHERE a = 1 OR a = 2 OR b = 3 OR (a = 4 AND b = 1)",
    "r_natselfjoin": "SELECT * FROM r AS r1 NATURAL JOIN r AS r2",
    "r_nestedfrom": "SELECT x.a, y.b FROM (SELECT a FROM r) AS x, (SELECT b FROM r) AS y WHERE x.a = y.b",
    "r_nestedrename": "SELECT x.c AS a FROM (SELECT a AS c, b AS d FROM r) AS x WHERE x.d > 1",
    "r_nogroupby": "SELECT SUM(a) AS x, SUM(b) AS y, COUNT(*) AS n FROM r",
    "r_nonjoineq": "SELECT r1.a FROM r AS r1, r AS r2 WHERE r1.a = 2 AND r2.b = 3",
    "r_possibleineq": "SELECT * FROM r WHERE a <= b AND a >= b",
    "r_possibleineqwitheq": "SELECT * FROM r WHERE a = b AND a <= b AND a >= b",
    "r_selectstar": "SELECT * FROM r",
    "r_simplenest": "SELECT r1.a FROM r AS r1 WHERE r1.b = (SELECT MAX(r2.a) FROM r AS r2 WHERE r1.a = r2.b)",
    "r_smallstar": "SELECT r1.* FROM r AS r1",
    "r_starofnested": "SELECT * FROM (SELECT a + b AS c FROM r) AS x",
    "r_starofnestedagg": "SELECT * FROM (SELECT COUNT(*) AS n FROM r) AS x",
    "r_sum_gb_all_out_of_aggregate": "SELECT a + SUM(1) AS x FROM r GROUP BY a, b",
    "r_sum_gb_out_of_aggregate": "SELECT a + SUM(b) AS x FROM r GROUP BY a",
    "r_sum_out_of_aggregate": "SELECT 3 + SUM(b) AS x FROM r",
    "r_sumadivsumb": "SELECT SUM(a) / NULLIF(SUM(b), 0) AS x FROM r",
    "r_sumdivgrp": "SELECT SUM(a) / NULLIF(b, 0) AS x FROM r GROUP BY b",
    "r_sumnestedintarget": "SELECT SUM((SELECT SUM(1) FROM r AS r1)) AS x FROM r AS r2",
    "r_sumnestedintargetwitheq": "SELECT SUM((SELECT SUM(1) FROM r AS r2 WHERE r1.a = r2.a)) AS x FROM r AS r1",
    "r_sumoutsideofagg": "SELECT a, SUM(b) + 2 * COUNT(*) AS x FROM r GROUP BY a",
    "r_sumstar": "SELECT SUM(a * b) AS x FROM r",
    "r_union": "SELECT a, SUM(b) AS x FROM r GROUP BY a",
    "r_unique_counts_by_a": """
        SELECT r3.c FROM (
          SELECT r2.c, COUNT(*) AS n FROM (SELECT r1.a, COUNT(*) AS c FROM r AS r1 GROUP BY r1.a) AS r2
          GROUP BY c) AS r3
    """,
    "rr_ormyself": "SELECT r1.a FROM r AS r1, r AS r2 WHERE (r1.a = r2.a OR r1.a = r2.a) AND r1.b = r2.b",
    "rs": "SELECT SUM(r.a * s.c) AS x FROM r, s WHERE r.b = s.b",
    "rs_cmpnest": "SELECT r.a, r.b FROM r WHERE r.a < (SELECT SUM(s.c) FROM s WHERE r.b = s.b)",
    "rs_cmpnest, equal": "SELECT SUM(r.a) AS x FROM r WHERE r.b = (SELECT SUM(s.c) - 18 FROM s)",
    "rs_column_mapping_1": "SELECT r1.a, r1.b FROM s, r AS r1, r AS r2 WHERE s.b = r1.a AND s.c = r2.b",
    "rs_column_mapping_2": "SELECT r1.a, r1.b FROM s, r AS r1, r AS r2 WHERE s.b = r1.a AND s.c = r2.a",
    "rs_column_mapping_3": "SELECT r2.a, r2.b FROM s, r AS r1, r AS r2 WHERE s.b = r1.a AND s.c = r2.a",
    "rs_eqineq": "SELECT r.a, s.c FROM r, s WHERE r.b = s.b AND r.a < s.c",
    "rs_example1": "SELECT SUM(r.a * s.c) AS x FROM r, s WHERE r.b = s.b",
    "rs_example2": """
        SELECT r.b, SUM(r.a * s.c) AS result_1, SUM(r.a + s.c) AS result_2 FROM r, s WHERE r.b = s.b GROUP BY r.b
    """,
    "rs_ineqonnestedagg": """
        SELECT a FROM r, (SELECT s2.b, COUNT(*) AS cnt FROM s AS s2 GROUP BY s2.b) AS x WHERE r.b = x.b AND r.a < cnt
    """,
    "rs_inequality": "SELECT r.a, r.b AS x, s.b AS y, s.c FROM r, s WHERE r.b < s.b",
    "rs_ineqwithnestedagg": """
        SELECT a FROM r, (SELECT COUNT(*) AS cnt FROM s) AS x WHERE r.a < cnt - 5
    """,
    "rs_joinon": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "rs_joinwithnestedagg": """
        SELECT a FROM r, (SELECT s2.b, COUNT(*) AS n FROM s AS s2 GROUP BY s2.b) AS x WHERE r.b = x.b
    """,
    "rs_natjoin": "SELECT * FROM r NATURAL JOIN s",
    "rs_natjoinineq": "SELECT * FROM r NATURAL JOIN s WHERE r.a < s.c",
    "rs_natjoinnooverlap": "SELECT * FROM r NATURAL JOIN t",
    "rs_natjoinpartstar": "SELECT r.* FROM r NATURAL JOIN s",
    "rs_selectconstcmp": "SELECT r.a, r.b AS x, s.b AS y, s.c FROM r, s WHERE r.a = 3 AND s.b = 5",
    "rs_selectpartstar": "SELECT r.* FROM r, s WHERE r.b = s.b",
    "rs_selectstar": "SELECT r.a, r.b AS x, s.b AS y, s.c FROM r, s",
    "rs_simple": "SELECT r.a, SUM(s.c) AS x FROM r, s WHERE r.b = s.b GROUP BY r.a",
    "rs_streamvtable": "SELECT * FROM r NATURAL JOIN s",
    "rs_stringjoin": "SELECT r.a, s.c FROM r, s WHERE CAST(r.b AS STRING) = CAST(s.b AS STRING)",
    "rst": "SELECT SUM(a * d) AS x FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
    "rstar": "SELECT * FROM r WHERE b > 2",
    "rtt_or_with_stars": """
        SELECT t1.c AS c1, t1.d AS d1, t2.c AS c2, t2.d AS d2 FROM s, t AS t1, t AS t2
        WHERE t1.d = t2.c OR 2 = s.b * t1.d
    """,
    "ss_math": "SELECT s1.b, SUM(s1.c * s2.c - s1.b) AS x FROM s AS s1, s AS s2 WHERE s1.b = s2.c GROUP BY s1.b",
    "singleton_renaming_conflict": """
        SELECT x.b, SUM(x.n) AS n FROM (SELECT r.b, COUNT(*) AS n FROM r GROUP BY r.b) AS x, s
        WHERE x.b = s.b GROUP BY x.b
    """,
    "t_lifttype": "SELECT t.c FROM t WHERE t.c < (SELECT SUM(t2.d) FROM t AS t2) * 0.5",
    "r_listmax": "SELECT GREATEST(a, b) AS most, LEAST(a, b) AS least FROM r",
}


def _for_duck(text: str) -> str:
    """SOME is ANY there; a NATURAL JOIN has its common columns in their places, and not first, and needs one."""
    text = text.replace("STRING", "VARCHAR").replace("SOME", "ANY")
    text = text.replace("SELECT * FROM r NATURAL JOIN s", "SELECT b, a, c FROM r NATURAL JOIN s")
    return text.replace("r NATURAL JOIN t", "r, t")


SUITE = Suite(
    TABLES,
    {name: Query(text, duck=_for_duck(text)) for name, text in QUERIES.items()},
    empty=frozenset(("r_inequal_empty", "r_simplenested_empty", "r_impossibleineq")),
)
