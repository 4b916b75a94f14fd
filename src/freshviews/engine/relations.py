"""What the engine knows of each table and view while the database is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakSet

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.window import PROPERTY
from freshviews.engine.change import Subscription
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.decoding import Decoder
from freshviews.engine.codes.encoding import TableEncoder
from freshviews.engine.commit.failures import contents_of
from freshviews.engine.reading import Reader, drain_all
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.tables.foreign_keys import Link
from freshviews.engine.views.maintained import Maintained
from freshviews.errors import EvaluationError


@dataclass(eq=False)
class TableState:
    """A base table. ``number`` counts the tables ever made, so that a name used again is another table."""

    definition: TableDef
    number: int
    encoder: TableEncoder
    decoder: Decoder
    stored: BaseTable | None
    """None where the table is trusted."""
    foreign: tuple[Link, ...] = ()
    """Foreign keys of this table."""
    links: tuple[Link, ...] = ()
    """Foreign keys of this table and of others that refer to it."""
    written: bool = False
    """Whether any row ever came."""
    downstream: tuple[ViewState, ...] = ()
    """The views that a change can reach, each after its inputs."""
    readers: WeakSet[Reader] = field(default_factory=WeakSet)
    updates: int = 0
    seconds: float = 0.0
    closed: bool = False
    held: Any = None
    """The rows in the table's window; see ``freshviews.engine.tables.window``."""
    changes_of: ClassVar[str] = "table"
    """What an error calls it, before its name."""

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def has_window(self) -> bool:
        """Whether rows leave by themselves; see ``freshviews.engine.tables.window``."""
        return PROPERTY in dict(self.definition.properties)

    @property
    def is_stored(self) -> bool:
        """Whether the rows can be read: those of a trusted table are not kept."""
        return self.stored is not None

    def batches(self, rows: int) -> Iterator[CodeBatch]:
        """The stored rows with multiplicities."""
        assert self.stored is not None
        return self.stored.batches(rows)

    def stats(self) -> dict[str, Any]:
        stored = self.stored
        return {
            "rows": None if stored is None else stored.rows,
            "bytes": 0 if stored is None else stored.bytes,
            "updates": self.updates,
            "seconds": self.seconds,
        }

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.stored is not None:
                self.stored.close()


@dataclass(eq=False)
class ViewState:
    """A view, public or internal."""

    definition: ViewDef
    maintained: Maintained
    decoder: Decoder
    dependents: tuple[ViewState, ...] = ()
    """Views that read this one."""
    is_stored: bool = True
    measured: bool = False
    """Whether its tables' first updates have been looked at."""
    subscriptions: list[Subscription] = field(default_factory=list)
    followers: int = 0
    """Those who read the change of each update; see ``in_order``."""
    readers: WeakSet[Reader] = field(default_factory=WeakSet)
    updates: int = 0
    seconds: float = 0.0
    closed: bool = False
    changes_of: ClassVar[str] = "change of view"

    @property
    def name(self) -> str:
        return self.definition.name

    def batches(self, rows: int) -> Iterator[CodeBatch]:
        """The contents with multiplicities. EvaluationError where an output column cannot be computed."""
        return contents_of(self.maintained, rows)

    def want_change(self) -> None:
        """Have changes kept while somebody takes them, or while taking one is what finds an error."""
        wanted = bool(self.dependents or self.subscriptions or self.followers) or self.maintained.may_fail_in_output
        if self.maintained.wants_change != wanted:
            self.maintained.wants_change = wanted

    def take_over(self, other: ViewState) -> None:
        """Go on as another view of the same rows; the other gets what kept this one."""
        self.definition, other.definition = other.definition, self.definition
        self.maintained, other.maintained = other.maintained, self.maintained

    def stats(self) -> dict[str, Any]:
        try:
            rows: int | None = sum(int(batch.multiplicities.sum()) for batch in self.batches(1 << 16))
        except EvaluationError:
            rows = None
        return {
            "rows": rows,
            "bytes": self.maintained.bytes(),
            "strategy": ", ".join(self.maintained.strategies),
            "updates": self.updates,
            "seconds": self.seconds,
        }

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.maintained.close()


Relation = TableState | ViewState


@dataclass(frozen=True)
class Relations:
    """All tables and views, by lower-case name, in order of creation: a view comes after its inputs."""

    tables: Mapping[str, TableState] = field(default_factory=dict)
    views: Mapping[str, ViewState] = field(default_factory=dict)
    made: int = 0
    """Tables ever made."""

    def get(self, name: str) -> Relation | None:
        key = name.lower()
        return self.tables.get(key) or self.views.get(key)

    @property
    def catalog(self) -> Catalog:
        """The definitions, for SQL to be read against."""
        return Catalog(
            {table.name: table.definition for table in self.tables.values()},
            {view.name: view.definition for view in self.views.values()},
        )

    def close(self) -> None:
        """Close every relation, views before what they read; open readers take their rows first."""
        everything: list[Relation] = [*self.tables.values(), *self.views.values()]
        for one in everything:
            drain_all(one.readers)
        for one in reversed(everything):
            one.close()

    def connect(self, everything: bool) -> None:
        """Work out, for every relation, who reads it and what of it must be encoded and kept.

        ``everything``: encode every column of trusted tables too, not just what views read.
        """
        views = list(self.views.values())
        for view in views:
            view.dependents = tuple(v for v in views if _reads(v, view.name))
            view.want_change()
        links = [link for table in self.tables.values() for link in table.foreign]
        for table in self.tables.values():
            table.links = tuple(one for one in links if table.name in (one.child, one.parent))
            reached = {table.name.lower()}
            downstream = []
            for view in views:
                if any(name.lower() in reached for name in view.maintained.inputs):
                    reached.add(view.name.lower())
                    downstream.append(view)
            table.downstream = tuple(downstream)
            if table.stored is None and not everything:
                readers = [v for v in downstream if _reads(v, table.name)]
                table.encoder.want(frozenset[str]().union(*(v.maintained.needed(table.name) for v in readers)))


def _reads(view: ViewState, name: str) -> bool:
    return any(read.lower() == name.lower() for read in view.maintained.inputs)
