"""Statements of the trigger language as Python source: what triggers and enumeration share.

A row is an address, its words are read by ``load`` at offsets known here; an integer component of a Sum is a
local variable, a real one the address of a scratch block.
"""

from __future__ import annotations

from freshviews.codegen.appending import with_pending
from freshviews.codegen.layout import row_layout
from freshviews.codegen.scalars import ScalarWriter
from freshviews.codegen.subsets import write_enter, write_leave, write_tally
from freshviews.codegen.writer import Names, Writer
from freshviews.program.nodes import (
    MULTIPLICITY,
    Add,
    Changed,
    Emit,
    Enter,
    Exists,
    Extreme,
    If,
    Into,
    Leave,
    Let,
    Lookup,
    Loop,
    Monomial,
    Part,
    Program,
    Smaller,
    Statement,
    Sum,
    Tally,
    Value,
    View,
)
from freshviews.ring import RINGS

RESERVED = frozenset({"state", "batch", "n", "i", "m", "status", "constants", "steps", "changes", "wanted"})


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
        self.views: dict[str, View] = {v.name: v for v in program.views}
        self.aliases: dict[str, View | Sum] = {}
        self.counted = False
        self.pending = with_pending(program)
        self.appends: dict[str, str] = {}
        """By view that the trigger may append to, the variable that says whether it does."""

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

    def index(self, view: str, bound: tuple[int, ...], among: str) -> str:
        place = self.views[view].place_of_index(bound, among)
        self.need("load")
        return f"load(load({self.table(view)}, INDEX_LIST), {place})"

    def step(self) -> None:
        if self.counted:
            self.writer.line("steps += 1")

    def body(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            self.statement(statement)

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
            case Exists():
                self.exists(statement)
            case Tally():
                write_tally(self, statement)
            case Enter():
                write_enter(self, statement)
            case Leave():
                write_leave(self, statement)
            case Smaller():
                self.smaller(statement)
            case Sum():
                self.sum(statement)
            case Into():
                self.into(statement)
            case Add():
                self.add(statement)
            case Extreme():
                self.extreme(statement)
            case Changed():
                with self.writer.block("if wanted:"):
                    self.body(statement.body)
            case Emit():
                self.emit(statement)

    def lookup(self, statement: Lookup) -> None:
        view = self.views[statement.view]
        row = self.row(statement.alias)
        self.aliases[statement.alias] = view
        self.need("find")
        self.step()
        self.writer.line(f"{row} = find({self.table(view.name)}, {self.key(statement.key)})")
        present = f"{row} != 0"
        if view.journal:
            self.need("is_zero")
            present += f" and not is_zero({self.table(view.name)}, {row})"
        with self.writer.block(f"if {present}:"):
            self.body(statement.body)

    def slice(self, loop: Loop) -> str:
        """Find the slice a loop runs over; the name of its group."""
        group = self.names.fresh(f"{loop.alias}_slice")
        key = self.key(tuple(loop.key[i] for i in loop.bound))
        self.need("slice_of")
        self.step()
        self.writer.line(f"{group} = slice_of({self.index(loop.view, loop.bound, loop.among)}, {key})")
        return group

    def exists(self, statement: Exists) -> None:
        self.need("slice_of")
        self.step()
        index = self.index(statement.view, statement.bound, statement.among)
        with self.writer.block(f"if slice_of({index}, {self.key(statement.key)}) != 0:"):
            self.body(statement.body)

    def loop(self, loop: Loop, group: str | None) -> None:
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
            self.foresee(loop, group, at, f"{row} = {rows} + {place} * {width}")
            if not view.journal and len(loop.body) == 1 and isinstance(loop.body[0], Emit):
                self.emit_slice(loop, loop.body[0], (at, f"slice_count({group})", f"{rows} + {place} * {width}"))
                return
        else:
            self._hoist(table, rows, width)
            head = f"for {at} in range(load({table}, USED)):"
            place = at
        with self.writer.block(head):
            self.step()
            self.writer.line(f"{row} = {rows} + {place} * {width}")
            if view.journal or not (loop.bound or loop.among):
                self.need("is_zero")
                with self.writer.block(f"if is_zero({table}, {row}):"):
                    self.writer.line("continue")
            self.bind(loop)
            self.body(loop.body)

    def emit_slice(self, loop: Loop, statement: Emit, places: tuple[str, str, str]) -> None:
        """A loop whose body is one Emit: room is made for all rows at once."""
        at, count, place = places
        row, out, outer = self.row(loop.alias), self.names.fresh("out"), self.names.fresh(f"{loop.alias}_times")
        here = [f for f in statement.multiplicity.factors if isinstance(f, Part) and f.alias == loop.alias]
        outside = tuple(f for f in statement.multiplicity.factors if f not in here)
        self.need("reserve", "store")
        self.writer.line(f"{outer} = {self.integer(outside, statement.multiplicity)}")
        self.writer.line(f"{out} = reserve(changes, {count})")
        with self.writer.block(f"if {out} != 0:"), self.writer.block(f"for {at} in range({count}):"):
            self.step()
            self.writer.line(f"{row} = {place}")
            self.bind(loop)
            for i, variable in enumerate(statement.row):
                self.writer.line(f"store({out}, {i}, {self.variable(variable)})")
            amount = outer
            for factor in here:
                self.need("times")
                amount = f"times({amount}, {self.word(factor)}, status)"
            self.writer.line(f"store({out}, {len(statement.row)}, {amount})")
            self.writer.line(f"{out} += {8 * (len(statement.row) + 1)}")

    def foresee(self, loop: Loop, group: str, at: str, set_row: str) -> None:
        """Have the first rows of a slice fetched, and then what the loop's body looks up first: these addresses
        are known long before the loop, which waits for one after the other, comes to them."""
        self.need("foresee_rows")
        self.writer.line(f"foresee_rows({group}, {self.table(loop.view)})")
        first = loop.body[0]
        if isinstance(first, Lookup):
            self.need("foresee", "foreseen")
            with self.writer.block(f"for {at} in range(foreseen({group})):"):
                self.writer.line(set_row)
                self.bind(loop)
                self.writer.line(f"foresee({self.table(first.view)}, {self.key(first.key)})")

    def bind(self, loop: Loop) -> None:
        """Read the variables a loop binds off its row."""
        for i, variable in enumerate(loop.key):
            if i not in loop.bound:
                self.writer.line(f"{self.variable(variable)} = load({self.row(loop.alias)}, {i})")

    def _hoist(self, table: str, rows: str, width: str) -> None:
        self.writer.line(f"{rows} = load({table}, ROWS)")
        self.writer.line(f"{width} = 8 * load({table}, WIDTH)")

    def smaller(self, statement: Smaller) -> None:
        sides = []
        for loop in (statement.left, statement.right):
            if loop.bound:
                self.need("slice_count")
                group: str | None = self.slice(loop)
                sides.append((loop, group, f"slice_count({group})"))
            else:
                self.need("load")
                sides.append((loop, None, f"load({self.table(loop.view)}, LIVE)"))
        (left, left_group, left_count), (right, right_group, right_count) = sides
        with self.writer.block(f"if {left_count} <= {right_count}:"):
            self.loop(left, left_group)
        with self.writer.block("else:"):
            self.loop(right, right_group)

    def sum(self, statement: Sum) -> None:
        self.aliases[statement.alias] = statement
        for component in statement.components:
            local = self.local(statement.alias, component.name)
            if component.ring == "real":
                self.need("clear_real")
                self.writer.line(f"clear_real({local})")
            else:
                self.writer.line(f"{local} = 0")
        self.body(statement.body)
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

    def ring_of(self, factor: Part | Value) -> str:
        if isinstance(factor, Value):
            return factor.ring
        holder = self.aliases[factor.alias]
        return next(c.ring for c in holder.components if c.name == factor.component)

    def word(self, factor: Part | Value) -> str:
        """Source of an integer factor."""
        if isinstance(factor, Value):
            return self.variable(factor.name)
        holder = self.aliases[factor.alias]
        if isinstance(holder, Sum):
            return self.local(factor.alias, factor.component)
        self.need("load")
        return f"load({self.row(factor.alias)}, {row_layout(holder).offsets[factor.component]})"

    def integer(self, factors: tuple[Part | Value, ...], monomial: Monomial) -> str:
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
        self.need("upsert")
        self.step()
        made = f"upsert({table}, {self.key(key)})"
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
        with self.writer.block(f"if {self.zero_test(view, row)}:"):
            if not watched:
                self.leave(view, row)
            else:
                with self.writer.block(f"if not {before}:"):
                    self.order(view, row, "ordered_remove")
                    self.body(statement.vanish)
                self.leave(view, row)
        if watched and (statement.appear or view.ordered):
            with self.writer.block(f"elif {before}:"):
                self.order(view, row, "ordered_insert")
                self.body(statement.appear)
        if statement.stay:
            with self.writer.block(f"elif not {before}:"):
                self.body(statement.stay)

    def note_large(self, view: View, row: str) -> None:
        """Nothing may be appended any more to a view with a large row."""
        if view.name in self.pending:
            self.need("note_large")
            self.writer.line(f"note_large({self.table(view.name)}, {row})")

    def order(self, view: View, row: str, action: str) -> None:
        if view.ordered is not None:
            table = self.table(view.name)
            self.need(action, "row_number", "load")
            self.writer.line(
                f"{action}(load(load({table}, ORDERED_LIST), 0), {table}, row_number({table}, {row}))"
            )

    def extreme(self, statement: Extreme) -> None:
        view = self.views[statement.view]
        source = self.table(statement.source)
        find = "ordered_first" if statement.kind == "min" else "ordered_last"
        self.need(find, "load", "store")
        value = self.names.fresh(statement.component)
        key = self.key(statement.key)
        self.writer.line(f"{value} = {find}(load(load({source}, ORDERED_LIST), 0), {source}, {key})")
        row = self.target(view, statement.key)
        place = row_layout(view).offsets[statement.component]
        self.writer.line(f"store({row}, {place}, 0 if {value} == NULL else {value})")
        with self.writer.block(f"if {self.zero_test(view, row)}:"):
            self.leave(view, row)

    def emit(self, statement: Emit) -> None:
        self.need("append", "store")
        row = self.names.fresh("out")
        self.writer.line(f"{row} = append(changes)")
        for i, variable in enumerate(statement.row):
            self.writer.line(f"store({row}, {i}, {self.variable(variable)})")
        amount = self.integer(statement.multiplicity.factors, statement.multiplicity)
        self.writer.line(f"store({row}, {len(statement.row)}, {amount})")
