"""Linear and ridge regression. The coefficients are computed from means and covariances, which a view maintains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from freshviews import arguments
from freshviews.engine.database import Database
from freshviews.learn.encoded import EncodedMoments, EncodedMomentsView
from freshviews.learn.frames import matrix_of, places_of
from freshviews.learn.kept_view import LearnError, Model, check_model
from freshviews.learn.least_squares import Values, depend, in_units, solution
from freshviews.learn.moments import Moments, MomentsView, Vector
from freshviews.learn.polynomial import MOST, expanded, expression, named, terms_of
from freshviews.records import dataclass


@dataclass(frozen=True)
class _Fit:
    """A solution: the coefficients, the intercept, and their inputs.

    ``places``: of the terms among the variables of ``moments``. ``mean``, ``gram``: of these terms.
    """

    moments: Moments
    places: Sequence[int]
    mean: Vector
    gram: Vector
    coef: Vector
    intercept: float
    residual: float
    total: float


class LinearRegression(Model):
    """Least squares of a target by features over a join, with the coefficients of the last version.

    Rows where a feature, a category or the target is NULL do not count. Attributes as scikit-learn's.

    Parameters
    ----------
    database
        The database that has the tables.
    source
        Text after FROM: a table, a view, or a join, possibly with WHERE.
    features
        Columns or other numeric expressions of SQL.
    target
        Column or other numeric expression of SQL.
    name
        Name of the view that the model keeps.
    fit_intercept
        False: fit through 0. Default: True.
    degree
        1, the default, or 2: the model has a coefficient for each feature and for each product of two features or of
        one with itself, as after scikit-learn's PolynomialFeatures; ``terms`` names them in the order of ``coef_``.
    categories
        Columns or expressions of any type, at most 11, by default none. Each value of a category is a term of 0 or 1
        behind the features, named as ``city=Oslo``, as after scikit-learn's OneHotEncoder. Terms come and go with the
        rows that have a value. The first value of a category, in ascending order, is its reference and has no term:
        other coefficients are differences from it. Without an intercept the first category has a term for each of its
        values.

    Attributes
    ----------
    features, categories, target, fit_intercept
        As given.

    Raises
    ------
    LearnError
        There are neither features nor categories, ``degree`` is not 1 or 2, or not 1 with categories, or a variable is
        given twice; else as ``Database.execute``.

    Examples
    --------
    >>> model = learn.LinearRegression(db, "flats", ["rooms", "area"], "price", name="prices")
    >>> model.coef_.round(2), round(model.r2, 2)
    (array([30.  ,  2.43]), 0.96)
    """

    _keeps_references = False

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
        categories: Sequence[str] = (),
    ) -> None:
        check_model(database, name, source, features, categories, texts=(target,))
        arguments.count(f"model {name}: degree", degree)
        arguments.flag(f"model {name}: fit_intercept", fit_intercept)
        self.features = tuple(features)
        self.categories = tuple(categories)
        self.target = target
        self.fit_intercept = fit_intercept
        if not self.features and not self.categories:
            raise LearnError(f"model {name} has no feature; name at least one column")
        if not 1 <= degree <= MOST:
            raise LearnError(f"model {name}: degree must be 1 or {MOST}, not {degree}")
        if self.categories and degree != 1:
            raise LearnError(
                f"model {name}: degree={degree} cannot be combined with categories; leave one of them "
                "out, or name products of columns as features"
            )
        self._terms = terms_of(len(self.features), degree)
        self._view: MomentsView | EncodedMomentsView = self._view_of(database, source, name)
        self._fit: _Fit | None = None

    def _view_of(self, database: Database, source: str, name: str) -> MomentsView | EncodedMomentsView:
        if self.categories:
            return EncodedMomentsView(database, source, self.features, self.categories, self.target, name)
        variables = (*(expression(self.features, term) for term in self._terms), self.target)
        return MomentsView(database, source, variables, name)

    @property
    def view(self) -> MomentsView | EncodedMomentsView:
        """The view that the model maintains."""
        return self._view

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the coefficients, in the order of ``coef_``; with categories, those of the last version."""
        moments = self._view.read()
        names = self._names(moments)
        return tuple(names[place] for place in self._places(moments, self._inputs))

    @property
    def categories_(self) -> Mapping[str, list[Any]]:
        """By category the values that occur in counted rows, in ascending order, references included."""
        values = (one.to_pylist() for one in _values(self._view.read()))
        return dict(zip(self.categories, values, strict=True))

    @property
    def variables(self) -> tuple[str, ...]:
        """The terms and the target, in the order of ``moments``."""
        return (*self.terms, self.target)

    @property
    def moments(self) -> Moments:
        """The moments of the terms and the target, which comes last."""
        moments = self._view.read()
        if not self.categories:
            return moments
        kept = [*self._places(moments, self._inputs), len(moments.mean) - 1]
        table = np.ix_(kept, kept)
        return Moments(moments.count, moments.mean[kept], moments.scatter[table], moments.products[table])

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
        """The part of the target's variance that the model explains; NaN if the target is constant."""
        return _explained(self._solved())

    @property
    def standard_errors_(self) -> Vector:
        """The standard errors of the coefficients, shape (terms,); of the intercept see ``intercept_error_``.

        They are those of ordinary least squares; Ridge has none. Raises LearnError if features depend on each other, or
        if there are no more rows than coefficients.
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
        fit = self._solved()
        return float(np.sqrt(variance * (1.0 / fit.moments.count + fit.mean @ inverse @ fit.mean)))

    def _uncertainty(self) -> tuple[Vector, float]:
        """The inverse of the features' matrix, and the variance of the errors."""
        fit = self._solved()
        if self._penalty() != 0.0:
            raise LearnError(f"model {self.name}: coefficients with a penalty have no standard errors")
        freedom = fit.moments.count - len(fit.coef) - int(self.fit_intercept)
        scale, scaled = in_units(fit.gram)
        if freedom < 1 or depend(scaled):
            raise LearnError(
                f"model {self.name}: {len(fit.coef) + int(self.fit_intercept)} coefficients, with the intercept, over "
                f"{fit.moments.count} rows have no standard errors; give more rows than coefficients, and linearly "
                "independent features"
            )
        inverse: Vector = np.linalg.inv(scaled) / np.outer(scale, scale)
        return inverse, fit.residual / freedom

    def forward_steps(self, most: int | None = None) -> list[tuple[str, float]]:
        """Choose terms one after the other: each explains most of the target, given those before it.

        No rows are read again. A category is one step, with all of its terms.

        Parameters
        ----------
        most
            Most terms to choose; None, the default: all.

        Returns
        -------
        list[tuple[str, float]]
            Names of the terms, each with the r2 of a model of the terms so far.

        Raises
        ------
        LearnError
            There are too few rows.

        Examples
        --------
        >>> [(term, round(r2, 2)) for term, r2 in model.forward_steps()]
        [('area', 0.95), ('rooms', 0.96)]
        """
        arguments.optional(arguments.count, f"model {self.name}: most", most)
        moments = self._solved().moments
        names = (*(named(self.features, term) for term in self._terms), *self.categories)
        left, chosen = list(self._inputs), list[int]()
        found: list[tuple[str, float]] = []
        for _ in range(len(left) if most is None else min(most, len(left))):
            fits = {one: self._of_places(moments, self._places(moments, [*chosen, one])) for one in left}
            best = min(left, key=lambda one: fits[one].residual)
            left.remove(best)
            chosen.append(best)
            found.append((names[best], _explained(fits[best])))
        return found

    def predict(self, frame: Any, unknown: str = "error") -> Vector:
        """Predict the target of rows of features and categories.

        Parameters
        ----------
        frame
            DataFrame of pandas or polars, Arrow table, or mapping of names to columns; or, without categories, an array
            of shape (rows, features) in the order of the model.
        unknown
            Treatment of a category's value that no row has in the last version: ``"error"``, the default, raises
            LearnError; with ``"zero"`` none of the category's terms is 1, as for its reference.

        Returns
        -------
        numpy.ndarray
            Shape (rows,).

        Raises
        ------
        LearnError
            There are too few rows, ``frame`` lacks a column, or a value is unknown or no number.

        Examples
        --------
        >>> model.predict({"rooms": [2, 3], "area": [60.0, 75.0]}).round(1)
        array([290. , 356.4])
        """
        if unknown not in ("error", "zero"):
            raise LearnError(f"model {self.name}: unknown={unknown!r}; 'error' and 'zero' are accepted")
        fit = self._solved()
        coef = np.zeros(len(fit.moments.mean) - 1)
        coef[list(fit.places)] = fit.coef
        values = _values(fit.moments)
        places = places_of(frame, self.categories, values, self.name, unknown) if values else []
        found: Vector = np.full(len(places[0]) if places else 1, fit.intercept)
        if self.features:
            rows = matrix_of(frame, self.features, self.name)
            found = expanded(rows, self._terms) @ coef[: len(self._terms)] + fit.intercept
        for span, at in zip(self._spans(fit.moments), places, strict=True):
            # The last entry is that of values without a term.
            found = found + np.append(coef[span.start : span.stop], 0.0)[at]
        return found

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
            raise LearnError(f"model {self.name} has {moments.count} rows; it needs {least} or more")
        return self._of_places(moments, self._places(moments, self._inputs))

    @property
    def _inputs(self) -> range:
        """Numbers for the terms of features, followed by the categories."""
        return range(len(self._terms) + len(self.categories))

    def _spans(self, moments: Moments) -> list[range]:
        """Per category the places of its values among the variables of the moments."""
        starts = np.cumsum([len(self._terms), *map(len, _values(moments))]).tolist()
        return [range(start, stop) for start, stop in pairwise(starts)]

    def _names(self, moments: Moments) -> list[str]:
        """Names of all variables of the moments except the target."""
        names = [named(self.features, term) for term in self._terms]
        for category, values in zip(self.categories, _values(moments), strict=True):
            names += (f"{category}={value}" for value in values.to_pylist())
        return names

    def _places(self, moments: Moments, inputs: Sequence[int]) -> list[int]:
        """The places of the terms of some inputs. The values of a category add up to 1, as do the intercept and the
        values of any other category. So all categories but one leave out their reference."""
        spans, found = self._spans(moments), list[int]()
        has_one = self.fit_intercept
        for one in inputs:
            if one < len(self._terms):
                found.append(one)
                continue
            span = spans[one - len(self._terms)]
            found += span[1:] if has_one and not self._keeps_references else span
            has_one = True
        return found

    def _most_values(self, moments: Moments, places: Sequence[int]) -> Values | None:
        """The values of the category with most of the terms at these places; None if there is no category."""
        own = [[i for i, place in enumerate(places) if place in span] for span in self._spans(moments)]
        most = max(own, key=len, default=[])
        if not most:
            return None
        counts = np.diag(moments.products)[[places[i] for i in most]]
        return Values(most, counts, moments.count if self.fit_intercept else None)

    def _of_places(self, moments: Moments, places: Sequence[int]) -> _Fit:
        """The solution with the terms at these places alone."""
        kept = [*places, len(moments.mean) - 1]
        table = (moments.scatter if self.fit_intercept else moments.products)[np.ix_(kept, kept)]
        mean = moments.mean[kept]
        gram, cross, total = table[:-1, :-1], table[:-1, -1], float(table[-1, -1])
        coef = solution(gram, cross, self._penalty(), self._most_values(moments, places))
        intercept = float(mean[-1] - mean[:-1] @ coef) if self.fit_intercept else 0.0
        residual = max(float(total - 2.0 * coef @ cross + coef @ gram @ coef), 0.0)
        return _Fit(moments, places, mean[:-1], gram, coef, intercept, residual, total)


