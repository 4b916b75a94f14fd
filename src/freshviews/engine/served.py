"""A database as a server of ``wire`` sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from freshviews.asking import Answer
from freshviews.engine.codes.decoding import schema_of
from freshviews.engine.relations import Relations
from freshviews.wire import Relation, Rows


@dataclass(frozen=True)
class ServedDatabase:
    """Each statement is a call of ``Database.sql`` or ``Database.execute``.

    ``relations_now``: the relations of a version, which is held in its block.
    """

    relations_now: Callable[[], AbstractContextManager[Relations]]
    sql: Callable[[str, Sequence[object]], Answer]
    execute: Callable[[str, Sequence[object]], int]
    is_writable: bool

    def relations(self) -> Sequence[Relation]:
        """Stored tables, maintained views and plain views; the rows of trusted tables cannot be read."""
        with self.relations_now() as now:
            tables = [
                Relation(one.name, True, schema_of(one.definition.columns), _key(one.definition))
                for one in now.tables.values()
                if one.is_stored
            ]
            views = [
                Relation(one.name, False, schema_of(one.definition.columns))
                for one in (*now.views.values(), *now.plain.values())
                if not one.definition.internal
            ]
        return [*tables, *views]

    def select(self, sql: str, parameters: Sequence[object]) -> Rows:
        answer = self.sql(sql, parameters)
        return Rows(answer.to_arrow(), answer.version)

    def update(self, sql: str, parameters: Sequence[object]) -> int:
        return self.execute(sql, parameters)
