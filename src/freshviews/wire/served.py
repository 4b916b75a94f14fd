"""Defines the interface ``Served``, by which a server reads and changes tables and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from freshviews.errors import FreshviewsError
from freshviews.records import dataclass

SELECT_SECONDS = 60.0
"""Seconds that a SELECT of a client may take."""
LOCKED_SECONDS = 10.0
"""Seconds that a SELECT inside another statement of a client may take: others wait meanwhile."""
RESULT_BYTES = 1 << 30
"""Most bytes of its rows, and of all results that wait to be fetched."""


class RefusedStatement(FreshviewsError):
    """A statement that is not answered here; the message says why and what is."""


@dataclass(frozen=True)
class Relation:
    """A table or view: its columns as Arrow's schema, and the columns of its PRIMARY KEY, if it has one."""

    name: str
    is_table: bool
    schema: pa.Schema
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """The result of a SELECT, and the version that it is read at."""

    table: pa.Table
    version: int


class Served(Protocol):
    """Tables and views that are asked from several threads. Every method raises FreshviewsError alone."""

    @property
    def is_writable(self) -> bool:
        """Whether ``update`` may be called."""

    @property
    def how_to_write(self) -> str:
        """How rows are changed where ``update`` may not be called, for errors."""

    def relations(self) -> Sequence[Relation]:
        """All tables and views that can be read, at one version."""

    def select(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Answer a SELECT at one version."""

    def update(self, sql: str, many: Sequence[Sequence[object]]) -> int:
        """Execute another statement for each of its parameters, as one version; the number of rows that changed, or -1
        where it is not known."""
