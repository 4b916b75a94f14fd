"""Output expressions and HAVING over raw rows, compiled: ``project(raw, n, width, out, state)``.

For each of ``n`` raw rows (``width`` words) whose HAVING is TRUE, appends to ``out`` a word per compiled output
expression, and the multiplicity.
"""

from __future__ import annotations

from freshviews.codegen.layout import CONSTANTS, STATUS
from freshviews.codegen.scalars import write_expression
from freshviews.codegen.writer import Module, Writer
from freshviews.expr.nodes import Expr, columns_of

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
        with writer.block("for i in range(n):"):
            writer.line("row = raw + 8 * i * width")
            for place, column in enumerate(columns):
                if column in needed:
                    writer.line(f"{variable(column)} = load(row, {place})")
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
