"""Writes two statements: Move puts a row into a subset or takes it out, and Tally changes a row's counter."""

from __future__ import annotations

from freshviews.codegen.layout import row_layout
from freshviews.codegen.writing.context import Context
from freshviews.program.statements import Event, Move, Tally


def write_tally(context: Context, statement: Tally) -> None:
    """Add to the tally of a row; the body runs where the tally is full."""
    row = context.row(statement.alias)
    place = row_layout(context.view_of(statement.alias)).offsets[statement.component]
    context.step()
    before = f"load({row}, {place})"
    test = f"{before} == {statement.full}"
    if statement.amount < 0 and statement.body:
        before = context.fresh(f"{row}_{statement.component}")
        context.line(f"{before} = load({row}, {place})")
        test = f"{before} == {statement.full}"
    if statement.amount:
        context.line(f"store({row}, {place}, {before} + {statement.amount})")
    if statement.body or not statement.amount:
        with context.block(f"if {test}:"):
            context.body(statement.body)


def write_move(context: Context, statement: Move) -> None:
    """Insert a row into the indexes of a subset, then run the events; or run them, then remove the row."""
    view, row = context.view_of(statement.alias), context.row(statement.alias)
    table = context.table(view.name)
    subset = next(s for s in view.subsets if s.name == statement.subset)
    places = {bound: view.place_of_index(bound, subset.name) for bound in subset.indexes}
    context.step()
    if statement.sign < 0:
        for event in statement.events:
            alone = context.fresh(f"{row}_alone")
            context.line(f"{alone} = last_of_slice({table}, {places[event.bound]}, {row})")
            _write_event(context, event, alone)
        for place in places.values():
            context.line(f"leave_slice({table}, {place}, {row})")
        return
    flags = {event.bound: context.fresh(f"{row}_alone") for event in statement.events}
    for bound, place in places.items():
        flag = f"{flags[bound]} = " if bound in flags else ""
        context.line(f"{flag}enter_slice({table}, {place}, {row})")
    for event in statement.events:
        _write_event(context, event, flags[event.bound])


def _write_event(context: Context, event: Event, alone: str) -> None:
    if event.alone:
        with context.block(f"if {alone} == 1:"):
            context.body(event.alone)
    if event.others:
        with context.block("else:" if event.alone else f"if {alone} == 0:"):
            context.body(event.others)
