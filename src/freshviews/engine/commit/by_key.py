"""Encodes changes that name rows by their PRIMARY KEY: rows to upsert, values to update, and keys to delete.

``engine.commit.keyed`` converts the encoded changes to signed rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.inputs import accepted
from freshviews.engine.codes.key_codes import OneKey, key_codes
from freshviews.engine.codes.objects import fields_of
from freshviews.engine.commit.keyed import REMOVE, UPDATE, UPSERT, Keyed
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import ArgumentError, BatchError, shown

MOST = 8
"""Most changes of which ``signed_words`` makes rows: two for each."""


@dataclass(eq=False, slots=True)
class Upsert:
    """Whole rows, which replace the rows of their keys.

    It is not a frozen dataclass, because making a frozen object takes three times as long.
    """

    rows: list[Any] | pa.Table | pa.RecordBatch
    sign = 1

    def __len__(self) -> int:
        return len(self.rows)

    def encode(self, table: TableState) -> Keyed:
        """The rows as a piece of a batch. Raises as inserts."""
        encoded = table.encoder.whole().encode(self.rows, 1)
        return Keyed(encoded.batch, encoded.positions, UPSERT)

    def signed_words(self, table: TableState) -> list[int] | None:
        """Codes and multiplicity of each row that goes or comes; None if ``encode`` must take the rows."""
        stored, encoder, encoders = table.stored, table.encoder, table.encoder.encoders
        if stored is None or not stored.key_places or type(self.rows) is not list or len(self.rows) > MOST:
            return None
        words: list[int] = []
        for number, row in enumerate(self.rows):
            if type(row) is not tuple:
                row = encoder.as_tuple(number, row, 1)
            if len(row) != len(encoders):
                return None
            new = [encode(value) for encode, value in zip(encoders, row)]  # noqa: B905  # strict takes longer than a row.
            old = stored.row_like(new)
            if old != new:
                words += new if old is None else (*old, -1, *new)
                words.append(1)
        return words


@dataclass(eq=False, slots=True)
class Update:
    """Rows by name, with the key and the columns that change."""

    rows: list[Any] | pa.Table | pa.RecordBatch
    sign = 1

    def __len__(self) -> int:
        return len(self.rows)

    def encode(self, table: TableState) -> Keyed:
        """The rows as a piece of a batch. Raises BatchError if a row lacks a column of the key, or does not fit."""
        encoder, key = table.encoder.whole(), table.definition.keys[0]
        if isinstance(self.rows, list):
            for number, row in enumerate(self.rows):
                if fields_of(row) is None:
                    raise _unnamed(table, number, row)
            columns, given = encoder.encode_given(self.rows)
            size = len(self.rows)
        else:
            encoded = encoder.encode_columns(self.rows)
            columns, size = encoded.batch.columns, len(encoded.batch)
            given = {name: np.ones(size, np.bool_) for name in columns}
        for name in key:
            lacks = np.flatnonzero(~given[name]) if name in given else np.arange(min(size, 1))
            if len(lacks):
                raise _keyless(table, int(lacks[0]), name)
        return Keyed(CodeBatch(table.name, columns, np.ones(size, np.int64)), None, UPDATE, given)

    def signed_words(self, table: TableState) -> list[int] | None:
        """As of ``Upsert``."""
        stored, encoder, encoders = table.stored, table.encoder, table.encoder.encoders
        if stored is None or not stored.key_places or type(self.rows) is not list or len(self.rows) > MOST:
            return None
        words: list[int] = []
        for row in self.rows:
            values = row if type(row) is dict else fields_of(row)
            places = None if values is None else encoder.places_of(values)
            if values is None or places is None:
                return None
            given: dict[int, int] = {}
            for place, value in zip(places, values.values()):  # noqa: B905  # strict takes longer than a row.
                given[place] = encoders[place](value)
            if not given.keys() >= stored.key_set:
                return None
            old = stored.row_of([given[place] for place in stored.key_places])
            if old is None:
                return None
            new = [given.get(place, code) for place, code in enumerate(old)]
            if old != new:
                words += (*old, -1, *new, 1)
        return words


@dataclass(eq=False, slots=True)
class Removal:
    """Keys, whose rows are deleted."""

    keys: list[Any] | pa.Table | pa.RecordBatch
    sign = -1

    def __len__(self) -> int:
        return len(self.keys)

    def encode(self, table: TableState) -> Keyed:
        """The keys as a piece of a batch. Raises BatchError if a key is not one of the table."""
        names = table.definition.keys[0]
        if isinstance(self.keys, list):
            one = key_of(table)
            found = [codes for number, key in enumerate(self.keys) if (codes := _codes(table, one, number, key))]
            rows = np.array(found, np.int64).reshape(len(found), len(names))
            columns = {name: rows[:, i] for i, name in enumerate(names)}
        else:
            arrays = key_codes(table.definition, names, self.keys, table.decoder.dictionary)
            columns = dict(zip(names, arrays, strict=True))
        size = len(columns[names[0]])
        return Keyed(CodeBatch(table.name, columns, np.full(size, -1, np.int64)), None, REMOVE)

    def signed_words(self, table: TableState) -> list[int] | None:
        """As of ``Upsert``."""
        stored = table.stored
        if stored is None or not stored.key_places or type(self.keys) is not list or len(self.keys) > MOST:
            return None
        one = key_of(table)
        words: list[int] = []
        for number, key in enumerate(self.keys):
            codes = _codes(table, one, number, key)
            old = None if codes is None else stored.row_of(one.in_order(codes))
            if old is not None:
                words += old
                words.append(-1)
        return words


ByKey = Upsert | Update | Removal
BY_KEY = (Upsert, Update, Removal)
"""The same for isinstance, which takes four times as long for a union."""


def upserted(rows: Any, table: str) -> Upsert:
    """The rows of an upsert, in every accepted form."""
    return Upsert(rows if type(rows) is list else accepted(rows, table))


def updated(rows: Any, table: str) -> Update:
    """The rows of an update, in every accepted form."""
    return Update(rows if type(rows) is list else accepted(rows, table))


def deleted(table: str, rows: Any, keys: Any) -> Any:
    """What a delete takes: whole rows, or keys. Raises ArgumentError."""
    if keys is None and rows is None:
        raise ArgumentError(f"table {table}: delete needs whole rows or keys=")
    if keys is None:
        return rows
    if rows is not None:
        raise ArgumentError(f"table {table}: delete takes whole rows or keys=, not both")
    return removed(keys, table)


def removed(keys: Any, table: str) -> Removal:
    """A list of keys, or a table of them. Raises ArgumentError."""
    if type(keys) is list:
        return Removal(keys)
    is_many = isinstance(keys, Iterable | pa.RecordBatch) or hasattr(keys, "__arrow_c_stream__")
    if isinstance(keys, str | bytes | Mapping) or not is_many:
        raise ArgumentError(
            f"table {table}: keys= must be a list, as keys=[1] or keys=[(1, 'x')], or a table of the key's columns, "
            f"not {type(keys).__name__}"
        )
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        return Removal(keys.to_pylist())
    if type(keys).__name__ == "Series":  # Of pandas or polars.
        return Removal([*keys])
    return Removal(accepted(keys, table))


def key_of(table: TableState) -> OneKey:
    """What makes codes of one key of a table that has a PRIMARY KEY."""
    if table.one_key is None:
        assert table.stored is not None and table.stored.primary_key is not None
        names, columns = table.definition.keys[0], table.definition.columns
        stored = table.stored.primary_key.columns
        table.one_key = OneKey(f"table {table.name}", names, columns, table.decoder.dictionary, stored)
    return table.one_key


def _codes(table: TableState, one: OneKey, number: int, key: Any) -> list[int] | None:
    """Codes of a key; None if no row can have it. Raises BatchError if it is not a key of the table."""
    try:
        return one.codes(key)
    except KeyError as error:
        raise BatchError(
            f"table {table.name}, key {number}: {error.args[0]}",
            table=table.name,
            row=number,
            value=key,
            rule=f"its PRIMARY KEY is ({', '.join(one.names)})",
        ) from None


def _unnamed(table: TableState, number: int, row: Any) -> BatchError:
    names = ", ".join(table.definition.keys[0])
    rule = f"an update is a dict, dataclass or pydantic object with the key ({names}) and the columns that change"
    message = f"table {table.name}, row {number}: {rule}, not {shown(row)}; upsert takes whole rows"
    return BatchError(message, table=table.name, row=number, value=row, rule=rule)


def _keyless(table: TableState, number: int, name: str) -> BatchError:
    rule = f"an update names its row by the PRIMARY KEY ({', '.join(table.definition.keys[0])})"
    return BatchError(
        f"table {table.name}, row {number}: {rule}; {name} is not given",
        table=table.name,
        row=number,
        column=name,
        rule=rule,
    )
