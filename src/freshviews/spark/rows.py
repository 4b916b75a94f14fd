"""Rows on their way from Spark to a cell: rows of all tables in one schema, and back.

Tables of one micro-batch go through one shuffle, so their rows share a frame: ``_t`` numbers the table, and a table's
columns lie in slots, which tables share type by type. Rows of different tables so cost no more than the widest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshviews.stream import BadChange

TABLE = "_t"
PLACE = ("_time", "_file", "_at", "_id")
"""Where a row came from: time of the file, its path, where in it, and the row's number there."""
CORRUPT = "_corrupt_record"

Slots = dict[str, str]
"""Slot of each source column of a table."""


def slots_of(tables: Sequence[Mapping[str, str]]) -> list[Slots]:
    """The slots of tables, each given as the Spark type of its source columns by name."""
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


def split(batches: Iterable[pa.RecordBatch], slots: Sequence[Slots]) -> list[pa.RecordBatch | None]:
    """Rows of each table under the names of its source columns, places first; None where it has none."""
    pieces: list[list[pa.RecordBatch]] = [[] for _ in slots]
    for batch in batches:
        numbers = batch.column(TABLE).to_numpy(zero_copy_only=False)
        for number, names in enumerate(slots):
            mask = numbers == number
            if not mask.any():
                continue
            places = [name for name in PLACE if name in batch.schema.names]
            columns = [*(batch.column(name) for name in places), *(batch.column(slot) for slot in names.values())]
            piece = pa.RecordBatch.from_arrays(columns, [*places, *names])
            pieces[number].append(piece if mask.all() else piece.filter(pa.array(mask)))
    return [_ordered(_whole(found)) if found else None for found in pieces]


def _whole(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([b.column(i) for b in batches]) for i in range(batches[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def _ordered(rows: pa.RecordBatch) -> pa.RecordBatch:
    if PLACE[0] not in rows.schema.names:
        return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in PLACE]))


def place_of(rows: pa.RecordBatch, row: int) -> str:
    """``file, row n`` of a row of ``split``, n from 1; nothing where places did not come along."""
    if "_file" not in rows.schema.names:
        return ""
    file = rows.column("_file")[row].as_py()
    if not file:
        return ""
    first = pc.index(rows.column("_file"), pa.scalar(file)).as_py()
    return f"{file}, row {row - first + 1}"


def values(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without places and without what a reader could not make sense of."""
    kept = [name for name in rows.schema.names if name not in PLACE and name != CORRUPT]
    return rows.select(kept)


def unreadable(rows: pa.RecordBatch) -> list[int]:
    """Rows that the reader of the file could not make sense of."""
    if CORRUPT not in rows.schema.names:
        return []
    return np.flatnonzero(rows.column(CORRUPT).is_valid().to_numpy(zero_copy_only=False)).tolist()


def unreadable_error(table: str, rows: pa.RecordBatch, row: int) -> BadChange:
    """The refusal of an unreadable row."""
    return BadChange(table, row, None, rows.column(CORRUPT)[row].as_py(), UNREADABLE)


UNREADABLE = "it is not of the declared columns and types"
