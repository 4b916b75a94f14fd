"""Simplifies an expression in which some columns are known to be NULL.

The columns of the right side of a LEFT JOIN are NULL where no row matches. There ``x > 1`` is never TRUE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.sql.expressions.build import FALSE, TRUE, Fault, call, null, nullable_call, retyped

Names = Callable[[str], bool]
"""True for the names of the columns that are NULL."""


def where_null(expr: Expr, is_null: Names) -> Expr:
    """The expression with NULL for these columns, folded to a literal if possible."""
    if isinstance(expr, Column):
        return null(expr.type) if is_null(expr.name) else expr
    if isinstance(expr, Literal):
        return expr
    args = tuple(where_null(arg, is_null) for arg in expr.args)
    if expr.op in ("and", "or"):
        decided = FALSE if expr.op == "and" else TRUE
        if any(isinstance(arg, Literal) and arg.value is not None and bool(arg.value) == decided.value for arg in args):
            return retyped(decided, expr.type)
    if expr.op == "coalesce":
        known = [arg for arg in args if not _is_null(arg)]
        if not known or isinstance(known[0], Literal):
            return retyped(known[0], expr.type) if known else null(expr.type)
        return replace(expr, args=tuple(known))
    if expr.op == "case":
        return _case(expr, args)
    try:
        return call(expr.op, args, expr.type)
    except Fault:
        return replace(expr, args=args)


def _case(expr: Call, args: tuple[Expr, ...]) -> Expr:
    branches = [
        (test, then)
        for test, then in zip(args[:-1:2], args[1::2], strict=True)
        if not (isinstance(test, Literal) and not test.value)
    ]
    if not branches:
        return retyped(args[-1], expr.type)
    if isinstance(branches[0][0], Literal):
        return retyped(branches[0][1], expr.type)
    return replace(expr, args=(*(arg for branch in branches for arg in branch), args[-1]))


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def is_null_at(expr: Expr, is_null: Names) -> bool:
    """True if the expression is NULL whenever these columns are."""
    return _is_null(where_null(expr, is_null))


def rejects(condition: Expr, is_null: Names) -> bool:
    """True if the condition is never TRUE when these columns are NULL."""
    return any(map(is_null, columns_of(condition))) and _never_true(where_null(condition, is_null))


def _never_true(condition: Expr) -> bool:
    if isinstance(condition, Literal):
        return not condition.value
    if not isinstance(condition, Call):
        return False
    if condition.op in ("and", "or"):
        return (any if condition.op == "and" else all)(map(_never_true, condition.args))
    return condition.op == "is_true" and _never_true(condition.args[0])


def with_nullability(expr: Expr, nullable: Mapping[str, bool]) -> Expr:
    """The expression with the given nullability of its columns."""
    if isinstance(expr, Column):
        return replace(expr, nullable=nullable.get(expr.name, expr.nullable))
    if isinstance(expr, Literal):
        return expr
    args = tuple(with_nullability(arg, nullable) for arg in expr.args)
    return replace(expr, args=args, nullable=nullable_call(expr.op, args))
