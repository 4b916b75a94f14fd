"""Refuses or drops the late rows of a batch. Moves the watermark of the table when the batch is committed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from freshviews.catalog.watermark import Watermark
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window import all_windowed
from freshviews.errors import BatchError
from freshviews.types import NULL, TIMESTAMP
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import decode_value

Flags = NDArray[np.bool_]

_TEXTS = Dictionary()


def all_in_time(changes: Changes, checked: bool) -> tuple[Changes, list[Callable[[], None]]]:
    """The changes without the late rows of tables that drop them, and functions that move watermarks, to be called
    once the changes are committed. ``checked``: none is late. Raises BatchError.

    A row is late if it is inserted and its time is before the watermark, as all versions so far have left it. A table
    whose rows are not stored refuses to delete such a row, too.
    """
    made, moves = list(changes), []
    for i, (table, encoded) in enumerate(changes):
        if table.watermark is None:
            continue
        late = _late(table, table.watermark, encoded.batch)
        if not checked and late.any():
            made[i] = (table, _in_time(table, table.watermark, encoded, late))
        moves.append(_moving(table, encoded.batch, int(late.sum())))
    return made, moves


def all_moved(changes: Changes, checked: bool) -> tuple[Changes, list[Callable[[], None]]]:
    """As ``all_in_time``, then with the rows that leave the windows of tables, and functions that move these, too."""
    changes, marks = all_in_time(changes, checked)
    changes, windows = all_windowed(changes)
    return changes, [*marks, *windows]


def follow_time(table: TableState, batch: CodeBatch) -> None:
    """Move the watermark of a table by the inserted rows of a batch."""
    if table.watermark is not None:
        times = batch.columns[table.watermark.column][batch.multiplicities > 0]
        if len(times):
            # NULL is the least code.
            table.latest = max(table.latest, int(times.max()))


def watermark_time(table: TableState) -> dt.datetime | None:
    """The watermark; None before the first row with a time."""
    if table.watermark is None or table.latest == NULL:
        return None
    found: dt.datetime = decode_value(TIMESTAMP, table.latest - table.watermark.delay, _TEXTS)
    return found


def _late(table: TableState, watermark: Watermark, batch: CodeBatch) -> Flags:
    """The late rows of a batch, as flags."""
    if table.latest == NULL:
        return np.zeros(len(batch), np.bool_)
    times = batch.columns[watermark.column]
    late: Flags = (times != NULL) & (times < table.latest - watermark.delay)
    return late & (batch.multiplicities > 0) if table.is_stored else late


def _in_time(table: TableState, watermark: Watermark, encoded: Encoded, late: Flags) -> Encoded:
    """A batch without its late rows. Raises BatchError where they are refused."""
    batch = encoded.batch
    deleted = batch.multiplicities < 0
    refused = late
    if watermark.drops:
        refused = late & (deleted | _replacing(table, batch, deleted))
    if refused.any():
        first = int(np.flatnonzero(refused)[0])
        time = decode_value(TIMESTAMP, int(batch.columns[watermark.column][first]), _TEXTS)
        reason = f"{watermark.column} {time} is before the watermark {watermark_time(table)}"
        if deleted[first]:
            advice = "the table stores no rows, so what its rows have come to there is final; delete none of them"
        elif watermark.drops:
            advice = "it replaces a deleted row, so it is not dropped; delete the row alone, or give it a later time"
        else:
            advice = "insert it in time, or let the table drop late rows by 'freshviews.late' = 'drop'"
        raise BatchError(
            f"table {table.name}, row {encoded.position(first)}: {reason}: {advice}",
            table=table.name,
            row=encoded.position(first),
            column=watermark.column,
            value=time,
            rule="WATERMARK",
            rows=tuple(encoded.position(int(row)) for row in np.flatnonzero(refused)),
        )
    kept = np.flatnonzero(~late)
    columns = {name: codes[kept] for name, codes in batch.columns.items()}
    positions = kept if encoded.positions is None else encoded.positions[kept]
    return Encoded(CodeBatch(batch.relation, columns, batch.multiplicities[kept]), positions)


def _replacing(table: TableState, batch: CodeBatch, deleted: Flags) -> Flags:
    """The rows that may replace a deleted one: those with its first key, or all rows if the table has no key."""
    if not table.definition.keys or not deleted.any():
        return np.full(len(batch), deleted.any())
    keys = np.column_stack([batch.columns[name] for name in table.definition.keys[0]])
    gone = set(map(tuple, keys[deleted].tolist()))
    return np.array([tuple(key) in gone for key in keys.tolist()], np.bool_)


def _moving(table: TableState, batch: CodeBatch, late: int) -> Callable[[], None]:
    def move() -> None:
        follow_time(table, batch)
        table.late += late

    return move
