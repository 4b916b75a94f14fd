"""Marks the columns of enclosing queries in the expressions of a subquery.

A column of the nearest enclosing query gets one mark, a column of the query around it gets two, and so on.
"""

from __future__ import annotations

from freshviews.expr.nodes import Expr, columns_of
from freshviews.sql.expressions.build import renamed

OUTER = "\x1eouter"


def marked(expr: Expr) -> Expr:
    """The expression of an enclosing query, as its subquery sees it."""
    return renamed(expr, lambda name: OUTER + name)


def unmarked(expr: Expr) -> Expr:
    """The expression as the enclosing query sees it."""
    return renamed(expr, lambda name: name.removeprefix(OUTER))


def marks(expr: Expr) -> tuple[str, ...]:
    """The marked columns in an expression."""
    return tuple(name for name in columns_of(expr) if name.startswith(OUTER))


def is_marked(expr: Expr) -> bool:
    """True if the expression names a column of an enclosing query."""
    return bool(marks(expr))
