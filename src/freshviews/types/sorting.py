"""Sorting Arrow columns as SQL's ORDER BY does: NULL first or last, NaN after all numbers, strings by their bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SortKey = tuple[pa.Array | pa.ChunkedArray, bool, bool]
"""A column, whether it is descending, and whether NULL is last."""


def sorted_rows(keys: Sequence[SortKey]) -> NDArray[np.int64]:
    """Positions of the rows in order, the first key first. Rows that are equal in all keys keep their order."""
    ranks = [_ranks(*key) for key in keys]
    order: NDArray[np.int64] = np.lexsort(ranks[::-1])
    return order


def _ranks(values: pa.Array | pa.ChunkedArray, descending: bool, nulls_last: bool) -> NDArray[np.int64]:
    """A number per value, ordered as the values are."""
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False)
    found: NDArray[np.int64] = -ranks.astype(np.int64) if descending else ranks.astype(np.int64)
    least = np.iinfo(np.int64)
    found[pc.is_null(values).to_numpy(zero_copy_only=False)] = least.max if nulls_last else least.min
    return found
