"""Resolves names in a subquery that denote columns of the queries around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from freshviews.expr.nodes import Expr
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import Select
from freshviews.sql.names.marks import marked
from freshviews.sql.names.scope import Entry, Scope
from freshviews.sql.text.parse import Node, SqlText

Domain = Callable[[tuple[Expr, ...]], Select]
"""A superset of the distinct values of columns in the rows of a query."""


@dataclass(frozen=True)
class Names:
    """The names of enclosing queries that a subquery may use.

    ``scope``: the names of the nearest enclosing query; its ``outer`` has those further out. ``domain``: the values of
    its columns.
    """

    text: SqlText
    scope: Scope
    domain: Domain

    def __call__(self, column: exp.Column) -> Expr:
        """Resolve a name in the enclosing query. Raises SqlError if it is unknown or ambiguous."""
        return self.scope.resolve(self.text, column)

    def has(self, column: exp.Column) -> bool:
        """True if a name belongs to one of these queries or their tables."""
        return self.scope.has(column) or (self.scope.outer is not None and self.scope.outer.has(column))

    def known(self, column: exp.Column) -> tuple[str, ...]:
        """Candidates for a misspelt name: tables if it is qualified, else columns."""
        further = () if self.scope.outer is None else self.scope.outer.known(column)
        return (*self.scope.known(column), *further)

    def marked(self, column: exp.Column) -> Expr:
        """The name as the subquery sees it."""
        return marked(self(column))

    def star(self, text: SqlText, node: Node, table: str) -> tuple[Entry, ...]:
        """The columns of ``table.*``, a table of these queries, as the subquery sees them."""
        return tuple(replace(one, expr=marked(one.expr)) for one in self.scope.star(text, node, table))

    @property
    def around(self) -> Names | None:
        """The names of the next enclosing query."""
        outer = self.scope.outer
        assert outer is None or isinstance(outer, Names)
        return outer
