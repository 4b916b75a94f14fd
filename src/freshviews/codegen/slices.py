"""Loops over slices: what is fetched ahead of them, and those that emit every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.program.nodes import Emit, Lookup, Loop, Part

if TYPE_CHECKING:
    from freshviews.codegen.statements import StatementWriter


def write_emit_slice(statements: StatementWriter, loop: Loop, statement: Emit, places: tuple[str, str, str]) -> None:
    """A loop whose body is one Emit: room is made for all rows at once."""
    at, count, place = places
    (amounts,) = statement.payload
    row, out = statements.row(loop.alias), statements.names.fresh("out")
    outer = statements.names.fresh(f"{loop.alias}_times")
    here = [f for f in amounts.factors if isinstance(f, Part) and f.alias == loop.alias]
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


def foresee(statements: StatementWriter, loop: Loop, group: str, at: str, set_row: str) -> None:
    """Have the first rows of a slice fetched, and then what the loop's body looks up first: these addresses
    are known long before the loop, which waits for one after the other, comes to them."""
    statements.need("foresee_rows")
    statements.writer.line(f"foresee_rows({group}, {statements.table(loop.view)})")
    first = loop.body[0]
    if isinstance(first, Lookup):
        statements.need("foresee", "foreseen")
        with statements.writer.block(f"for {at} in range(foreseen({group})):"):
            statements.writer.line(set_row)
            statements.bind(loop)
            statements.writer.line(f"foresee({statements.table(first.view)}, {statements.key(first.key)})")
