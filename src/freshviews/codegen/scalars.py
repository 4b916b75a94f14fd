"""Scalar expressions as Python source over codes.

Strict operations become calls of ``freshviews.kernel.scalar.operations``; CASE and COALESCE become branches, so that
what SQL does not evaluate is not evaluated. A string literal is a word of the state's constants, since its code
belongs to a database, not to a program.
"""

from __future__ import annotations

from collections.abc import Callable

from freshviews.codegen.writer import Names, Writer
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.ops import OPS, may_fail
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import literal_code

_NO_STRINGS = Dictionary()
_DECISIVE = {"and": 0, "or": 1}


class ScalarWriter:
    """Writes expressions into a function; ``constants`` collects the string literals met, ``used`` the
    kernel functions to import."""

    def __init__(self, writer: Writer, names: Names, constants: dict[str, int], used: set[str]) -> None:
        self._writer = writer
        self._names = names
        self.constants = constants
        self._used = used

    def write(self, expr: Expr, variable: Callable[[str], str]) -> str:
        """Write the lines that compute an expression; a Python expression for its code."""
        if isinstance(expr, Column):
            return variable(expr.name)
        if isinstance(expr, Literal):
            return self._literal(expr)
        if expr.op == "case":
            return self._case(expr, variable)
        if expr.op == "coalesce":
            return self._coalesce(expr, variable)
        if expr.op in _DECISIVE and may_fail(expr.args[1]):
            return self._connective(expr, variable)
        op = OPS[expr.op]
        assert op.kernel is not None, f"{expr.op} is computed before compiled code"
        arguments = [self.write(arg, variable) for arg in expr.args]
        self._used.add(op.kernel)
        if op.fallible:
            arguments.append("status")
        return f"{op.kernel}({', '.join(arguments)})"

    def _literal(self, literal: Literal) -> str:
        if isinstance(literal.value, str):
            place = self.constants.setdefault(literal.value, len(self.constants))
            return f"load(constants, {place})"
        return str(literal_code(literal.type, literal.value, _NO_STRINGS))

    def _case(self, call: Call, variable: Callable[[str], str]) -> str:
        result = self._names.fresh("case")
        self._branches(list(call.args), result, variable)
        return result

    def _branches(self, args: list[Expr], result: str, variable: Callable[[str], str]) -> None:
        if len(args) == 1:
            self._writer.line(f"{result} = {self.write(args[0], variable)}")
            return
        condition = self.write(args[0], variable)
        with self._writer.block(f"if {condition} == 1:"):
            self._writer.line(f"{result} = {self.write(args[1], variable)}")
        with self._writer.block("else:"):
            self._branches(args[2:], result, variable)

    def _connective(self, call: Call, variable: Callable[[str], str]) -> str:
        """AND or OR whose right side may fail: it is evaluated only where the left does not decide."""
        result = self._names.fresh("decided")
        kernel = OPS[call.op].kernel
        assert kernel is not None
        self._used.add(kernel)
        self._writer.line(f"{result} = {self.write(call.args[0], variable)}")
        with self._writer.block(f"if {result} != {_DECISIVE[call.op]}:"):
            right = self.write(call.args[1], variable)
            self._writer.line(f"{result} = {kernel}({result}, {right})")
        return result

    def _coalesce(self, call: Call, variable: Callable[[str], str]) -> str:
        result = self._names.fresh("known")
        self._first_known(list(call.args), result, variable)
        return result

    def _first_known(self, args: list[Expr], result: str, variable: Callable[[str], str]) -> None:
        self._writer.line(f"{result} = {self.write(args[0], variable)}")
        if len(args) > 1:
            with self._writer.block(f"if {result} == NULL:"):
                self._first_known(args[1:], result, variable)
