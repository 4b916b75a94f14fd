"""The type of every expression is Spark's (ANSI mode)."""

from __future__ import annotations

import pytest

from freshviews.expr.nodes import Literal
from tests.sql.printed import column_types, view

SCALARS = [
    # literals
    ("1", "INT NOT NULL"),
    ("3000000000", "BIGINT NOT NULL"),
    ("0.05", "DECIMAL(2, 2) NOT NULL"),
    ("100.00", "DECIMAL(5, 2) NOT NULL"),
    ("1e3", "DOUBLE NOT NULL"),
    ("1L", "BIGINT NOT NULL"),
    ("1S", "SMALLINT NOT NULL"),
    ("1Y", "TINYINT NOT NULL"),
    ("1.5D", "DOUBLE NOT NULL"),
    ("1.5F", "FLOAT NOT NULL"),
    ("1.5BD", "DECIMAL(2, 1) NOT NULL"),
    ("'x'", "STRING NOT NULL"),
    ("TRUE", "BOOLEAN NOT NULL"),
    ("DATE '2026-01-01'", "DATE NOT NULL"),
    ("TIMESTAMP '2026-01-01 12:00:00'", "TIMESTAMP NOT NULL"),
    ("CAST(NULL AS INT)", "INT"),
    # integers
    ("a + b", "INT"),
    ("a + c", "BIGINT"),
    ("a + id", "BIGINT"),
    ("id + id", "BIGINT NOT NULL"),
    ("i8 + i8", "TINYINT"),
    ("i8 + i16", "SMALLINT"),
    ("a / b", "DOUBLE"),
    ("a div b", "BIGINT"),
    ("a % c", "BIGINT"),
    ("-a", "INT"),
    ("abs(c)", "BIGINT"),
    # floats
    ("f + f", "FLOAT"),
    ("f / f", "DOUBLE"),
    ("f + a", "DOUBLE"),
    ("f + p", "DOUBLE"),
    ("x * a", "DOUBLE"),
    # decimals
    ("p + p", "DECIMAL(13, 2)"),
    ("p - 1", "DECIMAL(13, 2)"),
    ("1 - p", "DECIMAL(13, 2)"),
    ("p + 0.001", "DECIMAL(14, 3)"),
    ("p + a", "DECIMAL(13, 2)"),
    ("p + c", "DECIMAL(23, 2)"),
    ("p * p", "DECIMAL(25, 4)"),
    ("p * (1 - p)", "DECIMAL(26, 4)"),
    ("p * p * p * p", "DECIMAL(38, 6)"),
    ("p % 3", "DECIMAL(3, 2)"),
    ("p div 2", "BIGINT"),
    ("price * 2", "DECIMAL(14, 2) NOT NULL"),
    ("round(p, 1)", "DECIMAL(12, 1)"),
    ("round(p)", "DECIMAL(11, 0)"),
    ("round(p, -2)", "DECIMAL(11, 0)"),
    ("floor(p)", "DECIMAL(11, 0)"),
    ("ceil(x)", "BIGINT"),
    ("floor(a)", "BIGINT"),
    ("round(a, -1)", "INT"),
    ("round(x, 1)", "DOUBLE"),
    ("sign(p)", "DOUBLE"),
    # strings take the type of the other operand
    ("s + 1", "BIGINT"),
    ("s + x", "DOUBLE"),
    ("s * s", "DOUBLE"),
    ("coalesce(s, d)", "DATE"),
    ("s = 3", "BOOLEAN"),
    # choice
    ("coalesce(a, 0)", "INT NOT NULL"),
    ("coalesce(a, b)", "INT"),
    ("coalesce(a, p)", "DECIMAL(12, 2)"),
    ("nullif(id, 3)", "BIGINT"),
    ("nvl(a, 1L)", "BIGINT NOT NULL"),
    ("if(t, a, 1.5)", "DECIMAL(11, 1)"),
    ("iff(t, 1, 2)", "INT NOT NULL"),
    ("CASE WHEN t THEN 1 END", "INT"),
    ("CASE a WHEN 1 THEN d ELSE ts END", "TIMESTAMP"),
    ("greatest(a, id)", "BIGINT NOT NULL"),
    ("least(p, x)", "DOUBLE"),
    # conditions
    ("a = 1", "BOOLEAN"),
    ("a <=> 1", "BOOLEAN NOT NULL"),
    ("a IS NULL", "BOOLEAN NOT NULL"),
    ("t IS NOT TRUE", "BOOLEAN NOT NULL"),
    ("a IS DISTINCT FROM b", "BOOLEAN NOT NULL"),
    ("a BETWEEN 1 AND p", "BOOLEAN"),
    ("id IN (1, 2)", "BOOLEAN NOT NULL"),
    ("s LIKE 'x%' ESCAPE '!'", "BOOLEAN"),
    ("NOT t", "BOOLEAN"),
    # dates
    ("d + 3", "DATE"),
    ("d - 3", "DATE"),
    ("d + INTERVAL '3' DAY", "DATE"),
    ("d + INTERVAL 1 MONTH", "DATE"),
    ("d - INTERVAL 1 YEAR 2 MONTHS", "DATE"),
    ("d + INTERVAL '2' HOUR", "TIMESTAMP"),
    ("ts - INTERVAL '1' DAY", "TIMESTAMP"),
    ("datediff(d, '2026-01-01')", "INT"),
    ("date_add(d, 1)", "DATE"),
    ("date_add(MONTH, 2, d)", "TIMESTAMP"),
    ("add_months(ts, 1)", "DATE"),
    ("year(ts)", "INT"),
    ("extract(DAY FROM d)", "INT"),
    ("extract(SECOND FROM ts)", "DECIMAL(8, 6)"),
    ("trunc(d, 'MM')", "DATE"),
    ("date_trunc('hour', ts)", "TIMESTAMP"),
    ("last_day(d)", "DATE"),
    ("date_format(d, 'yyyy-MM')", "STRING"),
    ("unix_timestamp(ts)", "BIGINT"),
    # strings
    ("s || a", "STRING"),
    ("length(s)", "INT"),
    ("upper(name)", "STRING NOT NULL"),
    ("substring(s, 1, 2)", "STRING"),
    ("substring(s FROM 2)", "STRING"),
    ("trim(BOTH 'x' FROM s)", "STRING"),
    ("position('a' IN s)", "INT"),
    ("concat_ws('-', s, a)", "STRING NOT NULL"),
    ("startswith(s, 'a')", "BOOLEAN"),
    ("regexp_extract(s, '(a)', 1)", "STRING"),
    ("extract(EPOCH FROM ts)", "DECIMAL(20, 6)"),
    ("timestampdiff(MONTH, ts, d)", "BIGINT"),
    ("months_between(ts, d)", "DOUBLE"),
    ("i8 & i16", "SMALLINT"),
    # casts
    ("TRY_CAST(id AS INT)", "INT"),
    ("TRY_CAST(a AS BIGINT)", "BIGINT"),
    ("TRY_CAST(name AS DATE)", "DATE"),
    ("a::DECIMAL(10, 2)", "DECIMAL(10, 2)"),
    ("CAST(x AS FLOAT)", "FLOAT"),
    ("CAST(t AS INT)", "INT"),
    ("CAST(d AS STRING)", "STRING"),
    ("CAST(p AS DECIMAL(5, 1))", "DECIMAL(5, 1)"),
]


