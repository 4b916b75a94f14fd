"""Rows that enter and leave the subsets of a view, and the words that count what they wait for, as Python source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.codegen.layout import row_layout
from freshviews.program.statements import Enter, Event, Leave, Tally
from freshviews.program.views import View

if TYPE_CHECKING:
    from freshviews.codegen.writing.statements import StatementWriter


def write_tally(writer: StatementWriter, statement: Tally) -> None:
    """A word of a row counts; the body runs where it is full."""
    view = writer.aliases[statement.alias]
    assert isinstance(view, View)
    row, place = writer.row(statement.alias), row_layout(view).offsets[statement.component]
    writer.need("load", "store")
    writer.step()
    test = f"load({row}, {place}) == {statement.full}"
    if statement.amount == 0:
        with writer.writer.block(f"if {test}:"):
            writer.body(statement.body)
        return
    before = f"load({row}, {place})"
    if statement.amount < 0 and statement.body:
        before = writer.names.fresh(f"{row}_{statement.component}")
        writer.writer.line(f"{before} = load({row}, {place})")
        test = f"{before} == {statement.full}"
    writer.writer.line(f"store({row}, {place}, {before} + {statement.amount})")
    if statement.body:
        with writer.writer.block(f"if {test}:"):
            writer.body(statement.body)


def write_enter(writer: StatementWriter, statement: Enter) -> None:
    """The row is entered into the subset's indexes; then the events."""
    table, row, places = _subset(writer, statement)
    writer.need("enter_slice")
    writer.step()
    alone = {event.bound: writer.names.fresh(f"{row}_alone") for event in statement.events}
    for bound, place in places.items():
        flag = f"{alone[bound]} = " if bound in alone else ""
        writer.writer.line(f"{flag}enter_slice({table}, {place}, {row})")
    for event in statement.events:
        _event(writer, event, alone[event.bound])


def write_leave(writer: StatementWriter, statement: Leave) -> None:
    """The events; then the row is taken out of the subset's indexes."""
    table, row, places = _subset(writer, statement)
    writer.need("leave_slice")
    writer.step()
    for event in statement.events:
        writer.need("last_of_slice")
        alone = writer.names.fresh(f"{row}_alone")
        writer.writer.line(f"{alone} = last_of_slice({table}, {places[event.bound]}, {row})")
        _event(writer, event, alone)
    for place in places.values():
        writer.writer.line(f"leave_slice({table}, {place}, {row})")


def _subset(writer: StatementWriter, statement: Enter | Leave) -> tuple[str, str, dict[tuple[int, ...], int]]:
    """Table and row that a statement is about, and the places of the subset's indexes."""
    view = writer.aliases[statement.alias]
    assert isinstance(view, View)
    subset = next(s for s in view.subsets if s.name == statement.subset)
    places = {bound: view.place_of_index(bound, subset.name) for bound in subset.indexes}
    return writer.table(view.name), writer.row(statement.alias), places


def _event(writer: StatementWriter, event: Event, alone: str) -> None:
    if event.alone:
        with writer.writer.block(f"if {alone} == 1:"):
            writer.body(event.alone)
    if event.others:
        with writer.writer.block("else:" if event.alone else f"if {alone} == 0:"):
            writer.body(event.others)
