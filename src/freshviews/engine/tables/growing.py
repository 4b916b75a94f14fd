"""Adds columns to stored tables: copies the rows, with the DEFAULT of each new column or NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from freshviews.catalog.definitions import ColumnDef
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.defaults import default_code
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window import restore_window, rows_in_window
from freshviews.errors import BatchError, OutOfMemory
from freshviews.types.dictionary import Dictionary

ROWS = 1 << 16
"""Rows that are stored at a time."""


def store_again(old: TableState, new: TableState, whole: Callable[[], AbstractContextManager[None]]) -> None:
    """Copy the rows of a table into ``new``, which is empty and has more columns; ``old`` stays unchanged.

    ``whole`` guards each step that must not be interrupted. Raises OutOfMemory.
    """
    dictionary = new.decoder.dictionary
    added = new.definition.columns[len(old.definition.columns) :]
    if old.stored is not None and new.stored is not None:
        batches = old.stored.batches(ROWS)
        while True:
            with whole():
                batch = next(batches, None)
                if batch is None:
                    break
                if new.stored.add(_with_columns(batch, added, dictionary)) is not None:
                    raise OutOfMemory(
                        f"memory ran out while table {old.name} got its new columns; the table is as before"
                    )
                new.stored.settle()
    if old.held is not None:
        held = rows_in_window(new)
        codes = [default_code(column, dictionary) for column in added]
        constants = np.broadcast_to(np.array(codes, np.int64), (len(old.held.rows), len(codes)))
        restore_window(new, np.concatenate([old.held.rows, constants], axis=1))
        held.now = old.held.now


def with_new_columns(table: TableState, encoded: Encoded) -> Encoded:
    """Adds new columns to rows that were encoded before their table got them.

    Raises BatchError if one is NOT NULL and has no DEFAULT.
    """
    missing = [column for column in table.definition.columns if column.name not in encoded.batch.columns]
    for column in missing:
        if not column.may_be_absent:
            raise BatchError(
                f"table {table.name}: NOT NULL column {column.name} was added while the batch was open; give the rows "
                "again, with this column",
                table=table.name,
                column=column.name,
                rule="NOT NULL",
            )
    if not missing:
        return encoded
    return replace(encoded, batch=_with_columns(encoded.batch, missing, table.decoder.dictionary))


def _with_columns(batch: CodeBatch, added: Sequence[ColumnDef], dictionary: Dictionary) -> CodeBatch:
    """A batch with further columns, each of one code, stored once for all rows."""
    constants = {c.name: np.broadcast_to(np.int64(default_code(c, dictionary)), len(batch)) for c in added}
    return CodeBatch(batch.relation, {**batch.columns, **constants}, batch.multiplicities)
