"""A trigger as readable Python source over the kernels.

One function per trigger, ``(state, batch, n)``: for each of ``n`` rows it reads the columns it needs (address
and stride per column in ``batch``, the multiplicity first), computes parameters and filters, and runs the
body. The printed trigger stands in the docstring. Before the first row, pending rows that the body would miss are
entered, and it is decided whether this batch leaves rows pending: see ``codegen.writing.appending``.
"""

from __future__ import annotations

from freshviews.codegen.layout import STATUS, STATUS_ERROR, STATUS_ROW, STATUS_STEPS
from freshviews.codegen.writer import RESERVED, Names, Writer
from freshviews.codegen.writing.ahead import write_ahead, write_until
from freshviews.codegen.writing.appending import appended, entered, touched
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.codegen.writing.rebalancing import write_expecting, write_settling
from freshviews.codegen.writing.repeated import LONG, Repeated
from freshviews.codegen.writing.statements import StatementWriter
from freshviews.expr.nodes import Expr, columns_of
from freshviews.kernel.output.buffer import COUNT as BUFFER_COUNT
from freshviews.program.program import Program, Trigger
from freshviews.program.statements import (
    Add,
    Scan,
)
from freshviews.program.structure import variables_read, visit


def columns_read(trigger: Trigger) -> tuple[str, ...]:
    """Columns of the relation that a trigger reads, in order of first use."""
    used = {name for statement in visit(trigger.body) for name in variables_read(statement)}
    exprs = [*trigger.filters, *(p.expr for p in trigger.parameters if p.name in used)]
    return tuple(dict.fromkeys(c for expr in exprs for c in columns_of(expr)))


def write_trigger(
    program: Program,
    trigger: Trigger,
    name: str,
    doc: str,
    constants: dict[str, int],
    used: set[str],
    counted: bool,
    repeated: Repeated,
) -> str:
    """Source of one trigger function; what is ``repeated`` is called."""
    writer = Writer()
    names = Names(RESERVED)
    statements = StatementWriter(program, writer, names, constants, used)
    statements.counted = counted
    statements.repeated = repeated
    statements.outlined = repeated.size(trigger.body) > LONG
    added = {s.view for one in program.triggers for s in visit(one.body) if isinstance(s, Add | Scan)}
    statements.frozen = frozenset(view.name for view in program.views) - added
    used.update({"load", "store"})
    columns = columns_read(trigger)
    writer.line("@jit")
    with writer.block(f"def {name}__HASH__(state, batch, n):"):
        writer.line('"""')
        for line in doc.rstrip().splitlines():
            writer.line(line.replace("\\", "\\\\"))
        writer.line('"""')
        write_prologue(statements, trigger.body)
        entering = [statements.table(view) for view in touched(trigger.body) if view in statements.pending]
        if counted:
            # A row that is entered is a step of the update that has it entered.
            statements.need(*(["ENTERED"] if entering else []))
            writer.line("steps = 0" + "".join(f" - load({table}, ENTERED)" for table in entering))
        _write_entering(program, trigger, statements)
        writer.line("m_at = load(batch, 0)")
        writer.line("m_stride = load(batch, 1)")
        raw = {column: names.fresh(f"{column}_in") for column in columns}
        for i, column in enumerate(columns):
            writer.line(f"{raw[column]}_at = load(batch, {2 * i + 2})")
            writer.line(f"{raw[column]}_stride = load(batch, {2 * i + 3})")
        _write_appending(program, trigger, statements)
        write_expecting(statements)
        write_until(trigger, statements, raw)
        with writer.block("for i in range(n):"):
            write_ahead(trigger, statements, raw)
            writer.line("m = load(m_at, i * m_stride)")
            for column in columns:
                writer.line(f"{raw[column]} = load({raw[column]}_at, i * {raw[column]}_stride)")
            _write_row(trigger, statements, raw)
            if "status" in " ".join(writer.lines):
                with writer.block(
                    f"if load(status, {STATUS_ERROR}) != 0 and load(status, {STATUS_ROW}) < 0:"
                ):
                    writer.line(f"store(status, {STATUS_ROW}, i)")
        write_settling(statements)
        if counted:
            for table in entering:
                writer.line(f"steps += load({table}, ENTERED)")
            writer.line(f"store(status, {STATUS_STEPS}, load(status, {STATUS_STEPS}) + steps)")
        writer.line("return 0")
    return writer.text()


