"""The year as a stream of inserts and deletes.

On its day a flight is reported. One report in twelve is wrong: it says that the flight was on time. Thirty
days later the wrong row is deleted and the right one inserted. So what has come in by the end is the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WRONG = 12
"""One report in so many is wrong at first."""

LATER = timedelta(days=30)


@dataclass(frozen=True)
class Day:
    """What comes in on a day: new weather and flights, and reports of a month ago to be replaced."""

    day: date
    weather: pa.Table
    flights: pa.Table
    wrong: pa.Table
    right: pa.Table

    @property
    def rows(self) -> int:
        """Inserts and deletes of the day."""
        return sum(table.num_rows for table in (self.weather, self.flights, self.wrong, self.right))


def days(weather: pa.Table, flights: pa.Table) -> Iterator[Day]:
    """The days in order; after the last flight come days with corrections alone."""
    is_wrong = pa.array(np.random.default_rng(2013).integers(WRONG, size=flights.num_rows) == 0)
    wrong = flights.filter(is_wrong)
    for name in ("dep_delay", "arr_delay"):
        place = wrong.column_names.index(name)
        wrong = wrong.set_column(place, name, pa.array(np.zeros(wrong.num_rows, np.int64)))
    reported = _by_day(pa.concat_tables([flights.filter(pc.invert(is_wrong)), wrong]))
    wrongly = _by_day(wrong)
    right = _by_day(flights.filter(is_wrong))
    observed = _by_day(weather.append_column("day", weather["hour"].cast(pa.date32())))
    day, last = min(reported), max(reported) + LATER
    while day <= last:
        past = day - LATER
        yield Day(
            day,
            observed.get(day, weather.slice(0, 0)).select(weather.column_names),
            reported.get(day, flights.slice(0, 0)),
            wrongly.get(past, flights.slice(0, 0)),
            right.get(past, flights.slice(0, 0)),
        )
        day += timedelta(days=1)


def _by_day(table: pa.Table) -> dict[date, pa.Table]:
    table = table.sort_by("day")
    counts = table["day"].value_counts()
    found: dict[date, pa.Table] = {}
    start = 0
    for one in counts.to_pylist():
        found[one["values"]] = table.slice(start, one["counts"])
        start += one["counts"]
    return found
