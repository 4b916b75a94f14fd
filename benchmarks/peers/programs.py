"""Compiled programs: each reads a stream from a file, maintains one view, and writes its answers and times.

The file holds 64-bit integers: the number of steps, the steps before the clock starts; then for each step its table
(by position), its sign, the number of its rows and of its columns, 1 if answers are compared after it, and the rows.
Strings are numbers (in the order of ``SEGMENTS``), dates are days since 1970, decimals have their scale.

A program is called with the view, the file, the file for its times and the limit in seconds. It reads all of the
stream, then starts the clock. At a point of comparison it stops the clock, and prints ``at <step> <number of rows>``
and the rows of the view; at the end it prints ``cpu <nanoseconds>``, and writes the nanoseconds of each step.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measuring.answers import answer
from benchmarks.measuring.course import Course, limit
from benchmarks.measuring.programs import missing, path_of
from benchmarks.measuring.stream import Stream

SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
DAY_0 = dt.date(1970, 1, 1)


def cpp(stream: Stream) -> dict[str, Any]:
    """Hand-written higher-order deltas over flat hash tables (benchmarks/peers/cpp)."""
    return _run(stream, "cpp")


def differential(stream: Stream) -> dict[str, Any]:
    """Differential dataflow, one worker (benchmarks/peers/rust/differential)."""
    return _run(stream, "differential")


def dbsp(stream: Stream) -> dict[str, Any]:
    """DBSP, one worker (benchmarks/peers/rust/dbsp)."""
    return _run(stream, "dbsp")


def _run(stream: Stream, name: str) -> dict[str, Any]:
    view = stream.pattern.get("program")
    if view is None:
        return {"missing": "no program for this view"}
    reason = missing(name)
    if reason is not None:
        return {"missing": reason}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        changes, times = Path(folder) / "stream", Path(folder) / "times"
        with changes.open("wb") as file:
            for part in encoded(stream):
                file.write(part.tobytes())
        command = [str(path_of(name)), str(view), str(changes), str(times), f"{min(limit(), 1e9):g}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return {"failed": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1][:300]}
        course = Course(stream)
        nanoseconds = _read(done.stdout, str(view), course)
        course.replay((np.fromfile(times, np.int64) / 1e9).tolist(), nanoseconds / 1e9)
    return course.result()


def _read(text: str, view: str, course: Course) -> int:
    """Read the answers; returns the nanoseconds of CPU time."""
    lines = iter(text.splitlines())
    for line in lines:
        kind, first, *more = line.split()
        if kind == "cpu":
            return int(first)
        rows = [[int(value) for value in next(lines).split()] for _ in range(int(more[0]))]
        course.answers[first] = answer(_DECODED.get(view, list)(row) for row in rows)
    raise ValueError("the program printed no CPU time")


def _q3(row: Sequence[int]) -> list[Any]:
    order, revenue, date, priority = row
    return [order, Decimal(revenue).scaleb(-4), DAY_0 + dt.timedelta(date), priority]


_DECODED: dict[str, Callable[[Sequence[int]], list[Any]]] = {"q3": _q3}


def encoded(stream: Stream) -> list[np.ndarray]:
    """The words of the file, as arrays of int64."""
    places = {relation.name: place for place, relation in enumerate(stream.relations)}
    compared = frozenset(stream.compared)
    found = [np.array([len(stream.steps), stream.before])]
    for i, step in enumerate(stream.steps):
        columns = [_integers(column) for column in step.rows.columns]
        head = [places[step.table], step.sign, len(step.rows), len(columns), int(i in compared)]
        found += [np.array(head), np.column_stack(columns).ravel()]
    return found


def _integers(column: pa.Array) -> np.ndarray:
    kind = column.type
    if pa.types.is_decimal(kind):
        column = pc.multiply(column, pa.scalar(Decimal(10) ** kind.scale)).cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.int32())
    elif not pa.types.is_integer(kind):
        column = pc.index_in(column.cast(pa.string()), pa.array(SEGMENTS))
    return column.to_numpy(zero_copy_only=False).astype(np.int64)
