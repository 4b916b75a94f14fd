"""Rewrites comparisons with ANY and ALL as joins with an internal view.

The view has a row per k, which the subquery equates with an outer column. Without a row, ``present`` is NULL::

    x < ANY (SELECT y ...)                  LEFT JOIN (SELECT k, COUNT(y) < COUNT(*) AS nulls, MAX(y) AS extreme ...)
    WHERE x < ANY (SELECT y ...)            JOIN (SELECT k, MAX(y) AS extreme ...) ON x < extreme
    WHERE NOT x < ANY (SELECT y ...)        LEFT JOIN (SELECT k, CASE WHEN COUNT(y) = COUNT(*) THEN MAX(y) END AS
    WHERE x >= ALL (SELECT y ...)              extreme, 1 AS present ...) WHERE present IS NULL OR x >= extreme
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.blocks.bound import AggregateCall, Item, Select, aggregate_ref
from freshviews.sql.blocks.subqueries.correlation import Pair, grouped
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import FALSE, TRUE, call, null
from freshviews.types import BIGINT, BOOLEAN, INT

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


LookUp = Callable[[Select], Sequence[Expr]]
"""Looks up an internal view by its keys: returns its other columns, which are NULL if it has no row."""


def any_of_rows(
    select: Select, pairs: Sequence[Pair], left: Expr, sign: str, look_up: LookUp, wanted: bool | None
) -> Expr:
    """``left sign ANY (select)``, for a comparison other than ``=``.

    ``wanted``: return a predicate that is TRUE where this is TRUE (if True) or FALSE (if False).

    ``x < ANY`` depends on the greatest value. ``x <> ANY`` depends on whether there are several values and, if there is
    one, on this value. Both comparisons also depend on whether the subquery has any row, and any NULL.
    """
    value = select.items[0].expr
    calls = [AggregateCall(which, (value,), False, value.type) for which in _ENDS[sign]]
    ends = [aggregate_ref(i, one, True) for i, one in enumerate(calls)]
    several: Expr = FALSE
    if sign == "<>":
        several = call("is_true", (logic.compare("<>", *ends),), BOOLEAN)
    if wanted is False:
        nulls = _has_nulls(value, calls)
        extreme = Item("extreme", _unless(logic.either(nulls, several), ends[0]))
        found, present = look_up(_facts(select, pairs, calls, [extreme, Item("present", Literal(1, INT))]))
        return logic.either(call("is_null", (present,), BOOLEAN), logic.compare(OPPOSITE[sign], left, found))
    items = [Item("extreme", _unless(several, ends[0])), *([Item("several", several)] if sign == "<>" else [])]
    asks_nulls = wanted is None and (left.nullable or value.nullable)
    if asks_nulls:
        items.append(Item("nulls", _has_nulls(value, calls)))
    found, *more = look_up(_facts(select, pairs, calls, items))
    true = logic.compare(sign, left, found)
    if sign == "<>":
        apart = logic.both(call("is_not_null", (left,), BOOLEAN), more[0]) if left.nullable else more[0]
        true = logic.either(apart, true)
    if wanted:
        return true
    unknown = _unknown(more[-1], left) if asks_nulls else FALSE
    return logic.choose([(true, TRUE), (unknown, null(BOOLEAN))], FALSE)


def unknown_member(select: Select, pairs: Sequence[Pair], left: Expr, look_up: LookUp) -> Expr:
    """TRUE if ``left IN (select)`` is NULL when no row is equal."""
    calls: list[AggregateCall] = []
    items = [Item("nulls", _has_nulls(select.items[0].expr, calls))]
    return _unknown(look_up(_facts(select, pairs, calls, items))[0], left)


def _facts(select: Select, pairs: Sequence[Pair], calls: Sequence[AggregateCall], items: Sequence[Item]) -> Select:
    """One row of facts for each key that has rows; without pairs, one row over all rows."""
    return replace(grouped(select, pairs, tuple(calls), items), kind="groups")


def _has_nulls(value: Expr, calls: list[AggregateCall]) -> Expr:
    """TRUE if a value is NULL, by counts that are added to the calls."""
    if not value.nullable:
        return FALSE
    counts = [AggregateCall("count", of, False, BIGINT) for of in ((value,), ())]
    calls += counts
    return logic.compare("<", *(aggregate_ref(len(calls) - 2 + i, one, True) for i, one in enumerate(counts)))


_ENDS = {"<": ("max",), "<=": ("max",), ">": ("min",), ">=": ("min",), "<>": ("min", "max")}


def _unless(test: Expr, value: Expr) -> Expr:
    return logic.choose([(test, null(value.type))], value)


def _unknown(nulls: Expr, left: Expr) -> Expr:
    """TRUE if a comparison that is TRUE for no row is NULL for one: a row is NULL, or ``left`` is and there is a row.

    ``nulls``: TRUE if a row is NULL; NULL without rows.
    """
    if not left.nullable:
        return nulls
    open_ = logic.both(call("is_null", (left,), BOOLEAN), call("is_not_null", (nulls,), BOOLEAN))
    return logic.either(open_, nulls)
