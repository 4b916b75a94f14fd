"""Converts an ordered list of events to signed rows. An event is a row with an action, such as REPLACE.

::

    event    row        action          signed rows
    0        (1, a)     REPLACE         -1 of the stored row with key 1; no +1, because event 2 replaces (1, a)
    1        (2, b)     INSERT          +1 (2, b)
    2        (1, c)     REPLACE         +1 (1, c)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.records import dataclass
from freshviews.stream.keys import key_numbers
from freshviews.stream.problems import Positions
from freshviews.stream.words import DELETE, INSERT, REMOVE, REPLACE, Actions
from freshviews.types.columns import arrow_type

Lookup = Callable[[pa.RecordBatch], pa.RecordBatch | pa.Table]
"""Given distinct primary keys, returns the stored rows that have them: the table's columns, at most one row per key, in
any order. Keys without a stored row are left out."""

Multiplicities = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Events:
    """Rows in order. ``arrays``: the table's columns. ``positions``: the input row of each."""

    arrays: tuple[pa.Array, ...]
    actions: Actions
    positions: Positions

    def __len__(self) -> int:
        return len(self.actions)

    def select_events(self, rows: npt.NDArray[np.int64]) -> Events:
        """Select these events, in this order."""
        indices = pa.array(rows)
        arrays = tuple(array.take(indices) for array in self.arrays)
        return Events(arrays, self.actions[rows], self.positions[rows])


def primary_key(table: TableDef) -> tuple[int, ...]:
    """Positions of the primary key's columns; empty if the table has no primary key."""
    if not table.has_primary_key:
        return ()
    names = {name.lower() for name in table.keys[0]}
    return tuple(i for i, column in enumerate(table.columns) if column.name.lower() in names)


def resolved(
    events: Events, table: TableDef, lookup: Lookup | None
) -> tuple[tuple[pa.Array, ...], Multiplicities, Positions]:
    """Resolve events to signed rows: columns, multiplicities, and input positions; looked-up rows come first.

    ``lookup`` is called at most once, for keys whose stored row may have to be deleted.

    The stored row of a key is looked up only if the first event of the key is a REPLACE or REMOVE. INSERT and DELETE
    name whole rows; the constraints of the table decide whether they are valid.
    """
    keyed = np.abs(events.actions) == REPLACE
    if not keyed.any():
        return events.arrays, events.actions.astype(np.int64), events.positions
    places = primary_key(table)
    numbers = key_numbers([table.columns[i] for i in places], [events.arrays[i] for i in places])
    order = np.argsort(numbers, kind="stable")
    same = numbers[order[1:]] == numbers[order[:-1]]
    first = np.ones(len(events), np.bool_)
    first[order[1:]] = ~same
    taken_out = np.zeros(len(events), np.bool_)
    taken_out[order[:-1]] = same & keyed[order[1:]]
    coming = (events.actions == INSERT) | (events.actions == REPLACE)
    kept = np.flatnonzero((coming & ~taken_out) | (events.actions == DELETE))
    old, of = _looked_up(events.select_events(np.flatnonzero(first & keyed)), table, lookup)
    new = events.select_events(kept)
    signs = np.where(new.actions == DELETE, -1, 1)
    arrays = tuple(pa.concat_arrays([gone, come]) for gone, come in zip(old, new.arrays, strict=True))
    multiplicities = np.concatenate([np.full(len(of), -1, np.int64), signs.astype(np.int64)])
    return arrays, multiplicities, np.concatenate([of, new.positions])


def without_row(events: Events, table: TableDef, deleted: Positions) -> Positions:
    """The input rows of events that remove a key without a row at that point. ``deleted``: the input rows by which
    ``resolved`` deletes rows; the input rows of the events are distinct."""
    removed = events.actions == REMOVE
    if not removed.any():
        return np.empty(0, np.int64)
    places = primary_key(table)
    numbers = key_numbers([table.columns[i] for i in places], [events.arrays[i] for i in places])
    order = np.argsort(numbers, kind="stable")
    same = numbers[order[1:]] == numbers[order[:-1]]
    coming = (events.actions == INSERT) | (events.actions == REPLACE)
    found = np.isin(events.positions, deleted)
    found[order[1:]] |= same & coming[order[:-1]]
    missed: Positions = events.positions[removed & ~found]
    return missed


def _looked_up(events: Events, table: TableDef, lookup: Lookup | None) -> tuple[tuple[pa.Array, ...], Positions]:
    """The stored rows of the events' keys, which are distinct, and the position of each key's event."""
    places = primary_key(table)
    none = tuple(pa.nulls(0, arrow_type(column.type)) for column in table.columns)
    if not len(events):
        return none, np.empty(0, np.int64)
    if lookup is None:
        raise TypeError(
            f"table {table.name}: changes by key need lookup=, a function that returns the stored rows of keys"
        )
    keys = [events.arrays[i] for i in places]
    names = [table.columns[i].name for i in places]
    found = as_batch(lookup(pa.RecordBatch.from_arrays(keys, names)))
    rows = tuple(_stored(table, column, found) for column in table.columns)
    if not found.num_rows:
        return none, np.empty(0, np.int64)
    columns = [table.columns[i] for i in places]
    both = key_numbers(columns, [pa.concat_arrays([key, rows[i]]) for key, i in zip(keys, places, strict=True)])
    # Sorted by key, each row found stands right after its event, which is the first of the key.
    order = np.argsort(both, kind="stable")
    at = np.flatnonzero(order >= len(events))
    before = order[at - 1]
    if at[0] == 0 or (before >= len(events)).any() or (both[before] != both[order[at]]).any():
        raise ValueError(f"the lookup of table {table.name} returned a key twice, or a key that was not requested")
    positions = np.empty(len(at), np.int64)
    positions[order[at] - len(events)] = events.positions[before]
    return rows, positions


def _stored(table: TableDef, column: ColumnDef, found: pa.RecordBatch) -> pa.Array:
    for name, array in zip(found.schema.names, found.columns, strict=True):
        if name.lower() == column.name.lower():
            return array.cast(arrow_type(column.type))
    raise ValueError(f"the lookup of table {table.name} returned no column {column.name}, only {found.schema.names}")


def as_batch(rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """The rows as one batch. A column may hold up to 2 GB of text."""
    if isinstance(rows, pa.RecordBatch):
        return rows
    if not isinstance(rows, pa.Table):
        raise TypeError(f"rows must be a pyarrow RecordBatch or Table, not {type(rows).__name__}")
    parts = [[chunk for chunk in column.chunks if len(chunk)] for column in rows.columns]
    arrays = [pa.concat_arrays(p) if p else pa.nulls(0, c.type) for p, c in zip(parts, rows.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
