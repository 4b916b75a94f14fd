"""Output expressions and HAVING over raw rows, compiled: ``project(raw, n, width, out, state)``.

For each of ``n`` raw rows (``width`` words) whose HAVING is TRUE, appends to ``out`` a word per compiled output
expression and the multiplicity.
"""

from __future__ import annotations

from freshviews.codegen.layout import CONSTANTS, STATUS
from freshviews.codegen.scalars import ScalarWriter
from freshviews.codegen.writer import Names, Writer
from freshviews.expr.nodes import Expr, columns_of

_RESERVED = frozenset({"raw", "n", "width", "out", "state", "i", "row", "target", "status", "constants"})


def write_projection(
    columns: tuple[str, ...],
    outputs: tuple[Expr, ...],
    having: Expr | None,
    prefix: str,
    constants: dict[str, int],
    used: set[str],
) -> str:
    """Source of the projection; ``columns`` names the words of a raw row before the multiplicity."""
    writer = Writer()
    names = Names(_RESERVED)
    scalars = ScalarWriter(writer, names, constants, used)
    used.update({"load", "store", "append"})
    needed = {c for e in (*outputs, *([having] if having is not None else [])) for c in columns_of(e)}
    writer.line("@jit")
    with writer.block(f"def {prefix}project__HASH__(raw, n, width, out, state):"):
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"constants = load(state, {CONSTANTS})")
        with writer.block("for i in range(n):"):
            writer.line("row = raw + 8 * i * width")
            for place, column in enumerate(columns):
                if column in needed:
                    writer.line(f"{names.of('variable', column)} = load(row, {place})")

            def variable(name: str) -> str:
                return names.of("variable", name)

            if having is not None:
                code = scalars.write(having, variable)
                with writer.block(f"if {code} != 1:"):
                    writer.line("continue")
            codes = [scalars.write(expr, variable) for expr in outputs]
            writer.line("target = append(out)")
            for place, code in enumerate(codes):
                writer.line(f"store(target, {place}, {code})")
            writer.line(f"store(target, {len(codes)}, load(row, width - 1))")
        writer.line("return 0")
    return writer.text()
