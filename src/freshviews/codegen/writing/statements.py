"""Statements of the trigger language as Python source: what triggers and enumeration share.

A row is an address, its words are read by ``load`` at offsets known here; an integer component of a Sum is a
local variable, a real one the address of a scratch block.
"""

from __future__ import annotations

from typing import assert_never

from freshviews.codegen.layout import row_layout
from freshviews.codegen.scalars import ScalarWriter
from freshviews.codegen.writer import Names, Writer
from freshviews.codegen.writing.ahead import Place
from freshviews.codegen.writing.appending import with_pending
from freshviews.codegen.writing.leapfrog import TrieNames, write_leap
from freshviews.codegen.writing.ordered import write_always, write_order, write_scan, write_top
from freshviews.codegen.writing.rebalancing import write_balance, write_perform
from freshviews.codegen.writing.remembered import write_remembered
from freshviews.codegen.writing.repeated import Repeated, after_lets, write_call
from freshviews.codegen.writing.slices import foresee, write_emit_slice, write_scanning, write_skipping, write_smaller
from freshviews.codegen.writing.subsets import write_enter, write_leave, write_tally
from freshviews.codegen.writing.tabulated import write_clear, write_tabulated
from freshviews.program.payload import MULTIPLICITY, ComponentOf, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.statements import (
    Add,
    Balance,
    Changed,
    Clear,
    Emit,
    Enter,
    Exists,
    If,
    Into,
    Leap,
    Leave,
    Let,
    Lookup,
    Loop,
    Perform,
    Scan,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
    is_always,
)
from freshviews.program.views import View
from freshviews.ring import RINGS

OUTLINED = "outlined "
"""Begins, among what a source needs, what it defines itself: a kernel with the words of a key as arguments."""


