"""Commits one batch, and reports how it changes one view: the view that a user follows.

The report has a separate change for each update of the batch if the view can run the updates one by one. Otherwise it
has one change for the whole batch.
"""

from __future__ import annotations

import time

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.marks import keep_strings, mark_columns
from freshviews.engine.commit.commit import General, ViewChanges, refusal, run_view, run_views
from freshviews.engine.views.failure import Failed
from freshviews.engine.views.in_order import TooMany, apply_in_order, can_run_in_order
from freshviews.engine.views.output import consolidate
from freshviews.engine.views.view_state import ViewState


class PieceTooLarge(Exception):
    """The change of a batch that runs update by update is too large; the batch is undone.

    ``position``: of the first update in the input that did not run.
    """

    def __init__(self, position: int) -> None:
        self.position = position


class Followed:
    """One commit that follows a view: ``change`` and, in ``numbers``, the position of the update behind each row.

    A change that is reported update by update has at most ``most`` rows before its last update; else PieceTooLarge is
    raised. Where the view reports only the change of the batch, all rows have the position of the first update.
    """

    def __init__(self, view: ViewState, most: int) -> None:
        self.view = view
        self.most = most
        self.change = CodeBatch("", {}, np.empty(0, np.int64))
        self.numbers: Codes = np.empty(0, np.int64)

    def run_views(self, way: General) -> ViewChanges:
        """As ``run_views``; also raises PieceTooLarge."""
        way.batches = {table.name: encoded.batch for table, encoded in way.given}
        return run_views(way, self._run_view)

    def _run_view(self, view: ViewState, way: General) -> CodeBatch | None:
        if view is not self.view:
            return run_view(view, way)
        given = {table.name: encoded for table, encoded in way.given}
        come = list(filter(way.batches.get, view.maintained.inputs))
        if len(come) == 1 and come[0] in given and can_run_in_order(view.maintained, come[0]):
            return self._run_in_order(come[0], given[come[0]], way)
        change = run_view(view, way)
        if change is not None:
            keep_strings(change, view.decoder.dictionary)
            first = next((encoded.position(0) for encoded in given.values() if len(encoded.batch)), 0)
            self.change, self.numbers = change, np.full(len(change), first, np.int64)
        return change

    def _run_in_order(self, name: str, encoded: Encoded, way: General) -> CodeBatch | None:
        """Run the followed view update by update; returns its consolidated change, None if nothing else reads it."""
        start = time.perf_counter()
        view, maintained = self.view, self.view.maintained
        batch, positions = encoded.batch, encoded.positions
        view.readers.drain()
        way.applied.append((view, batch))
        try:
            self.change, numbers = apply_in_order(maintained, batch, self.most)
        except TooMany as stopped:
            done = stopped.updates
            way.applied[-1] = view, batch.between(0, done)
            raise PieceTooLarge(done if positions is None else int(positions[done])) from None
        except Failed as failed:
            raise refusal(view, failed.failure, name, batch, way) from None
        keep_strings(self.change, view.decoder.dictionary)
        self.numbers = numbers if positions is None else positions[numbers]
        maintained.discard_change()
        change = None
        if view.dependents or view.subscriptions:
            rows = np.column_stack([*self.change.columns.values(), self.change.multiplicities])
            change = maintained.batch_of(consolidate(rows))
            mark_columns(change, view.decoder.strings, view.decoder.dictionary)
        view.seconds += time.perf_counter() - start
        return change
