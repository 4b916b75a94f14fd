"""Tables of Arrow behind a server, which DuckDB asks: a ``Served`` without an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa

from freshviews.errors import SqlError
from freshviews.wire import FlightServer, Relation, Rows

TOKEN = "a-token-of-the-tests"
BY_PART = pa.table({"part": ["bolt", "nut"], "qty": pa.array([3, 5], pa.int32())})


class Kept:
    """A view and a table. ``updates``: what was executed."""

    def __init__(self, is_writable: bool = False, view: pa.Table = BY_PART) -> None:
        self.is_writable = is_writable
        self.how_to_write = "rows are changed elsewhere"
        self.view = view
        self.updates: list[tuple[str, tuple[object, ...]]] = []

    def relations(self) -> Sequence[Relation]:
        items = pa.schema([pa.field("part", pa.string(), False), pa.field("qty", pa.int32())])
        return [Relation("items", True, items, ("part",)), Relation("by_part", False, self.view.schema)]

    def select(self, sql: str, parameters: Sequence[object]) -> Rows:
        with closing(duckdb.connect()) as connection:
            connection.register("by_part", self.view)
            try:
                found = connection.sql(sql, params=list(parameters)).to_arrow_table()
            except duckdb.Error as error:
                raise SqlError(str(error)) from None
        return Rows(found, 7)

    def update(self, sql: str, many: Sequence[Sequence[object]]) -> int:
        self.updates += [(sql, tuple(one)) for one in many]
        return len(many)


@contextmanager
def serving(served: Kept | None = None, token: str | None = TOKEN) -> Iterator[FlightServer]:
    server = FlightServer(served or Kept(), "127.0.0.1", 0, token)
    try:
        yield server
    finally:
        server.close()
