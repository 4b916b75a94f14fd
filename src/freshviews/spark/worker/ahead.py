"""Applies rows of insert-only tables in pieces, before all rows of the micro-batch have arrived.

Rows of all other tables are applied last, as one batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

import pyarrow as pa

from freshviews.catalog.definitions import TableDef
from freshviews.catalog.watermark import takes_whole_versions
from freshviews.spark.definition import form_of
from freshviews.spark.state.cell import Cell, Segment
from freshviews.spark.worker.intake import Feed, Intake, signed_of
from freshviews.spark.worker.rows import as_ordered_batch
from freshviews.stream import AppendOnly

PIECE = 50_000
"""Rows of a piece: enough that computing the views' change per piece costs little."""

FeedRows = tuple[int, pa.RecordBatch]
"""The number of a feed (-1: none), and rows of it."""


class Arriving:
    """The rows of a cell, added by one thread and taken by another, which may start again from the first row.

    ``waited``: seconds that the taking thread has waited for rows.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[FeedRows | BaseException | None] = SimpleQueue()
        self._seen: list[FeedRows] = []
        self._end: BaseException | bool = False
        self.waited = 0.0

    def put(self, rows: FeedRows | BaseException | None) -> None:
        """Add rows; None ends them, and an error is raised in the taking thread."""
        self._queue.put(rows)

    def __iter__(self) -> Iterator[FeedRows]:
        yield from list(self._seen)
        while self._end is False:
            start = time.perf_counter()
            found = self._queue.get()
            self.waited += time.perf_counter() - start
            if isinstance(found, tuple):
                self._seen.append(found)
                yield found
            else:
                self._end = found or True
        if isinstance(self._end, BaseException):
            raise self._end

    def discard(self) -> None:
        """Take all remaining rows without storing them."""
        self._seen.clear()
        while self._end is False and isinstance(self._queue.get(), tuple):
            pass
        self._end = True

    def many(self, growing: frozenset[int]) -> bool:
        """Wait until a piece of rows for an insert-only feed is there; False if the rows end first."""
        rows = dict.fromkeys(growing, 0)
        for number, found in self:
            if number in growing:
                rows[number] += len(found)
                if rows[number] >= PIECE:
                    return True
        return False


@dataclass
class Ahead:
    """Applies the rows of a cell's insert-only tables in pieces, to its engine and a segment of its log.

    ``taken``: rows by feed. ``waiting``: rows that the engine has not applied.

    The constraints of an insert-only table concern single rows, so its rows may be applied in pieces. Each piece makes
    a version of the engine, but not of the pipeline. In the end, the changes of views are added up. Rows of other
    tables are applied last, as one batch. If anything fails, the engine is dropped, and all rows are applied again as
    one batch, which reports the error.
    """

    cell: Cell
    segment: Segment
    feeds: Sequence[Feed]
    growing: frozenset[int]
    waiting: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)

    def take(self, number: int, rows: pa.RecordBatch) -> None:
        """Apply rows of a feed, or store them for the end. Raises FreshviewsError if the engine refuses."""
        self.waiting.setdefault(number, []).append(rows)
        if number in self.growing and sum(len(one) for one in self.waiting[number]) >= PIECE:
            feed = self.feeds[number]
            piece = Intake(feed, self.cell.tables[feed.table], as_ordered_batch(self.waiting.pop(number)))
            signed = signed_of(self.cell, piece)
            self.cell.database.apply(feed.table, signed)
            self.segment.add(feed.table, signed)
            self.taken[number] = self.taken.get(number, 0) + len(signed)


def growing_feeds(feeds: Sequence[Feed], tables: dict[str, TableDef]) -> frozenset[int]:
    """Numbers of the feeds whose rows may be applied in pieces: inserts into a table without keys and without bad rows
    set aside. Rows of a window must be sorted first, and a watermark moves once per version."""
    return frozenset(number for number, feed in enumerate(feeds) if _only_grows(feed, tables[feed.table]))


def _only_grows(feed: Feed, table: TableDef) -> bool:
    if feed.set_aside or feed.snapshot or table.keys or table.foreign_keys or takes_whole_versions(table):
        return False
    return isinstance(form_of(feed.changes, feed.form_options, tuple(feed.slots)), AppendOnly)
