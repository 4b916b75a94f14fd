"""TIMESTAMP_LTZ: moments that SQL reads and prints in the time zone of the database, as Spark does."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.spark.definition import catalog_of
from freshviews.types import BINARY, TIMESTAMP_LTZ, declared_decimal
from freshviews.types.python_functions import types_in
from tests.sql.zoned import ANSWERS, EXPRESSIONS, ROWS, ZONES

pytestmark = pytest.mark.plain_python

_SPARK = {"timestamp": "timestamp_ntz", "timestamp_ltz": "timestamp"}
TABLE = "CREATE TABLE t (id INT, z TIMESTAMP_LTZ, n TIMESTAMP, s STRING)"


def moment(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text)


def filled(zone: str | None) -> fv.Database:
    db = fv.Database(timezone=zone)
    db.execute(TABLE)
    db.insert("t", [(i, moment(z), moment(n), s) for i, (z, n, s) in enumerate(ROWS)])
    return db


def shown(value: Any, kind: str) -> str | None:
    """A value as ``tests.sql.zoned`` asks Spark for it."""
    if value is None:
        return None
    if isinstance(value, dt.timedelta):
        return str(Decimal(value // dt.timedelta(microseconds=1)).scaleb(-6).quantize(Decimal("0.000001")))
    if kind == "timestamp":
        return str((value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime) and value.microsecond:
        return str(value).rstrip("0")
    return str(value)


@pytest.mark.parametrize("zone", ZONES)
def test_expressions_have_the_same_values_and_types_as_in_spark(zone: str) -> None:
    answers = json.loads(ANSWERS.read_text())[zone]
    assert [*answers] == [*EXPRESSIONS]
    db = filled(zone)
    listed = ", ".join(f"{expression} AS x{i}" for i, expression in enumerate(answers))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {listed} FROM t")
    kinds = [str(row[1]).lower().replace(", ", ",") for row in db.execute("DESCRIBE v").fetchall()][1:]
    columns = list(zip(*(row[1:] for row in sorted(db.view("v"))), strict=True))
    for own, column, (expression, (kind, values)) in zip(kinds, columns, answers.items(), strict=True):
        found = [shown(value, kind) for value in column]
        if kind == "double":
            found, values = ([text and float(text) for text in each] for each in (found, values))
        assert (_SPARK.get(own, own), found) == (kind, values), expression


UNIX = {
    "America/New_York": {
        "CAST(timestamp_seconds(k) AS STRING)": (
            "2026-03-08 03:00:00", "2026-11-01 01:30:00", "1942-02-09 03:00:00", "1945-10-17 13:29:59",
        ),
        "from_unixtime(k, 'yyyy-MM-dd HH:mm')": (
            "2026-03-08 03:00", "2026-11-01 01:30", "1942-02-09 03:00", "1945-10-17 13:29",
        ),
        "unix_timestamp(n)": (1772937000, 1793498399, -880234200, -764120700),
        "unix_timestamp(CAST(n AS DATE))": (1772946000, 1793505600, -880225200, -764103600),
        "unix_seconds(CAST(n AS TIMESTAMP_LTZ))": (1772955000, 1793512799, -880216200, -764102700),
        "from_unixtime(unix_timestamp(n))": (
            "2026-03-07 21:30:00", "2026-10-31 21:59:59", "1942-02-08 21:30:00", "1945-10-14 19:15:00",
        ),
        "to_unix_timestamp(date_format(n, 'dd/MM/yyyy'), 'dd/MM/yyyy')": (
            1772946000, 1793505600, -880225200, -764103600,
        ),
    },
    "Asia/Kolkata": {
        "CAST(timestamp_seconds(k) AS STRING)": (
            "2026-03-08 12:30:00", "2026-11-01 12:00:00", "1942-02-09 13:30:00", "1945-10-17 23:59:59",
        ),
        "from_unixtime(k, 'yyyy-MM-dd HH:mm')": (
            "2026-03-08 12:30", "2026-11-01 12:00", "1942-02-09 13:30", "1945-10-17 23:59",
        ),
        "unix_timestamp(n)": (1772937000, 1793498399, -880234200, -764120700),
        "unix_timestamp(CAST(n AS DATE))": (1772908200, 1793471400, -880266600, -764141400),
        "unix_seconds(CAST(n AS TIMESTAMP_LTZ))": (1772917200, 1793478599, -880257600, -764140500),
        "from_unixtime(unix_timestamp(n))": (
            "2026-03-08 08:00:00", "2026-11-01 07:29:59", "1942-02-09 09:00:00", "1945-10-15 05:45:00",
        ),
        "to_unix_timestamp(date_format(n, 'dd/MM/yyyy'), 'dd/MM/yyyy')": (
            1772908200, 1793471400, -880266600, -764141400,
        ),
    },
}
"""By zone and expression, Spark's values for ``UNIX_ROWS``."""
UNIX_ROWS = (
    # Seconds since 1970, and a local time: in New York within the hour that the clocks skip or have twice.
    (1772953200, "2026-03-08 02:30:00"),
    (1793514600, "2026-11-01 01:59:59.999999"),
    (-880218000, "1942-02-09 02:30:00"),
    (-763882201, "1945-10-15 00:15:00"),
)


