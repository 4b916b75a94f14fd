"""The change of a view that each update makes, in order, in Arrow batches of bounded size.

Updates are committed a few at a time: each piece is a version, and its changes are handed out before the next piece
is begun, so that a slow reader stops the producer. How many make a piece follows from how many rows of change they
make. Where the view's result is enumerated, updates run one after the other within a piece, and one that turns out to
change too much is taken back and cut; elsewhere a piece is one update. So what is held is bounded by a few batches and
the change of one update.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from freshviews.engine.batch import CodeBatch, Codes
from freshviews.engine.commit import PieceTooLarge
from freshviews.engine.encoding import Encoded
from freshviews.engine.relations import TableState, ViewState
from freshviews.engine.window import has_window

UPDATE = "_update"
"""Name of the column with the position of the update, among those given, behind a row of the change."""

MOST = 1 << 14
"""Updates of a piece, at most."""

BATCHES = 4
"""Batches of change that a piece may make, beyond the change of its last update."""

Commit = Callable[[Encoded, int], tuple[CodeBatch, Codes]]
"""Commits a piece whose change has so many rows at most, but for its last update; the changes of the view and, per
row, the position of the update in what was given. Raises PieceTooLarge."""


def in_order(
    encoded: Encoded, commit: Commit, view: ViewState, table: TableState, rows: int
) -> Iterator[pa.RecordBatch]:
    """Commit updates piece by piece; record batches of at most ``rows`` rows of change come of it."""
    schema = view.decoder.change_schema.append(pa.field(UPDATE, pa.int64(), False))
    # What comes to the view by way of another is not told update by update.
    direct = not any(one.name in view.maintained.inputs for one in table.downstream)
    view.followers += 1
    view.want_change()
    try:
        batch = encoded.batch
        at, size = 0, 1
        while at < len(batch):
            end = min(at + size, len(batch))
            columns = {name: column[at:end] for name, column in batch.columns.items()}
            positions = np.arange(at, end) if encoded.positions is None else encoded.positions[at:end]
            if end - at > 1 and table.is_stored and not has_window(table):
                end = at + _valid(columns, batch.multiplicities[at:end])
                columns = {name: column[: end - at] for name, column in columns.items()}
                positions = positions[: end - at]
            piece = Encoded(CodeBatch(batch.relation, columns, batch.multiplicities[at:end]), positions)
            try:
                change, numbers = commit(piece, BATCHES * rows if size > 1 else sys.maxsize)
            except PieceTooLarge as error:
                size = max(int(np.searchsorted(positions, error.position)), 1)
                continue
            for start in range(0, len(change), rows):
                cut = slice(start, start + rows)
                part = {name: column[cut] for name, column in change.columns.items()}
                told = view.decoder.change(CodeBatch(change.relation, part, change.multiplicities[cut]))
                behind = pa.array(numbers[cut], pa.int64())
                yield pa.RecordBatch.from_arrays([*told.columns, behind], schema=schema)
            at = end
            if not (direct and view.maintained.tells_order(table.name)):
                size = 1
            elif len(change) < rows:
                size = min(2 * size, MOST)
            elif len(change) > BATCHES * rows:
                size = max(size // 2, 1)
    finally:
        view.followers -= 1
        if not view.closed:
            view.want_change()


def _valid(columns: dict[str, Codes], multiplicities: Codes) -> int:
    """How many updates come before the first insert of a row that was deleted among them.

    A version is checked as a whole. Where inserts of a row come before its deletes, what holds for all updates holds
    after each. Rows are compared by a hash: where two are the same by chance, the piece is shorter than need be.
    """
    deletes = np.flatnonzero(multiplicities < 0)
    if not len(deletes):
        return len(multiplicities)
    mixed = np.zeros(len(multiplicities), np.uint64)
    for column in columns.values():
        mixed = (mixed ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    gone, first = np.unique(mixed[deletes], return_index=True)
    inserts = np.flatnonzero(multiplicities > 0)
    at = np.minimum(np.searchsorted(gone, mixed[inserts]), len(gone) - 1)
    again = inserts[(gone[at] == mixed[inserts]) & (deletes[first[at]] < inserts)]
    return int(again[0]) if len(again) else len(multiplicities)
