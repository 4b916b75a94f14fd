"""Views of a program: keyed stores of payloads, their orders and indexes, and tries over their rows."""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.program.payload import Component
from freshviews.types import SqlType


@dataclass(frozen=True)
class Order:
    """How the codes of a type are ordered."""

    type: SqlType
    descending: bool = False
    nulls_last: bool = False

    def __str__(self) -> str:
        # NULL is the least value where nothing is said.
        nulls = "" if self.nulls_last == self.descending else " nulls last" if self.nulls_last else " nulls first"
        return (" desc" if self.descending else "") + nulls


@dataclass(frozen=True)
class Subset:
    """A named set of rows of a view, which rows enter and leave by statements, with indexes of its own."""

    name: str
    indexes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class View:
    """A keyed store of payloads.

    ``indexes`` are tuples of key positions that loops bind. ``ordered``: the orders of the last key columns, one
    each, where the view keeps its rows in order of them within the rest of the key; ``folds``: kinds of Scan that it
    keeps, over subtrees of that order, of the last key column. ``journal``: old payloads are kept during a batch, so
    that the change can be read off. ``tally`` names the component, the last, that does not count for a row's presence:
    it goes where the others are zero. ``definition`` is for EXPLAIN.
    """

    name: str
    key: tuple[str, ...]
    components: tuple[Component, ...]
    indexes: tuple[tuple[int, ...], ...] = ()
    ordered: tuple[Order, ...] = ()
    folds: tuple[str, ...] = ()
    journal: bool = False
    definition: str = ""
    subsets: tuple[Subset, ...] = ()
    tally: str = ""

    def place_of_index(self, bound: tuple[int, ...], among: str = "") -> int:
        """Which of all indexes of the view, those of every row first, one is."""
        if not among:
            return self.indexes.index(bound)
        first = len(self.indexes)
        for subset in self.subsets:
            if subset.name == among:
                return first + subset.indexes.index(bound)
            first += len(subset.indexes)
        raise ValueError(f"view {self.name} has no subset {among}")

    def component(self, name: str) -> Component:
        return next(c for c in self.components if c.name == name)


@dataclass(frozen=True)
class Trie:
    """The rows of a view in order of its key, whose positions come in this ``order``; made when it is needed."""

    name: str
    view: str
    order: tuple[int, ...]
