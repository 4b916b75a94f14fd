"""Errors of batches, worded: what a view could not compute, and memory that ran out."""

from __future__ import annotations

from freshviews.engine.batch import CodeBatch
from freshviews.engine.encoding import Encoded
from freshviews.engine.maintained import Failure
from freshviews.engine.relations import Relation, TableState, ViewState
from freshviews.errors import EvaluationError, FreshviewsError


class OutOfMemory(FreshviewsError, MemoryError):
    """Memory ran out; the batch is refused and the state is as before, unless the message says otherwise."""


def evaluation_error(
    view: ViewState, failure: Failure, source: Relation, batch: CodeBatch, encoded: Encoded | None
) -> EvaluationError:
    """The error for an expression of ``view`` that fails on a batch of ``source``.

    ``encoded`` is what the user gave, where the batch is of a base table.
    """
    name = view.name.split("#")[0]
    what = "table" if isinstance(source, TableState) else "change of view"
    values = "" if failure.row is None else row_text(source, batch, failure.row)
    number = None
    if failure.row is not None and encoded is not None:
        number = _given_row(encoded, batch, failure.row)
    place = "" if number is None else f", row {number}"
    return EvaluationError(
        f"{what} {source.name}{place}: view {name} cannot be computed{values}: {failure.message}",
        table=source.name,
        row=number,
        value=values.removeprefix(" for ") or None,
        rule=failure.message,
    )


def _given_row(encoded: Encoded, batch: CodeBatch, row: int) -> int | None:
    if batch is encoded.batch:
        return encoded.position(row)
    return encoded.row_with({name: int(column[row]) for name, column in batch.columns.items()})


def row_text(relation: Relation, batch: CodeBatch, row: int) -> str:
    """`` for (a = 1, ...)``: the columns that the batch has, decoded."""
    shown = [
        f"{column.name} = {relation.decoder.value(column, int(batch.columns[column.name][row]))!r}"
        for column in relation.definition.columns
        if column.name in batch.columns
    ]
    return f" for ({', '.join(shown)})"
