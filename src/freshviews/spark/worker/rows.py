"""Converts rows of all tables to one schema, so that a single shuffle of Spark sends them to the cells.

After the shuffle, the rows are grouped by cell and table, and converted back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshviews.stream import BadChange

TABLE = "_t"
TO = "_to"
PLACE = ("_time", "_file", "_at", "_id")
"""Where a row came from: time of the file, its path, the offset in it, and the row's number there."""
CORRUPT = "_corrupt_record"

Slots = dict[str, str]
"""The slot of each source column of a table."""


def slots_of(tables: Sequence[Mapping[str, str]]) -> list[Slots]:
    """The slots of tables, each given as the Spark type of its source columns by name.

    All tables of a micro-batch go through one shuffle, in one frame. In the frame, ``_t`` is the number of a row's
    table. Columns of different tables share a column of the frame, a *slot*, if their types are equal. So the frame has
    few columns. For the shuffle, ``_to`` replaces ``_t``. This number stands for a pair: the cell of the row, and the
    table of the cell that gets the row (``intake.Feed``).
    """
    found: list[Slots] = []
    numbers: dict[str, int] = {}
    for columns in tables:
        used: dict[str, int] = {}
        slots: Slots = {}
        for name, kind in columns.items():
            number = numbers.setdefault(kind, len(numbers))
            slots[name] = f"s{number}_{used.get(kind, 0)}"
            used[kind] = used.get(kind, 0) + 1
        found.append(slots)
    return found


def cell_and_feed(cell: str, feed: str | int, feeds: int) -> str:
    """``_to`` of a cell and a feed, as Spark expressions; there are ``feeds`` feeds. A row of the feed -1 only names
    its cell."""
    return f"CAST(({cell}) * {feeds + 1} + {feed} + 1 AS INT)"


def cell_of(feeds: int) -> str:
    """The Spark expression of the cell of a row, by its ``_to``."""
    return f"CAST({TO} DIV {feeds + 1} AS INT)"


def groups(batch: pa.RecordBatch, feeds: int) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Group the rows of a batch by cell and feed (-1: none); the order within a group is kept."""
    if batch.num_rows == 0:
        return
    codes = batch.column(TO).to_numpy(zero_copy_only=False)
    if (codes == codes[0]).all():
        taken, bounds = batch, [0, len(codes)]
    else:
        # Sixteen-bit values are sorted by radix.
        order = np.argsort(codes.astype(np.int16) if codes.max() < 2**15 else codes, kind="stable")
        taken, codes = batch.take(pa.array(order)), codes[order]
        bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    for start, end in pairwise(bounds):
        cell, number = divmod(int(codes[start]), feeds + 1)
        yield cell, number - 1, taken.slice(start, end - start)


def named(rows: pa.RecordBatch, slots: Slots) -> pa.RecordBatch:
    """Rows of a feed under the names of its source columns, places first."""
    places = [name for name in PLACE if name in rows.schema.names]
    columns = [*(rows.column(name) for name in places), *(rows.column(slot) for slot in slots.values())]
    return pa.RecordBatch.from_arrays(columns, [*places, *slots])


def as_ordered_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Rows of a feed as one batch, in the order of their places if they have them."""
    if len(batches) == 1:
        return _ordered(batches[0])
    columns = [pa.concat_arrays([b.column(i) for b in batches]) for i in range(batches[0].num_columns)]
    return _ordered(pa.RecordBatch.from_arrays(columns, schema=batches[0].schema))


def _ordered(rows: pa.RecordBatch) -> pa.RecordBatch:
    if PLACE[0] not in rows.schema.names:
        return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in PLACE]))


FilePlace = tuple[str, int, int]
"""A row's file, the offset where its reader began, and its number, ascending within one reader."""


def place_of(rows: pa.RecordBatch, row: int) -> FilePlace | None:
    """Where a row of ``named`` came from; None if places were not sent, or the row is from no file."""
    if PLACE[0] not in rows.schema.names:
        return None
    _, file, at, number = (rows.column(name)[row].as_py() for name in PLACE)
    return (file, at, number) if file else None


def values(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without places and without the reader's column of unreadable text."""
    kept = [name for name in rows.schema.names if name not in PLACE and name != CORRUPT]
    return rows.select(kept)


def unreadable(rows: pa.RecordBatch) -> list[int]:
    """Rows that the file reader could not parse."""
    if CORRUPT not in rows.schema.names:
        return []
    return np.flatnonzero(rows.column(CORRUPT).is_valid().to_numpy(zero_copy_only=False)).tolist()


def unreadable_error(table: str, rows: pa.RecordBatch, row: int, reason: str) -> BadChange:
    """The refusal of an unreadable row."""
    return BadChange(table, row, None, rows.column(CORRUPT)[row].as_py(), reason)


READABLE = "it does not have the declared columns and types"
