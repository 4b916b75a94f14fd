"""Ordered indexes and the least or greatest value that is read off one, as Python source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.codegen.layout import row_layout
from freshviews.program.nodes import Extreme, View

if TYPE_CHECKING:
    from freshviews.codegen.statements import StatementWriter


def write_order(writer: StatementWriter, view: View, row: str, action: str) -> None:
    """A row enters the ordered index of its view, if there is one, or leaves it."""
    if view.ordered is not None:
        table = writer.table(view.name)
        writer.need(action, "row_number", "load")
        writer.writer.line(f"{action}(load(load({table}, ORDERED_LIST), 0), {table}, row_number({table}, {row}))")


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
