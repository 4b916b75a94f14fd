"""A DECIMAL of more than 18 digits holds all of its digits, and means what it means in Spark.

The answers of ``EXPRESSIONS`` are those of Spark 4.1 in ANSI mode.
"""

from __future__ import annotations

import random
import re
import struct
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshviews import BatchError, Database, EvaluationError, SqlError
from freshviews.cells import plan_cells
from freshviews.cells.routing_by_row import cast
from freshviews.engine.commit.collection import Collection
from freshviews.engine.commit.records import changes_of
from freshviews.store.record import WORDS, Record
from freshviews.types import NULL
from freshviews.types.sqltype import text_of, value_of_text
from tests.cells.simulated import catalog_of, check, random_versions

pytestmark = pytest.mark.plain_python(only=True)

MOST = 10**38 - 1
LARGE = Decimal("1234567890123456789012345678.1234567891")


def rows_of(db: Database, view: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in db.view(view))


def made(script: str, **rows: list[tuple[Any, ...]]) -> Database:
    db = Database()
    db.execute(script)
    for table, given in rows.items():
        db.insert(table, given)
    return db


def test_texts_of_wide_decimals_sort_like_their_values() -> None:
    ends = [0, *(10**n + d for n in range(77) for d in (-1, 0, 1))]
    values = sorted({*ends, *(-one for one in ends)})
    texts = [text_of(value) for value in values]
    assert all(one.encode() < other.encode() for one, other in pairwise(texts))
    assert [value_of_text(text) for text in texts] == values


