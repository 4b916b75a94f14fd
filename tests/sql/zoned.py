"""Expressions over TIMESTAMP_LTZ, whose values and types in some time zones Spark has given (spark_zoned.json).

``python -m tests.sql.zoned`` asks Spark again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_name("spark_zoned.json")
ZONES = ("Europe/Berlin", "America/Havana", "-03:30", "UTC")
ROWS = (
    # A moment in UTC, a local time, and a text. The clocks of Berlin skip an hour on March 29 and have one twice on
    # October 25, those of Havana at midnight, on March 8 and November 1.
    ("2026-03-28 01:30:00", "2026-03-29 02:30:00", "2026-03-29 02:30:00"),
    ("2026-03-29 00:59:59.5", "2026-03-29 03:00:00", "2026-03-29T02:59:59.5"),
    ("2026-10-24 23:30:00", "2026-10-25 02:30:00", "2026-10-25 02:30:00+05:00"),
    ("2026-10-25 00:30:00", "2026-10-25 01:00:00", "2026-10-25 02:30:00"),
    ("2026-10-25 01:30:00", "2026-10-25 03:00:00", "2026-10-25"),
    ("2026-10-26 01:30:00", "2026-10-26 00:00:00", " 2026-10-26 00:30 "),
    ("2026-03-08 05:30:00", "2026-03-08 00:30:00", "2026-03-08 00:30:00Z"),
    ("2026-11-01 04:30:00", "2026-11-01 00:30:00", "2026-11-01"),
    ("2026-11-01 05:30:00", "2026-11-01 00:00:00", "2026-11-01 00:30:00"),
    ("2026-11-02 05:30:00.123456", "1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.9999999"),
    ("1950-06-30 22:15:00", "1950-07-01 00:15:00", "noon"),
    ("2050-07-01 12:34:56.789", "2050-01-01 00:00:00", "2050-07-01 12:00:00 -02:15"),
    (None, "2026-10-25 02:30:00", None),
    ("2026-10-25 01:30:00", None, "1950-01-01 00:00:00"),
)
EXPRESSIONS = (
    *(f"CAST(z AS {to})" for to in ("STRING", "DATE", "TIMESTAMP_NTZ", "BIGINT", "DOUBLE", "DECIMAL(18, 6)")),
    *(f"CAST({one} AS TIMESTAMP_LTZ)" for one in ("n", "CAST(n AS DATE)", "id", "id * 1.5", "CAST(id AS DOUBLE)")),
    "TRY_CAST(s AS TIMESTAMP_LTZ)",
    "CAST(CAST(z AS STRING) AS TIMESTAMP_LTZ)",
    *(f"{name}(z)" for name in ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")),
    *(f"{name}(z)" for name in ("hour", "minute", "second", "last_day", "to_date", "dayname", "monthname", "date")),
    *(f"EXTRACT({field} FROM z)" for field in ("SECOND", "HOUR", "DOW", "WEEK")),
    *(f"date_trunc('{unit}', z)" for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")),
    "trunc(z, 'MONTH')",
    "date_format(z, 'yyyy-MM-dd HH:mm:ss.SSSSSS E')",
    *(f"z + INTERVAL {by}" for by in ("'1' DAY", "'1' HOUR", "'24' HOUR", "'90' MINUTE", "'7' MONTH")),
    *(f"z - INTERVAL {by}" for by in ("'1' DAY", "'1' HOUR", "'24' HOUR", "'90' MINUTE", "'7' MONTH")),
    "z + INTERVAL '1 02:30:00' DAY TO SECOND",
    "z - INTERVAL '26' HOUR",
    "z + INTERVAL '0' DAY",
    "z - INTERVAL '1' YEAR",
    "z + make_dt_interval(id, id)",
    "z - CAST(n AS TIMESTAMP_LTZ)",
    "z - n",
    "n - z",
    "z - DATE '2026-03-29'",
    *(f"z {op} n" for op in ("<", "=", ">=")),
    "z = CAST(z AS TIMESTAMP_NTZ)",
    "z >= DATE '2026-10-25'",
    "z < '2026-10-25 02:30:00'",
    "z = TIMESTAMP_LTZ '2026-10-25 02:30:00'",
    "z IN (TIMESTAMP_LTZ '2026-10-25 02:30:00+01:00', TIMESTAMP_LTZ '2026-03-28 01:30:00Z')",
    "z BETWEEN n AND n + INTERVAL '1' DAY",
    "COALESCE(z, n)",
    "CASE WHEN id > 3 THEN z ELSE n END",
    "IF(id > 3, z, DATE '2026-10-25')",
    *(f"{name}(z, n)" for name in ("greatest", "least", "nvl", "datediff", "months_between")),
    *(f"{name}(z)" for name in ("unix_seconds", "unix_millis", "unix_micros", "unix_timestamp")),
    *(f"{name}(z)" for name in ("hash", "xxhash64")),
    "date_add(z, 1)",
    "add_months(z, 1)",
    "next_day(z, 'MON')",
    *(f"timestampadd({unit}, z)" for unit in ("DAY, 1", "HOUR, 25", "MONTH, 1", "MINUTE, -90")),
    "convert_timezone('UTC', 'Asia/Tokyo', z)",
    "concat(z, 'x')",
    "TIMESTAMP_LTZ '2026-03-29 02:30:00'",
    "TIMESTAMP_LTZ '2026-10-25 02:30:00'",
)  # fmt: skip


def asked() -> dict[str, dict[str, Any]]:
    """By zone and expression, the type and the values that Spark gives; of a TIMESTAMP_LTZ the microseconds."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    found: dict[str, dict[str, Any]] = {}
    for zone in ZONES:
        spark.conf.set("spark.sql.session.timeZone", zone)
        given = ", ".join(
            f"({i}, {_literal('TIMESTAMP_LTZ', z and z + 'Z')}, {_literal('TIMESTAMP_NTZ', n)}, {_literal('', s)})"
            for i, (z, n, s) in enumerate(ROWS)
        )
        spark.sql(f"CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM VALUES {given} AS t(id, z, n, s)")
        listed = ", ".join(f"{expression} AS x{i}" for i, expression in enumerate(EXPRESSIONS))
        kinds = [field.dataType.simpleString() for field in spark.sql(f"SELECT {listed} FROM t").schema]
        shown = ", ".join(_shown(expression, kind) for expression, kind in zip(EXPRESSIONS, kinds, strict=True))
        rows = spark.sql(f"SELECT id, {shown} FROM t").collect()
        columns = list(zip(*(row[1:] for row in sorted(rows, key=lambda row: row[0])), strict=True))
        found[zone] = {
            expression: [kind, [value if value is None else str(value) for value in column]]
            for expression, kind, column in zip(EXPRESSIONS, kinds, columns, strict=True)
        }
    return found


def _shown(expression: str, kind: str) -> str:
    if kind.startswith("interval"):
        return f"CAST(CAST({expression} AS INTERVAL SECOND) AS DECIMAL(18, 6))"
    return f"unix_micros({expression})" if kind == "timestamp" else f"CAST({expression} AS STRING)"


def _literal(kind: str, text: str | None) -> str:
    return f"CAST(NULL AS {kind or 'STRING'})" if text is None else f"{kind} '{text}'"


def _lines(answers: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(expression)}: {json.dumps(found)}" for expression, found in answers.items())


if __name__ == "__main__":
    zones = (f"{json.dumps(zone)}: {{\n{_lines(answers)}\n}}" for zone, answers in asked().items())
    ANSWERS.write_text("{\n" + ",\n".join(zones) + "\n}\n")
