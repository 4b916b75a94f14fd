"""Defines the catalog, which has the tables and views that SQL can name.

Defines the statements that change the catalog, such as DROP TABLE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TypeVar

from freshviews.catalog.definitions import ColumnDef, PlainView, TableDef, ViewDef
from freshviews.catalog.functions import DropFunction, FunctionDef
from freshviews.catalog.timezone import UTC, SetTimeZone
from freshviews.records import dataclass

Named = TypeVar("Named", TableDef, ViewDef, PlainView)


@dataclass(frozen=True)
class ViewDefs:
    """A CREATE MATERIALIZED VIEW: the internal views it needs, in order, and the view itself last."""

    views: tuple[ViewDef, ...]

    @property
    def view(self) -> ViewDef:
        return self.views[-1]


@dataclass(frozen=True)
class DropTable:
    name: str


@dataclass(frozen=True)
class DropView:
    """DROP VIEW of a view, plain or not. ``internal``: its internal views, dropped with it, the last created first."""

    name: str
    internal: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterView:
    """ALTER VIEW ... SET TBLPROPERTIES: the view with its new properties. Its rows do not change."""

    view: ViewDef


@dataclass(frozen=True)
class AlterTable:
    """ALTER TABLE: the table with ``added`` columns after the others, or with a wider type whose codes are the same.

    ``place``: line and column of the first added column that is NOT NULL without a DEFAULT, which existing rows cannot
    have; None if there is none.
    """

    table: TableDef
    added: int
    place: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.table.name


@dataclass(frozen=True)
class Comment:
    """COMMENT ON a table, a view or a ``column`` of one; without ``text`` the comment goes."""

    name: str
    column: str | None
    text: str | None

    @property
    def key(self) -> tuple[str, str]:
        return self.name.lower(), (self.column or "").lower()


Definition = TableDef | ViewDefs | PlainView | FunctionDef | AlterTable | AlterView | Comment | SetTimeZone
Statement = Definition | DropTable | DropView | DropFunction


@dataclass(frozen=True)
class Catalog:
    """Tables and views, immutable; keys are names in any spelling. ``views`` includes internal views; ``plain`` has the
    views that are not materialised. ``comments``: by ``Comment.key``. ``functions``: by lower-case name."""

    tables: Mapping[str, TableDef] = field(default_factory=dict)
    views: Mapping[str, ViewDef] = field(default_factory=dict)
    plain: Mapping[str, PlainView] = field(default_factory=dict)
    comments: Mapping[tuple[str, str], str] = field(default_factory=dict)
    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    timezone: str = UTC

    def named(self, name: str) -> TableDef | ViewDef | PlainView | None:
        """The table or view with this name."""
        return self.relation(name) or self.plain_view(name)

    def relation(self, name: str) -> TableDef | ViewDef | None:
        """The table or maintained view with this name."""
        return self.table(name) or self.view(name)

    @cached_property
    def _tables(self) -> Mapping[str, TableDef]:
        return _by_name(self.tables)

    @cached_property
    def _views(self) -> Mapping[str, ViewDef]:
        return _by_name(self.views)

    @cached_property
    def _plain(self) -> Mapping[str, PlainView]:
        return _by_name(self.plain)

    def table(self, name: str) -> TableDef | None:
        return self._tables.get(name.lower())

    def view(self, name: str) -> ViewDef | None:
        return self._views.get(name.lower())

    def plain_view(self, name: str) -> PlainView | None:
        return self._plain.get(name.lower())

    def as_of(self, view: PlainView) -> Catalog:
        """The catalog with the columns that tables had when a plain view was created, so its query keeps its
        meaning."""
        widths = {name.lower(): width for name, width in view.widths}
        grown = [t for t in self.tables.values() if len(t.columns) > widths.get(t.name.lower(), len(t.columns))]
        if not grown:
            return self
        before = {t.name: replace(t, columns=t.columns[: widths[t.name.lower()]]) for t in grown}
        return replace(self, tables={**self.tables, **before})

    @property
    def names(self) -> tuple[str, ...]:
        """Names that a user may write: all names except those of internal views."""
        return (*self.names_of("TABLE"), *self.names_of("VIEW"))

    def names_of(self, kind: str) -> tuple[str, ...]:
        """Names of the tables, or of the views except internal ones; ``kind``: TABLE or VIEW."""
        if kind == "TABLE":
            return tuple(table.name for table in self.tables.values() if not table.internal)
        views = (view.name for view in self.views.values() if not view.internal)
        return (*views, *(one.name for one in self.plain.values()))

    def users_of(self, name: str) -> tuple[str, ...]:
        """Views that read a relation or expand a plain view, and other tables whose foreign keys refer to it."""
        views = (
            view.name.split("#")[0]
            for view in self.views.values()
            if any(same(read, name) for read in (*view.inputs, *view.expanded))
        )
        plain = (view.name for view in self.plain.values() if any(same(read, name) for read in view.inputs))
        tables = (
            table.name
            for table in self.tables.values()
            if not same(table.name, name) and any(same(key.table, name) for key in table.foreign_keys)
        )
        return tuple(dict.fromkeys((*views, *plain, *tables)))

    def callers_of(self, function: str) -> tuple[str, ...]:
        """Views and functions that call a function."""
        views = [view.name.split("#")[0] for view in self.views.values() if function.lower() in view.functions]
        plain = [view.name for view in self.plain.values() if function.lower() in view.functions]
        functions = [one.name for one in self.functions.values() if function.lower() in one.called]
        return tuple(dict.fromkeys((*views, *plain, *functions)))

    def readers_of(self, table: TableDef, column: ColumnDef) -> tuple[str, ...]:
        """Views that name a column of a table, and plain views that read the table."""
        views = [view.name.split("#")[0] for view in self.views.values() if view.reads(table.name, column.name)]
        plain = [view.name for view in self.plain.values() if any(same(read, table.name) for read in view.inputs)]
        return tuple(dict.fromkeys((*views, *plain)))

    def internal_views_of(self, name: str) -> tuple[str, ...]:
        prefix = name.lower() + "#"
        found = [v.name for v in self.views.values() if v.internal and v.name.lower().startswith(prefix)]
        return tuple(reversed(found))

    def after(self, statement: Statement) -> Catalog:
        """Return the catalog after the statement."""
        if isinstance(statement, TableDef):
            made = replace(self, tables={**self.tables, statement.name: statement})
            # A script may create thousands of tables, so each statement extends the names.
            vars(made)["_tables"] = {**self._tables, statement.name.lower(): statement}
            return made
        if isinstance(statement, ViewDefs):
            return replace(self, views={**self.views, **{view.name: view for view in statement.views}})
        if isinstance(statement, PlainView):
            return replace(self, plain={**self.plain, statement.name: statement})
        if isinstance(statement, AlterTable):
            tables = {n: statement.table if same(n, statement.name) else one for n, one in self.tables.items()}
            return replace(self, tables=tables)
        if isinstance(statement, AlterView):
            views = {name: statement.view if same(name, statement.view.name) else v for name, v in self.views.items()}
            return replace(self, views=views)
        if isinstance(statement, Comment):
            return replace(self, comments=commented(self.comments, statement))
        if isinstance(statement, SetTimeZone):
            return replace(self, timezone=statement.zone)
        if isinstance(statement, FunctionDef | DropFunction):
            return replace(self, functions=with_function(self.functions, statement))
        comments = without_comments(self.comments, statement.name)
        if isinstance(statement, DropTable):
            return replace(self, tables=_without(self.tables, (statement.name,)), comments=comments)
        gone = (statement.name, *statement.internal)
        return replace(self, comments=comments, views=_without(self.views, gone), plain=_without(self.plain, gone))


def with_function(
    functions: Mapping[str, FunctionDef], statement: FunctionDef | DropFunction
) -> dict[str, FunctionDef]:
    """The functions with one more, or one less; each comes after those that it calls."""
    others = {name: one for name, one in functions.items() if name != statement.name.lower()}
    return {**others, statement.name.lower(): statement} if isinstance(statement, FunctionDef) else others


def commented(comments: Mapping[tuple[str, str], str], comment: Comment) -> dict[tuple[str, str], str]:
    """The comments with one more, or one less."""
    others = {key: text for key, text in comments.items() if key != comment.key}
    return others if comment.text is None else {**others, comment.key: comment.text}


def without_comments(comments: Mapping[tuple[str, str], str], name: str) -> dict[tuple[str, str], str]:
    """The comments without those of a table or view that is dropped."""
    return {key: text for key, text in comments.items() if key[0] != name.lower()}


def same(one: str, other: str) -> bool:
    """True if two names are equal as SQL compares them."""
    return one.lower() == other.lower()


def near(name: str, known: Iterable[str]) -> str:
    """``; did you mean a, b?`` for the known names closest to a misspelt one; if none is close, all names, up to 12."""
    spelling = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), spelling, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {', '.join(spelling[one] for one in close)}?"
    if spelling and len(spelling) <= 12:
        return f"; there are {', '.join(spelling.values())}"
    return ""


def unknown(kind: str, name: str, known: Iterable[str], table: str = "") -> str:
    """The error text for an unknown table, view or column (of ``table``), with the most similar known names."""
    return f"unknown {kind} {table and table + '.'}{name}{near(name, known)}"


def column_named(columns: Iterable[ColumnDef], name: str) -> ColumnDef | None:
    wanted = name.lower()
    return next((column for column in columns if column.name.lower() == wanted), None)


def _by_name(definitions: Mapping[str, Named]) -> dict[str, Named]:
    return {one.name.lower(): one for one in definitions.values()}


def _without(definitions: Mapping[str, Named], names: tuple[str, ...]) -> dict[str, Named]:
    gone = {name.lower() for name in names}
    return {name: one for name, one in definitions.items() if name.lower() not in gone}
