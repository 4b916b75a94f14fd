"""Raises the error of an expression, such as a division by zero, only if its row joins.

An expression over one table is computed before the join. If it fails, ``attempt(..)`` is NULL and ``failed(..)`` TRUE.
A group with a failed row is an error. The SELECT gets the WHERE and the aggregates below it::

    SELECT t.b, SUM(10 / t.a) FROM t JOIN u USING (a) WHERE 20 / t.a > 3 GROUP BY t.b

    WHERE failed(20 / t.a) OR attempt(20 / t.a > 3)
    SUM(attempt(10 / t.a)), COUNT(CASE WHEN failed(20 / t.a > 3) OR failed(10 / t.a) THEN true END)
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.expr.nodes import Call, Expr
from freshviews.sql.blocks.bound import AggregateCall, Select, aggregate_ref
from freshviews.sql.blocks.building.join import joins
from freshviews.sql.blocks.building.variables import is_lazy
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import TRUE, call, integer, is_guarded, nodes_of, null, replaced
from freshviews.sql.names.scope import aliases_in
from freshviews.types import BIGINT, BOOLEAN

_GREATEST = 2**63 - 1


def with_failures(select: Select) -> Select:
    """The SELECT in which failures travel with the rows; the same one if nothing fails or no row is excluded.

    A group whose count of failures is not 0 is an error. A SELECT without groups reads an internal view of the join,
    which has a column of failures. Arithmetic overflow is not delayed: it is an error when the row arrives.
    """
    if len(select.sources) == 1 and not select.absent:
        return select
    failures: dict[str, list[Expr]] = {}

    def tried(expr: Expr) -> Expr:
        if not _fails(expr):
            return expr
        aliases = aliases_in(expr)
        if len(aliases) > 1:
            assert isinstance(expr, Call)
            args = (arg if is_lazy(expr.op, i) else tried(arg) for i, arg in enumerate(expr.args))
            return replace(expr, args=tuple(args))
        failures.setdefault(next(iter(aliases), select.sources[0].alias), []).append(expr)
        return call("attempt", (expr,), expr.type)

    def passed(condition: Expr) -> Expr:
        optional = {one.alias for one in select.optional}
        compared = len(aliases_in(condition)) > 1 and (not keyed or joins(condition))
        if not _fails(condition) or compared or aliases_in(condition) & optional:
            return condition
        ranged = _ranged(condition)
        if ranged is not None:
            place, bound = ranged
            assert isinstance(condition, Call)
            made = tried(condition.args[place])
            sides = list(condition.args)
            sides[place] = call("case", (_failed(condition.args[place]), bound, made), made.type)
            return replace(condition, args=tuple(sides))
        made = tried(condition)
        attempts = [part for part in nodes_of(made) if isinstance(part, Call) and part.op == "attempt"]
        return logic.either(_any([part.args[0] for part in attempts]), made)

    keyed = any(map(joins, select.conjuncts))
    conjuncts = tuple(map(passed, select.conjuncts))
    if select.kind == "bag":
        if not failures:
            return select
        return replace(select, conjuncts=conjuncts, having=_unless(TRUE, [*map(_any, failures.values())]))
    made = replace(
        select,
        conjuncts=conjuncts,
        groups=tuple(replace(group, expr=tried(group.expr)) for group in select.groups),
        aggregates=tuple(replace(one, args=tuple(map(tried, one.args))) for one in select.aggregates),
    )
    if not failures:
        return select
    counts = [
        AggregateCall("count", (call("case", (_any(found), TRUE, null(BOOLEAN)), BOOLEAN),), False, BIGINT)
        for found in failures.values()
    ]
    refs = [aggregate_ref(i, one, True) for i, one in enumerate(counts, len(select.aggregates))]
    counted = [logic.compare("<>", ref, integer(0)) for ref in refs]
    return replace(made, aggregates=(*made.aggregates, *counts), having=_unless(select.having or TRUE, counted))


def _fails(expr: Expr) -> bool:
    """True if it may fail for a value that the join may exclude; ONLY_VALUE is computed over a source of its own."""
    if isinstance(expr, Call) and expr.op == "only_value":
        return False
    plain = replaced(expr, lambda part: part.args[0] if isinstance(part, Call) and part.op == "only_value" else None)
    return is_guarded(plain)


def _ranged(condition: Expr) -> tuple[int, Expr] | None:
    """The position of the side of a comparison that may fail, and a bound that every value of the other side passes, so
    that the comparison stays a range. None if both sides may fail, or for another condition or a type without a
    bound."""
    if not isinstance(condition, Call) or condition.op not in ("lt", "le", "gt", "ge"):
        return None
    found = [place for place, side in enumerate(condition.args) if _fails(side)]
    if len(found) != 1 or any(len(aliases_in(side)) != 1 or side.type == BOOLEAN for side in condition.args):
        return None
    (place,) = found
    below = condition.op in ("lt", "le") if place == 0 else condition.op in ("gt", "ge")
    return place, integer(-_GREATEST if below else _GREATEST)


def _failed(expr: Expr) -> Expr:
    return call("failed", (expr,), BOOLEAN)


def _any(exprs: list[Expr]) -> Expr:
    return logic.one_of([_failed(expr) for expr in dict.fromkeys(exprs)])


def _unless(condition: Expr, failed: list[Expr]) -> Expr:
    return call("unless_counted", (condition, logic.one_of(failed)), BOOLEAN)
