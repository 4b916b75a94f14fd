"""Enumeration as a resumable function: ``enumerate_rows(state, frame, limit, out)``.

The statements ``rows`` of an Enumerated result become nested loops that write rows to ``out``, a block of words with
room for ``limit`` rows, column after column, and stop once it is full; the position of every loop is kept in ``frame``
(word 0: whether to resume; then one word per loop), and the next call goes on from there. Returns the rows written;
fewer than ``limit`` means the end. An innermost loop that does nothing but emit runs as often as there are rows and
room, with no test in between; columns that it does not bind are filled in runs. The state must not change between
calls. Of groups, raw rows are written, one after the other; each is put together in the last words of the frame.
"""

from __future__ import annotations

from freshviews.codegen.layout import CONSTANTS, STATUS, emitted_row, row_layout, table_word
from freshviews.codegen.writer import RESERVED, Names, Writer
from freshviews.codegen.writing.statements import StatementWriter
from freshviews.program.payload import COUNT, ComponentOf
from freshviews.program.program import Program
from freshviews.program.results import Enumerated
from freshviews.program.statements import Body, Emit, Exists, Lookup, Loop
from freshviews.program.structure import visit

_RESERVED = RESERVED | {"frame", "limit", "out", "found", "resuming", "row", "row_bytes"}


class _EnumerationWriter(StatementWriter):
    """Loops that know their place in the frame, and an Emit that saves all places."""

    open_loops: list[str]
    grouped: bool

    def loop(self, loop: Loop, group: str | None, other: str = "") -> None:
        view = self.views[loop.view]
        self.aliases[loop.alias] = view
        table = self.table(loop.view)
        row = self.row(loop.alias)
        at = self.names.fresh(f"{loop.alias}_at")
        first = self.names.fresh(f"{loop.alias}_first")
        self.need("load", "load32", "row_at", "is_zero")
        if loop.bound or loop.among:
            group = self.slice(loop)
            self.need("slice_rows", "slice_count")
            count, number = f"slice_count({group})", f"load32(slice_rows({group}), {at})"
        else:
            count, number = f"load({table}, USED)", at
        self.writer.line(f"{first} = load(frame, {1 + len(self.open_loops)}) if resuming else 0")
        alone = len(loop.body) == 1 and not view.journal and not self.grouped
        if (loop.bound or loop.among) and alone and isinstance(loop.body[0], Emit):
            self.innermost(loop, loop.body[0], at, (first, count, number))
            return
        with self.writer.block(f"for {at} in range({first}, {count}):"):
            self.writer.line(f"{row} = row_at({table}, {number})")
            if view.journal or not (loop.bound or loop.among):
                with self.writer.block(f"if is_zero({table}, {row}):"):
                    self.writer.line("continue")
            self.bind(loop)
            self.open_loops.append(at)
            self.body(loop.body)
            self.open_loops.pop()

    def innermost(self, loop: Loop, statement: Emit, at: str, places: tuple[str, str, str]) -> None:
        """A loop whose body is one Emit: as many turns as there are rows and room."""
        first, count, number = places
        table, row = self.table(loop.view), self.row(loop.alias)
        stop, rows, width = (self.names.fresh(f"{loop.alias}_{word}") for word in ("stop", "base", "bytes"))
        (amounts,) = statement.payload
        here = [f for f in amounts.factors if isinstance(f, ComponentOf) and f.alias == loop.alias]
        outside = tuple(f for f in amounts.factors if f not in here)
        outer = self.names.fresh(f"{loop.alias}_times")
        self.writer.line("resuming = 0")
        self.writer.line(f"{stop} = {count}")
        with self.writer.block(f"if {stop} - {first} > limit - found:"):
            self.writer.line(f"{stop} = {first} + limit - found")
        self.writer.line(f"{outer} = {self.integer(outside, amounts)}")
        self.writer.line(f"{rows} = load({table}, ROWS)")
        self.writer.line(f"{width} = 8 * load({table}, WIDTH)")
        bound = [loop.key[i] for i in range(len(loop.key)) if i not in loop.bound]
        columns = {v: f"out + 8 * ({i} * limit + found)" for i, v in enumerate(statement.row)}
        multiplicities = f"out + 8 * ({len(columns)} * limit + found)"
        self.need("store")
        for variable, column in columns.items():
            if variable not in bound:
                self.fill(at, column, self.variable(variable), f"{stop} - {first}")
        if not here:
            self.fill(at, multiplicities, outer, f"{stop} - {first}")
        with self.writer.block(f"for {at} in range({first}, {stop}):"):
            self.writer.line(f"{row} = {rows} + {number} * {width}")
            self.bind(loop)
            for variable, column in columns.items():
                if variable in bound:
                    self.writer.line(f"store({column}, {at} - {first}, {self.variable(variable)})")
            if here:
                amount = outer
                for factor in here:
                    self.need("times")
                    amount = f"times({amount}, {self.word(factor)}, status)"
                self.writer.line(f"store({multiplicities}, {at} - {first}, {amount})")
        self.writer.line(f"found += {stop} - {first}")
        with self.writer.block(f"if {stop} < {count}:"):
            self.open_loops.append(stop)
            self.stop()
            self.open_loops.pop()

    def fill(self, at: str, place: str, value: str, count: str) -> None:
        """Write a value to so many words."""
        with self.writer.block(f"for {at} in range({count}):"):
            self.writer.line(f"store({place}, {at}, {value})")

    def stop(self) -> None:
        """Save the places of all loops and return."""
        self.writer.line("store(frame, 0, 1)")
        for i, at in enumerate(self.open_loops):
            self.writer.line(f"store(frame, {1 + i}, {at})")
        self.writer.line("return found")

    def write_row(self, statement: Emit, amount: str, place: str) -> None:
        """Write a row and its multiplicity to the columns of ``out``."""
        for i, variable in enumerate(statement.row):
            self.writer.line(f"store(out + {8 * i} * limit, {place}, {self.variable(variable)})")
        self.writer.line(f"store(out + {8 * len(statement.row)} * limit, {place}, {amount})")

    def emit(self, statement: Emit) -> None:
        self.need("store")
        with self.writer.block("if found == limit:"):
            self.stop()
        self.writer.line("resuming = 0")
        if self.grouped:
            self.write_group(statement)
            return
        (monomial,) = statement.payload
        self.write_row(statement, self.integer(monomial.factors, monomial), "found")
        self.writer.line("found += 1")

    def write_group(self, statement: Emit) -> None:
        """Write the raw row of a group whose count is positive."""
        layout = row_layout(emitted_row(self.program))
        for i, variable in enumerate(statement.row):
            self.writer.line(f"store(row, {i}, {self.variable(variable)})")
        self.write_payload(statement, "row", layout.key)
        with self.writer.block(f"if load(row, {layout.offsets[COUNT]}) > 0:"):
            target = "out + found * row_bytes"
            self.writer.line(f"finish__HASH__(row, row + {8 * layout.key}, {target}, 1, status)")
            self.writer.line("found += 1")


