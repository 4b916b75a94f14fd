"""Writes the statements that read rows of views: Lookup, Exists, Loop, and Smaller, which runs the shorter loop."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from freshviews.codegen.writing.ahead import PAIRS, ROWS, place_of
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.integers import product, times, word
from freshviews.program.intersections import is_intersection, open_position
from freshviews.program.payload import ComponentOf
from freshviews.program.statements import Emit, Exists, Lookup, Loop, Smaller
from freshviews.records import dataclass


def write_lookup(context: Context, statement: Lookup) -> Context:
    """The body if the row exists, otherwise the other body; returns the context of the statements after it."""
    view = context.views[statement.view]
    row = context.row(statement.alias)
    context.step()
    source, context = _looked_up(context, statement)
    context.line(f"{row} = {source}")
    present = f"{row} != 0"
    if view.journal:
        present += f" and not is_zero({context.table(view.name)}, {row})"
    inner = context.with_alias(statement.alias, view)
    if statement.optional:
        with context.block(f"if not ({present}):" if view.journal else f"if {row} == 0:"):
            context.line(f"{row} = {context.default(view.name)}")
        inner.body(statement.body)
        return context
    with context.block(f"if {present}:"):
        inner.body(statement.body)
    if statement.otherwise:
        with context.block("else:"):
            inner.body(statement.otherwise)
    return context


def _looked_up(context: Context, statement: Lookup) -> tuple[str, Context]:
    """Source of the row with a key, or 0; and the context in which it is known."""
    view, key = statement.view, statement.key
    known = context.found.get((view, key))
    if known is not None:
        return known, context
    if (view, key) in context.likely:
        return f"find_from({context.table(view)}, {context.likely[view, key]}, {context.key(key)})", context
    source = context.by_key("find_sum" if view in context.scratch else "find", context.table(view), key)
    if view not in context.frozen:
        return source, context
    known = context.fresh(f"{view}_found")
    return f"{known} = {source}", replace(context, found={**context.found, (view, key): known})


def write_exists(context: Context, statement: Exists) -> None:
    context.step()
    index = context.index(statement.view, statement.bound, statement.among)
    with context.block(f"if {context.by_key('slice_of', index, statement.key)} != 0:"):
        context.body(statement.body)


@dataclass(frozen=True)
class _Slice:
    """Variables of a loop over a slice: the group of the slice, the position in it, whether the digests of ``other``,
    the group that each row is looked up in, are scanned for it (no variable where they never are)."""

    group: str
    at: str
    other: str = ""
    scanned: str = ""


def write_loop(context: Context, loop: Loop, group: str = "", other: str = "") -> None:
    """A loop over a slice, whose ``group`` may be known, or over a table.

    ``other`` is the group that each row is looked up in first, where its digests may show that most rows are not in it.
    """
    view, table = context.views[loop.view], context.table(loop.view)
    context = context.with_alias(loop.alias, view)
    width, rows, at = (context.fresh(f"{loop.alias}_{word}") for word in ("bytes", "rows", "at"))
    if not (loop.bound or loop.among):
        _hoist(context, table, rows, width)
        turns, address = f"load({table}, USED)", f"{rows} + {at} * {width}"
        if loop.optional:
            turns = f"{turns} if load({table}, LIVE) > 0 else 1"
            address = f"{address} if load({table}, LIVE) > 0 else {context.default(loop.view)}"
        with context.loop(f"for {at} in range({turns}):"):
            _write_turn(context, loop, address)
        return
    group = group or context.slice(loop)
    numbers = context.fresh(f"{loop.alias}_numbers")
    context.line(f"{numbers} = slice_rows({group})")
    _hoist(context, table, rows, width)
    address = f"{rows} + load32({numbers}, {at}) * {width}"
    scanned = ""
    if other:
        scanned = context.fresh(f"{loop.alias}_scanned")
        context.line(f"{scanned} = is_scanned({other})")
    here = _Slice(group, at, other, scanned)
    if not context.outlined:
        _prefetch(context, loop, here, address)
    alone = len(loop.body) == 1 and len(context.program.result.emitted) == 1 and Emit not in context.instead
    if not view.journal and not loop.optional and alone and isinstance(loop.body[0], Emit):
        _write_emit_slice(context, loop, loop.body[0], here, address)
        return
    turns = f"slice_count({group})"
    if loop.optional:
        address = f"{address} if {turns} > 0 else {context.default(loop.view)}"
        turns = f"max({turns}, 1)"
    with context.loop(f"for {at} in range({turns}):"):
        _write_turn(context, loop, address, here)


def _hoist(context: Context, table: str, rows: str, width: str) -> None:
    context.line(f"{rows} = load({table}, ROWS)")
    context.line(f"{width} = 8 * load({table}, WIDTH)")


def _write_turn(context: Context, loop: Loop, address: str, here: _Slice | None = None) -> None:
    """The lines of one turn of a loop, ``here`` where it runs over a slice."""
    context.step()
    table, row = context.table(loop.view), context.row(loop.alias)
    if here is not None and here.other:
        first = loop.body[0]
        assert isinstance(first, Lookup)
        position = _write_skipping(context, loop, here)
        likely = {**context.likely, (first.view, first.key): f"{here.other}, {position}"}
        context = replace(context, likely=likely)
    context.line(f"{row} = {address}")
    if here is None or context.views[loop.view].journal:
        with context.block(f"if is_zero({table}, {row}):"):
            context.line("continue")
    context.bind(loop)
    context.body(loop.body)


def _write_skipping(context: Context, loop: Loop, here: _Slice) -> str:
    """Continue with the next row if the other slice lacks its digest; otherwise return the variable of its position."""
    position = context.fresh(f"{loop.alias}_there")
    context.line(f"{position} = -1")
    with context.block(f"if {here.scanned} != 0:"):
        digest = f"digest_at({here.group}, {here.at}, {context.table(loop.view)}, {open_position(loop)})"
        context.line(f"{position} = position_of({here.other}, {digest})")
        with context.block(f"if {position} < 0:"):
            context.line("continue")
    return position


def _prefetch(context: Context, loop: Loop, here: _Slice, address: str) -> None:
    """Prefetch the first rows of a slice, then what the loop's body looks up first.

    Neither happens if digests exclude most rows, or if earlier updates have prefetched the same.
    """
    ahead = not loop.among and place_of(loop) in context.ahead
    unknown = [f"{here.scanned} == 0"] if here.scanned else []
    tests = [*unknown, *([f"i < {ROWS}"] if ahead else [])]
    with context.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
        context.line(f"foresee_rows({here.group}, {context.table(loop.view)})")
    first = loop.body[0]
    if isinstance(first, Lookup):
        tests = [*unknown, *([f"i < {PAIRS}"] if ahead else [])]
        number = f"foreseen({here.group})" + (f" if {' and '.join(tests)} else 0" if tests else "")
        with context.loop(f"for {here.at} in range({number}):"):
            context.line(f"{context.row(loop.alias)} = {address}")
            context.bind(loop)
            context.line(f"foresee({context.table(first.view)}, {context.key(first.key)})")


def _write_emit_slice(context: Context, loop: Loop, statement: Emit, here: _Slice, address: str) -> None:
    """A loop whose body is one Emit: room for all rows is reserved at once."""
    out, outer = context.fresh("out"), context.fresh(f"{loop.alias}_times")
    inside, amount = factors_of(context, loop, statement)
    count = f"slice_count({here.group})"
    context.line(f"{outer} = {amount}")
    context.line(f"{out} = reserve(changes, {count})")
    with context.block(f"if {out} != 0:"), context.loop(f"for {here.at} in range({count}):"):
        context.step()
        context.line(f"{context.row(loop.alias)} = {address}")
        context.bind(loop)
        for i, variable in enumerate(statement.row):
            context.line(f"store({out}, {i}, {context.variable(variable)})")
        context.line(f"store({out}, {len(statement.row)}, {times(context, outer, inside)})")
        context.line(f"{out} += {8 * (len(statement.row) + 1)}")


def factors_of(context: Context, loop: Loop, statement: Emit) -> tuple[list[str], str]:
    """The source of the emitted factors of a loop: those that are words of its row, and the product of the others."""
    (monomial,) = statement.payload
    inside = [f for f in monomial.factors if isinstance(f, ComponentOf) and f.alias == loop.alias]
    outside = [f for f in monomial.factors if f not in inside]
    amount = product(context, outside, monomial.coefficient)
    return [word(context, factor) for factor in inside], amount


def write_smaller(context: Context, statement: Smaller) -> None:
    """Iterate over the smaller of two slices; each loop does the same as the other."""
    groups: list[str] = []
    counts = []
    for loop in (statement.left, statement.right):
        if loop.bound:
            groups.append(context.slice(loop))
            counts.append(f"slice_count({groups[-1]})")
        else:
            groups.append("")
            counts.append(f"load({context.table(loop.view)}, LIVE)")
    plain = context.counted or context.outlined
    others = groups[::-1] if is_intersection(statement) and not plain else ["", ""]
    with context.block(f"if {counts[0]} <= {counts[1]}:"):
        write_loop(context, statement.left, groups[0], others[0])
    with context.block("else:"):
        write_loop(context, statement.right, groups[1], others[1])
