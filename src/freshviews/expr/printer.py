"""Prints scalar expressions as text, with the usual infix operators."""

from __future__ import annotations

from freshviews.expr.nodes import WORDS, Call, Expr
from freshviews.types.python_functions import name_of

INFIX = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "null_safe_eq": "<=>",
    "eq_float": "=", "ne_float": "<>", "lt_float": "<", "le_float": "<=", "gt_float": ">", "ge_float": ">=",
    "add_int": "+", "sub_int": "-", "mul_int": "*", "add_float": "+", "sub_float": "-", "mul_float": "*",
    "div_float": "/", "and": "and", "or": "or",
}  # fmt: skip


def print_expression(expr: Expr) -> str:
    """An expression on one line."""
    return _expression(expr, nested=False)


def _expression(expr: Expr, nested: bool) -> str:
    if not isinstance(expr, Call):
        return str(expr)
    if expr.op in INFIX:
        left, right = (_expression(arg, nested=True) for arg in expr.args)
        text = f"{left} {INFIX[expr.op]} {right}"
        return f"({text})" if nested else text
    if expr.op == "unless_failed":
        return _expression(expr.args[0], nested)
    if expr.op == WORDS and len(expr.args) > 2:
        return f"{expr.op}({expr.args[0]} .. {expr.args[-1]})"
    return f"{name_of(expr.op)}({', '.join(print_expression(arg) for arg in expr.args)})"
