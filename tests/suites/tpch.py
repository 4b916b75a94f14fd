"""TPC-H: small random tables, and the 22 queries in the spellings that people write them in.

The first spelling of each query is the one of the benchmarks. ``first rows`` is the form of the specification, with
ORDER BY and LIMIT; its order goes on until it is total, as both sides may else take other rows.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from benchmarks.workloads.tpch_queries import QUERIES, REVENUE
from tests.suites.suite import Column, Query, Suite, Table

MONEY = "DECIMAL(15, 2)"


def _whole(name: str, most: int) -> Column:
    return Column(name, "BIGINT", tuple(range(1, most + 1)))


def _key(name: str, most: int) -> Column:
    return Column(name, "BIGINT NOT NULL", tuple(range(1, most + 1)))


def _text(name: str, *values: str) -> Column:
    return Column(name, "STRING", values)


def _money(name: str, *values: str) -> Column:
    return Column(name, MONEY, tuple(map(Decimal, values)))


def _days(name: str, *months: str) -> Column:
    days = ("01", "14", "28")
    return Column(name, "DATE", tuple(dt.date.fromisoformat(f"{month}-{day}") for month in months for day in days))


_PHONES = tuple(f"{code}-{rest}" for code in (13, 31, 23, 11, 99) for rest in ("1", "2"))
_DATES = ("1993-07", "1994-01", "1994-06", "1995-09", "1996-02")

TABLES = (
    Table(
        "customer",
        (
            _key("c_custkey", 9), _text("c_name", "c1", "c2"), _text("c_address", "here", "there"),
            _whole("c_nationkey", 4), _text("c_phone", *_PHONES), _money("c_acctbal", "-5", "0", "3.50", "90"),
            _text("c_mktsegment", "BUILDING", "MACHINERY"), _text("c_comment", "good"),
        ),
        ("c_custkey",),
        8,
    ),
    Table(
        "orders",
        (
            _key("o_orderkey", 12), _whole("o_custkey", 6), _text("o_orderstatus", "F", "O"),
            _money("o_totalprice", "10", "20.20"), _days("o_orderdate", "1993-07", "1993-10", "1994-06", "1995-02"),
            _text("o_orderpriority", "1-URGENT", "2-HIGH", "5-LOW"), _text("o_clerk", "x"),
            Column("o_shippriority", "INT", (0, 1)), _text("o_comment", "a special one with requests", "plain"),
        ),
        ("o_orderkey",),
        14,
    ),
    Table(
        "lineitem",
        (
            _key("l_orderkey", 12), _whole("l_partkey", 3), _whole("l_suppkey", 3),
            Column("l_linenumber", "INT NOT NULL", (1, 2, 3, 4)), _money("l_quantity", "1", "5", "20", "50", "200"),
            _money("l_extendedprice", "100", "55.50", "7"), _money("l_discount", "0", "0.05", "0.06"),
            _money("l_tax", "0", "0.08"), _text("l_returnflag", "R", "A"), _text("l_linestatus", "O", "F"),
            _days("l_shipdate", *_DATES), _days("l_commitdate", *_DATES), _days("l_receiptdate", *_DATES),
            _text("l_shipinstruct", "DELIVER IN PERSON", "NONE"), _text("l_shipmode", "MAIL", "SHIP", "AIR"),
            _text("l_comment", "x"),
        ),
        ("l_orderkey", "l_linenumber"),
        30,
    ),
    Table(
        "nation",
        (
            _key("n_nationkey", 4),
            _text("n_name", "FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA"),
            _whole("n_regionkey", 2), _text("n_comment", "x"),
        ),
        ("n_nationkey",),
        5,
    ),
    Table(
        "part",
        (
            _key("p_partkey", 3), _text("p_name", "forest green", "green tea", "red"), _text("p_mfgr", "m1", "m2"),
            _text("p_brand", "Brand#12", "Brand#23", "Brand#34", "Brand#45"),
            _text("p_type", "LARGE BRASS", "ECONOMY ANODIZED STEEL", "PROMO TIN", "MEDIUM POLISHED TIN"),
            Column("p_size", "INT", (1, 3, 9, 14, 15)),
            _text("p_container", "SM BOX", "MED BOX", "LG BOX"), _money("p_retailprice", "9"), _text("p_comment", "x"),
        ),
        ("p_partkey",),
        5,
    ),
    Table(
        "supplier",
        (
            _key("s_suppkey", 3), _text("s_name", "s1", "s2", "s3"), _text("s_address", "a", "b"),
            _whole("s_nationkey", 4), _text("s_phone", "1"), _money("s_acctbal", "1", "2.50"),
            _text("s_comment", "Some Customer has Complaints", "fine"),
        ),
        ("s_suppkey",),
        4,
    ),
    Table(
        "partsupp",
        (
            _key("ps_partkey", 3), _key("ps_suppkey", 3), Column("ps_availqty", "INT", (1, 12, 40, 130)),
            _money("ps_supplycost", "1", "2.50", "10"), _text("ps_comment", "x"),
        ),
        ("ps_partkey", "ps_suppkey"),
        10,
    ),
    Table(
        "region",
        (_key("r_regionkey", 2), _text("r_name", "EUROPE", "ASIA", "AMERICA"), _text("r_comment", "x")),
        ("r_regionkey",),
        3,
    ),
)  # fmt: skip

_Q2 = """
    SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
    FROM part JOIN partsupp ON p_partkey = ps_partkey JOIN supplier ON s_suppkey = ps_suppkey
      JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey {joined}
    WHERE p_size = 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE' {cheapest}
