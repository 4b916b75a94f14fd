"""Writes ``project``, which applies HAVING and the output expressions to rows of variables and aggregates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from freshviews.codegen.layout import CONSTANTS, STATUS
from freshviews.codegen.scalars import write_expression
from freshviews.codegen.writer import Module, Writer
from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.expr.ops import may_fail

_LONG = 4
"""Minimum number of arguments of a repeated call that is computed once."""

_RESERVED = frozenset({"raw", "n", "width", "out", "state", "i", "row", "target", "status", "constants"})


def write_projection(
    module: Module, columns: tuple[str, ...], outputs: tuple[Expr, ...], having: Expr | None
) -> str:
    """Source of the projection; ``columns`` names the words of a raw row before the multiplicity."""
    writer = Writer(module, _RESERVED)

    def variable(name: str) -> str:
        return writer.names.of("variable", name)

    needed = {c for e in (*outputs, *([having] if having is not None else [])) for c in columns_of(e)}
    with writer.function("project", "raw, n, width, out, state"):
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"constants = load(state, {CONSTANTS})")
        with writer.loop("for i in range(n):"):
            writer.line("row = raw + 8 * i * width")
            for place, column in enumerate(columns):
                if column in needed:
                    writer.line(f"{variable(column)} = load(row, {place})")
            given = (*outputs, *([having] if having is not None else []))
            known = {call: Column(f"@{i}", call.type, call.nullable) for i, call in enumerate(_repeated(given))}
            for call, local in known.items():
                writer.line(f"{variable(local.name)} = {write_expression(writer, call, variable)}")
            outputs = tuple(_with_variables(expr, known) for expr in outputs)
            having = None if having is None else _with_variables(having, known)
            if having is not None:
                code = write_expression(writer, having, variable)
                with writer.block(f"if {code} != 1:"):
                    writer.line("continue")
            codes = [write_expression(writer, expr, variable) for expr in outputs]
            writer.line("target = append(out)")
            for place, code in enumerate(codes):
                writer.line(f"store(target, {place}, {code})")
            writer.line(f"store(target, {len(codes)}, load(row, width - 1))")
        writer.line("return 0")
    return writer.text()


def _repeated(exprs: Sequence[Expr]) -> list[Call]:
    """The long calls that occur several times and fail for no row: the comoments that variances, correlations and
    slopes of the same columns share."""
    times = Counter(call for expr in exprs for call in _long_calls(expr))
    return [call for call, n in times.items() if n > 1]


def _long_calls(expr: Expr) -> Iterator[Call]:
    """Calls of many columns, except CASE and COALESCE, which evaluate only some of their arguments."""
    if isinstance(expr, Call):
        plain = all(isinstance(arg, Column) for arg in expr.args)
        if len(expr.args) >= _LONG and plain and expr.op not in ("case", "coalesce") and not may_fail(expr):
            yield expr
        for arg in expr.args:
            yield from _long_calls(arg)


def _with_variables(expr: Expr, names: Mapping[Call, Column]) -> Expr:
    """The expression with calls replaced by the variables that have their values."""
    if not isinstance(expr, Call):
        return expr
    return names.get(expr) or replace(expr, args=tuple(_with_variables(arg, names) for arg in expr.args))
