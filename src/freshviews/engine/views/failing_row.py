"""Finds the row of a batch that makes a traced view fail, by bisection."""

from __future__ import annotations

from dataclasses import replace

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.views.failure import Failure
from freshviews.engine.views.maintained import MaintainedView
from freshviews.errors import OutOfMemory


def with_row(failure: Failure, maintained: MaintainedView, batch: CodeBatch) -> Failure:
    """Adds to the failure of the last applied batch the first row that fails after the rows before it; no row if the
    batch alone is not the cause, or cannot be undone. The batch stays applied.

    A trace is maintained once per batch, so a failing derivation does not show which row of the batch caused it. The
    batch is undone, and halves of it are applied and undone until one row is left. The search costs as much as a few
    batches.
    """
    traced = any(plan.program.upkeep.joins for plan in maintained.plans)
    if not traced or failure.row is not None or failure.kind != "evaluation" or maintained.spoiled:
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
    """Apply rows; returns why they are refused, or None. Raises OutOfMemory."""
    failure = maintained.apply(batch)
    if failure is not None and failure.kind == "memory":
        raise OutOfMemory("memory ran out during the search for the row that fails")
    return failure
