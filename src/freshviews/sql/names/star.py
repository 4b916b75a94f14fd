"""Expands ``*``, ``table.*``, ``* EXCEPT (columns)`` and ``* REPLACE (value AS column)`` in a SELECT list or COUNT."""

from __future__ import annotations

from sqlglot import exp

from freshviews.catalog.catalog import unknown
from freshviews.expr.nodes import Expr
from freshviews.sql.names.scope import Entry, Scope
from freshviews.sql.text.parse import Node, SqlText


def is_star(node: Node) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def columns_of(text: SqlText, node: Node, scope: Scope) -> tuple[Entry, ...]:
    """The columns of FROM that a star denotes. Raises SqlError if EXCEPT names an unknown column."""
    star = node.this if isinstance(node, exp.Column) else node
    table = node.table if isinstance(node, exp.Column) else ""
    if star.args.get("rename"):
        raise text.unsupported(node, "* RENAME", "*, * EXCEPT (columns) and * REPLACE (value AS column) are accepted")
    found = scope.star(text, node, table)
    for column in star.args.get("except_") or ():
        if not isinstance(column, exp.Column):
            raise text.error(column, "* EXCEPT takes names of columns, as in * EXCEPT (a, b)")
        if not any(e.name.lower() == column.name.lower() for e in found):
            raise text.error(column, unknown("column", column.name, (e.name for e in found)))
        found = tuple(e for e in found if e.name.lower() != column.name.lower())
    return found


def values_of_star(text: SqlText, node: Node, scope: Scope) -> list[Expr]:
    """The columns of a star among the arguments of COUNT."""
    return [entry.expr for entry in _counted(text, node, scope)]


def _counted(text: SqlText, node: Node, scope: Scope) -> tuple[Entry, ...]:
    star = node.this if isinstance(node, exp.Column) else node
    if star.args.get("replace"):
        raise text.unsupported(node, "* REPLACE in COUNT", "*, table.* and * EXCEPT (columns) are accepted")
    return columns_of(text, node, scope)


def name_stars(text: SqlText, window: exp.Window, scope: Scope) -> None:
    """Write the columns of the stars among the arguments of COUNT(...) OVER, unless it is COUNT(*)."""
    call = window.this.this if isinstance(window.this, exp.Filter) else window.this
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "count" or call.expressions == [exp.Star()]:
        return
    distinct = call.expressions[0] if call.expressions and isinstance(call.expressions[0], exp.Distinct) else call
    named: list[Node] = []
    for argument in distinct.expressions:
        found = _counted(text, argument, scope) if is_star(argument) else None
        named += [argument] if found is None else [_column(entry, argument) for entry in found]
    distinct.set("expressions", named)


def _column(entry: Entry, star: Node) -> exp.Column:
    """The name of a column, at the place of a star."""
    table = exp.to_identifier(entry.alias, quoted=True) if entry.alias else None
    made = exp.Column(this=exp.to_identifier(entry.name, quoted=True), table=table)
    made.meta.update(star.meta)
    return made


def replacements_of(text: SqlText, node: Node, scope: Scope) -> dict[str, Node]:
    """The values of ``* REPLACE (value AS column)``, by column in lower case. Raises SqlError for an unknown column."""
    star = node.this if isinstance(node, exp.Column) else node
    written = star.args.get("replace") or ()
    known = [entry.name for entry in columns_of(text, node, scope)] if written else []
    made: dict[str, Node] = {}
    for item in written:
        if not isinstance(item, exp.Alias):
            raise text.error(item, "* REPLACE takes values with the names of columns, as in * REPLACE (a + 1 AS a)")
        if not any(name.lower() == item.alias.lower() for name in known):
            raise text.error(item, unknown("column", item.alias, known))
        made[item.alias.lower()] = item.this
    return made
