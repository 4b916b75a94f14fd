"""Tests whether one type or column can hold every value of another."""

from __future__ import annotations

from freshviews.catalog.definitions import ColumnDef
from freshviews.types import SqlType

_WIDER = (("TINYINT", "SMALLINT", "INT", "BIGINT"), ("FLOAT", "DOUBLE"))


def holds(column: ColumnDef, old: ColumnDef) -> bool:
    """True if a column holds every value of an older one."""
    if old.nullable and not column.nullable:
        return False
    return is_as_wide(column.type, old.type) and (column.length == 0 or 0 < old.length <= column.length)


def is_as_wide(kind: SqlType, old: SqlType) -> bool:
    """True if a type holds every value of another."""
    if kind == old:
        return True
    if kind.is_decimal and old.is_decimal:
        return kind.scale >= old.scale and kind.precision - kind.scale >= old.precision - old.scale
    if kind.is_interval and old.is_interval:
        return kind.is_months == old.is_months and kind.precision <= old.precision and kind.scale >= old.scale
    names = next((names for names in _WIDER if old.name in names), ())
    return kind.name in names[names.index(old.name) :] if names else False


def type_text(column: ColumnDef) -> str:
    """The type of a column as declared."""
    kind = f"VARCHAR({column.length})" if column.length else str(column.type)
    return kind if column.nullable else f"{kind} NOT NULL"
