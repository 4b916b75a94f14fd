"""Principal components from the covariances of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freshviews import arguments
from freshviews.engine.change import Subscription
from freshviews.engine.database import Database
from freshviews.learn.frames import matrix_of
from freshviews.learn.kept_view import LearnError, check_model
from freshviews.learn.moments import Moments, MomentsView, Vector


@dataclass(frozen=True)
class _Axes:
    moments: Moments
    components: Vector
    variance: Vector


class PCA:
    """Principal components of features over a join, those of the last version.

    ``source``, ``features``: as in ``MomentsView``; ``components``: how many, by default all. ``name``: of the view
    that the model maintains. Attributes are those of scikit-learn, with its signs: the entry of a component that is
    greatest in magnitude is positive.
    """

    def __init__(
        self, database: Database, source: str, features: Sequence[str], *, name: str, components: int | None = None
    ) -> None:
        check_model(database, name, source, features)
        arguments.optional(arguments.count, f"model {name}: components", components)
        self.features = tuple(features)
        self.components = len(self.features) if components is None else components
        if not 1 <= self.components <= len(self.features):
            raise LearnError(f"model {name}: it has {len(self.features)} features; components is {components}")
        self._view = MomentsView(database, source, self.features, name)
        self._axes: _Axes | None = None

    @property
    def name(self) -> str:
        """The name of the view."""
        return self._view.name

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
        """Rows of features along the components, shape (rows, components); ``frame`` as in ``matrix_of``."""
        found: Vector = (matrix_of(frame, self.features, self.name) - self.mean_) @ self.components_.T
        return found

    def subscribe(self, on_change: Callable[[PCA], object]) -> Subscription:
        """Have ``on_change`` called with the model after every version that changes its moments."""
        arguments.function(f"model {self.name}: on_change", on_change)
        return self._view.subscribe(lambda: on_change(self))

    def drop(self) -> None:
        """Drop the view of the model; the model then no longer changes."""
        self._view.drop()

    def _solved(self) -> _Axes:
        moments = self._view.read()
        if self._axes is None or self._axes.moments is not moments:
            if moments.count < 2:
                raise LearnError(f"model {self.name}: it has {moments.count} rows and needs 2 or more")
            variance, vectors = np.linalg.eigh(moments.scatter / (moments.count - 1))
            components = vectors.T[::-1]
            greatest = np.abs(components).argmax(axis=1)
            signs = np.sign(components[np.arange(len(components)), greatest])
            self._axes = _Axes(moments, components * signs[:, None], np.maximum(variance[::-1], 0.0))
        return self._axes
