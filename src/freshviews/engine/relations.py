"""Holds the tables and views of an open database. For each relation, finds the views that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import PlainView
from freshviews.catalog.functions import FunctionDef
from freshviews.catalog.timezone import UTC
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.view_state import ViewState
from freshviews.records import dataclass

Relation = TableState | ViewState


def size_of(relation: Relation) -> int:
    """The bytes that a relation keeps."""
    return relation.bytes if isinstance(relation, TableState) else relation.maintained.bytes()


@dataclass(frozen=True)
class Relations:
    """All tables and views, by lower-case name, in order of creation: a view comes after its inputs."""

    tables: Mapping[str, TableState] = field(default_factory=dict)
    views: Mapping[str, ViewState] = field(default_factory=dict)
    made: int = 0
    """Number of tables ever made."""
    downstream: dict[TableState, tuple[ViewState, ...]] = field(default_factory=dict)
    """By table, the views that its changes can reach, each after its inputs; computed by ``connect``."""
    plain: Mapping[str, PlainView] = field(default_factory=dict)
    """Plain views, in order of creation; SQL is parsed against them."""
    comments: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The comments of tables, views and columns, by ``Comment.key``."""
    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    """The functions of users, by lower-case name."""
    timezone: str = UTC
    """The time zone of TIMESTAMP_LTZ."""

    def get(self, name: str) -> Relation | None:
        key = name.lower()
        return self.tables.get(key) or self.views.get(key)

    @property
    def catalog(self) -> Catalog:
        """The definitions against which SQL is parsed."""
        return Catalog(
            {table.name: table.definition for table in self.tables.values()},
            {view.name: view.definition for view in self.views.values()},
            {view.name: view for view in self.plain.values()},
            self.comments,
            self.functions,
            self.timezone,
        )

    def close(self) -> None:
        """Close every relation, views before their inputs; open readers take their rows first."""
        everything: list[Relation] = [*self.tables.values(), *self.views.values()]
        for one in everything:
            one.readers.drain()
        for one in reversed(everything):
            one.close()

    def connect(self, everything: bool) -> None:
        """Compute, for every relation, the views that read it and the columns that must be encoded.

        ``everything``: encode every column of trusted tables, not only columns that views read. If views pass a string
        column to text functions alone, their results are encoded and the strings are not stored.
        """
        views = list(self.views.values())
        readers: dict[str, list[ViewState]] = {}
        for view in views:
            for name in dict.fromkeys(map(str.lower, view.maintained.inputs)):
                readers.setdefault(name, []).append(view)
        for view in views:
            view.dependents = tuple(readers.get(view.name.lower(), ()))
            order = view.definition.order
            view.ordered_from = None if order is None else self.views.get((order.relation or view.name).lower())
            view.want_change()
        places = {view: place for place, view in enumerate(views)}
        links = [link for table in self.tables.values() for link in table.foreign]
        for table in self.tables.values():
            table.links = tuple(one for one in links if table.name in (one.child, one.parent))
            reading = readers.get(table.name.lower(), [])
            self.downstream[table] = _reached(reading, places)
            if table.stored is None and not everything:
                wanted = [view.maintained.wanted(table.name) for view in reading]
                functions = {name: function for _, made in wanted for name, function in made.items()}
                table.encoder.want(frozenset[str]().union(*(columns for columns, _ in wanted)), functions)


def _reached(reading: list[ViewState], places: Mapping[ViewState, int]) -> tuple[ViewState, ...]:
    """The views that a change reaches, given those that read it, each after its inputs."""
    reached: dict[ViewState, None] = {}
    left = [*reading]
    while left:
        view = left.pop()
        if view not in reached:
            reached[view] = None
            left += view.dependents
    return tuple(sorted(reached, key=places.__getitem__))