class StatementWriter:
    """Writes statements of the trigger language; shared by triggers and enumeration."""

    def __init__(
        self, program: Program, writer: Writer, names: Names, constants: dict[str, int], used: set[str]
    ) -> None:
        self.program = program
        self.writer = writer
        self.names = names
        self.used = used
        self.scalars = ScalarWriter(writer, names, constants, used)
        self.views: dict[str, View] = {view.name: view for view in program.stores}
        self.scratch = frozenset(view.name for view in program.upkeep.scratch)
        self.aliases: dict[str, View | Sum] = {}
        self.counted = False
        self.pending = with_pending(program)
        self.outlined = False
        """Whether what is found by a key is found by a call, and nothing is fetched ahead: for what is rarely run, and
        for what is so long that a compiler would take minutes over it."""
        self.frozen: frozenset[str] = frozenset()
        """Views that stay as they are while the statements run: a row of them is looked up once."""
        self.found: dict[tuple[str, tuple[str, ...]], str] = {}
        """By view and key, the variable that has what was found of a frozen view, here or further out."""
        self.appends: dict[str, str] = {}
        """By view that the trigger may append to, the variable that says whether it does."""
        self.ahead: frozenset[Place] = frozenset()
        """Slices whose first rows were fetched by updates before, and what is looked up for them."""
        self.likely: dict[tuple[str, tuple[str, ...]], str] = {}
        """By view and key of a lookup, the slice and the position in it where the row most likely is."""
        self.tries: TrieNames | None = None
        self.memos: dict[int, str] = {}
        """By the identity of a sum that is remembered, what remembers it."""
        self.enough: list[str] = []
        """Of the sums around, the variable that is not zero once the loops of the sum may end, or nothing."""
        self.repeated: Repeated | None = None

    def need(self, *functions: str) -> None:
        self.used.update(functions)

    def variable(self, name: str) -> str:
        return "m" if name == MULTIPLICITY.name else self.names.of("variable", name)

    def table(self, view: str) -> str:
        return self.names.of("view", view)

    def row(self, alias: str) -> str:
        return self.names.of("alias", alias)

    def key(self, key: tuple[str, ...]) -> str:
        inner = ", ".join(self.variable(v) for v in key)
        return f"({inner},)" if len(key) == 1 else f"({inner})"

    def by_key(self, function: str, place: str, key: tuple[str, ...]) -> str:
        """Source of ``find``, ``upsert`` or ``slice_of`` with a key."""
        self.need(function)
        if not self.outlined or not key:
            return f"{function}({place}, {self.key(key)})"
        self.need(call := f"{OUTLINED}{function}_{len(key)}")
        return f"{call.removeprefix(OUTLINED)}__HASH__({', '.join([place, *map(self.variable, key)])})"

    @property
    def balance(self) -> str:
        """The variable that holds the address of the program's balance."""
        return self.names.of("balance", "balance")

    def index(self, view: str, bound: tuple[int, ...], among: str) -> str:
        place = self.views[view].place_of_index(bound, among)
        self.need("load")
        return f"load(load({self.table(view)}, INDEX_LIST), {place})"

    def step(self) -> None:
        if self.counted:
            self.writer.line("steps += 1")

    def body(self, statements: tuple[Statement, ...]) -> None:
        """Statements within another one: written, or called where they are a function."""
        work = after_lets(statements)
        if self.repeated is None or work not in self.repeated.bodies:
            self.statements(statements)
            return
        self.statements(statements[: len(statements) - len(work)])
        write_call(self, work)

    def statements(self, statements: tuple[Statement, ...]) -> None:
        found = self.found.copy()
        for before, statement in zip((None, *statements), statements, strict=False):
            if isinstance(statement, Balance):
                same = isinstance(before, Add) and (before.view, before.key) == (statement.view, statement.key)
                write_balance(self, statement, self.names.of("target", statement.view) if same else "")
            else:
                self.statement(statement)
        self.found = found

    def statement(self, statement: Statement) -> None:
        match statement:
            case Let():
                code = self.scalars.write(statement.expr, self.variable)
                self.writer.line(f"{self.variable(statement.variable)} = {code}")
            case If():
                code = self.scalars.write(statement.condition, self.variable)
                with self.writer.block(f"if {code} == 1:"):
                    self.body(statement.body)
            case Lookup():
                self.lookup(statement)
            case Loop():
                self.loop(statement, None)
            case Leap():
                write_leap(self, statement)
            case Exists():
                self.exists(statement)
            case Tally():
                write_tally(self, statement)
            case Enter():
                write_enter(self, statement)
            case Leave():
                write_leave(self, statement)
            case Perform():
                write_perform(self, statement)
            case Smaller():
                write_smaller(self, statement)
            case Sum():
                self.sum(statement)
            case Into():
                self.into(statement)
            case Add():
                self.add(statement)
            case Scan():
                write_scan(self, statement)
            case Top():
                write_top(self, statement)
            case Clear():
                write_clear(self, statement)
            case Changed():
                with self.writer.block("if wanted:"):
                    self.body(statement.body)
            case Emit():
                self.emit(statement)
            case Balance():
                write_balance(self, statement, "")
            case _:
                assert_never(statement)

    def lookup(self, statement: Lookup) -> None:
        view = self.views[statement.view]
        row = self.row(statement.alias)
        self.aliases[statement.alias] = view
        self.step()
        self.writer.line(f"{row} = {self.looked_up(view.name, statement.key)}")
        present = f"{row} != 0"
        if view.journal:
            self.need("is_zero")
            present += f" and not is_zero({self.table(view.name)}, {row})"
        with self.writer.block(f"if {present}:"):
            self.body(statement.body)
        if statement.otherwise:
            with self.writer.block("else:"):
                self.body(statement.otherwise)

    def looked_up(self, view: str, key: tuple[str, ...]) -> str:
        """Source of the row with a key, or 0: looked for, or known."""
        known = self.found.get((view, key))
        if known is not None:
            return known
        if (view, key) in self.likely:
            self.need("find_from")
            return f"find_from({self.table(view)}, {self.likely[view, key]}, {self.key(key)})"
        source = self.by_key("find_sum" if view in self.scratch else "find", self.table(view), key)
        if view in self.frozen:
            self.found[view, key] = self.names.fresh(f"{view}_found")
            return f"{self.found[view, key]} = {source}"
        return source

    def slice(self, loop: Loop) -> str:
        """Find the slice a loop runs over; the name of its group."""
        group = self.names.fresh(f"{loop.alias}_slice")
        key = tuple(loop.key[i] for i in loop.bound)
        self.step()
        self.writer.line(f"{group} = {self.by_key('slice_of', self.index(loop.view, loop.bound, loop.among), key)}")
        return group

    def exists(self, statement: Exists) -> None:
        self.step()
        index = self.index(statement.view, statement.bound, statement.among)
        with self.writer.block(f"if {self.by_key('slice_of', index, statement.key)} != 0:"):
            self.body(statement.body)

    def loop(self, loop: Loop, group: str | None, other: str = "") -> None:
        """``other`` is the group that the rows are looked up in, where its digests tell of most that they are not."""
        view = self.views[loop.view]
        table = self.table(loop.view)
        row = self.row(loop.alias)
        self.aliases[loop.alias] = view
        width = self.names.fresh(f"{loop.alias}_bytes")
        rows = self.names.fresh(f"{loop.alias}_rows")
        at = self.names.fresh(f"{loop.alias}_at")
        self.need("load", "load32")
        if loop.bound or loop.among:
            group = group or self.slice(loop)
            numbers = self.names.fresh(f"{loop.alias}_numbers")
            self.need("slice_rows", "slice_count")
            self.writer.line(f"{numbers} = slice_rows({group})")
            self._hoist(table, rows, width)
            head = f"for {at} in range(slice_count({group})):"
            place = f"load32({numbers}, {at})"
            scanned = write_scanning(self, loop, other)
            if not self.outlined:
                foresee(self, loop, group, at, f"{row} = {rows} + {place} * {width}", scanned)
            alone = len(loop.body) == 1 and len(self.program.result.emitted) == 1
            if not view.journal and alone and isinstance(loop.body[0], Emit):
                write_emit_slice(self, loop, loop.body[0], (at, f"slice_count({group})", f"{rows} + {place} * {width}"))
                return
        else:
            self._hoist(table, rows, width)
            head = f"for {at} in range(load({table}, USED)):"
            place = at
        with self.writer.block(head):
            self.step()
            if other:
                first = loop.body[0]
                assert isinstance(first, Lookup)
                position = write_skipping(self, loop, group or "", at, scanned, other)
                self.likely[first.view, first.key] = f"{other}, {position}"
            self.writer.line(f"{row} = {rows} + {place} * {width}")
            if view.journal or not (loop.bound or loop.among):
                self.need("is_zero")
                with self.writer.block(f"if is_zero({table}, {row}):"):
                    self.writer.line("continue")
            self.bind(loop)
            self.body(loop.body)
        self.likely.clear()

    def bind(self, loop: Loop) -> None:
        """Read the variables a loop binds off its row."""
        for i, variable in enumerate(loop.key):
            if i not in loop.bound:
                self.writer.line(f"{self.variable(variable)} = load({self.row(loop.alias)}, {i})")

    def _hoist(self, table: str, rows: str, width: str) -> None:
        self.writer.line(f"{rows} = load({table}, ROWS)")
        self.writer.line(f"{width} = 8 * load({table}, WIDTH)")

    def sum(self, statement: Sum) -> None:
        self.aliases[statement.alias] = statement
        if statement.remembered:
            write_remembered(self, statement)
        else:
            self.summed(statement)
        tests = []
        for component in statement.components:
            local = self.local(statement.alias, component.name)
            if component.ring == "real":
                self.need("real_is_zero")
                tests.append(f"not real_is_zero({local})")
            else:
                tests.append(f"{local} != 0")
        with self.writer.block(f"if {' or '.join(tests)}:"):
            self.body(statement.then)

    def summed(self, statement: Sum) -> None:
        """The sum from zero."""
        for component in statement.components:
            local = self.local(statement.alias, component.name)
            if component.ring == "real":
                self.need("clear_real")
                self.writer.line(f"clear_real({local})")
            else:
                self.writer.line(f"{local} = 0")
        self.enough.append(self.local(statement.alias, statement.components[0].name) if statement.once else "")
        self.body(statement.body)
        self.enough.pop()

    def local(self, alias: str, component: str) -> str:
        """The local variable of an accumulator: its value, or, for reals, the address of its words."""
        return self.names.of("sum", f"{alias}.{component}")

    def into(self, statement: Into) -> None:
        total = self.aliases[statement.alias]
        assert isinstance(total, Sum)
        for component, monomial in zip(total.components, statement.payload, strict=True):
            local = self.local(statement.alias, component.name)
            if component.ring == "real":
                self.add_real(local, monomial)
            else:
                self.need("plus")
                self.writer.line(f"{local} = plus({local}, {self.integer(monomial.factors, monomial)}, status)")

    def ring_of(self, factor: ComponentOf | Value) -> str:
        if isinstance(factor, Value):
            return factor.ring
        holder = self.aliases[factor.alias]
        return next(c.ring for c in holder.components if c.name == factor.component)

    def word(self, factor: ComponentOf | Value) -> str:
        """Source of an integer factor."""
        if isinstance(factor, Value):
            return self.variable(factor.name)
        holder = self.aliases[factor.alias]
        if isinstance(holder, Sum):
            return self.local(factor.alias, factor.component)
        self.need("load")
        return f"load({self.row(factor.alias)}, {row_layout(holder).offsets[factor.component]})"

    def integer(self, factors: tuple[ComponentOf | Value, ...], monomial: Monomial) -> str:
        """Source of the product of integer factors and the coefficient."""
        words = [self.word(f) for f in factors]
        if monomial.coefficient != 1 or not words:
            words.append(str(monomial.coefficient))
        source = words[0]
        for word in words[1:]:
            self.need("times")
            source = f"times({source}, {word}, status)"
        return source

    def add_real(self, target: str, monomial: Monomial) -> None:
        """Add to real words: the one real factor, as often as the integer factors say."""
        real = next(f for f in monomial.factors if self.ring_of(f) == "real")
        rest = list(monomial.factors)
        rest.remove(real)
        times = self.integer(tuple(rest), monomial)
        if isinstance(real, Value):
            self.need("real_add_double")
            self.writer.line(f"real_add_double({target}, {self.variable(real.name)}, {times})")
            return
        holder = self.aliases[real.alias]
        if isinstance(holder, Sum):
            source = self.local(real.alias, real.component)
        else:
            source = f"{self.row(real.alias)} + {8 * row_layout(holder).offsets[real.component]}"
        self.need("real_add_scaled")
        self.writer.line(f"real_add_scaled({target}, {source}, {times})")

    def target(self, view: View, key: tuple[str, ...]) -> str:
        """Find or make the row to change; its name."""
        row = self.names.of("target", view.name)
        table = self.table(view.name)
        self.step()
        made = self.by_key("upsert", table, key)
        if view.name in self.appends:
            self.need("append_row")
            made = f"append_row({table}, {self.key(key)}) if {self.appends[view.name]} != 0 else {made}"
        self.writer.line(f"{row} = {made}")
        if view.journal:
            self.need("touch")
            self.writer.line(f"touch({table}, {row})")
        return row

    def zero_test(self, view: View, row: str) -> str:
        layout = row_layout(view)
        words = layout.payload - bool(view.tally)
        if words <= 4 or view.tally:
            self.need("load")
            start = layout.key
            return " and ".join(f"load({row}, {start + i}) == 0" for i in range(words))
        self.need("is_zero")
        return f"is_zero({self.table(view.name)}, {row})"

    def leave(self, view: View, row: str) -> None:
        """Remove a row whose payload has become zero."""
        remove = "settle" if view.journal else "remove_row"
        self.need(remove)
        self.writer.line(f"{remove}({self.table(view.name)}, {row})")

    def add(self, statement: Add) -> None:
        view = self.views[statement.view]
        if view.name in self.scratch:
            write_tabulated(self, statement, view)
            return
        row = self.target(view, statement.key)
        watched = bool(statement.appear or statement.vanish or statement.stay or view.ordered)
        if statement.alias:
            self.aliases[statement.alias] = view
            self.writer.line(f"{self.row(statement.alias)} = {row}")
        before = self.names.fresh(f"{row}_was_absent")
        if watched:
            self.writer.line(f"{before} = {self.zero_test(view, row)}")
        layout = row_layout(view)
        for name, monomial in zip(statement.components, statement.payload, strict=True):
            place = layout.offsets[name]
            if RINGS[view.component(name).ring].words > 1:
                self.add_real(f"{row} + {8 * place}", monomial)
            else:
                self.need("store", "load", "plus")
                amount = self.integer(monomial.factors, monomial)
                self.writer.line(f"store({row}, {place}, plus(load({row}, {place}), {amount}, status))")
        if view.name in self.appends:
            self.need("hold")
            appends = self.appends[view.name]
            with self.writer.block(f"if {appends} != 0:"):
                self.writer.line(f"{appends} = hold({self.table(view.name)}, {row}, status)")
            with self.writer.block("else:"):
                self.note_large(view, row)
                with self.writer.block(f"if {self.zero_test(view, row)}:"):
                    self.leave(view, row)
            return
        self.note_large(view, row)
        if is_always(statement.appear, statement.vanish, statement.stay):
            write_always(self, view, row, before, statement.stay)
            return
        with self.writer.block(f"if {self.zero_test(view, row)}:"):
            if not watched:
                self.leave(view, row)
            else:
                with self.writer.block(f"if not {before}:"):
                    write_order(self, view, row, "ordered_remove")
                    self.body(statement.vanish)
                self.leave(view, row)
        if watched and (statement.appear or view.ordered):
            with self.writer.block(f"elif {before}:"):
                write_order(self, view, row, "ordered_insert")
                self.body(statement.appear)
        if statement.stay:
            with self.writer.block(f"elif not {before}:"):
                self.body(statement.stay)

    def note_large(self, view: View, row: str) -> None:
        """Nothing may be appended any more to a view with a large row."""
        if view.name in self.pending:
            self.need("note_large")
            self.writer.line(f"note_large({self.table(view.name)}, {row})")

    def emit(self, statement: Emit) -> None:
        self.need("append", "store")
        row = self.names.fresh("out")
        self.writer.line(f"{row} = append(changes)")
        for i, variable in enumerate(statement.row):
            self.writer.line(f"store({row}, {i}, {self.variable(variable)})")
        self.write_payload(statement, row, len(statement.row))

    def write_payload(self, statement: Emit, target: str, first: int) -> None:
        """Write the payload that is emitted to the words of a target, from ``first`` on."""
        place = first
        self.need("store")
        for component, monomial in zip(self.program.result.emitted, statement.payload, strict=True):
            words = RINGS[component.ring].words
            if words == 1:
                self.writer.line(f"store({target}, {place}, {self.integer(monomial.factors, monomial)})")
            else:
                self.need("clear_real")
                self.writer.line(f"clear_real({target} + {8 * place})")
                self.add_real(f"{target} + {8 * place}", monomial)
            place += words
