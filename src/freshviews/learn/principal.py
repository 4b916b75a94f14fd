"""Principal component analysis: finds the directions in which features vary most, from their covariances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from freshviews import arguments
from freshviews.engine.database import Database
from freshviews.learn.frames import matrix_of
from freshviews.learn.kept_view import LearnError, Model, check_model
from freshviews.learn.moments import Moments, MomentsView, Vector
from freshviews.records import dataclass


@dataclass(frozen=True)
class _Axes:
    moments: Moments
    components: Vector
    variance: Vector


class PCA(Model):
    """Principal components of features over a join, those of the last version.

    Attributes as scikit-learn's, and signs: the entry of a component that is greatest in magnitude is positive.

    Parameters
    ----------
    database
        The database that has the tables.
    source
        Text after FROM: a table, a view, or a join, possibly with WHERE.
    features
        Columns or other numeric expressions of SQL.
    name
        Name of the view that the model keeps.
    components
        Number of components; None, the default: as many as features.

    Attributes
    ----------
    features
        As given.
    components
        Number of components.

    Raises
    ------
    LearnError
        ``components`` is 0 or more than the features, or one is given twice; else as ``Database.execute``.

    Examples
    --------
    >>> model = learn.PCA(db, "flats", ["rooms", "area"], name="axes")
    >>> model.components_.round(2)
    array([[ 0.05,  1.  ],
           [ 1.  , -0.05]])
    """

    def __init__(
        self, database: Database, source: str, features: Sequence[str], *, name: str, components: int | None = None
    ) -> None:
        check_model(database, name, source, features)
        arguments.optional(arguments.count, f"model {name}: components", components)
        self.features = tuple(features)
        self.components = len(self.features) if components is None else components
        if not 1 <= self.components <= len(self.features):
            raise LearnError(f"model {name}: components must be 1 to {len(self.features)}, not {components}")
        self._view: MomentsView = MomentsView(database, source, self.features, name)
        self._axes: _Axes | None = None

    @property
    def view(self) -> MomentsView:
        """The view that the model maintains."""
        return self._view

    @property
    def variables(self) -> tuple[str, ...]:
        """The features."""
        return self.features

    @property
    def mean_(self) -> Vector:
        """The means of the features."""
        return self._solved().moments.mean

    @property
    def components_(self) -> Vector:
        """The directions of most variance, shape (components, features)."""
        return self._solved().components[: self.components]

    @property
    def explained_variance_(self) -> Vector:
        """The variance along each component."""
        return self._solved().variance[: self.components]

    @property
    def explained_variance_ratio_(self) -> Vector:
        """The part of all variance along each component."""
        variance = self._solved().variance
        ratio: Vector = variance[: self.components] / variance.sum()
        return ratio

    def transform(self, frame: Any) -> Vector:
        """Transform rows of features to their places along the components.

        Parameters
        ----------
        frame
            DataFrame of pandas or polars, Arrow table, mapping of names to columns, or array of shape (rows, features)
            in the order of the model.

        Returns
        -------
        numpy.ndarray
            Shape (rows, components).

        Raises
        ------
        LearnError
            There are too few rows, ``frame`` lacks a column, or a value is no number.

        Examples
        --------
        >>> model.transform({"rooms": [2], "area": [60.0]}).round(2)
        array([[-0.02, -0.33]])
        """
        found: Vector = (matrix_of(frame, self.features, self.name) - self.mean_) @ self.components_.T
        return found

    def _solved(self) -> _Axes:
        moments = self._view.read()
        if self._axes is None or self._axes.moments is not moments:
            if moments.count < 2:
                raise LearnError(f"model {self.name} has {moments.count} rows; it needs 2 or more")
            variance, vectors = np.linalg.eigh(moments.scatter / (moments.count - 1))
            components = vectors.T[::-1]
            greatest = np.abs(components).argmax(axis=1)
            signs = np.sign(components[np.arange(len(components)), greatest])
            self._axes = _Axes(moments, components * signs[:, None], np.maximum(variance[::-1], 0.0))
        return self._axes
