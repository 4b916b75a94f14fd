"""Writes prefetches. While one update of a batch runs, they load the memory that later updates will read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext

from freshviews.codegen.writer import tuple_of
from freshviews.codegen.writing.context import Context, RowPlace
from freshviews.expr.nodes import Column
from freshviews.program.intersections import is_intersection
from freshviews.program.program import Trigger
from freshviews.program.roles import Often
from freshviews.program.statements import Add, Body, Exists, Lookup, Loop, Smaller, Statement
from freshviews.program.structure import bodies, visits

SLOT, FOUND, BLOCK, ROWS, PAIRS = 12, 8, 5, 3, 1
"""Stages, each by the number of updates ahead for which it is prefetched: the slot of a key, the group or row that it
names, both ends of a block of rows, the first of these rows, the slots of the keys that are looked up for each row."""
LEAVING = {SLOT: "foresee", FOUND: "foresee_row", BLOCK: "foresee_groups", ROWS: "foresee_leaving"}
"""The stages of a delete."""
CACHED = 16 << 20
"""Bytes of tables that fit into the caches of a processor. Measured: without prefetching, counts of triangles take two
thirds of the time at 2 MB, four fifths at 12 MB, and five quarters at 24 MB and at 50 MB."""
MOST_PLACES = 6
"""Maximum number of keys prefetched per trigger: each costs some instructions per update even if it is cached."""


def place_of(loop: Loop) -> RowPlace:
    """The slice that a loop runs over."""
    return RowPlace(loop.view, tuple(loop.key[i] for i in loop.bound), loop.bound)


def write_until(context: Context, trigger: Trigger, raw: Mapping[str, str]) -> None:
    """Before the first update: set ``until``, the update before which keys are prefetched: the end of the batch, or 0
    for tables that fit into the caches."""
    views = dict.fromkeys(place.view for place in _prefetched_keys(context, trigger, raw))
    if views:
        held = " + ".join(f"table_bytes({context.table(view)})" for view in views)
        context.line(f"until = n if {held} > {CACHED} else 0")
    for add in _leaving(context, trigger, raw):
        appends, table = context.appends[add.view], context.table(add.view)
        context.line(f"leaving = n if {appends} == 0 and table_bytes({table}) > {CACHED} else 0")


def write_leaving(context: Context, trigger: Trigger, raw: Mapping[str, str]) -> None:
    """Prefetch the memory that later deletes change in the views to which the trigger appends inserts.

    A delete finds its row, and through it its places in all indexes; inserts wait for memory less often.
    """
    for add in _leaving(context, trigger, raw):
        plain = _unchanged_parameters(trigger, raw)
        key = tuple_of(plain[v] for v in add.key)
        for distance, function in LEAVING.items():
            at = f"(i + {distance})"
            with context.block(f"if i + {distance} < leaving and load(m_at, {at} * m_stride) < 0:"):
                for name in dict.fromkeys(plain[v] for v in add.key):
                    context.line(f"{name} = load({name}_at, {at} * {name}_stride)")
                context.line(f"{function}({context.table(add.view)}, {key})")


def _leaving(context: Context, trigger: Trigger, raw: Mapping[str, str]) -> list[Add]:
    """The statement that changes the view to which inserts are appended, if its key has unchanged columns and it has
    several indexes; with one, a delete waits for less than prefetching costs."""
    if context.counted or context.outlined:
        return []
    plain = _unchanged_parameters(trigger, raw)
    adds = [s for s in trigger.body if isinstance(s, Add) and s.view in context.appends]
    several = [add for add in adds if len(context.views[add.view].indexes) > 1]
    return [add for add in several if set(add.key) <= plain.keys()][:1]


def write_ahead(context: Context, trigger: Trigger, raw: Mapping[str, str]) -> frozenset[RowPlace]:
    """Prefetch rows that later updates look up by unchanged columns; return the slices with prefetched rows.

    ``raw`` has the local variable of each column.

    An update waits for memory several times: for the slot of a key, for the row or group that the slot names, and for
    the rows of the group. All keys of a batch are known when it begins. So each stage is prefetched some updates early,
    when the previous stage has arrived. Tables that fit into the processor's caches are not prefetched: their sizes are
    compared with ``CACHED`` once per batch. The trigger language has no prefetching; it describes one update.
    """
    places = _prefetched_keys(context, trigger, raw)
    plain = _unchanged_parameters(trigger, raw)
    loops = [loop for loop in _outermost(trigger) if set(places).issuperset(map(place_of, _sides(loop)))]
    changed = [place for place in _subset_moves(context, trigger) if place in places]
    slices = any(place.bound for place in places)
    for distance in (SLOT, FOUND, BLOCK, ROWS, PAIRS) if slices else (SLOT, FOUND) if places else ():
        with context.block(f"if i + {distance} < until:"):
            for name in _needs(distance, places, loops, plain):
                context.line(f"{name} = load({name}_at, (i + {distance}) * {name}_stride)")
            if distance >= BLOCK:
                for place in places:
                    if place.bound or distance != BLOCK:
                        _write_place(context, distance, place, plain)
                continue
            _write_rows(context, distance, loops, plain)
            if distance == ROWS:
                for place in changed:
                    context.line(f"foresee_leaving({context.table(place.view)}, {_key(place, plain)})")
    return frozenset(place_of(side) for loop in loops for side in _sides(loop))


def _unchanged_parameters(trigger: Trigger, raw: Mapping[str, str]) -> dict[str, str]:
    """The parameters that are unchanged columns, with the variables of these columns."""
    return {p.name: raw[p.expr.name] for p in trigger.parameters if isinstance(p.expr, Column) and p.expr.name in raw}


def _key(place: RowPlace, plain: Mapping[str, str]) -> str:
    return tuple_of(plain[v] for v in place.key)


def _prefetched_keys(context: Context, trigger: Trigger, raw: Mapping[str, str]) -> list[RowPlace]:
    """The keys of unchanged columns that are prefetched."""
    if context.counted or context.outlined:
        return []
    plain = _unchanged_parameters(trigger, raw)
    return [place for place in _places(context, trigger) if set(place.key) <= plain.keys()][:MOST_PLACES]


def _needs(distance: int, places: list[RowPlace], loops: list[Loop | Smaller], plain: Mapping[str, str]) -> list[str]:
    """The variables of the columns that a stage reads."""
    used = [v for place in places for v in place.key]
    if distance == PAIRS:
        lookups = (side.body[0] for loop in loops for side in _sides(loop))
        used += [v for lookup in lookups if isinstance(lookup, Lookup) for v in lookup.key if v in plain]
    return list(dict.fromkeys(plain[v] for v in used))


def _write_place(context: Context, distance: int, place: RowPlace, plain: Mapping[str, str]) -> None:
    if place.bound:
        function = {SLOT: "foresee_slot", FOUND: "foresee_group", BLOCK: "foresee_block"}[distance]
        holder = context.index(place.view, place.bound)
    else:
        function = {SLOT: "foresee", FOUND: "foresee_row"}[distance]
        holder = context.table(place.view)
    context.line(f"{function}({holder}, {_key(place, plain)})")


def _write_rows(context: Context, distance: int, loops: list[Loop | Smaller], plain: Mapping[str, str]) -> None:
    """Prefetch the first rows of slices, or the rows that are looked up for each of them.

    Of two slices, only the one that the loop will run over is prefetched, unless the digests of the other are scanned.
    """
    for loop in loops:
        sides = _sides(loop)
        if distance == PAIRS and not all(_looks_up(side, plain) for side in sides):
            continue
        groups = []
        for place in map(place_of, sides):
            groups.append(context.fresh(f"{place.view}_ahead"))
            context.line(f"{groups[-1]} = slice_of({context.index(place.view, place.bound)}, {_key(place, plain)})")
        if not isinstance(loop, Smaller):
            _write_first(context, distance, sides[0], groups[0], plain)
            continue
        for side, other, head in ((0, 1, f"if slice_count({groups[0]}) <= slice_count({groups[1]})"), (1, 0, "else")):
            test = ""
            if is_intersection(loop):
                test = f"if is_scanned({groups[other]}) == 0:"
            with context.block(f"{head}:"), context.block(test) if test else nullcontext():
                _write_first(context, distance, sides[side], groups[side], plain)


def _write_first(context: Context, distance: int, loop: Loop, group: str, plain: Mapping[str, str]) -> None:
    table = context.table(loop.view)
    if distance == ROWS:
        context.line(f"foresee_rows({group}, {table})")
        return
    lookup = loop.body[0]
    assert isinstance(lookup, Lookup)
    row, at = context.fresh(f"{loop.view}_row"), context.fresh(f"{loop.view}_at")
    words = [plain.get(v) or f"load({row}, {loop.key.index(v)})" for v in lookup.key]
    with context.loop(f"for {at} in range(foreseen({group})):"):
        context.line(f"{row} = row_at({table}, load32(slice_rows({group}), {at}))")
        context.line(f"foresee({context.table(lookup.view)}, ({', '.join(words)},))")


def _looks_up(loop: Loop, plain: Mapping[str, str]) -> bool:
    first = loop.body[0]
    return isinstance(first, Lookup) and {*loop.key, *plain}.issuperset(first.key)


def _sides(loop: Loop | Smaller) -> tuple[Loop, ...]:
    return (loop.left, loop.right) if isinstance(loop, Smaller) else (loop,)


def _outermost(trigger: Trigger) -> list[Loop | Smaller]:
    """Loops over slices, a Smaller as one loop, each once."""
    loops = [loop for statement in _unconditional(trigger.body) for loop in _loops(statement)]
    of_two = {side for loop in loops if isinstance(loop, Smaller) for side in _sides(loop)}
    return list({_sides(loop)[0]: loop for loop in loops if loop not in of_two}.values())


def _places(context: Context, trigger: Trigger) -> list[RowPlace]:
    """Keys in the order of first use, without views that no trigger changes, which are small, and views to which the
    trigger may append."""
    left_out = context.frozen | context.scratch | context.appends.keys()
    found = [place for statement in _unconditional(trigger.body) for place in _keys_of(statement)]
    for place in _subset_moves(context, trigger):
        for bound in context.views[place.view].indexes:
            found.append(RowPlace(place.view, tuple(place.key[i] for i in bound), bound))
    return list(dict.fromkeys(place for place in found if place.key and place.view not in left_out))


def _subset_moves(context: Context, trigger: Trigger) -> list[RowPlace]:
    """Rows that enter or leave the indexes of their view."""
    added = (statement for statement in _unconditional(trigger.body) if isinstance(statement, Add))
    return [RowPlace(one.view, one.key) for one in added if context.views[one.view].indexes]


def _unconditional(body: Body) -> Iterator[Statement]:
    """Statements that most updates reach, i.e. those under no condition, outer ones first."""
    queue = list(body[::-1])
    while queue:
        statement = queue.pop()
        yield statement
        for visited, nested in reversed(list(zip(visits(statement), bodies(statement), strict=True))):
            if visited.often is not Often.HOLDS:
                queue += nested[::-1]


def _keys_of(statement: Statement) -> Iterator[RowPlace]:
    """The keys that a statement looks up."""
    for loop in _loops(statement):
        yield from map(place_of, _sides(loop))
    match statement:
        case Exists() if not statement.among:
            yield RowPlace(statement.view, statement.key, statement.bound)
        case Lookup() | Add():
            yield RowPlace(statement.view, statement.key)


def _loops(statement: Statement) -> Iterator[Loop | Smaller]:
    """The statement, where it loops over slices of all rows."""
    if isinstance(statement, Loop | Smaller) and all(side.bound and not side.among for side in _sides(statement)):
        yield statement
