"""Writes ``end_version(state)``, which updates a result once, at the end of a version."""

from __future__ import annotations

from freshviews.codegen.writer import Module
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.prologue import write_prologue, write_steps
from freshviews.program.printer import print_statements
from freshviews.program.program import Program
from freshviews.program.upkeep import Settled


def write_settle(program: Program, module: Module, settled: Settled, counted: bool) -> str:
    """Source of the function."""
    context = begin(program, module, counted=counted)
    with context.writer.function("end_version", "state"):
        context.writer.docstring(print_statements(program, settled.statements))
        write_prologue(context, settled.statements)
        if counted:
            context.line("steps = 0")
        context.body(settled.statements)
        write_steps(context)
        context.line("return 0")
    return context.writer.text()
