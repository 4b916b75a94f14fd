"""Writes scalar expressions as Python source; operations become calls of ``freshviews.kernel.scalar.operations``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from freshviews.codegen.writer import Writer
from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.expr.ops import OPS, may_fail
from freshviews.records import dataclass
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import literal_code, text_in

_NO_STRINGS = Dictionary()
_DECISIVE = {"and": 0, "or": 1}
_BRANCHES = ("case", "coalesce", "attempt", "failed", *_DECISIVE)

Variable = Callable[[str], str]
"""The local variable that holds a column."""


_NESTED = 40
"""Maximum number of nested parentheses that are written; Python takes 200. Deeper expressions become variables."""
_IN_TURN = 8
"""Maximum number of conditions, and of branches of CASE and COALESCE, that are nested; more are written in sequence."""


def write_expression(writer: Writer, expr: Expr, variable: Variable) -> str:
    """Write the lines that compute an expression; return a Python expression for its code."""
    return _Scalars(writer, variable).write(expr)[0]


@contextmanager
def where_all(writer: Writer, conditions: Sequence[Expr], variable: Variable) -> Iterator[None]:
    """A block of lines that run if all conditions are TRUE; none is evaluated after one that is not."""
    with ExitStack() as blocks:
        if len(conditions) <= _IN_TURN:
            for condition in conditions:
                code = write_expression(writer, condition, variable)
                blocks.enter_context(writer.block(f"if {code} == 1:"))
        else:
            passed = writer.names.fresh("passed")
            writer.line(f"{passed} = 1")
            for condition in conditions:
                with writer.block(f"if {passed} == 1:"):
                    writer.line(f"{passed} = {write_expression(writer, condition, variable)}")
            blocks.enter_context(writer.block(f"if {passed} == 1:"))
        yield


@dataclass(frozen=True)
class _Scalars:
    """Where expressions are written, and the variables of their columns."""

    writer: Writer
    variable: Variable

    def write(self, expr: Expr) -> tuple[str, int]:
        """A Python expression, and how many parentheses are inside each other in it."""
        if isinstance(expr, Column):
            return self.variable(expr.name), 0
        if isinstance(expr, Literal):
            text = text_in(expr.type, expr.value)
            if text is not None:
                return f"load(constants, {self.writer.constant(text)})", 1
            return str(literal_code(expr.type, expr.value, _NO_STRINGS)), 0
        if expr.op in _BRANCHES and self.writer.is_deep:
            return self._called(expr), 1
        if expr.op == "case":
            return self._case(expr.args), 0
        if expr.op == "coalesce":
            return self._coalesce(expr.args), 0
        if expr.op in ("attempt", "failed"):
            return self._attempt(expr), 0
        op = OPS[expr.op]
        assert op.kernel is not None, f"{expr.op} is computed before compiled code"
        if expr.op in _DECISIVE and may_fail(expr.args[1]):
            # The right side is evaluated only where the left side does not decide.
            result = self.writer.names.fresh("decided")
            self._assign(result, expr.args[0])
            with self.writer.block(f"if {result} != {_DECISIVE[expr.op]}:"):
                right, _ = self.write(expr.args[1])
                self.writer.line(f"{result} = {op.kernel}({result}, {right})")
            return result, 0
        arguments = [self.write(arg) for arg in expr.args]
        texts = [text for text, _ in arguments]
        if op.fallible:
            texts.append("status")
        text, nested = f"{op.kernel}({', '.join(texts)})", 1 + max((depth for _, depth in arguments), default=0)
        if nested < _NESTED:
            return text, nested
        part = self.writer.names.fresh("part")
        self.writer.line(f"{part} = {text}")
        return part, 0

    def _called(self, expr: Call) -> str:
        """The call of a function with the value of an expression."""
        given = {name: self.writer.names.fresh(name) for name in columns_of(expr)}
        result = self.writer.names.fresh("value")
        with self.writer.part(("status", "constants", *given.values()), (result,)) as (function, writer):
            _Scalars(writer, given.__getitem__)._assign(result, expr)
        return f"{function}({', '.join(['status', 'constants', *map(self.variable, given)])})"

    def _assign(self, result: str, expr: Expr) -> None:
        text, _ = self.write(expr)
        self.writer.line(f"{result} = {text}")

    def _attempt(self, call: Call) -> str:
        """The argument, or NULL if it fails; or whether it fails. An earlier error is kept."""
        before, result = self.writer.names.fresh("before"), self.writer.names.fresh("attempt")
        self.writer.line(f"{before} = load(status, 0)")
        self.writer.line("store(status, 0, 0)")
        self._assign(result, call.args[0])
        if call.op == "failed":
            self.writer.line(f"{result} = 1 if load(status, 0) != 0 else 0")
        else:
            with self.writer.block("if load(status, 0) != 0:"):
                self.writer.line(f"{result} = NULL")
        self.writer.line(f"store(status, 0, {before})")
        return result

    def _case(self, args: Sequence[Expr]) -> str:
        result = self.writer.names.fresh("case")
        branches = _branches(args)
        if len(branches) <= _IN_TURN:
            self._nested_case(args, result)
            return result
        undecided = self.writer.names.fresh("undecided")
        self.writer.line(f"{result} = NULL")
        self.writer.line(f"{undecided} = 1")
        for when, value in branches:
            with self.writer.block(f"if {undecided} == 1:"):
                if when is None:
                    self._assign(result, value)
                    continue
                condition, _ = self.write(when)
                with self.writer.block(f"if {condition} == 1:"):
                    self.writer.line(f"{undecided} = 0")
                    self._assign(result, value)
        return result

    def _nested_case(self, args: Sequence[Expr], result: str) -> None:
        """Conditions and values in turn, then the value if no condition holds."""
        if len(args) == 1:
            self._assign(result, args[0])
            return
        condition, _ = self.write(args[0])
        with self.writer.block(f"if {condition} == 1:"):
            self._assign(result, args[1])
        with self.writer.block("else:"):
            self._nested_case(args[2:], result)

    def _coalesce(self, args: Sequence[Expr]) -> str:
        result = self.writer.names.fresh("known")
        if len(args) <= _IN_TURN:
            self._nested_coalesce(args, result)
            return result
        self._assign(result, args[0])
        for arg in args[1:]:
            with self.writer.block(f"if {result} == NULL:"):
                self._assign(result, arg)
        return result

    def _nested_coalesce(self, args: Sequence[Expr], result: str) -> None:
        self._assign(result, args[0])
        if len(args) > 1:
            with self.writer.block(f"if {result} == NULL:"):
                self._nested_coalesce(args[1:], result)


def _branches(args: Sequence[Expr]) -> list[tuple[Expr | None, Expr]]:
    """Conditions and values of a CASE, those of a CASE after its ELSE included; the last has no condition."""
    found: list[tuple[Expr | None, Expr]] = []
    while True:
        found += zip(args[:-1:2], args[1::2], strict=True)
        last = args[-1]
        if not isinstance(last, Call) or last.op != "case":
            return [*found, (None, last)]
        args = last.args
