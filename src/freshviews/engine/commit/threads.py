"""Applies a batch in several threads. Views that do not read each other run at the same time, while another thread
adds the rows to stored tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import get_ident

import numpy as np

from freshviews.engine.blocks.lanes import run_together
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.marks import mark_columns
from freshviews.engine.commit.commit import General, MemoryRanOut, Refused, ViewChanges, run_view, run_views
from freshviews.engine.tables.constraints import Changes, add_to_base, settle_base
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import EvaluationError
from freshviews.kernel.machine.beside import FEW_ROWS
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.kernel.memory.mem import PURE_PYTHON

MANY = FEW_ROWS
"""Most rows of a version that always runs in one thread; above, nothing runs as plain Python."""

LEAST = 0.001
"""Least seconds that threads must save. Starting one and waiting for its end takes 0.1 to 0.2 ms."""


class Threads:
    """Runs the views of versions in at most ``count`` threads, that of the commit included.

    Compiled triggers run without Python's lock and write only the memory of their own view. So a thread can apply the
    batch to a view that only triggers maintain, and read the change of that view. The committing thread does the work
    on shared state: the dictionary of strings, readers, subscribers, the log. It computes the host columns of a batch
    before a thread takes the batch (``CodeBatch.computed``), because new strings may move the strings that threads
    read.

    A version of more than a few rows uses threads if they are expected to save time. The estimate multiplies the number
    of rows by the time per row that each view took last. Threads end when their views have run, so a forked child has
    none. If only one view runs, its lanes may use all threads (``engine.blocks.lanes``).

    If a view fails, the version is undone after all threads have ended. Then it runs again in one thread, which raises
    the error. So errors do not depend on the number of threads.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def general(self) -> type[General]:
        """The general way of a batch of many rows."""
        return General if self.count == 1 or PURE_PYTHON else BesideViews

    def run_views(self, way: General) -> ViewChanges:
        """As ``run_views``, of a batch of many rows, and note how long each view takes. Raises Refused where a view
        fails in a thread."""
        if self.count == 1 or PURE_PYTHON:
            return run_views(way)
        rows = _rows_of(way)
        if not rows:  # All rows are too late for the window of their table.
            return run_views(way)
        before = [view.seconds for view in way.views]
        groups = list(_groups(way.views))
        if any(self._saved(group, rows) > LEAST for group in groups):
            reported = self._run_groups(groups, way)
        else:
            reported = run_views(way, self._run_view)
        for view, seconds in zip(way.views, before, strict=True):
            view.pace = (view.seconds - seconds) / rows
        return reported

    def _saved(self, group: Sequence[ViewState], rows: int) -> float:
        """The seconds that threads save for a group of views, by the last version."""
        seconds = [view.pace * rows for view in group if view.maintained.by_triggers]
        return sum(seconds) - max(*seconds, sum(seconds) / self.count) if len(seconds) > 1 else 0.0

    def _run_groups(self, groups: Sequence[Sequence[ViewState]], way: General) -> ViewChanges:
        """Run groups of views, one after the other."""
        rows = _rows_of(way)
        found: dict[ViewState, CodeBatch] = {}
        for group in groups:
            runs = []
            if self._saved(group, rows) > LEAST:
                runs = [_Run(view, way) for view in group if view.maintained.by_triggers]
                self._run(runs, way)
            beside = {run.view: run for run in runs}
            for view in group:
                if view in beside:
                    change = beside[view].read_change()
                else:
                    try:
                        change = self._run_view(view, way)
                    except EvaluationError:
                        # Perhaps not the first error in the order of the views.
                        raise Refused from None
                if change is not None and len(change):
                    found[view] = change
            for view, change in found.items():
                way.batches[view.name] = change
        return [(view, found[view]) for view in way.views if view in found and view.subscriptions]

    def _run_view(self, view: ViewState, way: General) -> CodeBatch | None:
        """Run a view alone: its triggers may run in lanes. Raises Refused if it fails after some did."""
        view.maintained.use_threads(self.count)
        try:
            return run_view(view, way)
        except EvaluationError:
            if any(taken.maintained.in_lanes for taken, _ in way.applied):
                raise Refused from None
            raise
        finally:
            view.maintained.use_threads(1)

    def _run(self, runs: Sequence[_Run], way: General) -> None:
        """Run views in threads until all have ended. Raises the error of one, else Refused if one fails."""
        INTERRUPTION.raise_if_asked()
        for run in runs:
            run.prepare()
        try:
            # The longest first, so that all threads end at about the same time.
            run_together([run.run for run in sorted(runs, key=lambda run: -run.view.pace)], self.count)
        finally:
            for run in runs:
                way.applied += run.applied
        for run in runs:
            if run.error is not None:
                raise run.error
        failures = [run.failure for run in runs if run.failure is not None]
        if any(failure.kind == "memory" for failure in failures):
            raise MemoryRanOut
        if failures:
            raise Refused


