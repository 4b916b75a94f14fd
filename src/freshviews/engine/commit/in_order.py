"""Commits a stream of updates, and returns how each update changes a view, in Arrow batches of bounded size.

The function ``net_change`` instead returns the total change that many updates together make to the view.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.commit.followed import PieceTooLarge
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.in_order import can_run_in_order
from freshviews.engine.views.output import consolidate
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import InterruptedAfterCommit

UPDATE = "_update"
"""Name of the column with the position of the update, in the input, behind a row of the change."""

MOST = 1 << 14
"""Most updates of a piece."""

BATCHES = 4
"""Most batches of change from a piece, without the change of its last update."""

CommitPiece = Callable[[Encoded, int], tuple[CodeBatch, Codes]]
"""Commits a piece, given the most rows of its change before its last update; returns the change of the view and, per
row, the position of the update in the input. Raises PieceTooLarge."""


def in_order(
    encoded: Encoded, commit: CommitPiece, view: ViewState, table: TableState, reached: Sequence[ViewState], rows: int
) -> Iterator[pa.RecordBatch]:
    """Commit updates piece by piece; yields record batches of at most ``rows`` rows of change.

    Updates are committed in pieces; each piece is a version. The changes of a piece are returned before the next piece
    begins, so updates wait for a slow reader. If the view's result is not enumerated, a piece has one update. Otherwise
    a piece may have many updates, which run one by one. The changes of earlier pieces determine the size of a piece. A
    piece whose change is too large is undone and split. So memory holds at most a few batches and the change of one
    update.
    """
    schema = view.decoder.change_schema.append(pa.field(UPDATE, pa.int64(), False))
    for change, numbers in _pieces(encoded, commit, view, table, reached, rows):
        for start in range(0, len(change), rows):
            cut = view.decoder.change(_cut(change, start, rows))
            behind = pa.array(numbers[start : start + rows], pa.int64())
            yield pa.RecordBatch.from_arrays([*cut.columns, behind], schema=schema)


def net_change(
    encoded: Encoded, commit: CommitPiece, view: ViewState, table: TableState, reached: Sequence[ViewState], rows: int
) -> Iterator[pa.RecordBatch]:
    """Commit the net effect of updates piece by piece; yields record batches of at most ``rows`` rows of change.

    ``net_change`` returns the change of many updates together, without storing it. It applies their net effect, deletes
    first. If a result row has only one possible derivation, it either vanishes or appears, so it is returned once. In
    other views, such as projections, a row may vanish with one derivation and appear again with another, and may then
    be returned twice.
    """
    for change, _ in _pieces(_net(encoded), commit, view, table, reached, rows):
        merged = consolidate(np.column_stack([*change.columns.values(), change.multiplicities]))
        columns = {name: merged[:, i] for i, name in enumerate(change.columns)}
        net = CodeBatch(change.relation, columns, merged[:, -1])
        for start in range(0, len(net), rows):
            yield view.decoder.change(_cut(net, start, rows))


def _cut(change: CodeBatch, start: int, rows: int) -> CodeBatch:
    columns = {name: column[start : start + rows] for name, column in change.columns.items()}
    return CodeBatch(change.relation, columns, change.multiplicities[start : start + rows])


def _net(encoded: Encoded) -> Encoded:
    """The net effect of updates, deletes first, each with the position of the last update of its row."""
    batch = encoded.batch
    if len(batch) == 0:
        return encoded
    positions = np.arange(len(batch)) if encoded.positions is None else encoded.positions
    order = np.lexsort((positions, *batch.columns.values()))
    columns = {name: column[order] for name, column in batch.columns.items()}
    new = np.zeros(len(order), bool)
    new[0] = True
    for column in columns.values():
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    net = np.add.reduceat(batch.multiplicities[order], first)
    last = np.append(first[1:], len(order)) - 1
    at = np.flatnonzero(net)
    at = at[np.lexsort((positions[order][last[at]], net[at] > 0))]
    columns = {name: column[first[at]] for name, column in columns.items()}
    return Encoded(CodeBatch(batch.relation, columns, net[at]), positions[order][last[at]])


def _pieces(
    encoded: Encoded, commit: CommitPiece, view: ViewState, table: TableState, reached: Sequence[ViewState], rows: int
) -> Iterator[tuple[CodeBatch, Codes]]:
    """Commit updates piece by piece; yields the change of each piece, and the position of the update behind each
    row."""
    # A change through another view is not reported update by update.
    direct = not any(one.name in view.maintained.inputs for one in reached)
    view.followers += 1
    view.want_change()
    try:
        batch = encoded.batch
        at, size = 0, 1
        while at < len(batch):
            end = min(at + size, len(batch))
            columns = {name: column[at:end] for name, column in batch.columns.items()}
            positions = np.arange(at, end) if encoded.positions is None else encoded.positions[at:end]
            if end - at > 1 and table.is_stored and not table.has_window:
                end = at + _valid_updates(columns, batch.multiplicities[at:end])
                columns = {name: column[: end - at] for name, column in columns.items()}
                positions = positions[: end - at]
            piece = Encoded(CodeBatch(batch.relation, columns, batch.multiplicities[at:end]), positions)
            try:
                change, numbers = commit(piece, BATCHES * rows if size > 1 else sys.maxsize)
            except PieceTooLarge as error:
                size = max(int(np.searchsorted(positions, error.position)), 1)
                continue
            except KeyboardInterrupt as error:
                done = end if isinstance(error, InterruptedAfterCommit) else at
                error.add_note(f"{done} of {len(batch)} updates are in, and nothing of the others")
                raise
            yield change, numbers
            at = end
            if not (direct and can_run_in_order(view.maintained, table.name)):
                size = 1
            elif len(change) < rows:
                size = min(2 * size, MOST)
            elif len(change) > BATCHES * rows:
                size = max(size // 2, 1)
    finally:
        view.followers -= 1
        if not view.closed:
            view.want_change()


def _valid_updates(columns: dict[str, Codes], multiplicities: Codes) -> int:
    """The number of updates before the first insert of a row that they delete earlier.

    A version is checked as a whole: if inserts of a row come before its deletes, a rule that holds for all updates
    holds after each. Rows are compared by a hash; a collision only makes the piece shorter.
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
