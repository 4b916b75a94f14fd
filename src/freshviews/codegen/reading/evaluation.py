"""Writes ``evaluate(state)``, which recomputes views: the function builds tries of stored rows and joins the tries."""

from __future__ import annotations

from dataclasses import replace

from freshviews.codegen.layout import row_layout
from freshviews.codegen.writer import Module
from freshviews.codegen.writing.appending import touched
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.leapfrog_loops import TrieNames, write_known
from freshviews.codegen.writing.prologue import write_prologue, write_steps
from freshviews.codegen.writing.sums import memo_words
from freshviews.program.printer import print_statements
from freshviews.program.program import Program
from freshviews.program.statements import Sum
from freshviews.program.structure import visit
from freshviews.program.upkeep import Evaluated


def write_evaluate(program: Program, module: Module, evaluated: Evaluated, counted: bool) -> str:
    """Source of the function.

    The computed views must be empty before the call. If memory runs out, the function joins nothing, and marks the
    table of the first computed view as failed.
    """
    statements = evaluated.statements
    context = begin(program, module, counted=counted)
    with context.writer.function("evaluate", "state"):
        context.writer.docstring(print_statements(program, statements))
        write_prologue(context, statements, emits=True)
        context.load_tables(sorted({trie.view for trie in evaluated.tries}.difference(touched(statements))))
        result = context.table(evaluated.recomputed[0])
        if counted:
            context.line("steps = 0")
        handles = [TrieNames(context.writer.names, trie.name).handle for trie in evaluated.tries]
        _build_tries(context, evaluated, handles)
        context = _allocate_memos(context, evaluated)
        tables = [context.table(view.name) for view in evaluated.scratch]
        _allocate_scratch(context, evaluated)
        allocated = [*_positions(context, evaluated), *handles, *context.memos.values(), *tables]
        with context.block(f"if {' and '.join(f'{one} != 0' for one in allocated) or 'True'}:"):
            for trie in evaluated.tries:
                write_known(context, trie)
            context.body(statements)
        with context.block("else:"):
            context.line(f"store({result}, FAILED, 1)")
        for handle in handles:
            context.line(f"free_trie({handle})")
        for memo in context.memos.values():
            context.line(f"free_memo({memo})")
        for table in tables:
            with context.block(f"if {table} != 0 and load({table}, LOST) != 0:"):
                context.line(f"store({result}, FAILED, 1)")
            context.line(f"free_sums({table})")
        write_steps(context)
        context.line("return 0")
    return context.writer.text()


def _positions(context: Context, evaluated: Evaluated) -> list[str]:
    """The variable of the block of key positions that tries are built by; none without tries."""
    return [context.writer.names.of("positions", "positions")] if evaluated.tries else []


def _build_tries(context: Context, evaluated: Evaluated, handles: list[str]) -> None:
    tries = evaluated.tries
    for positions in _positions(context, evaluated):
        context.line(f"{positions} = allocate({max(len(trie.order) for trie in tries)})")
        for handle in handles:
            context.line(f"{handle} = 0")
        with context.block(f"if {positions} != 0:"):
            for trie, handle in zip(tries, handles, strict=True):
                for i, position in enumerate(trie.order):
                    context.line(f"store({positions}, {i}, {position})")
                table = context.table(trie.view)
                context.line(f"{handle} = build_trie({table}, {positions}, {len(trie.order)}, status)")
        context.line(f"release({positions})")


def _allocate_memos(context: Context, evaluated: Evaluated) -> Context:
    """A memo for each Sum that is remembered; returns the context that knows them."""
    memos: dict[Sum, str] = {}
    for statement in visit(evaluated.statements):
        if isinstance(statement, Sum) and statement.remembered and statement not in memos:
            memos[statement] = context.fresh(f"{statement.alias}_memo")
            context.line(f"{memos[statement]} = new_memo({memo_words(statement)})")
    return replace(context, memos=memos)


def _allocate_scratch(context: Context, evaluated: Evaluated) -> None:
    """A table of sums for each scratch view."""
    for view in evaluated.scratch:
        layout = row_layout(view)
        context.line(f"{context.table(view.name)} = new_sums({layout.key}, {layout.payload})")
