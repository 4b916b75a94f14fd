"""Measures how much the means and covariances of a model's variables have changed since an earlier version."""

from __future__ import annotations

import numpy as np

from freshviews import arguments
from freshviews.learn.encoded import EncodedMomentsView
from freshviews.learn.kept_view import LearnError
from freshviews.learn.linear import LinearRegression
from freshviews.learn.moments import Moments, MomentsView, Vector
from freshviews.learn.principal import PCA
from freshviews.records import dataclass

_SINGULAR = 1e13
"""Condition number of correlations beyond which no digit of the density of a normal distribution is right."""


@dataclass(frozen=True)
class Drift:
    """The change of m variables between two versions, in units of their standard deviations at the first one.

    With mean u, covariance C (of a sample) and standard deviations s = sqrt(diag C) at the first version, and u', C' at
    the second one:

    Attributes
    ----------
    variables
        Names of the variables.
    versions
        The two versions.
    counts
        Number of rows at each.
    mean
        (u' - u) / s, shape (m,). An entry is 0 without a change, and infinite for a change of a variable that was
        constant.
    covariance
        (C' - C)[i, j] / (s[i] s[j]), shape (m, m); 0 and infinite as in ``mean``.
    divergence
        Kullback-Leibler divergence of the normal distribution with the later moments from the one with the earlier
        moments, in nats: (tr(C^-1 C') + (u' - u)' C^-1 (u' - u) - m + ln det C - ln det C') / 2. It is 0 where no
        moment has changed, and the same for variables in other units. NaN where, at one of the versions, a variable is
        constant or follows from the others.

    Examples
    --------
    >>> view = learn.MomentsView(db, "flats", ["area", "price"], "prices")
    >>> drift = learn.Baseline(view).drift()
    >>> drift.counts, drift.divergence
    ((6, 6), 0.0)
    """

    variables: tuple[str, ...]
    versions: tuple[int, int]
    counts: tuple[int, int]
    mean: Vector
    covariance: Vector
    divergence: float

    def ranked(self) -> list[tuple[str, float]]:
        """Rank the variables by the magnitude of their greatest change, of the mean or of a covariance with a variable.

        Returns
        -------
        list[tuple[str, float]]
            Pairs of a variable and the magnitude, the greatest first.

        Examples
        --------
        >>> drift.ranked()
        [('area', 0.0), ('price', 0.0)]
        """
        greatest = np.maximum(np.abs(self.mean), np.abs(self.covariance).max(axis=1))
        return sorted(zip(self.variables, greatest.tolist(), strict=True), key=lambda one: -one[1])


class Baseline:
    """The moments of a model at the version when the baseline is taken, for ``drift`` to compare later ones with.

    Nothing is stored but m means and m * m covariances.

    Parameters
    ----------
    model
        A regression, whose target is the last variable, a PCA, or a ``MomentsView``.

    Attributes
    ----------
    variables
        Names of the variables.
    version
        The version of the baseline.
    moments
        The ``Moments`` at that version.

    Raises
    ------
    LearnError
        There are fewer than 2 rows, or the model has categories, whose variables come and go.

    Examples
    --------
    >>> baseline = learn.Baseline(learn.MomentsView(db, "flats", ["area", "price"], "prices"))
    >>> baseline.version
    1
    """

    def __init__(self, model: LinearRegression | PCA | MomentsView) -> None:
        arguments.of((LinearRegression, PCA, MomentsView), "Baseline(model)", model)
        view = model if isinstance(model, MomentsView) else model.view
        if isinstance(view, EncodedMomentsView):
            raise LearnError(f"view {view.name} has categories, but drift compares only numbers; pass a MomentsView")
        self._view = view
        self.variables = model.variables
        self.version = self._view.version
        self.moments = self._read()

    def drift(self) -> Drift:
        """Compare the last version with the baseline.

        Returns
        -------
        Drift

        Raises
        ------
        LearnError
            There are fewer than 2 rows.

        Examples
        --------
        >>> version = db.insert("flats", [("Oslo", "loft", 2, 45.0, 260.0)])
        >>> baseline.drift().mean.round(2)
        array([-0.09, -0.06])
        """
        now = self._read()
        first, last = (moments.scatter / (moments.count - 1) for moments in (self.moments, now))
        deviation = np.sqrt(np.diag(first))
        return Drift(
            self.variables,
            (self.version, self._view.version),
            (self.moments.count, now.count),
            _in_units(now.mean - self.moments.mean, deviation),
            _in_units(last - first, np.outer(deviation, deviation)),
            _divergence(now.mean - self.moments.mean, first, last),
        )

    def _read(self) -> Moments:
        moments = self._view.read()
        if moments.count < 2:
            raise LearnError(f"view {self._view.name} has {moments.count} rows; drift needs 2 or more")
        return moments


def _in_units(change: Vector, unit: Vector) -> Vector:
    """A change over its units; 0 without a change, infinite for a change of a constant."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change == 0.0, 0.0, change / unit)


def _divergence(shift: Vector, first: Vector, last: Vector) -> float:
    deviation = np.sqrt(np.diag(first))
    for covariance in (first, last):
        own = np.sqrt(np.diag(covariance))
        if not ((own > 0.0).all() and np.linalg.cond(covariance / np.outer(own, own)) < _SINGULAR):
            return float("nan")
    scaled, after, moved = (
        first / np.outer(deviation, deviation),
        last / np.outer(deviation, deviation),
        shift / deviation,
    )
    spread = np.trace(np.linalg.solve(scaled, after)) - len(shift)
    logs = np.linalg.slogdet(scaled)[1] - np.linalg.slogdet(after)[1]
    # Rounding can make the divergence of equal moments negative.
    return max(float(spread + moved @ np.linalg.solve(scaled, moved) + logs) / 2.0, 0.0)
