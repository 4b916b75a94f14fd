"""What may change of a table whose rows are stored: columns are added or left out, types become wider, and a column
that was NOT NULL may have NULLs. Its keys stay."""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.catalog import column_named
from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.types import SqlType

_WIDER = (("TINYINT", "SMALLINT", "INT", "BIGINT"), ("FLOAT", "DOUBLE"))


def refusal(before: TableDef, now: TableDef) -> str | None:
    """Why stored rows of a table cannot be rows of what it is now; None where they can."""
    kept = replace(now, columns=before.columns)
    if kept != before:
        return "only its columns may change"
    for column in now.columns:
        old = column_named(before.columns, column.name)
        if old is None and not column.nullable:
            return f"column {column.name} is new and NOT NULL, and stored rows have no value for it"
        if old is not None and not _holds(column, old):
            return f"column {column.name} was {_said(old)}, and {_said(column)} does not hold all of its values"
    return None


def _holds(column: ColumnDef, old: ColumnDef) -> bool:
    """Whether a column holds every value of an older one."""
    if old.nullable and not column.nullable:
        return False
    return _is_as_wide(column.type, old.type) and (column.length == 0 or 0 < old.length <= column.length)


def _is_as_wide(kind: SqlType, old: SqlType) -> bool:
    if kind == old:
        return True
    if kind.is_decimal and old.is_decimal:
        return kind.scale >= old.scale and kind.precision - kind.scale >= old.precision - old.scale
    names = next((names for names in _WIDER if old.name in names), ())
    return kind.name in names[names.index(old.name) :] if names else False


def _said(column: ColumnDef) -> str:
    kind = f"VARCHAR({column.length})" if column.length else str(column.type)
    return kind if column.nullable else f"{kind} NOT NULL"