@pytest.mark.parametrize("zone", UNIX)
def test_seconds_since_1970_have_the_values_of_spark_where_clocks_change(zone: str) -> None:
    db = fv.Database(timezone=zone)
    db.execute("CREATE TABLE u (id INT, k BIGINT, n TIMESTAMP)")
    db.insert("u", [(i, k, moment(n)) for i, (k, n) in enumerate(UNIX_ROWS)])
    listed = ", ".join(f"{expression} AS x{i}" for i, expression in enumerate(UNIX[zone]))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT id, {listed} FROM u")
    columns = list(zip(*(row[1:] for row in sorted(db.view("v"))), strict=True))
    assert dict(zip(UNIX[zone], columns, strict=True)) == UNIX[zone]


def test_groups_joins_and_aggregates_compare_instants() -> None:
    db = filled("Europe/Berlin")
    db.execute("""
        CREATE MATERIALIZED VIEW g AS SELECT z, COUNT(*) AS n, MAX(id) AS i FROM t GROUP BY z HAVING COUNT(*) > 1;
        CREATE MATERIALIZED VIEW j AS SELECT a.id, b.id AS other FROM t a JOIN t b ON a.z = b.z AND a.id < b.id;
        CREATE MATERIALIZED VIEW m AS SELECT MIN(z) AS low, MAX(z) AS high, COUNT(DISTINCT DATE(z)) AS days FROM t;
        CREATE MATERIALIZED VIEW w AS SELECT window.start, COUNT(*) AS n FROM t GROUP BY window(z, '1 hour');
        CREATE MATERIALIZED VIEW u AS SELECT z FROM t WHERE id = 0 UNION ALL SELECT n FROM t WHERE id = 0
    """)
    twice = dt.datetime(2026, 10, 25, 1, 30)
    assert list(db.view("g")) == [(twice, 2, 13)]
    assert list(db.view("j")) == [(4, 13)]
    assert list(db.view("m")) == [(dt.datetime(1950, 6, 30, 22, 15), dt.datetime(2050, 7, 1, 12, 34, 56, 789000), 9)]
    assert dict(db.view("w"))[dt.datetime(2026, 10, 25, 1)] == 2
    assert sorted(db.view("u")) == [(moment(ROWS[0][0]),), (dt.datetime(2026, 3, 29, 1, 30),)]
    db.delete("t", [(4, twice, moment(ROWS[4][1]), ROWS[4][2])])
    assert (list(db.view("g")), list(db.view("j"))) == ([], [])


