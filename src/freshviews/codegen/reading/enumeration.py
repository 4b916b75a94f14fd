"""Writes ``enumerate_rows(state, frame, limit, out)``, which appends at most ``limit`` rows of a result to ``out``.

``frame`` stores the positions of the loops, so that the next call continues where the last one stopped.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from freshviews.codegen.layout import emitted_row, row_layout
from freshviews.codegen.writer import RESERVED, Module
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.loops import factors_of
from freshviews.codegen.writing.payloads.elements import write_emitted
from freshviews.codegen.writing.payloads.integers import integer, times
from freshviews.codegen.writing.prologue import write_prologue
from freshviews.program.payload import COUNT
from freshviews.program.program import Program
from freshviews.program.results import Enumerated
from freshviews.program.statements import Body, Emit, Loop
from freshviews.program.structure import visit
from freshviews.records import dataclass

_RESERVED = RESERVED | {"frame", "limit", "out", "found", "resuming", "row", "row_bytes"}


def frame_words(program: Program, result: Enumerated) -> int:
    """Words of a frame."""
    layout = row_layout(emitted_row(program))
    return 1 + _loops_in(result) + layout.key + layout.payload


def _loops_in(result: Enumerated) -> int:
    return sum(isinstance(s, Loop) for s in visit(result.rows))


def write_enumeration(program: Program, module: Module, result: Enumerated, width: int | None = None) -> str:
    """Source of the function; ``width``: words of a raw row where the rows are groups.

    The function writes at most ``limit`` rows to ``out``, column after column, and returns their number. Fewer than
    ``limit`` means the end. The state must not change between calls.

    The statements ``rows`` of an Enumerated result become nested loops, which stop when ``out`` is full. Word 0 of
    ``frame`` gets the number of the Emit at which they stop. Other words get the positions of the loops around this
    Emit. The next call resumes there.

    If an innermost loop only emits rows, its number of turns is computed before it begins. So the loop has no test per
    row. If the result has aggregates, the function writes raw rows (``readers``), row after row instead of column after
    column. It assembles the payload of a group in the last words of the frame.
    """
    numbers = _Numbers(_numbered(result.rows))
    context = _resumable(begin(program, module, _RESERVED), _Frame((), width is not None, numbers))
    with context.writer.function("enumerate_rows", "state, frame, limit, out"):
        write_prologue(context, result.rows)
        if width is not None:
            context.line(f"row = frame + {8 * (1 + _loops_in(result))}")
            context.line(f"row_bytes = {8 * width}")
        context.line("resuming = load(frame, 0)")
        context.line("store(frame, 0, 0)")
        context.line("found = 0")
        context.body(result.rows)
        context.line("return found")
    return context.writer.text()


def _numbered(body: Body) -> int:
    """The loops and Emits in a body."""
    return sum(isinstance(s, Loop | Emit) for s in visit(body))


@dataclass
class _Numbers:
    """Numbers from 1 to ``total`` for loops and Emits in the order in which they are written; ``last``: that given
    last."""

    total: int
    last: int = 0

    def take(self) -> int:
        self.last += 1
        return self.last

    def unless_skipped(self, context: Context, last: int) -> AbstractContextManager[object]:
        """The block that runs unless the next call resumes behind the statements up to number ``last``."""
        return context.block(f"if resuming <= {last}:") if last < self.total else nullcontext()


@dataclass(frozen=True)
class _Frame:
    """The positions of the loops that are open, from the outermost on, and whether rows are groups."""

    positions: tuple[str, ...]
    grouped: bool
    numbers: _Numbers

    def inside(self, position: str) -> _Frame:
        return replace(self, positions=(*self.positions, position))


def _resumable(context: Context, frame: _Frame) -> Context:
    """The context in which loops resume at their positions, and an Emit saves them where the block is full."""
    room = ("row", "row_bytes") if frame.grouped else ()
    return replace(
        context,
        kept=("found",),
        given=("frame", "limit", "out", "resuming", *room, *frame.positions),
        ends=lambda context: _write_end(context, frame.numbers),
        instead={
            Loop: lambda context, loop: _write_loop(context, loop, frame),
            Emit: lambda context, statement: _write_emit(context, statement, frame),
        },
    )


def _write_loop(context: Context, loop: Loop, frame: _Frame) -> None:
    last = frame.numbers.take() + _numbered(loop.body)
    with frame.numbers.unless_skipped(context, last):
        _write_turns(context, loop, frame)


def _write_turns(context: Context, loop: Loop, frame: _Frame) -> None:
    view, table, row = context.views[loop.view], context.table(loop.view), context.row(loop.alias)
    context = context.with_alias(loop.alias, view)
    at, first = (context.fresh(f"{loop.alias}_{word}") for word in ("at", "first"))
    sliced = bool(loop.bound or loop.among)
    if sliced:
        group = context.slice(loop)
        count, number = f"slice_count({group})", f"load32(slice_rows({group}), {at})"
    else:
        count, number = f"load({table}, USED)", at
    context.line(f"{first} = load(frame, {1 + len(frame.positions)}) if resuming else 0")
    emits = sliced and len(loop.body) == 1 and not (loop.optional or view.journal or frame.grouped)
    if emits and isinstance(loop.body[0], Emit):
        _write_innermost(context, loop, loop.body[0], frame, at, first, count, number)
        return
    found = f"row_at({table}, {number})"
    if loop.optional:
        some = f"{count} > 0" if sliced else f"load({table}, LIVE) > 0"
        found = f"{found} if {some} else {context.default(loop.view)}"
        count = f"max({count}, 1)" if sliced else f"{count} if {some} else 1"
    with context.loop(f"for {at} in range({first}, {count}):"):
        context.line(f"{row} = {found}")
        if view.journal or not sliced:
            with context.block(f"if is_zero({table}, {row}):"):
                context.line("continue")
        context.bind(loop)
        _resumable(context, frame.inside(at)).body(loop.body)


def _write_innermost(
    context: Context, loop: Loop, statement: Emit, frame: _Frame, at: str, first: str, count: str, number: str
) -> None:
    """A loop over a slice whose body is one Emit: as many turns as there are rows and room."""
    table, row = context.table(loop.view), context.row(loop.alias)
    stop, rows, width = (context.fresh(f"{loop.alias}_{word}") for word in ("stop", "base", "bytes"))
    outer = context.fresh(f"{loop.alias}_times")
    inside, amount = factors_of(context, loop, statement)
    context.line("resuming = 0")
    context.line(f"{stop} = {count}")
    with context.block(f"if {stop} - {first} > limit - found:"):
        context.line(f"{stop} = {first} + limit - found")
    context.line(f"{outer} = {amount}")
    context.line(f"{rows} = load({table}, ROWS)")
    context.line(f"{width} = 8 * load({table}, WIDTH)")
    bound = {loop.key[i] for i in range(len(loop.key)) if i not in loop.bound}
    words = [(context.variable(v), v in bound) for v in statement.row]
    words.append((times(context, outer, inside), bool(inside)))

    def store(column: int, offset: str, word: str) -> None:
        context.line(f"store(out + 8 * ({column} * limit + found), {offset}, {word})")

    for column, (word, varies) in enumerate(words):
        if not varies:
            with context.loop(f"for {at} in range({stop} - {first}):"):
                store(column, at, word)
    with context.loop(f"for {at} in range({first}, {stop}):"):
        context.line(f"{row} = {rows} + {number} * {width}")
        context.bind(loop)
        for column, (word, varies) in enumerate(words):
            if varies:
                store(column, f"{at} - {first}", word)
    context.line(f"found += {stop} - {first}")
    with context.block(f"if {stop} < {count}:"):
        _write_stop(context, frame.inside(stop), frame.numbers.take())


def _write_stop(context: Context, frame: _Frame, number: int) -> None:
    """Save the number of the Emit and the positions of the loops around it, and return."""
    context.line(f"store(frame, 0, {number})")
    for i, position in enumerate(frame.positions):
        context.line(f"store(frame, {1 + i}, {position})")
    context.line("return found")


def _write_end(context: Context, numbers: _Numbers) -> None:
    """Return after a call of a part that has stopped. The loops that follow a part that has resumed do not resume."""
    with numbers.unless_skipped(context, numbers.last):
        context.line("resuming = 0")
    with context.block("if load(frame, 0) != 0:"):
        context.line("return found")


def _write_emit(context: Context, statement: Emit, frame: _Frame) -> None:
    number = frame.numbers.take()
    with frame.numbers.unless_skipped(context, number):
        _write_row(context, statement, frame, number)


def _write_row(context: Context, statement: Emit, frame: _Frame, number: int) -> None:
    with context.block("if found == limit:"):
        _write_stop(context, frame, number)
    context.line("resuming = 0")
    if frame.grouped:
        _write_group(context, statement)
        return
    (monomial,) = statement.payload
    words = [*map(context.variable, statement.row), integer(context, monomial)]
    for i, word in enumerate(words):
        context.line(f"store(out + {8 * i} * limit, found, {word})")
    context.line("found += 1")


def _write_group(context: Context, statement: Emit) -> None:
    """The raw row of a group whose count is positive."""
    layout = row_layout(emitted_row(context.program))
    for i, variable in enumerate(statement.row):
        context.line(f"store(row, {i}, {context.variable(variable)})")
    write_emitted(context, statement, "row", layout.key)
    with context.block(f"if load(row, {layout.offsets[COUNT]}) > 0:"):
        context.line(f"finish(row, row + {8 * layout.key}, out + found * row_bytes, 1, status)")
        context.line("found += 1")
