"""Loops over slices: what is fetched ahead of them, and those that emit every row."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from freshviews.codegen.writing.ahead import PAIRS, ROWS, place_of
from freshviews.program.intersections import is_intersection, open_position
from freshviews.program.payload import ComponentOf
from freshviews.program.statements import Emit, Lookup, Loop, Smaller

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter


def write_emit_slice(statements: StatementWriter, loop: Loop, statement: Emit, places: tuple[str, str, str]) -> None:
    """A loop whose body is one Emit: room is made for all rows at once."""
    at, count, place = places
    (amounts,) = statement.payload
    row, out = statements.row(loop.alias), statements.names.fresh("out")
    outer = statements.names.fresh(f"{loop.alias}_times")
    here = [f for f in amounts.factors if isinstance(f, ComponentOf) and f.alias == loop.alias]
    outside = tuple(f for f in amounts.factors if f not in here)
    statements.need("reserve", "store")
    statements.writer.line(f"{outer} = {statements.integer(outside, amounts)}")
    statements.writer.line(f"{out} = reserve(changes, {count})")
    with statements.writer.block(f"if {out} != 0:"), statements.writer.block(f"for {at} in range({count}):"):
        statements.step()
        statements.writer.line(f"{row} = {place}")
        statements.bind(loop)
        for i, variable in enumerate(statement.row):
            statements.writer.line(f"store({out}, {i}, {statements.variable(variable)})")
        amount = outer
        for factor in here:
            statements.need("times")
            amount = f"times({amount}, {statements.word(factor)}, status)"
        statements.writer.line(f"store({out}, {len(statement.row)}, {amount})")
        statements.writer.line(f"{out} += {8 * (len(statement.row) + 1)}")


def write_smaller(statements: StatementWriter, statement: Smaller) -> None:
    """Of two loops that come to the same, the one over fewer rows."""
    groups: list[str] = []
    counts = []
    for loop in (statement.left, statement.right):
        if loop.bound:
            statements.need("slice_count")
            groups.append(statements.slice(loop))
            counts.append(f"slice_count({groups[-1]})")
        else:
            statements.need("load")
            groups.append("")
            counts.append(f"load({statements.table(loop.view)}, LIVE)")
    plain = statements.counted or statements.outlined
    others = groups[::-1] if is_intersection(statement) and not plain else ["", ""]
    with statements.writer.block(f"if {counts[0]} <= {counts[1]}:"):
        statements.loop(statement.left, groups[0], others[0])
    with statements.writer.block("else:"):
        statements.loop(statement.right, groups[1], others[1])


def write_scanning(statements: StatementWriter, loop: Loop, other: str) -> str:
    """Whether the digests of ``other`` are looked through for the rows of a loop: the variable that says so."""
    if not other:
        return ""
    scanned = statements.names.fresh(f"{loop.alias}_scanned")
    statements.need("is_scanned")
    statements.writer.line(f"{scanned} = is_scanned({other})")
    return scanned


def write_skipping(statements: StatementWriter, loop: Loop, group: str, at: str, scanned: str, other: str) -> str:
    """Within the loop, before its row is fetched: on to the next one where ``other`` has no such digest; the variable
    that says where it has."""
    statements.need("digest_at", "position_of")
    position = statements.names.fresh(f"{loop.alias}_there")
    statements.writer.line(f"{position} = -1")
    with statements.writer.block(f"if {scanned} != 0:"):
        digest = f"digest_at({group}, {at}, {statements.table(loop.view)}, {open_position(loop)})"
        statements.writer.line(f"{position} = position_of({other}, {digest})")
        with statements.writer.block(f"if {position} < 0:"):
            statements.writer.line("continue")
    return position


def foresee(statements: StatementWriter, loop: Loop, group: str, at: str, set_row: str, scanned: str) -> None:
    """Have the first rows of a slice fetched, and then what the loop's body looks up first: these addresses
    are known long before the loop, which waits for one after the other, comes to them. Not where most rows will be
    told by their digests, nor what updates before have fetched."""
    ahead = not loop.among and place_of(loop) in statements.ahead
    unknown = [f"{scanned} == 0"] if scanned else []
    statements.need("foresee_rows")
    tests = [*unknown, *([f"i < {ROWS}"] if ahead else [])]
    with statements.writer.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
        statements.writer.line(f"foresee_rows({group}, {statements.table(loop.view)})")
    first = loop.body[0]
    if isinstance(first, Lookup):
        statements.need("foresee", "foreseen")
        tests = [*unknown, *([f"i < {PAIRS}"] if ahead else [])]
        number = f"foreseen({group}) if {' and '.join(tests)} else 0" if tests else f"foreseen({group})"
        with statements.writer.block(f"for {at} in range({number}):"):
            statements.writer.line(set_row)
            statements.bind(loop)
            statements.writer.line(f"foresee({statements.table(first.view)}, {statements.key(first.key)})")
