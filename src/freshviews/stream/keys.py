"""Computes a number for each row. Rows with equal keys have equal numbers. A key may have several columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef
from freshviews.types import STRING, Dictionary
from freshviews.types.columns import encode_arrow

Numbers = npt.NDArray[np.int64]

_MOST = 2**62


def key_numbers(columns: Sequence[ColumnDef], arrays: Sequence[pa.Array]) -> Numbers:
    """One number per row, equal for rows that are equal in all columns. Comparable within one call only.

    ``arrays``: columns of their Arrow types, of equal length; NULL equals NULL.
    """
    numbers: Numbers | None = None
    size = 1
    for column, array in zip(columns, arrays, strict=True):
        if numbers is None and len(columns) == 1 and column.type != STRING:
            return encode_arrow(column.type, array, Dictionary())
        here, distinct = _numbered(array)
        if numbers is None:
            numbers, size = here, distinct
            continue
        if size * distinct >= _MOST:
            values, numbers = np.unique(numbers, return_inverse=True)
            size = len(values)
        numbers = numbers * np.int64(distinct) + here
        size *= distinct
    if numbers is None:
        raise ValueError("a key needs at least one column")
    return numbers


def _numbered(array: pa.Array) -> tuple[Numbers, int]:
    encoded = array.dictionary_encode(null_encoding="encode")
    numbers: Numbers = encoded.indices.to_numpy().astype(np.int64)
    return numbers, max(1, len(encoded.dictionary))