@pytest.mark.parametrize(("sql", "expected"), SCALARS)
def test_a_scalar_expression_has_the_same_type_as_in_spark(sql: str, expected: str) -> None:
    assert column_types(view(f"SELECT {sql} AS y FROM r, k")) == f"y {expected}"


AGGREGATES = [
    ("count(*)", "BIGINT NOT NULL"),
    ("count(DISTINCT a, b)", "BIGINT NOT NULL"),
    ("count_if(t)", "BIGINT NOT NULL"),
    ("sum(i8)", "BIGINT"),
    ("sum(id)", "BIGINT NOT NULL"),
    ("sum(p)", "DECIMAL(22, 2)"),
    ("sum(p * (1 - p))", "DECIMAL(36, 4)"),
    ("sum(DISTINCT p)", "DECIMAL(22, 2)"),
    ("stddev(id)", "DOUBLE"),
    ("var_pop(id)", "DOUBLE NOT NULL"),
    ("corr(a, p)", "DOUBLE"),
    ("regr_count(a, x)", "BIGINT NOT NULL"),
    ("any_value(s)", "STRING"),
    ("approx_count_distinct(s)", "BIGINT NOT NULL"),
    ("sum(f)", "DOUBLE"),
    ("sum(s)", "DOUBLE"),
    ("avg(a)", "DOUBLE"),
    ("avg(price)", "DECIMAL(16, 6) NOT NULL"),
    ("avg(x)", "DOUBLE"),
    ("min(s)", "STRING"),
    ("max(price)", "DECIMAL(12, 2) NOT NULL"),
    ("bool_or(t)", "BOOLEAN"),
    ("bit_or(i8)", "TINYINT"),
    ("bit_and(a)", "INT"),
    ("bit_or(id)", "BIGINT NOT NULL"),
    ("max_by(s, id)", "STRING"),
    ("only_value(a)", "INT"),
    ("only_value(id)", "BIGINT NOT NULL"),
    ("min_by(price, a)", "DECIMAL(12, 2)"),
    ("max_by(id, price)", "BIGINT NOT NULL"),
    ("sum(id) FILTER (WHERE t)", "BIGINT"),
    ("sum(a) + 1", "BIGINT"),
]


