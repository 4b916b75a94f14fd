"""What the next updates of a batch will look up, fetched while the one before them runs, as Python source.

An update waits for memory, one place after the other: the slot of a key, the group or the row that it names, the rows
of the group, the slots of what is looked up for each of them. The keys are known as soon as the batch is there, so
all this is fetched in stages, each some updates before it is needed, by which time that of the stage before has come.
Tables that the processor's caches hold are not waited for, and to fetch from them would be work for nothing: whether
they are larger is asked once a batch. In the trigger language there is none of it: it shows what an update does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freshviews.expr.nodes import Column
from freshviews.program.intersections import is_intersection
from freshviews.program.program import Trigger
from freshviews.program.statements import Add, Exists, If, Lookup, Loop, Smaller, Statement
from freshviews.program.structure import bodies

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter

SLOT, FOUND, BLOCK, ROWS, PAIRS = 12, 8, 5, 3, 1
"""How many updates ahead it is fetched: the slot of a key, what it names, the ends of a block of rows, the first of
these rows, the slots of what is looked up for each."""
CACHED = 16 << 20
"""Bytes of tables that the caches of a processor hold well enough. Measured: without fetching ahead counts of triangles
take two thirds of the time at 2 MB, four fifths at 12 MB, and five quarters at 24 MB and at 50 MB."""
MOST_PLACES = 6
"""Of one trigger: fetching costs some instructions at each update, whether or not what is fetched was there."""


@dataclass(frozen=True)
class Place:
    """A key that updates look up: of a view, where no positions are ``bound``, or of its index on these."""

    view: str
    key: tuple[str, ...]
    bound: tuple[int, ...] = ()


def place_of(loop: Loop) -> Place:
    """The slice that a loop runs over."""
    return Place(loop.view, tuple(loop.key[i] for i in loop.bound), loop.bound)


def write_until(trigger: Trigger, statements: StatementWriter, raw: dict[str, str]) -> None:
    """Before the first update: up to which one others are looked up ahead, all or none."""
    views = dict.fromkeys(place.view for place in _foreseen(trigger, statements, raw))
    if views:
        statements.need("table_bytes")
        held = " + ".join(f"table_bytes({statements.table(view)})" for view in views)
        statements.writer.line(f"until = n if {held} > {CACHED} else 0")


def write_ahead(trigger: Trigger, statements: StatementWriter, raw: dict[str, str]) -> None:
    """Fetch what later updates look up by columns as they come; ``raw`` names the variable of each column."""
    places = _foreseen(trigger, statements, raw)
    plain = _plain(trigger, raw)
    loops = [loop for loop in _outermost(trigger) if set(places).issuperset(map(place_of, _sides(loop)))]
    statements.ahead = frozenset(place_of(side) for loop in loops for side in _sides(loop))
    changed = [place for place in _changed(trigger, statements) if place in places]
    slices = any(place.bound for place in places)
    for distance in (SLOT, FOUND, BLOCK, ROWS, PAIRS) if slices else (SLOT, FOUND) if places else ():
        writer = statements.writer
        with writer.block(f"if i + {distance} < until:"):
            for name in _read(distance, places, loops, plain):
                writer.line(f"{name} = load({name}_at, (i + {distance}) * {name}_stride)")
            if distance < BLOCK:
                _write_rows(distance, loops, statements, plain)
                if distance == ROWS:
                    for place in changed:
                        statements.need("foresee_leaving")
                        key = f"({', '.join(plain[v] for v in place.key)},)"
                        writer.line(f"foresee_leaving({statements.table(place.view)}, {key})")
                continue
            for place in places:
                if place.bound or distance != BLOCK:
                    _write_place(distance, place, statements, plain)


def _plain(trigger: Trigger, raw: dict[str, str]) -> dict[str, str]:
    """The parameters that are columns as they come, with the variables of these."""
    return {p.name: raw[p.expr.name] for p in trigger.parameters if isinstance(p.expr, Column) and p.expr.name in raw}


def _foreseen(trigger: Trigger, statements: StatementWriter, raw: dict[str, str]) -> list[Place]:
    """Places by columns as they come."""
    if statements.counted or statements.outlined:
        return []
    plain = _plain(trigger, raw)
    return [place for place in _places(trigger, statements) if set(place.key) <= plain.keys()][:MOST_PLACES]


def _read(distance: int, places: list[Place], loops: list[Loop | Smaller], plain: dict[str, str]) -> list[str]:
    """The variables of the columns that a stage reads."""
    used = [v for place in places for v in place.key]
    if distance == PAIRS:
        lookups = (side.body[0] for loop in loops for side in _sides(loop))
        used += [v for lookup in lookups if isinstance(lookup, Lookup) for v in lookup.key if v in plain]
    return list(dict.fromkeys(plain[v] for v in used))


def _write_place(distance: int, place: Place, statements: StatementWriter, plain: dict[str, str]) -> None:
    key = f"({', '.join(plain[v] for v in place.key)},)"
    if place.bound:
        function = {SLOT: "foresee_slot", FOUND: "foresee_group", BLOCK: "foresee_block"}[distance]
        holder = statements.index(place.view, place.bound, "")
    else:
        function = {SLOT: "foresee", FOUND: "foresee_row"}[distance]
        holder = statements.table(place.view)
    statements.need(function)
    statements.writer.line(f"{function}({holder}, {key})")


def _write_rows(
    distance: int, loops: list[Loop | Smaller], statements: StatementWriter, plain: dict[str, str]
) -> None:
    """The first rows of slices, or what is looked up for each; of two slices, for the one that is taken, and not
    where the digests of the other are looked through."""
    writer = statements.writer
    for loop in loops:
        sides = _sides(loop)
        if distance == PAIRS and not all(_looks_up(side, plain) for side in sides):
            continue
        statements.need("slice_of", "slice_count")
        groups = []
        for place in map(place_of, sides):
            groups.append(statements.names.fresh(f"{place.view}_ahead"))
            key = f"({', '.join(plain[v] for v in place.key)},)"
            writer.line(f"{groups[-1]} = slice_of({statements.index(place.view, place.bound, '')}, {key})")
        if not isinstance(loop, Smaller):
            _write_first(distance, sides[0], groups[0], statements, plain)
            continue
        for side, other, head in ((0, 1, f"if slice_count({groups[0]}) <= slice_count({groups[1]})"), (1, 0, "else")):
            if not is_intersection(loop):
                test = ""
            else:
                statements.need("is_scanned")
                test = f"if is_scanned({groups[other]}) == 0:"
            with writer.block(f"{head}:"), writer.block(test) if test else nullcontext():
                _write_first(distance, sides[side], groups[side], statements, plain)


def _write_first(
    distance: int, loop: Loop, group: str, statements: StatementWriter, plain: dict[str, str]
) -> None:
    writer = statements.writer
    table = statements.table(loop.view)
    if distance == ROWS:
        statements.need("foresee_rows")
        writer.line(f"foresee_rows({group}, {table})")
        return
    lookup = loop.body[0]
    assert isinstance(lookup, Lookup)
    row, at = statements.names.fresh(f"{loop.view}_row"), statements.names.fresh(f"{loop.view}_at")
    statements.need("foresee", "foreseen", "row_at", "load32", "slice_rows")
    words = [plain.get(v) or f"load({row}, {loop.key.index(v)})" for v in lookup.key]
    with writer.block(f"for {at} in range(foreseen({group})):"):
        writer.line(f"{row} = row_at({table}, load32(slice_rows({group}), {at}))")
        writer.line(f"foresee({statements.table(lookup.view)}, ({', '.join(words)},))")


def _looks_up(loop: Loop, plain: dict[str, str]) -> bool:
    first = loop.body[0]
    return isinstance(first, Lookup) and {*loop.key, *plain}.issuperset(first.key)


def _sides(loop: Loop | Smaller) -> tuple[Loop, ...]:
    return (loop.left, loop.right) if isinstance(loop, Smaller) else (loop,)


def _outermost(trigger: Trigger) -> list[Loop | Smaller]:
    """Loops over slices, those of two slices as one, each once."""
    loops = [loop for statement in _always(trigger.body) for loop in _loops(statement)]
    of_two = [side for loop in loops if isinstance(loop, Smaller) for side in _sides(loop)]
    return list({_sides(loop)[0]: loop for loop in loops if loop not in of_two}.values())


def _places(trigger: Trigger, statements: StatementWriter) -> list[Place]:
    """In the order of first use; not what no update changes, which is little, nor what is appended to."""
    left_out = statements.frozen | statements.scratch | statements.appends.keys()
    found = [place for statement in _always(trigger.body) for place in _of(statement)]
    for place in _changed(trigger, statements):
        for bound in statements.views[place.view].indexes:
            found.append(Place(place.view, tuple(place.key[i] for i in bound), bound))
    return list(dict.fromkeys(place for place in found if place.key and place.view not in left_out))


def _changed(trigger: Trigger, statements: StatementWriter) -> list[Place]:
    """Rows that enter the indexes of their view, or leave them."""
    added = (statement for statement in _always(trigger.body) if isinstance(statement, Add))
    return [Place(one.view, one.key) for one in added if statements.views[one.view].indexes]


def _always(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Statements that most updates come to: not those under a condition."""
    for statement in body:
        yield statement
        if not isinstance(statement, If):
            for nested in bodies(statement):
                yield from _always(nested)


def _of(statement: Statement) -> Iterator[Place]:
    for loop in _loops(statement):
        yield from map(place_of, _sides(loop))
    match statement:
        case Exists() if not statement.among:
            yield Place(statement.view, statement.key, statement.bound)
        case Lookup() | Add():
            yield Place(statement.view, statement.key)


def _loops(statement: Statement) -> Iterator[Loop | Smaller]:
    match statement:
        case Smaller(left=left, right=right):
            if left.bound and right.bound and not left.among and not right.among:
                yield statement
        case Loop() if statement.bound and not statement.among:
            yield statement
