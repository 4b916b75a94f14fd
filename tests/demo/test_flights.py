"""The demo's stream and its check, on a few made-up flights."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import freshviews as fv
from demo.replay import LATER, days
from demo.verify import differences, first_difference

SCRIPT = (Path(__file__).parents[2] / "demo" / "views.sql").read_text()
COUNT = 600


def tables() -> dict[str, pa.Table]:
    """Two airlines, three planes, a flight an hour; every seventh flight is cancelled."""
    start = datetime(2013, 1, 1, 6)
    hours = [start + timedelta(hours=i) for i in range(COUNT)]
    times = pa.timestamp("us")
    cancelled = [i % 7 == 0 for i in range(COUNT)]
    flights = {
        "hour": pa.array(hours, times),
        "carrier": ["UA" if i % 3 else "B6" for i in range(COUNT)],
        "flight": [i % 50 for i in range(COUNT)],
        "scheduled": pa.array([hour + timedelta(minutes=i % 60) for i, hour in enumerate(hours)], times),
        "day": pa.array([hour.date() for hour in hours], pa.date32()),
        "tailnum": [f"N{i % 4}" if i % 5 else None for i in range(COUNT)],
        "origin": ["JFK" if i // 3 % 2 else "LGA" for i in range(COUNT)],
        "dest": ["BOS"] * COUNT,
        "dep_delay": [None if gone else i * 37 % 400 for i, gone in enumerate(cancelled)],
        "arr_delay": [None if gone else i * 41 % 300 - 60 for i, gone in enumerate(cancelled)],
    }
    weather = {
        "origin": ["JFK", "LGA"] * COUNT,
        "hour": pa.array([hour for hour in hours for _ in range(2)], times),
        "temp": [20.0 + i % 40 for i in range(2 * COUNT)],
        "wind_speed": [None if i % 11 == 0 else i % 30 * 1.0 for i in range(2 * COUNT)],
        "precip": [0.1 * (i % 4 == 0) for i in range(2 * COUNT)],
        "visib": [10.0 - i % 9 for i in range(2 * COUNT)],
    }
    planes = {"tailnum": ["N0", "N1", "N2"], "built": [1999, 2004, None], "manufacturer": ["A", "B", "B"]}
    planes |= {"model": ["a", "b", "b"], "seats": [100, 200, 200]}
    return {
        "airlines": pa.table({"carrier": ["UA", "B6"], "name": ["United", "JetBlue"]}),
        "airports": pa.table({"faa": ["BOS"], "name": ["Logan"]}),
        "planes": pa.table(planes),
        "weather": pa.table(weather),
        "flights": pa.table(flights),
    }


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def test_what_has_come_in_by_the_end_is_the_data() -> None:
    data = tables()
    flights: Counter[tuple[object, ...]] = Counter()
    weather: Counter[tuple[object, ...]] = Counter()
    stream = list(days(data["weather"], data["flights"]))
    for day in stream:
        weather += rows_of(day.weather)
        flights.update(rows_of(day.flights))
        flights.subtract(rows_of(day.wrong))
        assert min(flights.values()) >= 0
        flights.update(rows_of(day.right))
    assert +flights == rows_of(data["flights"])
    assert weather == rows_of(data["weather"])
    assert stream[0].day == date(2013, 1, 1)
    assert stream[-1].day == max(data["flights"]["day"].to_pylist()) + LATER
    assert sum(day.wrong.num_rows for day in stream) > 10


def test_every_view_of_the_demo_equals_duckdb_after_the_replay() -> None:
    data = tables()
    db = fv.Database()
    db.execute(SCRIPT)
    for name in ("airlines", "airports", "planes"):
        db.insert(name, data[name])
    for day in days(data["weather"], data["flights"]):
        with db.batch() as batch:
            batch.insert("weather", day.weather)
            batch.insert("flights", day.flights)
            batch.delete("flights", day.wrong)
            batch.insert("flights", day.right)
    found = differences(db, SCRIPT, data)
    assert set(found) == set(db.views)
    for name, (rows, difference) in found.items():
        assert rows > 0, name
        assert difference is None, name


@pytest.mark.parametrize(
    "ours, theirs",
    [
        ([(1, 2.0)], [(1, 2.1)]),
        ([(1, None)], [(1, 0)]),
        ([(1,)], [(1,), (1,)]),
        ([("a", 1), ("b", 2)], [("a", 2), ("b", 1)]),
    ],
)
def test_the_check_notices_a_difference(ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> None:
    assert first_difference(ours, theirs) is not None


def test_the_check_takes_rows_in_any_order_and_doubles_as_they_were_added() -> None:
    assert first_difference([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)]) is None
