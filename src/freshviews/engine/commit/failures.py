"""Errors of batches, worded: what a view could not compute, and memory that ran out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.encoding import Encoded, TableEncoder
from freshviews.engine.views.maintained import Failure, Maintained
from freshviews.errors import EvaluationError, FreshviewsError
from freshviews.errors import OutOfMemory as OutOfMemory
from freshviews.expr.host import HostFailure

if TYPE_CHECKING:
    from freshviews.engine.relations import Relation, ViewState


def encoded_rows(encoder: TableEncoder, rows: Any, sign: int) -> Encoded:
    """Rows as codes, ``sign`` as in ``TableEncoder.encode``; OutOfMemory where they do not fit."""
    try:
        return encoder.encode(rows, sign)
    except MemoryError as error:
        raise OutOfMemory("memory ran out while the rows were encoded; the batch is refused") from error


def evaluation_error(
    view: ViewState, failure: Failure, source: Relation, batch: CodeBatch, encoded: Encoded | None
) -> EvaluationError:
    """The error for an expression of ``view`` that fails on a batch of ``source``.

    ``encoded`` is what the user gave, where the batch is of a base table.
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
    """`` for (a = 1, ...)``: the columns that the batch has, decoded."""
    shown = [
        f"{column.name} = {relation.decoder.value(column, int(batch.columns[column.name][row]))!r}"
        for column in relation.definition.columns
        if column.name in batch.columns
    ]
    return f" for ({', '.join(shown)})"


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
