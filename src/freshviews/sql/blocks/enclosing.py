"""Names of enclosing queries, and the values that they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from freshviews.expr.nodes import Expr
from freshviews.sql.blocks.bound import Select
from freshviews.sql.names.marks import marked
from freshviews.sql.names.scope import Scope
from freshviews.sql.text.parse import SqlText

Domain = Callable[[tuple[Expr, ...]], Select]
"""The distinct values that columns of a query have in its rows, or more than these."""


@dataclass(frozen=True)
class Names:
    """The names that a subquery may use of the queries around it.

    ``scope``: those of the enclosing query; its ``outer`` has those further around. ``domain``: the values of its
    columns.
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

    @property
    def around(self) -> Names | None:
        """The names further around."""
        outer = self.scope.outer
        assert outer is None or isinstance(outer, Names)
        return outer
