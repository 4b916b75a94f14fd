"""Scratch views of an evaluation: tables of sums that are emptied and filled again (``kernel.hash.sum_table``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.codegen.layout import row_layout
from freshviews.program.program import Program
from freshviews.program.statements import Add, Clear
from freshviews.program.views import View

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter


def write_made(program: Program, statements: StatementWriter) -> list[str]:
    """Write the making of the tables; conditions that all of them are there."""
    for view in program.upkeep.scratch:
        statements.need("new_sums")
        layout = row_layout(view)
        statements.writer.line(f"{statements.table(view.name)} = new_sums({layout.key}, {layout.payload})")
    return [f"{statements.table(view.name)} != 0" for view in program.upkeep.scratch]


def write_freed(program: Program, statements: StatementWriter, made: str) -> None:
    """Write that the tables go; where a sum was lost, the table of the result is told that memory ran out."""
    for view in program.upkeep.scratch:
        statements.need("free_sums", "LOST")
        table = statements.table(view.name)
        with statements.writer.block(f"if {table} != 0 and load({table}, LOST) != 0:"):
            statements.writer.line(f"store({statements.table(made)}, FAILED, 1)")
        statements.writer.line(f"free_sums({table})")


def write_clear(statements: StatementWriter, statement: Clear) -> None:
    """Empty a table."""
    statements.need("clear_sums")
    statements.writer.line(f"clear_sums({statements.table(statement.view)})")


def write_tabulated(statements: StatementWriter, statement: Add, view: View) -> None:
    """Add to a sum of a table."""
    statements.need("sum_row", "load", "store", "plus")
    statements.step()
    row = statements.names.of("target", view.name)
    statements.writer.line(f"{row} = sum_row({statements.table(view.name)}, {statements.key(statement.key)})")
    layout = row_layout(view)
    for name, monomial in zip(statement.components, statement.payload, strict=True):
        place = layout.offsets[name]
        amount = statements.integer(monomial.factors, monomial)
        statements.writer.line(f"store({row}, {place}, plus(load({row}, {place}), {amount}, status))")