@pytest.mark.parametrize(("sql", "expected"), AGGREGATES)
def test_an_aggregate_of_a_group_has_the_same_type_as_in_spark(sql: str, expected: str) -> None:
    assert column_types(view(f"SELECT {sql} AS y FROM r, k GROUP BY b")) == f"y {expected}"


def test_only_a_global_count_is_not_null() -> None:
    assert column_types(view("SELECT sum(id) AS x, count(id) AS n FROM k")) == "x BIGINT, n BIGINT NOT NULL"


def test_a_decimal_quotient_has_the_same_digits_as_in_spark() -> None:
    assert column_types(view("SELECT p / p AS y FROM r")) == "y DECIMAL(27, 15)"
    assert column_types(view("SELECT p / 3 AS y FROM r")) == "y DECIMAL(16, 6)"
    assert column_types(view("SELECT 100.00 * sum(p) / sum(p) AS y FROM r")) == "y DECIMAL(38, 12)"


def test_a_condition_may_make_a_column_not_null() -> None:
    assert column_types(view("SELECT a, b FROM r WHERE a > 1 OR a = b")) == "a INT NOT NULL, b INT"
    assert column_types(view("SELECT r.a, e FROM r JOIN s ON r.a = s.b")) == "a INT NOT NULL, e STRING"
    assert column_types(view("SELECT a FROM r WHERE NOT a IS NULL")) == "a INT NOT NULL"
    assert column_types(view("SELECT a, t FROM r WHERE NOT t")) == "a INT, t BOOLEAN NOT NULL"


def test_union_casts_columns_to_their_common_type() -> None:
    found = view("SELECT a, d FROM r UNION ALL SELECT price, NULL FROM k")
    assert column_types(found) == "a DECIMAL(12, 2), d DATE"


CONSTANTS = [
    ("DATE '2026-01-01' - INTERVAL '90' DAY", "2025-10-03"),
    ("DATE '2026-01-31' + INTERVAL 1 MONTH", "2026-02-28"),
    ("DATE '2026-03-01' - INTERVAL '1' YEAR", "2025-03-01"),
    ("DATE '2026-01-01' + 2 * INTERVAL 1 WEEK", "2026-01-15 00:00:00"),
    ("CAST('2026-02-03' AS DATE)", "2026-02-03"),
    ("concat('a', 1 + 2, upper('b'))", "a3B"),
    ("0.06 - 0.01", "0.05"),
    ("round(2.5)", "3"),
    ("1 / 4", "0.25"),
    ("-7 div 2", "-3"),
    ("CASE WHEN 1 > 2 THEN 'x' ELSE 'y' END", "y"),
    ("coalesce(NULL, 'z')", "z"),
    ("2 IN (1, 2, 3)", "true"),
    ("NULL AND FALSE", "false"),
    ("year(DATE '2026-05-01') + 1", "2027"),
]


@pytest.mark.parametrize(("sql", "expected"), CONSTANTS)
def test_constant_expressions_are_computed_when_the_view_is_created(sql: str, expected: str) -> None:
    (block,) = view(f"SELECT CAST({sql} AS STRING) AS y FROM r").blocks
    value = block.outputs[0].expr
    assert isinstance(value, Literal)
    assert value.value == expected
