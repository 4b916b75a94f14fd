"""Writes each trigger as a Python function ``on_k(state, batch, n)``, which runs over the ``n`` rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from freshviews.codegen.layout import STATUS, STATUS_ERROR, STATUS_ROW, STATUS_SHAPES
from freshviews.codegen.scalars import where_all, write_expression
from freshviews.codegen.writer import Module, Writer
from freshviews.codegen.writing.ahead import write_ahead, write_leaving, write_until
from freshviews.codegen.writing.appending import appended, entered, touched
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.parts import LONG, changing, size
from freshviews.codegen.writing.payloads.doubles import with_doubles
from freshviews.codegen.writing.prologue import write_prologue, write_steps
from freshviews.codegen.writing.rebalancing import write_expecting, write_settling
from freshviews.expr.nodes import columns_of, words_in
from freshviews.kernel.output.buffer import COUNT as BUFFER_COUNT
from freshviews.program.printer import print_trigger
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.statements import Add, Balance, Body
from freshviews.program.structure import variables_read, visit


def columns_read(trigger: Trigger) -> tuple[str, ...]:
    """Columns of the relation that a trigger reads: those of scalars in order of first use, then those of elements."""
    used = _variables_used(trigger)
    exprs = [*trigger.filters, *(p.expr for p in trigger.parameters if p.name in used)]
    scalars = dict.fromkeys(c for expr in exprs if not words_in(expr) for c in columns_of(expr))
    return (*scalars, *_word_columns(trigger))


def _word_columns(trigger: Trigger) -> tuple[str, ...]:
    """The columns of the elements that a trigger reads, word by word. No scalar is made of them."""
    used = _variables_used(trigger)
    return tuple(c for p in trigger.parameters if p.name in used for c in words_in(p.expr))


def _variables_used(trigger: Trigger) -> set[str]:
    """The variables that the body of a trigger reads."""
    return {name for statement in visit(trigger.body) for name in variables_read(statement)}


def write_trigger(
    program: Program, trigger: Trigger, module: Module, number: int, repeated: frozenset[Body], counted: bool = False
) -> str:
    """Source of one trigger function, ``on_`` and a number; the bodies in ``repeated`` are called.

    The trigger is one of the program, or a lane of one (``plan.costs.lanes``).

    For each of ``n`` rows the function reads the columns that it needs, computes filters and parameters, and runs the
    body. ``batch`` has address and stride of the multiplicity, then of each column. The function's docstring is the
    printed trigger.

    Before the first row, the function flushes the deferred rows that its body may look up. It also decides whether the
    rows of this batch are deferred (``codegen.writing.appending``).
    """
    context = replace(
        begin(program, module, counted=counted),
        repeated=repeated,
        outlined=size(trigger.body, repeated) > LONG,
        frozen=program.unchanged,
        changing=changing(program, trigger.body),
    )
    with context.writer.function(f"on_{number}", "state, batch, n"):
        context.writer.docstring(print_trigger(program, trigger))
        write_prologue(context, trigger.body, emits=True)
        flushed = [context.table(view) for view in touched(trigger.body) if view in context.pending]
        if counted:
            # Flushing a deferred row is a step of the update that causes it.
            context.line("steps = 0" + "".join(f" - load({table}, ENTERED)" for table in flushed))
        _write_flush(context, trigger)
        context.line("m_at = load(batch, 0)")
        context.line("m_stride = load(batch, 1)")
        columns, words = columns_read(trigger), len(_word_columns(trigger))
        raw = {column: context.fresh(f"{column}_in") for column in columns[: len(columns) - words]}
        for i, name in enumerate(raw.values()):
            context.line(f"{name}_at = load(batch, {2 * i + 2})")
            context.line(f"{name}_stride = load(batch, {2 * i + 3})")
        context = _write_appending(context, trigger)
        balances = any(isinstance(statement, Balance) for statement in visit(trigger.body))
        if balances:
            write_expecting(context)
        write_until(context, trigger, raw)
        with context.loop("for i in range(n):"):
            context = replace(context, ahead=write_ahead(context, trigger, raw))
            write_leaving(context, trigger, raw)
            context.line("m = load(m_at, i * m_stride)")
            for name in raw.values():
                context.line(f"{name} = load({name}_at, i * {name}_stride)")
            with where_all(context.writer, trigger.filters, raw.__getitem__):
                _write_row(context, trigger, raw)
            with context.block(f"if load(status, {STATUS_ERROR}) != 0 and load(status, {STATUS_ROW}) < 0:"):
                context.line(f"store(status, {STATUS_ROW}, i)")
        if balances:
            write_settling(context)
        if counted:
            for table in flushed:
                context.line(f"steps += load({table}, ENTERED)")
        write_steps(context)
        context.line("return 0")
    return context.writer.text()


def _write_flush(context: Context, trigger: Trigger) -> None:
    """Flush the deferred rows that the body would miss."""
    for view in entered(context.program, trigger, context.pending):
        table = context.table(view)
        with context.block(f"if is_deferred({table}) and enter_pending({table}, status) < 0:"):
            context.line("return 0")


def _write_appending(context: Context, trigger: Trigger) -> Context:
    """Decide for each view that the trigger may append to whether it does; return the context that knows."""
    appends = {}
    for view in appended(context.program, trigger):
        table = context.table(view)
        appends[view] = context.fresh(f"appends_{view}")
        context.line(f"{appends[view]} = begin_append({table}, m_at, m_stride, n, status)")
        with context.block(f"if {appends[view]} < 0:"):
            context.line("return 0")
    return replace(context, appends=appends)


def _write_row(context: Context, trigger: Trigger, raw: dict[str, str]) -> None:
    """The parameters that the body uses, then the body."""
    used = _variables_used(trigger)
    read = [parameter for parameter in trigger.parameters if parameter.name in used]
    context = _with_elements(context, [one for one in read if words_in(one.expr)], 1 + len(raw))
    read = [one for one in read if not words_in(one.expr)]
    context, others = with_doubles(context, read, raw.__getitem__)
    for parameter in others:
        code = write_expression(context.writer, parameter.expr, raw.__getitem__)
        context.line(f"{context.variable(parameter.name)} = {code}")
    _prefetch_changes(context, trigger)
    context.body(trigger.body)


def _with_elements(context: Context, parameters: Sequence[Parameter], first: int) -> Context:
    """Gather the words of the elements of a row, whose columns are the last of the batch, from number ``first`` on."""
    places: dict[str, tuple[str, int]] = {}
    words = 0
    elements = context.fresh("elements")
    for parameter in parameters:
        places[parameter.name] = elements, words
        words += len(words_in(parameter.expr))
    if words:
        at = context.writer.module.shape((0,) * words)
        context.line(f"{elements} = load(status, {STATUS_SHAPES}) + {8 * at}")
        context.line(f"gather_words({elements}, batch + {16 * first}, {words}, i)")
    return replace(context, elements=places)


def _prefetch_changes(context: Context, trigger: Trigger) -> None:
    """Prefetch the rows that the update itself is added to at the end, while the rest of the body runs."""
    parameters = {parameter.name for parameter in trigger.parameters}
    for statement in trigger.body[1:]:
        if isinstance(statement, Add) and statement.key and parameters.issuperset(statement.key):
            appends = context.appends.get(statement.view)
            with context.block(f"if {appends} == 0:") if appends else nullcontext():
                context.line(f"foresee({context.table(statement.view)}, {context.key(statement.key)})")


def write_each(program: Program, module: Module, relation: str, number: int, grouped: bool) -> str:
    """Source of ``each_k(state, blocks, ends, first, n, limit, out)``: runs updates of a relation one by one.

    Each update runs through all triggers of the relation before the next one, until the changes have ``limit`` rows.
    Returns the number of the update to continue with. ``blocks`` is a list of batch blocks, one per trigger, which move
    on from update to update. ``ends[i]`` becomes the number of rows in ``out`` after update ``i``: emitted rows, or,
    for payloads of groups (``grouped``), raw rows made from them.
    """
    writer = Writer(module)
    places = [i for i, trigger in enumerate(program.triggers) if trigger.relation == relation]
    with writer.function(f"each_{number}", "state, blocks, ends, first, n, limit, out"):
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"failed = load(status, {STATUS_ERROR})")
        with writer.loop("for i in range(first, n):"):
            for k, place in enumerate(places):
                writer.line(f"on_{place}(state, load(blocks, {k}), 1)")
                writer.line(f"next_update(load(blocks, {k}), {1 + len(columns_read(program.triggers[place]))})")
            if grouped:
                writer.line("read_change(state, out)")
            with writer.block(f"if failed == 0 and load(status, {STATUS_ERROR}) != 0:"):
                writer.line(f"store(status, {STATUS_ROW}, i)")
                writer.line("failed = 1")
            writer.line(f"rows = load(out, {BUFFER_COUNT})")
            writer.line("store(ends, i, rows)")
            with writer.block("if rows >= limit:"):
                writer.line("return i + 1")
        writer.line("return n")
    return writer.text()
