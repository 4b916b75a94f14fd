"""Serves a database: lists its tables and views, answers SELECTs, and executes statements that change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freshviews.asking import Answer, Parameters
from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import ColumnDef, PlainView, TableDef, ViewDef
from freshviews.errors import SqlError
from freshviews.sql.statements.units import is_question
from freshviews.sql.text.many import as_one, insert_of
from freshviews.sql.text.shape import first_word, is_select
from freshviews.types.columns import arrow_type
from freshviews.wire.served import Relation, Rows


@dataclass
class ServedDatabase:
    """``catalog``: the definitions of now. ``sql``, ``execute``: each statement of a client is one call. ``insert``:
    takes the rows of many INSERTs. ``version``: that of now."""

    catalog: Callable[[], Catalog]
    sql: Callable[[str, Parameters], Answer]
    execute: Callable[[str, Parameters], object]
    insert: Callable[[str, Sequence[Any]], int]
    version: Callable[[], int]
    is_writable: bool
    how_to_write = "start it with db.serve(writable=True) to let clients change rows"

    def relations(self) -> Sequence[Relation]:
        """Stored tables, maintained views and plain views; the rows of trusted tables cannot be read."""
        now = self.catalog()
        found = [_relation(one, one.keys[0] if one.has_primary_key else ()) for one in now.tables.values()
                 if not (one.trusted or one.internal)]  # fmt: skip
        found += [_relation(one) for one in now.views.values() if not one.internal]
        return [*found, *(_relation(one) for one in now.plain.values())]

    def select(self, sql: str, parameters: Sequence[object]) -> Rows:
        answer = self.answer(sql, parameters)
        return Rows(answer.to_arrow(), answer.version)

    def answer(self, sql: str, parameters: Parameters) -> Answer:
        """The rows of a SELECT, or of SHOW, DESCRIBE or EXPLAIN."""
        if is_select(sql):
            return self.sql(sql, parameters)
        if not is_question(sql):
            raise SqlError(
                f"{first_word(sql)} must be the only statement in its text; execute each statement separately"
            )
        found = self.execute(sql, parameters)
        if isinstance(found, Answer):
            return found
        return Answer(pa.table({"plan": str(found).splitlines()}), self.version())

    def update(self, sql: str, many: Sequence[Sequence[object]]) -> int:
        if len(many) == 1:
            found = self.execute(sql, many[0])
        elif (rows := self._rows(sql, many)) is not None:
            self.insert(*rows)
            return len(many)
        else:
            found = as_one(self.execute, [(sql, tuple(one)) for one in many])
        return getattr(found, "rows", -1)

    def _rows(self, sql: str, many: Sequence[Sequence[object]]) -> tuple[str, Sequence[Any]] | None:
        """The table and the rows of many INSERTs, which cost less than SQL; None if they are others, or wrong."""
        insert = insert_of(sql)
        table = None if insert is None else self.catalog().table(insert[0])
        if insert is None or table is None or any(len(one) != insert[2] for one in many):
            return None
        known = {column.name.lower() for column in table.columns}
        named = [name.lower() for name in insert[1]]
        if not named:
            return (table.name, [tuple(one) for one in many]) if insert[2] == len(known) else None
        if len(named) != insert[2] or len({*named}) != len(named) or not known.issuperset(named):
            return None
        return table.name, [dict(zip(insert[1], one, strict=True)) for one in many]


def _relation(definition: TableDef | ViewDef | PlainView, key: tuple[str, ...] = ()) -> Relation:
    schema = pa.schema([_field(column) for column in definition.columns])
    return Relation(definition.name, isinstance(definition, TableDef), schema, key)


def _field(column: ColumnDef) -> pa.Field:
    return pa.field(column.name, arrow_type(column.type), column.nullable)
