"""Commits a batch: changes the tables, runs the views, writes the batch to the log, and counts the version.

The class ``General`` takes these steps for any batch. ``engine.commit.direct.Direct`` takes them in one compiled call,
for a few rows of one table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from threading import get_ident
from typing import Protocol

import numpy as np

from freshviews.codegen.module import compile_ahead
from freshviews.engine.backfill import fill
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.marks import mark_columns
from freshviews.engine.commit.records import record_of
from freshviews.engine.failures import evaluation_error
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.tables.constraints import Changes, add_to_base, settle_base, undo_base
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.failing_row import with_row
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import OutOfMemory
from freshviews.kernel.machine.interruption import INTERRUPTION, PIECE
from freshviews.progress import Reporter
from freshviews.store.crash_points import reach
from freshviews.store.directory import Directory

_NO_ROWS = CodeBatch("", {}, np.empty(0, np.int64))

_SETTLED = 4
"""Cost of a row of a backfill in rows of a negated batch, if a view does work once per version."""

ViewChanges = list[tuple[ViewState, CodeBatch]]
"""Views with subscribers, and their changes that are not empty."""

RunViews = Callable[["General"], ViewChanges]
"""Runs the views of a batch. Before a view takes a batch, it adds the batch to ``applied``."""


class Way(Protocol):
    """The steps of ``commit`` for one batch."""

    @property
    def version(self) -> memoryview:
        """The word that counts versions."""

    @property
    def deleted(self) -> int:
        """The number of rows that the batch deletes."""

    def add(self) -> None:
        """Apply the batch provisionally, and check it. If this raises, nothing has changed."""

    def changes(self) -> ViewChanges:
        """Run the views, unless ``add`` did, and read their changes."""

    def record(self) -> tuple[int, bytes]:
        """The kind and the payload of the batch in the log."""

    def take_back(self, error: BaseException) -> None:
        """Restore the state before ``add`` after an error; may raise another error instead."""

    def settle(self) -> None:
        """Make the batch permanent and count the version. Never fails."""


def commit(way: Way, directory: Directory | None = None) -> ViewChanges:
    """Make a batch a version; returns the changes of views with subscribers.

    If a step fails, or Ctrl-C ends one, the state is as before. Raises BatchError, EvaluationError, OutOfMemory,
    KeyboardInterrupt; errors of the directory's ``append``; Refused; Broken if memory ran out and a trusted table feeds
    a view, because the rows to backfill it are not stored.
    """
    if INTERRUPTION.unchanged == get_ident():
        INTERRUPTION.raise_if_unchanged()
        INTERRUPTION.unchanged = 0
    way.add()
    try:
        reported = way.changes()
        if directory is not None:
            reach("batch applied")
            kind, payload = way.record()
            if INTERRUPTION.asked:
                INTERRUPTION.raise_if_asked()
            directory.append(kind, way.version[0] + 1, payload)
    except BaseException as error:
        way.take_back(error)
        raise
    way.settle()
    return reported


class Broken(Exception):
    """The state could not be restored; the message says why. The database must not be used any more."""


class MemoryRanOut(Exception):
    """A view ran out of memory, so its state is invalid."""


class Refused(Exception):
    """A way refuses the batch, and the state is as before; another way takes it, or raises the error."""


@dataclass(eq=False)
class General:
    """The general way of a batch: stored tables take and check it, then each view that it reaches runs, after its
    inputs, and passes on its change. Journals restore tables, and negated batches restore views."""

    given: Changes
    relations: Relations
    run: RunViews
    version: memoryview
    moves: Sequence[Callable[[], None]] = ()
    """Functions that move the windows of tables."""
    applied: list[tuple[ViewState, CodeBatch]] = field(default_factory=list)
    """The batches that views took, in order; negated if the version is refused."""
    _pieces: dict[str, Sequence[CodeBatch]] = field(default_factory=dict)
    count_view: Callable[[], None] | None = None
    """Reports that one more view has taken its batches."""
    add_rows = staticmethod(add_to_base)
    settle_rows = staticmethod(settle_base)

    def add(self) -> None:
        given = self.given
        for table, encoded in given:
            table.readers.drain()
            if table.decoder.dictionary.mark is not None:
                mark_columns(encoded.batch, table.decoder.strings, table.decoder.dictionary)
        self.views = self.relations.downstream[given[0][0]] if len(given) == 1 else _reached(given, self.relations)
        self.add_rows(given, self.relations.tables)

    def changes(self) -> ViewChanges:
        self.batches: dict[str, CodeBatch] = {}
        """The batches that views read, by relation: net effects on tables, and changes of views that have run."""
        for table, encoded in self.given:
            net = None if table.stored is None else table.stored.net()
            self.batches[encoded.batch.relation] = encoded.batch if net is None else net
        return self.run(self)

    def pieces(self, view: ViewState, name: str) -> Sequence[CodeBatch]:
        """The batch of a relation, in the pieces that the view takes; views share what is computed of a piece."""
        batch = self.batches[name]
        if len(batch) <= PIECE or not view.maintained.takes_pieces:
            return (batch,)
        if name not in self._pieces:
            self._pieces[name] = [batch.between(at, min(at + PIECE, len(batch))) for at in range(0, len(batch), PIECE)]
        return self._pieces[name]

    def record(self) -> tuple[int, bytes]:
        return record_of(self.given)

    def take_back(self, error: BaseException) -> None:
        undo_base(self.given)
        if isinstance(error, MemoryRanOut | MemoryError):
            raise backfill_after_loss(self.views, self.relations) from error
        if isinstance(error, KeyboardInterrupt) and _is_less_to_backfill(self):
            _fill_again(self.views, self.relations, "Ctrl-C came")
        else:
            _take_back(self)

    def settle(self) -> None:
        self.settle_rows(self.given)
        for view, batch in self.applied:
            view.counted += len(batch)
            view.maintained.give_back()
        for move in self.moves:
            move()
        self.version[0] += 1

    @property
    def deleted(self) -> int:
        found = 0
        for _, encoded in self.given:
            found += int(np.count_nonzero(encoded.batch.multiplicities < 0))
        return found


def run_views(way: General, run: Callable[[ViewState, General], CodeBatch | None] | None = None) -> ViewChanges:
    """Run the views of a version, each by ``run`` or ``run_view``."""
    reported: ViewChanges = []
    for view in way.views:
        change = (run or run_view)(view, way)
        if change is not None and len(change):
            way.batches[view.name] = change
            if view.subscriptions:
                reported.append((view, change))
    return reported


def run_view(view: ViewState, way: General) -> CodeBatch | None:
    """Run a view over the batches that it reads; returns its change, None if nothing reads it. Raises KeyboardInterrupt
    if Ctrl-C came before."""
    if INTERRUPTION.asked:
        INTERRUPTION.raise_if_asked()
    start = time.perf_counter()
    maintained = view.maintained
    names = list(filter(way.batches.get, maintained.inputs))
    left = len(names)
    for name in names:
        left -= 1
        batch = way.batches[name]
        view.readers.drain()
        pieces = (batch,) if len(batch) <= PIECE else way.pieces(view, name)
        rows = 0
        for piece in pieces:
            if rows:
                INTERRUPTION.raise_if_asked()
            rows += len(piece)
            way.applied.append((view, piece))
            INTERRUPTION.allowed = get_ident()
            try:
                failure = maintained.apply(piece, left > 0 or rows < len(batch))
            except KeyboardInterrupt:
                # The view has run no part of the piece.
                way.applied.pop()
                raise
            finally:
                INTERRUPTION.allowed = 0
            if failure is not None:
                if failure.row is not None:
                    failure = replace(failure, row=failure.row + rows - len(piece))
                raise refusal(view, failure, name, batch, way)
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
    if way.count_view is not None:
        way.count_view()
    return change


def report_views(run: RunViews, reporter: Reporter, rows: int, way: General) -> ViewChanges:
    """Run the views of a batch of many rows, and report how many views have taken them, as a part of the rows."""
    names = ", ".join(view.name for view in way.views if "#" not in view.name)
    if not names:
        return run(way)
    with reporter.rows("update", names, rows) as task:
        taken = count(1)
        way.count_view = lambda: task.step(rows * next(taken) // len(way.views))
        return run(way)


def refusal(view: ViewState, failure: Failure, name: str, batch: CodeBatch, way: General) -> Exception:
    """The error of a view that failed on a batch of the relation ``name``."""
    failure = with_row(failure, view.maintained, batch)
    if failure.kind == "memory":
        return MemoryRanOut()
    given: Encoded | None = None
    source: Relation | None = None
    for table, encoded in way.given:
        if table.name == name:
            source, given = table, encoded
    return evaluation_error(view, failure, source or way.relations.views[name.lower()], batch, given)


def _refusal_of_change(view: ViewState, failure: Failure) -> Exception:
    """The error for a change whose output expressions cannot be computed. The row of ``failure`` numbers raw rows,
    which the user never sees, so it is left out."""
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
        for view in views:
            calls |= dict.fromkeys(view.maintained.calls(names))
    compile_ahead(*calls)


def _reached(changes: Changes, relations: Relations) -> Sequence[ViewState]:
    """The views that a batch of several tables reaches, each after its inputs."""
    reached = {view.name for table, _ in changes for view in relations.downstream[table]}
    return [view for view in relations.views.values() if view.name in reached]


def _is_less_to_backfill(way: General) -> bool:
    """Whether backfilling the views from the stored tables, as before the batch, costs less than negating it."""
    inputs = {name.lower() for view in way.views for name in view.maintained.inputs}
    tables = [table for name, table in way.relations.tables.items() if name in inputs]
    if any(table.stored is None for table in tables):
        return False
    stored = sum(table.stored.rows for table in tables if table.stored is not None)
    if stored and any(view.maintained.may_be_spoiled for view in way.views):
        return False  # In another order of the rows, an element may overflow.
    cost = _SETTLED if any(view.maintained.settles for view in way.views) else 1
    return cost * stored < sum(len(batch) for _, batch in way.applied)


def _take_back(way: General) -> None:
    """Take the applied batches back. A view that is spoiled, or for which this fails, is backfilled."""
    taken = [*dict.fromkeys(view for view, _ in way.applied)]
    spoiled = [view for view in taken if view.maintained.spoiled]
    try:
        for view, batch in way.applied:
            if view in spoiled:
                continue
            # Narrow sums leave the same rows out of the batch and of its negation.
            failure = view.maintained.take_back(batch)
            if failure is not None and failure.kind == "memory":
                raise MemoryRanOut
        for view in taken:
            view.maintained.discard_change()
    except Exception:
        _fill_again(way.views, way.relations)
        return
    # No view has read the result of a spoiled view: the batch failed there, or its negation did.
    spoiled = [view for view in taken if view.maintained.spoiled]
    _fill_again(spoiled, way.relations, "an element of a ring overflowed")


def backfill_after_loss(views: Sequence[ViewState], relations: Relations) -> OutOfMemory:
    """Backfill views as before a batch in which memory ran out, and return the error for it."""
    _fill_again(views, relations)
    return OutOfMemory("memory ran out; the batch is refused and the state is as before")


def _fill_again(views: Sequence[ViewState], relations: Relations, why: str = "memory ran out") -> None:
    """Empty views and backfill them from the stored tables, as of before the batch."""
    for view in views:
        for name in view.maintained.inputs:
            table = relations.tables.get(name.lower())
            if table is not None and table.stored is None and table.written:
                raise Broken(
                    f"{why} while view {view.name.split('#')[0]} changed, and the view cannot be backfilled from the "
                    f"trusted table {table.name}"
                )
    try:
        for view in views:
            view.readers.drain()
            view.maintained.clear()
        for view in views:
            fill(view, relations, again=True)
            view.maintained.discard_change()
    except Exception as error:
        raise Broken(f"{why}, and the views could not be restored: {error}") from error
