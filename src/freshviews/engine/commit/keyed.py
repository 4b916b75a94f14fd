"""Converts changes by PRIMARY KEY, such as upserts, to signed rows: rows with +1 (inserted) or -1 (deleted).

Changes of one batch are applied in the order of their numbers::

    number   change                     signed rows
    0        upsert (1, a)              -1 of the stored row with key 1; no +1, because change 2 replaces (1, a)
    1        insert (2, b)              +1 (2, b)
    2        upsert (1, c)              +1 (1, c)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.encoding import Encoded, joined
from freshviews.engine.tables.growing import with_new_columns, with_wide_columns
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import BatchError, CatalogError, shown
from freshviews.records import dataclass

Flags = NDArray[np.bool_]

DELETE, REMOVE, UPSERT, UPDATE = -1, -2, 2, 3
"""Actions; an insert is 1. Actions of 2 or more, by absolute value, are by key."""


@dataclass(frozen=True)
class Keyed(Encoded):
    """Encoded changes by key, all of one action. The batch has the columns of the key, and those that are given.

    ``given``: by column of an UPDATE, the rows that give it a value.
    """

    action: int = UPSERT
    given: Mapping[str, Flags] | None = None


def check_by_key(table: TableState) -> None:
    """Raise CatalogError if rows of a table cannot be changed by key."""
    if table.stored is None:
        reason = "is trusted: its rows are not stored, so none is found by its key; insert and delete whole rows"
    elif table.stored.primary_key is None:
        reason = "has no PRIMARY KEY by which its rows are changed; declare one, or delete and insert whole rows"
    elif table.has_window:
        reason = "has a window, which deletes its rows itself, so none can be changed by key; insert rows"
    else:
        return
    raise CatalogError(f"table {table.name} {reason}")


def signed(table: TableState, pieces: Sequence[Encoded]) -> Encoded:
    """The pieces of a batch, in order, as one batch of signed rows with every column of the table.

    Raises BatchError if an update names a key without a row, CatalogError as ``check_by_key``.

    The stored row of a key is looked up only if the first change of the key is by key. INSERT and DELETE name whole
    rows; the constraints of the table decide whether they are valid. A row that ends as it was stored is no change.
    """
    pieces = [with_wide_columns(table, piece) for piece in pieces]
    if not any(isinstance(piece, Keyed) for piece in pieces):
        return joined([with_new_columns(table, piece) for piece in pieces])
    check_by_key(table)
    assert table.stored is not None and table.stored.primary_key is not None
    key = table.stored.primary_key.columns
    batch = _Changes(table, pieces)
    order = _order([batch.columns[name] for name in key])
    actions = batch.actions[order]
    first = np.zeros(len(order), np.bool_)
    first[:1] = True
    for name in key:
        codes = batch.columns[name][order]
        first[1:] |= codes[1:] != codes[:-1]
    by_key, coming = np.abs(actions) >= UPSERT, actions > 0
    asked = np.flatnonzero(first & by_key)
    at, old = table.stored.rows_of([batch.columns[name][order[asked]] for name in key])
    found = asked[at]
    if (actions == UPDATE).any():
        present = np.zeros(len(order), np.bool_)
        present[1:] = coming[:-1] & ~first[1:]
        present[found] = True
        absent = np.flatnonzero((actions == UPDATE) & ~present)
        if len(absent):
            raise _absent(table, key, batch, int(order[absent].min()))
        batch.complete(order, found, old)
    taken_out = np.append(by_key[1:] & ~first[1:], False)
    kept = (coming & ~taken_out) | (actions == DELETE)
    # The last change of each key that had a stored row.
    last = np.flatnonzero(np.append(first[1:], True))[np.cumsum(first)[found] - 1]
    changed = ~(coming & by_key)[last]
    for name, codes in batch.columns.items():
        changed |= codes[order[last]] != old.columns[name]
    kept[last[~changed]] = False
    new = np.sort(order[kept])
    columns = {name: np.concatenate([old.columns[name][changed], codes[new]]) for name, codes in batch.columns.items()}
    signs = np.concatenate([np.full(int(changed.sum()), -1, np.int64), batch.multiplicities[new]])
    positions = np.concatenate([batch.positions[order[found[changed]]], batch.positions[new]])
    return Encoded(CodeBatch(table.name, columns, signs), positions)


class _Changes:
    """The changes of several pieces, in order, with every column; ``given`` has the columns that updates give."""

    def __init__(self, table: TableState, pieces: Sequence[Encoded]) -> None:
        self._pieces = [piece if _is_partial(piece) else with_new_columns(table, piece) for piece in pieces]
        sizes = [len(piece.batch) for piece in pieces]
        self.columns: dict[str, Codes] = {}
        for column in table.definition.columns:
            parts = [piece.batch.columns.get(column.name) for piece in self._pieces]
            self.columns[column.name] = np.concatenate(
                [np.zeros(size, np.int64) if part is None else part for part, size in zip(parts, sizes, strict=True)]
            )
        self.multiplicities = np.concatenate([piece.batch.multiplicities for piece in pieces])
        self.positions = np.concatenate(
            [np.arange(len(p.batch)) if p.positions is None else p.positions for p in pieces]
        )
        self.actions = np.concatenate(
            [
                np.full(len(p.batch), p.action) if isinstance(p, Keyed) else np.sign(p.batch.multiplicities)
                for p in pieces
            ]
        )

    def complete(self, order: Codes, found: Codes, old: CodeBatch) -> None:
        """Give each update the values that its row has before it in the columns that it does not give.

        ``order``: the changes by key; ``found``: those of them that come to the stored rows ``old``.
        """
        for name, codes in self.columns.items():
            given = np.concatenate([_given(piece, name) for piece in self._pieces])[order]
            values = codes[order]
            lacks = ~given[found]
            values[found[lacks]] = old.columns[name][lacks]
            given[found] = True
            codes[order] = values[np.maximum.accumulate(np.where(given, np.arange(len(order)), 0))]


def _is_partial(piece: Encoded) -> bool:
    return isinstance(piece, Keyed) and piece.action != UPSERT


def _given(piece: Encoded, name: str) -> Flags:
    """The rows of a piece that give a column a value; changes without values count as such."""
    if isinstance(piece, Keyed) and piece.given is not None:
        return piece.given.get(name, np.zeros(len(piece.batch), np.bool_))
    return np.ones(len(piece.batch), np.bool_)


def _order(columns: Sequence[Codes]) -> Codes:
    """Positions sorted by key; equal keys stay in order."""
    if len(columns) == 1:
        return np.argsort(columns[0], kind="stable")
    return np.lexsort(columns[::-1])


def _absent(table: TableState, key: Sequence[str], batch: _Changes, at: int) -> BatchError:
    columns = {column.name: column for column in table.definition.columns}
    values = tuple(table.decoder.value(columns[n], int(batch.columns[n][at])) for n in table.definition.keys[0])
    value = values[0] if len(values) == 1 else values
    row, names = int(batch.positions[at]), ", ".join(table.definition.keys[0])
    return BatchError(
        f"table {table.name}, row {row}, column {names}: update of {shown(value)}, a key that no row has; upsert adds "
        "the row of a new key",
        table=table.name,
        row=row,
        column=names,
        value=value,
        rule="an updated row must be stored",
    )