def test_python_datetimes_become_instants_in_utc() -> None:
    db = fv.Database(timezone="Europe/Berlin")
    db.execute(f"{TABLE}; CREATE MATERIALIZED VIEW v AS SELECT id, CAST(z AS STRING) AS s FROM t")
    noon = dt.datetime(2026, 7, 1, 12)
    zoned = noon.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
    db.insert("t", [(1, noon, None, None), (2, zoned, None, None)])
    db.execute("INSERT INTO t (id, z) VALUES (3, ?), (4, ?), (5, TIMESTAMP_LTZ '2026-07-01 12:00:00')", noon, zoned)
    assert dict(db.view("v")) == {i: f"2026-07-01 {14 if i in (1, 3) else 12}:00:00" for i in range(1, 6)}
    assert [row[1].hour for row in sorted(db.table("t"))] == [12, 10, 12, 10, 10]
    # Within an expression a parameter without a zone is a TIMESTAMP, the local time.
    assert db.execute("DELETE FROM t WHERE z = ? AND id < 5", noon).deleted == 2
    assert db.execute("UPDATE t SET z = z + INTERVAL '1' HOUR WHERE z = ?", zoned).updated == 1
    assert dict(db.view("v")) == {1: "2026-07-01 14:00:00", 3: "2026-07-01 14:00:00", 5: "2026-07-01 13:00:00"}


def test_a_number_of_seconds_since_1970_is_read_as_a_moment() -> None:
    db = fv.Database(timezone="Europe/Berlin")
    seconds = (
        "unix_timestamp('2024-07-01 02:00:00')",
        "to_unix_timestamp('2024-07-01 02:00:00')",
        "unix_timestamp('01.07.2024 02', 'dd.MM.yyyy HH')",
        "unix_timestamp(DATE '2024-07-01') + 7200",
    )
    db.execute(
        f"""CREATE TABLE t (z TIMESTAMP_LTZ, n BIGINT); CREATE MATERIALIZED VIEW v AS
        SELECT z = timestamp_seconds(n) AS a, z = timestamp_millis(n * 1000) AS b, z = timestamp_seconds(n + 0.0) AS c,
          from_unixtime(n) AS f, CAST(timestamp_seconds(CAST(n AS DOUBLE)) AS STRING) AS s, {", ".join(seconds)}
        FROM t"""
    )
    moment = dt.datetime(2024, 7, 1, tzinfo=dt.UTC)
    number = int(moment.timestamp())
    db.insert("t", [(moment, number)])
    assert list(db.view("v")) == [(True, True, True, *["2024-07-01 02:00:00"] * 2, *[number] * 4)]


def test_functions_of_users_take_and_give_moments() -> None:
    db = fv.Database(timezone="Europe/Berlin")
    later = dt.timedelta(hours=1)
    db.function("later", lambda z: z + later, takes=["TIMESTAMP_LTZ"], returns="TIMESTAMP_LTZ")
    db.execute(f"{TABLE}; CREATE MATERIALIZED VIEW v AS SELECT CAST(later(z) AS STRING) AS a, later(n) = z AS b FROM t")
    db.insert("t", [(1, dt.datetime(2024, 7, 1), dt.datetime(2024, 7, 1, 1), None)])
    assert list(db.view("v")) == [("2024-07-01 03:00:00", True)]
    assert types_in("BINARY; TIMESTAMP_LTZ; DECIMAL(20, 2)") == (BINARY, (TIMESTAMP_LTZ, declared_decimal(20, 2)))


def test_a_local_time_outside_the_years_1_to_9999_is_refused() -> None:
    db = fv.Database(timezone="America/New_York")
    db.execute(f"{TABLE}; CREATE MATERIALIZED VIEW v AS SELECT CAST(z AS STRING) AS s FROM t")
    with pytest.raises(fv.EvaluationError, match="outside the years 1 to 9999"):
        db.insert("t", [(1, dt.datetime(1, 1, 1, 1), None, None)])
    assert not list(db.view("v"))


