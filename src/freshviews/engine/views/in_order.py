"""Runs the updates of a batch one by one, and reads the change of the view after each."""

from __future__ import annotations

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch, Codes, address_of
from freshviews.engine.views.failure import Failed
from freshviews.engine.views.maintained import MaintainedView
from freshviews.engine.views.output import consolidate
from freshviews.engine.views.view_block import ViewBlock

_CHANGES = 1 << 16
"""Rows of a change after which the triggers' buffer is read."""


class TooMany(Exception):
    """The change of a batch that runs update by update is too large; ``updates`` have run."""

    def __init__(self, updates: int) -> None:
        self.updates = updates


def can_run_in_order(view: MaintainedView, relation: str) -> bool:
    """Whether a batch of the relation can run update by update: the view has one block, whose result is not held, and
    no texts."""
    one = view.wants_change and len(view.blocks) == 1 and relation in view.blocks[0].compiled.each
    return one and view.blocks[0].texts is None and not view.blocks[0].projection.fails


def apply_in_order(view: MaintainedView, batch: CodeBatch, most: int) -> tuple[CodeBatch, Codes]:
    """Run a batch update by update; returns its change in order, and the number of the update behind each row.

    Requires ``can_run_in_order``. Raises TooMany if the change has ``most`` rows or more and updates are left: those
    that have run must be undone. Raises Failed after all updates have run, or none of them.
    """
    (block,) = view.blocks
    found: list[tuple[Codes, Codes]] = [(view.blocks.empty(), np.empty(0, np.int64))]
    columns = block.columns(batch)
    places = {name: address_of(columns[name]) for name in block.needed[batch.relation]}
    failed: Failed | None = None
    count = 0
    limit = min(_CHANGES, most)
    m = address_of(batch.multiplicities)
    for raw, numbers, done in block.state.each(batch.relation, places, m, len(batch), limit):
        failure = view.blocks.failure()
        if failure is not None and failed is None:
            failed = Failed(failure)
        if failed is not None:
            continue
        try:
            found.append(_output(block, raw, numbers))
        except Failed as error:
            failed = error
            continue
        count += len(found[-1][0])
        if count >= most and done < len(batch):
            raise TooMany(done)
    if failed is not None:
        view.blocks.reset()
        raise failed
    rows, numbers = found[-1]
    if len(found) > 2:
        rows = np.concatenate([rows for rows, _ in found])
        numbers = np.concatenate([numbers for _, numbers in found])
    return view.batch_of(rows), numbers


def _output(block: ViewBlock, raw: Codes, numbers: Codes) -> tuple[Codes, Codes]:
    """Output rows of raw rows, and the numbers that go with them."""
    if block.projection.having is None:
        rows = block.project(raw)
        if not block.is_inner:
            merged = consolidate(np.column_stack([numbers, rows]))
            merged = merged[np.argsort(merged[:, 0], kind="stable")]
            return merged[:, 1:], merged[:, 0].copy()
        return rows.copy() if rows is raw else rows, numbers
    kept, found = [block.project(raw[:0])], [numbers[:0]]
    for number in np.unique(numbers):
        rows = block.project(raw[numbers == number])
        kept.append(rows)
        found.append(np.full(len(rows), number, np.int64))
    return np.concatenate(kept), np.concatenate(found)
