"""Counts, means and covariances of variables over a join, read of a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freshviews.engine.change import Subscription
from freshviews.engine.database import Database
from freshviews.errors import FreshviewsError

Vector = NDArray[np.float64]


class LearnError(FreshviewsError):
    """A model cannot be computed from the rows that there are, or from the frame that is given."""


@dataclass(frozen=True)
class Moments:
    """The rows of a join as m variables see them: only rows in which none of them is NULL.

    ``count``: how many rows. ``mean``: shape (m,). ``scatter``: shape (m, m), the sums of (x - mean x) * (y - mean y).
    ``products``: shape (m, m), the sums of x * y. The sums are exact and rounded once; see docs/rings.md.
    """

    count: int
    mean: Vector
    scatter: Vector
    products: Vector


class MomentsView:
    """A view that keeps the cofactor of some variables over a join.

    ``source``: what follows FROM: a table, a view, or a join, with WHERE if need be. ``variables``: columns or other
    numeric expressions of SQL. ``name``: that of the view to create. Raises what ``Database.execute`` raises.
    """

    def __init__(self, database: Database, source: str, variables: Sequence[str], name: str) -> None:
        if len(set(variables)) != len(variables):
            raise LearnError(f"model {name}: {', '.join(variables)} has a variable twice; name each once")
        self.name = name
        self.variables = tuple(variables)
        self._database = database
        listed = ", ".join(variables)
        select = f"SELECT COFACTOR({listed}) AS f, COVAR_MATRIX({listed}) AS c FROM {source}"
        database.execute(f"CREATE MATERIALIZED VIEW {name} AS {select}")
        self._view = database.view(name)
        self._row: tuple[Any, ...] = ()
        self._moments: Moments | None = None

    def read(self) -> Moments:
        """The moments of the last version. They are computed again only where the view has changed."""
        (row,) = self._view
        if self._moments is None or row != self._row:
            self._row, self._moments = row, _moments_of(row, len(self.variables))
        return self._moments

    def subscribe(self, callback: Callable[[], object]) -> Subscription:
        """Have ``callback`` called after every version that changes the moments."""
        return self._view.subscribe(lambda _: callback())

    def drop(self) -> None:
        """Drop the view."""
        self._database.execute(f"DROP VIEW {self.name}")


class GroupedMomentsView:
    """A view that keeps the cofactor of some variables over a join for each value of another, its classes.

    Arguments as those of ``MomentsView``; ``by``: the column or expression of the classes. Rows without a class do not
    count.
    """

    def __init__(self, database: Database, source: str, variables: Sequence[str], by: str, name: str) -> None:
        if len({*variables, by}) != len(variables) + 1:
            raise LearnError(f"model {name}: {', '.join((*variables, by))} has a variable twice; name each once")
        self.name = name
        self.variables = tuple(variables)
        self._database = database
        names = [f"v{i}" for i in range(len(variables))]
        chosen = ", ".join(f"{variable} AS {v}" for v, variable in zip(names, variables, strict=True))
        listed = ", ".join(names)
        database.execute(
            f"CREATE MATERIALIZED VIEW {name} AS SELECT class, COFACTOR({listed}) AS f, COVAR_MATRIX({listed}) AS c "
            f"FROM (SELECT {by} AS class, {chosen} FROM {source}) WHERE class IS NOT NULL GROUP BY class"
        )
        self._view = database.view(name)
        self._version = -1
        self._moments: dict[Any, Moments] = {}

    def read(self) -> Mapping[Any, Moments]:
        """The moments of the last version by class, classes in order; the same object until there is another version.
        Classes of which each row has a NULL are left out."""
        if self._database.version != self._version:
            rows = sorted(self._view, key=lambda row: row[0])
            found = {row[0]: _moments_of(row[1:], len(self.variables)) for row in rows}
            self._moments = {value: moments for value, moments in found.items() if moments.count}
            self._version = self._database.version
        return self._moments

    def subscribe(self, callback: Callable[[], object]) -> Subscription:
        """Have ``callback`` called after every version that changes the moments."""
        return self._view.subscribe(lambda _: callback())

    def drop(self) -> None:
        """Drop the view."""
        self._database.execute(f"DROP VIEW {self.name}")


def _moments_of(row: tuple[Any, ...], m: int) -> Moments:
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
