"""Keeps the views of an interpreted program as dicts, with indexes and subsets. Also counts the program's steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from freshviews.program.program import Program
from freshviews.program.reference.payloads import Key, Payload, Scope
from freshviews.program.results import SliceSource
from freshviews.program.statements import Body, Loop

Run = Callable[[Body, Scope], None]
"""Runs statements in a scope."""
Index = dict[Key, dict[Key, None]]
Indexes = dict[tuple[int, ...], Index]


def enter(indexes: Indexes, key: Key) -> None:
    """Enter a row into all of some indexes."""
    for at, index in indexes.items():
        index[tuple(key[i] for i in at)][key] = None


def leave(indexes: Indexes, key: Key) -> None:
    """Remove a row from all of some indexes."""
    for at, index in indexes.items():
        index[tuple(key[i] for i in at)].pop(key, None)


@dataclass
class Tables:
    """The rows of a program's views, empty at first.

    ``indexes``: by view and index, the keys of each slice. ``subsets``: the same by view and subset, for the rows that
    are in the subset. ``steps`` counts the work.
    """

    program: Program
    steps: int = field(default=0, init=False)
    views: dict[str, dict[Key, Payload]] = field(default_factory=dict, init=False)
    indexes: dict[str, Indexes] = field(default_factory=dict, init=False)
    subsets: dict[tuple[str, str], Indexes] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for view in self.program.stores:
            self.views[view.name] = {}
            self.indexes[view.name] = {positions: defaultdict(dict) for positions in view.indexes}
            for subset in view.subsets:
                self.subsets[view.name, subset.name] = {at: defaultdict(dict) for at in subset.indexes}

    def members(self, view: str, subset: str) -> set[Key]:
        """The rows of a subset of a view."""
        return {key for index in self.subsets[view, subset].values() for rows in index.values() for key in rows}

    def clear(self, view: str) -> None:
        """Remove all rows of a view."""
        self.views[view].clear()
        for index in self.indexes[view].values():
            index.clear()
        for subset in self.program.view(view).subsets:
            for index in self.subsets[view, subset.name].values():
                index.clear()

    def index(self, view: str, bound: tuple[int, ...], among: str) -> Index:
        """An index of a view, or of its subset ``among``. The view must declare it."""
        return self.subsets[view, among][bound] if among else self.indexes[view][bound]

    def slice(self, loop: Loop | SliceSource, variables: Mapping[str, int]) -> Collection[Key]:
        """The keys of the rows that a loop visits."""
        if not loop.bound and not loop.among:
            return self.views[loop.view]
        values = tuple(variables[loop.key[i]] for i in loop.bound)
        return self.index(loop.view, loop.bound, loop.among).get(values, {})
