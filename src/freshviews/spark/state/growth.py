"""Checks whether a pipeline may continue with tables and views that changed since its last run.

For example, a table with stored rows may get a new column, but its keys may not change.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.catalog import Catalog, column_named
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.widening import holds, is_as_wide, type_text
from freshviews.catalog.window import with_its_column


def has_same_rows(before: TableDef, now: TableDef) -> bool:
    """True if two definitions of a table differ at most in the values of rows that lack a column."""
    return _of_rows(before) == _of_rows(now)


def _of_rows(table: TableDef) -> TableDef:
    """The part of a definition that affects existing rows."""
    columns = tuple(replace(column, default=None) for column in table.columns)
    return replace(with_its_column(table), columns=columns)


def holds_columns(before: ViewDef, now: ViewDef) -> bool:
    """True if the rows of a view fit its new definition."""
    if [column.name for column in before.columns] != [column.name for column in now.columns]:
        return False
    pairs = zip(before.columns, now.columns, strict=True)
    return all(is_as_wide(column.type, old.type) for old, column in pairs)


def replaced_views(before: Catalog, now: Catalog) -> list[str]:
    """The views of both definitions whose rows may differ: those with another SELECT, and those that read such a
    view."""
    found: set[str] = set()
    for name, view in now.views.items():
        old = before.views.get(name)
        if old is None:
            continue
        differs = (old.blocks, old.combined, old.constants) != (view.blocks, view.combined, view.constants)
        if differs or any(one.lower() in found for one in view.inputs):
            found.add(name.lower())
    # The rows of an internal view belong to its view.
    whole = {name.partition("#")[0] for name in found}
    return [view.name for view in now.views.values() if not view.internal and view.name.lower() in whole]


def refusal(before: TableDef, now: TableDef) -> str | None:
    """The reason for which stored rows of a table do not fit its new definition; None if they do.

    If the rows of a table are stored, columns may be added or dropped, and types may become wider. DEFAULTs may change,
    and NOT NULL may be dropped. The keys of the table may not change. A view may get a new SELECT. The old rows fit the
    new view if each column keeps its name and no type becomes narrower. Otherwise ``io.replaced_sinks`` checks the
    sinks.
    """
    kept = replace(with_its_column(now), columns=before.columns)
    if kept != with_its_column(before):
        return "only its columns may change"
    for column in now.columns:
        old = column_named(before.columns, column.name)
        if old is None and not column.may_be_absent:
            return f"column {column.name} is new and NOT NULL, and stored rows have no value for it; give it a DEFAULT"
        if old is not None and not holds(column, old):
            return f"column {column.name} was {type_text(old)}, and {type_text(column)} does not hold all of its values"
    return None
