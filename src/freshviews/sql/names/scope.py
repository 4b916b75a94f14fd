"""Resolves column names to expressions over the tables, views and subqueries of FROM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from freshviews.catalog.catalog import near, same, unknown
from freshviews.catalog.definitions import ColumnDef
from freshviews.expr.nodes import Column, Expr
from freshviews.records import dataclass
from freshviews.sql.expressions.build import nodes_of, refined
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.pipes import POSITION, is_position, wrong_position
from freshviews.sql.text.refuse import REFUSED_FUNCTIONS, WITHOUT_PARENTHESES

_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class Source:
    """One occurrence of a relation in a join, in which ``alias`` is unique."""

    alias: str
    relation: str
    columns: tuple[ColumnDef, ...]

    def column(self, definition: ColumnDef) -> Column:
        return Column(self.alias + _SEPARATOR + definition.name, definition.type, definition.nullable)


def alias_of(column_key: str) -> str:
    """The alias of the source that a column key belongs to."""
    return column_key.split(_SEPARATOR, 1)[0]


def name_of(column_key: str) -> str:
    """The relation's own name of the column."""
    return column_key.split(_SEPARATOR, 1)[1]


def aliases_in(expr: Expr) -> frozenset[str]:
    """The sources that an expression reads."""
    return frozenset(alias_of(n.name) for n in nodes_of(expr) if isinstance(n, Column))


@dataclass(frozen=True)
class Entry:
    """A column that a query may name: its table alias, its name, its value."""

    alias: str
    name: str
    expr: Expr


class Outer(Protocol):
    """The names of the queries that enclose a subquery."""

    def has(self, column: exp.Column) -> bool: ...

    def known(self, column: exp.Column) -> tuple[str, ...]: ...

    def marked(self, column: exp.Column) -> Expr: ...

    def star(self, text: SqlText, node: Node, table: str) -> tuple[Entry, ...]: ...


