"""Converts a column as a whole if possible, and otherwise finds all of its bad values.

A column that fails is halved, and so is each half that fails. The values of a short piece are converted one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from freshviews.types import NULL
from freshviews.types.values import BadValue

Codes = npt.NDArray[np.int64]
Report = Callable[[int, object, str], None]
"""Called with each bad value: its position in the column, the value, and the reason."""

REFUSED = (TypeError, ValueError, OverflowError)
"""The exceptions that conversions raise for bad values. Arrow's are ValueErrors."""

_FEW = 16


def codes_of(
    values: Sequence[Any], whole: Callable[[Any], Codes], one: Callable[[Any], int] | None, report: Report
) -> Codes:
    """Codes of a column: by ``whole`` for a piece if it succeeds, else value by value.

    ``values``: a list or an Arrow array. ``one`` converts a value of the list, or a Python value of the array; if it
    raises, the value is reported and its code is NULL. Without ``one``, the reason is the error of ``whole`` for that
    single value.
    """
    found = np.empty(len(values), np.int64)
    waiting = [(0, len(values))]
    few = _FEW if one is not None else 1
    while waiting:
        start, stop = waiting.pop()
        piece = values[start:stop]
        try:
            found[start:stop] = whole(piece)
            continue
        except REFUSED as error:
            failure: Exception = error
        if stop - start > few:
            middle = (start + stop) // 2
            # The first half is on top of the stack, so that bad rows are reported in order.
            waiting += [(middle, stop), (start, middle)]
        elif one is None:
            found[start] = NULL
            value, reason = (failure.value, failure.reason) if isinstance(failure, BadValue) else (None, str(failure))
            report(start, value, reason)
        else:
            _one_by_one(piece, start, one, found, report)
    return found


def _one_by_one(piece: Any, start: int, one: Callable[[Any], int], found: Codes, report: Report) -> None:
    for row, value in enumerate(piece if isinstance(piece, list) else piece.to_pylist(), start):
        try:
            found[row] = NULL if value is None else one(value)
        except REFUSED as error:
            found[row] = NULL
            report(row, value, str(error))
