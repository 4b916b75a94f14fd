"""Writes functions that read a listed result, whose rows are not stored but found by loops (``program.results``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import count

from freshviews.codegen.layout import CHANGES, row_layout, words_of
from freshviews.codegen.reading.member import emitting, write_member
from freshviews.codegen.reading.readers import write_finish
from freshviews.codegen.writer import RESERVED, Module, Writer
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.elements import add_scaled
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.kernel.output import buffer
from freshviews.program.payload import COUNT, ComponentOf
from freshviews.program.program import Program
from freshviews.program.results import Listed, SliceSource, Source, UnionSource
from freshviews.program.statements import Emit, Sum
from freshviews.program.views import View
from freshviews.query.block import Block
from freshviews.records import dataclass

_RESERVED = RESERVED | {
    "frame", "limit", "out", "key", "level", "there", "at", "row", "rows", "group", "sets", "number", "memory", "room",
    "target", "payload", "member", "count", "found",
}  # fmt: skip

# Words of a Union's frame.
SETS = 0
LIGHT = 1
MEMORY = 2
ROOM = 3
FIRST_VALUE = 4

Variables = tuple[str, ...]


class _Frame:
    """The layout of the frame of a listing: the first word of each source, and the word of each variable."""

    def __init__(self, sources: tuple[Source, ...], bound: Variables) -> None:
        self.first: list[int] = []
        self.words: dict[str, int] = {}
        place = 1
        for source in sources:
            self.first.append(place)
            place += 1 if isinstance(source, SliceSource) else FIRST_VALUE
            for variable in _binds(source, (*bound, *self.words)):
                self.words[variable] = place
                place += 1
        self.size = place


def _binds(source: Source, bound: Variables) -> Variables:
    """The variables that a source binds."""
    names = source.key if isinstance(source, SliceSource) else source.variables
    return tuple(v for v in names if v not in bound)


def frame_words(result: Listed) -> int:
    """Words of the frame of a listing."""
    return _Frame(result.sources, ()).size


def write_listing(program: Program, module: Module, result: Listed, block: Block) -> str:
    """Source of all functions that read a result that is listed.

    A listing becomes functions, numbered by k, that resume at a *frame*: a block of words with the position of an
    enumeration. ``next_k(state, frame, variables)`` moves to the next row of a listing, whose sources are nested loops,
    and returns whether there is one. ``take_k`` moves to the next values of a UnionSource. ``has_k`` returns whether a
    set of a union has given values. The frame of a listing::

        number of the source that resumes (0: begin, -1: at the end)
        per SliceSource: position, the values that it binds
        per UnionSource: number of sets (one per row of ``heavy``), position in the rows of ``light``, address of the
            frames of the sets, number of frames that fit there, the values that it binds

    ``close_k`` releases the frames of a union's sets. The state must not change between calls.

    ``read_listed(state, frame, limit, changes)`` appends raw rows to a buffer until it has ``limit`` rows; returns
    whether there may be more. ``close_listed(frame)`` releases the memory of a frame. ``read_group(state, key,
    changes)`` looks a row up. ``read_change(state, changes)`` looks up the new payload of each row of the change, and
    subtracts the change to get the old payload.
    """
    finish = Writer(module)
    write_finish(finish, program.view(result.delta), block)
    functions = _Functions(program, module)
    top = _write_listing(functions, result.sources, ())
    reader = _Reader(program, module, result, block)
    entries = [_write_read_listed(reader, top), _write_read_group(reader), _write_read_change(reader)]
    return "\n\n".join([finish.text(), *functions.parts, *entries])


@dataclass(frozen=True)
class _Functions:
    """The functions that go through a listing, each after those that it calls."""

    program: Program
    module: Module
    parts: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def begin(self) -> Context:
        return begin(self.program, self.module, _RESERVED)

    def end(self, context: Context) -> None:
        self.parts.append(context.writer.text())


@dataclass(frozen=True)
class _Step:
    """A source in the nested loop of a listing: its first word in the frame, the variables that are bound before it and
    those that it binds, and, for a UnionSource, the number of its functions."""

    source: Source
    first: int
    bound: Variables
    binds: Variables
    take: int = 0


def _write_listing(functions: _Functions, sources: tuple[Source, ...], bound: Variables) -> int:
    """The functions of a listing, for given values of ``bound``; returns their number."""
    frame = _Frame(sources, bound)
    steps = []
    inside = bound
    for source, first in zip(sources, frame.first, strict=True):
        take = 0 if isinstance(source, SliceSource) else _write_union(functions, source, inside)
        binds = _binds(source, inside)
        steps.append(_Step(source, first, inside, binds, take))
        inside = (*inside, *binds)
    number = next(functions.numbers)
    _write_next(functions, number, steps, frame)
    _write_close(functions, number, steps)
    return number


def _write_union(functions: _Functions, union: UnionSource, bound: Variables) -> int:
    """The functions of a Union; returns their number."""
    inside = (*bound, *(v for v in union.heavy.key if v not in bound))
    inner = _write_listing(functions, union.inner, inside)
    number = next(functions.numbers)
    frame = _Frame(union.inner, inside)
    _write_has(functions, number, union, inside)
    _write_close_union(functions, number, union, inner, frame)
    _write_open(functions, number, union, bound, frame)
    _write_take(functions, number, union, bound, inner, frame)
    return number


# Sources of a listing, in a nested loop


def _write_next(functions: _Functions, number: int, steps: list[_Step], frame: _Frame) -> None:
    context = functions.begin()
    with context.writer.function(f"next_{number}", _arguments(context, ("state", "frame"), steps[0].bound)):
        write_prologue(context, (), [s.source.view for s in steps if isinstance(s.source, SliceSource)])
        context.line("level = load(frame, 0)")
        with context.block("if level < 0:"):
            context.line("return 0")
        for variable, word in frame.words.items():
            context.line(f"{context.variable(variable)} = load(frame, {word})")
        with context.block("if level == 0:"):
            _write_begin(context, steps[0])
            context.line("level = 1")
        with context.loop("while level > 0:"):
            for i, step in enumerate(steps):
                with context.block(f"{'el' if i else ''}if level == {i + 1}:"):
                    _write_advance(context, step, frame)
                    with context.block("if there == 0:"):
                        context.line(f"level = {i}")
                    with context.block("else:"):
                        if i + 1 == len(steps):
                            context.line(f"store(frame, 0, {len(steps)})")
                            context.line("return 1")
                        else:
                            _write_begin(context, steps[i + 1])
                            context.line(f"level = {i + 2}")
        context.line("store(frame, 0, -1)")
        context.line("return 0")
    functions.end(context)


def _write_begin(context: Context, step: _Step) -> None:
    """Set a source to its beginning."""
    if isinstance(step.source, SliceSource):
        context.line(f"store(frame, {step.first}, 0)")
    else:
        arguments = _arguments(context, ("state", f"frame + {8 * step.first}"), step.bound)
        context.line(f"open_{step.take}({arguments})")


def _write_advance(context: Context, step: _Step, frame: _Frame) -> None:
    """Set ``there`` to whether a source has more, and bind its variables."""
    source = step.source
    if not isinstance(source, SliceSource):
        arguments = _arguments(context, ("state", f"frame + {8 * step.first}"), step.bound)
        context.line(f"there = take_{step.take}({arguments})")
        for variable in step.binds:
            context.line(f"{context.variable(variable)} = load(frame, {frame.words[variable]})")
        return
    context.line(f"at = load(frame, {step.first})")
    _write_row(context, source)
    context.line(f"store(frame, {step.first}, at)")
    with context.block("if there == 1:"):
        for variable in step.binds:
            context.line(f"{context.variable(variable)} = load(row, {source.key.index(variable)})")
            context.line(f"store(frame, {frame.words[variable]}, {context.variable(variable)})")


def _write_row(context: Context, rows: SliceSource) -> None:
    """Set ``row`` to the first row at position ``at`` or after, and move ``at`` behind it.

    Sets ``there`` to whether there is such a row.
    """
    table = context.table(rows.view)
    context.line("there = 0")
    if _is_slice(rows):
        _write_slice(context, rows)
        with context.block("if at < slice_count(group):"):
            context.line(f"row = row_at({table}, load32(slice_rows(group), at))")
            context.line("at += 1")
            context.line("there = 1")
        return
    with context.loop(f"while there == 0 and at < load({table}, USED):"):
        context.line(f"row = row_at({table}, at)")
        context.line("at += 1")
        with context.block(f"if not is_zero({table}, row):"):
            context.line("there = 1")


def _is_slice(rows: SliceSource) -> bool:
    return bool(rows.bound or rows.among)


def _write_slice(context: Context, rows: SliceSource) -> None:
    key = context.key(tuple(rows.key[i] for i in rows.bound))
    context.line(f"group = slice_of({context.index(rows.view, rows.bound, rows.among)}, {key})")


def _write_close(functions: _Functions, number: int, steps: list[_Step]) -> None:
    context = functions.begin()
    with context.writer.function(f"close_{number}", "frame"):
        for step in steps:
            if isinstance(step.source, UnionSource):
                context.line(f"close_union_{step.take}(frame + {8 * step.first})")
        context.line("return 0")
    functions.end(context)


# The sets of a Union


def _write_has(functions: _Functions, number: int, union: UnionSource, inside: Variables) -> None:
    context = emitting(functions.begin(), lambda context, _: context.line("return 1"))
    context = replace(context, kept=("found",), ends=_write_found)
    with context.writer.function(f"has_{number}", _arguments(context, ("state",), (*inside, *union.variables))):
        write_prologue(context, union.has)
        context.line("found = 0")
        context.body(union.has)
        context.line("return 0")
    functions.end(context)


def _write_found(context: Context) -> None:
    with context.block("if found != 0:"):
        context.line("return 1")


def _write_close_union(functions: _Functions, number: int, union: UnionSource, inner: int, frame: _Frame) -> None:
    context = functions.begin()
    with context.writer.function(f"close_union_{number}", "frame"):
        if any(isinstance(source, UnionSource) for source in union.inner):
            with context.loop(f"for number in range(load(frame, {ROOM})):"):
                context.line(f"close_{inner}(load(frame, {MEMORY}) + {8 * frame.size} * number)")
        context.line(f"release(load(frame, {MEMORY}))")
        context.line(f"store(frame, {MEMORY}, 0)")
        context.line(f"store(frame, {ROOM}, 0)")
        context.line("return 0")
    functions.end(context)


def _write_open(functions: _Functions, number: int, union: UnionSource, bound: Variables, frame: _Frame) -> None:
    """A frame for each set, all at their beginning; frames of an earlier turn are used again."""
    context = functions.begin()
    with context.writer.function(f"open_{number}", _arguments(context, ("state", "frame"), bound)):
        write_prologue(context, (), [union.heavy.view])
        if _is_slice(union.heavy):
            _write_slice(context, union.heavy)
            context.line("sets = slice_count(group)")
        else:
            context.line(f"sets = load({context.table(union.heavy.view)}, USED)")
        context.line(f"store(frame, {LIGHT}, 0)")
        with context.block(f"if sets > load(frame, {ROOM}):"):
            context.line(f"close_union_{number}(frame)")
            context.line(f"store(frame, {MEMORY}, allocate({frame.size} * sets))")
            with context.block(f"if load(frame, {MEMORY}) == 0:"):
                context.line(f"store(load(state, {CHANGES}), {buffer.FAILED}, 1)")
                context.line("sets = 0")
            context.line(f"store(frame, {ROOM}, sets)")
        with context.loop("for number in range(sets):"):
            context.line(f"store(load(frame, {MEMORY}) + {8 * frame.size} * number, 0, 0)")
        context.line(f"store(frame, {SETS}, sets)")
        context.line("return 0")
    functions.end(context)


def _write_take(
    functions: _Functions, number: int, union: UnionSource, bound: Variables, inner: int, frame: _Frame
) -> None:
    """The union algorithm."""
    context = functions.begin()
    heavy, light = union.heavy, union.light
    marks = tuple(v for v in heavy.key if v not in bound)
    local = {v: context.variable(v) for v in (*marks, *union.variables)}
    table = context.table(heavy.view)
    with context.writer.function(f"take_{number}", _arguments(context, ("state", "frame"), bound)):
        write_prologue(context, (), [heavy.view, *([light.view] if light is not None else [])])
        context.line("there = 0")
        for variable in local.values():
            context.line(f"{variable} = 0")
        if light is not None:
            context.line(f"at = load(frame, {LIGHT})")
            _write_row(context, light)
            context.line(f"store(frame, {LIGHT}, at)")
            with context.block("if there == 1:"):
                for variable in union.variables:
                    context.line(f"{local[variable]} = load(row, {light.key.index(variable)})")
        if _is_slice(heavy):
            _write_slice(context, heavy)
        with context.loop(f"for number in range(load(frame, {SETS})):"):
            context.line(f"member = load(frame, {MEMORY}) + {8 * frame.size} * number")
            with context.block("if load(member, 0) < 0:"):
                context.line("continue")  # as many values were taken from this set as it has
            place = "load32(slice_rows(group), number)" if _is_slice(heavy) else "number"
            context.line(f"row = row_at({table}, {place})")
            if not _is_slice(heavy):
                with context.block(f"if is_zero({table}, row):"):
                    context.line("continue")
            for variable in marks:
                context.line(f"{local[variable]} = load(row, {heavy.key.index(variable)})")
            asked = _arguments(context, ("state",), (*bound, *marks, *union.variables))
            with context.block(f"if there == 1 and has_{number}({asked}) == 0:"):
                context.line("continue")
            inside = _arguments(context, ("state", "member"), (*bound, *marks))
            with context.block(f"if next_{inner}({inside}) == 1:"):
                context.line("there = 1")
                for variable in union.variables:
                    context.line(f"{local[variable]} = load(member, {frame.words[variable]})")
        for i, variable in enumerate(union.variables):
            context.line(f"store(frame, {FIRST_VALUE + i}, {local[variable]})")
        context.line("return there")
    functions.end(context)


# What the engine calls


@dataclass(frozen=True)
class _Reader:
    """The common part of the functions that read the result; they emit raw rows."""

    program: Program
    module: Module
    result: Listed
    block: Block

    @property
    def view(self) -> View:
        """The view in which the change is gathered."""
        return self.program.view(self.result.delta)

    def begin(self) -> Context:
        return emitting(begin(self.program, self.module, _RESERVED), self._write_emit)

    def _write_emit(self, context: Context, statement: Emit) -> None:
        """Append the raw row, if there is one."""
        count = context.local(_total(statement), COUNT)
        bag = self.block.kind == "bag"
        with context.block(f"if {count} != 0:" if bag else f"if {count} > 0:"):
            self.write_row(context, statement, count if bag else "1")

    def write_row(self, context: Context, statement: Emit, multiplicity: str) -> None:
        """Lay the payload out as that of a row of the change, and append the raw row."""
        layout = row_layout(self.view)
        context.line(f"row = load({context.table(self.view.name)}, SCRATCH)")
        for i, variable in enumerate(statement.row):
            context.line(f"store(row, {i}, {context.variable(variable)})")
        for component in self.view.components:
            place, local = layout.offsets[component.name], context.local(_total(statement), component.name)
            if words_of(component) > 1:
                context.line(f"copy_words(row + {8 * place}, {local}, {words_of(component)})")
            else:
                context.line(f"store(row, {place}, {local})")
        context.line(f"finish(row, row + {8 * layout.key}, append(changes), {multiplicity}, status)")


def _write_read_listed(reader: _Reader, top: int) -> str:
    context = reader.begin()
    frame = _Frame(reader.result.sources, ())
    with context.writer.function("read_listed", "state, frame, limit, changes"):
        write_prologue(context, (reader.result.member,), [reader.view.name])
        with context.loop(f"while load(changes, {buffer.COUNT}) < limit:"):
            with context.block(f"if next_{top}(state, frame) == 0:"):
                context.line("return 0")
            for variable in reader.program.free:
                context.line(f"{context.variable(variable)} = load(frame, {frame.words[variable]})")
            context.body((reader.result.member,))
        context.line("return 1")
    with context.writer.function("close_listed", "frame"):
        context.line(f"return close_{top}(frame)")
    return context.writer.text()


def _write_read_group(reader: _Reader) -> str:
    return write_member(reader.begin(), (reader.result.member,), (reader.view.name,))


def _write_read_change(reader: _Reader) -> str:
    context, view, total = reader.begin(), reader.view, reader.result.member
    layout = row_layout(view)
    table, (emit,) = context.table(view.name), total.then
    assert isinstance(emit, Emit)
    with context.writer.function("read_change", "state, changes"):
        write_prologue(context, (reader.result.member,), [view.name])
        with context.loop(f"for number in range(load({table}, USED)):"):
            context.line(f"member = row_at({table}, number)")
            with context.block(f"if is_zero({table}, member):"):
                context.line("continue")
            if reader.block.kind == "bag":
                context.line(f"count = load(member, {layout.offsets[COUNT]})")
                with context.block("if count != 0:"):
                    context.line(f"finish(member, member + {8 * layout.key}, append(changes), count, status)")
            else:
                for i, variable in enumerate(reader.program.free):
                    context.line(f"{context.variable(variable)} = load(member, {i})")
                context.body((replace(total, then=()),))
                for sign in (-1, 1):
                    _add_change(context, total, view, sign)
                    with context.block(f"if {context.local(_total(emit), COUNT)} > 0:"):
                        reader.write_row(context, emit, str(sign))
        context.line(f"reset_table({table})")
        context.line("return 0")
    return context.writer.text()


def _add_change(context: Context, total: Sum, view: View, sign: int) -> None:
    """Add the change of a payload to the looked-up payload, or subtract it."""
    layout = row_layout(view)
    for component in total.components:
        place, local = layout.offsets[component.name], context.local(total.alias, component.name)
        if words_of(component) > 1:
            context.line(add_scaled(context.writer.module, component.ring, local, f"member + {8 * place}", str(sign)))
        else:
            context.line(f"{local} = plus({local}, times(load(member, {place}), {sign}, status), status)")


def _total(emit: Emit) -> str:
    """The Sum that has the payload of a row."""
    (part,) = emit.payload[0].factors
    assert isinstance(part, ComponentOf)
    return part.alias


def _arguments(context: Context, first: tuple[str, ...], variables: Variables) -> str:
    return ", ".join([*first, *map(context.variable, variables)])
