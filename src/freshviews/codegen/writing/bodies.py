"""Writes the statements of a body as Python source, by the writer for each kind of statement."""

from __future__ import annotations

from typing import assert_never

from freshviews.codegen.scalars import where_all, write_expression
from freshviews.codegen.writer import RESERVED, Module, Writer
from freshviews.codegen.writing.additions import write_add
from freshviews.codegen.writing.appending import with_pending
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.leapfrog_loops import write_leap
from freshviews.codegen.writing.loops import write_exists, write_lookup, write_loop, write_smaller
from freshviews.codegen.writing.ordered import (
    write_beside,
    write_cross,
    write_forget,
    write_framed,
    write_range_loop,
    write_range_sum,
    write_renumber,
    write_scan,
    write_top,
)
from freshviews.codegen.writing.parts import called_in, write_call
from freshviews.codegen.writing.payloads.elements import write_emit, write_into
from freshviews.codegen.writing.payloads.integers import with_products
from freshviews.codegen.writing.rebalancing import write_balance, write_perform
from freshviews.codegen.writing.subsets import write_move, write_tally
from freshviews.codegen.writing.sums import write_sum
from freshviews.program.program import Program
from freshviews.program.statements import (
    Add,
    Balance,
    Beside,
    Body,
    Changed,
    Clear,
    Cross,
    Emit,
    Exists,
    Forget,
    Framed,
    If,
    Into,
    Leap,
    Let,
    Lookup,
    Loop,
    Move,
    Perform,
    RangeLoop,
    RangeSum,
    Renumber,
    Scan,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
)


def begin(program: Program, module: Module, reserved: frozenset[str] = RESERVED, counted: bool = False) -> Context:
    """The context of a new function of a module."""
    if module.deferred is None:
        module.deferred = with_pending(program)
    return Context(
        program,
        Writer(module, reserved),
        write_body,
        program.by_name,
        frozenset(view.name for view in program.upkeep.scratch),
        module.deferred,
        counted=counted,
        kept=("steps",) if counted else (),
    )


def write_body(body: Body, context: Context) -> None:
    """The statements of a body: written out, or called if they are a separate function."""
    called = called_in(context, body)
    before: Statement | None = None
    last = body[-1] if body else None
    for statement in body[: len(body) - len(called)]:
        if context.changing is not None and isinstance(statement, Add) and statement is not last:
            context = with_products(context, statement.payload)
        context = write_statement(statement, context, before)
        before = statement
    if called:
        write_call(context, called)


def _write_if(context: Context, statement: If) -> None:
    """Nested conditions, and the body that runs if they are TRUE."""
    conditions, body = [statement.condition], statement.body
    while len(body) == 1 and isinstance(body[0], If):
        conditions.append(body[0].condition)
        body = body[0].body
    with where_all(context.writer, conditions, context.variable):
        context.body(body)


def write_statement(statement: Statement, context: Context, before: Statement | None = None) -> Context:
    """Write one statement; return the context of the statements after it. ``before``: the statement before it."""
    own = context.instead.get(type(statement))
    if own is not None:
        own(context, statement)
        return context
    match statement:
        case Let(variable, expr):
            code = write_expression(context.writer, expr, context.variable)
            context.line(f"{context.variable(variable)} = {code}")
            return context.with_variable(variable)
        case If():
            _write_if(context, statement)
        case Changed(body):
            with context.block("if wanted:"):
                context.body(body)
        case Lookup():
            return write_lookup(context, statement)
        case Exists():
            write_exists(context, statement)
        case Loop():
            write_loop(context, statement)
        case Smaller():
            write_smaller(context, statement)
        case Leap():
            write_leap(context, statement)
        case Sum():
            write_sum(context, statement)
        case Into():
            write_into(context, statement)
        case Add():
            write_add(context, statement)
        case Cross():
            write_cross(context, statement)
        case Clear(view):
            clear = "clear_sums" if view in context.scratch else "reset_table"
            context.line(f"{clear}({context.table(view)})")
        case Tally():
            write_tally(context, statement)
        case Move():
            write_move(context, statement)
        case Scan():
            write_scan(context, statement)
        case Top():
            write_top(context, statement)
        case Beside():
            write_beside(context, statement)
        case Framed():
            write_framed(context, statement)
        case Forget():
            write_forget(context, statement)
        case Renumber():
            write_renumber(context, statement)
        case RangeSum():
            write_range_sum(context, statement)
        case RangeLoop():
            write_range_loop(context, statement)
        case Balance():
            just_added = isinstance(before, Add) and (before.view, before.key) == (statement.view, statement.key)
            write_balance(context, statement, context.target(statement.view) if just_added else "")
        case Perform():
            write_perform(context, statement)
        case Emit():
            write_emit(context, statement)
        case _:
            assert_never(statement)
    return context
