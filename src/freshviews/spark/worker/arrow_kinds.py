"""Lists the types of file columns that Arrow reads with the same values as Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from freshviews.errors import FreshviewsError

KINDS: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us"),
}
"""By the type with which Spark reads a column, the type of its Arrow batches."""

_FIRST = {
    pa.date32(): pa.scalar(date(1582, 10, 15)),
    pa.timestamp("us"): pa.scalar(datetime(1900, 1, 1), pa.timestamp("us")),
}
"""Files may have older days in another calendar, and older times with offsets of zones."""


class NotByArrow(FreshviewsError):
    """A file that Arrow may read otherwise than Spark; the text says which and why."""


def arrow_kind(kind: str) -> pa.DataType | None:
    """The Arrow type of a column that Spark reads as a type; None if only Spark reads it."""
    if kind.startswith("decimal("):
        precision, scale = map(int, kind[len("decimal(") : -1].split(","))
        return pa.decimal128(precision, scale)
    return KINDS.get(kind)


def check_times(path: str, name: str, column: pa.ChunkedArray) -> None:
    """Raise NotByArrow if a column has days or times that Spark may shift."""
    first = _FIRST.get(column.type)
    if first is not None and pc.any(pc.less(column, first)).as_py():
        raise NotByArrow(f"{path}: column {name} has times before {first}, which Spark and Arrow may read differently")
