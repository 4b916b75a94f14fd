"""Ordered indexes, what their rows come to, and their first rows, as Python source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.codegen.layout import row_layout
from freshviews.kernel.ordered.index import TOP
from freshviews.kernel.ordered.top import MOVED
from freshviews.program.statements import Scan, Statement, Top
from freshviews.program.views import View

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter


def write_order(writer: StatementWriter, view: View, row: str, action: str) -> None:
    """A row enters the ordered index of its view, if there is one, or leaves it."""
    if view.ordered:
        table = writer.table(view.name)
        writer.need(action, "row_number", "load")
        place = f"load(load({table}, ORDERED_LIST), 0), {table}, row_number({table}, {row})"
        writer.writer.line(f"{action}({place})")
        if view.folds:
            writer.need("ordered_refold")
            writer.writer.line(f"ordered_refold({place})")


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


_ENDS = {"min": "ordered_first", "min_by": "ordered_first", "max": "ordered_last", "max_by": "ordered_last"}


def write_scan(writer: StatementWriter, statement: Scan) -> None:
    """A component becomes what the rows of a group come to, or 0 where there is none."""
    view, source = writer.views[statement.view], writer.views[statement.source]
    table, lines = writer.table(source.name), writer.writer
    value = writer.names.fresh(statement.component)
    arguments = f"load(load({table}, ORDERED_LIST), 0), {table}, {writer.key(statement.within)}"
    writer.need("load", "store")
    if statement.kind in _ENDS and len(statement.within) == len(source.key) - len(source.ordered):
        writer.need(_ENDS[statement.kind])
        lines.line(f"{value} = {_ENDS[statement.kind]}({arguments})")
    else:
        writer.need("ordered_fold")
        lines.line(f"{value} = ordered_fold({arguments}, {source.folds.index(statement.kind)})")
    row = writer.target(view, statement.key)
    lines.line(f"store({row}, {row_layout(view).offsets[statement.component]}, {value})")
    with lines.block(f"if {writer.zero_test(view, row)}:"):
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
