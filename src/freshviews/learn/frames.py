"""Converts a user's data frame to a matrix for a model. The matrix has one column per feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshviews.errors import shown
from freshviews.learn.kept_view import LearnError
from freshviews.learn.moments import Vector
from freshviews.types import arrow_compute as pc


def matrix_of(frame: Any, features: Sequence[str], model: str) -> Vector:
    """The features of the rows of a frame, shape (rows, features).

    ``frame``: a DataFrame of pandas or polars, an Arrow table, a mapping of names to columns, or an array of shape
    (rows, features) in the order of the model. Raises LearnError if it lacks a feature.
    """
    columns = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if isinstance(frame, Mapping):
        columns = list(frame)
    if columns is None:
        found = _numbers(frame, "the frame", model)
        if found.ndim != 2 or found.shape[1] != len(features):
            raise LearnError(
                f"model {model}: the array has shape {found.shape}, not (rows, {len(features)}); its columns must be "
                f"the features {', '.join(features)} in this order"
            )
        return found
    lacking = [name for name in features if name not in list(columns)]
    if lacking:
        raise _lacking(lacking, columns, model)
    return np.column_stack([_numbers(frame[name], f"column {name}", model) for name in features])


def _lacking(lacking: Sequence[str], there: Iterable[object], model: str) -> LearnError:
    has = ", ".join(map(str, there))
    return LearnError(f"model {model}: the frame has no column {', '.join(lacking)}; it has {has}")


def _numbers(values: Any, what: str, model: str) -> Vector:
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError):
        raise LearnError(f"model {model}: {what} is {shown(values)}; numbers are expected") from None


def columns_of(frame: Any, variables: Sequence[str], model: str) -> list[list[Any]]:
    """The values of each variable, in the order of the model.

    ``frame``: a DataFrame of pandas or polars, an Arrow table, or a mapping of names to columns. Raises LearnError
    where it lacks a variable.
    """
    names = list(frame) if isinstance(frame, Mapping) else getattr(frame, "column_names", None)
    names = list(getattr(frame, "columns", ())) if names is None else list(names)
    lacking = [name for name in variables if name not in names]
    if lacking:
        raise _lacking(lacking, names, model)
    found = []
    for name in variables:
        column = frame[name]
        if not isinstance(column, Iterable):
            raise LearnError(f"model {model}: column {name} is {shown(column)}; a list or an array is expected")
        found.append(column.to_pylist() if hasattr(column, "to_pylist") else list(column))
    return found


def places_of(
    frame: Any, categories: Sequence[str], values: Sequence[pa.Array], model: str, unknown: str
) -> list[NDArray[np.int64]]:
    """Per category the place of each row's value among the model's ``values``, shape (rows,).

    ``frame``: as in ``columns_of``. A value that the model does not have is an error if ``unknown`` is ``error``, and
    gets the place -1 if it is ``zero``. Raises LearnError for such a value, and for one of another type.
    """
    if isinstance(frame, np.ndarray):
        raise LearnError(
            f"model {model}: an array has no column names; categories are read from a DataFrame, an Arrow table or a "
            "mapping"
        )
    found: list[NDArray[np.int64]] = []
    columns = columns_of(frame, categories, model)
    for name, column, there in zip(categories, columns, values, strict=True):
        try:
            # pandas represents NULL as NaN; among doubles NaN is a value.
            given = pa.array(column, there.type, from_pandas=not pa.types.is_floating(there.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            what = f"column {name} has a value that is not of type {there.type}"
            raise LearnError(f"model {model}: {what}: {error}") from error
        if pa.types.is_floating(there.type):
            # The two zeros are one value in SQL.
            given = pc.add(given, 0.0)
        places = pc.fill_null(pc.index_in(given, value_set=there), -1).to_numpy(zero_copy_only=False).astype(np.int64)
        if unknown == "error" and (places < 0).any():
            value = column[int(places.argmin())]
            raise LearnError(
                f"model {model}: no row has the value {value!r} in column {name}; pass a value of categories_, or "
                "unknown='zero'"
            )
        found.append(places)
    return found
