"""Solves the normal equations of a regression, given sums of products of its features and target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshviews.learn.moments import Vector
from freshviews.records import dataclass

_DEPENDENT = 1e13
"""Condition number beyond which the remaining digits could not distinguish dependent features from others."""


@dataclass(frozen=True)
class Values:
    """Values of one category among the variables of a matrix.

    ``places``: their positions. ``counts``: the number of rows of each, shape (values,). ``rows``: the number of rows
    if the matrix is centred; otherwise None. Then the matrix of the values is diag(counts) - counts counts' / rows.
    """

    places: Sequence[int]
    counts: Vector
    rows: int | None


def in_units(gram: Vector) -> tuple[Vector, Vector]:
    """The units of variables, which are 1 where the variable is constant, and the matrix in these units."""
    scale = np.sqrt(np.diag(gram))
    scale = np.where(scale > 0.0, scale, 1.0)
    return scale, gram / np.outer(scale, scale)


def depend(scaled: Vector) -> bool:
    """True if variables depend on each other, by their matrix in their units."""
    if not len(scaled):
        return False
    # The condition number in the 1-norm is not less, and takes a twentieth of the time.
    return not (np.linalg.cond(scaled, 1) < _DEPENDENT or np.linalg.cond(scaled) < _DEPENDENT)


def solution(gram: Vector, cross: Vector, penalty: float, values: Values | None) -> Vector:
    """The least solution of (gram + penalty) @ x = cross, where ``gram`` is symmetric.

    ``penalty``: added to the diagonal. ``values``: the values of a category that are solved one by one, if there are.

    The equations are scaled by the diagonal first: a feature in millimetres is as good as one in kilometres. Where
    features depend on each other, the solution with the least norm is taken, as least squares over the rows takes it.

    ``gram`` has the sums of products of the variables; ``cross`` has their sums of products with the target. Each value
    of a category is a variable of 0 or 1, and at most one of these is 1 in a row. So the part of ``gram`` for a
    category is a diagonal matrix; if the variables are centred, a matrix of rank one is subtracted. This part is solved
    first, in time linear in the number of values. The remaining equations follow (Schur complement).
    """
    found = None if values is None else _by_value(gram, cross, penalty, values)
    return _dense(gram + penalty * np.eye(len(gram)), cross) if found is None else found


def _by_value(gram: Vector, cross: Vector, penalty: float, values: Values) -> Vector | None:
    """The solution if the variables do not depend on each other; otherwise None."""
    own = np.asarray(values.places)
    others = np.setdiff1d(np.arange(len(gram)), own)
    share = values.counts / (values.counts + penalty)
    # Rows without one of the values, and the penalty: rows - counts @ share without cancellation.
    outside = 0.0 if values.rows is None else values.rows - values.counts.sum() + penalty * share.sum()
    # If nearly nothing is outside, only the digits that rounding left remain.
    if values.rows is not None and outside <= 1e-9 * values.rows:
        return None

    def solved(right: Vector) -> Vector:
        """The matrix of the values, inverted, times a matrix of shape (values, ...): by Sherman and Morrison."""
        found = (right.T / (values.counts + penalty)).T
        return found if values.rows is None else found + np.multiply.outer(share, share @ right) / outside

    beside = gram[np.ix_(own, others)]
    table = gram[np.ix_(others, others)] + penalty * np.eye(len(others))
    scale, _ = in_units(table)
    left = (table - beside.T @ solved(beside)) / np.outer(scale, scale)
    found = np.zeros(len(gram))
    if len(others):
        try:
            inverse = np.linalg.inv(left)
        except np.linalg.LinAlgError:
            return None
        # The unit is 1, not the norm of the rest: variables that follow from the values have no rest.
        if not np.linalg.norm(inverse, 1) < _DEPENDENT:
            return None
        found[others] = np.linalg.solve(left, (cross[others] - beside.T @ solved(cross[own])) / scale) / scale
    found[own] = solved(cross[own] - beside @ found[others])
    return found


def _dense(gram: Vector, cross: Vector) -> Vector:
    """The least solution of gram @ x = cross."""
    scale, scaled = in_units(gram)
    if not depend(scaled):
        found: Vector = np.linalg.solve(scaled, cross / scale) / scale
        return found
    # Any solution of the scaled equations, minus its part along the changes of x that change nothing. Where units
    # differ by a million, those of a feature would hide a rare value of a category in equations that are not scaled.
    sizes, axes = np.linalg.eigh(scaled)
    matter = sizes > sizes[-1] / _DEPENDENT
    some = axes[:, matter] @ (axes[:, matter].T @ (cross / scale) / sizes[matter]) / scale
    idle, _ = np.linalg.qr(axes[:, ~matter] / scale[:, None])
    least: Vector = some - idle @ (idle.T @ some)
    return least
