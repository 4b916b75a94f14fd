"""Writes functions that run statements of a program to read a result, if no single view stores the result.

- ``awake(state)`` updates the views that triggers maintain only for subscribers. It runs once, when a subscriber first
  wants changes.
- ``read_group(state, key, changes)`` looks up one row, and appends it to ``changes`` if it exists. ``key`` is the
  address of the words of the free variables.
- ``read_key(state, key, changes)`` appends to ``changes`` the rows that have the given values in some variables.
- ``read_payload(state, key, payload)`` looks up a group of an enumerated result, and writes its payload to ``payload``.
  It writes zero if the group does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.codegen.layout import emitted_row, row_layout
from freshviews.codegen.writer import RESERVED, Module
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.elements import write_emitted
from freshviews.codegen.writing.payloads.integers import integer
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.program.program import Keyed, Program
from freshviews.program.statements import Body, Emit

_RESERVED = RESERVED | {"key", "payload"}


def write_awake(program: Program, module: Module, awake: Body) -> str:
    """Source of ``awake``."""
    context = begin(program, module)
    with context.writer.function("awake", "state"):
        write_prologue(context, awake)
        context.body(awake)
        context.line("return 0")
    return context.writer.text()


def write_member(context: Context, member: Body, views: tuple[str, ...] = ()) -> str:
    """Source of ``read_group``; ``views``: the views whose tables its Emit needs."""
    with context.writer.function("read_group", "state, key, changes"):
        write_prologue(context, member, views)
        _write_keyed(context, member, "changes")
    return context.writer.text()


def write_key_reader(program: Program, module: Module, keyed: Keyed) -> str:
    """Source of ``read_key``."""
    context = emitting(begin(program, module, _RESERVED), _write_row)
    with context.writer.function("read_key", "state, key, changes"):
        write_prologue(context, keyed.body)
        _write_keyed(context, keyed.body, "changes", keyed.key)
    return context.writer.text()


def _write_row(context: Context, statement: Emit) -> None:
    """Append the row of an Emit, whose first component is its count."""
    row = context.fresh("out")
    context.line(f"{row} = append(changes)")
    for i, variable in enumerate(statement.row):
        context.line(f"store({row}, {i}, {context.variable(variable)})")
    context.line(f"store({row}, {len(statement.row)}, {integer(context, statement.payload[0])})")


def write_payload_reader(program: Program, module: Module, member: Body) -> str:
    """Source of ``read_payload``."""
    context = begin(program, module, _RESERVED)
    context = emitting(context, lambda context, statement: write_emitted(context, statement, "payload", 0))
    with context.writer.function("read_payload", "state, key, payload"):
        write_prologue(context, member)
        context.line(f"clear_words(payload, {row_layout(emitted_row(program)).payload})")
        _write_keyed(context, member, "payload")
    return context.writer.text()


def emitting(context: Context, emit: Callable[[Context, Emit], None]) -> Context:
    """The context in which an Emit is written by ``emit``."""
    return replace(context, instead={Emit: emit})


def _write_keyed(context: Context, body: Body, target: str, key: tuple[str, ...] | None = None) -> None:
    """Bind variables, by default all free ones, to the words at ``key``, and run the body, which writes to a target."""
    for i, variable in enumerate(context.program.free if key is None else key):
        context.line(f"{context.variable(variable)} = load(key, {i})")
    replace(context, given=(target,)).body(body)
    context.line("return 0")
