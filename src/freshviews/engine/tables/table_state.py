"""What the engine holds of a base table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakSet

from freshviews.catalog.definitions import TableDef
from freshviews.catalog.window import PROPERTY
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.decoding import Decoder
from freshviews.engine.codes.encoding import TableEncoder
from freshviews.engine.reading import Reader
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.tables.foreign_keys import Link
from freshviews.engine.tables.window_rows import WindowRows


@dataclass(eq=False)
class TableState:
    """A base table. ``number`` counts the tables ever made, so that a name used again is another table."""

    definition: TableDef
    number: int
    encoder: TableEncoder
    decoder: Decoder
    stored: BaseTable | None
    """None where the table is trusted."""
    foreign: tuple[Link, ...] = ()
    """Foreign keys of this table."""
    links: tuple[Link, ...] = ()
    """Foreign keys of this table and of others that refer to it."""
    written: bool = False
    """Whether any row was ever inserted or deleted."""
    readers: WeakSet[Reader] = field(default_factory=WeakSet)
    updates: int = 0
    seconds: float = 0.0
    closed: bool = False
    held: WindowRows | None = None
    """The rows in the table's window; made by ``freshviews.engine.tables.window``."""
    changes_of: ClassVar[str] = "table"
    """What an error calls it, before its name."""

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def has_window(self) -> bool:
        """Whether the table has a window; see ``freshviews.engine.tables.window``."""
        return PROPERTY in dict(self.definition.properties)

    @property
    def is_stored(self) -> bool:
        """Whether the rows can be read: those of a trusted table are not stored."""
        return self.stored is not None

    def batches(self, rows: int) -> Iterator[CodeBatch]:
        """The stored rows with multiplicities."""
        assert self.stored is not None
        return self.stored.batches(rows)

    def stats(self) -> dict[str, Any]:
        stored = self.stored
        return {
            "rows": None if stored is None else stored.rows,
            "bytes": 0 if stored is None else stored.bytes,
            "updates": self.updates,
            "seconds": self.seconds,
        }

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.stored is not None:
                self.stored.close()
