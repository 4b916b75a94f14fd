"""Writes the trigger statement ``Sum``. Its first body adds to sums; its second body runs if a sum is not zero."""

from __future__ import annotations

from dataclasses import replace

from freshviews.codegen.layout import words_of
from freshviews.codegen.writing.context import Context
from freshviews.program.statements import Sum


def memo_words(statement: Sum) -> int:
    """Words of an entry of a memo: the key, then the components."""
    return len(statement.remembered) + sum(words_of(c) for c in statement.components)


def write_sum(context: Context, statement: Sum) -> None:
    context = context.with_alias(statement.alias, statement)
    if statement.remembered:
        _write_remembered(context, statement)
    else:
        write_total(context, statement)
    tests = []
    for component in statement.components:
        local = context.local(statement.alias, component.name)
        if words_of(component) > 1:
            tests.append(f"not words_are_zero({local}, {words_of(component)})")
        else:
            tests.append(f"{local} != 0")
    with context.block(f"if {' or '.join(tests)}:"):
        context.body(statement.then)


def write_total(context: Context, statement: Sum) -> None:
    """The accumulators from zero, and the body. The Sum is bound in the context."""
    for component in statement.components:
        local = context.local(statement.alias, component.name)
        if words_of(component) > 1:
            context.line(f"clear_words({local}, {words_of(component)})")
        else:
            context.line(f"{local} = 0")
    enough = context.local(statement.alias, statement.components[0].name) if statement.once else ""
    replace(context, enough=enough).body(statement.body)


def _write_remembered(context: Context, statement: Sum) -> None:
    """The total from the memo; if it is missing, computed and stored there."""
    context.step()
    entry = context.fresh(f"{statement.alias}_entry")
    key = context.key(statement.remembered)
    context.line(f"{entry} = memo_place({context.memos[statement]}, {key}, {memo_words(statement)})")
    first = 1 + len(statement.remembered)
    locals_ = [context.local(statement.alias, c.name) for c in statement.components]
    with context.block(f"if has_sum({entry}, {key}):"):
        for i, local in enumerate(locals_):
            context.line(f"{local} = load({entry}, {first + i})")
    with context.block("else:"):
        write_total(context, statement)
        context.line(f"enter_sum({entry}, {key})")
        for i, local in enumerate(locals_):
            context.line(f"store({entry}, {first + i}, {local})")
