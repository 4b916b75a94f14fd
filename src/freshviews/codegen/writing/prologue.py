"""What a generated function reads off the state before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from freshviews.codegen.layout import CHANGES, CONSTANTS, STATUS, WANTED, real_scratch, table_word
from freshviews.codegen.writing.appending import touched
from freshviews.program.statements import Body, Enter, Leave, Sum, Top
from freshviews.program.structure import visit
from freshviews.program.views import View

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter


def write_prologue(statements: StatementWriter, body: Body) -> None:
    """Status, changes, constants, the tables of a body's views, and scratch for its sums of reals."""
    writer, program = statements.writer, statements.program
    writer.line(f"status = load(state, {STATUS})")
    writer.line(f"changes = load(state, {CHANGES})")
    writer.line(f"wanted = load(state, {WANTED})")
    writer.line(f"constants = load(state, {CONSTANTS})")
    for view in dict.fromkeys((*touched(body), *_of_rows_from_outside(statements, body))):
        if view in statements.scratch:
            continue
        writer.line(f"{statements.table(view)} = load(state, {table_word(program, view)})")
    scratch = real_scratch(program)
    for statement in visit(body):
        if isinstance(statement, Sum):
            for component in statement.components:
                if component.ring == "real":
                    word = scratch[statement.alias, component.name]
                    local = statements.local(statement.alias, component.name)
                    writer.line(f"{local} = load(state, {word})")


def _of_rows_from_outside(statements: StatementWriter, body: Body) -> Iterator[str]:
    """The views whose subsets or order a body changes by a row that is bound outside the body."""
    for statement in visit(body):
        if isinstance(statement, Enter | Leave | Top):
            view = statements.aliases.get(statement.alias)
            if isinstance(view, View):
                yield view.name
