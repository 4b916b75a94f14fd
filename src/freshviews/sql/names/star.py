"""Expands ``*``, ``table.*`` and ``* EXCEPT (columns)`` in a SELECT list."""

from __future__ import annotations

from sqlglot import exp

from freshviews.catalog.catalog import unknown
from freshviews.sql.names.scope import Entry, Scope
from freshviews.sql.text.parse import Node, SqlText


def is_star(node: Node) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def columns_of(text: SqlText, node: Node, scope: Scope) -> tuple[Entry, ...]:
    """The columns of FROM that a star denotes. Raises SqlError if EXCEPT names an unknown column."""
    star = node.this if isinstance(node, exp.Column) else node
    table = node.table if isinstance(node, exp.Column) else ""
    if star.args.get("replace") or star.args.get("rename"):
        raise text.unsupported(node, "* REPLACE", "* and * EXCEPT (columns) are accepted")
    found = scope.star(text, node, table)
    for column in star.args.get("except_") or ():
        if not isinstance(column, exp.Column):
            raise text.error(column, "* EXCEPT takes names of columns, as in * EXCEPT (a, b)")
        if not any(e.name.lower() == column.name.lower() for e in found):
            raise text.error(column, unknown("column", column.name, (e.name for e in found)))
        found = tuple(e for e in found if e.name.lower() != column.name.lower())
    return found