@dataclass(eq=False)
class BesideViews(General):
    """The general way of a batch of many rows, which stored tables may take in a thread while the views run.

    A view that only triggers maintain never reads a stored table. So the rules of the tables are checked while such
    views run. If the batch breaks one, the views are restored from negated batches, as if another view had failed; the
    error of a table comes before that of a view. A batch of inserts and deletes waits for its net effect.
    """

    _adding: _Beside | None = None
    _settling: _Beside | None = None

    def add_rows(self, given: Changes, tables: Mapping[str, TableState]) -> None:
        before = [table.seconds for table, _ in given]

        def add() -> None:
            add_to_base(given, tables)
            for (table, encoded), seconds in zip(given, before, strict=True):
                table.pace = (table.seconds - seconds) / max(len(encoded.batch), 1)

        if self._saves_time() and all(_has_one_sign(encoded.batch) for _, encoded in given):
            self._adding = _Beside(add)
        else:
            add()

    def _saves_time(self) -> bool:
        """Whether only triggers maintain the views, and adding the rows beside them is expected to save time."""
        adding = sum(table.pace * len(encoded.batch) for table, encoded in self.given if table.is_stored)
        running = sum(view.pace for view in self.views) * _rows_of(self)
        return min(adding, running) > LEAST and all(view.maintained.by_triggers for view in self.views)

    def changes(self) -> ViewChanges:
        if self._adding is None:
            return super().changes()
        try:
            reported = super().changes()
        except (EvaluationError, Refused):
            self._adding.wait()
            raise
        except BaseException:
            # Memory ran out or Ctrl-C came, which matters to ``take_back``, whatever the rules of the tables say.
            self._adding.join()
            raise
        self._adding.wait()
        return reported

    def settle(self) -> None:
        super().settle()
        if self._settling is not None:
            self._settling.wait()

    def settle_rows(self, given: Changes) -> None:
        # After deletes, tables and views give memory back at the same time.
        if self._adding is None or self.moves or not self.deleted:
            settle_base(given)
        else:
            self._settling = _Beside(partial(settle_base, given))


class _Beside:
    """A call in a thread of its own; in this thread if no other one can be started."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="freshviews")
        try:
            self._thread.start()
        except RuntimeError:
            self._run()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error

    def join(self) -> None:
        """Wait until the call has ended."""
        if self._thread.ident is not None:
            self._thread.join()

    def wait(self) -> None:
        """Wait until the call has ended. Raises its error."""
        self.join()
        if self._error is not None:
            raise self._error from None


class _Run:
    """A view that takes its batches of a version in a thread.

    Afterwards ``applied`` has the batches taken, ``failure`` why the version is refused, ``error`` the exception.
    """

    def __init__(self, view: ViewState, way: General) -> None:
        self.view = view
        self._thread = get_ident()
        """The committing thread."""
        self.applied: list[tuple[ViewState, CodeBatch]] = []
        self.failure: Failure | None = None
        self.error: BaseException | None = None
        names = filter(way.batches.get, view.maintained.inputs)
        self._batches = [piece for name in names for piece in way.pieces(view, name)]
        self._change: CodeBatch | None = None

    def prepare(self) -> None:
        """Do the work that needs the committing thread. Raises Refused."""
        start = time.perf_counter()
        self.view.readers.drain()
        INTERRUPTION.allowed = get_ident()
        try:
            for batch in self._batches:
                self.view.maintained.prepare_batch(batch)
        except Failed:
            raise Refused from None
        finally:
            INTERRUPTION.allowed = 0
        self.view.seconds += time.perf_counter() - start

    def run(self) -> None:
        """Take the batches, and read the change if it is wanted. Never raises."""
        start = time.perf_counter()
        maintained = self.view.maintained
        try:
            for number, batch in enumerate(self._batches, 1):
                if number > 1 and INTERRUPTION.asked == self._thread:
                    self.error = KeyboardInterrupt()
                    return
                self.applied.append((self.view, batch))
                self.failure = maintained.apply(batch, number < len(self._batches), widens=False)
                if self.failure is not None:
                    return
            if self.view.wants_change and not maintained.has_host_output:
                self._change = maintained.take_change()
        except Failed as failed:
            self.failure = failed.failure
        except BaseException as error:
            self.error = error
        finally:
            self.view.seconds += time.perf_counter() - start

    def read_change(self) -> CodeBatch | None:
        """The change of the view, None if nothing reads it; for the committing thread. Raises Refused, MemoryRanOut."""
        view = self.view
        if not view.wants_change:
            return None
        change = self._change
        if change is None:
            start = time.perf_counter()
            INTERRUPTION.allowed = get_ident()
            try:
                change = view.maintained.take_change()
            except Failed as failed:
                raise (MemoryRanOut if failed.failure.kind == "memory" else Refused) from None
            finally:
                INTERRUPTION.allowed = 0
            view.seconds += time.perf_counter() - start
        mark_columns(change, view.decoder.strings, view.decoder.dictionary)
        return change


def _groups(views: Sequence[ViewState]) -> list[list[ViewState]]:
    """Groups of views: each view reads only views of earlier groups."""
    groups: list[list[ViewState]] = []
    group_of: dict[str, int] = {}
    for view in views:
        number = 1 + max((group_of.get(name, -1) for name in view.maintained.inputs), default=-1)
        group_of[view.name] = number
        if number == len(groups):
            groups.append([])
        groups[number].append(view)
    return groups


def _has_one_sign(batch: CodeBatch) -> bool:
    """Whether the rows are all inserts, or all deletes."""
    signs = batch.multiplicities
    return len(signs) == 0 or bool(np.min(signs) > 0 or np.max(signs) < 0)


def _rows_of(way: General) -> int:
    return sum(len(encoded.batch) for _, encoded in way.given)
