"""Writes a leapfrog join of one variable as loops over flat tries (``kernel.trie.flat``).

For example, a column of R is joined with a column of S. ``b_in_R`` is a position in the column of R, and ``b_of_R`` the
value there. ``seek`` returns the next position whose value is at least its last argument::

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

from collections.abc import Iterator

from freshviews.codegen.writer import Names
from freshviews.codegen.writing.context import Context
from freshviews.kernel.trie import flat
from freshviews.program.statements import Body, Cursor, Leap
from freshviews.program.structure import visit
from freshviews.program.views import Trie
from freshviews.records import dataclass


@dataclass(frozen=True)
class TrieNames:
    """Local variables of a trie, set before the join begins."""

    names: Names
    name: str

    @property
    def handle(self) -> str:
        return self.names.of("trie", self.name)

    def values(self, level: int) -> str:
        return self.names.of("values", f"{self.name}_values_{level}")

    def children(self, level: int) -> str:
        return self.names.of("children", f"{self.name}_children_{level}")

    @property
    def nodes(self) -> str:
        """The number of nodes of the first level."""
        return self.names.of("nodes", f"{self.name}_nodes")

    @property
    def carried(self) -> str:
        """The address of the payload at position 0, minus the words of the key of its view."""
        return self.names.of("carried", f"{self.name}_carried")

    @property
    def carried_bytes(self) -> str:
        return self.names.of("carried bytes", f"{self.name}_carried_bytes")


def write_known(context: Context, trie: Trie) -> None:
    """Read the words of a trie that stay the same during the join."""
    names = TrieNames(context.writer.names, trie.name)
    for level in range(len(trie.order)):
        word = flat.FIRST_LEVEL + flat.LEVEL * level
        context.line(f"{names.values(level)} = load({names.handle}, {word + flat.VALUES})")
        if level < len(trie.order) - 1:
            context.line(f"{names.children(level)} = load({names.handle}, {word + flat.CHILDREN})")
    context.line(f"{names.nodes} = load({names.handle}, {flat.FIRST_LEVEL + flat.NODES})")
    key = 8 * len(context.views[trie.view].key)
    context.line(f"{names.carried} = load({names.handle}, {flat.CARRIED}) - {key}")
    context.line(f"{names.carried_bytes} = load({names.handle}, {flat.CARRIED_BYTES})")


def locals_around(context: Context, body: Body) -> Iterator[str]:
    """The locals that the joins of a body read: handles of tries, and positions of cursors that are opened outside."""
    cursors = [cursor for statement in visit(body) if isinstance(statement, Leap) for cursor in statement.cursors]
    opened = {(cursor.trie, cursor.key) for cursor in cursors}
    for cursor in cursors:
        yield TrieNames(context.writer.names, cursor.trie).handle
        above = cursor.key[:-1]
        if above and (cursor.trie, above) not in opened:
            yield _position(context, cursor.trie, above)


def _position(context: Context, trie: str, key: tuple[str, ...]) -> str:
    return context.writer.names.of("place", f"{key[-1]}_in_{'_'.join([trie, *key[:-1]])}")


@dataclass(frozen=True)
class _CursorPlace:
    """Local variables of a cursor: its position, the end of its values, and its value; ``values`` is its array."""

    cursor: Cursor
    trie: TrieNames
    at: str
    end: str
    value: str
    values: str

    def load(self) -> str:
        return f"load({self.values}, {self.at})"

    def sought(self, context: Context, wanted: str) -> str:
        """Source of the next position with a value of at least ``wanted``."""
        if len(self.cursor.key) == 1:
            return f"seek_first({self.trie.handle}, {self.values}, {self.at}, {self.end}, {wanted})"
        return f"seek({self.values}, {self.at}, {self.end}, {wanted})"


def write_leap(context: Context, leap: Leap) -> None:
    """The loops of one variable.

    A cursor is three local variables: its position, the end of its values, and the value at the position. In every
    turn, each cursor except the first seeks the value of the cursor before it. If the last cursor then has the value of
    the first, all cursors have it, and the body runs. Otherwise the first cursor seeks the value of the last. So the
    cursor with the fewest values advances at least once in two turns, as the time bound of leapfrog-search requires.
    """
    places = [_open(context, cursor) for cursor in leap.cursors]
    variable = context.variable(leap.variable)
    if len(places) == 1:
        (only,) = places
        with context.loop(f"for {only.at} in range({only.at}, {only.end}):"):
            context.step()
            context.line(f"{variable} = {only.load()}")
            _write_body(context, leap, places)
        return
    first = places[0]
    with context.block(f"if {' and '.join(f'{place.at} < {place.end}' for place in places)}:"):
        for place in places:
            context.line(f"{place.value} = {place.load()}")
        with context.loop("while True:"):
            before = first.value
            for place in places[1:]:
                with context.block(f"if {place.value} < {before}:"):
                    context.step()
                    context.line(f"{place.at} = {place.sought(context, before)}")
                    _write_end(context, place)
                before = place.value
            context.step()
            with context.block(f"if {first.value} == {before}:"):
                context.line(f"{variable} = {first.value}")
                _write_body(context, leap, places)
                context.line(f"{first.at} += 1")
            with context.block("else:"):
                context.line(f"{first.at} = {first.sought(context, before)}")
            _write_end(context, first)


def _open(context: Context, cursor: Cursor) -> _CursorPlace:
    """Set a cursor to the first value below its parent."""
    names, level = context.writer.names, len(cursor.key) - 1
    trie = TrieNames(names, cursor.trie)
    at = _position(context, cursor.trie, cursor.key)
    end, value = names.of("end", f"{at}_end"), names.of("value", f"{at}_value")
    if level == 0:
        context.line(f"{at} = 0")
        context.line(f"{end} = {trie.nodes}")
    else:
        parent, children = _position(context, cursor.trie, cursor.key[:-1]), trie.children(level - 1)
        context.line(f"{at} = load({children}, {parent})")
        context.line(f"{end} = load({children}, {parent} + 1)")
    context.step()
    return _CursorPlace(cursor, trie, at, end, value, trie.values(level))


def _write_end(context: Context, place: _CursorPlace) -> None:
    """End the join where a cursor is at its end, else read its value."""
    with context.block(f"if {place.at} == {place.end}:"):
        context.line("break")
    context.line(f"{place.value} = {place.load()}")


def _write_body(context: Context, leap: Leap, places: list[_CursorPlace]) -> None:
    """The body for a value that all cursors have; then the loop ends if the enclosing Sum needs no more."""
    inner = context
    for place in places:
        alias = place.cursor.alias
        if alias:
            trie = next(trie for trie in context.program.upkeep.tries if trie.name == place.cursor.trie)
            inner = inner.with_alias(alias, context.views[trie.view])
            context.line(f"{context.row(alias)} = {place.trie.carried} + {place.at} * {place.trie.carried_bytes}")
    inner.body(leap.body)
    if context.enough:
        with context.block(f"if {context.enough} != 0:"):
            context.line("break")
