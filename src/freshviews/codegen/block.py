"""A block's program compiled: one generated module with its triggers, readers and projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from freshviews.codegen.imports import import_lines
from freshviews.codegen.layout import emitted_row
from freshviews.codegen.module import Function, build
from freshviews.codegen.reading.enumeration import write_awake, write_enumeration, write_member, write_payload_reader
from freshviews.codegen.reading.evaluation import write_evaluate
from freshviews.codegen.reading.listing import write_listing
from freshviews.codegen.reading.projection import write_projection
from freshviews.codegen.reading.readers import (
    raw_width,
    write_finish,
    write_group_readers,
    write_lookups,
    write_readers,
)
from freshviews.codegen.writer import Names, Writer
from freshviews.codegen.writing.outlined import write_outlined
from freshviews.codegen.writing.rebalancing import write_rebalancing
from freshviews.codegen.writing.repeated import repeated_in
from freshviews.codegen.writing.statements import StatementWriter
from freshviews.codegen.writing.triggers import columns_read, write_each, write_trigger
from freshviews.expr.nodes import Expr
from freshviews.program.printer import print_trigger
from freshviews.program.program import Program
from freshviews.program.results import Enumerated, Held, Listed
from freshviews.program.statements import Body
from freshviews.program.upkeep import Evaluated
from freshviews.query.block import Block

_TRIGGER = "int64(int64, int64, int64)"


@dataclass(frozen=True)
class CompiledTrigger:
    """A trigger's function and the columns, in order, whose address and stride its batch block holds."""

    relation: str
    columns: tuple[str, ...]
    run: Function


@dataclass(frozen=True)
class CompiledBlock:
    """The functions of a block; ``constants`` are the strings whose codes its state holds, in order, ``each`` runs
    updates of a relation one by one, ``read_groups`` is there where rows are looked up, ``read_listed`` and
    ``close_listed`` where the result is listed. Where groups are enumerated, ``read_change`` makes raw rows of what the
    triggers emitted."""

    source: str
    triggers: tuple[CompiledTrigger, ...]
    read_change: Function | None
    read_rows: Function | None
    read_group: Function | None
    enumerate: Function | None
    project: Function | None
    constants: tuple[str, ...]
    awake: Function | None = None
    each: Mapping[str, Function] = field(default_factory=dict)
    read_groups: Function | None = None
    read_listed: Function | None = None
    close_listed: Function | None = None
    evaluate: Function | None = None


def generate(
    program: Program,
    block: Block,
    raw_columns: tuple[str, ...],
    projected: tuple[Expr, ...],
    having: Expr | None,
    counted: bool = False,
    looked_up: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """Source of a block's module, and its string constants.

    ``projected`` are output expressions to compute on raw rows, none where outputs are plain columns; ``looked_up``:
    many rows at once are.
    """
    used: set[str] = set()
    constants: dict[str, int] = {}
    parts = []

    def statements(writer: Writer, names: Names) -> StatementWriter:
        made = StatementWriter(program, writer, names, constants, used)
        made.counted = counted
        return made

    repeated = repeated_in(program)
    for i, trigger in enumerate(program.triggers):
        doc = print_trigger(program, trigger)
        parts.append(write_trigger(program, trigger, f"on_{i}", doc, constants, used, counted, repeated))
    parts = [*repeated.sources, *parts]
    awake: Body = ()
    match program.result:
        case Held(view):
            parts.append(write_readers(program, program.view(view), block, "", used))
        case Listed():
            parts.append(write_listing(program, program.result, block, constants, used))
        case Enumerated(member=member, awake=awake):
            grouped = is_grouped(program, block)
            if grouped:
                writer = Writer()
                write_finish(writer, emitted_row(program), block, "", used)
                parts += [writer.text(), write_payload_reader(program, member, constants, used)]
                parts.append(write_group_readers(program, block, used))
            elif member:
                parts.append(write_member(program, member, "", constants, used))
            width = raw_width(block) if grouped else None
            parts.append(write_enumeration(program, program.result, "", constants, used, width))
            for i, relation in enumerate(_told_in_order(program)):
                parts.append(write_each(program, relation, f"each_{i}", used, grouped))
        case _:
            assert_never(program.result)
    if looked_up:
        parts.append(write_lookups(program, ""))
    if isinstance(program.upkeep, Evaluated):
        parts.append(write_evaluate(program, program.upkeep, constants, used, counted))
    parts += write_rebalancing(program, statements, used)
    parts = [*write_outlined(used), *parts]
    if awake:
        parts.append(write_awake(program, awake, "", constants, used))
    if projected or having is not None:
        parts.append(write_projection(raw_columns, projected, having, "", constants, used))
    head = [
        f'"""{program.name}: {program.strategy}, generated by freshviews."""',
        "",
        *import_lines(used),
        "",
        "",
    ]
    return "\n".join(head) + "\n\n".join(parts), tuple(constants)


def compile_block(
    program: Program,
    block: Block,
    raw_columns: tuple[str, ...],
    projected: tuple[Expr, ...],
    having: Expr | None,
    counted: bool = False,
    looked_up: bool = False,
) -> CompiledBlock:
    """Generate and load a block's module; triggers are compiled at once, readers when first called."""
    source, constants = generate(program, block, raw_columns, projected, having, counted, looked_up)
    wanted = {f"on_{i}": _TRIGGER for i in range(len(program.triggers))}
    match program.result:
        case Held():
            wanted |= {"read_change": "", "read_rows": "", "read_group": ""}
        case Listed():
            wanted |= {"read_change": "", "read_listed": "", "close_listed": "", "read_group": ""}
        case Enumerated(member=member, awake=awake):
            wanted |= {"enumerate_rows": ""}
            if is_grouped(program, block):
                wanted |= {"read_change": ""}
            if member:
                wanted |= {"read_group": ""}
            if awake:
                wanted |= {"awake": ""}
            wanted |= {f"each_{i}": "" for i in range(len(_told_in_order(program)))}
        case _:
            assert_never(program.result)
    if looked_up:
        wanted |= {"read_groups": ""}
    if isinstance(program.upkeep, Evaluated):
        wanted |= {"evaluate": "int64(int64)"}
    if projected or having is not None:
        wanted["project"] = ""
    functions = build(source, wanted)
    triggers = tuple(
        CompiledTrigger(trigger.relation, columns_read(trigger), functions[f"on_{i}"])
        for i, trigger in enumerate(program.triggers)
    )
    return CompiledBlock(
        source,
        triggers,
        functions.get("read_change"),
        functions.get("read_rows"),
        functions.get("read_group"),
        functions.get("enumerate_rows"),
        functions.get("project"),
        constants,
        functions.get("awake"),
        {r: functions[f"each_{i}"] for i, r in enumerate(_told_in_order(program)) if f"each_{i}" in functions},
        functions.get("read_groups"),
        functions.get("read_listed"),
        functions.get("close_listed"),
        functions.get("evaluate"),
    )


def is_grouped(program: Program, block: Block) -> bool:
    """Whether the program enumerates groups: results are made of the payloads that it emits."""
    return not isinstance(program.result, Held) and block.kind == "groups" and bool(block.results)


def _told_in_order(program: Program) -> tuple[str, ...]:
    """The relations of which updates run one by one: none where a batch's derivations are found after it."""
    return () if program.upkeep.joins else tuple(dict.fromkeys(trigger.relation for trigger in program.triggers))
