"""The accepted shapes of rows, converted to one of two: a list of rows, or Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from freshviews.errors import BatchError

ACCEPTED = (
    "rows are a list (or any iterable) of tuples or dicts, a pyarrow Table, RecordBatch or "
    "RecordBatchReader, or a pandas or polars DataFrame"
)


def accepted(rows: Any, table: str) -> list[Any] | pa.Table | pa.RecordBatch:
    """The rows as a list, an Arrow table or a record batch; raises BatchError for what is none of them.

    Iterables and readers are read to their end: a batch is one version, so it is whole before it counts.
    """
    if isinstance(rows, (list, pa.Table, pa.RecordBatch)):
        return rows
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    home = type(rows).__module__.partition(".")[0]
    kind = type(rows).__name__
    if home == "pandas" and kind == "DataFrame":
        return pa.Table.from_pandas(rows, preserve_index=False)
    if home == "polars" and kind == "DataFrame":
        return rows.to_arrow()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows).read_all()
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise BatchError(
            f"table {table}: rows given as {kind}; {ACCEPTED}", table=table, rule="rows of an accepted shape"
        )
    return accepted(list(rows), table)
