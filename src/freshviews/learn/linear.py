"""Linear and ridge regression from the moments of features and a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freshviews.engine.change import Subscription
from freshviews.engine.database import Database
from freshviews.learn.frames import matrix_of
from freshviews.learn.kept_view import LearnError
from freshviews.learn.moments import Moments, MomentsView, Vector
from freshviews.learn.polynomial import MOST, expanded, expression, named, terms_of

_DEPENDENT = 1e13
"""Beyond this condition number the digits that are left could not tell dependent features from others."""


@dataclass(frozen=True)
class _Fit:
    """A solution: the coefficients, the intercept, and what they were computed from."""

    moments: Moments
    gram: Vector
    coef: Vector
    intercept: float
    residual: float
    total: float


class LinearRegression:
    """Least squares of a target by features over a join, with the coefficients of the last version.

    ``source``, ``features``, ``target``: as in ``MomentsView``. ``name``: of the view that the model keeps. Rows where
    a feature or the target is NULL do not count. Attributes as scikit-learn's; they raise LearnError while there are
    too few rows.

    ``degree``: with 2, the model has a coefficient for each feature and for each product of two features or of one
    with itself, as after scikit-learn's PolynomialFeatures; ``terms`` names them in the order of ``coef_``.
    """

    def __init__(
        self,
        database: Database,
        source: str,
        features: Sequence[str],
        target: str,
        *,
        name: str,
        fit_intercept: bool = True,
        degree: int = 1,
    ) -> None:
        self.features = tuple(features)
        self.target = target
        self.fit_intercept = fit_intercept
        if not self.features:
            raise LearnError(f"model {name}: it has no feature; name at least one column")
        if not 1 <= degree <= MOST:
            raise LearnError(f"model {name}: its degree is {degree}; it must be 1 or {MOST}")
        self._terms = terms_of(len(self.features), degree)
        self.terms = tuple(named(self.features, term) for term in self._terms)
        variables = (*(expression(self.features, term) for term in self._terms), target)
        self._view = MomentsView(database, source, variables, name)
        self._fit: _Fit | None = None

    @property
    def name(self) -> str:
        """The name of the view."""
        return self._view.name

    @property
    def view(self) -> MomentsView:
        """The view that the model keeps."""
        return self._view

    @property
    def variables(self) -> tuple[str, ...]:
        """The terms and the target, in the order of ``moments``."""
        return (*self.terms, self.target)

    @property
    def moments(self) -> Moments:
        """The moments of the terms and the target, which comes last."""
        return self._view.read()

    @property
    def coef_(self) -> Vector:
        """The coefficients, shape (terms,); with degree 1 the terms are the features."""
        return self._solved().coef

    @property
    def intercept_(self) -> float:
        """The value where all features are 0; 0 without an intercept."""
        return self._solved().intercept

    @property
    def r2(self) -> float:
        """The part of the target's variance that the model explains; NaN where the target is constant."""
        return _explained(self._solved())

    @property
    def standard_errors_(self) -> Vector:
        """The standard errors of the coefficients, shape (terms,); of the intercept see ``intercept_error_``.

        Those of ordinary least squares, of which Ridge has none. Raises LearnError where features depend on each other,
        or where there are no more rows than coefficients.
        """
        inverse, variance = self._uncertainty()
        errors: Vector = np.sqrt(np.diag(inverse) * variance)
        return errors

    @property
    def intercept_error_(self) -> float:
        """The standard error of the intercept; 0 without one."""
        if not self.fit_intercept:
            return 0.0
        inverse, variance = self._uncertainty()
        moments = self._solved().moments
        mean = moments.mean[:-1]
        return float(np.sqrt(variance * (1.0 / moments.count + mean @ inverse @ mean)))

    def _uncertainty(self) -> tuple[Vector, float]:
        """The inverse of the features' matrix, and the variance of the errors."""
        fit = self._solved()
        if self._penalty() != 0.0:
            raise LearnError(f"model {self.name}: coefficients with a penalty have no standard errors")
        freedom = fit.moments.count - len(fit.coef) - int(self.fit_intercept)
        scale = np.sqrt(np.diag(fit.gram))
        scaled = fit.gram / np.outer(scale, scale) if (scale > 0.0).all() else np.zeros_like(fit.gram)
        if freedom < 1 or np.linalg.cond(scaled) >= _DEPENDENT:
            raise LearnError(
                f"model {self.name}: no standard errors of {len(fit.coef)} coefficients over {fit.moments.count} rows; "
                "they need more rows than coefficients, and features of which none follows from the others"
            )
        inverse: Vector = np.linalg.inv(scaled) / np.outer(scale, scale)
        return inverse, fit.residual / freedom

    def forward_steps(self, most: int | None = None) -> list[tuple[str, float]]:
        """Terms chosen one after the other, at most ``most``: each is the one that, beside those before it, explains
        most of the target; with it, the r2 of a model of these terms. No rows are read again."""
        moments = self._solved().moments
        left, chosen = list(range(len(self.terms))), list[int]()
        found: list[tuple[str, float]] = []
        for _ in range(len(left) if most is None else min(most, len(left))):
            fits = {place: self._of_terms(moments, [*chosen, place]) for place in left}
            best = min(left, key=lambda place: fits[place].residual)
            left.remove(best)
            chosen.append(best)
            found.append((self.terms[best], _explained(fits[best])))
        return found

    def predict(self, frame: Any) -> Vector:
        """The target of rows of features, shape (rows,); ``frame`` as in ``matrix_of``."""
        fit = self._solved()
        rows = matrix_of(frame, self.features, self.name)
        found: Vector = expanded(rows, self._terms) @ fit.coef + fit.intercept
        return found

    def subscribe(self, on_change: Callable[[LinearRegression], object]) -> Subscription:
        """Have ``on_change`` called with the model after every version that changes its moments."""
        return self._view.subscribe(lambda: on_change(self))

    def drop(self) -> None:
        """Drop the view of the model, which is not fresh any more."""
        self._view.drop()

    def _penalty(self) -> float:
        return 0.0

    def _solved(self) -> _Fit:
        moments = self._view.read()
        if self._fit is None or self._fit.moments is not moments:
            self._fit = self._solve(moments)
        return self._fit

    def _solve(self, moments: Moments) -> _Fit:
        least = 2 if self.fit_intercept else 1
        if moments.count < least:
            raise LearnError(f"model {self.name}: it has {moments.count} rows and needs {least} or more")
        return self._of_terms(moments, range(len(self.terms)))

    def _of_terms(self, moments: Moments, chosen: Sequence[int]) -> _Fit:
        """The solution with terms at these places alone."""
        kept = [*chosen, len(self.terms)]
        table = (moments.scatter if self.fit_intercept else moments.products)[np.ix_(kept, kept)]
        mean = moments.mean[kept]
        gram, cross, total = table[:-1, :-1], table[:-1, -1], float(table[-1, -1])
        coef = _solution(gram + self._penalty() * np.eye(len(gram)), cross)
        intercept = float(mean[-1] - mean[:-1] @ coef) if self.fit_intercept else 0.0
        residual = max(float(total - 2.0 * coef @ cross + coef @ gram @ coef), 0.0)
        return _Fit(moments, gram, coef, intercept, residual, total)


