"""The 22 queries of TPC-H as views (without ORDER BY and LIMIT) over the tables of scale factor 0.1 as a stream.

The rows of the tables a query reads are inserted in batches of 1000, tables interleaved in proportion, each
batch an Arrow record batch with all columns of its table; then every tenth batch is deleted. The tables are
trusted; ``q3, checked`` has them stored, with primary keys and deletes checked.
"""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring.machine import ROOT
from benchmarks.measuring.stream import Relation, Stream, interleaved, spread_over, with_deletes
from benchmarks.workloads.tpch_queries import QUERIES

TITLE = "tpch"
UNIT = "rows/s"
TARGETS = {**dict.fromkeys(("q1", "q3", "q6", "q10", "q12", "q14"), 5e6), "q13": 3e6}
LIKE = {"q16": ("q4", 0.5), "q22": ("q4", 0.5)}
"""Cases whose rate must be at least a share of that of another case."""

SCALES = {"": "0.1", "small": "0.01"}
DATA = ROOT / "benchmarks" / "data"

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
    "supplier": Relation(
        "supplier",
        "s_suppkey BIGINT NOT NULL, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
        "s_acctbal DECIMAL(15, 2), s_comment STRING",
        ("s_suppkey",),
    ),
    "partsupp": Relation(
        "partsupp",
        "ps_partkey BIGINT NOT NULL, ps_suppkey BIGINT NOT NULL, ps_availqty INT, ps_supplycost DECIMAL(15, 2), "
        "ps_comment STRING",
        ("ps_partkey", "ps_suppkey"),
    ),
    "region": Relation("region", "r_regionkey BIGINT, r_name STRING, r_comment STRING", ("r_regionkey",)),
}


def prepare() -> None:
    """Generate missing tables with tpchgen-cli."""
    DATA.mkdir(parents=True, exist_ok=True)
    for scale in SCALES.values():
        place = DATA / f"tpch-{scale}"
        if place.exists():
            continue
        with tempfile.TemporaryDirectory(dir=DATA) as folder:
            made = Path(folder) / "made"
            generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
            command = [str(generator), "parquet", "-s", scale, f"--output-dir={made}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            made.rename(place)


def stream(case: str) -> Stream:
    """The stream of a case, ``query[, checked]`` or ``query, small``; the same one at every call."""
    query, _, how = case.partition(", ")
    names, view = QUERIES[query]
    place = DATA / f"tpch-{SCALES['small' if how == 'small' else '']}"
    tables: dict[str, pa.Table] = {name: pq.read_table(place / f"{name}.parquet") for name in names.split()}
    steps = with_deletes(interleaved(tables))
    relations = tuple(RELATIONS[name] for name in tables)
    return Stream(relations, view, steps, spread_over(len(steps), 11), checked=how == "checked")
