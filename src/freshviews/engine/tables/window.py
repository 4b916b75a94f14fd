"""Keeps only the latest rows of a table with a window: adds deletes of older rows to each batch that inserts rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from freshviews.catalog.window import window_of
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window_rows import WindowRows
from freshviews.errors import BatchError


def windowed(table: TableState, encoded: Encoded) -> tuple[Encoded, Callable[[], None]]:
    """The batch with the deletes of the rows that leave the window, and a function to call once it is committed.

    BatchError if the user deletes a row, or gives a multiplicity above 1.

    The rows in the window are stored as codes, in the order in which they leave. Each arriving row is preceded by the
    deletes of the rows that it displaces, so views see ordinary inserts and deletes. The window moves when the batch is
    committed.
    """
    held = rows_in_window(table)
    batch = encoded.batch
    wrong = np.flatnonzero(batch.multiplicities != 1)
    if len(wrong):
        row = encoded.position(int(wrong[0]))
        raise BatchError(
            f"table {table.name}, row {row}: the window of the table deletes old rows; insert each row with "
            f"_multiplicity 1, not {int(batch.multiplicities[wrong[0]])}",
            table=table.name,
            row=row,
        )
    come = np.column_stack([batch.columns[name] for name in held.columns])
    places = np.arange(len(come))
    now = held.now
    if held.window.rows:
        leaving = np.maximum(len(held.rows) + 1 + places - held.window.rows, 0)
        order = np.concatenate([held.rows, come])[: int(leaving[-1]) if len(come) else 0]
    else:
        at = held.columns.index(held.window.column)
        latest = np.maximum.accumulate(np.concatenate([[now], come[:, at]]))[1:]
        # A row that is too late for the window is dropped.
        places = np.flatnonzero(come[:, at] > latest - held.window.width)
        come, latest = come[places], latest[places]
        now = int(latest[-1]) if len(latest) else now
        everything = np.concatenate([held.rows, come])
        everything = everything[np.argsort(everything[:, at], kind="stable")]
        leaving = np.searchsorted(everything[:, at], latest - held.window.width, side="right")
        order = everything[: int(leaving[-1]) if len(leaving) else 0]
    positions = places if encoded.positions is None else encoded.positions[places]
    made = _interleaved(batch.relation, held.columns, come, order, leaving, positions)

    def move() -> None:
        held.now = now
        _move(held, order, come)

    return made, move


def all_windowed(changes: Changes) -> tuple[Changes, list[Callable[[], None]]]:
    """As ``windowed``, for the changes of several tables, some of them with windows."""
    made, moves = list(changes), []
    for i, (table, encoded) in enumerate(changes):
        if table.has_window:
            batch, move = windowed(table, encoded)
            made[i] = (table, batch)
            moves.append(move)
    return made, moves


def _interleaved(
    relation: str, columns: tuple[str, ...], come: Codes, order: Codes, leaving: Codes, positions: Codes
) -> Encoded:
    """A batch that deletes, before arrival i, rows ``leaving[i - 1]`` to before ``leaving[i]`` of ``order``."""
    deletes = np.diff(leaving, prepend=0)
    ends = np.cumsum(deletes + 1)
    total = int(ends[-1]) if len(ends) else 0
    rows = np.empty((total, len(columns)), np.int64)
    signs = np.full(total, -1, np.int64)
    signs[ends - 1] = 1
    rows[ends - 1] = come
    rows[signs < 0] = order
    codes = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(columns)}
    return Encoded(CodeBatch(relation, codes, signs), np.repeat(positions, deletes + 1))


def _move(held: WindowRows, order: Codes, come: Codes) -> None:
    """Move the window: rows of ``order`` leave, rows of ``come`` arrive; some may be in both."""
    left = min(len(order), len(held.rows))
    if len(order) <= len(held.rows) and np.array_equal(order, held.rows[:left]):
        held.keep(left, come)
        return
    everything = np.concatenate([held.rows, come])
    if held.window.column:
        at = held.columns.index(held.window.column)
        everything = everything[np.argsort(everything[:, at], kind="stable")]
    held.keep(len(held.rows), everything[len(order) :])


def rows_in_window(table: TableState) -> WindowRows:
    """The rows in the window of a table; made empty at the first call."""
    if table.held is None:
        window = window_of(table.definition)
        assert window is not None
        table.held = WindowRows(window, tuple(column.name for column in table.definition.columns))
    return table.held


def restore_window(table: TableState, rows: Codes) -> None:
    """Restore the window from stored rows, in the order in which they leave.

    Snapshots and images have the rows of the window (``restore_window``); the log has arrivals and deletes
    (``replay_window``). So a window outlives its process, also for a trusted table.
    """
    held = rows_in_window(table)
    held.keep(0, rows)
    if held.window.column and len(rows):
        held.now = max(held.now, int(rows[:, held.columns.index(held.window.column)].max()))


def replay_window(table: TableState, batch: CodeBatch) -> None:
    """Move the window by a batch of the log, which has the deletes."""
    held = rows_in_window(table)
    rows = np.column_stack([batch.columns[name] for name in held.columns])
    come = rows[batch.multiplicities > 0]
    everything = np.concatenate([held.rows, come])
    if held.window.column:
        at = held.columns.index(held.window.column)
        everything = everything[np.argsort(everything[:, at], kind="stable")]
        held.now = max([held.now, *everything[-1:, at].tolist()])
    _move(held, everything[: len(rows) - len(come)], come)