class Ridge(LinearRegression):
    """Least squares with ``alpha`` times the squared coefficients added to the squared errors, as scikit-learn's Ridge.
    The intercept has no penalty."""

    def __init__(
        self,
        database: Database,
        source: str,
        features: Sequence[str],
        target: str,
        *,
        name: str,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        degree: int = 1,
    ) -> None:
        if not alpha >= 0.0:
            raise LearnError(f"model {name}: alpha is {alpha}; it must be 0 or more")
        super().__init__(database, source, features, target, name=name, fit_intercept=fit_intercept, degree=degree)
        self.alpha = alpha

    def _penalty(self) -> float:
        return self.alpha


def _explained(fit: _Fit) -> float:
    return 1.0 - fit.residual / fit.total if fit.total > 0.0 else float("nan")


def _solution(gram: Vector, cross: Vector) -> Vector:
    """The least solution of gram @ x = cross, which is symmetric.

    The equations are scaled by the diagonal first: a feature in millimetres is as good as one in kilometres. Where
    features depend on each other, the solution with the least norm is taken, as least squares over the rows takes it.
    """
    scale = np.sqrt(np.diag(gram))
    if (scale > 0.0).all():
        scaled = gram / np.outer(scale, scale)
        if np.linalg.cond(scaled) < _DEPENDENT:
            found: Vector = np.linalg.solve(scaled, cross / scale) / scale
            return found
    return np.asarray(np.linalg.lstsq(gram, cross, rcond=1e-12)[0], np.float64)
