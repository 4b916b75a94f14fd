"""Reads the moments for a regression over numbers and categories: counts, means and sums of products.

The moments come from views grouped by the categories. Each value of a category is a variable that is 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshviews import arguments
from freshviews.engine.change import Subscription
from freshviews.engine.database import Database
from freshviews.learn.counts import Counts, CountsView
from freshviews.learn.kept_view import KeptView, LearnError, check_model, numbered
from freshviews.learn.moments import Moments, Vector, moments_of
from freshviews.records import dataclass
from freshviews.types import arrow_compute as pc

MOST = 11
"""Maximum number of categories: 12 have 66 pairs, and 64 grouping sets are accepted."""


@dataclass(frozen=True)
class EncodedMoments(Moments):
    """The moments of the features, of each value of each category, and of the target, in this order.

    Each value of a category is a variable of 0 or 1. Its products with other variables are sums and counts of groups:
    the sum of x over the rows with ``city = 'Oslo'``, the number of rows with ``city = 'Oslo'`` and ``kind = 'flat'``.
    So one view groups by nothing and by each category (GROUPING SETS, docs/sql.md), and another view by each pair of
    categories. Pairs have a separate view because they need only a count, while the size of a cofactor is the square of
    the number of features. Source: the generalised cofactor of F-IVM (Nikolic and Olteanu, SIGMOD 2018); see
    docs/rings.md.

    Attributes
    ----------
    count, mean, scatter, products
        As of ``Moments``; each value of a category is a variable of 0 or 1.
    values
        For each category an Arrow array of the values that occur, in ascending order.

    Examples
    --------
    >>> moments = learn.EncodedMomentsView(db, "flats", ["area"], ["city"], "price", "prices").read()
    >>> moments.values[0].to_pylist(), moments.mean
    (['Oslo', 'Rome'], array([ 60. ,   0.5,   0.5, 300. ]))
    """

    values: tuple[pa.Array, ...]


class EncodedMomentsView(KeptView):
    """A view from which the moments of features, values of categories and a target are computed.

    It has the cofactors by value; of two or more categories, a second view, ``name_pairs``, counts how often each two
    values meet. Rows where a feature, a category or the target is NULL do not count. The join is not stored.

    Parameters
    ----------
    database
        The database that has the tables.
    source
        Text after FROM: a table, a view, or a join, possibly with WHERE.
    features
        Columns or other numeric expressions of SQL.
    categories
        Columns or expressions of any type, 1 to 11.
    target
        Column or other numeric expression of SQL.
    name
        Name of the view to create.

    Raises
    ------
    LearnError
        There are fewer or more categories, or a variable is given twice; else as ``Database.execute``.

    Examples
    --------
    >>> view = learn.EncodedMomentsView(db, "flats", ["area"], ["city", "kind"], "price", "prices")
    >>> view.read().count
    6
    """

    def __init__(
        self,
        database: Database,
        source: str,
        features: Sequence[str],
        categories: Sequence[str],
        target: str,
        name: str,
    ) -> None:
        check_model(database, name, source, features, categories, texts=(target,))
        if not 1 <= len(categories) <= MOST:
            raise LearnError(f"model {name} has {len(categories)} categories; 1 to {MOST} are accepted")
        groups, grouped = numbered(categories, "c")
        numbers, chosen = numbered((*features, target), "x")
        known = " AND ".join(f"{one} IS NOT NULL" for one in (*groups, *numbers))
        listed, counted = ", ".join(numbers), f"(SELECT {grouped}, {chosen} FROM {source}) WHERE {known}"
        select = (
            f"SELECT {', '.join(groups)}, GROUPING_ID({', '.join(groups)}) AS absent, "
            f"COFACTOR({listed}) AS f, COVAR_MATRIX({listed}) AS c "
            f"FROM {counted} GROUP BY GROUPING SETS ((), {', '.join(f'({one})' for one in groups)})"
        )
        super().__init__(database, name, (*features, *categories, target), select)
        self.features = tuple(features)
        self.categories = tuple(categories)
        self._pairs: CountsView | None = None
        if len(groups) > 1:
            try:
                self._pairs = CountsView(database, counted, groups, f"{name}_pairs")
            except BaseException:
                super().drop()
                raise
        self._version = -1
        self._moments: EncodedMoments | None = None

    def check(self) -> None:
        """Raise the error that reading one of the views would raise.

        Raises
        ------
        FreshviewsError
            The database is closed.
        CatalogError
            A view was dropped.

        Examples
        --------
        >>> view.check()
        """
        super().check()
        if self._pairs is not None:
            self._pairs.check()

    def read(self) -> EncodedMoments:
        """Read the moments of the last version.

        Returns
        -------
        EncodedMoments
            The same object until there is another version.

        Examples
        --------
        >>> [values.to_pylist() for values in view.read().values]
        [['Oslo', 'Rome'], ['flat', 'loft']]
        """
        if self._moments is None or self.version != self._version:
            with self._database.at_one_version() as version:
                table, pairs = self._view.to_arrow(), None if self._pairs is None else self._pairs.read()
            self._version, self._moments = version, self._read(table, pairs)
        return self._moments

    def subscribe(self, callback: Callable[[], object]) -> Subscription:
        """Call a function after every version that changes one of the views or both, once.

        Parameters
        ----------
        callback
            Function without parameters.

        Returns
        -------
        Subscription
            Call it to end the subscription.

        Raises
        ------
        ArgumentError
            ``callback`` cannot be called.

        Examples
        --------
        >>> subscription = view.subscribe(lambda: print("changed"))
        >>> version = db.insert("flats", [("Oslo", "loft", 2, 45.0, 260.0)])
        changed
        """
        arguments.function(f"view {self.name}: callback", callback)
        last = -1

        def once() -> None:
            nonlocal last
            if self._database.version != last:
                last = self._database.version
                callback()

        views = [super().subscribe(once), *([] if self._pairs is None else [self._pairs.subscribe(once)])]

        def end(_: Subscription) -> None:
            for one in views:
                one.unsubscribe()

        return Subscription(lambda _: once(), end)

    def drop(self) -> None:
        """Drop the views.

        Examples
        --------
        >>> view.drop()
        """
        super().drop()
        if self._pairs is not None:
            self._pairs.drop()

    def _read(self, table: pa.Table, pairs: Counts | None) -> EncodedMoments:
        width, first = len(self.features) + 1, len(self.categories) + 1
        whole = self._rows(table, 2 ** len(self.categories) - 1)
        # Without rows there is no group, not even that of all rows.
        row = [c[0].as_py() for c in whole.columns[first:]] if len(whole) else [0] * (table.num_columns - first)
        numbers = moments_of(tuple(row), width)
        by_value = [self._by_value(table, place) for place in range(len(self.categories))]
        values = tuple(rows.column(place).combine_chunks() for place, rows in enumerate(by_value))
        groups = pa.concat_tables(by_value)
        counts = groups.column(first).to_numpy()
        sums, centred = np.zeros((2, len(counts), width))
        for x in range(width):
            sums[:, x], centred[:, x] = _centred(groups.column(first + 1 + x), counts, row[1 + x], numbers.count)
        met = _pair_counts(values, counts, pairs)
        share = counts / max(numbers.count, 1)
        return EncodedMoments(
            numbers.count,
            np.concatenate([numbers.mean[:-1], share, numbers.mean[-1:]]),
            _symmetric_matrix(numbers.scatter, centred, met - np.outer(counts, share)),
            _symmetric_matrix(numbers.products, sums, met),
            values,
        )

    def _rows(self, table: pa.Table, absent: int) -> pa.Table:
        """The rows of a set, by the bits of the categories that it does not group by."""
        return table.filter(pc.equal(table.column("absent"), absent))

    def _by_value(self, table: pa.Table, place: int) -> pa.Table:
        """The rows of the values of a category, in the order of the values."""
        last = len(self.categories) - 1
        rows = self._rows(table, 2 ** (last + 1) - 1 - 2 ** (last - place))
        return rows.take(pc.array_sort_indices(rows.column(place).combine_chunks()))


def _pair_counts(values: Sequence[pa.Array], counts: NDArray[np.int64], pairs: Counts | None) -> Vector:
    """The counts of pairs of values, shape (values, values); on the diagonal, the count of each value."""
    met = np.diag(counts.astype(np.float64))
    starts = np.cumsum([0, *map(len, values)])
    for of, pair in ({} if pairs is None else pairs.pairs).items():
        left, right = (
            starts[place] + pc.index_in(pa.array(there, values[place].type), value_set=values[place]).to_numpy()[among]
            for place, there, among in zip(of, pair.values, (pair.left, pair.right), strict=True)
        )
        met[left, right] = met[right, left] = pair.counts
    return met


def _centred(
    column: pa.ChunkedArray, counts: NDArray[np.int64], total: Any, count: int
) -> tuple[Vector | list[float], Vector | list[float]]:
    """Sums of a variable by value, and the sums of its distances from its mean, ``total / count``.

    Where all features and the target are integers or decimals, they are exact and rounded once.
    """
    if pa.types.is_floating(column.type):
        sums: Vector = column.to_numpy()
        return sums, sums - counts * ((total or 0.0) / max(count, 1))
    exact = [Decimal(one) for one in column.to_pylist()]
    # A product of a sum and a count has at most 38 digits.
    with localcontext(Context(prec=80)):
        pairs = zip(exact, counts.tolist(), strict=True)
        return [float(one) for one in exact], [float((one * count - total * n) / count) for one, n in pairs]


def _symmetric_matrix(numbers: Vector, beside: Vector, values: Vector) -> Vector:
    """The symmetric matrix of features, values and target, in this order. ``numbers``: the part of the features and the
    target. ``values``: that of the values. ``beside``: shape (values, features and target)."""
    return np.block(
        [
            [numbers[:-1, :-1], beside[:, :-1].T, numbers[:-1, -1:]],
            [beside[:, :-1], values, beside[:, -1:]],
            [numbers[-1:, :-1], beside[:, -1:].T, numbers[-1:, -1:]],
        ]
    )
