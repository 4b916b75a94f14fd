"""Queries over one view: plain SELECTs, which freshviews must answer as Spark does, and others, which are left to
Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

AT = dt.datetime(2026, 1, 5, 12, 30, 0, 250000)
_NAN = float("nan")
_INFINITE = float("inf")


def _decimals(text: str) -> list[Decimal | None]:
    return [None if word == "NULL" else Decimal(word) for word in text.split()]


VIEW = pa.table(
    {
        "i": pa.array([3, -7, None, 3, 2**31 - 1, 0, 12, 3], pa.int32()),
        "Big": pa.array([2**53 + 1, None, -1, 0, 2**63 - 1, 5, 5, 3_000_000_000], pa.int64()),
        "tiny": pa.array([1, 2, 3, None, 127, -128, 0, 1], pa.int8()),
        "small": pa.array([300, 2, None, 0, 32767, -5, 1, 300], pa.int16()),
        "dec": pa.array(_decimals("1.50 -0.01 0.00 NULL 3.00 1.50 7.25 12.00"), pa.decimal128(12, 2)),
        "wide": pa.array(_decimals("1.500 2 3 NULL -4.001 5 0 99999999999999999999"), pa.decimal128(38, 3)),
        "d": pa.array([1.5, _NAN, None, 0.0, -2.5, _INFINITE, 1e300, 0.1], pa.float64()),
        "f": pa.array([1.5, _NAN, 0.1, None, -2.5, -_INFINITE, 16777216.0, 0.0], pa.float32()),
        "s": pa.array(["bolt", "nut", None, "", "Bolt", "éclair", "bo_t", "n%t"], pa.string()),
        "day": pa.array(
            [
                dt.date(2026, 1, 5),
                None,
                dt.date(1582, 10, 4),
                dt.date(2026, 1, 6),
                dt.date(1, 1, 1),
                dt.date(9999, 12, 31),
                dt.date(2026, 1, 5),
                dt.date(1969, 12, 31),
            ],
            pa.date32(),
        ),
        "at": pa.array(
            [
                AT,
                None,
                dt.datetime(1969, 12, 31, 23, 59, 59, 1),
                AT,
                dt.datetime(1, 1, 1),
                dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
                AT + dt.timedelta(microseconds=1),
                dt.datetime(2026, 1, 5),
            ],
            pa.timestamp("us"),
        ),
        "flag": pa.array([True, False, None, True, False, None, True, False], pa.bool_()),
        "odd name": pa.array(range(8), pa.int64()),
    }
)
"""The contents of the view v; ``odd name`` numbers its rows."""

CONDITIONS = r"""
i > 3
i>=3 AND i<=12
3 < i
NOT i = 3
i <> 3
i != 3 OR i IS NULL
i IS NOT NULL
i = -7
I = 3
i > 2.5
i = 3.0
i < 3000000000
i > 99999999999999999999
Big = 9007199254740993
big > tiny
tiny < 128
small BETWEEN 1 AND 300
small NOT BETWEEN 1 AND 300
i BETWEEN tiny AND small
i = dec
dec = 1.5
dec > -1
dec >= 0.005
dec IN (1.50, 3, 7.250)
dec NOT IN (1.50)
wide = 99999999999999999999
wide >= 2.0
wide = Big
d = 1.5
d > 1
d >= 0.1
d < 2
d <> 1.5
d <= -2.5
d = 0.1
NOT d > 1
f = 0.1
f > 1
f < 1.5
f >= 16777216
f <> 1.5
s = 'bolt'
s > 'Z'
s >= 'bolt'
s <> ''
s = ''
'n' < s
s IN ('bolt', 'nut', 'x')
s NOT IN ('bolt', 'nut')
s IN ('bolt')
s LIKE 'b%'
s LIKE '_o_t'
s NOT LIKE '%t'
s LIKE ''
s LIKE '%é%'
s LIKE '______'
s LIKE '%'
day = '2026-01-05'
day > DATE '2026-01-05'
day < DATE'1582-10-15'
day BETWEEN '1969-01-01' AND '2026-01-05'
day IN (DATE '2026-01-05', DATE '0001-01-01')
day <> date '9999-12-31'
at = '2026-01-05 12:30:00.25'
at > TIMESTAMP '2026-01-05 12:30:00'
at < '2026-01-05'
at >= '2026-01-05'
at <= timestamp '1969-12-31'
flag
NOT flag
flag = TRUE
flag <> true
flag = false OR d > 1
flag AND i = 3
i IN (3, 12, -7)
i NOT IN (3)
i IN (3.0, 12)
tiny IN (1, 300)
(i = 3 OR i = 12) AND NOT (s = 'bolt' AND flag)
i = 3 AND flag OR s = 'Bolt'
NOT NOT i = 3
NOT i = 3 AND flag
`odd name` > 5
v.i = 3
V.`I` = 3
s < s
day = day
at >= at
flag = flag
i IS NULL OR d IS NULL AND flag IS NOT NULL
""".strip().splitlines()
"""Conditions of plain SELECTs, one per line."""

_WHOLE = r"""
SELECT * FROM v
select * from V;
SELECT v.* FROM v
SELECT w.* FROM v w
SELECT w.i FROM v AS w
SELECT s, I FROM v
SELECT BIG, v.`odd name`, `Odd Name` AS k FROM v
SELECT i AS `a b`, s AS i FROM v
SELECT * FROM v LIMIT 3
SELECT i FROM v LIMIT 0
SELECT i FROM v LIMIT 2 OFFSET 5
SELECT i FROM v OFFSET 6
SELECT i FROM v LIMIT 5 OFFSET 100
SELECT COUNT(*) FROM v
SELECT count ( * ) AS n FROM v WHERE i = 3
SELECT COUNT(*) FROM v LIMIT 0
SELECT COUNT(*) AS n FROM v WHERE i > 100000 AND i < 3
SELECT at FROM v
SELECT i FROM v ORDER BY i, `odd name`
SELECT i AS day, day AS i FROM v ORDER BY day, v.at
SELECT i AS s, `odd name` FROM v w ORDER BY w.s
SELECT s, i FROM v ORDER BY 2 DESC, 1
SELECT s FROM v ORDER BY `odd name` DESC LIMIT 3
SELECT i FROM v; ;
SELECT * FROM v ORDER BY dec DESC NULLS FIRST, `odd name` LIMIT 4 OFFSET 1
SELECT x.tiny AS date FROM v x WHERE x.tiny = 1
""".strip().splitlines()
"""Plain SELECTs, one per line."""

_SORTED = [
    f"SELECT `odd name`, {column} FROM v ORDER BY {column}{way}, 1 DESC"
    for column in ("i", "dec", "wide", "d", "f", "s", "day", "at", "flag")
    for way in ("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
]
QUERIES = [
    *_WHOLE,
    "SELECT day, at FROM v WHERE `odd name` < 3\n ORDER BY at\n\tDESC",
    *_SORTED,
    *(f"SELECT `odd name` FROM v WHERE {condition}" for condition in CONDITIONS),
]
"""Plain SELECTs with a defined order of rows: that of the contents, or a total one."""

_OTHER_CONDITIONS = r"""
i
s
i = '3'
s = 3
s = 'a''b'
s = 'a' 'b'
s = 'a\n'
s = "bolt"
i = 3L
i = 3e0
i = 3.
i = .5
i = 3BD
s = r'a'
s = X'1F'
day = '2026-1-5'
day = '2026-02-30'
day > at
at = '2026-01-05T12:30:00Z'
at > DATE '2026-01-05'
day = TIMESTAMP '2026-01-05 00:00:00'
d = f
day IN ('2026-01-05')
flag > false
1 = 1
i = NULL
i <=> 3
i == 3
i = 3 = flag
(i) = 3
i IN (SELECT i FROM v)
i IN (3, NULL)
i IN (3, 'a')
d IN (1.5)
wide = 0.0000000001
f = 16777217
wide = 999999999999999999999999999999999999999
s LIKE 'a' ESCAPE 'b'
s LIKE '\%'
i LIKE '3'
s RLIKE 'a'
EXISTS (SELECT 1)
i = :a
i = ?
i > ALL (1)
flag IS TRUE
i > --1
TRUE
i BETWEEN SYMMETRIC 3 AND 1
""".strip().splitlines()
"""Conditions that are left to Spark, one per line."""

_OTHERS = r"""
SELECT i + 1 FROM v
SELECT DISTINCT i FROM v
SELECT i FROM v GROUP BY i
SELECT SUM(i) FROM v
FROM v
SELECT i FROM v, v AS w
SELECT i FROM v JOIN v AS w
SELECT i FROM v UNION SELECT i FROM v
TABLE v
(SELECT i FROM v)
WITH w AS (SELECT * FROM v) SELECT * FROM w
SELECT i FROM v -- a
SELECT /* a */ i FROM v
SELECT /*+ a */ i FROM v
SELECT i FROM nowhere
SELECT nothing FROM v
SELECT w.i FROM v
SELECT i FROM a.v
SELECT v.i FROM v AS w
SELECT i, i FROM v
SELECT i, s AS I FROM v
SELECT *, i FROM v
SELECT FROM v
SELECT i FROM v NATURAL
SELECT i FROM v LIMIT ALL
SELECT i FROM v LIMIT 1 + 1
SELECT i FROM v LIMIT 1.5
SELECT i FROM v LIMIT -1
SELECT i FROM v LIMIT 2147483648
SELECT i FROM v ORDER BY 2
SELECT i FROM v ORDER BY 0
SELECT i FROM v ORDER BY -i
SELECT i FROM v ORDER BY nothing
SELECT COUNT(*) FROM v ORDER BY i
SELECT 1 FROM v
SELECT MIN(*) FROM v
SELECT i FROM v TABLESAMPLE (10 ROWS)
SELECT i FROM v WHERE
SELECT i FROM v WHERE nothing = 1
""".strip().splitlines()
"""SELECTs that are left to Spark, one per line."""

OTHERS = [
    *_OTHERS,
    "SELECT i FROM v WHERE i -- \n > 3",
    "SELECT i FROM v -- a\n WHERE i > 3",
    *(f"SELECT i FROM v WHERE {condition}" for condition in _OTHER_CONDITIONS),
]
"""Queries that are left to Spark, including some that it refuses or reads in its own way."""