@dataclass(frozen=True)
class Scope:
    """The columns of a FROM clause.

    ``entries``: all columns. ``visible``: the columns that ``*`` and unqualified names denote, in order; of two columns
    joined by USING or NATURAL only the first. ``aliases``: columns of the SELECT list that a name denotes if FROM has
    no such name. ``outer``: the names of the enclosing queries, for a name that is none of the others.
    """

    entries: tuple[Entry, ...] = ()
    visible: tuple[Entry, ...] = ()
    aliases: Mapping[str, Expr] = field(default_factory=dict)
    outer: Outer | None = None

    @cached_property
    def _visible_by_name(self) -> Mapping[str, list[Entry]]:
        """The visible columns by name in lower case."""
        found: dict[str, list[Entry]] = {}
        for entry in self.visible:
            found.setdefault(entry.name.lower(), []).append(entry)
        return found

    @cached_property
    def _by_table(self) -> Mapping[str, dict[str, list[Entry]]]:
        """All columns by table and name in lower case."""
        found: dict[str, dict[str, list[Entry]]] = {}
        for entry in self.entries:
            found.setdefault(entry.alias.lower(), {}).setdefault(entry.name.lower(), []).append(entry)
        return found

    def named(self, name: str, table: str = "") -> list[Entry]:
        """The columns that a name denotes: in a table, or unqualified."""
        if table:
            return self._by_table.get(table.lower(), {}).get(name.lower(), [])
        return self._visible_by_name.get(name.lower(), [])

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.alias for entry in self.entries if entry.alias))

    def beside(self, other: Scope) -> Scope:
        entries, visible = (*self.entries, *other.entries), (*self.visible, *other.visible)
        return Scope(entries, visible, outer=self.outer or other.outer)

    def merging(self, other: Scope, first: Iterable[Entry]) -> Scope:
        """The scope of a join USING the names of ``first``: each name once, in front."""
        first = tuple(first)
        shared = {entry.name.lower() for entry in first}
        left = [e for e in self.visible if e.name.lower() not in shared]
        right = [e for e in other.visible if e.name.lower() not in shared]
        return Scope((*self.entries, *other.entries), (*first, *left, *right), outer=self.outer or other.outer)

    def with_aliases(self, aliases: Mapping[str, Expr]) -> Scope:
        return replace(self, aliases=aliases)

    def knowing(self, never_null: frozenset[str]) -> Scope:
        """The scope, given that WHERE and ON exclude NULL from some columns."""

        return self.mapped(lambda expr: refined(expr, never_null))

    def mapped(self, to: Callable[[Expr], Expr]) -> Scope:
        """The scope with ``to`` applied to the expression of each column."""

        def now(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
            return tuple(replace(e, expr=to(e.expr)) for e in entries)

        return Scope(now(self.entries), now(self.visible), self.aliases, self.outer)

    def find(self, node: exp.Column) -> Entry | None:
        """The column of FROM that a name denotes; None if there is none or several."""
        if is_position(node):
            return self.at(node)
        found = self.named(node.name, node.table)
        return found[0] if len(found) == 1 else None

    def at(self, node: exp.Column) -> Entry | None:
        """The column of ``*`` whose position a node has; None if there is none."""
        place = int(node.name.removeprefix(POSITION))
        return self.visible[place - 1] if 1 <= place <= len(self.visible) else None

    def has(self, node: exp.Column) -> bool:
        """True if FROM has a column or table of this name, so that outer scopes are not searched."""
        if is_position(node):
            return True
        if node.table:
            return any(same(entry.alias, node.table) for entry in self.entries)
        return any(same(entry.name, node.name) for entry in self.visible)

    def known(self, node: exp.Column) -> tuple[str, ...]:
        """Candidates for a misspelt name: tables if it is qualified, else columns."""
        return self.tables if node.table else (*(entry.name for entry in self.visible), *self.aliases)

    def resolve(self, text: SqlText, node: exp.Column, further: Iterable[str] = ()) -> Expr:
        """The value of a name. Raises SqlError if it is unknown or ambiguous.

        ``further``: more candidates for the suggestion in the error.
        """
        name, table, outer = node.name, node.table, self.outer
        if outer is not None and not self.has(node):
            if (table or name.lower() not in self.aliases) and outer.has(node):
                return outer.marked(node)
            further = (*further, *outer.known(node))
        if is_position(node):
            entry = self.at(node)
            if entry is None:
                raise text.error(node, wrong_position(int(name.removeprefix(POSITION)), len(self.visible)))
            return entry.expr
        if node.args.get("db") is not None:
            raise text.error(node, f"{text.of(node)}: names have the form table.column")
        if table:
            return self._qualified(text, node, table, name, further)
        found = self.named(name)
        if len(found) == 1:
            return found[0].expr
        if found:
            owners = " or ".join(f"{entry.alias}.{entry.name}" for entry in found)
            raise text.error(node, f"column {name} is ambiguous; write {owners}")
        if name.lower() in self.aliases:
            return self.aliases[name.lower()]
        if name.lower() in WITHOUT_PARENTHESES:
            raise text.unsupported(node, *REFUSED_FUNCTIONS[name.lower()])
        raise text.error(node, unknown("column", name, (*self.known(node), *further)))

    def _qualified(self, text: SqlText, node: exp.Column, table: str, name: str, further: Iterable[str]) -> Expr:
        if table.lower() not in self._by_table:
            raise text.error(node, f"unknown table {table} in {text.of(node)}{near(table, (*self.tables, *further))}")
        found = self.named(name, table)
        if len(found) > 1:
            raise text.error(
                node,
                f"column {table}.{name} is ambiguous: {table} has two columns {name}; rename one of the columns with "
                "AS",
            )
        if not found:
            known = (entry.name for entry in self.entries if same(entry.alias, table))
            raise text.error(node, unknown("column", name, known, table))
        return found[0].expr

    def star(self, text: SqlText, node: Node, table: str) -> tuple[Entry, ...]:
        """The columns of ``*`` (``table`` empty) or ``table.*``."""
        if not table:
            return self.visible
        found = tuple(entry for entry in self.entries if same(entry.alias, table))
        if not found and self.outer is not None:
            return self.outer.star(text, node, table)
        if not found:
            raise text.error(node, unknown("table", table, self.tables))
        return found


def table_scope(source: Source, names: tuple[str, ...] | None = None) -> Scope:
    """The scope of one relation; ``names`` rename its columns if the alias has a column list."""
    entries = tuple(
        Entry(source.alias, name, source.column(column))
        for column, name in zip(source.columns, names or [c.name for c in source.columns], strict=True)
    )
    return Scope(entries, entries)
