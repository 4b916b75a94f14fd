"""A leapfrog join of one variable as nested loops over flat tries (``kernel.trie.flat``).

A cursor is three local variables: its position, the end of what lies below the cursor's parent, and the value at the
position. In every turn each cursor in order is sought to the value of the one before, if it is behind; then either
the first has the value of the last, and so have all, or the first is sought to it. So in two turns the cursor with the
fewest values moves on at least once, which is what the bound of leapfrog-search rests on. For two cursors::

    if b_in_R < b_in_R_end and b_in_S < b_in_S_end:
        while True:
            if b_of_S < b_of_R:
                b_in_S = seek(S_values_0, b_in_S, b_in_S_end, b_of_R)
                if b_in_S == b_in_S_end:
                    break
                b_of_S = load(S_values_0, b_in_S)
            if b_of_R == b_of_S:
                ... the body, with b = b_of_R ...
                b_in_R += 1
            else:
                b_in_R = seek(R_values_1, b_in_R, b_in_R_end, b_of_S)
            if b_in_R == b_in_R_end:
                break
            b_of_R = load(R_values_1, b_in_R)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freshviews.codegen.writer import Names, Writer
from freshviews.program.program import Program
from freshviews.program.statements import Cursor, Leap
from freshviews.program.views import Trie

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter


@dataclass
class TrieNames:
    """Names of what is known of each trie before the join begins."""

    program: Program
    names: Names

    def trie(self, name: str) -> str:
        return self.names.of("trie", name)

    def values(self, name: str, level: int) -> str:
        return self.names.of("values", f"{name}_values_{level}")

    def children(self, name: str, level: int) -> str:
        return self.names.of("children", f"{name}_children_{level}")

    def nodes(self, name: str) -> str:
        """The number of nodes of the first level."""
        return self.names.of("nodes", f"{name}_nodes")

    def carried(self, name: str) -> str:
        """Where a row of position 0 would begin: its payload lies behind as many words as its view has of key."""
        return self.names.of("carried", f"{name}_carried")

    def carried_bytes(self, name: str) -> str:
        return self.names.of("carried bytes", f"{name}_carried_bytes")

    def place(self, trie: str, key: tuple[str, ...]) -> str:
        """The position of the cursor with a key."""
        return self.names.of("place", f"{key[-1]}_in_{'_'.join([trie, *key[:-1]])}")

    def depth(self, name: str) -> int:
        trie: Trie = next(trie for trie in self.program.upkeep.tries if trie.name == name)
        return len(trie.order)


def write_leap(statements: StatementWriter, leap: Leap) -> None:
    """Write the loops of one variable."""
    writer, tries, step, used = statements.writer, statements.tries, statements.step, statements.used
    assert tries is not None, "only an evaluation has tries"
    variable = statements.variable(leap.variable)
    used.add("load")
    places = []
    for cursor in leap.cursors:
        place = tries.place(cursor.trie, cursor.key)
        end = tries.names.of("end", f"{place}_end")
        value = tries.names.of("value", f"{place}_value")
        _write_open(cursor, writer, tries, place, end)
        places.append((place, end, value))
        step()
    if len(places) == 1:
        ((place, end, _),) = places
        cursor = leap.cursors[0]
        with writer.block(f"for {place} in range({place}, {end}):"):
            step()
            writer.line(f"{variable} = load({tries.values(cursor.trie, len(cursor.key) - 1)}, {place})")
            _write_body(statements, leap, tries)
        return
    opened = " and ".join(f"{place} < {end}" for place, end, _ in places)
    with writer.block(f"if {opened}:"):
        for cursor, (place, _, value) in zip(leap.cursors, places, strict=True):
            writer.line(f"{value} = load({tries.values(cursor.trie, len(cursor.key) - 1)}, {place})")
        with writer.block("while True:"):
            before = places[0][2]
            for cursor, (place, end, value) in list(zip(leap.cursors, places, strict=True))[1:]:
                with writer.block(f"if {value} < {before}:"):
                    step()
                    writer.line(f"{place} = {_sought(cursor, tries, place, end, before, used)}")
                    with writer.block(f"if {place} == {end}:"):
                        writer.line("break")
                    writer.line(f"{value} = load({tries.values(cursor.trie, len(cursor.key) - 1)}, {place})")
                before = value
            first, (place, end, value) = leap.cursors[0], places[0]
            step()
            with writer.block(f"if {value} == {before}:"):
                writer.line(f"{variable} = {value}")
                _write_body(statements, leap, tries)
                writer.line(f"{place} += 1")
            with writer.block("else:"):
                writer.line(f"{place} = {_sought(first, tries, place, end, before, used)}")
            with writer.block(f"if {place} == {end}:"):
                writer.line("break")
            writer.line(f"{value} = load({tries.values(first.trie, len(first.key) - 1)}, {place})")


def _write_body(statements: StatementWriter, leap: Leap, tries: TrieNames) -> None:
    """What is done for a value that all cursors have; then, where that is enough for the sum around, no more."""
    writer = statements.writer
    for cursor in leap.cursors:
        if cursor.alias:
            trie = next(trie for trie in statements.program.upkeep.tries if trie.name == cursor.trie)
            statements.aliases[cursor.alias] = statements.views[trie.view]
            place = f"{tries.place(cursor.trie, cursor.key)} * {tries.carried_bytes(cursor.trie)}"
            writer.line(f"{statements.row(cursor.alias)} = {tries.carried(cursor.trie)} + {place}")
    statements.body(leap.body)
    if statements.enough and statements.enough[-1]:
        with writer.block(f"if {statements.enough[-1]} != 0:"):
            writer.line("break")


def _write_open(cursor: Cursor, writer: Writer, tries: TrieNames, place: str, end: str) -> None:
    level = len(cursor.key) - 1
    if level == 0:
        writer.line(f"{place} = 0")
        writer.line(f"{end} = {tries.nodes(cursor.trie)}")
        return
    parent = tries.place(cursor.trie, cursor.key[:-1])
    children = tries.children(cursor.trie, level - 1)
    writer.line(f"{place} = load({children}, {parent})")
    writer.line(f"{end} = load({children}, {parent} + 1)")


def _sought(cursor: Cursor, tries: TrieNames, place: str, end: str, wanted: str, used: set[str]) -> str:
    values = tries.values(cursor.trie, len(cursor.key) - 1)
    if len(cursor.key) == 1:
        used.add("seek_first")
        return f"seek_first({tries.trie(cursor.trie)}, {values}, {place}, {end}, {wanted})"
    used.add("seek")
    return f"seek({values}, {place}, {end}, {wanted})"
