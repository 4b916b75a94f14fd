"""Maintains a view while its inputs change. Each class is one way to do so.

- ``ByTriggers``: triggers maintain the result, and journals record its change.
- ``Traced``: triggers record edits of the inputs of joins; the joins are maintained at the end of a version.
- ``Settled``: triggers record what has changed; the result is updated at the end of a version.
- ``Evaluated``: triggers maintain the inputs of a join; the join is computed again at the end of a version.
- ``Recomputed``: the input rows are stored; after each batch the triggers run over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.views.failure import Failed
from freshviews.engine.views.output import consolidate
from freshviews.engine.views.recompute import StoredRows
from freshviews.engine.views.view_block import ViewBlocks
from freshviews.kernel.machine.interruption import INTERRUPTION, PIECE
from freshviews.program import upkeep as kinds


class Upkeep(Protocol):
    """The interface of a way. Rows have the shape (n, columns + 1), with the multiplicity last."""

    def apply(self, batch: CodeBatch, more: bool, wanted: bool) -> None:
        """Run a batch of an input. Raises Failed or KeyboardInterrupt if nothing ran; other failures are in
        ``ViewBlocks.failure``.

        ``more``: another batch of the version follows, so work that is done once per version waits. ``wanted``: the
        change is taken afterwards.
        """

    def load(self, batch: CodeBatch, more: bool) -> None:
        """As ``apply``, for a batch of a backfill: without a change, and evaluations wait for ``settle``."""

    def take_back(self, batch: CodeBatch) -> None:
        """Undo a batch that ``apply`` ran. Work that is done once per version waits for ``settle``, so a commit that
        Ctrl-C stops ends soon. Failures as of ``apply``."""

    @property
    def waits(self) -> bool:
        """Whether ``settle`` has work to do."""

    def settle(self) -> None:
        """Do the work that waits, so that the contents can be read. Raises Failed if memory runs out."""

    def take_change(self) -> Codes:
        """The change since the last call, consolidated. Raises Failed."""

    def has_change(self) -> bool:
        """Whether a change is noted here, outside the journals of the blocks."""

    def discard_change(self) -> None:
        """Forget the change since the last call of ``take_change``."""

    def clear(self) -> None:
        """Empty all state."""

    def stored_rows(self) -> dict[str, Codes]:
        """The stored rows of the inputs, by relation, for an image."""

    def restore(self, stored: dict[str, Codes]) -> None:
        """Continue with blocks restored from an image, and these stored rows."""


class ByTriggers:
    """Triggers maintain the result."""

    def __init__(self, blocks: ViewBlocks) -> None:
        self.blocks = blocks

    def apply(self, batch: CodeBatch, more: bool, wanted: bool) -> None:
        self.blocks.run(batch)

    def load(self, batch: CodeBatch, more: bool) -> None:
        self.apply(batch, more, False)

    def take_back(self, batch: CodeBatch) -> None:
        self.load(batch.negated(), False)

    @property
    def waits(self) -> bool:
        return False

    def settle(self) -> None:
        pass

    def take_change(self) -> Codes:
        return self.blocks.take_change()

    def has_change(self) -> bool:
        return False

    def discard_change(self) -> None:
        self.blocks.forget_changes()

    def clear(self) -> None:
        self.blocks.clear()

    def stored_rows(self) -> dict[str, Codes]:
        return {}

    def restore(self, stored: dict[str, Codes]) -> None:
        pass


class Traced(ByTriggers):
    """Triggers record edits; the traces of joins are maintained once per version."""

    def apply(self, batch: CodeBatch, more: bool, wanted: bool) -> None:
        self.blocks.run(batch)
        if not more:
            for block in self.blocks:
                block.state.end_version()


class Settled(ByTriggers):
    """Triggers note what has changed; the result follows once per version."""

    def __init__(self, blocks: ViewBlocks) -> None:
        super().__init__(blocks)
        self._waits = False
        self._restores = False
        """Whether the work that waits ends a version that was taken back, so that its change is dropped."""

    def apply(self, batch: CodeBatch, more: bool, wanted: bool) -> None:
        if self._restores:
            self.settle()
        allowed = INTERRUPTION.allowed
        self.load(batch, more)
        if more:
            return
        INTERRUPTION.allowed = allowed
        try:
            INTERRUPTION.raise_if_allowed()
        except KeyboardInterrupt:
            self.blocks.run(batch.negated())
            self.blocks.reset()
            raise
        finally:
            INTERRUPTION.allowed = 0
        self.settle()

    def load(self, batch: CodeBatch, more: bool) -> None:
        self.blocks.run(batch)
        self._waits = True

    @property
    def waits(self) -> bool:
        return self._waits

    def settle(self) -> None:
        if self._waits:
            for block in self.blocks:
                if block.compiled.end_version is not None:
                    block.state.settle()
            self._waits = False
            if self._restores:
                self._restores = False
                self.blocks.forget_changes()

    def take_change(self) -> Codes:
        self.settle()
        return super().take_change()

    def discard_change(self) -> None:
        self._restores = self._waits
        if not self._waits:
            self.blocks.forget_changes()

    def clear(self) -> None:
        self._waits = self._restores = False
        super().clear()


class _Compared(ByTriggers):
    """The change is the difference of the contents before and after a version."""

    def __init__(self, blocks: ViewBlocks) -> None:
        super().__init__(blocks)
        self._before: Codes | None = None

    def _note_before(self) -> None:
        """Note the contents, before the first batch of a version."""
        if self._before is None:
            self.settle()
            self._before = self.blocks.all_rows()

    def take_change(self) -> Codes:
        if self._before is None:
            return self.blocks.empty()
        self.settle()
        # If this raises Failed, the negation of the version still has the contents before it.
        after = self.blocks.all_rows()
        before, self._before = self._before, None
        before[:, -1] *= -1
        return consolidate(np.concatenate([before, after]))

    def has_change(self) -> bool:
        return self._before is not None

    def discard_change(self) -> None:
        self._before = None
        self.blocks.forget_changes()

    def clear(self) -> None:
        self._before = None
        self.blocks.clear()

    def restore(self, stored: dict[str, Codes]) -> None:
        self._before = None


class Evaluated(_Compared):
    """Triggers maintain the inputs of an evaluation, which recomputes the result once per version."""

    def __init__(self, blocks: ViewBlocks) -> None:
        super().__init__(blocks)
        self._stale = True

    def apply(self, batch: CodeBatch, more: bool, wanted: bool) -> None:
        if wanted:
            self._note_before()
        self.load(batch, more)
        if not more:
            self.settle()

    def load(self, batch: CodeBatch, more: bool) -> None:
        self.blocks.run(batch)
        self._stale = True

    @property
    def waits(self) -> bool:
        return self._stale

    def settle(self) -> None:
        if self._stale:
            self._stale = False
            for block in self.blocks:
                block.state.evaluate()

    def clear(self) -> None:
        super().clear()
        self._stale = True

    def restore(self, stored: dict[str, Codes]) -> None:
        super().restore(stored)
        self._stale = False


class Recomputed(_Compared):
    """The rows of the inputs are stored, and the triggers run over all of them after each batch."""

    def __init__(self, blocks: ViewBlocks, columns: Mapping[str, tuple[str, ...]]) -> None:
        """``columns``: by relation, the columns that the view reads."""
        super().__init__(blocks)
        self._stored = StoredRows(dict(columns))
        self._stale = False
        """Whether the contents are not those of the stored rows."""

    def apply(self, batch: CodeBatch, more: bool, wanted: bool) -> None:
        if wanted:
            self._note_before()
        stored = dict(self._stored.rows)
        self._stale = True
        try:
            self._stored.add(batch)
            self._run_all(batch)
        except KeyboardInterrupt:
            # The stored rows are as before; ``settle`` runs them.
            self._stored.take(stored)
            self.discard_change()
            raise
        if wanted:
            self.blocks.forget_changes()

    def take_back(self, batch: CodeBatch) -> None:
        self._stale = True
        self._stored.add(batch.negated())

    @property
    def waits(self) -> bool:
        return self._stale

    def settle(self) -> None:
        if self._stale:
            self._run_all(None)
            self.blocks.forget_changes()

    def _run_all(self, batch: CodeBatch | None) -> None:
        """Run all stored rows. ``batch`` as of ``_run_stored``."""
        allowed = INTERRUPTION.allowed
        self.blocks.clear()
        for every in self._stored.batches():
            for at in range(0, len(every), PIECE):
                INTERRUPTION.raise_if_allowed()
                self._run_stored(every.between(at, min(at + PIECE, len(every))), batch)
                INTERRUPTION.allowed = allowed  # All is computed again, so Ctrl-C may end the next run, too.
        self._stale = False

    def _run_stored(self, rows: CodeBatch, batch: CodeBatch | None) -> None:
        """Run stored rows of a relation. Raises Failed, with the row at fault if ``batch`` has it."""
        try:
            self.blocks.run(rows)
            failure = self.blocks.failure()
        except Failed as failed:
            failure = failed.failure
        if failure is not None:
            row = None if failure.row is None or batch is None else _place_of(rows, failure.row, batch)
            raise Failed(replace(failure, row=row))

    def clear(self) -> None:
        super().clear()
        self._stored.clear()
        self._stale = False

    def stored_rows(self) -> dict[str, Codes]:
        return self._stored.rows

    def restore(self, stored: dict[str, Codes]) -> None:
        super().restore(stored)
        self._stored.take(stored)
        self._stale = False


def _place_of(every: CodeBatch, row: int, batch: CodeBatch) -> int | None:
    """The first row of ``batch`` that inserts row ``row`` of ``every``; None if there is none."""
    if every.relation != batch.relation:
        return None
    same = batch.multiplicities > 0
    for name, column in every.columns.items():
        same &= batch.columns[name] == column[row]
    found = np.flatnonzero(same)
    return int(found[0]) if len(found) else None


def upkeep_of(blocks: ViewBlocks, columns: Mapping[str, tuple[str, ...]]) -> Upkeep:
    """The way to maintain a view; ``columns`` as of ``Recomputed``."""
    ways: Sequence[kinds.Upkeep] = [block.plan.program.upkeep for block in blocks]
    if any(isinstance(way, kinds.Recomputed) for way in ways):
        return Recomputed(blocks, columns)
    if any(isinstance(way, kinds.Evaluated) for way in ways):
        return Evaluated(blocks)
    if any(isinstance(way, kinds.Settled) for way in ways):
        return Settled(blocks)
    if any(isinstance(way, kinds.Traced) for way in ways):
        return Traced(blocks)
    return ByTriggers(blocks)
