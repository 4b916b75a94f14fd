"""Maintains the traced joins of a block (``program.traced``) at the end of each version.

Triggers record the changes of the inputs of a join. The trace, which has the steps of the join, then yields the
rows that the join lost and gained. Further triggers run over these rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freshviews.codegen.layout import STATUS_ERROR, STATUS_ROW, STATUS_STEPS
from freshviews.codegen.module import compile_ahead
from freshviews.engine.blocks.parts.part import Owner, Part
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.words import address, words_in
from freshviews.engine.traces.traced import TracedRule
from freshviews.errors import OutOfMemory
from freshviews.kernel.btree.load import edit_in_order
from freshviews.kernel.hash import renew, table
from freshviews.kernel.memory import mem
from freshviews.kernel.trace.maintain import maintain
from freshviews.kernel.trace.oracle import keep_version
from freshviews.program.traced import TracedJoin
from freshviews.types.dictionary import Dictionary


class Tracing(Part):
    """The traces of the joins of a block."""

    calls = (keep_version, edit_in_order, maintain, renew.reset_table)

    def __init__(self, traced: tuple[TracedJoin, ...], dictionary: Dictionary) -> None:
        self._traced = traced
        self._dictionary = dictionary
        self._rules = [TracedRule(one.rule, dictionary) for one in traced]
        compile_ahead(*self.calls)

    def end_version(self, owner: Owner) -> None:
        """Apply the recorded edits, and run the triggers of the erased and inserted derivations. Operations of
        iterators count as steps."""
        status, tables = owner.status, owner.handles()
        error, row = int(status[STATUS_ERROR]), int(status[STATUS_ROW])
        for one, rule in zip(self._traced, self._rules, strict=True):
            before = rule.operations
            edits = {}
            for view, edit in one.edits:
                handle = tables[edit]
                if mem.load(handle, table.USED) == 0:
                    continue
                rows = live_rows(handle)
                if len(rows):
                    edits[view] = columns_of(rows)
                renew.reset_table(handle)
            if not edits:
                continue
            try:
                erased, inserted = rule.apply(edits)
            except OutOfMemory:
                mem.store(tables[one.edits[0][1]], table.FAILED, 1)  # The block is backfilled again.
                return
            if rule.failure and not status[STATUS_ERROR]:
                status[STATUS_ERROR] = rule.failure
            erased[:, -1] *= -1
            for rows in (erased, inserted):
                _hand_on(one, rows, owner)
            status[STATUS_STEPS] += rule.operations - before
        # A derivation is not a row of the batch.
        status[STATUS_ROW] = row if error else -1

    def restore(self, owner: Owner, image: Mapping[str, Any]) -> None:
        """Build tries and records for rows whose derivations are in the result already."""
        tables = owner.handles()
        for one, rule in zip(self._traced, self._rules, strict=True):
            rule.apply({view: columns_of(live_rows(tables[view])) for view, _ in one.edits})

    def clear(self) -> None:
        self.close()
        self._rules = [TracedRule(one.rule, self._dictionary) for one in self._traced]

    def close(self) -> None:
        for rule in self._rules:
            rule.close()

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes of tries and sensitivity indices."""
        return {name: size for rule in self._rules for name, size in rule.sizes().items()}

    def described(self, owner: Owner) -> list[str]:
        """A line of text per trace: its size, and the work done to maintain it."""
        lines = []
        for one, rule in zip(self._traced, self._rules, strict=True):
            found = rule.counters
            lines.append(
                f"trace of {one.derivations.removeprefix('#')}: {found.trace:,} operations, {rule.held:,} intervals "
                f"held; {found.edits:,} operations edited so far, by {found.operations:,} operations"
            )
        return lines


def _hand_on(traced: TracedJoin, rows: Codes, owner: Owner) -> None:
    """Run the triggers of derivations."""
    if len(rows) == 0:
        return
    first, width = address(rows), rows.shape[1]
    columns = {name: (first + 8 * i, width) for i, name in enumerate(traced.rule.order)}
    owner.run_triggers(traced.derivations, columns, (first + 8 * (width - 1), width), len(rows))


def live_rows(handle: int) -> Codes:
    """The rows of a table whose payload is one count, in stored order; a row may be split, with counts that add up."""
    rows = words_in(mem.load(handle, table.ROWS), mem.load(handle, table.USED), mem.load(handle, table.WIDTH))
    there: NDArray[np.bool_] = rows[:, mem.load(handle, table.KEY)] != 0
    return np.compress(there, rows, axis=0)


def columns_of(rows: Codes) -> tuple[list[Codes], Codes]:
    """The columns of rows of a key and a count."""
    key = rows.shape[1] - 1
    columns = np.ascontiguousarray(rows.T)
    return [columns[i] for i in range(key)], columns[key]


def tracing_of(owner: Owner) -> Part | None:
    """The traces of a program with traced joins."""
    joins = owner.program.upkeep.joins
    return Tracing(joins, owner.dictionary) if joins else None
