"""Writes the error message for a batch on which a view fails. The message names the failing row and its values."""

from __future__ import annotations

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.relations import Relation
from freshviews.engine.views.failure import Failure
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import EvaluationError, short


def evaluation_error(
    view: ViewState, failure: Failure, source: Relation, batch: CodeBatch, encoded: Encoded | None
) -> EvaluationError:
    """The error for an expression of ``view`` that fails on a batch of ``source``.

    ``encoded`` is the user's input, if ``source`` is a base table.
    """
    name = view.name.split("#")[0]
    values = "" if failure.row is None else row_text(source, batch, failure.row)
    number = None
    if failure.row is not None and encoded is not None:
        number = _given_row(encoded, batch, failure.row)
    place = "" if number is None else f", row {number}"
    return EvaluationError(
        f"{source.changes_of} {source.name}{place}: view {name} cannot be computed{values}: {failure.message}",
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
    """`` for (a = 1, ...)``: the decoded columns of the batch."""
    texts = [
        f"{column.name} = {relation.decoder.text(column, int(batch.columns[column.name][row]))}"
        for column in relation.definition.columns
        if column.name in batch.columns
    ]
    return f" for {short('(' + ', '.join(texts) + ')')}"