def test_a_column_holds_38_digits_in_python_and_in_arrow() -> None:
    kinds = ("DECIMAL(38, 0)", "DECIMAL(38, 38)", "DECIMAL(38, 10)")
    for kind, scale in zip(kinds, (0, 38, 10), strict=True):
        values = [Decimal(u).scaleb(-scale, Context(prec=60)) for u in (MOST, -MOST, 0, 1, -1, 2**63, -(2**63), 2**64)]
        array = pa.array([*values, None], pa.decimal128(38, scale))
        db = made(f"CREATE TABLE t (x {kind}); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
        db.insert("t", [(value,) for value in values])
        db.insert("t", pa.table({"x": array}))
        assert db.view("v").to_arrow().column("x").type == array.type
        assert rows_of(db, "v") == Counter({**{(value,): 2 for value in values}, (None,): 1})
        db.delete("t", pa.table({"x": array}))
        assert Counter(db.view("v").to_arrow().column("x").to_pylist()) == Counter(values)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Decimal(10**38), r"DECIMAL\(38, 0\) accepts 38 digits before the point"),
        (Decimal("0.5"), r"DECIMAL\(38, 0\) accepts 0 digits after the point"),
        (1.5, r"DECIMAL\(38, 0\) accepts decimal.Decimal and int, not float"),
    ],
)
def test_a_value_that_does_not_fit_the_type_is_refused(given: Any, reason: str) -> None:
    db = made("CREATE TABLE t (x DECIMAL(38, 0)); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
    with pytest.raises(BatchError, match=f"table t, row 0, column x: .*{reason}"):
        db.insert("t", [(given,)])


EXPRESSIONS = [
    ("x + y", "20, 2", "33063820970617352.89", "5, 0", "1", "decimal128(21, 2)", "33063820970617353.89"),
    ("x + y", "27, 15", "999999999999.999999999999999", "18, 6", "-1020.638427", "decimal128(28, 15)",
     "999999998979.361572999999999"),
    ("x - y", "38, 0", "99999999999999999999999999999999999999", "38, 0", "1", "decimal128(38, 0)",
     "99999999999999999999999999999999999998"),
    ("x * y", "20, 2", "-50000000.00", "38, 18", "0.000000000000479535", "decimal128(38, 6)", "-0.000024"),
    ("x * y", "38, 18", "1.000000000000000000", "27, 15", "999999999999.999999999999999", "decimal128(38, 6)",
     "1000000000000.000000"),
    ("x / y", "38, 18", "-0.000000000000000092", "27, 15", "999999999999.999999999999999", "decimal128(38, 6)",
     "0.000000"),
    ("x % y", "20, 2", "-74298065666.41", "38, 0", "-500000000000000000", "decimal128(20, 2)", "-74298065666.41"),
    ("-x", "27, 15", "0.000000000000000", "20, 2", "1.00", "decimal128(27, 15)", "0.000000000000000"),
    ("abs(x)", "38, 10", "-1657.9694550970", "12, 2", "-0.94", "decimal128(38, 10)", "1657.9694550970"),
    ("abs(x)", "38, 10", "0.0000000000", "38, 38", "0.00000000000000000000000000000000000500", "decimal128(38, 10)",
     "0.0000000000"),
    ("CAST(x AS STRING)", "38, 10", "1500000000.0000000000", "20, 2", "-8.16", "string", "'1500000000.0000000000'"),
    ("CAST(x AS STRING)", "20, 2", "2500.00", "38, 10", "2500000000000000000000000000.0000000000", "string",
     "'2500.00'"),
    ("x < y", "12, 2", "-9999999999.99", "38, 10", "1.0000000000", "bool", "True"),
    ("x < y", "27, 15", "0.000000000000000", "20, 2", "-50000000000.00", "bool", "False"),
    ("x = y", "20, 2", "999999999999999999.99", "38, 10", "1500000.0000000000", "bool", "False"),
    ("x = y", "38, 18", "25.000000000000000000", "12, 2", "-0.50", "bool", "False"),
    ("x <=> y", "38, 10", "50000000.0000000000", "20, 2", "-999999999999999999.99", "bool", "False"),
    ("x <=> y", "38, 0", "-99999999999999999999999999999999999999", "38, 10",
     "9999999999999999999999999999.9999999999", "bool", "False"),
    ("x >= y", "38, 0", "-99999999999999999999999999999999999999", "38, 38",
     "0.99999999999999999999999999999999999999", "bool", "False"),
    ("x >= y", "38, 38", "", "38, 38", "0.00000000000000000000000000000000000000", "bool", "None"),
    ("greatest(x,y)", "38, 18", "99999999999999999999.999999999999999999", "5, 0", "99999", "decimal128(38, 18)",
     "99999999999999999999.999999999999999999"),
    ("greatest(x,y)", "20, 2", "", "38, 18", "99999999999999999999.999999999999999999", "decimal128(38, 18)",
     "99999999999999999999.999999999999999999"),
    ("least(x,y)", "27, 15", "-0.000000000000065", "38, 10", "9999999999999999999999999999.9999999999",
     "decimal128(38, 10)", "0.0000000000"),
    ("least(x,y)", "38, 0", "0", "18, 6", "0.000000", "decimal128(38, 0)", "0"),
    ("coalesce(x,y)", "38, 18", "-0.000000000000000078", "38, 38", "0.00000000000000000000000000000000000000",
     "decimal128(38, 18)", "-0.000000000000000078"),
    ("coalesce(x,y)", "20, 2", "1.00", "38, 10", "9999999999999999999999999999.9999999999", "decimal128(38, 10)",
     "1.0000000000"),
    ("CAST(x AS DOUBLE)", "20, 2", "5.00", "38, 0", "99999999999999999999999999999999999999", "double", "5.0"),
    ("CAST(x AS DOUBLE)", "38, 0", "0", "38, 10", "0.0000000000", "double", "0.0"),
    ("CAST(x AS BIGINT)", "27, 15", "0.000000000000000", "38, 10", "9999999999999999999999999999.9999999999", "int64",
     "0"),
    ("TRY_CAST(x AS INT)", "20, 2", "-0.63", "18, 6", "0.000000", "int32", "0"),
    ("TRY_CAST(x AS INT)", "27, 15", "0.000000000000069", "20, 2", "-27085442864453.13", "int32", "0"),
    ("TRY_CAST(x AS DECIMAL(20,3))", "27, 15", "1.000000000000000", "38, 18", "1.000000000000000000",
     "decimal128(20, 3)", "1.000"),
    ("TRY_CAST(x AS DECIMAL(20,3))", "38, 10", "-0.0000000046", "20, 2", "-999999999999999999.99",
     "decimal128(20, 3)", "0.000"),
    ("CAST(x AS DECIMAL(38,6))", "38, 10", "9999999999999999999999999999.9999999999", "18, 6", "0.000000",
     "decimal128(38, 6)", "10000000000000000000000000000.000000"),
    ("CAST(x AS DECIMAL(38,6))", "38, 0", "-522708020357915643", "27, 15", "-618666.189294717198914",
     "decimal128(38, 6)", "-522708020357915643.000000"),
    ("TRY_CAST(x AS DECIMAL(10,2))", "38, 18", "0.000000000000000056", "18, 6", "999999999999.999999",
     "decimal128(10, 2)", "0.00"),
    ("TRY_CAST(x AS DECIMAL(10,2))", "38, 18", "1.000000000000000000", "27, 15", "500000.000000000000000",
     "decimal128(10, 2)", "1.00"),
    ("round(x, 2)", "38, 10", "1.0000000000", "12, 2", "-0.39", "decimal128(31, 2)", "1.00"),
    ("round(x, 2)", "38, 10", "9999999999999999999999999999.9999999999", "38, 0", "0", "decimal128(31, 2)",
     "10000000000000000000000000000.00"),
    ("round(x)", "27, 15", "-999999999999.999999999999999", "38, 18", "1.000000000000000000", "decimal128(13, 0)",
     "-1000000000000"),
    ("round(x)", "27, 15", "34221014.046601677554683", "20, 2", "-0.11", "decimal128(13, 0)", "34221014"),
    ("round(x,-2)", "27, 15", "", "5, 0", "-99999", "decimal128(13, 0)", "None"),
    ("round(x,-2)", "20, 2", "0.00", "20, 2", "2216652099695.25", "decimal128(19, 0)", "0"),
    ("floor(x)", "38, 18", "1500000000000.000000000000000000", "38, 0", "67", "decimal128(21, 0)", "1500000000000"),
    ("floor(x)", "38, 10", "0.0000000000", "38, 10", "0.0000000000", "decimal128(29, 0)", "0"),
    ("ceil(x)", "20, 2", "999999999999999999.99", "38, 0", "38", "decimal128(19, 0)", "1000000000000000000"),
    ("ceil(x)", "38, 38", "0.00000000000000000000000000000000000030", "27, 15", "999999999999.999999999999999",
     "decimal128(1, 0)", "1"),
    ("bround(x,1)", "38, 0", "25", "18, 6", "999999999999.999999", "decimal128(38, 0)", "25"),
    ("bround(x,1)", "38, 10", "0.1500000000", "38, 10", "872282406535195975472773.4223285988", "decimal128(30, 1)",
     "0.2"),
    ("sign(x)", "38, 18", "0.000000000000000000", "18, 6", "999999999999.999999", "double", "0.0"),
    ("sign(x)", "38, 10", "0.0000000000", "18, 6", "-50000000000.000000", "double", "0.0"),
    ("x IN (1, 2.5, 12345678901234567890)", "27, 15", "1.000000000000000", "5, 0", "1", "bool", "True"),
    ("x IN (1, 2.5, 12345678901234567890)", "27, 15", "15000.000000000000000", "20, 2", "160826492450.05", "bool",
     "False"),
    ("x > 12345678901234567890.5", "27, 15", "999999999999.999999999999999", "38, 0",
     "250000000000000000000000000000000000", "bool", "False"),
    ("x > 12345678901234567890.5", "27, 15", "999999999999.999999999999999", "38, 10",
     "250000000000000000.0000000000", "bool", "False"),
    ("x + 1", "27, 15", "0.000000000000012", "20, 2", "1.00", "decimal128(28, 15)", "1.000000000000012"),
    ("x + 1", "20, 2", "5000000.00", "5, 0", "-99999", "decimal128(21, 2)", "5000001.00"),
    ("x * 2.5", "38, 38", "0.00000099948652175962427227557852880972", "38, 18",
     "-99999999999999999999.999999999999999999", "decimal128(38, 36)", "0.000002498716304399060680688946322024"),
    ("x / 3", "27, 15", "-999999999999.999999999999999", "20, 2", "-5000000000000000.00", "decimal128(29, 17)",
     "-333333333333.33333333333333300"),
    ("x / 3", "38, 38", "0.10000000000000000000000000000000000000", "27, 15", "-0.000000000000053",
     "decimal128(38, 38)", "0.03333333333333333333333333333333333333"),
    ("nullif(x,y)", "38, 0", "99999999999999999999999999999999999999", "38, 38",
     "0.00000000000000000000000000000000000000", "decimal128(38, 0)", "99999999999999999999999999999999999999"),
    ("CASE WHEN x > y THEN x ELSE y END", "38, 0", "1", "12, 2", "0.00", "decimal128(38, 0)", "1"),
    ("CASE WHEN x > y THEN x ELSE y END", "38, 10", "9999999999999999999999999999.9999999999", "20, 2",
     "999999999999999999.99", "decimal128(38, 10)", "9999999999999999999999999999.9999999999"),
    ("CAST(x AS BOOLEAN)", "38, 10", "", "38, 18", "99999999999999999999.999999999999999999", "bool", "None"),
    ("CAST(x AS BOOLEAN)", "38, 18", "0.000000000000000000", "5, 0", "1", "bool", "False"),
    ("hash(x)", "38, 10", "1.0000000000", "38, 10", "2.5000000000", "int32", "-913492360"),
    ("hash(x)", "38, 38", "-0.99999999999999999999999999999999999999", "38, 10", "0.0000000073", "int32",
     "1400911110"),
    ("xxhash64(x)", "38, 0", "99999999999999999999999999999999999999", "38, 0", "1", "int64", "-47190729175993179"),
    ("xxhash64(x)", "38, 0", "11", "38, 18", "-99999999999999999999.999999999999999999", "int64",
     "1067589099684441610"),
    ("pmod(x,y)", "38, 18", "1.000000000000000000", "27, 15", "-999999999999.999999999999999", "decimal128(30, 18)",
     "1.000000000000000000"),
    ("pmod(x,y)", "38, 10", "-98.4456475695", "12, 2", "1.00", "decimal128(20, 10)", "0.5543524305"),
    ("x div y", "38, 0", "0", "38, 18", "1.000000000000000000", "int64", "0"),
    ("x div y", "38, 18", "0.150000000000000000", "12, 2", "-0.70", "int64", "0"),
    ("try_add(x,y)", "38, 18", "0.000000000000000038", "38, 38", "0.00000000000000000000000000000000000000",
     "decimal128(38, 17)", "0.000000000000000040"),
    ("try_add(x,y)", "38, 38", "0.00000000000000000000000000000000000000", "12, 2", "-9999999999.99",
     "decimal128(38, 27)", "-9999999999.990000000000000000000000000"),
    ("try_divide(x,y)", "38, 0", "64", "38, 18", "0.000500000000000000", "decimal128(38, 6)", "128000.000000"),
    ("try_divide(x,y)", "38, 38", "-0.00050000000000000000000000000000000000", "27, 15",
     "999999999999.999999999999999", "decimal128(38, 23)", "-0.00000000000000050000000"),
    ("try_multiply(x,y)", "20, 2", "0.00", "5, 0", "99999", "decimal128(26, 2)", "0.00"),
    ("try_multiply(x,y)", "38, 0", "-99999999999999999999999999999999999999", "20, 2", "0.14", "decimal128(38, 2)",
     "None"),
    ("try_subtract(x,y)", "5, 0", "-2", "20, 2", "-0.29", "decimal128(21, 2)", "-1.71"),
    ("try_subtract(x,y)", "38, 38", "0.00000000050000000000000000000000000000", "5, 0", "1", "decimal128(38, 32)",
     "-0.99999999950000000000000000000000"),
    ("TRY_CAST(CAST(x AS STRING) AS DECIMAL(38,4))", "38, 18", "99999999999999999999.999999999999999999", "38, 10",
     "327130814843113.7320891679", "decimal128(38, 4)", "100000000000000000000.0000"),
    ("TRY_CAST(CAST(x AS STRING) AS DECIMAL(38,4))", "20, 2", "-439054647048.13", "5, 0", "1500", "decimal128(38, 4)",
     "-439054647048.1300"),
    ("CAST(CAST(x AS DOUBLE) AS DECIMAL(38,4))", "27, 15", "0.000000000000070", "27, 15", "0.000000000000000",
     "decimal128(38, 4)", "0.0000"),
    ("CAST(CAST(x AS DOUBLE) AS DECIMAL(38,4))", "27, 15", "500000.000000000000000", "38, 18",
     "-99999999999999999999.999999999999999999", "decimal128(38, 4)", "500000.0000"),
    ("x BETWEEN -1 AND y", "12, 2", "83513806.74", "20, 2", "999999999999999999.99", "bool", "True"),
    ("x BETWEEN -1 AND y", "38, 10", "1.0000000000", "12, 2", "-9999999999.99", "bool", "False"),
    ("format_number(x, 2)", "5, 0", "54", "38, 0", "0", "string", "'54.00'"),
    ("format_number(x, 2)", "38, 0", "-99999999999999999999999999999999999999", "38, 0", "1", "string",
     "'-99,999,999,999,999,999,999,999,999,999,999,999,999.00'"),
    ("pmod(x, -3)", "38, 0", "324500486117337582516067423", "38, 18", "0.000000000000000000", "decimal128(1, 0)",
     "1"),
    ("pmod(x, -3)", "27, 15", "1.000000000000000", "12, 2", "-9999999999.99", "decimal128(16, 15)",
     "1.000000000000000"),
    ("x div 7", "38, 38", "0.00000000000000000000000000000000000030", "38, 38",
     "0.00000000000000000001500000000000000000", "int64", "0"),
    ("x div 7", "38, 38", "-0.99999999999999999999999999999999999999", "20, 2", "-999999999999999999.99", "int64",
     "0"),
    ("x + CAST(7 AS BIGINT)", "27, 15", "999999999999.999999999999999", "20, 2", "999999999999999999.99",
     "decimal128(36, 15)", "1000000000006.999999999999999"),
    ("x + CAST(7 AS BIGINT)", "38, 38", "0.99999999999999999999999999999999999999", "27, 15",
     "-999999999999.999999999999999", "decimal128(38, 17)", "8.00000000000000000"),
    ("x = CAST(y AS BIGINT)", "27, 15", "0.000000000000000", "27, 15", "-999999999999.999999999999999", "bool",
     "False"),
    ("x = CAST(y AS BIGINT)", "27, 15", "-0.000624885049568", "20, 2", "-843.00", "bool", "False"),
    ("width_bucket(x, -10, 10, 4)", "20, 2", "7179185722.83", "20, 2", "1.00", "int64", "5"),
    ("width_bucket(x, -10, 10, 4)", "27, 15", "1.000000000000000", "38, 18",
     "-99999999999999999999.999999999999999999", "int64", "3"),
    ("bin(CAST(x AS BIGINT))", "20, 2", "-0.79", "38, 18", "5000000000.000000000000000000", "string", "'0'"),
    ("bin(CAST(x AS BIGINT))", "27, 15", "1.000000000000000", "18, 6", "1.000000", "string", "'1'"),
    ("isnull(x)", "38, 0", "50000000000000000000", "38, 10", "-73910920886.2627476434", "bool", "False"),
    ("isnull(x)", "38, 38", "0.00000000000000000000000000000000000000", "38, 18",
     "-7647655616383591767.415106524805788533", "bool", "False"),
    ("power(x, 2)", "5, 0", "-93", "20, 2", "0.74", "double", "8649.0"),
    ("power(x, 2)", "20, 2", "0.00", "12, 2", "-50000000.00", "double", "0.0"),
    ("sqrt(abs(x))", "38, 38", "0.10000000000000000000000000000000000000", "27, 15", "-0.000000000000094", "double",
     "0.31622776601683794"),
    ("sqrt(abs(x))", "5, 0", "-94", "38, 10", "0.0000000000", "double", "9.695359714832659"),
    ("floor(x, 1)", "20, 2", "500000000.00", "38, 10", "9999999999999999999999999999.9999999999", "decimal128(20, 1)",
     "500000000.0"),
    ("floor(x, 1)", "38, 38", "0.00000000000000000000000000000000000000", "38, 10", "0.0000000000",
     "decimal128(2, 1)", "0.0"),
    ("ceil(x, -1)", "38, 10", "-9999999999999999999999999999.9999999999", "38, 10", "0.0000000000",
     "decimal128(29, 0)", "-9999999999999999999999999990"),
    ("ceil(x, -1)", "38, 10", "1.0000000000", "18, 6", "-4141800.881215", "decimal128(29, 0)", "10"),
    ("mod(x, 7)", "38, 18", "0.000000000000000000", "38, 38", "0.99999999999999999999999999999999999999",
     "decimal128(19, 18)", "0.000000000000000000"),
    ("mod(x, 7)", "38, 18", "0.000000000000000000", "38, 0", "-99", "decimal128(19, 18)", "0.000000000000000000"),
    ("if(x > 0, x, 0)", "20, 2", "", "38, 10", "0.0000000000", "decimal128(20, 2)", "0.00"),
    ("if(x > 0, x, 0)", "38, 0", "99999999999999999999999999999999999999", "5, 0", "-5975", "decimal128(38, 0)",
     "99999999999999999999999999999999999999"),
    ("concat(x, '|', y)", "20, 2", "999999999999999999.99", "12, 2", "3312054986.37", "string",
     "'999999999999999999.99|3312054986.37'"),
    ("signum(x)", "38, 18", "99999999999999999999.999999999999999999", "38, 38",
     "0.10000000000000000000000000000000000000", "double", "1.0"),
    ("signum(x)", "20, 2", "999999999999999999.99", "38, 0", "-72", "double", "1.0"),
    ("x IS DISTINCT FROM y", "38, 10", "250000000000000000000000.0000000000", "38, 38",
     "-0.99999999999999999999999999999999999999", "bool", "True"),
    ("x IS DISTINCT FROM y", "20, 2", "1.00", "38, 38", "0.00000000000000000000000000000000000061", "bool", "True"),
]  # fmt: skip
"""An expression, the type and the value of x and of y, and Spark's answer: its Arrow type and the value as a text."""

ERRORS = [
    ("x - y", "38, 18", "-0.000000027708391984", "38, 0", "99999999999999999999999999999999999999"),
    ("x / y", "27, 15", "-0.000000000000133", "38, 10", "0.0000000000"),
    ("x % y", "38, 38", "0.00000000000000000000000000000429114095", "38, 10", "0.0000000000"),
    ("CAST(x AS BIGINT)", "38, 18", "99999999999999999999.999999999999999999", "18, 6", "5000.000000"),
    ("x * 2.5", "38, 0", "99999999999999999999999999999999999999", "38, 18", "0.000000000000000000"),
]  # fmt: skip
"""As ``EXPRESSIONS``, where Spark has an error."""


def _number(text: str) -> Decimal | None:
    return Decimal(text) if text else None


def _numbered(sql: str, number: int) -> str:
    return re.sub(r"\b([xy])\b", rf"\g<1>{number}", sql)


def test_expressions_have_the_same_types_and_values_as_in_spark() -> None:
    cases = [*enumerate(EXPRESSIONS)]
    columns = ", ".join(f"x{i} DECIMAL({of}), y{i} DECIMAL({to})" for i, (_, of, _, to, _, _, _) in cases)
    items = ", ".join(f"{_numbered(sql, i)} AS r{i}" for i, (sql, *_) in cases)
    db = made(f"CREATE TABLE t ({columns}); CREATE MATERIALIZED VIEW v AS SELECT {items} FROM t")
    db.insert("t", [tuple(_number(one) for _, _, x, _, y, _, _ in EXPRESSIONS for one in (x, y))])
    table = db.view("v").to_arrow()
    for (sql, _, x, _, y, kind, value), column in zip(EXPRESSIONS, table.columns, strict=False):
        (found,) = column.to_pylist()
        expected = Decimal(value) if isinstance(found, Decimal) else value
        assert (str(column.type), found if isinstance(found, Decimal) else repr(found)) == (kind, expected), (sql, x, y)


@pytest.mark.parametrize(("sql", "of", "x", "to", "y"), ERRORS)
def test_an_expression_that_fails_in_spark_raises_an_error(sql: str, of: str, x: str, to: str, y: str) -> None:
    table = f"CREATE TABLE t (x DECIMAL({of}), y DECIMAL({to}))"
    with pytest.raises(EvaluationError, match=r"overflow|division by zero|does not fit"):
        made(f"{table}; CREATE MATERIALIZED VIEW v AS SELECT {sql} AS r FROM t", t=[(_number(x), _number(y))])


def test_aggregates_are_exact_while_rows_come_and_go() -> None:
    db = made(
        """CREATE TABLE t (g INT, x DECIMAL(36, 10), y DECIMAL(30, 0));
        CREATE MATERIALIZED VIEW v AS SELECT g, SUM(x) AS s, COUNT(x) AS n, MIN(x) AS lo, MAX(x) AS hi,
          SUM(DISTINCT y) AS d, AVG(y) AS a, SUM(y) FILTER (WHERE x > 0) AS f FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW top AS SELECT x, y FROM t ORDER BY x DESC NULLS LAST, y LIMIT 3"""
    )
    db._collection = Collection(db._dictionary, 8)
    chosen, stored = random.Random(3), Counter[tuple[Any, ...]]()
    context = Context(prec=80)

    def number(digits: int, scale: int) -> Decimal | None:
        size = 10 ** chosen.choice((1, 2, digits - 2))
        return None if chosen.random() < 0.1 else Decimal(chosen.randint(-size, size)).scaleb(-scale, context)

    for _ in range(25):
        rows = [(chosen.randint(0, 2), number(36, 10), number(30, 0)) for _ in range(4)]
        gone = chosen.sample(sorted(stored.elements(), key=repr), min(3, stored.total()))
        db.insert("t", rows)
        db.delete("t", gone)
        stored += Counter(rows)
        stored -= Counter(gone)
        expected = Counter[tuple[Any, ...]]()
        with localcontext(context):
            for g in {row[0] for row in stored}:
                xs = [x for k, x, _ in stored.elements() if k == g and x is not None]
                ys = [y for k, _, y in stored.elements() if k == g and y is not None]
                above = [y for k, x, y in stored.elements() if k == g and x is not None and x > 0 and y is not None]
                ends = (min(xs, default=None), max(xs, default=None))
                mean = None if not ys else (sum(ys) / len(ys)).quantize(Decimal("0.0001"), "ROUND_HALF_UP")
                distinct, positive = sum(set(ys)) if ys else None, sum(above) if above else None
                expected[(g, sum(xs) if xs else None, len(xs), *ends, distinct, mean, positive)] += 1
            best = sorted(stored.elements(), key=lambda r: (r[1] is None, -(r[1] or 0), r[2] is not None, r[2] or 0))
        assert rows_of(db, "v") == expected
        assert rows_of(db, "top") == Counter(row[1:] for row in best[:3])


def test_joins_unions_and_conditions_may_mix_wide_and_narrow_decimals_and_integers() -> None:
    db = made(
        """CREATE TABLE t (x DECIMAL(38, 4)); CREATE TABLE u (y DECIMAL(10, 2)); CREATE TABLE w (n BIGINT);
        CREATE MATERIALIZED VIEW j AS SELECT x, y FROM t JOIN u ON x = y;
        CREATE MATERIALIZED VIEW k AS SELECT x, n FROM t JOIN w ON x = n;
        CREATE MATERIALIZED VIEW a AS SELECT x FROM t UNION ALL SELECT y FROM u UNION ALL SELECT n FROM w;
        CREATE MATERIALIZED VIEW c AS SELECT x FROM t WHERE x > 99999999999999999999.5 OR x IN (1.5, 2, 7);
        CREATE MATERIALIZED VIEW g AS SELECT x, COUNT(*) AS n FROM t GROUP BY x HAVING x >= 1;
        CREATE MATERIALIZED VIEW e AS SELECT x FROM t WHERE EXISTS (SELECT * FROM u WHERE y = x)""",
        t=[(Decimal("1.5"),), (Decimal("2"),), (Decimal(2**63),), (Decimal("1E30"),), (None,)],
        u=[(Decimal("1.50"),), (Decimal("3"),)],
        w=[(2,), (2**63 - 1,)],
    )
    assert rows_of(db, "j") == Counter([(Decimal("1.5"), Decimal("1.5"))])
    assert rows_of(db, "k") == Counter([(Decimal(2), 2)])
    every = ("1.5", "2", str(2**63), "1E30", "1.5", "3", "2", str(2**63 - 1))
    assert rows_of(db, "a") == Counter([(None,), *((Decimal(one),) for one in every)])
    assert rows_of(db, "c") == Counter([(Decimal("1.5"),), (Decimal(2),), (Decimal("1E30"),)])
    assert rows_of(db, "g") == Counter((Decimal(one), 1) for one in ("1.5", "2", str(2**63), "1E30"))
    assert rows_of(db, "e") == Counter([(Decimal("1.5"),)])
    db.delete("t", [(Decimal("1.5"),), (Decimal("1E30"),)])
    assert not rows_of(db, "j") and not rows_of(db, "e") and rows_of(db, "c") == Counter([(Decimal(2),)])


def test_window_functions_order_wide_decimals() -> None:
    db = made(
        """CREATE TABLE t (id INT, x DECIMAL(38, 2));
        CREATE MATERIALIZED VIEW v AS SELECT id, ROW_NUMBER() OVER (ORDER BY x, id) AS n,
          LAG(x) OVER (ORDER BY x, id) AS l, SUM(x) OVER (ORDER BY id) AS s FROM t""",
        t=[(1, Decimal("1E30")), (2, Decimal("-1E30")), (3, Decimal("0.01")), (4, Decimal(2**64))],
    )
    expected = [
        (1, 4, Decimal(2**64), Decimal("1E30")), (2, 1, None, Decimal(0)),
        (3, 2, Decimal("-1E30"), Decimal("0.01")), (4, 3, Decimal("0.01"), 2**64 + Decimal("0.01")),
    ]  # fmt: skip
    assert rows_of(db, "v") == Counter(expected)


def test_keys_defaults_and_statements_accept_wide_decimals(tmp_path: Path) -> None:
    path = tmp_path / "db"
    db = Database(path)
    db.execute(
        """CREATE TABLE t (k DECIMAL(38, 0) PRIMARY KEY, x DECIMAL(20, 2) DEFAULT 12345678901234567.25, n INT);
        CREATE MATERIALIZED VIEW v AS SELECT n, SUM(x) AS s, MAX(k) AS most FROM t GROUP BY n"""
    )
    db.upsert("t", {"k": MOST, "n": 1})
    db.upsert("t", {"k": -MOST, "x": Decimal("999999999999999999.99"), "n": 1})
    db.execute("INSERT INTO t VALUES (5, 0.5, 2); UPDATE t SET x = x + 1 WHERE k > 0")
    assert db.table("t")[MOST] == (MOST, Decimal("12345678901234568.25"), 1)
    expected = Counter([(1, Decimal("1012345678901234568.24"), MOST), (2, Decimal("1.50"), 5)])
    assert rows_of(db, "v") == expected
    assert db.sql("SELECT SUM(x) FROM t WHERE k <> 5").fetchall() == [(Decimal("1012345678901234568.24"),)]
    db.close()
    for _ in range(2):
        db = Database(path)
        assert rows_of(db, "v") == expected
        assert db.table("t")[-MOST] == (-MOST, Decimal("999999999999999999.99"), 1)
        db.snapshot()
        db.close()


def test_parameters_have_all_digits() -> None:
    db = made("CREATE TABLE t (k INT, x DECIMAL(38, 10)); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
    db.execute("INSERT INTO t VALUES (1, ?), (2, ?), (3, ?), (4, ?)", LARGE, LARGE.copy_negate(), 2**64, -(10**27))
    assert rows_of(db, "v") == Counter([(LARGE,), (LARGE.copy_negate(),), (Decimal(2**64),), (Decimal(-(10**27)),)])
    assert db.execute("DELETE FROM t WHERE x = ?", LARGE).deleted == 1
    with pytest.raises(SqlError, match=r"more than 38 digits"):
        db.execute("DELETE FROM t WHERE x = ?", 10**38)


def test_a_cast_to_timestamp_of_many_digits_is_tried() -> None:
    db = made(
        """CREATE TABLE t (x DECIMAL(38, 18)); CREATE MATERIALIZED VIEW v AS
        SELECT CAST(TRY_CAST(x AS TIMESTAMP) AS STRING) AS s FROM t""",
        t=[(Decimal("1700000000.5"),), (Decimal(10**20 - 1),), (Decimal(1 - 10**20),), (None,)],
    )
    assert rows_of(db, "v") == Counter({("2023-11-14 22:13:20.5",): 1, (None,): 3})


def test_a_value_that_rounding_carries_beyond_38_digits_is_an_error() -> None:
    db = made("CREATE TABLE t (x DECIMAL(38, 0)); CREATE MATERIALIZED VIEW v AS SELECT round(x, -2) AS r FROM t")
    db.insert("t", [(MOST - 99,), (-51,)])
    assert rows_of(db, "v") == Counter([(Decimal(MOST - 99),), (Decimal(-100),)])
    with pytest.raises(EvaluationError, match="more than 38 digits"):
        db.insert("t", [(MOST,)])


@pytest.mark.parametrize("properties", ["", " TBLPROPERTIES ('freshviews.window' = '9 rows')"])
def test_a_decimal_may_get_more_digits_than_a_word_has(tmp_path: Path, properties: str) -> None:
    big = Decimal("12345678901234567890.25")
    db = Database(tmp_path / "db")
    db.execute(f"CREATE TABLE t (id INT, w DECIMAL(10, 2), u DECIMAL(10, 2) DEFAULT -1.5){properties}")
    db.insert("t", [(1, Decimal("1.5"), None), (2, None, Decimal(7)), (3, Decimal("1.5"), Decimal(0))])
    with db.batch() as batch:
        batch.insert("t", [(4, Decimal(-2), None)])
        db.execute("ALTER TABLE t ALTER COLUMN w TYPE DECIMAL(30, 2); ALTER TABLE t ALTER COLUMN u TYPE DECIMAL(38, 2)")
        batch.insert("t", [{"id": 5, "w": big}])
    rows = [(1, Decimal("1.5"), None), (2, None, Decimal(7)), (3, Decimal("1.5"), Decimal(0)), (4, Decimal(-2), None)]
    rows.append((5, big, Decimal("-1.5")))
    assert Counter(db.table("t")) == Counter(rows)
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT w, SUM(u) AS s, COUNT(*) AS n FROM t GROUP BY w")
    views = [(Decimal("1.5"), Decimal(0), 2), (None, Decimal(7), 1), (Decimal(-2), None, 1), (big, Decimal("-1.5"), 1)]
    for _ in range(2):
        assert Counter(db.view("v")) == Counter(views)
        assert Counter(db.table("t")) == Counter(rows)
        db.close()
        db = Database(tmp_path / "db")
        db.snapshot()
    db.close()


def test_cells_route_join_and_merge_wide_decimals(tmp_path: Path) -> None:
    big = 10**25 + 1
    catalog = catalog_of(
        f"""CREATE TABLE r (x DECIMAL(38, 0), a INT); CREATE TABLE s (x DECIMAL(38, 0), y DECIMAL(30, 2));
        CREATE MATERIALIZED VIEW j AS SELECT a, SUM(y * {big}) AS s, MAX(y) AS m, AVG(y) AS v, COUNT(DISTINCT y) AS d
          FROM r JOIN s USING (x) GROUP BY a;
        CREATE MATERIALIZED VIEW g AS SELECT x * {big} AS x, COUNT(*) AS n FROM r GROUP BY x * {big};
        CREATE MATERIALIZED VIEW w AS SELECT a, n FROM g JOIN r ON g.x = r.a * CAST({big} AS DECIMAL(28, 2))"""
    )
    check(plan_cells(catalog, 4, {}), catalog, random_versions(catalog, 3, 3), tmp_path)


def test_the_cell_of_a_row_is_that_of_all_digits_of_a_value() -> None:
    for value in (Decimal(MOST), LARGE, -1):
        assert cast(value, "decimal(38,10)") == value


def test_a_log_that_stores_wide_decimals_as_words_can_be_read() -> None:
    db = made("CREATE TABLE t (k INT, x DECIMAL(38, 2), s STRING)")
    (table,) = db._relations.tables.values()
    words = [7, 8, 150, NULL, 2, NULL, 1, -1]
    payload = struct.pack("<QII8q", table.number, 2, 3, *words) + b"ab"
    ((_, encoded),) = changes_of(Record(WORDS, 1, 1, payload), db._relations)
    assert table.decoder.tuples(encoded.batch) == [(7, Decimal("1.50"), "ab"), (8, None, None)]
    assert encoded.batch.multiplicities.tolist() == [1, -1]


def test_a_result_of_more_than_38_digits_is_an_error() -> None:
    db = made("""CREATE TABLE t (x DECIMAL(38, 0));
        CREATE MATERIALIZED VIEW v AS SELECT SUM(x) AS s, SUM(x) - 1 AS l FROM t""")
    db.insert("t", [(Decimal(-MOST),), (Decimal(MOST),)])
    with pytest.raises(EvaluationError, match=f"overflow: the unscaled value {2 * MOST} has more than 38 digits"):
        db.insert("t", [(Decimal(MOST),), (Decimal(MOST),)])
    assert rows_of(db, "v") == Counter([(Decimal(0), Decimal(-1))])


def test_a_cast_to_a_wide_decimal_makes_room_for_a_sum_beyond_64_bits() -> None:
    rows = [(Decimal("9999999999999999.99"),)] * 20
    db = made("""CREATE TABLE t (x DECIMAL(18, 2));
        CREATE MATERIALIZED VIEW v AS SELECT SUM(CAST(x AS DECIMAL(38, 2))) AS s FROM t""")
    db.insert("t", rows)
    assert rows_of(db, "v") == Counter([(sum(x for (x,) in rows),)])


def test_a_mean_of_many_digits_is_rounded_half_up() -> None:
    db = made("CREATE TABLE t (x DECIMAL(18, 6)); CREATE MATERIALIZED VIEW v AS SELECT AVG(x) AS a FROM t")
    db.insert("t", [(Decimal(f"999999999999.99999{digit}"),) for digit in (9, 8, 8)])
    mean = Fraction(3 * 10**18 - 5, 3 * 10**6)
    assert db.view("v").to_arrow().column("a").type == pa.decimal128(22, 10)
    assert [row[0] for row in db.view("v")] == [Decimal(int(mean * 10**10 + Fraction(1, 2))).scaleb(-10)]


@pytest.mark.parametrize(
    "item",
    [
        "SUM(x) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "x DIV 1",
        "CAST(x AS BIGINT)",
        "(SELECT sum_x_x FROM (SELECT COFACTOR(x) FROM t) AS c)",
    ],
)
def test_an_operation_in_64_bits_raises_an_error_for_a_value_that_does_not_fit(item: str) -> None:
    db = made(f"CREATE TABLE t (x DECIMAL(38, 2)); CREATE MATERIALIZED VIEW v AS SELECT x, {item} AS y FROM t")
    db.insert("t", [(Decimal("1.5"),)])
    stored = rows_of(db, "v")
    with pytest.raises(EvaluationError, match=r"does not fit|outside"):
        db.insert("t", [(Decimal("1E30"),)])
    assert rows_of(db, "v") == stored


def test_a_constant_of_more_than_38_digits_is_refused() -> None:
    with pytest.raises(SqlError, match="has more than 38 digits"):
        made(f"CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT x + {10 * MOST} AS y FROM t")
