"""A batch becomes a version, or nothing has happened.

The order: stored base tables take the batch and check it; every view that it reaches runs its triggers, after its
inputs, and passes its change on; the log is written and synced; then the version counts. If a step before that fails,
base tables are restored from their journals, and views by the negated batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import get_ident

import numpy as np

from freshviews.codegen.module import compile_ahead
from freshviews.engine.backfill import fill
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.marks import mark_columns
from freshviews.engine.failures import evaluation_error
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.tables.constraints import Changes, add_to_base, settle_base, undo_base
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.failing_row import with_row
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import OutOfMemory
from freshviews.expr.host_evaluation import INTERRUPTION

_NO_ROWS = CodeBatch("", {}, np.empty(0, np.int64))

ViewChanges = list[tuple[ViewState, CodeBatch]]
"""Views that have subscribers, and their changes that are not empty."""

Applied = list[tuple[ViewState, CodeBatch]]
"""The batches that views took in a version, in order; to be negated if the version is refused."""

Log = Callable[[], None]
"""Makes a batch durable."""

RunViews = Callable[[Sequence[ViewState], Changes, Relations, Applied], ViewChanges]
"""Runs views in order. It adds each batch to the last argument before a view takes it."""

RunView = Callable[[ViewState, Mapping[str, CodeBatch], Changes, Relations, Applied], CodeBatch | None]
"""Runs a view; its change, None where nobody wants it."""


class Broken(Exception):
    """The state could not be put back; the message says why. The database must not be used further."""


class MemoryRanOut(Exception):
    """A view ran out of memory: its state is not to be trusted."""


def run_views(
    views: Sequence[ViewState],
    changes: Changes,
    relations: Relations,
    applied: Applied,
    run: RunView | None = None,
) -> ViewChanges:
    """Run views over the net effect of a batch, each by ``run`` or ``run_view``."""
    batches = batches_of(changes)
    reported: ViewChanges = []
    for view in views:
        change = (run or run_view)(view, batches, changes, relations, applied)
        if change is not None and len(change):
            batches[change.relation] = change
            if view.subscriptions:
                reported.append((view, change))
    return reported


def batches_of(changes: Changes) -> dict[str, CodeBatch]:
    """The net effect of a batch, by table."""
    batches: dict[str, CodeBatch] = {}
    for table, encoded in changes:
        net = None if table.stored is None else table.stored.net()
        batches[encoded.batch.relation] = encoded.batch if net is None else net
    return batches


def commit(changes: Changes, relations: Relations, write_log: Log | None, run: RunViews = run_views) -> ViewChanges:
    """Apply a batch everywhere; the changes of views that have subscribers come back.

    ``write_log`` makes the batch durable; what it raises is raised after everything is taken back. Raises BatchError,
    EvaluationError, OutOfMemory; Broken where memory ran out and a trusted table feeds a view, as the rows to backfill
    it are not stored.
    """
    for table, encoded in changes:
        table.readers.drain()
        if table.decoder.dictionary.mark is not None:
            mark_columns(encoded.batch, table.decoder.strings, table.decoder.dictionary)
    add_to_base(changes, relations.tables)
    views = relations.downstream[changes[0][0]] if len(changes) == 1 else _reached(changes, relations)
    applied: Applied = []
    try:
        reported = run(views, changes, relations, applied)
        if write_log is not None:
            write_log()
    except (MemoryRanOut, MemoryError) as error:
        undo_base(changes)
        raise ran_out(views, relations) from error
    except BaseException:
        undo_base(changes)
        _take_back(applied, views, relations)
        raise
    settle_base(changes)
    for view, batch in applied:
        view.counted += len(batch)
        view.maintained.give_back()
    return reported


def run_view(
    view: ViewState, batches: Mapping[str, CodeBatch], changes: Changes, relations: Relations, applied: Applied
) -> CodeBatch | None:
    """Run a view over those of ``batches`` that it reads; its change, None where nobody wants it."""
    start = time.perf_counter()
    maintained = view.maintained
    names = list(filter(batches.get, maintained.inputs))
    left = len(names)
    for name in names:
        left -= 1
        batch = batches[name]
        view.readers.drain()
        applied.append((view, batch))
        INTERRUPTION.allowed = get_ident()
        try:
            failure = maintained.apply(batch, left > 0)
        except KeyboardInterrupt:
            # Nothing of the batch ran in this view.
            applied.pop()
            raise
        finally:
            INTERRUPTION.allowed = 0
        if failure is not None:
            raise refusal(view, failure, name, batch, changes, relations)
    change = None
    if view.wants_change:
        INTERRUPTION.allowed = get_ident()
        try:
            change = maintained.take_change()
        except Failed as failed:
            raise _refusal_of_change(view, failed.failure) from None
        finally:
            INTERRUPTION.allowed = 0
        mark_columns(change, view.decoder.strings, view.decoder.dictionary)
    view.seconds += time.perf_counter() - start
    return change


def refusal(
    view: ViewState, failure: Failure, name: str, batch: CodeBatch, changes: Changes, relations: Relations
) -> Exception:
    """The error for a batch of the relation ``name`` that a view failed to take."""
    failure = with_row(failure, view.maintained, batch)
    if failure.kind == "memory":
        return MemoryRanOut()
    given: Encoded | None = None
    source: Relation | None = None
    for table, encoded in changes:
        if table.name == name:
            source, given = table, encoded
    return evaluation_error(view, failure, source or relations.views[name.lower()], batch, given)


def _refusal_of_change(view: ViewState, failure: Failure) -> Exception:
    """The error for a change whose output expressions cannot be computed. A row of ``failure`` counts raw rows of the
    change, which the user never sees, so it is left out."""
    if failure.kind == "memory":
        return MemoryRanOut()
    return evaluation_error(view, Failure(failure.kind, failure.message), view, _NO_ROWS, None)


def compile_for(tables: Iterable[TableState], relations: Relations) -> None:
    """Wait for the functions that a batch of some tables calls, before anything has changed."""
    calls: dict[Callable[..., int | None], None] = {}
    for table in tables:
        views = relations.downstream[table]
        if table.stored is not None:
            calls |= dict.fromkeys(table.stored.calls)
        names = [table.name, *(view.name for view in views)]
        states = [block.state for view in views for block in view.maintained.blocks]
        calls |= {call.run: None for state in states for name in names for call in state.calls_of(name)}
    compile_ahead(*calls)


def _reached(changes: Changes, relations: Relations) -> Sequence[ViewState]:
    """The views that a batch of several tables reaches, each after its inputs."""
    reached = {view.name for table, _ in changes for view in relations.downstream[table]}
    return [view for view in relations.views.values() if view.name in reached]


def _take_back(applied: Applied, views: Sequence[ViewState], relations: Relations) -> None:
    """Apply the negation of what was applied; a view that is spoiled, or where even that fails, is backfilled."""
    spoiled = [view for view in dict.fromkeys(view for view, _ in applied) if view.maintained.spoiled]
    try:
        for view, batch in applied:
            if view in spoiled:
                continue
            # What narrow sums left out of the batch, they leave out of its negation.
            failure = view.maintained.apply(batch.negated(), widens=False)
            if failure is not None and failure.kind == "memory":
                raise MemoryRanOut
        for view in dict.fromkeys(view for view, _ in applied):
            view.maintained.discard_change()
    except Exception:
        _fill_again(views, relations)
        return
    # No view reads what a spoiled one has computed: its batch failed there.
    _fill_again(spoiled, relations, "an element of a ring overflowed")


def ran_out(views: Sequence[ViewState], relations: Relations) -> OutOfMemory:
    """Fill views again, as of before a batch in which memory ran out, and return the error for it."""
    _fill_again(views, relations)
    return OutOfMemory("memory ran out; the batch is refused and the state is as before")


def _fill_again(views: Sequence[ViewState], relations: Relations, why: str = "memory ran out") -> None:
    """Empty views and backfill them from the stored tables, as of before the batch."""
    for view in views:
        for name in view.maintained.inputs:
            table = relations.tables.get(name.lower())
            if table is not None and table.stored is None and table.written:
                raise Broken(
                    f"{why} while view {view.name.split('#')[0]} changed, and table {table.name}, "
                    "which feeds it, is trusted: its rows are not stored, so the view cannot be filled again"
                )
    try:
        for view in views:
            view.maintained.clear()
        for view in views:
            fill(view, relations)
            view.maintained.discard_change()
    except Exception as error:
        raise Broken(f"{why}, and the views could not be put back: {error}") from error
