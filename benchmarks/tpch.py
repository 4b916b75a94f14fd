"""Six queries of TPC-H as views (without ORDER BY and LIMIT) over the tables of scale factor 0.1 as a stream.

The rows of the tables a query reads are inserted in batches of 1000, tables interleaved in proportion, each
batch an Arrow record batch with all columns of its table; then every tenth batch is deleted. The tables are
trusted; ``q3, checked`` has them stored, with primary keys and deletes checked.
"""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import ROOT
from benchmarks.peers import recompute
from benchmarks.stream import Relation, Step, Stream, interleaved, keep_fresh, spread_over

TITLE = "tpch"
CASES = ("q1", "q3", "q3, checked", "q6", "q10", "q12", "q14")
STRATEGIES = ("freshviews", "DuckDB")
UNIT = "rows/s"
TARGETS = {case: 5e6 for case in CASES if "checked" not in case}

SCALE = "0.1"
DATA = ROOT / "benchmarks" / "data" / f"tpch-{SCALE}"

RELATIONS = {
    "customer": Relation(
        "customer",
        "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
        "c_acctbal DECIMAL(15, 2), c_mktsegment STRING, c_comment STRING",
        ("c_custkey",),
    ),
    "orders": Relation(
        "orders",
        "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2), "
        "o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
        ("o_orderkey",),
    ),
    "lineitem": Relation(
        "lineitem",
        "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15, 2), "
        "l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), l_returnflag STRING, "
        "l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, "
        "l_shipmode STRING, l_comment STRING",
        ("l_orderkey", "l_linenumber"),
    ),
    "nation": Relation(
        "nation",
        "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
        ("n_nationkey",),
    ),
    "part": Relation(
        "part",
        "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
        "p_container STRING, p_retailprice DECIMAL(15, 2), p_comment STRING",
        ("p_partkey",),
    ),
}

QUERIES = {
    "q1": (
        ("lineitem",),
        """
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
               SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
               SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS avg_qty,
               AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
        FROM lineitem
        WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
        GROUP BY l_returnflag, l_linestatus
        """,
    ),
    "q3": (
        ("customer", "orders", "lineitem"),
        """
        SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority
        """,
    ),
    "q6": (
        ("lineitem",),
        """
        SELECT SUM(l_extendedprice * l_discount) AS revenue
        FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
          AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24
        """,
    ),
    "q10": (
        ("customer", "orders", "lineitem", "nation"),
        """
        SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name,
               c_address, c_phone, c_comment
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
          AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH AND l_returnflag = 'R'
          AND c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
        """,
    ),
    "q12": (
        ("orders", "lineitem"),
        """
        SELECT l_shipmode,
               SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)
                 AS high_line_count,
               SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END)
                 AS low_line_count
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
          AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
          AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR
        GROUP BY l_shipmode
        """,
    ),
    "q14": (
        ("lineitem", "part"),
        """
        SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
               / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
        FROM lineitem, part
        WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01'
          AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH
        """,
    ),
}


def prepare() -> None:
    """Generate the tables with tpchgen-cli where they are not there."""
    if DATA.exists():
        return
    DATA.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DATA.parent) as folder:
        made = Path(folder) / "made"
        generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        command = [str(generator), "parquet", "-s", SCALE, f"--output-dir={made}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        made.rename(DATA)


def stream(query: str) -> Stream:
    """The stream of a query; the same one at every call."""
    names, view = QUERIES[query]
    tables: dict[str, pa.Table] = {name: pq.read_table(DATA / f"{name}.parquet") for name in names}
    inserts = interleaved(tables)
    deletes = [Step(-1, step.table, step.rows) for step in inserts[::10]]
    steps = (*inserts, *deletes)
    return Stream(tuple(RELATIONS[name] for name in names), view, steps, spread_over(len(steps), 11))


def measure(case: str, strategy: str) -> dict[str, Any]:
    given = stream(case.split(",")[0])
    return keep_fresh(given, checked="checked" in case) if strategy == "freshviews" else recompute(given)