class _PayloadWriter(StatementWriter):
    """An Emit that writes its payload to a given address."""

    def emit(self, statement: Emit) -> None:
        self.write_payload(statement, "payload", 0)


def _loops_in(result: Enumerated) -> int:
    return sum(isinstance(s, Loop) for s in visit(result.rows))


def frame_words(program: Program, result: Enumerated) -> int:
    """Words of a frame."""
    layout = row_layout(emitted_row(program))
    return 1 + _loops_in(result) + layout.key + layout.payload


def write_awake(program: Program, awake: Body, prefix: str, constants: dict[str, int], used: set[str]) -> str:
    """Source of ``awake(state)``: what is to be done once when changes begin to be wanted."""
    writer = Writer()
    statements = StatementWriter(program, writer, Names(_RESERVED), constants, used)
    writer.line("@jit")
    with writer.block(f"def {prefix}awake__HASH__(state):"):
        _prologue(program, awake, statements)
        statements.body(awake)
        writer.line("return 0")
    return writer.text()


def write_member(program: Program, member: Body, prefix: str, constants: dict[str, int], used: set[str]) -> str:
    """Source of ``read_group(state, key, out)`` for a result that is not held in one view: ``key`` is the address
    of the free variables' words; the row is appended to ``out`` where there is one."""
    writer = Writer()
    statements = StatementWriter(program, writer, Names(_RESERVED | {"key"}), constants, used)
    writer.line("@jit")
    with writer.block(f"def {prefix}read_group__HASH__(state, key, out):"):
        _prologue(program, member, statements)
        writer.line("changes = out")
        for i, variable in enumerate(program.free):
            writer.line(f"{statements.variable(variable)} = load(key, {i})")
        statements.body(member)
        writer.line("return 0")
    return writer.text()


def write_payload_reader(program: Program, member: Body, constants: dict[str, int], used: set[str]) -> str:
    """Source of ``read_payload(state, key, payload)`` for groups that are enumerated: the payload of the group whose
    free variables' words are at ``key``, zero where there is none."""
    writer = Writer()
    statements = _PayloadWriter(program, writer, Names(_RESERVED | {"key", "payload"}), constants, used)
    statements.need("clear_words")
    writer.line("@jit")
    with writer.block("def read_payload__HASH__(state, key, payload):"):
        _prologue(program, member, statements)
        writer.line(f"clear_words(payload, {row_layout(emitted_row(program)).payload})")
        for i, variable in enumerate(program.free):
            writer.line(f"{statements.variable(variable)} = load(key, {i})")
        statements.body(member)
        writer.line("return 0")
    return writer.text()


def _prologue(program: Program, body: Body, statements: StatementWriter) -> None:
    writer = statements.writer
    writer.line(f"status = load(state, {STATUS})")
    writer.line(f"constants = load(state, {CONSTANTS})")
    for view in dict.fromkeys(s.view for s in visit(body) if isinstance(s, Loop | Lookup | Exists)):
        writer.line(f"{statements.table(view)} = load(state, {table_word(program, view)})")


def write_enumeration(
    program: Program,
    result: Enumerated,
    prefix: str,
    constants: dict[str, int],
    used: set[str],
    width: int | None = None,
) -> str:
    """Source of the enumeration of a program whose result is not held in one view; ``width``: words of the raw rows of
    groups, where the rows are groups."""
    writer = Writer()
    statements = _EnumerationWriter(program, writer, Names(_RESERVED), constants, used)
    statements.open_loops = []
    statements.grouped = width is not None
    writer.line("@jit")
    with writer.block(f"def {prefix}enumerate_rows__HASH__(state, frame, limit, out):"):
        _prologue(program, result.rows, statements)
        if width is not None:
            writer.line(f"row = frame + {8 * (1 + _loops_in(result))}")
            writer.line(f"row_bytes = {8 * width}")
        writer.line("resuming = load(frame, 0)")
        writer.line("store(frame, 0, 0)")
        writer.line("found = 0")
        statements.body(result.rows)
        writer.line("return found")
    return writer.text()
