"""SELECTs read TIMESTAMP_LTZ in the time zone of the database as Spark does, or refuse."""

from __future__ import annotations

import datetime as dt
import json
import re

import pytest

import freshviews as fv
from tests.sql.test_zoned import filled, shown
from tests.sql.zoned import ANSWERS

pytestmark = pytest.mark.plain_python(only=True)

REFUSED = re.compile(
    r"z [+-] |n - z|(date_)?trunc\(|timestampadd|date_format|convert_timezone|months_between|(xx)?hash"
    r"|CAST\(z AS D[OE]|CAST\((id|CAST\(id).* AS TIMESTAMP_LTZ|TRY_CAST"
)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "-03:30", "UTC"])
def test_a_select_has_the_values_of_spark_in_each_time_zone(zone: str) -> None:
    answers = json.loads(ANSWERS.read_text())[zone]
    taken = {expression: found for expression, found in answers.items() if not REFUSED.match(expression)}
    assert len(taken) == 53
    listed = ", ".join(f"{expression} AS x{i}" for i, expression in enumerate(taken))
    rows = filled(zone).sql(f"SELECT {listed} FROM t ORDER BY id").fetchall()
    for column, (expression, (kind, values)) in zip(zip(*rows, strict=True), taken.items(), strict=True):
        assert [shown(value, kind) for value in column] == values, expression


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("z + INTERVAL '1' DAY", "a TIMESTAMP_LTZ here is not supported in a SELECT; CAST it to TIMESTAMP, its local"),
        ("date_trunc('DAY', z)", "a TIMESTAMP_LTZ here is not supported in a SELECT"),
        ("z - n", "a TIMESTAMP_LTZ here is not supported in a SELECT"),
        ("CASE z WHEN n THEN 1 END", "a TIMESTAMP_LTZ here is not supported in a SELECT"),
        ("LAG(z, 1, n) OVER (ORDER BY id)", "a TIMESTAMP_LTZ here is not supported in a SELECT"),
        ("COUNT(*) OVER (ORDER BY z RANGE INTERVAL '1' DAY PRECEDING)", "a TIMESTAMP_LTZ here is not supported"),
        ("z IN (SELECT n FROM t)", "a TIMESTAMP_LTZ and another type in a subquery are not compared; CAST one of them"),
        *((f"unix_{unit}(s)", "text as a moment of the time zone Europe/Berlin") for unit in ("seconds", "timestamp")),
        *((f"timestamp_{unit}(id)", "a number as a moment of the time") for unit in ("seconds", "millis", "micros")),
        ("(z, id) = (n, 1)", "a TIMESTAMP_LTZ here is not supported in a SELECT"),
        ("TRY_CAST(s AS TIMESTAMP_LTZ)", "TRY_CAST of a text to TIMESTAMP_LTZ is not supported in a SELECT"),
        ("CAST(id AS TIMESTAMP_LTZ)", "INT as a TIMESTAMP_LTZ in a SELECT is not supported; CAST it to"),
    ],
)
def test_expressions_that_duckdb_computes_differently_are_refused(expression: str, message: str) -> None:
    with pytest.raises(fv.SqlError, match=r"line 1, column \d+") as caught:
        filled("Europe/Berlin").sql(f"SELECT {expression} AS x FROM t")
    assert message in str(caught.value)


def test_groups_joins_sets_and_parameters_compare_instants() -> None:
    db = filled("Europe/Berlin")
    twice = dt.datetime(2026, 10, 25, 1, 30)
    aware = dt.datetime(2026, 10, 25, 2, 30, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    grouped = "SELECT z, COUNT(*), MAX(id) FROM t WHERE z IS NOT NULL GROUP BY z HAVING COUNT(*) > 1"
    assert db.sql(grouped).fetchall() == [(twice, 2, 13)]
    joined = "SELECT a.id, b.id FROM t a JOIN t b USING (z) WHERE a.id < b.id"
    assert db.sql(joined).fetchall() == [(4, 13)]
    assert db.sql("SELECT id FROM t WHERE z = ? ORDER BY id", [aware]).fetchall() == [(4,), (13,)]
    assert db.sql("SELECT id FROM t WHERE z = ?", [dt.datetime(2026, 10, 25, 1, 30)]).fetchall() == [(2,)]
    either = "SELECT z FROM t WHERE id = 0 UNION ALL SELECT n FROM t WHERE id = 0 ORDER BY 1"
    assert db.sql(either).fetchall() == [(dt.datetime(2026, 3, 28, 1, 30),), (dt.datetime(2026, 3, 29, 1, 30),)]
    same = "SELECT id FROM t WHERE z >= (SELECT MAX(z) FROM t) AND z IN (SELECT z FROM t)"
    assert db.sql(same).fetchall() == [(11,)]
    assert db.sql("SELECT MAX(q.z) AS m FROM (SELECT z FROM t UNION SELECT n FROM t) q").fetchall() == [
        (dt.datetime(2050, 7, 1, 12, 34, 56, 789000),)
    ]


def test_a_statement_stores_no_moments_of_a_select_but_their_local_times() -> None:
    db = filled("Europe/Berlin")
    db.execute("CREATE TABLE u (id INT, z TIMESTAMP_LTZ)")
    for start in ("INSERT INTO u SELECT id, ", "CREATE TABLE w AS SELECT id, "):
        for value in ("z", "COALESCE(z, n) AS z"):
            with pytest.raises(fv.SqlError, match=r"line 1, column \d+: a statement that stores .* no TIMESTAMP_LTZ"):
                db.execute(f"{start}{value} FROM t")
    db.execute("INSERT INTO u SELECT id, CAST(z AS TIMESTAMP) FROM t WHERE id = 0")
    assert list(db.table("u")) == [(0, dt.datetime(2026, 3, 28, 1, 30))]
