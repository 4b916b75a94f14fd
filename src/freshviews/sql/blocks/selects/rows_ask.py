"""Which subqueries of a SELECT are values of the rows of its join, and which of its groups."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from freshviews.sql.blocks.aggregates import is_aggregate
from freshviews.sql.expressions.expression import is_asked
from freshviews.sql.text.parse import Node


def rows_ask(select: exp.Select) -> Iterator[Node]:
    """The subqueries of a SELECT that are values of the rows of its join: those in GROUP BY, in aggregate calls and
    their FILTER, and where it does not group, those of its list and of ORDER BY."""
    parts = [*select.expressions, *(select.args[clause] for clause in ("having", "order") if select.args.get(clause))]
    group = select.args.get("group")
    grouped = bool(group or select.args.get("having")) or any(_calls(part) for part in parts)
    waiting = [(part, not grouped) for part in parts] + ([] if group is None else [(group, True)])
    while waiting:
        node, of_rows = waiting.pop()
        if is_asked(node):
            if of_rows:
                yield node
            continue
        within = of_rows or is_aggregate(node) or isinstance(node, exp.Filter)
        waiting += [(inner, within) for inner in node.iter_expressions()]


def _calls(node: Node) -> bool:
    """True if an expression has an aggregate call outside of subqueries."""
    if is_aggregate(node):
        return True
    return not is_asked(node) and any(map(_calls, node.iter_expressions()))
