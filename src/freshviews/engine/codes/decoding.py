"""Decodes codes to Arrow record batches and tuples of Python values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.errors import shown
from freshviews.types.columns import MULTIPLICITY, arrow_type, decode_array
from freshviews.types.dictionary import Dictionary, words_array
from freshviews.types.sqltype import NULL
from freshviews.types.values import decode_value, decoder_for

FEW = 4
"""Most rows that are decoded faster one by one than as Arrow arrays."""


def schema_of(columns: Iterable[ColumnDef]) -> pa.Schema:
    """The Arrow schema of a relation; columns that are never NULL are not nullable."""
    return pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in columns])


def with_multiplicity(schema: pa.Schema) -> pa.Schema:
    """The schema of a change: the columns and ``_multiplicity``."""
    return schema.append(pa.field(MULTIPLICITY, pa.int64(), False))


class NamedRow(tuple[Any, ...]):
    """A row that knows the names of its columns, as a namedtuple does; everywhere else it is a plain tuple."""

    _fields: tuple[str, ...]

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[Any, ...]]]:
        return tuple, (tuple(self),)


class Decoder:
    """Decodes the batches of one relation."""

    def __init__(self, columns: tuple[ColumnDef, ...], dictionary: Dictionary) -> None:
        self.columns = columns
        self.dictionary = dictionary
        self._decoders = [decoder_for(column.type, dictionary) for column in columns]
        self.strings = tuple(column.name for column in columns if column.type.is_text)
        """Names of the columns of strings."""
        self.schema = schema_of(columns)
        self.change_schema = with_multiplicity(self.schema)

    def arrays(self, batch: CodeBatch) -> list[pa.Array]:
        """An array per column; multiplicities are ignored."""
        return [decode_array(c.type, batch.columns[c.name], self.dictionary, c.nullable) for c in self.columns]

    def rows(self, batch: CodeBatch) -> pa.RecordBatch:
        """The rows, each once, for any multiplicity."""
        if not self.columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(batch), pa.struct([])))
        return pa.RecordBatch.from_arrays(self.arrays(batch), schema=self.schema)

    def change(self, batch: CodeBatch) -> pa.RecordBatch:
        """The batch as rows with ``_multiplicity``."""
        multiplicities = words_array(batch.multiplicities)
        return pa.RecordBatch.from_arrays([*self.arrays(batch), multiplicities], schema=self.change_schema)

    def tuples(self, batch: CodeBatch) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values, each once."""
        if len(batch) > FEW:
            try:
                return list(zip(*[array.to_pylist() for array in self.arrays(batch)], strict=True))
            except (OverflowError, ValueError):
                pass  # Arrow fails for dates outside the range of Python's date.
        codes = zip(*[batch.columns[column.name].tolist() for column in self.columns], strict=True)
        return [self.row(row) for row in codes]

    def value(self, column: ColumnDef, code: int) -> Any:
        """One value."""
        return decode_value(column.type, code, self.dictionary)

    def text(self, column: ColumnDef, code: int) -> str:
        """One value as a message shows it."""
        return "None" if code == NULL else shown(self.value(column, code))

    def named(self, row: tuple[Any, ...]) -> NamedRow:
        """A row with the names of the columns."""
        made = NamedRow(row)
        made._fields = tuple(column.name for column in self.columns)
        return made

    def row(self, codes: Iterable[int]) -> tuple[Any, ...]:
        """One row, given as codes in the order of the columns."""
        return tuple(decode(code) for decode, code in zip(self._decoders, codes, strict=True))


def repeated(batches: Iterable[CodeBatch], rows: int) -> Iterator[CodeBatch]:
    """Repeats every row by its multiplicity, in batches of at most ``rows`` rows.

    Rows of negative multiplicity, which only trusted tables can cause, are left out.
    """
    for batch in batches:
        if (batch.multiplicities == 1).all():
            if len(batch) <= rows:
                yield batch
                continue
            for start in range(0, len(batch), rows):
                yield _slice(batch, slice(start, min(start + rows, len(batch))))
            continue
        counts = np.maximum(batch.multiplicities, 0)
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, rows):
            wanted = np.arange(start, min(start + rows, total))
            yield _slice(batch, np.searchsorted(ends, wanted, side="right"))


def _slice(batch: CodeBatch, rows: slice | Codes) -> CodeBatch:
    columns = {name: column[rows] for name, column in batch.columns.items()}
    return CodeBatch(batch.relation, columns, np.minimum(batch.multiplicities[rows], 1))
