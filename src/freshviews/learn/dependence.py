"""Measures how strongly categories depend on each other, and builds the Chow-Liu tree of the closest pairs.

The mutual information of two variables is ``sum p(x, y) * log(p(x, y) / (p(x) * p(y)))`` over the pairs of values, in
nats.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from freshviews.engine.database import Database
from freshviews.learn.counts import Counts, CountsView, Pair
from freshviews.learn.frames import columns_of
from freshviews.learn.kept_view import LearnError, Model, check_model
from freshviews.learn.moments import Vector
from freshviews.records import dataclass


class MutualInformation(Model):
    """The mutual information of each two of some categorical variables over a join, of the last version.

    Parameters
    ----------
    database
        The database that has the tables.
    source
        Text after FROM: a table, a view, or a join, possibly with WHERE.
    variables
        Columns or other expressions of SQL, 2 to 62.
    name
        Name of the view that the model keeps.

    Attributes
    ----------
    variables
        As given.

    Raises
    ------
    LearnError
        There are fewer or more variables, or one is given twice; else as ``Database.execute``.

    Examples
    --------
    >>> model = learn.MutualInformation(db, "flats", ["city", "kind", "rooms"], name="related")
    >>> model.matrix_.round(2)
    array([[0.69, 0.  , 0.23],
           [0.  , 0.64, 0.64],
           [0.23, 0.64, 1.33]])
    """

    def __init__(self, database: Database, source: str, variables: Sequence[str], *, name: str) -> None:
        check_model(database, name, source, variables)
        self.variables = tuple(variables)
        self._view: CountsView = CountsView(database, source, self.variables, name)
        self._counts: Counts | None = None
        self._matrix: Vector = np.zeros((0, 0))

    @property
    def matrix_(self) -> Vector:
        """Shape (variables, variables), in nats; on the diagonal, the entropy of each variable."""
        return self._solved()[1]

    def ranked(self, target: str) -> list[tuple[str, float]]:
        """Rank the other variables by their information about one.

        Parameters
        ----------
        target
            One of the variables.

        Returns
        -------
        list[tuple[str, float]]
            Pairs of a variable and its mutual information with ``target`` in nats, the greatest first.

        Raises
        ------
        LearnError
            ``target`` is none of the variables, or the join has no row in which all have a value.

        Examples
        --------
        >>> [(name, round(nats, 2)) for name, nats in model.ranked("kind")]
        [('rooms', 0.64), ('city', 0.0)]
        """
        if target not in self.variables:
            raise LearnError(
                f"model {self.name} has no variable {target}; its variables are {', '.join(self.variables)}"
            )
        row = self.matrix_[self.variables.index(target)]
        others = [(name, float(row[i])) for i, name in enumerate(self.variables) if name != target]
        return sorted(others, key=lambda one: -one[1])

    def _solved(self) -> tuple[Counts, Vector]:
        counts = self._view.read()
        if counts is not self._counts:
            self._matrix = _informations(counts, len(self.variables), self.name)
            self._counts = counts
        return counts, self._matrix


@dataclass(frozen=True)
class Edge:
    """A variable of a Chow-Liu tree that depends on another.

    Attributes
    ----------
    parent
        Name of the variable that is nearer to the root.
    child
        Name of the variable that depends on it.
    information
        Their mutual information in nats.

    Examples
    --------
    >>> tree = learn.ChowLiuTree(db, "flats", ["city", "kind", "rooms"], name="related")
    >>> [(edge.parent, edge.child) for edge in tree.edges_]
    [('city', 'rooms'), ('rooms', 'kind')]
    """

    parent: str
    child: str
    information: float


class ChowLiuTree(MutualInformation):
    """The tree of greatest information over some categorical variables, of the last version.

    Among edges of equal information, that of the variables named first is taken.

    Parameters
    ----------
    database, source, variables, name
        As of ``MutualInformation``.
    root
        Variable on top; None, the default: the first.

    Raises
    ------
    LearnError
        ``root`` is none of the variables; else as ``MutualInformation``.

    Examples
    --------
    >>> tree = learn.ChowLiuTree(db, "flats", ["city", "kind", "rooms"], name="related", root="kind")
    >>> [(edge.parent, edge.child) for edge in tree.edges_]
    [('kind', 'rooms'), ('rooms', 'city')]
    """

    def __init__(
        self, database: Database, source: str, variables: Sequence[str], *, name: str, root: str | None = None
    ) -> None:
        check_model(database, name, source, variables)
        if root is not None and root not in variables:
            raise LearnError(f"model {name}: root {root} is not one of its variables {', '.join(variables)}")
        self._root = 0 if root is None else list(variables).index(root)
        super().__init__(database, source, variables, name=name)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, each parent before its children."""
        matrix = self.matrix_
        return [
            Edge(self.variables[parent], self.variables[child], float(matrix[parent, child]))
            for parent, child in self._tree()
        ]

    def log_probability(self, frame: Any) -> Vector:
        """Compute the logarithm of the probability that the tree gives each row.

        It is the probability of the root's value, times that of each child's value where the parent has its.

        Parameters
        ----------
        frame
            DataFrame of pandas or polars, Arrow table, or mapping of names to columns.

        Returns
        -------
        numpy.ndarray
            Shape (rows,); ``-inf`` for values that never met.

        Raises
        ------
        LearnError
            ``frame`` lacks a column, or the join has no row in which all variables have a value.

        Examples
        --------
        >>> tree.log_probability({"city": ["Oslo"], "kind": ["loft"], "rooms": [1]}).round(2)
        array([-1.79])
        """
        counts, _ = self._solved()
        columns = columns_of(frame, self.variables, self.name)
        tree = self._tree()
        root = _Margin(*_side(counts, self._root, tree[0][1]))
        with np.errstate(divide="ignore"):
            found = np.log([root.of(value) / counts.count for value in columns[self._root]])
            for parent, child in tree:
                margin = _Margin(*_side(counts, parent, child))
                met = _meetings(counts, parent, child)
                pairs = zip(columns[parent], columns[child], strict=True)
                found += np.log([met.get(pair, 0) / max(margin.of(pair[0]), 1) for pair in pairs])
        return np.asarray(found, float)

    def _tree(self) -> list[tuple[int, int]]:
        """Positions of parent and child of each edge. Each next edge is the one of most information to a new
        variable."""
        matrix = self.matrix_
        inside, outside = [self._root], [i for i in range(len(self.variables)) if i != self._root]
        found: list[tuple[int, int]] = []
        while outside:
            parent, child = max(
                ((i, j) for i in sorted(inside) for j in outside), key=lambda edge: float(matrix[edge])
            )
            found.append((parent, child))
            inside.append(child)
            outside.remove(child)
        return found


