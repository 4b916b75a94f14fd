"""Computes the code that a column gets in rows that give no value for it: the code of its DEFAULT, or NULL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef
from freshviews.types.columns import decode_array
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import NULL


def default_code(column: ColumnDef, dictionary: Dictionary) -> int:
    """The code of a column in rows that lack it. The code of a text is never freed."""
    value = None if column.default is None else column.default.value
    if isinstance(value, str):
        return dictionary.pin(value)
    return NULL if value is None else value


def default_array(column: ColumnDef, rows: int) -> pa.Array:
    """A column for rows that lack it."""
    dictionary = Dictionary()
    return decode_array(column.type, np.full(rows, default_code(column, dictionary), np.int64), dictionary)
