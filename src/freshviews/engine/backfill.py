"""A view is filled from what its inputs hold, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from freshviews.engine.failures import OutOfMemory, evaluation_error
from freshviews.engine.relations import Relations, ViewState

ROWS = 1 << 16
"""Rows of a batch."""


def fill(
    view: ViewState,
    relations: Relations,
    whole: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Fill an empty view. Rows of trusted tables are not stored and take no part.

    ``whole`` guards each batch: between batches the caller may be interrupted. Raises EvaluationError,
    OutOfMemory; the view is then to be cleared or closed.
    """
    for name in view.maintained.inputs:
        source = relations.get(name)
        assert source is not None
        if source.is_stored:
            batches = source.batches(ROWS)
            while True:
                with whole():
                    batch = next(batches, None)
                    if batch is None:
                        break
                    view.maintained.apply(batch)
                    failure = view.maintained.failure()
                if failure is None:
                    continue
                if failure.kind == "memory":
                    raise OutOfMemory(f"memory ran out while view {view.name.split('#')[0]} was filled")
                raise evaluation_error(view, failure, source, batch, None)
