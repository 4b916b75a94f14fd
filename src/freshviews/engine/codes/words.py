"""Makes numpy arrays of words in native memory, as views or as copies. A word has 64 bits."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freshviews.engine.codes.code_batch import Codes


def words_in(address: int, rows: int, width: int) -> Codes:
    """Rows of words as a view of native memory, shape (rows, width); valid until the memory is freed."""
    if rows == 0:
        return np.empty((0, width), np.int64)
    block: Any = (ctypes.c_int64 * (rows * width)).from_address(address)
    return np.frombuffer(block, np.int64).reshape(rows, width)


def words_at(address: int, rows: int, width: int) -> Codes:
    """A copy of rows of words in native memory, shape (rows, width)."""
    return words_in(address, rows, width).copy()


def address(array: NDArray[Any]) -> int:
    """Address of an array's first word."""
    return array.ctypes.data
