"""A sum that is remembered by what it depends on (``kernel.hash.memo``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.codegen.layout import words_of
from freshviews.program.statements import Sum

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter


def write_remembered(statements: StatementWriter, statement: Sum) -> None:
    """The sum as it is remembered, else from zero."""
    writer = statements.writer
    statements.need("memo_place", "has_sum", "enter_sum", "load", "store")
    statements.step()
    entry = statements.names.fresh(f"{statement.alias}_entry")
    key = statements.key(statement.remembered)
    words = len(statement.remembered) + sum(words_of(c) for c in statement.components)
    writer.line(f"{entry} = memo_place({statements.memos[id(statement)]}, {key}, {words})")
    first = 1 + len(statement.remembered)
    locals_ = [statements.local(statement.alias, c.name) for c in statement.components]
    with writer.block(f"if has_sum({entry}, {key}):"):
        for i, local in enumerate(locals_):
            writer.line(f"{local} = load({entry}, {first + i})")
    with writer.block("else:"):
        statements.summed(statement)
        writer.line(f"enter_sum({entry}, {key})")
        for i, local in enumerate(locals_):
            writer.line(f"store({entry}, {first + i}, {local})")