def write_each(program: Program, relation: str, name: str, used: set[str], grouped: bool) -> str:
    """Source of ``(state, blocks, ends, first, n, limit, out)``: updates one after the other, each through all
    triggers of the relation before the next, until the changes have ``limit`` rows; the number of the update to go on
    with.

    ``blocks`` is a list of batch blocks, one per trigger, which move on from update to update; ``ends[i]`` becomes
    the number of rows that ``out`` has after update ``i``: what triggers emit, or, where that is of groups
    (``grouped``), raw rows made of it.
    """
    writer = Writer()
    used.update({"load", "store", "next_update"})
    places = [i for i, trigger in enumerate(program.triggers) if trigger.relation == relation]
    writer.line("@jit")
    with writer.block(f"def {name}__HASH__(state, blocks, ends, first, n, limit, out):"):
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"failed = load(status, {STATUS_ERROR})")
        with writer.block("for i in range(first, n):"):
            for k, place in enumerate(places):
                writer.line(f"on_{place}__HASH__(state, load(blocks, {k}), 1)")
                writer.line(f"next_update(load(blocks, {k}), {1 + len(columns_read(program.triggers[place]))})")
            if grouped:
                writer.line("read_change__HASH__(state, out)")
            with writer.block(f"if failed == 0 and load(status, {STATUS_ERROR}) != 0:"):
                writer.line(f"store(status, {STATUS_ROW}, i)")
                writer.line("failed = 1")
            writer.line(f"rows = load(out, {BUFFER_COUNT})")
            writer.line("store(ends, i, rows)")
            with writer.block("if rows >= limit:"):
                writer.line("return i + 1")
        writer.line("return n")
    return writer.text()


def _write_entering(program: Program, trigger: Trigger, statements: StatementWriter) -> None:
    for view in entered(program, trigger):
        statements.need("PENDING", "enter_pending")
        table = statements.table(view)
        with statements.writer.block(f"if load({table}, PENDING) != 0 and enter_pending({table}, status) < 0:"):
            statements.writer.line("return 0")


def _write_appending(program: Program, trigger: Trigger, statements: StatementWriter) -> None:
    for view in appended(program, trigger):
        statements.need("begin_append")
        table = statements.table(view)
        appends = statements.names.fresh(f"appends_{view}")
        statements.appends[view] = appends
        statements.writer.line(f"{appends} = begin_append({table}, m_at, m_stride, n, status)")
        with statements.writer.block(f"if {appends} < 0:"):
            statements.writer.line("return 0")


def _foresee_changes(trigger: Trigger, statements: StatementWriter) -> None:
    """Have fetched, while the rest runs, what the update itself is added to at the end."""
    parameters = {parameter.name for parameter in trigger.parameters}
    for statement in trigger.body[1:]:
        if isinstance(statement, Add) and statement.key and parameters.issuperset(statement.key):
            statements.need("foresee")
            key = statements.key(statement.key)
            line = f"foresee({statements.table(statement.view)}, {key})"
            if statement.view in statements.appends:
                with statements.writer.block(f"if {statements.appends[statement.view]} == 0:"):
                    statements.writer.line(line)
            else:
                statements.writer.line(line)


def _write_row(trigger: Trigger, statements: StatementWriter, raw: dict[str, str]) -> None:
    """Filters first, then the parameters that the body uses, then the body."""
    writer = statements.writer

    def inner() -> None:
        used = {name for s in visit(trigger.body) for name in variables_read(s)}
        for parameter in trigger.parameters:
            if parameter.name in used:
                code = statements.scalars.write(parameter.expr, raw.__getitem__)
                writer.line(f"{statements.variable(parameter.name)} = {code}")
        _foresee_changes(trigger, statements)
        statements.body(trigger.body)

    def nested(filters: tuple[Expr, ...]) -> None:
        if not filters:
            inner()
            return
        code = statements.scalars.write(filters[0], raw.__getitem__)
        with writer.block(f"if {code} == 1:"):
            nested(filters[1:])

    nested(trigger.filters)
