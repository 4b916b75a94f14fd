"""Binds the expressions of a grouped SELECT, and refuses columns that are neither grouped nor aggregated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sqlglot import exp

from freshviews.errors import SqlError
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.sql.blocks.aggregates import columns_outside
from freshviews.sql.blocks.bound import Bound, Item, over_groups, ungrouped
from freshviews.sql.blocks.grouping_sets import GroupingSets
from freshviews.sql.expressions.build import key, replaced
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.names.marks import marked
from freshviews.sql.names.scope import Scope, name_of
from freshviews.sql.names.star import is_star
from freshviews.sql.text.parse import Node, SqlText


def over_groups_of(text: SqlText, expr: Expr, groups: tuple[Item, ...], node: Node, scope: Scope) -> Expr:
    """The expression over references to the groups. Raises SqlError for an ungrouped column."""
    made = over_groups(expr, groups)
    loose = ungrouped(made)
    if loose is None:
        return made
    raise _error(text, _naming(text, loose, node, scope), name_of(loose.name))


def naming_groups(bound: Bound, groups: tuple[Item, ...], refs: Sequence[Column]) -> Bound:
    """A subquery of a grouped SELECT with references in place of the groups that are expressions, whose columns alone
    are not groups. ``refs``: the references, in the order of the groups."""
    to = {
        key(marked(group.expr)): marked(ref)
        for group, ref in zip(groups, refs, strict=True)
        if not isinstance(group.expr, Column)
    }

    def named(expr: Expr) -> Expr:
        return replaced(expr, lambda part: to.get(key(part)))

    selects = tuple(select.mapped(named) for select in bound.selects)
    return replace(bound, selects=selects, nullable=None) if to else bound


def refuse_ungrouped(
    text: SqlText,
    nodes: Iterable[Node],
    groups: tuple[Item, ...],
    scope: Scope,
    sets: GroupingSets | None,
    value_of: Callable[[Node], Expr | None],
    shown: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Raise SqlError for an ungrouped column that the bound expression lacks because the value does not depend on it:
    ``COALESCE(1, b)``. ``groups``: all expressions of GROUP BY, constants included. ``shown``: names that denote a
    column of the list rather than one of FROM."""
    known = {key(group.expr) for group in groups}

    def subquery(node: Node, bind: Callable[[Node], Expr]) -> Expr:
        value = value_of(node)
        if value is None:
            raise text.error(node, "a subquery over the groups, which is not a group")
        return value

    binder = Binder(text, lambda c: scope.resolve(text, c), "SELECT", subquery=subquery)

    def is_group(part: Node) -> bool:
        if sets is not None:
            return sets.of(part, shown) is not None
        try:
            return key(binder.bind(part)) in known
        except SqlError:
            return False

    for node in nodes:
        # A column by itself is in the bound expression.
        for column in () if is_star(node) or isinstance(node.unalias(), exp.Column) else columns_outside(node):
            # Another name is an alias; its expression is checked at its own place.
            found = None if not column.table and column.name.lower() in shown else scope.find(column)
            if found is None or (sets is None and ungrouped(over_groups(found.expr, groups)) is None):
                continue
            part: Node = column
            while not is_group(part):
                if part is node or part.parent is None:
                    raise _error(text, column, found.name)
                part = part.parent


def _naming(text: SqlText, column: Column, node: Node, scope: Scope) -> Node:
    """The node that names the column."""
    for part in node.find_all(exp.Column):
        if isinstance(part.this, exp.Identifier):
            try:
                if any(n == column.name for n in _names_in(scope.resolve(text, part))):
                    return part
            except SqlError:
                continue
    return node


def _error(text: SqlText, place: Node, name: str) -> SqlError:
    return text.error(
        place,
        f"column {name} is neither in GROUP BY nor inside an aggregate function; "
        f"add it to GROUP BY, or write MIN({name})",
    )


def _names_in(expr: Expr) -> list[str]:
    if isinstance(expr, Column):
        return [expr.name]
    return [] if isinstance(expr, Literal) else [n for arg in expr.args for n in _names_in(arg)]
