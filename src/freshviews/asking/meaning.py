"""Rewrites an annotated tree so that DuckDB computes what Spark means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from freshviews.asking.typing import as_node, kind_of, least_common, operand_kinds, results_of
from freshviews.sql.text.parse import Node
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, SqlType

DIVIDE, TO_INTEGER = "fv_divide", "fv_to_integer"

MACROS = (
    f"CREATE MACRO {DIVIDE}(a, b) AS "
    "CASE WHEN b = 0 AND a IS NOT NULL THEN error('division by zero') ELSE a / b END",
    f"CREATE MACRO {TO_INTEGER}(a) AS "
    "CASE WHEN regexp_full_match(a, '\\s*[+-]?[0-9]+\\s*') THEN trim(a) ELSE "
    "CASE WHEN a IS NOT NULL THEN CAST(error('''' || a || ''' is not a whole number') AS VARCHAR) END END",
)
"""Functions of DuckDB that the rewritten text calls."""


def mend(tree: Node) -> None:
    """Rewrite a tree, from its leaves to its root."""
    for node in reversed(list(tree.walk())):
        rule = _RULES.get(type(node))
        if rule is not None:
            rule(node)


def cast(node: Node, to: SqlType) -> Node:
    """The node as a value of a type, itself if it is one."""
    if kind_of(node) == to:
        return node
    made = exp.Cast(this=node, to=as_node(to))
    made.type = as_node(to)
    _to_whole(made, kind_of(node))
    return made


def _cast_in_place(parent: Node, name: str, to: SqlType) -> None:
    node = parent.args[name]
    if kind_of(node) != to:
        parent.set(name, cast(node.copy() if node.parent is not parent else node, to))


def _wrapped(node: Node, to: SqlType) -> None:
    """Cast a call, together with its OVER, FILTER and WITHIN GROUP."""
    while isinstance(node.parent, exp.Filter | exp.Window | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        if node.parent.this is not node:
            break
        node = node.parent
    place = node.parent
    made = exp.Cast(to=as_node(to))
    made.type = as_node(to)
    assert place is not None
    node.replace(made)
    made.set("this", node)


def _arithmetic(node: Node) -> None:
    found = operand_kinds(node)
    if found is None:
        _moved(node)
        return
    one, other, _ = found
    result = kind_of(node)
    if isinstance(node, exp.IntDiv):
        one, other = (kind if kind.is_decimal else BIGINT for kind in (one, other))
    if isinstance(node, exp.Div):
        _cast_in_place(node, "this", DOUBLE)
        _cast_in_place(node, "expression", DOUBLE)
        made = exp.Anonymous(this=DIVIDE, expressions=[node.this, node.expression])
        made.type = as_node(DOUBLE)
        final = made if result is None or not result.is_decimal else cast(made, result)
        node.replace(final)
        return
    _cast_in_place(node, "this", one)
    _cast_in_place(node, "expression", other)
    if result is not None and (result.is_decimal or isinstance(node, exp.IntDiv)):
        _wrapped(node, result)


def _moved(node: Node) -> None:
    """DATE + days is a DATE; a DATE and an INTERVAL of days or more is one, too."""
    kinds = [kind_of(node.this), kind_of(node.args.get("expression"))]
    if DATE in kinds and isinstance(node, exp.Add | exp.Sub):
        interval = next((one for one in (node.this, node.expression) if isinstance(one, exp.Interval)), None)
        unit = "" if interval is None or interval.args.get("unit") is None else interval.args["unit"].name.upper()
        if interval is not None and unit.rstrip("S") in ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR"):
            _wrapped(node, DATE)


def _compared(node: Node) -> None:
    sides = [node.this, node.args.get("expression")]
    if isinstance(node, exp.Between):
        names = ["this", "low", "high"]
    else:
        names = ["this", "expression"]
    sides = [node.args.get(name) for name in names]
    if any(one is None or isinstance(one, exp.Query | exp.Any | exp.All | exp.Tuple) for one in sides):
        return
    _to_common([(node, name) for name in names])


def _listed(node: Node) -> None:
    if node.args.get("query") is not None or not node.expressions or isinstance(node.this, exp.Tuple):
        return
    values = [node.this, *node.expressions]
    to = _needed(values)
    if to is not None:
        node.set("this", cast(node.this, to))
        node.set("expressions", [cast(one, to) for one in node.expressions])


def _to_common(places: list[tuple[Node, str]]) -> None:
    to = _needed([node.args[name] for node, name in places])
    if to is not None:
        for node, name in places:
            _cast_in_place(node, name, to)


def _needed(values: list[Node]) -> SqlType | None:
    """The type to which values are cast before DuckDB compares them; None if it compares them as Spark does."""
    kinds = {kind for kind in map(kind_of, values) if kind is not None}
    if len(kinds) < 2 or kinds.isdisjoint((STRING, FLOAT, BOOLEAN)):
        return None
    return least_common(values)


def _conditional(node: Node) -> None:
    to = kind_of(node)
    if to is None:
        return
    for one in results_of(node):
        if kind_of(one) not in (None, to):
            made = exp.Cast(to=as_node(to))
            made.type = as_node(to)
            one.replace(made)
            made.set("this", one)


def _total(node: Node) -> None:
    kind = kind_of(node)
    inner = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    if kind_of(inner) == STRING:
        made = exp.Cast(to=as_node(DOUBLE))
        inner.replace(made)
        made.set("this", inner)
    if kind is not None and not kind.is_float:
        _wrapped(node, kind)


def _as_kind(node: Node) -> None:
    """A call of which DuckDB's result has a wider type than Spark's."""
    kind = kind_of(node)
    if kind is not None:
        _wrapped(node, kind)


def _to_whole(node: Node, kind: SqlType | None) -> None:
    """CAST to an integer cuts the fraction off, and takes texts of digits alone."""
    to = kind_of(node.to if hasattr(node, "to") else node.args["to"])
    if to is None or not to.is_integer or kind is None:
        return
    if kind.is_float or (kind.is_decimal and kind.scale):
        node.set("this", exp.Anonymous(this="trunc", expressions=[node.this]))
    elif kind == STRING and isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        node.set("this", exp.Anonymous(this=TO_INTEGER, expressions=[node.this]))


def _cast(node: Node) -> None:
    to = kind_of(node.args["to"])
    if to is not None:
        node.set("to", as_node(to))
    _to_whole(node, kind_of(node.this))


_RULES: Mapping[type[Node], Callable[[Any], None]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), _arithmetic),
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between), _compared
    ),
    exp.In: _listed,
    **dict.fromkeys((exp.Coalesce, exp.Case, exp.If, exp.Greatest, exp.Least), _conditional),
    **dict.fromkeys((exp.Sum, exp.Avg), _total),
    **dict.fromkeys(
        (
            *(exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Week, exp.DayOfMonth, exp.DayOfWeek),
            *(exp.DayOfYear, exp.Hour, exp.Minute, exp.Second, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile),
            *(exp.Length, exp.StrPosition, exp.DateDiff, exp.Round, exp.Ceil, exp.Floor, exp.Ascii, exp.CountIf),
        ),
        _as_kind,
    ),
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
}
