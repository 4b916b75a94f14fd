"""Writes two statements: Add, which changes a row of a view, and Clear, which empties a scratch view."""

from __future__ import annotations

from freshviews.codegen.layout import row_layout, words_of
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.doubles import add_reals
from freshviews.codegen.writing.payloads.elements import add_element
from freshviews.codegen.writing.payloads.integers import add_integer, integer, zero_test
from freshviews.program.payload import ZERO
from freshviews.program.statements import Add, Body, is_always
from freshviews.program.views import View


def write_add(context: Context, statement: Add) -> None:
    """An Add finds or creates the row of a key and adds to its payload. Then it updates ordered indexes. It runs the
    body ``appear``, ``vanish`` or ``stay``, by what happened to the row, and removes a row with payload zero. In a
    scratch view of an evaluation (``kernel.hash.sum_table``), an Add only adds to the payload.
    """
    view = context.views[statement.view]
    if view.name in context.scratch:
        _write_scratch_add(context, statement, view)
        return
    row = write_target(context, view, statement.key)
    if statement.alias:
        context = context.with_alias(statement.alias, view)
        context.line(f"{context.row(statement.alias)} = {row}")
    watched = bool(statement.appear or statement.vanish or statement.stay or view.ordered)
    before = context.fresh(f"{row}_was_absent")
    if watched:
        context.line(f"{before} = {zero_test(context, view, row)}")
    _write_payload(context, statement, view, row)
    if view.name in context.appends:
        appends = context.appends[view.name]
        with context.block(f"if {appends} != 0:"):
            context.line(f"{appends} = hold({context.table(view.name)}, {row}, status)")
        with context.block("else:"):
            _note_large(context, view, row)
            write_removal(context, view, row)
        return
    _note_large(context, view, row)
    if not watched:
        write_removal(context, view, row)
    elif is_always(statement.appear, statement.vanish, statement.stay):
        _write_once(context, view, row, before, statement.stay)
    else:
        _write_branches(context, statement, view, row, before)


def write_target(context: Context, view: View, key: tuple[str, ...]) -> str:
    """Find or make the row to change; return its variable."""
    row, table = context.target(view.name), context.table(view.name)
    context.step()
    made = context.by_key("upsert", table, key)
    if view.name in context.appends:
        made = f"append_row({table}, {context.key(key)}) if {context.appends[view.name]} != 0 else {made}"
    context.line(f"{row} = {made}")
    if view.journal:
        context.line(f"touch({table}, {row})")
    return row


def write_removal(context: Context, view: View, row: str) -> None:
    """Remove a row whose payload has become zero."""
    with context.block(f"if {zero_test(context, view, row)}:"):
        _remove(context, view, row)


def _remove(context: Context, view: View, row: str) -> None:
    remove = "settle" if view.journal else "remove_row"
    context.line(f"{remove}({context.table(view.name)}, {row})")


def _write_payload(context: Context, statement: Add, view: View, row: str) -> None:
    offsets = row_layout(view).offsets
    given = zip(statement.components, statement.payload, strict=True)
    additions = [(view.component(name), offsets[name], monomial) for name, monomial in given if monomial != ZERO]
    for component, offset, monomial in add_reals(context, row, additions):
        if words_of(component) > 1:
            add_element(context, component.ring, f"{row} + {8 * offset}", monomial)
        else:
            add_integer(context, row, offset, integer(context, monomial))


def _note_large(context: Context, view: View, row: str) -> None:
    """Report a row with a large payload to its table, which then accepts no more deferred rows."""
    if view.name in context.pending:
        context.line(f"note_large({context.table(view.name)}, {row})")


def _write_branches(context: Context, statement: Add, view: View, row: str, before: str) -> None:
    """The bodies that run if the row vanished, appeared or stayed."""
    with context.block(f"if {zero_test(context, view, row)}:"):
        with context.block(f"if not {before}:"):
            _write_order(context, view, row, "remove", statement.key)
            context.body(statement.vanish)
        _remove(context, view, row)
    if statement.appear or view.ordered:
        with context.block(f"elif {before}:"):
            _write_order(context, view, row, "insert", statement.key)
            context.body(statement.appear)
    if statement.stay or view.orders_payloads or view.running is not None:
        with context.block(f"elif not {before}:"):
            if view.running is not None:
                _write_order(context, view, row, "change", statement.key)
            _write_sums(context, view, row)
            context.body(statement.stay)


def _write_once(context: Context, view: View, row: str, before: str, body: Body) -> None:
    """The body, if it is the same for a row that appeared, vanished or stayed, written once."""
    after = context.fresh(f"{row}_is_absent")
    context.line(f"{after} = {zero_test(context, view, row)}")
    if view.ordered:
        with context.block(f"if {after} and not {before}:"):
            _write_order(context, view, row, "remove", view.key)
        with context.block(f"if {before} and not {after}:"):
            _write_order(context, view, row, "insert", view.key)
    if view.orders_payloads:
        with context.block(f"if not {before} and not {after}:"):
            _write_sums(context, view, row)
    with context.block(f"if not ({before} and {after}):"):
        context.body(body)
    with context.block(f"if {after}:"):
        _remove(context, view, row)


def _write_order(context: Context, view: View, row: str, action: str, key: tuple[str, ...]) -> None:
    """Insert the row with a key into the ordered index of its view, remove it, or, for a running view, note its change;
    nothing where the view has none."""
    table = context.table(view.name)
    if view.running is not None:
        arguments = f"load(load({table}, ORDERED_LIST), 0), {table}, {row}"
        if action == "insert":
            bound = view.indexes[0]
            group = context.by_key("slice_of", context.index(view.name, bound), tuple(key[i] for i in bound))
            arguments += f", {group}"
        context.line(f"threshold_{action}({arguments})")
    elif view.ordered:
        place = _place(context, view, row)
        context.line(f"{'placed' if view.placed else 'ordered'}_{action}({place})")


def _write_sums(context: Context, view: View, row: str) -> None:
    """Bring subtrees up to date with the payload of a row that stays; nothing where they depend on keys alone."""
    if view.orders_payloads:
        context.line(f"{'placed' if view.placed else 'ordered'}_update({_place(context, view, row)})")


def _place(context: Context, view: View, row: str) -> str:
    """The row's place in the order of its view, as arguments."""
    table = context.table(view.name)
    return f"load(load({table}, ORDERED_LIST), 0), {table}, row_number({table}, {row})"


def _write_scratch_add(context: Context, statement: Add, view: View) -> None:
    context.step()
    row = context.target(view.name)
    context.line(f"{row} = sum_row({context.table(view.name)}, {context.key(statement.key)})")
    _write_payload(context, statement, view, row)