class Ridge(LinearRegression):
    """Least squares with ``alpha`` times the squared coefficients added to the squared errors, as scikit-learn's Ridge.

    The intercept has no penalty. Each value of a category has its term: there are no references. There are no standard
    errors.

    Parameters
    ----------
    database, source, features, target, name, fit_intercept, degree, categories
        As of ``LinearRegression``.
    alpha
        Penalty, 0 or more; by default 1.

    Raises
    ------
    LearnError
        ``alpha`` is negative or not finite; else as ``LinearRegression``.

    Examples
    --------
    >>> model = learn.Ridge(db, "flats", ["rooms", "area"], "price", name="prices", alpha=10.0)
    >>> model.coef_.round(2)
    array([1.15, 3.86])
    """

    _keeps_references = True

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
        categories: Sequence[str] = (),
    ) -> None:
        arguments.number(f"model {name}: alpha", alpha)
        if not 0.0 <= alpha < np.inf:
            raise LearnError(f"model {name}: alpha must be 0 or more, and finite, not {alpha}")
        super().__init__(
            database, source, features, target,
            name=name, fit_intercept=fit_intercept, degree=degree, categories=categories,
        )  # fmt: skip
        self.alpha = alpha

    def _penalty(self) -> float:
        return self.alpha


def _explained(fit: _Fit) -> float:
    return 1.0 - fit.residual / fit.total if fit.total > 0.0 else float("nan")


def _values(moments: Moments) -> Sequence[pa.Array]:
    """The values of each category."""
    return moments.values if isinstance(moments, EncodedMoments) else ()
