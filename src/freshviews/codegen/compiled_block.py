"""Compiles a block, which is one SELECT, to one generated module.

The module has the block's triggers, the functions that read its result, and its output expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import assert_never

from freshviews.codegen.imports import import_lines
from freshviews.codegen.layout import emitted_row
from freshviews.codegen.module import LONG, Function, Source, Written, build, defined, may_be_later
from freshviews.codegen.reading.enumeration import write_enumeration
from freshviews.codegen.reading.evaluation import write_evaluate
from freshviews.codegen.reading.listing import write_listing
from freshviews.codegen.reading.member import write_awake, write_key_reader, write_member, write_payload_reader
from freshviews.codegen.reading.projection import write_projection
from freshviews.codegen.reading.readers import (
    raw_width,
    write_finish,
    write_group_readers,
    write_lookups,
    write_readers,
)
from freshviews.codegen.reading.settling import write_settle
from freshviews.codegen.writer import Module, Writer, inert, write_called
from freshviews.codegen.writing.appending import entered, with_pending
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.parts import repeated_in
from freshviews.codegen.writing.rebalancing_functions import write_procedures
from freshviews.codegen.writing.triggers import columns_read, write_each, write_trigger
from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Enumerated, Held, Listed
from freshviews.program.roles import Role
from freshviews.program.structure import values_of, visit
from freshviews.program.upkeep import Evaluated, Settled
from freshviews.query.block import Block
from freshviews.records import dataclass
from freshviews.types.values import text_in

_OPTIONAL = (
    "read_change", "read_rows", "read_group", "read_groups", "read_key", "read_listed", "close_listed", "project",
    "awake", "evaluate", "end_version", "merge_changes",
)  # fmt: skip
"""Functions that only some modules have."""

MANY_STATEMENTS = 1_500
"""Minimum number of trigger statements of a program whose triggers are written later. Each takes about three lines."""


@dataclass(frozen=True)
class CompiledTrigger:
    """A trigger's function and the columns, in order, whose address and stride its batch block holds."""

    relation: str
    columns: tuple[str, ...]
    run: Function


@dataclass(frozen=True)
class CompiledLanes:
    """The lanes of a trigger, and the views whose deferred rows are flushed before the lanes begin.

    ``shapes`` are the words to which the status of each lane leads, as in ``Written``.
    """

    triggers: tuple[CompiledTrigger, ...]
    flushed: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CompiledBlock:
    """The functions of a block, None for those that its result does not need.

    ``each`` runs updates of a relation one by one. ``read_groups`` exists if rows are looked up, ``read_key`` if they
    are found by a key, ``read_listed`` and ``close_listed`` if the result is listed. If groups are enumerated,
    ``read_change`` makes raw rows of the emitted rows, which ``merge_changes`` merges first if payloads have elements
    of users' rings.
    """

    source: Source
    triggers: tuple[CompiledTrigger, ...]
    each: Mapping[str, Function]
    enumerate: Function | None
    read_change: Function | None
    read_rows: Function | None
    read_group: Function | None
    read_groups: Function | None
    read_key: Function | None
    read_listed: Function | None
    close_listed: Function | None
    project: Function | None
    awake: Function | None
    evaluate: Function | None
    end_version: Function | None
    merge_changes: Function | None


def generate(
    program: Program,
    block: Block,
    raw_columns: tuple[str, ...],
    projected: tuple[Expr, ...],
    having: Expr | None,
    counted: bool = False,
    looked_up: bool = False,
) -> Source:
    """Source of a block's functions: readers are written at once, the triggers of a long program when one is needed.

    ``projected`` are output expressions to compute on raw rows, none where outputs are plain columns; ``counted``: the
    triggers count their steps; ``looked_up``: many rows at once are looked up.
    """
    module = Module()
    readers = [*_readers(program, module, block), *write_procedures(program, module, counted)]
    if looked_up:
        readers.append(write_lookups(program, module))
    if program.keyed is not None:
        readers.append(write_key_reader(program, module, program.keyed))
    if isinstance(program.upkeep, Evaluated):
        readers.append(write_evaluate(program, module, program.upkeep, counted))
    if isinstance(program.upkeep, Settled):
        readers.append(write_settle(program, module, program.upkeep, counted))
    if projected or having is not None:
        readers.append(write_projection(module, raw_columns, projected, having))
    one_by_one = _one_by_one(program) if isinstance(program.result, Enumerated) else ()
    names = [
        *(f"on_{i}" for i in range(len(program.triggers))),
        *(f"each_{i}" for i in range(len(one_by_one))),
        *chain.from_iterable(map(defined, readers)),
    ]

    def write() -> Written:
        whole = module.copy()
        triggers: dict[str, list[str]] = {}
        repeated = repeated_in(program)
        for i, trigger in enumerate(program.triggers):
            text = write_trigger(program, trigger, whole, i, repeated, counted)
            triggers.setdefault(trigger.relation, []).append(text)
        for i, relation in enumerate(one_by_one):
            triggers[relation].append(write_each(program, whole, relation, i, is_grouped(program, block)))
        return _write_module(program, whole, readers, triggers.values())

    source = Source(names, write)
    if not (may_be_later() and _is_long(program) and not _has_strings(program)):
        source.written()
    return source


def _is_long(program: Program) -> bool:
    """True if the triggers have ``MANY_STATEMENTS`` or more."""
    statements = chain.from_iterable(visit(trigger.body) for trigger in program.triggers)
    return sum(1 for _ in islice(statements, MANY_STATEMENTS)) == MANY_STATEMENTS


