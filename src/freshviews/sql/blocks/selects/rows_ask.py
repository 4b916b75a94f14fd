"""Finds what a SELECT computes once per joined row: its window functions, and the subqueries with a value per row.

In a grouped SELECT, subqueries in GROUP BY and inside aggregates have a value per row, and other subqueries a value per
group.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from sqlglot import exp

from freshviews.sql.blocks.aggregates import is_aggregate
from freshviews.sql.expressions.expression import is_subquery_value
from freshviews.sql.text.parse import Node


def subqueries_of_rows(select: exp.Select, groups: Sequence[Node]) -> Iterator[Node]:
    """The subqueries of a SELECT that are values of the rows of its join: those in GROUP BY, in aggregate calls and
    their FILTER, and, if it does not group, those of its list and of ORDER BY. ``groups``: the expressions of the list
    that GROUP BY names (``listed_groups``)."""
    clauses = [select.args.get(clause) for clause in ("having", "qualify", "order")]
    parts = [*select.expressions, *(clause for clause in clauses if clause is not None)]
    group = select.args.get("group")
    grouped = bool(group or select.args.get("having")) or any(has_call(part) for part in parts)
    named = set(map(id, groups))
    waiting = [(part, not grouped or id(part) in named) for part in parts] + ([] if group is None else [(group, True)])
    while waiting:
        node, of_rows = waiting.pop()
        if is_subquery_value(node):
            if of_rows:
                yield node
            continue
        within = of_rows or is_aggregate(node) or isinstance(node, exp.Filter)
        waiting += [(inner, within) for inner in node.iter_expressions()]


def is_all(select: exp.Select, known: Container[str]) -> bool:
    """True for GROUP BY ALL, if ALL is alone and no column of FROM and no alias has this name."""
    group = select.args.get("group")
    if group is None or len(group.expressions) != 1:
        return False
    node = group.expressions[0].unnest()
    if not isinstance(node, exp.Column) or node.table or node.name.lower() != "all" or "all" in known:
        return False
    return not any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets")) and not any(
        isinstance(one, exp.Alias) and one.alias.lower() == "all" for one in select.expressions
    )


def listed_groups(select: exp.Select, listed: Sequence[Node], known: Container[str]) -> list[Node]:
    """The expressions of the list that GROUP BY names by ALL, by number or by alias. ``listed``: the node of each
    column of the list. ``known``: the names of columns of FROM, which take precedence over aliases."""
    group = select.args.get("group")
    if group is None:
        return []
    if is_all(select, known):
        return [node for node in listed if not has_call(node)]
    aliases = {node.alias.lower(): node for node in reversed(listed) if isinstance(node, exp.Alias)}
    found: list[Node] = []
    waiting: list[tuple[Node, bool]] = [(group, True)]
    while waiting:
        node, is_whole = waiting.pop()
        if isinstance(node, exp.Literal):
            if is_whole and node.name.isdigit() and 0 < int(node.name) <= len(listed):
                found.append(listed[int(node.name) - 1])
        elif isinstance(node, exp.Column):
            name = node.name.lower()
            if not node.table and name not in known and name in aliases:
                found.append(aliases[name])
        elif not is_subquery_value(node):
            within = is_whole and isinstance(node, _OF_GROUPS)
            waiting += [(inner, within) for inner in node.iter_expressions()]
    return found


_OF_GROUPS = (exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
"""Nodes of GROUP BY around its expressions."""


def has_call(node: Node) -> bool:
    """True if an expression has an aggregate call outside of subqueries."""
    if is_aggregate(node):
        return True
    if isinstance(node, exp.Window):
        inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
        others = (part for name, value in node.args.items() if name != "this" for part in _nodes(value))
        return any(map(has_call, (*inner.expressions, *others)))
    return not is_subquery_value(node) and any(map(has_call, node.iter_expressions()))


def _nodes(value: object) -> list[Node]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Node)]


def windows_of(select: exp.Select, clauses: Sequence[str] = ("expressions", "qualify", "order")) -> list[exp.Window]:
    """The window functions of a SELECT, outside of its subqueries."""
    parts = (part for clause in clauses for part in _nodes(select.args.get(clause)))
    found = (one for part in parts for one in part.find_all(exp.Window))
    return [one for one in found if one.parent_select is select]


def within_others(windows: Sequence[exp.Window]) -> list[list[exp.Window]]:
    """The window functions that are within others, by the depth of others within them."""
    levels: dict[int, list[exp.Window]] = {}
    for one in windows:
        if isinstance(one.find_ancestor(exp.Window, exp.Select), exp.Window):
            levels.setdefault(_height(one), []).append(one)
    return [levels[height] for height in sorted(levels)]


def _height(node: Node) -> int:
    """The number of nested window functions, outside of subqueries."""
    inner = () if isinstance(node, exp.Query) else node.iter_expressions()
    return max(map(_height, inner), default=0) + isinstance(node, exp.Window)


def subqueries_within(windows: Sequence[Node]) -> list[Node]:
    """The subqueries within window functions, or within windows of the WINDOW clause."""
    waiting, found = list(windows), list[Node]()
    while waiting:
        for inner in waiting.pop().iter_expressions():
            (found if is_subquery_value(inner) and not isinstance(inner, exp.Window) else waiting).append(inner)
    return found
