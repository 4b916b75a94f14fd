"""Reads the rows of a view, in any order or in that of its ORDER BY. If a row cannot be computed, the error names the
view.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from freshviews.catalog.definitions import ReadOrder
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.maintained import MaintainedView
from freshviews.errors import EvaluationError, FreshviewsError, OutOfMemory


def contents_of(maintained: MaintainedView, rows: int) -> Iterator[CodeBatch]:
    """The contents of a view in batches; raises EvaluationError if an output cannot be computed."""
    try:
        yield from maintained.contents(rows)
    except Failed as failed:
        raise not_readable(maintained.view.name, failed.failure) from None


def in_order(view: MaintainedView, source: MaintainedView, order: ReadOrder, rows: int) -> Iterator[CodeBatch]:
    """The contents of a view in its ORDER BY order. ``source``: the view itself, or the internal view that has the
    columns of the order. All rows are sorted in memory. Errors as ``contents_of``."""
    try:
        found = source.in_order(order)
    except Failed as failed:
        raise not_readable(view.view.name, failed.failure) from None
    columns = len(view.view.columns)
    for start in range(0, len(found), rows):
        piece = found[start : start + rows]
        yield view.batch_of(piece if source is view else np.column_stack([piece[:, :columns], piece[:, -1]]))


def not_readable(name: str, failure: Failure) -> FreshviewsError:
    """The error for a view whose rows cannot be read, under the name that the user gave it."""
    name = name.partition("#")[0]
    if failure.kind == "memory":
        return OutOfMemory(f"memory ran out while view {name} was read")
    return EvaluationError(
        f"view {name}: an output column cannot be computed for a row: {failure.message}",
        table=name,
        rule=failure.message,
    )
