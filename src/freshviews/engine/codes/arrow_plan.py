"""Converts the columns of an Arrow record batch to codes in one compiled pass.

The pass can widen, scale and check numbers. If a schema needs more than that, ``plan_of`` returns None. Then the slower
module ``freshviews.types.columns`` converts the columns one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_int64

import numpy as np
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.codes.string_codes import StringCodes
from freshviews.engine.codes.text_columns import TextResults
from freshviews.kernel.codes import ingest, text_columns
from freshviews.kernel.codes.string_slots import UNKNOWN
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.records import dataclass
from freshviews.types import NULL
from freshviews.types.arrow_check import without_views
from freshviews.types.calendar import MICROS_PER_DAY
from freshviews.types.columns import characters_over
from freshviews.types.dictionary import words_array
from freshviews.types.sqltype import STRING, SqlType

_INTEGERS = {
    pa.int8(): ingest.INT8,
    pa.int16(): ingest.INT16,
    pa.int32(): ingest.INT32,
    pa.int64(): ingest.INT64,
    pa.uint8(): ingest.UINT8,
    pa.uint16(): ingest.UINT16,
    pa.uint32(): ingest.UINT32,
}
_STRINGS = {
    pa.string(): ingest.STRING,
    pa.large_string(): ingest.LARGE_STRING,
    pa.string_view(): ingest.STRING_VIEW,
}
_PER_UNIT = {"s": 10**6, "ms": 10**3, "us": 1}
_LEAST, _GREATEST = NULL + 1, 2**63 - 1


@dataclass(frozen=True)
class Wish:
    """A column to read: its place in the schema, its type, and whether its codes are wanted or only a check."""

    place: int
    column: ColumnDef
    wanted: bool


_Structure = c_int64 * ingest.ARRAY_WORDS
"""The C structure of a record batch."""


@dataclass(frozen=True)
class TextWish:
    """A function of the strings of a column: the column's place in the schema, and the results."""

    place: int
    results: TextResults


@dataclass(frozen=True)
class ArrowPlan:
    """The compiled way to read a schema. ``targets`` has the row of codes of each wish; the results of functions have
    the rows after these.

    A plan can convert columns that need only widening, scaling and a range check. ``plan_of`` returns None for a schema
    with other columns; ``read`` returns None if a value is refused. In both cases ``freshviews.types.columns`` converts
    the batch column by column, or raises the error.
    """

    words: Codes
    columns: int
    targets: dict[int, int]
    strings: tuple[tuple[int, int, int], ...]
    """(column of the schema, kind, row of the codes) of the strings that become codes."""
    computed: tuple[tuple[int, int, TextResults], ...]
    """(column of the schema, row) of the strings that become results of functions."""
    texts: Codes
    """The functions; see ``kernel.codes.text_columns``."""
    lengths: tuple[tuple[int, int], ...]
    """(column of the schema, most characters) of the strings that have a limit."""
    places: tuple[int, int]
    """Addresses of the words and of the functions, kept because asking for one takes as long as reading a row."""

    def read(self, batches: Sequence[pa.RecordBatch], codes: StringCodes) -> Codes | None:
        """Codes, shape (rows of targets, rows of all batches); None if a value is refused.

        The batches must have passed Arrow's cheap check, because their C structures lack the sizes of buffers.
        """
        # A generator would take a notable part of the time of a few rows.
        rows = batches[0].num_rows if len(batches) == 1 else sum(batch.num_rows for batch in batches)
        functions = len(self.texts)
        found = np.empty((len(self.targets) + functions + 1, rows), np.int64)
        target = address_of(found)[0] if rows else 0
        plan, texts = self.places
        # New in each call: a signal handler may read another batch meanwhile.
        structure = _Structure()
        array = addressof(structure)
        start = 0
        for batch in batches:
            if start:
                INTERRUPTION.raise_if_unchanged()
            batch._export_to_c(array)
            if functions:
                unknown = text_columns.read_with_texts(
                    array, self.columns, plan, texts, functions, codes.address, start, target, rows
                )
            else:
                unknown = ingest.read_and_release(array, self.columns, plan, codes.address, start, target, rows)
            if unknown < 0:
                return None
            if self.lengths and any(characters_over(batch.column(place), length) for place, length in self.lengths):
                return None
            if unknown > 0:
                try:
                    self._name(batch, array, found[:, start : start + batch.num_rows], codes)
                except UnicodeDecodeError:
                    return None
            start += batch.num_rows
        return found

    def _name(self, batch: pa.RecordBatch, array: int, found: Codes, codes: StringCodes) -> None:
        """Add strings of a batch to the dictionary where they lack a code. ``array`` has room for a C structure."""
        for place, kind, row in self.strings:
            if (found[row] == UNKNOWN).any():
                batch.column(place)._export_to_c(array)
                codes.enter_column(array, kind, found[row])
        for place, row, results in self.computed:
            new = np.flatnonzero(found[row] == UNKNOWN)
            if len(new):
                column = without_views(batch.column(place))  # Arrow cannot take rows of views.
                texts = column.take(words_array(new)).to_pylist()
                found[row, new] = [results.encode(text) for text in texts]


