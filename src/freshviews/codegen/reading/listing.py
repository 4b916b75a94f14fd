"""A result that is listed, as Python source: its rows, one of them, its change.

A listing becomes resumable functions over *frames*, blocks of words that hold where they are. ``next_k(state, frame,
variables)`` goes on to the next values of the sources of a listing, in a nested loop, and returns whether there are
some; ``take_k`` does so for a Union, ``has_k`` asks whether one of its sets has values. The frame of a listing::

    which source goes on (0: begin, -1: at the end) | per Rows: position, the values that it binds
                                                    | per Union: sets, position in light, their frames, how many there
                                                      is room for, the values that it binds

The frames of the sets of a Union lie one after the other in memory of their own, which ``close_k`` gives back. As with
other enumerations, the state must not change in between.

``read_listed(state, frame, limit, out)`` appends raw rows to a buffer until it has ``limit`` of them, and returns
whether there may be more. ``read_group(state, key, out)`` looks one up. ``read_change(state, out)`` goes through the
gathered change: the payload after it is looked up, that before it follows.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.codegen.layout import CHANGES, CONSTANTS, STATUS, real_scratch, row_layout, table_word
from freshviews.codegen.reading.readers import write_finish
from freshviews.codegen.writer import RESERVED, Names, Writer
from freshviews.codegen.writing.statements import StatementWriter
from freshviews.kernel.output import buffer
from freshviews.kernel.scalar.real import REAL_WORDS
from freshviews.program.payload import COUNT, ComponentOf
from freshviews.program.program import Program
from freshviews.program.results import Listed, SliceSource, Source, UnionSource
from freshviews.program.statements import Emit, Statement, Sum
from freshviews.program.structure import views_in, visit
from freshviews.program.views import View
from freshviews.query.block import Block

_RESERVED = RESERVED | {
    "frame", "limit", "out", "key", "level", "there", "at", "row", "rows", "group", "sets", "number", "memory", "room",
    "target", "payload", "member", "count",
}  # fmt: skip

# Words of a Union's frame.
SETS = 0
LIGHT = 1
MEMORY = 2
ROOM = 3
FIRST_VALUE = 4


class _Frame:
    """Where things lie in the frame of a listing: the first word of each source, and the word of each variable."""

    def __init__(self, sources: tuple[Source, ...], bound: tuple[str, ...]) -> None:
        self.first: list[int] = []
        self.words: dict[str, int] = {}
        place = 1
        for source in sources:
            self.first.append(place)
            place += 1 if isinstance(source, SliceSource) else FIRST_VALUE
            for variable in binds(source, (*bound, *self.words)):
                self.words[variable] = place
                place += 1
        self.size = place


def binds(source: Source, bound: tuple[str, ...]) -> tuple[str, ...]:
    """The variables that a source binds."""
    names = source.key if isinstance(source, SliceSource) else source.variables
    return tuple(v for v in names if v not in bound)


def frame_words(result: Listed) -> int:
    """Words of the frame of a listing."""
    return _Frame(result.sources, ()).size


class _ListingWriter(StatementWriter):
    """Emits rows of the result with their payloads, or, in ``has``, that there is one."""

    block: Block | None = None
    view: View
    """The view in which the change is gathered."""

    def emit(self, statement: Emit) -> None:
        if self.block is None:
            self.writer.line("return 1")
            return
        count = self.local(_total(statement), COUNT)
        if self.block.kind == "bag":
            with self.writer.block(f"if {count} != 0:"):
                self.write_row(statement, count)
        else:
            with self.writer.block(f"if {count} > 0:"):
                self.write_row(statement, "1")

    def write_row(self, statement: Emit, multiplicity: str) -> None:
        """Lay the payload out as that of a row of the change, and append the raw row."""
        view = self.view
        layout = row_layout(view)
        self.need("append", "store", "load")
        self.writer.line(f"row = load({self.table(view.name)}, SCRATCH)")
        for i, variable in enumerate(statement.row):
            self.writer.line(f"store(row, {i}, {self.variable(variable)})")
        for component in view.components:
            place, local = layout.offsets[component.name], self.local(_total(statement), component.name)
            if component.ring == "real":
                self.need("copy_words")
                self.writer.line(f"copy_words(row + {8 * place}, {local}, {REAL_WORDS})")
            else:
                self.writer.line(f"store(row, {place}, {local})")
        payload = f"row + {8 * layout.key}"
        self.writer.line(f"finish__HASH__(row, {payload}, append(changes), {multiplicity}, status)")

    def prologue(self, body: tuple[Statement, ...], *views: str) -> None:
        line = self.writer.line
        line(f"status = load(state, {STATUS})")
        line(f"constants = load(state, {CONSTANTS})")
        for view in dict.fromkeys([*views, *(v for s in visit(body) for v in views_in(s))]):
            line(f"{self.table(view)} = load(state, {table_word(self.program, view)})")
        scratch = real_scratch(self.program)
        for statement in visit(body):
            if isinstance(statement, Sum):
                for component in statement.components:
                    if component.ring == "real":
                        local = self.local(statement.alias, component.name)
                        line(f"{local} = load(state, {scratch[statement.alias, component.name]})")


class _Functions:
    """Writes the functions of a program's listing, those that others call before them."""

    def __init__(self, program: Program, result: Listed, constants: dict[str, int], used: set[str]) -> None:
        self.program = program
        self.result = result
        self.view = program.view(result.delta)
        self.constants = constants
        self.used = used
        self.parts: list[str] = []
        self.numbers = 0

    def statements(self, block: Block | None = None) -> _ListingWriter:
        writer = _ListingWriter(self.program, Writer(), Names(_RESERVED), self.constants, self.used)
        writer.block = block
        writer.view = self.view
        return writer

    def listing(self, sources: tuple[Source, ...], bound: tuple[str, ...]) -> int:
        """Write what goes through a listing, ``bound`` given; the number of its functions."""
        takes: list[int] = []
        inside = bound
        for source in sources:
            takes.append(0 if isinstance(source, SliceSource) else self.union(source, inside))
            inside = (*inside, *binds(source, inside))
        self.numbers += 1
        self._next(self.numbers, sources, takes, bound)
        self._close(self.numbers, sources, takes, bound)
        return self.numbers

    def union(self, union: UnionSource, bound: tuple[str, ...]) -> int:
        """Write what goes through a union; the number of its functions."""
        inside = (*bound, *(v for v in union.heavy.key if v not in bound))
        inner = self.listing(union.inner, inside)
        self.numbers += 1
        number = self.numbers
        frame = _Frame(union.inner, inside)
        self._has(number, union, inside)
        self._close_union(number, union, inner, frame)
        self._open(number, union, bound, frame)
        self._take(number, union, bound, inner, frame)
        return number

    # Sources of a listing, in a nested loop

    def _next(self, number: int, sources: tuple[Source, ...], takes: list[int], bound: tuple[str, ...]) -> None:
        out = self.statements()
        frame = _Frame(sources, bound)
        line = out.writer.line
        line("@jit")
        with out.writer.block(f"def next_{number}__HASH__({_arguments(out, ('state', 'frame'), bound)}):"):
            out.prologue((), *(s.view for s in sources if isinstance(s, SliceSource)))
            line("level = load(frame, 0)")
            with out.writer.block("if level < 0:"):
                line("return 0")
            for variable, word in frame.words.items():
                line(f"{out.variable(variable)} = load(frame, {word})")
            with out.writer.block("if level == 0:"):
                self._begin(out, sources[0], takes[0], frame.first[0], bound)
                line("level = 1")
            with out.writer.block("while level > 0:"):
                inside = bound
                for i, source in enumerate(sources):
                    with out.writer.block(f"{'el' if i else ''}if level == {i + 1}:"):
                        self._advance(out, source, takes[i], frame, frame.first[i], inside)
                        inside = (*inside, *binds(source, inside))
                        with out.writer.block("if there == 0:"):
                            line(f"level = {i}")
                        with out.writer.block("else:"):
                            if i + 1 == len(sources):
                                line(f"store(frame, 0, {len(sources)})")
                                line("return 1")
                            else:
                                self._begin(out, sources[i + 1], takes[i + 1], frame.first[i + 1], inside)
                                line(f"level = {i + 2}")
            line("store(frame, 0, -1)")
            line("return 0")
        self.parts.append(out.writer.text())

    def _begin(self, out: _ListingWriter, source: Source, take: int, first: int, bound: tuple[str, ...]) -> None:
        if isinstance(source, SliceSource):
            out.writer.line(f"store(frame, {first}, 0)")
        else:
            arguments = _arguments(out, ("state", f"frame + {8 * first}"), bound)
            out.writer.line(f"open_{take}__HASH__({arguments})")

    def _advance(
        self, out: _ListingWriter, source: Source, take: int, frame: _Frame, first: int, bound: tuple[str, ...]
    ) -> None:
        """Have ``there`` say whether a source has more, and bind its variables."""
        line = out.writer.line
        if not isinstance(source, SliceSource):
            line(f"there = take_{take}__HASH__({_arguments(out, ('state', f'frame + {8 * first}'), bound)})")
            for variable in binds(source, bound):
                line(f"{out.variable(variable)} = load(frame, {frame.words[variable]})")
            return
        line(f"at = load(frame, {first})")
        self._row(out, source, "at")
        line(f"store(frame, {first}, at)")
        with out.writer.block("if there == 1:"):
            for variable in binds(source, bound):
                line(f"{out.variable(variable)} = load(row, {source.key.index(variable)})")
                line(f"store(frame, {frame.words[variable]}, {out.variable(variable)})")

    def _row(self, out: _ListingWriter, rows: SliceSource, at: str) -> None:
        """Have ``row`` be the row at a position or after, which moves behind it, and ``there`` whether there is one."""
        line, table = out.writer.line, out.table(rows.view)
        out.need("load", "store", "load32", "row_at")
        line("there = 0")
        if rows.bound or rows.among:
            self._slice(out, rows)
            with out.writer.block(f"if {at} < slice_count(group):"):
                line(f"row = row_at({table}, load32(slice_rows(group), {at}))")
                line(f"{at} += 1")
                line("there = 1")
            return
        out.need("is_zero")
        with out.writer.block(f"while there == 0 and {at} < load({table}, USED):"):
            line(f"row = row_at({table}, {at})")
            line(f"{at} += 1")
            with out.writer.block(f"if not is_zero({table}, row):"):
                line("there = 1")

    def _slice(self, out: _ListingWriter, rows: SliceSource) -> None:
        out.need("slice_of", "slice_count", "slice_rows")
        key = out.key(tuple(rows.key[i] for i in rows.bound))
        out.writer.line(f"group = slice_of({out.index(rows.view, rows.bound, rows.among)}, {key})")

    def _close(self, number: int, sources: tuple[Source, ...], takes: list[int], bound: tuple[str, ...]) -> None:
        out = self.statements()
        frame = _Frame(sources, bound)
        out.writer.line("@jit")
        with out.writer.block(f"def close_{number}__HASH__(frame):"):
            for source, take, first in zip(sources, takes, frame.first, strict=True):
                if isinstance(source, UnionSource):
                    out.writer.line(f"close_union_{take}__HASH__(frame + {8 * first})")
            out.writer.line("return 0")
        self.parts.append(out.writer.text())

    # The sets of a union

    def _has(self, number: int, union: UnionSource, inside: tuple[str, ...]) -> None:
        out = self.statements()
        out.writer.line("@jit")
        with out.writer.block(f"def has_{number}__HASH__({_arguments(out, ('state',), (*inside, *union.variables))}):"):
            out.prologue(union.has)
            out.body(union.has)
            out.writer.line("return 0")
        self.parts.append(out.writer.text())

    def _close_union(self, number: int, union: UnionSource, inner: int, frame: _Frame) -> None:
        out = self.statements()
        out.need("release")
        line = out.writer.line
        line("@jit")
        with out.writer.block(f"def close_union_{number}__HASH__(frame):"):
            if any(isinstance(source, UnionSource) for source in union.inner):
                with out.writer.block(f"for number in range(load(frame, {ROOM})):"):
                    line(f"close_{inner}__HASH__(load(frame, {MEMORY}) + {8 * frame.size} * number)")
            line(f"release(load(frame, {MEMORY}))")
            line(f"store(frame, {MEMORY}, 0)")
            line(f"store(frame, {ROOM}, 0)")
            line("return 0")
        self.parts.append(out.writer.text())

    def _open(self, number: int, union: UnionSource, bound: tuple[str, ...], frame: _Frame) -> None:
        """As many frames as there are sets, all at their beginning; those of an earlier turn serve again."""
        out = self.statements()
        out.need("allocate")
        line = out.writer.line
        line("@jit")
        with out.writer.block(f"def open_{number}__HASH__({_arguments(out, ('state', 'frame'), bound)}):"):
            out.prologue((), union.heavy.view)
            if union.heavy.bound or union.heavy.among:
                self._slice(out, union.heavy)
                line("sets = slice_count(group)")
            else:
                line(f"sets = load({out.table(union.heavy.view)}, USED)")
            line(f"store(frame, {LIGHT}, 0)")
            with out.writer.block(f"if sets > load(frame, {ROOM}):"):
                line(f"close_union_{number}__HASH__(frame)")
                line(f"store(frame, {MEMORY}, allocate({frame.size} * sets))")
                with out.writer.block(f"if load(frame, {MEMORY}) == 0:"):
                    line(f"store(load(state, {CHANGES}), {buffer.FAILED}, 1)")
                    line("sets = 0")
                line(f"store(frame, {ROOM}, sets)")
            with out.writer.block("for number in range(sets):"):
                line(f"store(load(frame, {MEMORY}) + {8 * frame.size} * number, 0, 0)")
            line(f"store(frame, {SETS}, sets)")
            line("return 0")
        self.parts.append(out.writer.text())

    def _take(self, number: int, union: UnionSource, bound: tuple[str, ...], inner: int, frame: _Frame) -> None:
        """The union algorithm."""
        out = self.statements()
        line = out.writer.line
        heavy = union.heavy
        marks = tuple(v for v in heavy.key if v not in bound)
        values = {v: FIRST_VALUE + i for i, v in enumerate(union.variables)}
        line("@jit")
        with out.writer.block(f"def take_{number}__HASH__({_arguments(out, ('state', 'frame'), bound)}):"):
            out.prologue((), heavy.view, *([union.light.view] if union.light is not None else []))
            line("there = 0")
            for variable in (*marks, *union.variables):
                line(f"{out.variable(variable)} = 0")
            if union.light is not None:
                line(f"at = load(frame, {LIGHT})")
                self._row(out, union.light, "at")
                line(f"store(frame, {LIGHT}, at)")
                with out.writer.block("if there == 1:"):
                    for variable in union.variables:
                        line(f"{out.variable(variable)} = load(row, {union.light.key.index(variable)})")
            if heavy.bound or heavy.among:
                self._slice(out, heavy)
            with out.writer.block(f"for number in range(load(frame, {SETS})):"):
                line(f"member = load(frame, {MEMORY}) + {8 * frame.size} * number")
                with out.writer.block("if load(member, 0) < 0:"):
                    line("continue")  # what was taken from this set has been as much as all of it
                place = "load32(slice_rows(group), number)" if heavy.bound or heavy.among else "number"
                line(f"row = row_at({out.table(heavy.view)}, {place})")
                if not (heavy.bound or heavy.among):
                    out.need("is_zero")
                    with out.writer.block(f"if is_zero({out.table(heavy.view)}, row):"):
                        line("continue")
                for variable in marks:
                    line(f"{out.variable(variable)} = load(row, {heavy.key.index(variable)})")
                asked = _arguments(out, ("state",), (*bound, *marks, *union.variables))
                with out.writer.block(f"if there == 1 and has_{number}__HASH__({asked}) == 0:"):
                    line("continue")
                inside = _arguments(out, ("state", "member"), (*bound, *marks))
                with out.writer.block(f"if next_{inner}__HASH__({inside}) == 1:"):
                    line("there = 1")
                    for variable in union.variables:
                        line(f"{out.variable(variable)} = load(member, {frame.words[variable]})")
            for variable, word in values.items():
                line(f"store(frame, {word}, {out.variable(variable)})")
            line("return there")
        self.parts.append(out.writer.text())

    # What the engine calls

    def entry(self, top: int, block: Block) -> None:
        """``read_listed``, ``close_listed``, ``read_group`` and ``read_change``."""
        total = self.result.member
        self._read_listed(top, block, total)
        self._read_group(block, total)
        self._read_change(block, total)

    def _read_listed(self, top: int, block: Block, total: Sum) -> None:
        out = self.statements(block)
        frame = _Frame(self.result.sources, ())
        line = out.writer.line
        line("@jit")
        with out.writer.block("def read_listed__HASH__(state, frame, limit, changes):"):
            out.prologue((total,), self.view.name)
            with out.writer.block(f"while load(changes, {buffer.COUNT}) < limit:"):
                with out.writer.block(f"if next_{top}__HASH__(state, frame) == 0:"):
                    line("return 0")
                for variable in self.program.free:
                    line(f"{out.variable(variable)} = load(frame, {frame.words[variable]})")
                out.body((total,))
            line("return 1")
        line()
        line()
        line("@jit")
        with out.writer.block("def close_listed__HASH__(frame):"):
            line(f"return close_{top}__HASH__(frame)")
        self.parts.append(out.writer.text())

    def _read_group(self, block: Block, total: Sum) -> None:
        out = self.statements(block)
        line = out.writer.line
        line("@jit")
        with out.writer.block("def read_group__HASH__(state, key, changes):"):
            out.prologue((total,), self.view.name)
            for i, variable in enumerate(self.program.free):
                line(f"{out.variable(variable)} = load(key, {i})")
            out.body((total,))
            line("return 0")
        self.parts.append(out.writer.text())

    def _read_change(self, block: Block, total: Sum) -> None:
        out = self.statements(block)
        view = self.view
        layout = row_layout(view)
        table, (emit,) = out.table(view.name), total.then
        assert isinstance(emit, Emit)
        line = out.writer.line
        out.need("is_zero", "row_at", "reset_table", "append", "store", "load")
        line("@jit")
        with out.writer.block("def read_change__HASH__(state, changes):"):
            out.prologue((total,), view.name)
            with out.writer.block(f"for number in range(load({table}, USED)):"):
                line(f"member = row_at({table}, number)")
                with out.writer.block(f"if is_zero({table}, member):"):
                    line("continue")
                if block.kind == "bag":
                    line(f"count = load(member, {layout.offsets[COUNT]})")
                    with out.writer.block("if count != 0:"):
                        payload = f"member + {8 * layout.key}"
                        line(f"finish__HASH__(member, {payload}, append(changes), count, status)")
                else:
                    for i, variable in enumerate(self.program.free):
                        line(f"{out.variable(variable)} = load(member, {i})")
                    out.body((replace(total, then=()),))
                    for sign in (-1, 1):
                        self._add_change(out, total, sign)
                        with out.writer.block(f"if {out.local(_total(emit), COUNT)} > 0:"):
                            out.write_row(emit, str(sign))
            line(f"reset_table({table})")
            line("return 0")
        self.parts.append(out.writer.text())

    def _add_change(self, out: _ListingWriter, total: Sum, sign: int) -> None:
        """Add what a payload grew by to what was looked up, or take it off."""
        layout = row_layout(self.view)
        for component in total.components:
            place, local = layout.offsets[component.name], out.local(total.alias, component.name)
            if component.ring == "real":
                out.need("real_add_scaled")
                out.writer.line(f"real_add_scaled({local}, member + {8 * place}, {sign})")
            else:
                out.need("plus", "times")
                amount = f"times(load(member, {place}), {sign}, status)"
                out.writer.line(f"{local} = plus({local}, {amount}, status)")


def write_listing(program: Program, result: Listed, block: Block, constants: dict[str, int], used: set[str]) -> str:
    """Source of all functions that read a result that is listed."""
    functions = _Functions(program, result, constants, used)
    finish = Writer()
    write_finish(finish, functions.view, block, "", used)
    functions.parts.append(finish.text())
    functions.entry(functions.listing(result.sources, ()), block)
    return "\n\n".join(functions.parts)


def _total(emit: Emit) -> str:
    """The Sum that has the payload of a row."""
    (part,) = emit.payload[0].factors
    assert isinstance(part, ComponentOf)
    return part.alias


def _arguments(out: StatementWriter, first: tuple[str, ...], variables: tuple[str, ...]) -> str:
    return ", ".join([*first, *(out.variable(v) for v in variables)])
