"""Sorts Arrow columns as SQL's ORDER BY does: NULL first or last, NaN after all numbers, strings by their bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshviews.types import arrow_compute as pc

SortKey = tuple[pa.Array | pa.ChunkedArray, bool, bool]
"""A column, True if it is descending, and True if NULL is last."""


def sorted_rows(keys: Sequence[SortKey]) -> NDArray[np.int64]:
    """Positions of the rows in order, the first key first. Rows that are equal in all keys keep their order."""
    ranks = [_ranks(*key) for key in keys]
    order: NDArray[np.int64] = np.lexsort(ranks[::-1])
    return order


def _ranks(values: pa.Array | pa.ChunkedArray, descending: bool, nulls_last: bool) -> NDArray[np.int64]:
    """A number per value, in the order of the values."""
    ranks = _integers(pc.rank(values, sort_keys="ascending", tiebreaker="dense"))
    found = -ranks if descending else ranks.copy()
    least = np.iinfo(np.int64)
    found[_integers(pc.is_null(values)) == 1] = least.max if nulls_last else least.min
    return found


def _integers(values: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Integers or booleans without NULL as a NumPy array; unlike ``to_numpy``, this does not import pandas."""
    if not len(values):  # ``combine_chunks`` without chunks imports pandas, too.
        return np.empty(0, np.int64)
    whole = values.cast(pa.int64())
    array = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    return np.frombuffer(array.buffers()[1], np.int64, len(array), array.offset * 8)
