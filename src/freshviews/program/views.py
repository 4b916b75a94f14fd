"""Defines the views of a program: their keys, payloads, orders and indexes."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from freshviews.program.payload import Component, hashed_once
from freshviews.query.block import MODES
from freshviews.records import dataclass
from freshviews.types import SqlType


@dataclass(frozen=True)
class Order:
    """The order of the codes of a type."""

    type: SqlType
    descending: bool = False
    nulls_last: bool = False

    def __str__(self) -> str:
        # By default NULL is the least value.
        nulls = "" if self.nulls_last == self.descending else " nulls last" if self.nulls_last else " nulls first"
        return (" desc" if self.descending else "") + nulls


@dataclass(frozen=True)
class Subset:
    """A named set of rows of a view, with indexes of its own. Statements move rows into it and out of it."""

    name: str
    indexes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Running:
    """Each row of a view has a value, and is selected where it is within a limit.

    The view's key has the columns of a group, then one ordered column; its components are ``rows``, ``weight``,
    ``number`` and the tally ``selected``; it has one index, by the group. ``value``: ``before``, the sum of the weights
    of the rows before the row in its group; ``through``, the same with its own weight; ``itself``, its last key column,
    or ``negated``, that times -1. ``nullable``: a sum is NULL if the numbers of its rows add up to 0 or less.
    """

    value: str
    nullable: bool

    def __str__(self) -> str:
        return f"runs {self.value}{', or NULL' if self.nullable else ''}"


@hashed_once
@dataclass(frozen=True)
class View:
    """A keyed store of payloads.

    ``indexes`` are tuples of key positions that loops bind. ``ordered``: the orders of the last key columns, one each;
    the view keeps its rows in these orders within the rest of the key. ``folds``: kinds of Scan over the last key
    column, which the view maintains in the subtrees of that order. ``sums``: components whose sums over these subtrees
    the view maintains, for RangeSum; the order is then ascending, with NULL first, unless its ranges are of places.
    ``journal``: the view records old
    payloads during a batch, from which its change is read. ``tally`` names the last component if it does not count for
    a row's presence: a row is absent if all other components are zero. ``running``: the values by which Cross selects
    rows. ``placed``: the view maintains the copies in the subtrees of its order, for Top, Numbered and Beside; its one
    component is the count. ``definition`` is for EXPLAIN.
    """

    name: str
    key: tuple[str, ...]
    components: tuple[Component, ...]
    indexes: tuple[tuple[int, ...], ...] = ()
    ordered: tuple[Order, ...] = ()
    folds: tuple[str, ...] = ()
    # Printed programs show the sums; the representation stays that of images of older versions.
    sums: tuple[str, ...] = field(default=(), repr=False)
    journal: bool = False
    definition: str = ""
    subsets: tuple[Subset, ...] = ()
    tally: str = ""
    running: Running | None = None
    placed: bool = field(default=False, repr=False)

    @property
    def orders_payloads(self) -> bool:
        """True if the subtrees of the order know more than keys: a payload that changes changes them."""
        return bool(self.sums or self.placed or set(self.folds).intersection(MODES))

    def place_of_index(self, bound: tuple[int, ...], among: str = "") -> int:
        """The number of an index among all of the view's: those over all rows first, then those of each subset."""
        if not among:
            return self.indexes.index(bound)
        first = len(self.indexes)
        for subset in self.subsets:
            if subset.name == among:
                return first + subset.indexes.index(bound)
            first += len(subset.indexes)
        raise ValueError(f"view {self.name} has no subset {among}")

    @property
    def prefix(self) -> tuple[str, ...]:
        """The key before the columns that are ordered."""
        return self.key[: len(self.key) - len(self.ordered)]

    @cached_property
    def _by_name(self) -> dict[str, Component]:
        return {component.name: component for component in self.components}

    def component(self, name: str) -> Component:
        return self._by_name[name]


@dataclass(frozen=True)
class Trie:
    """The rows of a view, sorted by its key positions in this ``order``. It is built when an evaluation needs it."""

    name: str
    view: str
    order: tuple[int, ...]
