"""Reads the count, the means and the covariances of variables over a join, which a view maintains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freshviews.engine.database import Database
from freshviews.learn.kept_view import KeptView, check_model, numbered
from freshviews.records import dataclass

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Rows of a join as moments of m variables: only rows in which none of them is NULL.

    The sums are exact and rounded once; see docs/rings.md.

    Attributes
    ----------
    count
        The number of rows.
    mean
        Means, shape (m,).
    scatter
        Sums of (x - mean x) * (y - mean y), shape (m, m).
    products
        Sums of x * y, shape (m, m).

    Examples
    --------
    >>> moments = learn.MomentsView(db, "flats", ["area", "price"], "prices").read()
    >>> moments.count, moments.mean
    (6, array([ 60., 300.]))
    """

    count: int
    mean: Vector
    scatter: Vector
    products: Vector


class MomentsView(KeptView):
    """A view that maintains the cofactor of some variables over a join.

    Parameters
    ----------
    database
        The database that has the tables.
    source
        Text after FROM: a table, a view, or a join, possibly with WHERE.
    variables
        Columns or other numeric expressions of SQL.
    name
        Name of the view to create.

    Raises
    ------
    LearnError
        A variable is given twice; else as ``Database.execute``.

    Examples
    --------
    >>> view = learn.MomentsView(db, "flats", ["area", "price"], "prices")
    >>> view.read().mean
    array([ 60., 300.])
    """

    def __init__(self, database: Database, source: str, variables: Sequence[str], name: str) -> None:
        check_model(database, name, source, variables)
        listed = ", ".join(variables)
        select = f"SELECT COFACTOR({listed}) AS f, COVAR_MATRIX({listed}) AS c FROM {source}"
        super().__init__(database, name, variables, select)
        self.variables = tuple(variables)
        self._version = -1
        self._row: tuple[Any, ...] = ()
        self._moments: Moments | None = None

    def read(self) -> Moments:
        """Read the moments of the last version. They are computed again only after the view has changed.

        Returns
        -------
        Moments

        Examples
        --------
        >>> view.read().products
        array([[ 24400., 119000.],
               [119000., 585400.]])
        """
        if self._moments is None or self.version != self._version:
            # Taken before the view is read: a version that another thread commits meanwhile is read next time.
            version = self.version
            (row,) = self._view
            if self._moments is None or row != self._row:
                self._row, self._moments = row, moments_of(row, len(self.variables))
            self._version = version
        return self._moments


class GroupedMomentsView(KeptView):
    """A view that maintains the cofactor of some variables over a join for each value of another one, the class.

    Rows without a class do not count.

    Parameters
    ----------
    database, source, variables, name
        As of ``MomentsView``.
    by
        Column or expression of the classes.

    Raises
    ------
    LearnError
        A variable is given twice; else as ``Database.execute``.

    Examples
    --------
    >>> view = learn.GroupedMomentsView(db, "flats", ["area", "price"], by="city", name="prices")
    >>> view.read()["Rome"].count
    3
    """

    def __init__(self, database: Database, source: str, variables: Sequence[str], by: str, name: str) -> None:
        check_model(database, name, source, variables, texts=(by,))
        names, chosen = numbered(variables)
        listed = ", ".join(names)
        select = (
            f"SELECT class, COFACTOR({listed}) AS f, COVAR_MATRIX({listed}) AS c "
            f"FROM (SELECT {by} AS class, {chosen} FROM {source}) WHERE class IS NOT NULL GROUP BY class"
        )
        super().__init__(database, name, (*variables, by), select)
        self.variables = tuple(variables)
        self._version = -1
        self._moments: dict[Any, Moments] = {}

    def read(self) -> Mapping[Any, Moments]:
        """Read the moments of each class at the last version. Classes with a NULL in each row are left out.

        Returns
        -------
        Mapping[Any, Moments]
            ``Moments`` by class, classes in order; the same object until there is another version.

        Examples
        --------
        >>> {city: moments.mean.round(1).tolist() for city, moments in view.read().items()}
        {'Oslo': [53.3, 290.0], 'Rome': [66.7, 310.0]}
        """
        if self.version != self._version:
            # Taken before the view is read: a version that another thread commits meanwhile is read next time.
            self._version = self.version
            rows = sorted(self._view, key=lambda row: row[0])
            found = {row[0]: moments_of(row[1:], len(self.variables)) for row in rows}
            self._moments = {value: moments for value, moments in found.items() if moments.count}
        return self._moments


def moments_of(row: tuple[Any, ...], m: int) -> Moments:
    """The moments of m variables, from their cofactor and their covariances."""
    pairs = list(combinations_with_replacement(range(m), 2))
    count = int(row[0])
    values = [float(x or 0) for x in row[1:]]
    sums, products, covariances = values[:m], values[m : m + len(pairs)], values[m + len(pairs) :]
    # An empty join has no mean; models ask for more rows than that.
    mean = np.array(sums) / max(count, 1)
    return Moments(count, mean, _matrix(m, pairs, covariances) * max(count - 1, 0), _matrix(m, pairs, products))


def _matrix(m: int, pairs: Sequence[tuple[int, int]], values: Sequence[float]) -> Vector:
    """The symmetric matrix of values by pair."""
    found = np.zeros((m, m))
    for (i, j), x in zip(pairs, values, strict=True):
        found[i, j] = found[j, i] = x
    return found
