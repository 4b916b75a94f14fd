"""Linear discriminant analysis: classes as normal distributions that share one covariance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freshviews import arguments
from freshviews.engine.change import Subscription
from freshviews.engine.database import Database
from freshviews.learn.frames import matrix_of
from freshviews.learn.kept_view import LearnError, check_model
from freshviews.learn.moments import GroupedMomentsView, Moments, Vector


@dataclass(frozen=True)
class _Solved:
    moments: Mapping[Any, Moments]
    classes: list[Any]
    priors: Vector
    means: Vector
    covariance: Vector
    coefficients: Vector
    intercepts: Vector


class LinearDiscriminant:
    """A classifier over a join, that of the last version.

    ``source``, ``features``: as in ``MomentsView``; ``target``: the column or expression of the class. ``name``: of the
    view that the model maintains. Attributes are those of scikit-learn's LinearDiscriminantAnalysis with the solver
    ``lsqr``, but two classes, too, have a row of coefficients each.
    """

    def __init__(self, database: Database, source: str, features: Sequence[str], target: str, *, name: str) -> None:
        check_model(database, name, source, features, texts=(target,))
        self.features = tuple(features)
        self._view = GroupedMomentsView(database, source, self.features, target, name)
        self._last: _Solved | None = None

    @property
    def name(self) -> str:
        """The name of the view."""
        return self._view.name

    @property
    def classes_(self) -> list[Any]:
        """The classes, in order."""
        return self._solved().classes

    @property
    def priors_(self) -> Vector:
        """The share of each class, shape (classes,)."""
        return self._solved().priors

    @property
    def means_(self) -> Vector:
        """The means of the features in each class, shape (classes, features)."""
        return self._solved().means

    @property
    def covariance_(self) -> Vector:
        """The covariance within classes, shape (features, features)."""
        return self._solved().covariance

    @property
    def coef_(self) -> Vector:
        """The coefficients of the score of each class, shape (classes, features)."""
        return self._solved().coefficients

    @property
    def intercept_(self) -> Vector:
        """The intercept of the score of each class, shape (classes,)."""
        return self._solved().intercepts

    def scores(self, frame: Any) -> Vector:
        """The score of each class, shape (rows, classes): the logarithm of its probability up to a constant of the row.
        ``frame`` as in ``matrix_of``."""
        solved = self._solved()
        found: Vector = matrix_of(frame, self.features, self.name) @ solved.coefficients.T + solved.intercepts
        return found

    def predict(self, frame: Any) -> list[Any]:
        """The class of the greatest score of each row."""
        classes = self.classes_
        return [classes[place] for place in self.scores(frame).argmax(axis=1)]

    def predict_proba(self, frame: Any) -> Vector:
        """The probability of each class, shape (rows, classes)."""
        scores = self.scores(frame)
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Vector = share / share.sum(axis=1, keepdims=True)
        return found

    def subscribe(self, on_change: Callable[[LinearDiscriminant], object]) -> Subscription:
        """Have ``on_change`` called with the model after every version that changes its moments."""
        arguments.function(f"model {self.name}: on_change", on_change)
        return self._view.subscribe(lambda: on_change(self))

    def drop(self) -> None:
        """Drop the view of the model; the model then no longer changes."""
        self._view.drop()

    def _solved(self) -> _Solved:
        moments = self._view.read()
        if self._last is None or self._last.moments is not moments:
            self._last = self._solution(moments)
        return self._last

    def _solution(self, moments: Mapping[Any, Moments]) -> _Solved:
        count = sum(one.count for one in moments.values())
        if len(moments) < 2 or count <= len(moments):
            raise LearnError(
                f"model {self.name}: it has {count} rows in {len(moments)} classes; it needs 2 classes, and more rows "
                "than classes"
            )
        classes = list(moments)
        priors = np.array([moments[one].count / count for one in classes])
        means = np.array([moments[one].mean for one in classes])
        covariance: Vector = sum((moments[one].scatter for one in classes), np.zeros((len(self.features),) * 2)) / count
        coefficients: Vector = np.linalg.lstsq(covariance, means.T, rcond=None)[0].T
        intercepts = -0.5 * (means * coefficients).sum(axis=1) + np.log(priors)
        return _Solved(moments, classes, priors, means, covariance, coefficients, intercepts)
