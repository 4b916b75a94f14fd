"""A commit whose change of one view is asked for, update by update where the view can report it.

It takes the steps of ``commit``; only the followed view runs in another way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.marks import held, mark_columns
from freshviews.engine.commit.commit import Applied, Log, ViewChanges, commit, refusal, run_view
from freshviews.engine.relations import Relations
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.views.failure import Failed
from freshviews.engine.views.in_order import TooMany, apply_in_order, can_run_in_order
from freshviews.engine.views.output import consolidate
from freshviews.engine.views.view_state import ViewState


class PieceTooLarge(Exception):
    """The change of a batch that is run update by update is too large; the batch is taken back.

    ``position``: that of the first update, in what was given, that did not run.
    """

    def __init__(self, position: int) -> None:
        self.position = position


class Followed:
    """One commit that follows a view: ``change``, and in ``numbers`` per row the position of the update behind it.

    A change that is reported update by update has at most ``most`` rows before its last update; else PieceTooLarge is
    raised. Where the view reports only the change of the batch, all rows have the position of the first update.
    """

    def __init__(self, view: ViewState, most: int) -> None:
        self.view = view
        self.most = most
        self.change = CodeBatch("", {}, np.empty(0, np.int64))
        self.numbers: Codes = np.empty(0, np.int64)

    def commit(self, changes: Changes, relations: Relations, write_log: Log | None) -> ViewChanges:
        """As ``commit``; also raises PieceTooLarge."""
        return commit(changes, relations, write_log, self._run_views)

    def _run_views(
        self, views: Sequence[ViewState], changes: Changes, relations: Relations, applied: Applied
    ) -> ViewChanges:
        given = {table.name: encoded for table, encoded in changes}
        batches = {name: encoded.batch for name, encoded in given.items()}
        reported: ViewChanges = []
        for view in views:
            name = self._in_order(view, given, batches)
            if name is not None:
                change = self._run_in_order(name, given[name], changes, relations, applied)
            else:
                change = run_view(view, batches, changes, relations, applied)
                if view is self.view and change is not None:
                    held(change, view.decoder.dictionary)
                    first = next((encoded.position(0) for encoded in given.values() if len(encoded.batch)), 0)
                    self.change, self.numbers = change, np.full(len(change), first, np.int64)
            if change is not None and len(change):
                batches[view.name] = change
                if view.subscriptions:
                    reported.append((view, change))
        return reported

    def _in_order(
        self, view: ViewState, given: Mapping[str, Encoded], batches: Mapping[str, CodeBatch]
    ) -> str | None:
        """The table whose batch is run update by update: it alone feeds the followed view, which reports the change of
        each update. None where there is no such table."""
        if view is not self.view:
            return None
        come = list(filter(batches.get, view.maintained.inputs))
        return come[0] if len(come) == 1 and come[0] in given and can_run_in_order(view.maintained, come[0]) else None

    def _run_in_order(
        self, name: str, encoded: Encoded, changes: Changes, relations: Relations, applied: Applied
    ) -> CodeBatch | None:
        """Run the followed view update by update; its change, consolidated, None where nobody else wants it."""
        start = time.perf_counter()
        view, maintained = self.view, self.view.maintained
        batch, positions = encoded.batch, encoded.positions
        view.readers.drain()
        applied.append((view, batch))
        try:
            self.change, numbers = apply_in_order(maintained, batch, self.most)
        except TooMany as stopped:
            done = stopped.updates
            applied[-1] = view, batch.between(0, done)
            raise PieceTooLarge(done if positions is None else int(positions[done])) from None
        except Failed as failed:
            raise refusal(view, failed.failure, name, batch, changes, relations) from None
        held(self.change, view.decoder.dictionary)
        self.numbers = numbers if positions is None else positions[numbers]
        maintained.discard_change()
        change = None
        if view.dependents or view.subscriptions:
            rows = np.column_stack([*self.change.columns.values(), self.change.multiplicities])
            change = maintained.batch_of(consolidate(rows))
            mark_columns(change, view.decoder.strings, view.decoder.dictionary)
        view.seconds += time.perf_counter() - start
        return change
