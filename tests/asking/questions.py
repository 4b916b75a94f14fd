"""SELECTs over a table q and Spark's answers, asked of Spark 4.1 with ANSI mode; tests/spark/test_asking.py asks again.

``answers.json`` has for each: the rows that q has, the SELECT, and the types and rows of Spark, or null for an error.
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.sql.test_spark_types import COLUMNS

TABLE = f"CREATE TABLE q ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})"
SCHEMA = pa.schema(
    [
        *(("a", pa.int32()), ("c", pa.int64()), ("i8", pa.int8()), ("i16", pa.int16()), ("x", pa.float64())),
        *(("f", pa.float32()), ("p", pa.decimal128(12, 2)), ("m", pa.decimal128(18, 4)), ("n", pa.decimal128(3, 0))),
        *(("s", pa.string()), ("d", pa.date32()), ("ts", pa.timestamp("us")), ("t", pa.bool_())),
    ]
)


def _row(*values: Any) -> dict[str, Any]:
    made = dict(zip(SCHEMA.names, values, strict=True))
    exact = {name: None if made[name] is None else Decimal(made[name]) for name in ("p", "m", "n")}
    return {**made, **exact}


_ROWS = {
    "one": [
        _row(7, 12, 3, 5, 2.5, 1.5, "12.34", "5.6789", "4", "3", dt.date(2024, 2, 29),
             dt.datetime(2024, 2, 29, 13, 45, 6, 250000), True),
    ],
    "odd": [
        _row(-7, -3, -2, 300, -0.5, -2.25, "-1.25", "0.0050", "-9", "aB c,d é", dt.date(1969, 12, 31),
             dt.datetime(1969, 12, 31, 23, 59, 59, 1), False),
    ],
    "many": [
        _row(1, 2, 3, 4, 1.5, 0.5, "1.10", "1.2345", "1", "b", dt.date(2024, 1, 31), dt.datetime(2024, 1, 31), True),
        _row(2, 2, 3, 4, 2.5, -0.5, "-2.25", "2.3456", "2", "a", dt.date(2024, 3, 1),
             dt.datetime(2024, 3, 1, 1, 2, 3), False),
        _row(2, *[None] * 12),
        _row(-5, 2, 1, 7, float("nan"), 0.25, "3.00", "-1.0000", "5", "B", dt.date(1999, 12, 31),
             dt.datetime(1999, 12, 31, 12), True),
    ],
}  # fmt: skip
TABLES = {name: pa.Table.from_pylist(rows, schema=SCHEMA) for name, rows in _ROWS.items()}
"""By name, the rows of q."""

Printed = tuple[list[str], list[list[str]]]
ANSWERS: list[tuple[str, str, list[str] | None, list[list[str]] | None]] = json.loads(
    Path(__file__).with_name("answers.json").read_text()
)


def printed(table: pa.Table) -> Printed:
    """Types and rows as texts; a TIMESTAMP is without its zone, which is UTC in Spark."""
    kinds = ["timestamp" if pa.types.is_timestamp(one.type) else str(one.type) for one in table.schema]
    moments = [kind == "timestamp" for kind in kinds]
    columns = [
        (one.cast(pa.timestamp("us")) if moment else one).to_pylist()
        for one, moment in zip(table.columns, moments, strict=True)
    ]
    rows = [["NULL" if value is None else str(value) for value in row] for row in zip(*columns, strict=True)]
    return kinds, rows


def same(mine: Printed, types: list[str], rows: list[list[str]]) -> bool:
    """Equal types and rows; numbers up to 1e-12 of them."""
    return mine[0] == types and len(mine[1]) == len(rows) and all(
        one == other if kind == "string" else _close(one, other)
        for row, expected in zip(mine[1], rows, strict=True)
        for one, other, kind in zip(row, expected, types, strict=True)
    )


def _close(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return abs(float(one) - float(other)) <= 1e-12 * max(1.0, abs(float(other)))
    except ValueError:
        return False


DIFFERENT = {
    "CAST(12345678.9D AS STRING)": "12345678.9",
    "CAST(1e-5 AS STRING)": "1e-05",
    "CAST(1e20 AS STRING)": "1e+20",
    "CAST(1e7 AS STRING)": "10000000.0",
    "max_by(s, a)": "a",
    "regr_avgx(a, p)": "0.6166666666666667",
    "try_divide(a, 1.5)": "4.666666666666667",
    "+ '1'": "1",
    "pmod(1L, p)": "1.00",
}
"""Expressions with other values or types than Spark's, and their values."""

REFUSED = """
SELECT DATE '2024-01-31' - DATE '2024-01-01' AS y
SELECT EXTRACT(dow_iso FROM ts) AS y FROM q
SELECT a FROM q TABLESAMPLE (10 ROWS)
SELECT asin(s) AS y FROM q
SELECT char(s) AS y FROM q
SELECT from_unixtime(i8, f) AS y FROM q
SELECT isnan(s) AS y FROM q
SELECT left(c, CAST(2 AS DECIMAL(10, 4))) AS y FROM q
SELECT log(CAST(NULL AS STRING), 1.5F) AS y FROM q
SELECT nanvl(s, f) AS y FROM q
SELECT pow(n, s) AS y FROM q
SELECT regexp_substr('2', CAST(2 AS DECIMAL(10, 4))) AS y FROM q
SELECT regexp_substr(d, a) AS y FROM q
SELECT replace(CAST(2 AS DECIMAL(10, 4)), 1) AS y FROM q
SELECT rpad(a, CAST(2 AS DECIMAL(10, 4)), f) AS y FROM q
SELECT substring(2e0, CAST(2 AS DECIMAL(10, 4))) AS y FROM q
SELECT substring_index(m, 1L, NULL) AS y FROM q
SELECT timestamp(n) AS y FROM q
SELECT to_char(a, '999') AS y FROM q
""".strip().splitlines()
"""SELECTs that Spark answers and db.sql refuses: texts as numbers without a CAST, and others."""

WIDER = """
SELECT DISTINCT ON (a) a, s FROM q ORDER BY a, s
SELECT TRUE = 1 AS y
SELECT a FROM q FETCH FIRST 2 ROWS ONLY
SELECT a FROM q QUALIFY row_number() OVER (PARTITION BY a ORDER BY s) = 1 ORDER BY a
SELECT a FROM q WHERE a <= ALL (SELECT c FROM q WHERE c IS NOT NULL) ORDER BY a
SELECT a FROM q WHERE a > ANY (SELECT c FROM q) ORDER BY a
SELECT arg_max(s, a) AS y FROM q
SELECT charindex('B', s) AS y FROM q
SELECT floor(ts TO HOUR) AS y FROM q
SELECT iff(t, 1, 2) AS y FROM q
SELECT strpos(s, 'c') AS y FROM q
SELECT t, arg_max(s, a) AS y FROM q GROUP BY t ORDER BY t
SELECT week(d) AS y FROM q
""".strip().splitlines()
"""SELECTs that Spark refuses, and views and db.sql take."""