class _Margin:
    """How often a variable has each of its values."""

    def __init__(self, values: Sequence[Any], places: Any, counts: Any) -> None:
        totals = np.bincount(places, weights=counts, minlength=len(values))
        self._totals: dict[Hashable, float] = dict(zip(values, totals.tolist(), strict=True))

    def of(self, value: Hashable) -> float:
        return self._totals.get(value, 0.0)


def _pair(counts: Counts, one: int, other: int) -> tuple[Pair, bool]:
    """The pair of two variables, and whether it has them in reverse order."""
    return counts.pairs[min(one, other), max(one, other)], one > other


def _side(counts: Counts, variable: int, other: int) -> tuple[Sequence[Any], Any, Any]:
    """The values of a variable, and its rows in the pair with another."""
    pair, turned = _pair(counts, variable, other)
    return pair.values[turned], pair.right if turned else pair.left, pair.counts


def _meetings(counts: Counts, parent: int, child: int) -> dict[tuple[Hashable, Hashable], int]:
    """How often each two values of parent and child occur together."""
    pair, turned = _pair(counts, parent, child)
    rows = zip(pair.left.tolist(), pair.right.tolist(), pair.counts.tolist(), strict=True)
    named = ((pair.values[0][left], pair.values[1][right], n) for left, right, n in rows)
    return {((right, left) if turned else (left, right)): n for left, right, n in named}


def _informations(counts: Counts, variables: int, name: str) -> Vector:
    if counts.count == 0:
        raise LearnError(f"model {name}: the join has no row in which all variables have a value")
    matrix = np.zeros((variables, variables))
    for (i, j), pair in counts.pairs.items():
        left, right = _totals(pair.left, pair.counts), _totals(pair.right, pair.counts)
        share = pair.counts / counts.count
        ratio = np.log(pair.counts) + np.log(counts.count) - np.log(left[pair.left]) - np.log(right[pair.right])
        # Rounding can make the information of independent variables negative.
        matrix[i, j] = matrix[j, i] = max(float(share @ ratio), 0.0)
        matrix[i, i], matrix[j, j] = _entropy(left, counts.count), _entropy(right, counts.count)
    return matrix


def _totals(places: Any, counts: Any) -> Vector:
    """The counts added up by position."""
    return np.bincount(places, weights=counts).astype(np.float64)


def _entropy(counts: Vector, total: int) -> float:
    share = counts / total
    return max(float(-(share @ np.log(share))), 0.0)