def _has_strings(program: Program) -> bool:
    """True if the triggers have string literals. The state holds their codes from the beginning: a dictionary that is
    read back in steps must not give these codes to other strings."""
    for trigger in program.triggers:
        exprs = [*trigger.filters, *(parameter.expr for parameter in trigger.parameters)]
        for statement in visit(trigger.body):
            exprs += values_of(statement, Role.EXPRESSION)
        if any(map(_has_string, exprs)):
            return True
    return False


def _has_string(expr: Expr) -> bool:
    if isinstance(expr, Call):
        return any(map(_has_string, expr.args))
    return isinstance(expr, Literal) and text_in(expr.type, expr.value) is not None


def _write_module(program: Program, module: Module, readers: list[str], triggers: Iterable[list[str]]) -> Written:
    """All of a module, with a section per table if it is long."""
    shared = [*module.ring_sources, *write_called(module), *module.part_sources]
    sections = [shared, readers, *triggers]
    if sum(text.count("\n") for text in chain.from_iterable(sections)) <= LONG:
        sections = [list(chain.from_iterable(sections))]
    head = [
        f'"""{inert(program.name)}: {program.strategy}, generated by freshviews."""',
        "",
        *import_lines(module.words),
        "",
        "",
        "",
    ]
    constants, shapes = tuple(module.constants), tuple(module.shapes)
    return Written("\n".join(head), tuple(map(tuple, sections)), constants, shapes)


def _readers(program: Program, module: Module, block: Block) -> list[str]:
    """Sources of the readers of the result."""
    result = program.result
    match result:
        case Held():
            return [write_readers(program, module, program.view(result.view), block)]
        case Listed():
            return [write_listing(program, module, result, block)]
        case Enumerated():
            return _enumerated_readers(program, module, result, block)
        case _:
            assert_never(result)


def _enumerated_readers(program: Program, module: Module, result: Enumerated, block: Block) -> list[str]:
    """Sources of the readers of a result that is enumerated."""
    parts = []
    grouped = is_grouped(program, block)
    if grouped:
        writer = Writer(module)
        write_finish(writer, emitted_row(program), block)
        parts += [writer.text(), write_payload_reader(program, module, result.member)]
        parts.append(write_group_readers(program, module))
    elif result.member:
        parts.append(write_member(begin(program, module), result.member))
    parts.append(write_enumeration(program, module, result, raw_width(block) if grouped else None))
    if result.awake:
        parts.append(write_awake(program, module, result.awake))
    return parts


def compile_block(
    program: Program,
    block: Block,
    raw_columns: tuple[str, ...],
    projected: tuple[Expr, ...],
    having: Expr | None,
    counted: bool = False,
    looked_up: bool = False,
) -> CompiledBlock:
    """Generate and load a block's functions; triggers are compiled at once, readers when first called (``build``)."""
    source = generate(program, block, raw_columns, projected, having, counted, looked_up)
    ahead = [f"on_{i}" for i in range(len(program.triggers))]
    if isinstance(program.upkeep, Evaluated | Settled):
        ahead.append("evaluate" if isinstance(program.upkeep, Evaluated) else "end_version")
    functions = build(source, ahead)
    numbered = {relation: f"each_{i}" for i, relation in enumerate(_one_by_one(program))}
    return CompiledBlock(
        source,
        tuple(
            CompiledTrigger(trigger.relation, columns_read(trigger), functions[f"on_{i}"])
            for i, trigger in enumerate(program.triggers)
        ),
        each={relation: functions[name] for relation, name in numbered.items() if name in functions},
        enumerate=functions.get("enumerate_rows"),
        **{name: functions.get(name) for name in _OPTIONAL},
    )


def compile_lanes(
    program: Program, source: Source, number: int, lanes: Sequence[Trigger], counted: bool = False
) -> CompiledLanes:
    """Load the functions of lanes of a trigger, as a module beside that of the program, whose state they run over;
    they are not compiled yet (``compile_ahead``, ``order``)."""
    written = source.written()
    # Constants have their positions in the state. Each lane has its own shapes: it may have a part of a table of the
    # whole.
    module = Module(constants={text: i for i, text in enumerate(written.constants)})
    procedures = write_procedures(program, module, counted)
    texts = [write_trigger(program, lane, module, i, frozenset(), counted) for i, lane in enumerate(lanes)]
    made = _write_module(program, module, procedures, [texts])
    assert made.constants == written.constants
    own = Source([f"on_{i}" for i in range(len(lanes))], lambda: made)
    own.written()
    functions = build(own, ())
    triggers = (
        CompiledTrigger(lane.relation, columns_read(lane), functions[f"on_{i}"]) for i, lane in enumerate(lanes)
    )
    flushed = entered(program, program.triggers[number], with_pending(program))
    return CompiledLanes(tuple(triggers), flushed, made.shapes)


def is_grouped(program: Program, block: Block) -> bool:
    """True if the program enumerates groups: results are made of the payloads that it emits."""
    return not isinstance(program.result, Held) and block.kind == "groups" and bool(block.results)


def _one_by_one(program: Program) -> tuple[str, ...]:
    """The relations whose updates can run one by one: none if derivations are found after a batch."""
    return () if program.upkeep.joins else tuple(dict.fromkeys(trigger.relation for trigger in program.triggers))
