"""Ordered indexes, the least or greatest value that is read off one, and its first rows, as Python source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.codegen.layout import row_layout
from freshviews.kernel.ordered import TOP
from freshviews.kernel.top import MOVED
from freshviews.program.nodes import Extreme, Statement, View
from freshviews.program.order import Top

if TYPE_CHECKING:
    from freshviews.codegen.statements import StatementWriter


def write_order(writer: StatementWriter, view: View, row: str, action: str) -> None:
    """A row enters the ordered index of its view, if there is one, or leaves it."""
    if view.ordered:
        table = writer.table(view.name)
        writer.need(action, "row_number", "load")
        writer.writer.line(f"{action}(load(load({table}, ORDERED_LIST), 0), {table}, row_number({table}, {row}))")


def write_always(writer: StatementWriter, view: View, row: str, before: str, body: tuple[Statement, ...]) -> None:
    """What is done after an Add, once written, whether the row appeared, vanished or stayed."""
    lines, after = writer.writer, writer.names.fresh(f"{row}_is_absent")
    lines.line(f"{after} = {writer.zero_test(view, row)}")
    if view.ordered:
        with lines.block(f"if {after} and not {before}:"):
            write_order(writer, view, row, "ordered_remove")
        with lines.block(f"if {before} and not {after}:"):
            write_order(writer, view, row, "ordered_insert")
    with lines.block(f"if not ({before} and {after}):"):
        writer.body(body)
    with lines.block(f"if {after}:"):
        writer.leave(view, row)


def write_extreme(writer: StatementWriter, statement: Extreme) -> None:
    """A component becomes the least or greatest value of a group, or 0 where there is none."""
    view = writer.views[statement.view]
    source = writer.table(statement.source)
    find = "ordered_first" if statement.kind == "min" else "ordered_last"
    writer.need(find, "load", "store")
    value = writer.names.fresh(statement.component)
    key = writer.key(statement.key)
    writer.writer.line(f"{value} = {find}(load(load({source}, ORDERED_LIST), 0), {source}, {key})")
    row = writer.target(view, statement.key)
    place = row_layout(view).offsets[statement.component]
    writer.writer.line(f"store({row}, {place}, 0 if {value} == NULL else {value})")
    with writer.writer.block(f"if {writer.zero_test(view, row)}:"):
        writer.leave(view, row)


def write_top(writer: StatementWriter, statement: Top) -> None:
    """What is done with each row that comes among the first ones, or goes."""
    view = writer.aliases[statement.alias]
    assert isinstance(view, View)
    table, row = writer.table(view.name), writer.row(statement.alias)
    writer.need("top_start", "top_next", "add_wrapping", "load")
    lines, fresh = writer.writer, writer.names.fresh
    order, moved = fresh(f"{view.name}_order"), fresh(f"{view.name}_moved")
    count = f"load({row}, {len(view.key)})"
    lines.line(f"{order} = load(load({table}, ORDERED_LIST), 0)")
    lines.line(f"top_start({order}, {table}, {row}, add_wrapping({count}, -{writer.variable(statement.grown)}))")
    step = f"{moved} = top_next({order}, {table}, {statement.first}, {statement.last})"
    lines.line(step)
    with lines.block(f"while {moved} != 0:"):
        writer.step()
        for i, variable in enumerate(statement.key):
            lines.line(f"{writer.variable(variable)} = load({moved}, {i})")
        lines.line(f"{writer.variable(statement.change)} = load({order}, {TOP + MOVED})")
        writer.body(statement.body)
        lines.line(step)
