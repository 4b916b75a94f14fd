"""Which row of a batch a view cannot be computed for, where it is walked for the batch as a whole.

What is kept by its trace changes once a batch, and a derivation is no row of it. So the row is looked for: the batch is
taken in again by parts, halves of what is known to fail. That takes as many rows as a few batches.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.views.failure import Failure
from freshviews.engine.views.maintained import MaintainedView
from freshviews.errors import OutOfMemory


def with_row(failure: Failure, maintained: MaintainedView, batch: CodeBatch) -> Failure:
    """A failure of the batch that was applied last, with the first row that the view cannot be computed for once the
    rows before it are in; without one where it is not due to this batch alone. The batch stays applied."""
    walked = any(plan.program.upkeep.joins for plan in maintained.plans)
    if not walked or failure.row is not None or failure.kind != "evaluation":
        return failure
    _applied(maintained, batch.negated())
    low, high = 0, len(batch)
    while high - low > 1:
        middle = (low + high) // 2
        part = batch.between(low, middle)
        if _applied(maintained, part) is None:
            low = middle
        else:
            _applied(maintained, part.negated())
            high = middle
    found = _applied(maintained, batch.between(low, high))
    _applied(maintained, batch.between(high, len(batch)))
    return failure if found is None else replace(found, row=low)


def _applied(maintained: MaintainedView, batch: CodeBatch) -> Failure | None:
    """Apply rows; why they cannot stand. Raises OutOfMemory."""
    failure = maintained.apply(batch)
    if failure is not None and failure.kind == "memory":
        raise OutOfMemory("memory ran out while the row at fault was looked for")
    return failure
