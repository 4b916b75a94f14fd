"""Whole-column conversions that find every bad row, not only the first.

A conversion of a column fails as a whole. It is then tried on each half, and so on: good rows go through by
the thousands, and a bad one is found in a logarithmic number of tries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from freshviews.types import NULL

Codes = npt.NDArray[np.int64]
Report = Callable[[int, object, str], None]
"""Told of a bad value: its place in the column, the value, and the reason."""

REFUSED = (TypeError, ValueError, OverflowError)
"""What conversions raise of values. Arrow's own errors of values are ValueErrors."""

_FEW = 16


def codes_of(
    values: Sequence[Any], whole: Callable[[Any], Codes], one: Callable[[Any], int], report: Report
) -> Codes:
    """Codes of a column: by ``whole`` where it takes a piece of it, else value by value with ``one``.

    ``values`` is a list or an Arrow array; ``one`` takes what is in the list, or a Python value of the array.
    Where ``one`` raises, too, the value is reported and its code is NULL.
    """
    found = np.empty(len(values), np.int64)
    waiting = [(0, len(values))]
    while waiting:
        start, stop = waiting.pop()
        piece = values[start:stop]
        try:
            found[start:stop] = whole(piece)
            continue
        except REFUSED:
            pass
        if stop - start > _FEW:
            middle = (start + stop) // 2
            # The first half is on top, so that bad rows are reported in order.
            waiting += [(middle, stop), (start, middle)]
            continue
        for row, value in enumerate(piece if isinstance(piece, list) else _listed(piece), start):
            try:
                found[row] = NULL if value is None else one(value)
            except REFUSED as error:
                found[row] = NULL
                report(row, value, str(error))
    return found


def _listed(piece: Any) -> list[Any]:
    try:
        values: list[Any] = piece.to_pylist()
    except REFUSED:  # Python has no dates past the year 9999, and no nanoseconds without pandas
        return [_python(value) for value in piece]
    return values


def _python(value: Any) -> Any:
    try:
        return value.as_py()
    except REFUSED:
        return _Unheld(f"{value.value} as {value.type}")


class _Unheld(str):
    """A value that Python's types do not hold, as text that no conversion takes."""