def plan_of(schema: pa.Schema, wishes: Sequence[Wish], functions: Sequence[TextWish] = ()) -> ArrowPlan | None:
    """The compiled way to read a schema with one wish per column; None if there is none."""
    words = np.zeros((len(wishes), ingest.PLAN_WORDS), np.int64)
    targets: dict[int, int] = {}
    strings: list[tuple[int, int, int]] = []
    computed: list[tuple[int, int, TextResults]] = []
    lengths = [(wish.place, wish.column.length) for wish in wishes if wish.column.length]
    for number, wish in enumerate(wishes):
        way = _conversion(wish.column.type, schema.field(wish.place).type)
        if way is None:
            return None
        kind, factor, least, greatest = way
        row = len(wishes)
        if wish.wanted:
            row = targets[number] = len(targets)
        if kind in _STRINGS.values():
            if wish.wanted:
                strings.append((wish.place, kind, row))
            else:
                kind = ingest.CHECK_NULLS
        words[wish.place] = kind, factor, least, greatest, wish.column.nullable, row
    texts = np.zeros((len(functions), text_columns.TEXT_WORDS), np.int64)
    for number, text in enumerate(functions):
        layout = _STRINGS.get(schema.field(text.place).type)
        if layout is None:
            return None
        row = len(targets) + number
        texts[number] = text.place, layout, text.results.function.address, row
        if text.results.function.has_text:
            computed.append((text.place, row, text.results))
    # Columns that are checked but not wanted share one scratch row, after the others.
    words[words[:, ingest.TARGET] == len(wishes), ingest.TARGET] = len(targets) + len(functions)
    places = address_of(words)[0], address_of(texts)[0]
    named = tuple(strings), tuple(computed)
    return ArrowPlan(words, len(wishes), targets, *named, texts, tuple(lengths), places)


def _conversion(kind: SqlType, given: pa.DataType) -> tuple[int, int, int, int] | None:
    """Kind, factor, and bounds before the factor, for a column; None if it needs another conversion."""
    if kind == STRING:
        return (_STRINGS[given], 1, 0, 0) if given in _STRINGS else None
    if kind.is_text:
        return None
    if kind.name == "BOOLEAN":
        return (ingest.BOOLEAN, 1, 0, 1) if pa.types.is_boolean(given) else None
    if kind.name == "DOUBLE":
        return (ingest.DOUBLE, 1, 0, 0) if pa.types.is_float64(given) else None
    if (kind.is_integer or kind.is_decimal) and given in _INTEGERS:
        return _scaled(_INTEGERS[given], 10**kind.scale if kind.is_decimal else 1, *kind.bounds)
    if kind.is_decimal and pa.types.is_decimal128(given) and -38 <= given.scale <= kind.scale:
        return _scaled(ingest.DECIMAL128, 10 ** (kind.scale - given.scale), *kind.bounds)
    if kind.name == "DATE" and pa.types.is_date32(given):
        return ingest.INT32, 1, _LEAST, _GREATEST
    if kind.name == "TIMESTAMP" and pa.types.is_date32(given):
        return _scaled(ingest.INT32, MICROS_PER_DAY, _LEAST, _GREATEST)
    if kind.is_months and given in _INTEGERS:
        return _scaled(_INTEGERS[given], 1, *kind.bounds)
    moments = kind.name == "TIMESTAMP" and pa.types.is_timestamp(given)
    durations = kind.is_interval and not kind.is_months and pa.types.is_duration(given)
    if (moments or durations) and given.unit in _PER_UNIT:
        return _scaled(ingest.INT64, _PER_UNIT[given.unit], _LEAST, _GREATEST)
    return None


def _scaled(kind: int, factor: int, low: int, high: int) -> tuple[int, int, int, int] | None:
    if factor > _GREATEST:
        return None
    return kind, factor, -(-max(low, _LEAST) // factor), min(high, _GREATEST) // factor
