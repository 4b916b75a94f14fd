"""Reading the contents of a view, and the errors of reading."""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.maintained import MaintainedView
from freshviews.errors import EvaluationError, FreshviewsError, OutOfMemory


def contents_of(maintained: MaintainedView, rows: int) -> Iterator[CodeBatch]:
    """The contents of a view in batches; raises EvaluationError where an output cannot be computed."""
    try:
        yield from maintained.contents(rows)
    except Failed as failed:
        raise not_readable(maintained.view.name, failed.failure) from None


def not_readable(name: str, failure: Failure) -> FreshviewsError:
    """The error for a view whose rows cannot be read."""
    if failure.kind == "memory":
        return OutOfMemory(f"memory ran out while view {name} was read")
    return EvaluationError(
        f"view {name}: an output column cannot be computed for a row: {failure.message}",
        table=name,
        rule=failure.message,
    )
