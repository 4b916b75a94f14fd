"""Writes the first lines of a generated function, which read values from the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from freshviews.codegen.layout import CHANGES, CONSTANTS, STATUS, STATUS_STEPS, WANTED, scratch_words, words_of
from freshviews.codegen.writing.appending import touched
from freshviews.codegen.writing.context import Context
from freshviews.program.statements import Beside, Body, Framed, Move, Sum, Top
from freshviews.program.structure import visit
from freshviews.program.views import View


def write_prologue(context: Context, body: Body, views: Iterable[str] = (), emits: bool = False) -> None:
    """Status and constants, the tables of ``views`` and of those in the body, and room for its sums of several words.

    ``emits``: also the changes, and whether they are wanted.
    """
    context.line(f"status = load(state, {STATUS})")
    if emits:
        context.line(f"changes = load(state, {CHANGES})")
        context.line(f"wanted = load(state, {WANTED})")
    context.line(f"constants = load(state, {CONSTANTS})")
    context.load_tables((*views, *touched(body), *_of_rows_from_outside(context, body)))
    scratch = scratch_words(context.program)
    for statement in visit(body):
        if isinstance(statement, Sum):
            for component in statement.components:
                if words_of(component) > 1:
                    word = scratch[statement.alias, component.name]
                    context.line(f"{context.local(statement.alias, component.name)} = load(state, {word})")


def _of_rows_from_outside(context: Context, body: Body) -> Iterator[str]:
    """The views whose subsets or order a body changes through a row that is bound outside the body."""
    for statement in visit(body):
        if isinstance(statement, Move | Top | Beside | Framed):
            view = context.aliases.get(statement.alias)
            if isinstance(view, View):
                yield view.name


def write_steps(context: Context) -> None:
    """Report the steps that the function has counted."""
    if context.counted:
        context.line(f"store(status, {STATUS_STEPS}, load(status, {STATUS_STEPS}) + steps)")
