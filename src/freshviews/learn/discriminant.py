"""Linear discriminant analysis: a classifier that models each class as a normal distribution.

All classes share one covariance, so a row's score for a class is linear in the features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from freshviews.engine.database import Database
from freshviews.learn.frames import matrix_of
from freshviews.learn.kept_view import LearnError, Model, check_model
from freshviews.learn.moments import GroupedMomentsView, Moments, Vector
from freshviews.records import dataclass


@dataclass(frozen=True)
class _Solved:
    moments: Mapping[Any, Moments]
    classes: list[Any]
    priors: Vector
    means: Vector
    covariance: Vector
    coefficients: Vector
    intercepts: Vector


class LinearDiscriminant(Model):
    """A classifier over a join by linear discriminant analysis, that of the last version.

    Attributes are those of scikit-learn's LinearDiscriminantAnalysis with the solver ``lsqr``; with two classes, too,
    there is a row of coefficients for each. Rows without a class do not count.

    Parameters
    ----------
    database
        The database that has the tables.
    source
        Text after FROM: a table, a view, or a join, possibly with WHERE.
    features
        Columns or other numeric expressions of SQL.
    target
        Column or expression of the class.
    name
        Name of the view that the model keeps.

    Raises
    ------
    LearnError
        A feature is given twice; else as ``Database.execute``.

    Examples
    --------
    >>> model = learn.LinearDiscriminant(db, "flats", ["area", "price"], "city", name="cities")
    >>> model.classes_
    ['Oslo', 'Rome']
    """

    def __init__(self, database: Database, source: str, features: Sequence[str], target: str, *, name: str) -> None:
        check_model(database, name, source, features, texts=(target,))
        self.features = tuple(features)
        self._view: GroupedMomentsView = GroupedMomentsView(database, source, self.features, target, name)
        self._last: _Solved | None = None

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
        """Score each class for rows of features: the logarithm of its probability up to a constant of the row.

        Parameters
        ----------
        frame
            DataFrame of pandas or polars, Arrow table, mapping of names to columns, or array of shape (rows, features)
            in the order of the model.

        Returns
        -------
        numpy.ndarray
            Shape (rows, classes).

        Raises
        ------
        LearnError
            There are too few rows or classes, ``frame`` lacks a column, or a value is no number.

        Examples
        --------
        >>> model.scores({"area": [60.0], "price": [350.0]}).round(1)
        array([[62.3, 38.3]])
        """
        solved = self._solved()
        found: Vector = matrix_of(frame, self.features, self.name) @ solved.coefficients.T + solved.intercepts
        return found

    def predict(self, frame: Any) -> list[Any]:
        """Predict the class of rows of features: that of the greatest score.

        Parameters
        ----------
        frame
            As of ``scores``, whose errors are raised.

        Returns
        -------
        list[Any]
            The classes, one for each row.

        Examples
        --------
        >>> model.predict({"area": [60.0, 60.0], "price": [350.0, 200.0]})
        ['Oslo', 'Rome']
        """
        classes = self.classes_
        return [classes[place] for place in self.scores(frame).argmax(axis=1)]

    def predict_proba(self, frame: Any) -> Vector:
        """Predict the probability of each class for rows of features.

        Parameters
        ----------
        frame
            As of ``scores``, whose errors are raised.

        Returns
        -------
        numpy.ndarray
            Shape (rows, classes).

        Examples
        --------
        >>> model.predict_proba({"area": [60.0], "price": [305.0]}).round(3)
        array([[0.917, 0.083]])
        """
        scores = self.scores(frame)
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Vector = share / share.sum(axis=1, keepdims=True)
        return found

    def _solved(self) -> _Solved:
        moments = self._view.read()
        if self._last is None or self._last.moments is not moments:
            self._last = self._solution(moments)
        return self._last

    def _solution(self, moments: Mapping[Any, Moments]) -> _Solved:
        count = sum(one.count for one in moments.values())
        if len(moments) < 2 or count <= len(moments):
            raise LearnError(
                f"model {self.name} has {count} rows in {len(moments)} classes; it needs 2 classes, and more rows than "
                "classes"
            )
        classes = list(moments)
        priors = np.array([moments[one].count / count for one in classes])
        means = np.array([moments[one].mean for one in classes])
        covariance: Vector = sum((moments[one].scatter for one in classes), np.zeros((len(self.features),) * 2)) / count
        coefficients: Vector = np.linalg.lstsq(covariance, means.T, rcond=None)[0].T
        intercepts = -0.5 * (means * coefficients).sum(axis=1) + np.log(priors)
        return _Solved(moments, classes, priors, means, covariance, coefficients, intercepts)
