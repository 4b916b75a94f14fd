"""Converts the rows that a user passes, such as a data frame or an iterable, into a list or an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np
import pyarrow as pa

from freshviews.engine.codes.objects import fields_of
from freshviews.errors import ArgumentError, BatchError, shown
from freshviews.progress import SILENT, Reporter


class ArrowStream(Protocol):
    """Rows by Arrow's PyCapsule interface: a frame of pandas, polars or pyarrow, a relation of DuckDB, a view."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any: ...


class Dataclass(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class Model(Protocol):
    """A pydantic model."""

    def model_dump(self) -> dict[str, Any]: ...


RowByName = Mapping[str, Any] | Dataclass | Model
"""One row whose values have names, for type checkers."""

Rows = ArrowStream | RowByName | Iterable[Sequence[Any] | RowByName]
"""The rows of a batch, for type checkers."""

Keys = ArrowStream | Iterable[Any]
"""The keys of rows, for type checkers."""

_OFTEN = 4096
"""Rows of an iterable after which it is reported how many were read."""

ACCEPTED = (
    "rows must be a list (or any iterable) of tuples, dicts, dataclass or pydantic objects, one of these objects, a "
    "pyarrow Table, RecordBatch or RecordBatchReader, or a pandas or polars DataFrame"
)


def accepted(rows: Any, table: str, reporter: Reporter = SILENT) -> list[Any] | pa.Table | pa.RecordBatch:
    """The rows as a list, an Arrow table or a record batch; raises BatchError for other input.

    Iterables and readers are read to their end, because a batch is one version. One row by name becomes a list of it.
    """
    if type(rows) is dict:
        return [rows]
    if isinstance(rows, list):
        return rows if type(rows) is list else [*rows]
    if isinstance(rows, (pa.Table, pa.RecordBatch)):
        if rows.num_rows < 0:
            message = f"table {table}: the Arrow data is corrupt: it has {rows.num_rows} rows"
            raise BatchError(message, table=table, rule="a batch has 0 rows or more")
        return rows
    if isinstance(rows, pa.RecordBatchReader):
        return _read_all(rows, table, reporter)
    home = type(rows).__module__.partition(".")[0]
    kind = type(rows).__name__
    if home == "pandas" and kind == "DataFrame":
        return _without_types_of_nan(_of_pandas(rows, table))
    if home == "polars" and kind == "DataFrame":
        return rows.to_arrow()
    if hasattr(rows, "__arrow_c_stream__"):
        return _read_all(_reader_of(rows, table), table, reporter)
    if not isinstance(rows, type) and fields_of(rows) is not None:
        return [rows]
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        hint = "call collect() on it; " if kind == "LazyFrame" else ""
        raise BatchError(
            f"table {table}: rows are given as {kind}; {hint}{ACCEPTED}", table=table, rule="rows of an accepted shape"
        )
    if isinstance(rows, tuple) and rows and all(one is None or isinstance(one, _SCALARS) for one in rows):
        message = f"table {table}: one row is given as a tuple, not in a list: write [{shown(rows)}]"
        raise BatchError(message, table=table, value=rows, rule="rows of an accepted shape")
    try:
        each = iter(rows)
    except TypeError as error:  # A NumPy array without dimensions.
        raise BatchError(f"table {table}: {error}; {ACCEPTED}", table=table, rule="rows of an accepted shape") from None
    if isinstance(rows, np.ndarray):
        each = iter(rows.tolist())
    return list(_counted(each, table, reporter) if reporter.shows_rows else each)


_SCALARS = (str, int, float, bool, Decimal, date)
"""Types of values that are no rows; strings are the most frequent."""


def _counted(rows: Iterable[Any], table: str, reporter: Reporter) -> Iterator[Any]:
    """The rows, which are reported while they are read."""
    with reporter.rows("read", table, None) as task:
        number = 0
        for number, row in enumerate(rows, 1):
            if not number % _OFTEN:
                task.step(number)
            yield row
        if task.done:
            task.step(number)


def frame_of(frame: Any, table: str) -> pa.Table | pa.RecordBatch:
    """The rows of a frame in Arrow. Raises ArgumentError for rows without types, BatchError as ``accepted``."""
    rows: Any = None
    if _is_data_frame(frame) and type(frame).__module__.startswith("pandas"):
        rows = _of_pandas(frame, table)
    elif _is_data_frame(frame) or hasattr(frame, "__arrow_c_stream__"):
        rows = accepted(frame, table)
    if rows is None or isinstance(rows, list):
        raise ArgumentError(
            f"table {table}: a pandas or polars DataFrame, a pyarrow Table or a DuckDB relation is expected, not "
            f"{type(frame).__name__}; for other rows execute CREATE TABLE, then insert them"
        )
    return rows


def _is_data_frame(frame: object) -> bool:
    return type(frame).__name__ == "DataFrame" and type(frame).__module__.partition(".")[0] in ("pandas", "polars")


def _reader_of(rows: Any, table: str) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except pa.ArrowException as error:
        reason = "a column, not a table; give a frame" if isinstance(rows, Iterable) else str(error)
        message = f"table {table}: rows are given as {type(rows).__name__}: {reason}; {ACCEPTED}"
        raise BatchError(message, table=table, rule="rows of an accepted shape") from None


def _read_all(reader: pa.RecordBatchReader, table: str, reporter: Reporter) -> pa.Table:
    try:
        if not reporter.shows_rows:
            return reader.read_all()
        with reporter.rows("read", table, None) as task:
            batches = []
            for batch in reader:
                batches.append(batch)
                task.step(task.done + batch.num_rows)
            return pa.Table.from_batches(batches, reader.schema)
    except (pa.ArrowException, OSError) as error:
        message = f"table {table}: the Arrow stream cannot be read to its end: {error}"
        raise BatchError(message, table=table, rule="the stream is whole") from error


def _without_types_of_nan(rows: pa.Table) -> pa.Table:
    """Columns of floats without any value have no type: pandas makes such columns of None for every type."""
    for place, column in enumerate(rows.columns):
        if pa.types.is_floating(column.type) and column.null_count == len(column):
            rows = rows.set_column(place, rows.schema.field(place).name, pa.nulls(len(column)))
    return rows


_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _of_pandas(frame: Any, table: str) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except _REFUSED as error:
        for place, name in enumerate(frame.columns):
            column = frame.iloc[:, place]
            try:
                pa.Array.from_pandas(column)
            except _REFUSED:
                _refuse_column(table, str(name), column)
        message = f"table {table}: the DataFrame cannot be read: {error}"
        raise BatchError(message, table=table, rule="Arrow can read the DataFrame") from None


def _refuse_column(table: str, name: str, column: Any) -> NoReturn:
    """Raise an error that names the first value of a pandas column whose type differs from the values before it."""
    column = column.astype(object)  # A part of a categorical column has the categories of the whole.
    least, most = 0, len(column) - 1
    while least < most:
        middle = (least + most) // 2
        try:
            pa.Array.from_pandas(column.iloc[: middle + 1])
        except _REFUSED:
            most = middle
        else:
            least = middle + 1
    value = column.iloc[least]
    rule = "the values of a column have one type"
    before = pa.Array.from_pandas(column.iloc[:least]).type
    try:
        pa.Array.from_pandas(column.iloc[least : least + 1])
        reason = f"{rule}; the earlier values are {before}"
    except _REFUSED as error:
        reason = f"Arrow has no type for it: {error}"
    raise BatchError(
        f"table {table}, row {least}, column {name}: {shown(value)}: {reason}",
        table=table,
        row=least,
        column=name,
        value=value,
        rule=rule,
    ) from None
