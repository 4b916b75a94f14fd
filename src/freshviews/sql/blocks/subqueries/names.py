"""Names of enclosing queries. A column of the query around is marked until the subquery is tied to it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from freshviews.expr.nodes import Expr, columns_of
from freshviews.sql.blocks.bound import Bound
from freshviews.sql.expressions.build import renamed
from freshviews.sql.names.scope import Scope, name_of
from freshviews.sql.text.parse import Node, SqlText

OUTER = "\x1eouter"


@dataclass(frozen=True)
class Names:
    """Name resolution in a WHERE: names of its FROM first, then marked names of the enclosing query."""

    text: SqlText
    scope: Scope
    around: Names | None = None

    def __call__(self, column: exp.Column) -> Expr:
        """Resolve a name. Raises SqlError if it is unknown or ambiguous."""
        if self.around is None or self.scope.has(column):
            return self.scope.resolve(self.text, column)
        if self.around.has(column):
            return renamed(self.around(column), lambda name: OUTER + name)
        return self.scope.resolve(self.text, column, self.around.known(column))

    def has(self, column: exp.Column) -> bool:
        """True if a name belongs to one of these queries or their tables."""
        return self.scope.has(column) or (self.around is not None and self.around.has(column))

    def known(self, column: exp.Column) -> tuple[str, ...]:
        """Candidates for a misspelt name: tables if it is qualified, else columns."""
        further = () if self.around is None else self.around.known(column)
        return (*self.scope.known(column), *further)


def names_around(bound: Bound) -> list[str]:
    """The columns of the enclosing query that a subquery's predicates contain."""
    outer = [other for select in bound.selects for absent in select.absent for _, other in absent.pairs]
    return [name for expr in (*(c for s in bound.selects for c in s.conjuncts), *outer) for name in marks(expr)]


def check_own(text: SqlText, bound: Bound, query: Node) -> None:
    """Raise UnsupportedSql where a subquery that becomes an internal view names a column of the enclosing query."""
    marked = names_around(bound)
    if marked:
        raise text.unsupported(
            query,
            f"a column of the query around, {name_of(marked[0])}, in a subquery that groups or is a set operation",
            "group in a subquery of FROM, and join it",
        )


def marks(expr: Expr) -> tuple[str, ...]:
    """The marked columns of the enclosing query in an expression."""
    return tuple(name for name in columns_of(expr) if name.startswith(OUTER))


def is_marked(expr: Expr) -> bool:
    return bool(marks(expr))


def unmarked(expr: Expr) -> Expr:
    return renamed(expr, lambda name: name.removeprefix(OUTER))
