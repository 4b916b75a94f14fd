"""Scalar expressions as Python source over codes.

Strict operations become calls of ``freshviews.kernel.scalar.operations``. CASE and COALESCE become branches: an
argument that SQL does not evaluate is not evaluated. A string literal becomes a word of the state's constants, because
its code belongs to a database, not to a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshviews.codegen.writer import Writer
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.expr.ops import OPS, may_fail
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import literal_code

_NO_STRINGS = Dictionary()
_DECISIVE = {"and": 0, "or": 1}

Variable = Callable[[str], str]
"""The local variable that holds a column."""


def write_expression(writer: Writer, expr: Expr, variable: Variable) -> str:
    """Write the lines that compute an expression; return a Python expression for its code."""
    if isinstance(expr, Column):
        return variable(expr.name)
    if isinstance(expr, Literal):
        if isinstance(expr.value, str):
            return f"load(constants, {writer.constant(expr.value)})"
        return str(literal_code(expr.type, expr.value, _NO_STRINGS))
    if expr.op == "case":
        result = writer.names.fresh("case")
        _write_case(writer, expr.args, result, variable)
        return result
    if expr.op == "coalesce":
        result = writer.names.fresh("known")
        _write_coalesce(writer, expr.args, result, variable)
        return result
    op = OPS[expr.op]
    assert op.kernel is not None, f"{expr.op} is computed before compiled code"
    if expr.op in _DECISIVE and may_fail(expr.args[1]):
        # The right side is evaluated only where the left side does not decide.
        result = writer.names.fresh("decided")
        writer.line(f"{result} = {write_expression(writer, expr.args[0], variable)}")
        with writer.block(f"if {result} != {_DECISIVE[expr.op]}:"):
            right = write_expression(writer, expr.args[1], variable)
            writer.line(f"{result} = {op.kernel}({result}, {right})")
        return result
    arguments = [write_expression(writer, arg, variable) for arg in expr.args]
    if op.fallible:
        arguments.append("status")
    return f"{op.kernel}({', '.join(arguments)})"


def _write_case(writer: Writer, args: Sequence[Expr], result: str, variable: Variable) -> None:
    """Conditions and values in turn, then the value where no condition holds."""
    if len(args) == 1:
        writer.line(f"{result} = {write_expression(writer, args[0], variable)}")
        return
    condition = write_expression(writer, args[0], variable)
    with writer.block(f"if {condition} == 1:"):
        writer.line(f"{result} = {write_expression(writer, args[1], variable)}")
    with writer.block("else:"):
        _write_case(writer, args[2:], result, variable)


def _write_coalesce(writer: Writer, args: Sequence[Expr], result: str, variable: Variable) -> None:
    writer.line(f"{result} = {write_expression(writer, args[0], variable)}")
    if len(args) > 1:
        with writer.block(f"if {result} == NULL:"):
            _write_coalesce(writer, args[1:], result, variable)
