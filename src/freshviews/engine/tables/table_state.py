"""Holds what an open database has of one base table: its definition, its stored rows and its readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from freshviews.catalog.definitions import TableDef
from freshviews.catalog.watermark import Watermark, watermark_of
from freshviews.catalog.window import PROPERTY
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.decoding import Decoder
from freshviews.engine.codes.encoding import TableEncoder
from freshviews.engine.codes.key_codes import OneKey
from freshviews.engine.reading import Readers
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.tables.foreign_keys import Link
from freshviews.engine.tables.window_rows import WindowRows
from freshviews.types import NULL


@dataclass(eq=False)
class TableState:
    """A base table. ``number`` counts the tables ever made, so that a name used again is another table."""

    definition: TableDef
    number: int
    encoder: TableEncoder
    decoder: Decoder
    stored: BaseTable | None
    """The stored rows; None if the table is trusted."""
    foreign: tuple[Link, ...] = ()
    """Foreign keys of this table."""
    links: tuple[Link, ...] = ()
    """Foreign keys of this table and of others that refer to it."""
    had_rows: bool = False
    """Whether rows were inserted or deleted before the database was opened."""
    readers: Readers = field(default_factory=Readers)
    counted: Codes = field(default_factory=lambda: np.zeros(1, np.int64))
    """One word: the number of updates."""
    seconds: float = 0.0
    pace: float = 0.0
    """Seconds per row that storing the last batch of many rows took, if there are threads."""
    closed: bool = False
    held: WindowRows | None = None
    """The rows in the table's window, made by ``freshviews.engine.tables.window``."""
    latest: int = NULL
    """The code of the latest time of a table with a watermark; NULL before the first one."""
    late: int = 0
    """The number of late rows that were dropped since the database was opened."""
    one_key: OneKey | None = None
    """What makes codes of one key, made by ``freshviews.engine.commit.by_key``."""
    changes_of: ClassVar[str] = "table"
    """The word for it in errors, before its name."""

    @property
    def updates(self) -> int:
        """The number of rows inserted or deleted."""
        return int(self.counted[0])

    @property
    def written(self) -> bool:
        """Whether any row was ever inserted or deleted."""
        return self.had_rows or self.updates > 0

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def has_window(self) -> bool:
        """Whether the table has a window; see ``freshviews.engine.tables.window``."""
        return PROPERTY in dict(self.definition.properties)

    @cached_property
    def watermark(self) -> Watermark | None:
        """The watermark of the table, None if it has none; see ``freshviews.engine.tables.watermark``."""
        return watermark_of(self.definition)

    @cached_property
    def follows_time(self) -> bool:
        """Whether the table has a watermark or a window, for which a batch needs every column."""
        return self.watermark is not None or self.has_window

    @property
    def is_stored(self) -> bool:
        """Whether the rows can be read: those of a trusted table are not stored."""
        return self.stored is not None

    def batches(self, rows: int) -> Iterator[CodeBatch]:
        """The stored rows with multiplicities."""
        assert self.stored is not None
        return self.stored.batches(rows)

    @property
    def bytes(self) -> int:
        """Bytes of the stored rows, and of those that a window holds."""
        stored = 0 if self.stored is None else self.stored.bytes
        return stored + (0 if self.held is None else self.held.rows.nbytes)

    def take_over(self, other: TableState) -> None:
        """Swap definition and rows with a version of this table that has other columns."""
        for name in ("definition", "encoder", "decoder", "stored", "foreign", "held", "one_key"):
            mine = getattr(self, name)
            setattr(self, name, getattr(other, name))
            setattr(other, name, mine)

    def stats(self) -> dict[str, Any]:
        stored = self.stored
        return {
            "rows": None if stored is None else stored.rows,
            "bytes": self.bytes,
            "updates": self.updates,
            "seconds": self.seconds,
        }

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.stored is not None:
                self.stored.close()