"""
_EUROPE = """
    partsupp AS p2 JOIN supplier AS s2 ON s2.s_suppkey = p2.ps_suppkey
      JOIN nation AS n2 ON s2.s_nationkey = n2.n_nationkey
      JOIN region AS r2 ON n2.n_regionkey = r2.r_regionkey AND r2.r_name = 'EUROPE'
"""
_LEAST = f"SELECT p2.ps_partkey AS least_part, MIN(p2.ps_supplycost) AS least FROM {_EUROPE} GROUP BY p2.ps_partkey"
_Q4 = """
    SELECT o_orderpriority, COUNT(*) AS order_count
    FROM orders {joined}
    WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' {late}
    GROUP BY o_orderpriority
"""
_LATE = "SELECT l_orderkey FROM lineitem WHERE l_commitdate < l_receiptdate"
_GERMAN = """
    SELECT ps_partkey, ps_supplycost * ps_availqty AS value
    FROM partsupp, supplier, nation
    WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
"""
_STREAM = f"""
    SELECT l_suppkey AS supplier_no, SUM({REVENUE}) AS total_revenue
    FROM lineitem
    WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
    GROUP BY l_suppkey
"""
_Q15 = """
    SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
    FROM supplier, {revenue}
    WHERE s_suppkey = supplier_no {best}
"""
_Q16 = """
    SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
    FROM partsupp JOIN part ON p_partkey = ps_partkey {joined}
    WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
      {good}
    GROUP BY p_brand, p_type, p_size
"""
_BAD = "s_comment LIKE '%Customer%Complaints%'"
_Q17 = """
    SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
    FROM lineitem, part {more}
    WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX' {few}
"""
_AVERAGE = "SELECT l_partkey AS of_part, 0.2 * AVG(l_quantity) AS fifth FROM lineitem GROUP BY l_partkey"
_Q18 = """
    SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity
    FROM customer, orders, lineitem {more}
    WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey {big}
    GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
"""
_BIG = "SELECT l_orderkey AS big_key FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300"
_Q20 = (
    "SELECT s_name, s_address FROM supplier, nation {more} WHERE s_nationkey = n_nationkey AND n_name = 'CANADA' {has}"
)
_SHIPPED = """
    SELECT l_partkey, l_suppkey, 0.5 * SUM(l_quantity) AS half FROM lineitem
    WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
    GROUP BY l_partkey, l_suppkey
"""
_HALF = """
    (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
       AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01')
"""
_Q21 = """
    SELECT s_name, COUNT(*) AS numwait
    FROM supplier JOIN lineitem AS l1 ON s_suppkey = l1.l_suppkey JOIN orders ON o_orderkey = l1.l_orderkey
      JOIN nation ON s_nationkey = n_nationkey {joined}
    WHERE o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND n_name = 'SAUDI ARABIA' {alone}
    GROUP BY s_name
"""
_LATE_ONES = """
    SELECT l_orderkey AS late_order, COUNT(DISTINCT l_suppkey) AS late FROM lineitem
    WHERE l_receiptdate > l_commitdate GROUP BY l_orderkey
"""
_SUPPLIERS = "SELECT l_orderkey AS any_order, COUNT(DISTINCT l_suppkey) AS suppliers FROM lineitem GROUP BY l_orderkey"
_CODES = "('13', '31', '23', '29', '30', '18', '17')"
_RICH = f"""
    c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND SUBSTRING(c_phone, 1, 2) IN {_CODES})
