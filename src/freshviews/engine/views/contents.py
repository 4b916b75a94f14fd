"""Reading the contents of a view, and the errors of reading."""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.views.failure import Failure
from freshviews.engine.views.maintained import Maintained
from freshviews.errors import EvaluationError, FreshviewsError, OutOfMemory
from freshviews.expr.host import HostFailure


def contents_of(maintained: Maintained, rows: int) -> Iterator[CodeBatch]:
    """The contents of a view in batches; raises EvaluationError where an output cannot be computed."""
    name = maintained.view.name
    batches = maintained.contents(rows)
    while True:
        try:
            batch = next(batches, None)
        except HostFailure as failure:
            raise not_readable(name, Failure("evaluation", failure.reason)) from None
        # Asked after the last batch too: what is left unasked would be taken for a failure of the next commit.
        failed = maintained.failure()
        if failed is not None:
            raise not_readable(name, failed)
        if batch is None:
            return
        yield batch


def not_readable(name: str, failure: Failure) -> FreshviewsError:
    """The error for a view whose rows cannot be read."""
    if failure.kind == "memory":
        return OutOfMemory(f"memory ran out while view {name} was read")
    return EvaluationError(
        f"view {name}: an output column cannot be computed for a row: {failure.message}",
        table=name,
        rule=failure.message,
    )
