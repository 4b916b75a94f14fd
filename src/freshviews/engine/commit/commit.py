"""A batch becomes a version, or nothing has happened.

The order: stored base tables take the batch and check it; every view it reaches runs its triggers, after its
inputs, and hands its change on; the log is written and synced; then the version counts. Whatever fails
before that is taken back: base tables by their journals, views by the negated batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from freshviews.engine.backfill import fill
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.failures import evaluation_error
from freshviews.engine.reading import drain_all
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.tables.base_check import Changes, add_to_base, settle_base, undo_base
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.failure import Failure
from freshviews.engine.views.fault import with_row
from freshviews.engine.views.maintained import TooMany
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import OutOfMemory
from freshviews.expr.host import HostFailure

_NO_ROWS = CodeBatch("", {}, np.empty(0, np.int64))


class Broken(Exception):
    """The state could not be put back; the message says why. The database must not be used further."""


class PieceTooLarge(Exception):
    """A batch that is run update by update has too large a change, and is taken back; ``position``: that of the
    first update, in what was given, that did not run."""

    def __init__(self, position: int) -> None:
        self.position = position


class _MemoryRanOut(Exception):
    """A view ran out of memory: its state is not to be trusted."""


@dataclass
class Followed:
    """A view whose change is asked for, and what came of it: the change, and per row the position of the update
    behind it in what was given. Where the view can tell, the batch runs update by update, its change in order; then
    ``most`` rows are enough of it."""

    view: ViewState
    most: int
    change: CodeBatch = _NO_ROWS
    numbers: Codes = field(default_factory=lambda: np.empty(0, np.int64))


def commit(
    changes: Changes, relations: Relations, write_log: Callable[[], None], followed: Followed | None = None
) -> list[tuple[ViewState, CodeBatch]]:
    """Apply a batch everywhere; the changes of views that have subscribers come back.

    ``write_log`` makes the batch durable; what it raises is raised after everything is taken back. Raises
    BatchError, EvaluationError, OutOfMemory; Broken where memory ran out and a trusted table feeds a view,
    as the rows to fill it again are not stored.
    """
    for table, _ in changes:
        if table.readers:
            drain_all(table.readers)
    add_to_base(changes, relations.tables)
    views = _downstream(changes, relations)
    applied: list[tuple[ViewState, CodeBatch]] = []
    try:
        told = _run_views(views, changes, relations, applied, followed)
        write_log()
    except (_MemoryRanOut, MemoryError) as error:
        undo_base(changes)
        _fill_again(views, relations)
        raise OutOfMemory("memory ran out; the batch is refused and the state is as before") from error
    except BaseException:
        undo_base(changes)
        _take_back(applied, views, relations)
        raise
    settle_base(changes)
    for table, encoded in changes:
        if len(encoded.batch):
            table.written = True
            table.updates += len(encoded.batch)
    return told


def _downstream(changes: Changes, relations: Relations) -> Sequence[ViewState]:
    if len(changes) == 1:
        return relations.downstream[changes[0][0]]
    reached = {view.name for table, _ in changes for view in relations.downstream[table]}
    return [view for view in relations.views.values() if view.name in reached]


def _run_views(
    views: Sequence[ViewState],
    changes: Changes,
    relations: Relations,
    applied: list[tuple[ViewState, CodeBatch]],
    followed: Followed | None,
) -> list[tuple[ViewState, CodeBatch]]:
    """Run the views in order. ``applied`` gets each batch before it runs."""
    given: dict[str, tuple[TableState, Encoded]] = {table.name: (table, e) for table, e in changes}
    batches: dict[str, CodeBatch] = {}
    for table, encoded in changes:
        net = None if table.stored is None or followed is not None else table.stored.net()
        batches[table.name] = encoded.batch if net is None else net
    told: list[tuple[ViewState, CodeBatch]] = []
    for view in views:
        start = time.perf_counter()
        maintained = view.maintained
        told_in_order = False
        come = [name for name in maintained.inputs if name in batches and len(batches[name])]
        for number, name in enumerate(come, 1):
            batch, more = batches[name], number < len(come)
            if view.readers:
                drain_all(view.readers)
            applied.append((view, batch))
            try:
                if followed is not None and followed.view is view and _tells_order(view, given, batches):
                    positions = given[name][1].positions
                    try:
                        followed.change, numbers = maintained.apply_in_order(batch, followed.most)
                    except TooMany as stopped:
                        done = stopped.updates
                        applied[-1] = view, batch.between(0, done)
                        raise PieceTooLarge(done if positions is None else int(positions[done])) from None
                    told_in_order = True
                    followed.numbers = numbers if positions is None else positions[numbers]
                else:
                    maintained.apply(batch, more)
                failure = maintained.failure(more)
            except HostFailure as error:
                failure = Failure("evaluation", error.reason)
            if failure is not None:
                failure = with_row(failure, maintained, batch)
                source: Relation = given[name][0] if name in given else relations.views[name.lower()]
                encoded_input = given[name][1] if name in given else None
                raise _error(view, failure, source, batch, encoded_input)
            view.updates += len(batch)
        if told_in_order and not (view.dependents or view.subscriptions):
            maintained.discard_change()
        elif maintained.wants_change:
            change = _change_of(view)
            batches[view.name] = change
            if followed is not None and followed.view is view and len(followed.change) == 0:
                first = next((encoded.position(0) for _, encoded in changes if len(encoded.batch)), 0)
                followed.change, followed.numbers = change, np.full(len(change), first, np.int64)
            if view.subscriptions and len(change):
                told.append((view, change))
        view.seconds += time.perf_counter() - start
    return told


def _tells_order(
    view: ViewState, given: Mapping[str, tuple[TableState, Encoded]], batches: Mapping[str, CodeBatch]
) -> bool:
    """Whether all that comes to the view is the batch of one table, and the view tells what each update changes."""
    come = [name for name in view.maintained.inputs if name in batches and len(batches[name])]
    return len(come) == 1 and come[0] in given and view.maintained.tells_order(come[0])


def _error(view: ViewState, failure: Failure, source: Relation, batch: CodeBatch, encoded: Encoded | None) -> Exception:
    if failure.kind == "memory":
        return _MemoryRanOut()
    return evaluation_error(view, failure, source, batch, encoded)


def _change_of(view: ViewState) -> CodeBatch:
    """The change of a view, its output expressions computed; raises where one cannot be.

    Rows of a failure count raw rows of the change, which the user never sees, so they are left out.
    """
    try:
        change = view.maintained.take_change()
    except HostFailure as error:
        raise _error(view, Failure("evaluation", error.reason), view, _NO_ROWS, None) from None
    failure = view.maintained.failure()
    if failure is not None:
        raise _error(view, Failure(failure.kind, failure.message), view, _NO_ROWS, None)
    return change


def _take_back(
    applied: Sequence[tuple[ViewState, CodeBatch]], views: Sequence[ViewState], relations: Relations
) -> None:
    """Apply the negation of what was applied; a view where even that fails is filled again."""
    try:
        for view, batch in applied:
            view.maintained.apply(batch.negated())
            failure = view.maintained.failure()
            if failure is not None and failure.kind == "memory":
                raise _MemoryRanOut
            view.updates -= len(batch)
        for view in dict.fromkeys(view for view, _ in applied):
            view.maintained.discard_change()
            # The refused rows are read once more as the change goes; what they lack is told already.
            view.maintained.failure()
    except Exception:
        _fill_again(views, relations)


def _fill_again(views: Sequence[ViewState], relations: Relations) -> None:
    """Empty views and fill them from the stored tables, as of before the batch."""
    for view in views:
        for name in view.maintained.inputs:
            table = relations.tables.get(name.lower())
            if table is not None and table.stored is None and table.written:
                raise Broken(
                    f"memory ran out while view {view.name.split('#')[0]} changed, and table {table.name}, "
                    "which feeds it, is trusted: its rows are not stored, so the view cannot be filled again"
                )
    try:
        for view in views:
            view.maintained.clear()
        for view in views:
            fill(view, relations)
            view.maintained.discard_change()
    except Exception as error:
        raise Broken(f"memory ran out, and again while the views were put back: {error}") from error
