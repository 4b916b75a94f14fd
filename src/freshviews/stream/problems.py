"""Collects the bad rows of a batch. Either the first bad row raises an error, or all are set aside with reasons."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.errors import BatchError, refused

Positions = npt.NDArray[np.int64]

BAD_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("column", pa.string()),
        pa.field("value", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("input", pa.string(), nullable=False),
    ]
)
"""The schema of rows set aside: position in the batch, column, its value as text, the reason, the row as JSON."""


class BadChange(BatchError):
    """A change is refused, and its batch with it.

    Attributes
    ----------
    table
        Name of the table.
    row
        0-based position in the batch, None if the batch as a whole is wrong.
    column, value
        The value at fault and its column.
    reason
        The reason, and the accepted values.

    Examples
    --------
    >>> rows = pa.record_batch({"o_id": [3], "qty": [9], "op": ["added"]})
    >>> stream.signed_rows(rows, orders, stream.format_for("op"))
    Traceback (most recent call last):
    freshviews.stream.problems.BadChange: table orders, row 0, column op: 'added': ...
    """

    def __init__(self, table: str, row: int | None, column: str | None, value: object, reason: str) -> None:
        where = f"table {table}" + ("" if row is None else f", row {row}")
        where += "" if column is None else f", column {column}"
        said = reason if row is None else refused(value, reason)
        super().__init__(f"{where}: {said}", table=table, row=row, column=column, value=value, rule=reason)
        self.reason = reason


class Problems:
    """The bad rows of one batch. Unless rows are ``set_aside``, the first one raises BadChange."""

    def __init__(self, table: str, set_aside: bool) -> None:
        self.table = table
        self._set_aside = set_aside
        self._found: dict[int, tuple[str | None, object, str]] = {}

    def add(self, row: int, column: str | None, value: object, reason: str) -> None:
        """Record a bad row. Of several reasons the first is kept."""
        if not self._set_aside:
            raise BadChange(self.table, row, column, value, reason)
        self._found.setdefault(row, (column, value, reason))

    def refuse(self, column: str | None, reason: str) -> NoReturn:
        """Refuse the batch as a whole: no row of it can be used."""
        raise BadChange(self.table, None, column, None, reason)

    def good(self, rows: int) -> npt.NDArray[np.bool_] | None:
        """The good rows among 0 to ``rows`` - 1; None if all are good."""
        if not self._found:
            return None
        mask = np.ones(rows, np.bool_)
        mask[list(self._found)] = False
        return mask

    def set_aside(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The bad rows of ``batch``, in order, as ``BAD_SCHEMA``."""
        rows = sorted(self._found)
        found = [self._found[row] for row in rows]
        given = batch.take(pa.array(rows, pa.int64())).to_pylist() if rows else []
        return pa.record_batch(
            [
                pa.array(rows, pa.int64()),
                pa.array([column for column, _, _ in found], pa.string()),
                pa.array([None if value is None else _text(value) for _, value, _ in found], pa.string()),
                pa.array([reason for _, _, reason in found], pa.string()),
                pa.array([json.dumps(row, default=_text, ensure_ascii=False) for row in given], pa.string()),
            ],
            schema=BAD_SCHEMA,
        )


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
