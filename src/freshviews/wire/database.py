"""A database as a server sees it: functions that read its definitions, answer a SELECT and execute a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freshviews.asking import Answer
from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import ColumnDef, PlainView, TableDef, ViewDef
from freshviews.sql.text.many import script_of
from freshviews.types.columns import arrow_type
from freshviews.wire.served import Relation, Rows


@dataclass
class ServedDatabase:
    """``catalog``: the definitions of now. ``sql``, ``execute``: each statement of a client is one call."""

    catalog: Callable[[], Catalog]
    sql: Callable[[str, Sequence[object]], Answer]
    execute: Callable[[str, Sequence[object]], int]
    is_writable: bool

    def relations(self) -> Sequence[Relation]:
        """Stored tables, maintained views and plain views; the rows of trusted tables cannot be read."""
        now = self.catalog()
        found = [_relation(one, one.keys[0] if one.has_primary_key else ()) for one in now.tables.values()
                 if not one.trusted]  # fmt: skip
        found += [_relation(one) for one in now.views.values() if not one.internal]
        return [*found, *(_relation(one) for one in now.plain.values())]

    def select(self, sql: str, parameters: Sequence[object]) -> Rows:
        answer = self.sql(sql, parameters)
        return Rows(answer.to_arrow(), answer.version)

    def update(self, sql: str, many: Sequence[Sequence[object]]) -> int:
        if len(many) == 1:
            return self.execute(sql, many[0])
        return self.execute(*script_of([(sql, tuple(one)) for one in many]))


def _relation(definition: TableDef | ViewDef | PlainView, key: tuple[str, ...] = ()) -> Relation:
    schema = pa.schema([_field(column) for column in definition.columns])
    return Relation(definition.name, isinstance(definition, TableDef), schema, key)


def _field(column: ColumnDef) -> pa.Field:
    return pa.field(column.name, arrow_type(column.type), column.nullable)