"""
_Q22 = """
    SELECT SUBSTRING(c_phone, 1, 2) AS cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
    FROM customer {joined}
    WHERE SUBSTRING(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
      {idle}
    GROUP BY SUBSTRING(c_phone, 1, 2)
"""


def _first(name: str, order: str) -> str:
    return f"{QUERIES[name][1]} ORDER BY {order}"


_SPELLINGS: dict[str, str | Query] = {
    "q2, derived table": _Q2.format(
        joined=f"JOIN ({_LEAST}) AS cheap ON least_part = p_partkey", cheapest="AND ps_supplycost = least"
    ),
    "q2, CTE": f"WITH cheap AS ({_LEAST})"
    + _Q2.format(joined="JOIN cheap ON least_part = p_partkey", cheapest="AND least = ps_supplycost"),
    "q2, NOT EXISTS": _Q2.format(
        joined="",
        cheapest=f"AND NOT EXISTS (SELECT 1 FROM {_EUROPE} "
        "WHERE p2.ps_partkey = p_partkey AND p2.ps_supplycost < partsupp.ps_supplycost)",
    ),
    "q2, ALL": _Q2.format(
        joined="", cheapest=f"AND ps_supplycost <= ALL (SELECT p2.ps_supplycost FROM {_EUROPE} "
        "WHERE p2.ps_partkey = p_partkey)"
    ),
    "q2, IN": _Q2.format(
        joined="", cheapest=f"AND (p_partkey, ps_supplycost) IN ({_LEAST})"
    ),
    "q2, first rows": _first(
        "q2", "s_acctbal DESC, n_name, s_name, p_partkey, s_address, p_mfgr, s_phone, s_comment LIMIT 2"
    ),
    "q3, first rows": _first("q3", "revenue DESC, o_orderdate, l_orderkey, o_shippriority LIMIT 3"),
    "q4, IN": _Q4.format(joined="", late=f"AND o_orderkey IN ({_LATE})"),
    "q4, ANY": _Q4.format(joined="", late=f"AND o_orderkey = ANY ({_LATE})"),
    "q4, LEFT SEMI JOIN": _Q4.format(
        joined="LEFT SEMI JOIN lineitem ON l_orderkey = o_orderkey AND l_commitdate < l_receiptdate", late=""
    ),
    "q4, derived table": _Q4.format(
        joined=f"JOIN (SELECT DISTINCT * FROM ({_LATE}) AS x) AS l ON l_orderkey = o_orderkey", late=""
    ),
    "q4, scalar COUNT": _Q4.format(
        joined="",
        late="AND (SELECT COUNT(*) FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) > 0",
    ),
    "q4, EXISTS as a value": """
        SELECT o_orderpriority, SUM(CASE WHEN EXISTS (
            SELECT * FROM lineitem
            WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) THEN 1 ELSE 0 END) AS n
        FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
        GROUP BY o_orderpriority
    """,
    "q5, joins": f"""
        SELECT n_name, SUM({REVENUE}) AS revenue
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
          JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
          JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
        WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name ORDER BY revenue DESC
    """,
    "q10, first rows": _first("q10", "revenue DESC, c_custkey, c_name, c_address, c_phone, n_name, c_acctbal LIMIT 4"),
    "q11, CTE": f"""
        WITH german AS ({_GERMAN}), total AS (SELECT SUM(value) * 0.1 AS least FROM german)
        SELECT ps_partkey, SUM(value) AS worth FROM german GROUP BY ps_partkey
        HAVING SUM(value) > (SELECT least FROM total)
    """,
    "q11, derived tables": f"""
        SELECT ps_partkey, worth
        FROM (SELECT ps_partkey, SUM(value) AS worth FROM ({_GERMAN}) AS g GROUP BY ps_partkey) AS parts
          JOIN (SELECT SUM(value) * 0.1 AS least FROM ({_GERMAN}) AS h) AS total ON worth > least
    """,
    "q11, scalar in WHERE": f"""
        SELECT ps_partkey, worth
        FROM (SELECT ps_partkey, SUM(value) AS worth FROM ({_GERMAN}) AS g GROUP BY ps_partkey) AS parts
        WHERE worth > (SELECT SUM(value) * 0.1 FROM ({_GERMAN}) AS h)
    """,
    "q11, in order": QUERIES["q11"][1] + " ORDER BY worth DESC",
    "q12, joins": """
        SELECT l_shipmode, COUNT(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 END) AS high,
               COUNT(*) FILTER (WHERE o_orderpriority NOT IN ('1-URGENT', '2-HIGH')) AS low
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
        GROUP BY l_shipmode
    """,
    "q13, RIGHT JOIN": """
        SELECT c_count, COUNT(*) AS custdist
        FROM (
          SELECT c_custkey, COUNT(o_orderkey) AS c_count
          FROM (SELECT * FROM orders WHERE o_comment NOT LIKE '%special%requests%') AS o
            RIGHT JOIN customer ON c_custkey = o_custkey
          GROUP BY c_custkey) AS c_orders
        GROUP BY c_count
    """,
    "q13, scalar COUNT": """
        SELECT c_count, COUNT(*) AS custdist
        FROM (
          SELECT c_custkey, (
            SELECT COUNT(*) FROM orders
            WHERE o_custkey = c_custkey AND o_comment NOT LIKE '%special%requests%') AS c_count
          FROM customer) AS c_orders
        GROUP BY c_count
    """,
    "q13, column names": """
        SELECT c_count, COUNT(*) AS custdist
        FROM (
          SELECT c_custkey, COUNT(o_orderkey)
          FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
          GROUP BY c_custkey) AS c_orders (c_custkey, c_count)
        GROUP BY c_count ORDER BY custdist DESC, c_count DESC
    """,
    "q13, UNION ALL": """
        SELECT c_count, COUNT(*) AS custdist
        FROM (
          SELECT c_custkey, COUNT(*) AS c_count FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey
          UNION ALL
          SELECT DISTINCT c_custkey, 0 AS c_count FROM customer
          WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)) AS c_orders
        GROUP BY c_count
    """,
    "q15, view": Query(
        _Q15.format(revenue="revenue", best="AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)"),
        views=(f"CREATE VIEW revenue AS {_STREAM}",),
    ),
    "q15, scalar MAX": _Q15.format(
        revenue=f"({_STREAM}) AS r", best=f"AND total_revenue = (SELECT MAX(total_revenue) FROM ({_STREAM}) AS x)"
    ),
    "q15, NOT EXISTS": f"WITH revenue AS ({_STREAM})" + _Q15.format(
        revenue="revenue AS r",
        best="AND NOT EXISTS (SELECT 1 FROM revenue AS x WHERE x.total_revenue > r.total_revenue)",
    ),
    "q15, ALL": f"WITH revenue AS ({_STREAM})" + _Q15.format(
        revenue="revenue AS r", best="AND total_revenue >= ALL (SELECT x.total_revenue FROM revenue AS x)"
    ),
    "q15, joined": f"WITH revenue AS ({_STREAM})" + _Q15.format(
        revenue="revenue, (SELECT MAX(total_revenue) AS most FROM revenue) AS x", best="AND total_revenue = most"
    ),
    "q16, NOT EXISTS": _Q16.format(
        joined="", good=f"AND NOT EXISTS (SELECT 1 FROM supplier WHERE s_suppkey = ps_suppkey AND {_BAD})"
    ),
    "q16, LEFT JOIN": _Q16.format(
        joined=f"LEFT JOIN supplier ON s_suppkey = ps_suppkey AND {_BAD}", good="AND s_suppkey IS NULL"
    ),
    "q16, LEFT ANTI JOIN": _Q16.format(
        joined=f"LEFT ANTI JOIN (SELECT * FROM supplier WHERE {_BAD}) AS bad ON bad.s_suppkey = ps_suppkey", good=""
    ),
    "q16, ALL": _Q16.format(joined="", good=f"AND ps_suppkey <> ALL (SELECT s_suppkey FROM supplier WHERE {_BAD})"),
    "q16, EXCEPT": _Q16.format(
        joined="",
        good=f"AND ps_suppkey IN (SELECT ps_suppkey FROM partsupp EXCEPT SELECT s_suppkey FROM supplier WHERE {_BAD})",
    ),
    "q17, derived table": _Q17.format(
        more=f", ({_AVERAGE}) AS a", few="AND l_partkey = of_part AND l_quantity < fifth"
    ),
    "q17, CTE": f"WITH a AS ({_AVERAGE})"
    + _Q17.format(more=", a", few="AND p_partkey = of_part AND l_quantity < fifth"),
    "q17, half": _Q17.format(
        more="",
        few="AND l_quantity < 0.5 * (SELECT SUM(q.l_quantity) FROM lineitem AS q WHERE q.l_partkey = p_partkey)",
    ),
    "q18, derived table": _Q18.format(more=f", ({_BIG}) AS b", big="AND big_key = o_orderkey"),
    "q18, CTE": f"WITH b AS ({_BIG})" + _Q18.format(more="JOIN b ON TRUE", big="AND big_key = o_orderkey"),
    "q18, EXISTS": _Q18.format(
        more="", big="AND EXISTS (SELECT big.l_orderkey FROM lineitem AS big WHERE big.l_orderkey = o_orderkey "
        "GROUP BY big.l_orderkey HAVING SUM(big.l_quantity) > 300)"
    ),
    "q18, scalar SUM": _Q18.format(
        more="", big="AND (SELECT SUM(big.l_quantity) FROM lineitem AS big WHERE big.l_orderkey = o_orderkey) > 300"
    ),
    "q18, first rows": _first("q18", "o_totalprice DESC, o_orderdate, o_orderkey, c_custkey, c_name LIMIT 2"),
    "q20, EXISTS": _Q20.format(
        more="", has=f"""AND EXISTS (
          SELECT 1 FROM partsupp WHERE ps_suppkey = s_suppkey AND ps_availqty > {_HALF}
            AND EXISTS (SELECT 1 FROM part WHERE p_partkey = ps_partkey AND p_name LIKE 'forest%'))"""
    ),
    "q20, derived table": _Q20.format(
        more=f""", (
          SELECT DISTINCT ps_suppkey FROM partsupp, ({_SHIPPED}) AS l
          WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND ps_availqty > half
            AND ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')) AS x""",
        has="AND ps_suppkey = s_suppkey",
    ),
    "q20, CTE": f"""
        WITH shipped AS ({_SHIPPED}), forest AS (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%'),
          spare AS (
            SELECT ps_suppkey FROM partsupp JOIN forest ON p_partkey = ps_partkey
              JOIN shipped ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
            WHERE ps_availqty > half)
    """ + _Q20.format(more="", has="AND s_suppkey IN (SELECT ps_suppkey FROM spare)"),
    "q20, LEFT SEMI JOIN": f"""
        SELECT s_name, s_address FROM supplier JOIN nation ON s_nationkey = n_nationkey AND n_name = 'CANADA'
          LEFT SEMI JOIN (
            SELECT ps_suppkey FROM partsupp LEFT SEMI JOIN part ON p_partkey = ps_partkey AND p_name LIKE 'forest%'
            WHERE ps_availqty > {_HALF}) AS x ON ps_suppkey = s_suppkey
    """,
    "q21, counts": _Q21.format(
        joined="", alone="""
          AND (SELECT COUNT(DISTINCT l2.l_suppkey) FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey) > 1
          AND (SELECT COUNT(DISTINCT l3.l_suppkey) FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
                 AND l3.l_receiptdate > l3.l_commitdate) = 1"""
    ),
    "q21, derived tables": _Q21.format(
        joined=f"JOIN ({_SUPPLIERS}) AS s ON any_order = o_orderkey "
        f"JOIN ({_LATE_ONES}) AS t ON late_order = o_orderkey",
        alone="AND suppliers > 1 AND late = 1",
    ),
    "q21, CTE": f"WITH s AS ({_SUPPLIERS}), t AS ({_LATE_ONES})" + _Q21.format(
        joined="JOIN s ON any_order = l1.l_orderkey JOIN t ON late_order = l1.l_orderkey",
        alone="AND suppliers > 1 AND late = 1",
    ),
    "q21, IN": _Q21.format(
        joined="", alone=f"""
          AND l1.l_orderkey IN (SELECT any_order FROM ({_SUPPLIERS}) AS s WHERE suppliers > 1)
          AND l1.l_orderkey NOT IN (SELECT late_order FROM ({_LATE_ONES}) AS t WHERE late > 1)"""
    ),
    "q21, EXISTS and COUNT": _Q21.format(
        joined="", alone="""
          AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
          AND 0 = (SELECT COUNT(*) FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
                     AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)"""
    ),
    "q21, LEFT ANTI JOIN": """
        SELECT s_name, COUNT(*) AS numwait
        FROM supplier JOIN lineitem AS l1 ON s_suppkey = l1.l_suppkey JOIN orders ON o_orderkey = l1.l_orderkey
          JOIN nation ON s_nationkey = n_nationkey
          LEFT SEMI JOIN lineitem AS l2 ON l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey
          LEFT ANTI JOIN lineitem AS l3 ON l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
            AND l3.l_receiptdate > l3.l_commitdate
        WHERE o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND n_name = 'SAUDI ARABIA'
        GROUP BY s_name
    """,
    "q21, first rows": _first("q21", "numwait DESC, s_name LIMIT 2"),
    "q22, NOT IN": _Q22.format(
        joined="", idle=f"AND {_RICH} AND c_custkey NOT IN (SELECT o_custkey FROM orders WHERE o_custkey IS NOT NULL)"
    ),
    "q22, NOT IN with NULLs": _Q22.format(joined="", idle="AND c_custkey NOT IN (SELECT o_custkey FROM orders)"),
    "q22, LEFT JOIN": _Q22.format(
        joined="LEFT JOIN orders ON o_custkey = c_custkey", idle=f"AND {_RICH} AND o_orderkey IS NULL"
    ),
    "q22, LEFT ANTI JOIN": _Q22.format(joined="LEFT ANTI JOIN orders ON o_custkey = c_custkey", idle=f"AND {_RICH}"),
    "q22, scalar COUNT": _Q22.format(
        joined="", idle=f"AND {_RICH} AND (SELECT COUNT(*) FROM orders WHERE o_custkey = c_custkey) = 0"
    ),
    "q11, worth of all parts": """
        SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS worth
        FROM partsupp, supplier WHERE ps_suppkey = s_suppkey GROUP BY ps_partkey
    """,
    "q17, sum": """
        SELECT SUM(l.l_extendedprice) AS total FROM lineitem AS l, part AS p
        WHERE p.p_partkey = l.l_partkey
          AND l.l_quantity < 0.005 * (SELECT SUM(m.l_quantity) FROM lineitem AS m WHERE m.l_partkey = p.p_partkey)
    """,
    "q18, two levels": """
        SELECT c_custkey, SUM(a.l_quantity) AS quantity FROM customer, orders, lineitem AS a
        WHERE 1 <= (
            SELECT SUM(1) FROM lineitem AS b
            WHERE a.l_orderkey = b.l_orderkey
              AND 100 < (SELECT SUM(c.l_quantity) FROM lineitem AS c WHERE b.l_orderkey = c.l_orderkey))
          AND c_custkey = o_custkey AND o_orderkey = a.l_orderkey
        GROUP BY c_custkey
    """,
    "q22, by nation": """
        SELECT c.c_nationkey, SUM(c.c_acctbal) AS total FROM customer AS c
        WHERE c.c_acctbal < (SELECT SUM(d.c_acctbal) FROM customer AS d WHERE d.c_acctbal > 0)
          AND 0 = (SELECT COUNT(*) FROM orders WHERE o_custkey = c.c_custkey)
        GROUP BY c.c_nationkey
    """,
    "q22, CTE": f"""
        WITH rich AS (SELECT SUBSTRING(c_phone, 1, 2) AS cntrycode, c_acctbal, c_custkey FROM customer
                      WHERE SUBSTRING(c_phone, 1, 2) IN {_CODES}),
          mean AS (SELECT AVG(c_acctbal) AS mean FROM rich WHERE c_acctbal > 0.00)
        SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM rich
        WHERE c_acctbal > (SELECT mean FROM mean) AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
        GROUP BY cntrycode ORDER BY cntrycode
    """,
}  # fmt: skip

SUITE = Suite(
    TABLES,
    {
        **{name: Query(text) for name, (_, text) in QUERIES.items()},
        **{name: one if isinstance(one, Query) else Query(one) for name, one in _SPELLINGS.items()},
    },
)
