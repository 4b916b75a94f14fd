"""Counts the rows of a join by the values of two categories, for each pair of categories.

A view of the database maintains the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshviews.engine.database import Database
from freshviews.learn.kept_view import KeptView, LearnError, check_model, numbered
from freshviews.records import dataclass
from freshviews.types import arrow_compute as pc

MOST = 62
"""Maximum number of variables: each has a bit in a BIGINT."""


@dataclass(frozen=True)
class Pair:
    """The pairs of values of two variables: row k of the join's counts has ``left[k]`` and ``right[k]``, positions
    among ``values``, which occur together ``counts[k]`` times."""

    values: tuple[Sequence[Any], Sequence[Any]]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """Rows of a join as counts of categorical values: only rows in which no variable is NULL.

    Attributes
    ----------
    count
        The number of rows.
    pairs
        By positions i < j of two variables, their pairs of values: ``values``, the values of each; ``left`` and
        ``right``, positions among them; and ``counts``, the number of rows with ``left[k]`` and ``right[k]``. The three
        are arrays of shape (pairs,).

    Examples
    --------
    >>> counts = learn.CountsView(db, "flats", ["city", "kind"], "kinds").read()
    >>> counts.count, counts.pairs[0, 1].counts.tolist()
    (6, [1, 2, 1, 2])
    """

    count: int
    pairs: Mapping[tuple[int, int], Pair]


class CountsView(KeptView):
    """A view that counts, for each two of some variables, each pair of values over a join.

    The join is made once for all pairs, and is not stored (GROUPING SETS, docs/sql.md).

    Parameters
    ----------
    database
        The database that has the tables.
    source
        Text after FROM: a table, a view, or a join, possibly with WHERE.
    variables
        Columns or other expressions of SQL, 2 to 62.
    name
        Name of the view to create.

    Raises
    ------
    LearnError
        There are fewer or more variables, or one is given twice; else as ``Database.execute``.

    Examples
    --------
    >>> view = learn.CountsView(db, "flats", ["city", "kind"], "kinds")
    >>> view.read().count
    6
    """

    def __init__(self, database: Database, source: str, variables: Sequence[str], name: str) -> None:
        check_model(database, name, source, variables)
        if not 2 <= len(variables) <= MOST:
            raise LearnError(f"model {name} has {len(variables)} variables; 2 to {MOST} are needed")
        names, chosen = numbered(variables)
        known = " AND ".join(f"{v} IS NOT NULL" for v in names)
        sets = ", ".join(f"({one}, {other})" for one, other in combinations(names, 2))
        select = (
            f"SELECT {', '.join(names)}, GROUPING_ID({', '.join(names)}) AS absent, COUNT(*) AS n "
            f"FROM (SELECT {chosen} FROM {source}) WHERE {known} GROUP BY GROUPING SETS ({sets})"
        )
        super().__init__(database, name, variables, select)
        self.variables = tuple(variables)
        self._version = -1
        self._counts = Counts(0, {})

    def read(self) -> Counts:
        """Read the counts of the last version.

        Returns
        -------
        Counts
            The same object until there is another version.

        Examples
        --------
        >>> view.read().pairs[0, 1].values
        (['Oslo', 'Rome'], ['loft', 'flat'])
        """
        if self.version != self._version:
            # Taken before the view is read: a version that another thread commits meanwhile is read next time.
            self._version = self.version
            self._counts = self._read(self._view.to_arrow())
        return self._counts

    def _read(self, table: pa.Table) -> Counts:
        last = len(self.variables) - 1
        pairs: dict[tuple[int, int], Pair] = {}
        for i, j in combinations(range(len(self.variables)), 2):
            absent = 2 ** len(self.variables) - 1 - 2 ** (last - i) - 2 ** (last - j)
            rows = table.filter(pc.equal(table.column("absent"), absent))
            (one, left), (other, right) = (_value_positions(rows.column(place)) for place in (i, j))
            pairs[i, j] = Pair((one, other), left, right, rows.column("n").to_numpy())
        return Counts(int(pairs[0, 1].counts.sum()), pairs)

def _value_positions(column: pa.ChunkedArray) -> tuple[Sequence[Any], NDArray[np.int64]]:
    """The different values of a column, and the position among them of each of its values."""
    coded = column.combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)
