"""Defines ``Context``, a frozen dataclass that describes the function being written and has the names in scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field, replace
from typing import Any

from freshviews.codegen.layout import balance_word, default_word, table_word
from freshviews.codegen.writer import Writer, tuple_of
from freshviews.program.payload import MULTIPLICITY, ComponentOf, Value
from freshviews.program.program import Program
from freshviews.program.statements import Body, Loop, Sum
from freshviews.program.views import View
from freshviews.records import dataclass

Key = tuple[str, ...]
Factors = tuple[ComponentOf | Value, ...]


@dataclass(frozen=True)
class RowPlace:
    """A key that updates look up: of a view, where no positions are ``bound``, or of its index on these."""

    view: str
    key: Key
    bound: tuple[int, ...] = ()


@dataclass(frozen=True)
class Context:
    """The program, the function that is being written, and what is known at this place in it.

    ``counted``: the function counts its steps. ``outlined``: rows and slices are found by calls that are not inlined,
    and nothing is prefetched; for functions that rarely run or are so long that they would compile for minutes.
    ``repeated`` are bodies that are functions of their own. ``instead`` overrides the writing function, by kind of
    statement.

    ``frozen`` are views that do not change while the function runs, so that each of their rows is looked up once;
    ``found`` has the variable of each row found. ``appends`` has, by view to which the trigger may append, the variable
    that is true if it does. ``ahead`` are slices whose first rows earlier updates have prefetched. ``likely`` has, by
    view and key of a lookup, the slice and the position in it where the row most likely is. ``memos`` has the memo of
    each Sum that is remembered. ``changing`` are the views that the function itself changes, None if unknown;
    ``products`` has the variable of each computed product of values and of rows of other views. ``enough`` is a
    variable that is not zero once the loops of the innermost Sum may end; ``moved`` one that becomes 1 where a Scan
    changes anything, for a steady RangeLoop. ``doubles`` has the variables that are words
    of memory: an address and a place (``payloads.doubles``); ``elements`` those that are the words of an element from
    there on.

    A part of the function (``parts``) takes and returns its locals ``kept``, beside those of the program, and takes
    ``given``; ``ends`` writes what ends the function after a call of a part that has ended it.

    Writing functions take a statement and a ``Context``, and append lines to the context's ``Writer``. A nested scope
    gets a copy of the context with the names bound in that scope (``with_alias``, ``replace``). Modules for one kind of
    statement write nested bodies through the context's function ``write``; they do not import each other.

    A row is an address; its words are read by ``load`` at offsets that the context knows. An integer component of a Sum
    is a local variable; a component of several words is the address of a scratch block.
    """

    program: Program
    writer: Writer
    write: Callable[[Body, Context], None]
    views: Mapping[str, View]
    scratch: frozenset[str]
    pending: frozenset[str]
    counted: bool = False
    outlined: bool = False
    repeated: frozenset[Body] = frozenset()
    instead: Mapping[type, Callable[[Context, Any], None]] = field(default_factory=dict)
    aliases: Mapping[str, View | Sum] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    found: Mapping[tuple[str, Key], str] = field(default_factory=dict)
    appends: Mapping[str, str] = field(default_factory=dict)
    ahead: frozenset[RowPlace] = frozenset()
    likely: Mapping[tuple[str, Key], str] = field(default_factory=dict)
    memos: Mapping[Sum, str] = field(default_factory=dict)
    changing: frozenset[str] | None = None
    products: Mapping[Factors, str] = field(default_factory=dict)
    enough: str = ""
    moved: str = ""
    doubles: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    elements: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    ends: Callable[[Context], None] | None = None

    # Lines of the function

    def line(self, text: str) -> None:
        self.writer.line(text)

    def block(self, head: str) -> AbstractContextManager[None]:
        return self.writer.block(head)

    def loop(self, head: str) -> AbstractContextManager[None]:
        return self.writer.loop(head)

    def step(self) -> None:
        if self.counted:
            self.line("steps += 1")

    def body(self, statements: Body) -> None:
        """Write the statements of a nested body."""
        self.write(statements, self)

    # Names in it

    def fresh(self, wish: str) -> str:
        return self.writer.names.fresh(wish)

    def variable(self, name: str) -> str:
        if name in self.doubles:
            address, place = self.doubles[name]
            return f"load({address}, {place})"
        return "m" if name == MULTIPLICITY.name else self.writer.names.of("variable", name)

    def table(self, view: str) -> str:
        return self.writer.names.of("view", view)

    def row(self, alias: str) -> str:
        return self.writer.names.of("alias", alias)

    def target(self, view: str) -> str:
        """The row of a view that the last Add changed."""
        return self.writer.names.of("target", view)

    def local(self, alias: str, component: str) -> str:
        """The accumulator of a Sum: an integer, or the address of the words of another element."""
        return self.writer.names.of("sum", f"{alias}.{component}")

    @property
    def balance(self) -> str:
        """The address of the program's balance."""
        return self.writer.names.of("balance", "balance")

    # What is bound in it

    def with_alias(self, alias: str, holder: View | Sum) -> Context:
        known = self.products
        if known and alias in self.aliases:
            known = {f: v for f, v in known.items() if not any(getattr(one, "alias", "") == alias for one in f)}
        return replace(self, aliases={**self.aliases, alias: holder}, products=known)

    def with_variable(self, name: str) -> Context:
        """The context after a variable got a value: products of its former value are no longer known."""
        if not self.products:
            return self
        known = {f: v for f, v in self.products.items() if not any(getattr(one, "name", "") == name for one in f)}
        return replace(self, products=known)

    def view_of(self, alias: str) -> View:
        """The view that the row known by an alias is of."""
        view = self.aliases[alias]
        assert isinstance(view, View)
        return view

    # Source of keys, tables, slices

    def key(self, key: Key) -> str:
        return tuple_of(self.variable(v) for v in key)

    def by_key(self, function: str, place: str, key: Key) -> str:
        """Source of ``find``, ``find_sum``, ``upsert`` or ``slice_of`` with a key."""
        if not self.outlined or not key:
            return f"{function}({place}, {self.key(key)})"
        self.writer.module.calls.add((function, len(key)))
        return f"{function}_{len(key)}({', '.join([place, *map(self.variable, key)])})"

    def handle(self, view: str) -> str:
        """The table of a view, read off the state."""
        return f"load(state, {table_word(self.program, view)})"

    def load_tables(self, views: Iterable[str]) -> None:
        """Read the tables of views off the state, each once."""
        for view in dict.fromkeys(views):
            if view not in self.scratch:
                self.line(f"{self.table(view)} = {self.handle(view)}")

    def default(self, view: str) -> str:
        """The default row of a view, read off the state."""
        return f"load(state, {default_word(self.program, view)})"

    def load_balance(self) -> None:
        self.line(f"{self.balance} = load(state, {balance_word(self.program)})")

    def index(self, view: str, bound: tuple[int, ...], among: str = "") -> str:
        return f"load(load({self.table(view)}, INDEX_LIST), {self.views[view].place_of_index(bound, among)})"

    def slice(self, loop: Loop) -> str:
        """Find the slice that a loop runs over; return the variable of its group."""
        group = self.fresh(f"{loop.alias}_slice")
        key = tuple(loop.key[i] for i in loop.bound)
        self.step()
        self.line(f"{group} = {self.by_key('slice_of', self.index(loop.view, loop.bound, loop.among), key)}")
        return group

    def bind(self, loop: Loop) -> None:
        """Read the variables that a loop binds off its row."""
        for i, variable in enumerate(loop.key):
            if i not in loop.bound:
                self.line(f"{self.variable(variable)} = load({self.row(loop.alias)}, {i})")
