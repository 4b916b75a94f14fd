"""The year as files of changes, a month at a time, with late corrections.

A flight is reported in its month. One report in twelve is wrong and says that the flight was on time; a month later an
update corrects it. One flight in two hundred is also reported under a number that does not exist; a month later that
row is deleted. One hour of weather in twenty has no measurements at first. After the last month only its corrections
follow, so at the end the tables equal the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from demo.data import Tables, months_of

WRONG, TWICE, UNMEASURED = 12, 200, 20
"""One in this many reports is wrong, is sent twice, or has no measurements at first."""

NO_SUCH_FLIGHT = 90_000
"""Added to the number of a flight that is reported twice; no flight has five digits."""

OPEN = ("weather", "flights")
"""The tables that change every month; the others are complete in the first month."""


@dataclass(frozen=True)
class Month:
    """The changes of a month by table, with a name such as 2013-05."""

    name: str
    changes: Tables

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.changes.values())


def months(tables: Tables) -> Iterator[Month]:
    """The months in order, and then the corrections of the last one."""
    flights, weather = tables["flights"], tables["weather"]
    random = np.random.default_rng(2013)
    wrong, twice = _some(random, flights, WRONG), _some(random, flights, TWICE)
    unmeasured = _some(random, weather, UNMEASURED)
    flown, measured = _numbers(months_of(flights)), _numbers(months_of(weather))
    last = int(flown.max())
    for month in range(1, last + 2):
        now, late = flown == month, flown == month - 1
        flight_changes = [
            _op("insert", _take(flights, now & ~wrong)),
            _op("insert", _on_time(_take(flights, now & wrong))),
            _op("insert", _misnumbered(_take(flights, now & twice))),
            _op("update", _take(flights, late & wrong)),
            _op("delete", _misnumbered(_take(flights, late & twice))),
        ]
        reported, again = measured == month, (measured == month - 1) & unmeasured
        weather_changes = [
            _take(weather, reported & ~unmeasured),
            _without_measurements(_take(weather, reported & unmeasured)),
            _take(weather, again),
        ]
        changes = {"weather": pa.concat_tables(weather_changes), "flights": pa.concat_tables(flight_changes)}
        if month == 1:
            changes |= {name: table for name, table in tables.items() if name not in OPEN}
        yield Month(f"2013-{month:02d}" if month <= last else "the last corrections", changes)


def make_folders(folder: Path, tables: Tables) -> None:
    """Create empty input folders."""
    for name in tables:
        (folder / "in" / name).mkdir(parents=True)


def write(folder: Path, month: Month, number: int) -> None:
    """Put the files of a month into the input folders, each atomically: Spark ignores names that begin with a dot."""
    for name, table in month.changes.items():
        if not table.num_rows:
            continue
        ending = "parquet" if name == "flights" else "csv"
        aside = folder / "in" / name / f".month-{number:02d}.{ending}"
        if ending == "parquet":
            pa.parquet.write_table(table, aside)
        else:
            pa.csv.write_csv(table, aside)
        aside.rename(aside.with_name(aside.name.removeprefix(".")))


def months_written(folder: Path) -> int:
    """The number of months in the input folders of a finished replay."""
    return len(list((folder / "in" / "flights").glob("month-*.parquet"))) - 1


def _some(random: np.random.Generator, table: pa.Table, one_in: int) -> npt.NDArray[np.bool_]:
    return random.integers(one_in, size=table.num_rows) == 0


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = column.to_numpy()
    return found


def _take(table: pa.Table, mask: npt.NDArray[np.bool_]) -> pa.Table:
    return table.filter(pa.array(mask))


def _op(word: str, table: pa.Table) -> pa.Table:
    return table.append_column("op", pa.array([word] * table.num_rows, pa.string()))


def _on_time(flights: pa.Table) -> pa.Table:
    """The flights as if each had left and arrived on time."""
    late = pc.multiply(flights["dep_delay"], 60_000_000).cast(pa.duration("us"))
    flights = _with(flights, "back", pc.subtract(flights["back"], late))
    for name in ("dep_delay", "arr_delay"):
        flights = _with(flights, name, pa.array(np.zeros(flights.num_rows, np.int32)))
    return flights


def _misnumbered(flights: pa.Table) -> pa.Table:
    return _with(flights, "flight", pc.add(flights["flight"], pa.scalar(NO_SUCH_FLIGHT, pa.int32())))


def _without_measurements(weather: pa.Table) -> pa.Table:
    for name in weather.column_names[2:]:
        weather = _with(weather, name, pa.nulls(weather.num_rows, weather[name].type))
    return weather


def _with(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)
