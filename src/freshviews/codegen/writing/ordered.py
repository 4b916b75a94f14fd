"""Statements over ordered indexes: Scan, an aggregate of a group, and Top, the first rows of an order."""

from __future__ import annotations

from freshviews.codegen.layout import row_layout
from freshviews.codegen.writing.additions import write_removal, write_target
from freshviews.codegen.writing.context import Context
from freshviews.kernel.ordered.index import TOP
from freshviews.kernel.ordered.top import MOVED
from freshviews.program.statements import Scan, Top

_ENDS = {"min": "ordered_first", "min_by": "ordered_first", "max": "ordered_last", "max_by": "ordered_last"}


def write_scan(context: Context, statement: Scan) -> None:
    """Set a component to an aggregate of the rows of a group, or to 0 where the group has no row."""
    view, source = context.views[statement.view], context.views[statement.source]
    table = context.table(source.name)
    value = context.fresh(statement.component)
    arguments = f"load(load({table}, ORDERED_LIST), 0), {table}, {context.key(statement.within)}"
    if statement.kind in _ENDS and len(statement.within) == len(source.key) - len(source.ordered):
        context.line(f"{value} = {_ENDS[statement.kind]}({arguments})")
    else:
        context.line(f"{value} = ordered_fold({arguments}, {source.folds.index(statement.kind)})")
    row = write_target(context, view, statement.key)
    context.line(f"store({row}, {row_layout(view).offsets[statement.component]}, {value})")
    write_removal(context, view, row)


def write_top(context: Context, statement: Top) -> None:
    """Run the body for each row that enters or leaves the first rows of the order."""
    view = context.view_of(statement.alias)
    table, row = context.table(view.name), context.row(statement.alias)
    order, moved = context.fresh(f"{view.name}_order"), context.fresh(f"{view.name}_moved")
    count = f"load({row}, {len(view.key)})"
    context.line(f"{order} = load(load({table}, ORDERED_LIST), 0)")
    context.line(f"top_start({order}, {table}, {row}, add_wrapping({count}, -{context.variable(statement.grown)}))")
    step = f"{moved} = top_next({order}, {table}, {statement.first}, {statement.last})"
    context.line(step)
    with context.block(f"while {moved} != 0:"):
        context.step()
        for i, variable in enumerate(statement.key):
            context.line(f"{context.variable(variable)} = load({moved}, {i})")
        context.line(f"{context.variable(statement.change)} = load({order}, {TOP + MOVED})")
        context.body(statement.body)
        context.line(step)
