"""Frames to matrices: the features of a frame, by name, in the order of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from freshviews.learn.kept_view import LearnError
from freshviews.learn.moments import Vector


def matrix_of(frame: Any, features: Sequence[str], model: str) -> Vector:
    """The features of the rows of a frame, shape (rows, features).

    ``frame``: a DataFrame of pandas or polars, an Arrow table, a mapping of names to columns, or an array of shape
    (rows, features) in the order of the model. Raises LearnError where it lacks a feature.
    """
    columns = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if isinstance(frame, Mapping):
        columns = list(frame)
    if columns is None:
        found = np.asarray(frame, float)
        if found.ndim != 2 or found.shape[1] != len(features):
            raise LearnError(
                f"model {model}: the array has shape {found.shape}; it needs (rows, {len(features)}), the features "
                f"{', '.join(features)} in this order"
            )
        return found
    lacking = [name for name in features if name not in list(columns)]
    if lacking:
        raise LearnError(f"model {model}: the frame has no column {', '.join(lacking)}; it has {', '.join(columns)}")
    return np.column_stack([np.asarray(frame[name], float) for name in features])


def columns_of(frame: Any, variables: Sequence[str], model: str) -> list[list[Any]]:
    """The values of each variable, in the order of the model.

    ``frame``: a DataFrame of pandas or polars, an Arrow table, or a mapping of names to columns. Raises LearnError
    where it lacks a variable.
    """
    names = list(frame) if isinstance(frame, Mapping) else getattr(frame, "column_names", None)
    names = list(getattr(frame, "columns", ())) if names is None else list(names)
    lacking = [name for name in variables if name not in names]
    if lacking:
        raise LearnError(f"model {model}: the frame has no column {', '.join(lacking)}; it has {', '.join(names)}")
    columns = [frame[name] for name in variables]
    return [column.to_pylist() if hasattr(column, "to_pylist") else list(column) for column in columns]
