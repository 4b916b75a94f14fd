"""Everyday SQL has the rows of DuckDB, or Spark's where they differ."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import freshviews as fv
from freshviews.errors import SqlError

pytestmark = pytest.mark.plain_python(only=True)

TABLE = "CREATE TABLE t (k INT, x INT, y DOUBLE, p DECIMAL(10, 2), s STRING, ts TIMESTAMP, d DATE)"


def _row(source: random.Random) -> tuple[Any, ...]:
    moment = dt.datetime(2024, 2, 28, 23, 50) + dt.timedelta(seconds=source.randrange(4000))
    row = (
        source.randrange(3),
        source.choice((None, 1, 2, source.randrange(10**6))),
        source.choice((None, 0.5, source.random() * 100, 3.0)),
        source.choice((None, Decimal("1.25"), Decimal(source.randrange(1000)))),
        source.choice((None, "a1,b2", "12", "", "b", f"ab{source.randrange(9)}")),
        moment,
        dt.date(2024, 1, 1) + dt.timedelta(days=source.randrange(500)),
    )
    return tuple(None if source.random() < 0.1 and i > 4 else value for i, value in enumerate(row))


MOMENTS = [
    *(f"{name}({column})" for name in ("stddev", "stddev_pop", "variance", "var_pop") for column in ("x", "y", "p")),
    *(
        f"{name}({pair})"
        for name in ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx")
        for pair in ("x, y", "y, p")
    ),
    *(f"{name}(y, p)" for name in ("regr_syy", "regr_sxy", "regr_count")),
    *(f"{name}(y, CAST(p AS DOUBLE))" for name in ("regr_avgx", "regr_avgy")),
    "stddev_samp(y) FILTER (WHERE x > 1)",
    "var_samp(x * y)",
]

WINDOW = "time_bucket(INTERVAL '10 minutes', ts, TIMESTAMP '1970-01-01')"
SLIDE = "time_bucket(INTERVAL '4 minutes', ts, TIMESTAMP '1970-01-01')"
HOPS = f"(SELECT t.*, {SLIDE} - n * INTERVAL '4 minutes' AS w FROM t, "
HOPS += "(VALUES (0), (1), (2)) AS h(n)) AS q WHERE w + INTERVAL '10 minutes' > ts"

QUERIES: list[tuple[str, str]] = [
    ("SELECT window.start, window.end, COUNT(*) AS n FROM t GROUP BY window(ts, '10 minutes')",
     f"SELECT {WINDOW} AS a, {WINDOW} + INTERVAL '10 minutes' AS b, COUNT(*) FROM t WHERE ts IS NOT NULL GROUP BY ALL"),
    ("SELECT k, window.start AS a, SUM(x) AS n FROM t WHERE x > 1 OR k = 1 "
     "GROUP BY k, window(ts, '10 minutes', '4 minutes')",
     f"SELECT k, w, SUM(x) FROM {HOPS} AND (x > 1 OR k = 1) GROUP BY ALL"),
    ("SELECT k, window_start, window_end, MAX(x) AS n "
     "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY k, window_start, window_end",
     f"SELECT k, {WINDOW} AS a, {WINDOW} + INTERVAL '10 minutes', MAX(x) FROM t WHERE ts IS NOT NULL GROUP BY ALL"),
    ("SELECT h.k, h.window_start, h.s FROM HOP(t, ts, INTERVAL '4' MINUTE, INTERVAL '10' MINUTE) AS h",
     f"SELECT k, w, s FROM {HOPS}"),
    ("SELECT TUMBLE_START(ts, INTERVAL '10' MINUTE) AS a, COUNT(*) AS n FROM t "
     "GROUP BY TUMBLE(ts, INTERVAL '10' MINUTE)",
     f"SELECT {WINDOW} AS a, COUNT(*) FROM t WHERE ts IS NOT NULL GROUP BY ALL"),
    ("SELECT HOP_START(ts, INTERVAL '4' MINUTE, INTERVAL '10' MINUTE) AS a, COUNT(*) AS n FROM t "
     "GROUP BY HOP(ts, INTERVAL '4' MINUTE, INTERVAL '10' MINUTE)",
     f"SELECT w, COUNT(*) FROM {HOPS} GROUP BY ALL"),
    ("SELECT floor(ts TO HOUR) AS a, date_bin('15 minutes', ts, TIMESTAMP '2020-01-01 00:05:00') AS b, "
     "time_bucket(INTERVAL '1 week', d) AS c FROM t",
     "SELECT date_trunc('hour', ts), time_bucket(INTERVAL '15 minutes', ts, TIMESTAMP '2020-01-01 00:05:00'), "
     "time_bucket(INTERVAL '1 week', d) FROM t"),
    ("SELECT DISTINCT ON (k) k, x, d FROM t ORDER BY k, x DESC",
     "SELECT DISTINCT ON (k) k, x, d FROM t ORDER BY k, x DESC NULLS LAST, y NULLS FIRST, p NULLS FIRST, "
     "s NULLS FIRST, ts NULLS FIRST, d NULLS FIRST"),
    ("SELECT DISTINCT ON (s) k, s FROM t ORDER BY s, k DESC, s",
     "SELECT DISTINCT ON (s) k, s FROM t ORDER BY s NULLS FIRST, k DESC NULLS LAST"),
    ("SELECT x, s FROM t LIMIT 4", "SELECT x, s FROM t ORDER BY x NULLS FIRST, s NULLS FIRST LIMIT 4"),
    ("SELECT x, s FROM t ORDER BY x FETCH FIRST 3 ROWS ONLY",
     "SELECT x, s FROM t ORDER BY x NULLS FIRST, s NULLS FIRST LIMIT 3"),
    ("SELECT k, 'a' AS c, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, c)",
     "SELECT k, 'a', COUNT(*) FROM t GROUP BY k UNION ALL SELECT k, NULL, COUNT(*) FROM t GROUP BY k "
     "UNION ALL SELECT NULL, NULL, COUNT(*) FROM t HAVING COUNT(*) > 0"),
    ("SELECT k, first(x) AS a, last(x) AS b, any_value(s) AS c, approx_count_distinct(s) AS e FROM t GROUP BY k",
     "SELECT k, MIN(x), MAX(x), MIN(s), COUNT(DISTINCT s) FROM t GROUP BY k"),
    ("SELECT TRY_CAST(s AS INT) AS a, TRY_CAST(x AS TINYINT) AS b, TRY_CAST(x * 1.5 AS DECIMAL(4, 1)) AS c FROM t",
     "SELECT TRY_CAST(s AS INT), TRY_CAST(x AS TINYINT), TRY_CAST(x * 1.5 AS DECIMAL(4, 1)) FROM t"),
    ("SELECT x FROM t WHERE x BETWEEN SYMMETRIC 20000 AND 2", "SELECT x FROM t WHERE x BETWEEN 2 AND 20000"),
    ("SELECT x FROM t WHERE x = ANY (ARRAY[1, 2]) OR x <> ALL (ARRAY[1, k])",
     "SELECT x FROM t WHERE x IN (1, 2) OR x NOT IN (1, k)"),
    ("SELECT s FROM t WHERE s LIKE ANY ('a%', '%2') AND s NOT LIKE ALL ('%3', '%4')",
     "SELECT s FROM t WHERE (s LIKE 'a%' OR s LIKE '%2') AND s NOT LIKE '%3' AND s NOT LIKE '%4'"),
    ("SELECT x & 6 AS a, x | 6 AS b, x ^ 6 AS c, ~x AS e FROM t", "SELECT x & 6, x | 6, xor(x, 6), ~x FROM t"),
    ("SELECT regexp_extract(s, '([a-z])([0-9])', 2) AS a, regexp_replace(s, '([0-9])', '<$1>') AS b FROM t",
     r"SELECT regexp_extract(s, '([a-z])([0-9])', 2), regexp_replace(s, '([0-9])', '<\1>', 'g') FROM t"),
    ("SELECT split_index(s, ',', 1) AS a, translate(s, 'ab', 'x') AS b, strpos(s, 'b') AS c, md5(s) AS e FROM t",
     "SELECT CASE WHEN contains(s, ',') THEN split_part(s, ',', 2) END, translate(s, 'ab', 'x'), strpos(s, 'b'), "
     "md5(s) FROM t"),
    ("SELECT timestampdiff(HOUR, ts, TIMESTAMP '2024-03-02 00:10:00') AS a, "
     "datediff(WEEK, d, DATE '2025-01-01') AS b FROM t",
     "SELECT date_sub('hour', ts, TIMESTAMP '2024-03-02 00:10:00'), date_sub('day', d, DATE '2025-01-01') // 7 FROM t"),
    ("SELECT EXTRACT(EPOCH FROM ts) AS a, EXTRACT(ISODOW FROM d) AS b, EXTRACT(ISOYEAR FROM d) AS c, dayname(d) AS e, "
     "make_date(year(d), 1, 5) AS f FROM t",
     "SELECT CAST(EXTRACT(EPOCH FROM ts) AS DECIMAL(20, 6)), EXTRACT(ISODOW FROM d), EXTRACT(ISOYEAR FROM d), "
     "dayname(d)[:3], make_date(year(d), 1, 5) FROM t"),
    ("SELECT to_timestamp('02/03/2024 04:05 PM', 'dd/MM/yyyy hh:mm a') AS a, to_date('20240203', 'yyyyMMdd') AS b, "
     "from_unixtime(x) AS c, unix_millis(ts) AS e, timestamp_millis(x) AS f FROM t",
     "SELECT TIMESTAMP '2024-03-02 16:05:00', DATE '2024-02-03', strftime(make_timestamp(x::BIGINT * 1000000), "
     "'%Y-%m-%d %H:%M:%S'), epoch_ms(ts), make_timestamp(x::BIGINT * 1000) FROM t"),
    ("SELECT EXTRACT(EPOCH FROM (ts - d)) AS a, ts - TIMESTAMP '2024-02-29' < INTERVAL '5' MINUTE AS b, "
     "ts - TIMESTAMP '2024-02-29' BETWEEN INTERVAL '-5' MINUTE AND INTERVAL '1' HOUR AS c FROM t",
     "SELECT CAST(EXTRACT(EPOCH FROM (ts - d)) AS DECIMAL(20, 6)), ts - TIMESTAMP '2024-02-29' < INTERVAL '5' MINUTE, "
     "ts - TIMESTAMP '2024-02-29' BETWEEN INTERVAL '-5' MINUTE AND INTERVAL '1' HOUR FROM t"),
    ("SELECT try_divide(x, k) AS a, degrees(y) AS b, atan2(y, 2) AS c, cbrt(x) AS e, log2(x) AS f FROM t",
     "SELECT CASE WHEN k <> 0 THEN x / k END, degrees(y), atan2(y, 2), cbrt(x), log2(x) FROM t"),
]  # fmt: skip


@pytest.mark.parametrize("query", range(len(QUERIES)))
def test_a_view_returns_the_same_rows_as_duckdb(query: int) -> None:
    sql, duck = QUERIES[query]
    _compare(sql, duck, query)


@pytest.mark.parametrize("group", ["GROUP BY k", ""])
def test_moments_equal_those_of_duckdb(group: str) -> None:
    key = "k, " if group else ""
    ours = ", ".join(f"{call} AS m{i}" for i, call in enumerate(MOMENTS))
    # DuckDB has NaN where Spark has NULL.
    theirs = ", ".join(f"nullif({call}, 'nan'::DOUBLE)" for call in MOMENTS)
    _compare(f"SELECT {key}{ours} FROM t {group}", f"SELECT {key}{theirs} FROM t {group}", 1)


def _compare(sql: str, duck: str, seed: int) -> None:
    """Compare a view with DuckDB after some batches of inserts and deletes."""
    source = random.Random(seed)
    db, peer = fv.Database(), duckdb.connect()
    db.execute(f"{TABLE}; CREATE MATERIALIZED VIEW v AS {sql}")
    peer.execute(TABLE)
    rows: dict[tuple[Any, ...], None] = {}
    for _ in range(8):
        new = [row for row in {_row(source): None for _ in range(8)} if row not in rows]
        gone = source.sample(list(rows), len(rows) // 2)
        with db.batch() as batch:
            batch.insert("t", new)
            batch.delete("t", gone)
        rows = {row: None for row in (*rows, *new) if row not in gone}
        peer.execute("DELETE FROM t")
        peer.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", [*rows])
        assert _comparable(list(db.view("v"))) == _comparable(peer.execute(duck).fetchall())


def _comparable(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row)) for row in rows)


def test_moments_of_rows_far_from_zero_lose_no_digits() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (x DOUBLE, y DOUBLE)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT var_pop(x) AS a, corr(x, y) AS b, stddev(y) AS c FROM t")
    db.insert("t", [(1e9 + i, 1e9 - 2 * i) for i in range(4)])
    db.insert("t", [(1e300, 1.0), (math.nan, 1.0), (0.1, 0.2)])
    db.delete("t", [(1e300, 1.0), (math.nan, 1.0), (0.1, 0.2)])
    assert list(db.view("v")) == [(1.25, -1.0, math.sqrt(20 / 3))]


def test_a_sample_of_one_row_has_no_variance_as_in_spark() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (x INT, y INT)")
    calls = "stddev(x), var_pop(x), covar_samp(x, y), corr(x, y), regr_slope(x, y), regr_r2(x, y), regr_sxx(x, y)"
    names = "(a, b, c, d, e, f, g)"
    db.execute(f"CREATE MATERIALIZED VIEW v {names} AS SELECT {calls} FROM t")
    assert list(db.view("v")) == [(None,) * 7]
    db.insert("t", [(1, 2)])
    assert list(db.view("v")) == [(None, 0.0, None, None, None, None, 0.0)]
    db.insert("t", [(1, 3)])
    assert list(db.view("v")) == [(0.0, 0.0, 0.0, None, 0.0, 1.0, 0.5)]


def test_months_between_returns_the_same_values_as_spark() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (a TIMESTAMP, b DATE)")
    columns = "months_between(a, b) AS m, timestampdiff(MONTH, b, a) AS n, next_day(b, 'MON') AS o"
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {columns} FROM t")
    db.insert("t", [(dt.datetime(2024, 3, day, hour), dt.date(2024, 2, 29)) for day, hour in ((15, 12), (31, 0))])
    monday = dt.date(2024, 3, 4)
    assert sorted(db.view("v")) == [(0.56451613, 0, monday), (1.0, 1, monday)]


WRONG = [
    ("SELECT DISTINCT ON (x) k, x FROM t ORDER BY k", "expressions of DISTINCT ON; x must come before k"),
    ("SELECT DISTINCT ON (k, x) k, d FROM t ORDER BY k, d, x", "x must come before d"),
    ("SELECT k FROM TUMBLE(t, ts)", "TUMBLE in FROM takes a table, a column and intervals, as in TUMBLE"),
    ("SELECT COUNT(*) AS n FROM t GROUP BY window(ts, '1 month')", "a window takes a constant interval above 0"),
    ("SELECT corr(x) AS a FROM t", "corr takes 2 arguments, not 1"),
    ("SELECT regexp_extract(s, '(', 1) AS a FROM t", "is not a regular expression"),
    ("SELECT to_date(s, 'YYYY') AS a FROM t", "at most yyyy"),
]


@pytest.mark.parametrize(("sql", "message"), WRONG)
def test_a_wrong_query_is_refused_with_a_remedy(sql: str, message: str) -> None:
    db = fv.Database()
    db.execute(TABLE)
    with pytest.raises(SqlError) as caught:
        db.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert message in str(caught.value)
    assert caught.value.line == 1
