"""Adds columns to stored tables, and widens columns: copies the rows, with the DEFAULT of each new column or NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from freshviews.catalog.definitions import ColumnDef
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.defaults import default_code
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window import restore_window, rows_in_window
from freshviews.errors import BatchError, OutOfMemory
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import text_of

ROWS = 1 << 16
"""Rows that are stored at a time."""


def store_again(old: TableState, new: TableState, whole: Callable[[], AbstractContextManager[None]]) -> None:
    """Copy the rows of a table into ``new``, which is empty and has more columns; ``old`` stays unchanged.

    ``whole`` guards each step that must not be interrupted. Raises OutOfMemory.
    """
    dictionary = new.decoder.dictionary
    columns = old.definition.columns
    added = new.definition.columns[len(old.definition.columns) :]
    if old.stored is not None and new.stored is not None:
        batches = old.stored.batches(ROWS)
        while True:
            with whole():
                batch = next(batches, None)
                if batch is None:
                    break
                batch = _with_columns(_with_wide_columns(batch, columns, new), added, dictionary)
                if new.stored.add(batch) is not None:
                    raise OutOfMemory(
                        f"memory ran out while table {old.name} got its new columns; the table is as before"
                    )
                new.stored.settle()
    if old.held is not None:
        held = rows_in_window(new)
        rows = old.held.rows.copy()
        for place in _wide_now(columns, new):
            rows[:, place] = _texts_of(rows[:, place], dictionary)
        codes = [default_code(column, dictionary) for column in added]
        constants = np.broadcast_to(np.array(codes, np.int64), (len(rows), len(codes)))
        restore_window(new, np.concatenate([rows, constants], axis=1))
        held.now = old.held.now


def with_wide_columns(table: TableState, encoded: Encoded) -> Encoded:
    """Rows of an open batch, with the texts of decimals that became wide since the rows were encoded."""
    if encoded.columns is None or encoded.columns == table.definition.columns:
        return encoded
    return replace(encoded, batch=_with_wide_columns(encoded.batch, encoded.columns, table))


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


def _wide_now(before: Sequence[ColumnDef], table: TableState) -> list[int]:
    """The places of the columns whose codes were words ``before``, and are those of texts now."""
    pairs = zip(before, table.definition.columns, strict=False)
    return [place for place, (old, new) in enumerate(pairs) if new.type.wide and not old.type.wide]


def _with_wide_columns(batch: CodeBatch, before: Sequence[ColumnDef], table: TableState) -> CodeBatch:
    names = {before[place].name for place in _wide_now(before, table)} & batch.columns.keys()
    if not names:
        return batch
    dictionary = table.decoder.dictionary
    texts = {name: _texts_of(batch.columns[name], dictionary) for name in names}
    return CodeBatch(batch.relation, {**batch.columns, **texts}, batch.multiplicities)


def _texts_of(words: Codes, dictionary: Dictionary) -> Codes:
    """The codes of the texts of decimals, from their unscaled values."""
    distinct, places = np.unique(words, return_inverse=True)
    found = [NULL if one == NULL else dictionary.encode(text_of(one)) for one in distinct.tolist()]
    codes: Codes = np.array(found, np.int64)
    if dictionary.mark is not None:
        dictionary.mark(codes)
    return codes[places.reshape(-1)]
