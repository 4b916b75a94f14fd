"""The TPC-H queries of the benchmarks are accepted unchanged, without ORDER BY and LIMIT."""

from __future__ import annotations

import pytest

from freshviews.sql import Catalog
from tests.sql.printed import catalog, query_text, view, views

TABLES = """
CREATE TABLE part (p_partkey BIGINT PRIMARY KEY, p_name STRING, p_mfgr STRING, p_brand STRING,
  p_type STRING, p_size INT, p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING);
CREATE TABLE supplier (s_suppkey BIGINT PRIMARY KEY, s_name STRING, s_address STRING, s_nationkey
  BIGINT, s_phone STRING, s_acctbal DECIMAL(15,2), s_comment STRING);
CREATE TABLE customer (c_custkey BIGINT PRIMARY KEY, c_name STRING, c_address STRING, c_nationkey
  BIGINT, c_phone STRING, c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING);
CREATE TABLE orders (o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT, o_orderstatus STRING,
  o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING, o_clerk STRING,
  o_shippriority INT, o_comment STRING);
CREATE TABLE lineitem (l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT,
  l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax
  DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE,
  l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING, PRIMARY KEY
  (l_orderkey, l_linenumber));
CREATE TABLE nation (n_nationkey BIGINT PRIMARY KEY, n_name STRING, n_regionkey BIGINT, n_comment
  STRING);
CREATE TABLE region (r_regionkey BIGINT PRIMARY KEY, r_name STRING, r_comment STRING);
"""

QUERIES = {
    "q1": """
        select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as
        sum_base_price, sum(l_extendedprice * (1 - l_discount)) as sum_disc_price, sum(l_extendedprice * (1
        - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty, avg(l_extendedprice) as
        avg_price, avg(l_discount) as avg_disc, count(*) as count_order from lineitem where l_shipdate <=
        date '1998-12-01' - interval '90' day group by l_returnflag, l_linestatus""",
    "q3": """
        select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
        from customer, orders, lineitem where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and
        l_orderkey = o_orderkey and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15' group
        by l_orderkey, o_orderdate, o_shippriority""",
    "q5": """
        select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue from customer, orders, lineitem,
        supplier, nation, region where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey =
        s_suppkey and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
        and r_name = 'ASIA' and o_orderdate >= date '1994-01-01' and o_orderdate < date '1994-01-01' +
        interval '1' year group by n_name""",
    "q6": """
        select sum(l_extendedprice * l_discount) as revenue from lineitem where l_shipdate >= date
        '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year and l_discount between 0.06 -
        0.01 and 0.06 + 0.01 and l_quantity < 24""",
    "q10": """
        select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name,
        c_address, c_phone, c_comment from customer, orders, lineitem, nation where c_custkey = o_custkey
        and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01' and o_orderdate < date '1993-10-01'
        + interval '3' month and l_returnflag = 'R' and c_nationkey = n_nationkey group by c_custkey,
        c_name, c_acctbal, c_phone, n_name, c_address, c_comment""",
    "q12": """
        select l_shipmode, sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1
        else 0 end) as high_line_count, sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <>
        '2-HIGH' then 1 else 0 end) as low_line_count from orders, lineitem where o_orderkey = l_orderkey
        and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate and l_shipdate < l_commitdate
        and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1994-01-01' + interval '1' year
        group by l_shipmode""",
    "q14": """
        select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0
        end) / sum(l_extendedprice * (1 - l_discount)) as promo_revenue from lineitem, part where l_partkey
        = p_partkey and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-09-01' + interval '1'
        month""",
}


@pytest.fixture(scope="module")
def tpch() -> Catalog:
    return catalog(TABLES)


@pytest.mark.parametrize("name", QUERIES)
def test_a_benchmark_query_is_one_block(tpch: Catalog, name: str) -> None:
    found = views(QUERIES[name], tpch, name)
    assert [one.name for one in found] == [name]
    (block,) = found[0].blocks
    assert not block.query.conditions


@pytest.mark.parametrize("name", QUERIES)
def test_every_sum_over_several_tables_is_a_product_of_lifts(tpch: Catalog, name: str) -> None:
    (block,) = views(QUERIES[name], tpch, name)[0].blocks
    for aggregate in block.query.aggregates:
        assert all(lift.atom is not None for lift in aggregate.lifts)


def test_q3_joins_on_one_variable_per_key(tpch: Catalog) -> None:
    text = query_text(view(QUERIES["q3"], tpch).blocks[0].query)
    assert text.startswith(
        "v(o_orderkey, o_orderdate, o_shippriority) = "
        "customer(c_custkey | eq(c_mktsegment, 'BUILDING')) "
        "orders(o_orderkey, c_custkey=o_custkey, o_orderdate, o_shippriority "
        "| lt(o_orderdate, 9204) & is_not_null(o_custkey)) "
        "lineitem(o_orderkey=l_orderkey | gt(l_shipdate, 9204));"
    )


def test_q5_joins_three_tables_on_one_variable(tpch: Catalog) -> None:
    query = view(QUERIES["q5"], tpch).blocks[0].query
    assert [a.name for a in query.atoms if "c_nationkey" in a.variables] == ["customer", "supplier", "nation"]


def test_q14_computes_each_factor_of_its_sums_at_the_table_of_its_columns(tpch: Catalog) -> None:
    query = view(QUERIES["q14"], tpch).blocks[0].query
    promotion = [a for a in query.aggregates if len(a.lifts) == 2 and a.name.startswith("sum")]
    assert [lift.atom for lift in promotion[0].lifts] == ["lineitem", "part"]
    assert all(set(atom.variables) <= {"l_partkey"} for atom in query.atoms)


Q18 = """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE {big} AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice"""

BIG = "SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300"


def test_q18_with_an_in_condition_needs_one_internal_view(tpch: Catalog) -> None:
    found = views(Q18.format(big=f"o_orderkey IN ({BIG})"), tpch)
    assert [one.name for one in found] == ["v#1", "v"]
    assert found[0].blocks[0].having is not None


Q16 = """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
  AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size"""

PARTSUPP = """CREATE TABLE partsupp (ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2),
  ps_comment STRING{key});
"""


def test_q16_has_a_negated_atom_if_keys_are_declared() -> None:
    known = catalog(TABLES + PARTSUPP.format(key=", PRIMARY KEY (ps_partkey, ps_suppkey)"))
    (block,) = view(Q16, known).blocks
    (absent,) = block.query.negated
    assert absent.relation == "supplier" and absent.variables == ("ps_suppkey",)
    # The key may be NULL: NOT IN then requires that no row matches, and for a NULL that there is no row.
    (block,) = view(Q16, catalog(TABLES + PARTSUPP.format(key=""))).blocks
    assert [atom.variables for atom in block.query.negated] == [("ps_suppkey",), ("case_ps_suppkey",)]
    assert not any(atom.given is not None for atom in block.query.atoms)


def test_q18_with_a_join_needs_one_internal_view(tpch: Catalog) -> None:
    sql = Q18.format(big="o_orderkey = big.l_big").replace(
        "orders, lineitem", f"orders, lineitem, ({BIG}) AS big(l_big)"
    )
    found = views(sql, tpch)
    assert [one.name for one in found] == ["v#1", "v"]
    assert found[0].blocks[0].having is not None