def test_a_durable_database_keeps_its_time_zone(tmp_path: Path) -> None:
    query = "CREATE MATERIALIZED VIEW v AS SELECT id, hour(z) AS h FROM t"
    with fv.Database(tmp_path, timezone="Europe/Berlin") as db:
        db.execute(TABLE + " TBLPROPERTIES ('comment' = 'calls')")
        db.insert("t", [(1, dt.datetime(2026, 7, 1, 12), None, None)])
    for snapshot in (True, False):
        with fv.Database(tmp_path) as db:
            db.execute(query.replace("VIEW v", f"VIEW v{int(snapshot)}"))
            assert list(db.view(f"v{int(snapshot)}")) == [(1, 14)]
            if snapshot:
                db.snapshot()
    with pytest.raises(fv.StoreError, match="has the time zone Europe/Berlin, not UTC; open it without timezone"):
        fv.Database(tmp_path, timezone="UTC")
    with fv.Database(tmp_path, timezone="Europe/Berlin") as db:
        assert list(db.view("v1")) == [(1, 14)]


def test_a_default_is_stored_and_shown_as_an_instant() -> None:
    db = fv.Database(timezone="Europe/Berlin")
    db.execute("CREATE TABLE d (id INT, z TIMESTAMP_LTZ DEFAULT TIMESTAMP_LTZ '2026-07-01 12:00:00')")
    db.insert("d", [{"id": 1}])
    assert list(db.table("d")) == [(1, dt.datetime(2026, 7, 1, 10))]
    created = db.execute("SHOW CREATE TABLE d").fetchall()[0][0]
    assert "`z` TIMESTAMP_LTZ DEFAULT TIMESTAMP_LTZ '2026-07-01 10:00:00Z'" in created
    other = fv.Database(timezone="Asia/Tokyo")
    other.execute(created)
    other.insert("d", [{"id": 1}])
    assert list(other.table("d")) == list(db.table("d"))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SET TIME ZONE 'Europe/Nowhere'", "'Europe/Nowhere' is not a time zone; a name such as"),
        ("SET TIME ZONE 'Asia/Tokyo'", "the time zone is Europe/Berlin, in which t was created; SET TIME ZONE comes"),
        ("SET a = 3", "SET TIME ZONE 'name' is accepted; another SET is not"),
        ("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE z < now()", "now() in the time zone Europe/Berlin"),
        ("CREATE MATERIALIZED VIEW v AS SELECT timestampdiff(HOUR, z, n) AS x FROM t", "timestampdiff of a"),
        ("CREATE MATERIALIZED VIEW v AS SELECT to_utc_timestamp(z, 'Asia/Tokyo') AS x FROM t", "CAST it to TIMEST"),
        ("CREATE MATERIALIZED VIEW v AS SELECT CAST(true AS TIMESTAMP_LTZ) AS x FROM t", "BOOLEAN cannot be cast to"),
        ("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) OVER (ORDER BY z RANGE INTERVAL '1' DAY PRECEDING) AS x FROM t",
         "cannot be added to TIMESTAMP_LTZ"),
    ],
)  # fmt: skip
def test_unsupported_uses_of_a_time_zone_are_refused(sql: str, message: str) -> None:
    db = filled("Europe/Berlin")
    with pytest.raises(fv.SqlError) as caught:
        db.execute(sql)
    assert message in str(caught.value)


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(fv.ArgumentError, match=r"timezone must be a name such as 'Europe/Berlin' or '.02:00', not 'no"):
        fv.Database(timezone="nowhere")
    fv.Database(timezone="+02:00").close()


def test_a_pipeline_refuses_columns_in_a_time_zone() -> None:
    with pytest.raises(fv.UnsupportedSql, match=r"t\.z, a TIMESTAMP_LTZ, as a column of a pipeline is not supported"):
        catalog_of(TABLE)
