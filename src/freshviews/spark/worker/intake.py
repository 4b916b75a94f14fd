"""Converts the input of a cell to signed rows, and applies them to the engine of the cell.

A signed row says how often a row is inserted or deleted. A bad row is set aside with the reason, or the whole
micro-batch is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.catalog.clock import is_clock
from freshviews.catalog.definitions import TableDef
from freshviews.errors import BatchError, FreshviewsError
from freshviews.records import dataclass
from freshviews.spark.definition import form_of
from freshviews.spark.state.cell import Cell, changes_schema
from freshviews.spark.worker.rows import (
    PLACE,
    READABLE,
    FilePlace,
    Slots,
    place_of,
    unreadable,
    unreadable_error,
    values,
)
from freshviews.stream import signed_rows

Numbers = npt.NDArray[np.int64]

MOST_BAD = 1000
"""Limit on the rows of one table that a micro-batch may set aside one by one because the engine refused them."""


@dataclass(frozen=True)
class Feed:
    """How the rows of a source table reach one of its tables in the cells: their slots and format.

    ``table``: the name in the cells. ``source``: the name in the script. ``counted``: the cells that count its rows and
    report bad ones, so that each is counted once. ``snapshot``: the input is the whole contents, even if it is empty.
    ``readable``: the reason given for a row that the source could not read.
    """

    table: str
    source: str
    slots: Slots
    changes: str | None
    form_options: dict[str, str]
    set_aside: bool
    snapshot: bool
    counted: frozenset[int]
    readable: str = READABLE


@dataclass
class Intake:
    """Rows for one table of a cell in this micro-batch."""

    feed: Feed
    definition: TableDef
    rows: pa.RecordBatch | None
    dropped: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Rows set aside, each with column, value and reason."""


class Refusal(FreshviewsError):
    """A micro-batch is refused because of a row; ``place`` is that of ``rows.place_of``."""

    def __init__(self, text: str, more: str, place: FilePlace | None) -> None:
        super().__init__(f"{text}{more}")
        self.text = text
        self.more = more
        self.place = place


@dataclass(frozen=True)
class _Signed:
    """Signed rows. ``kept``: the good rows of the input. ``positions``: the row of ``kept`` from which each came (None:
    the same)."""

    rows: pa.RecordBatch
    kept: Numbers
    positions: Numbers | None

    def origin(self, row: int) -> int | None:
        """The input row that a signed row came from; None if it is in no input any more."""
        at = row if self.positions is None else int(self.positions[row])
        return int(self.kept[at]) if at >= 0 else None


def take_in(cell: Cell, intakes: Sequence[Intake], clock: int | None = None) -> dict[str, pa.RecordBatch]:
    """Apply rows to the engine as one batch, which sets the ``clock`` too; return the signed rows of each table.

    If rows may be set aside, a row that the engine refuses is set aside and the rest is tried again. Raises
    FreshviewsError.
    """
    moved = {} if clock is None else _clock_rows(cell, clock)
    while True:
        signed = {t.feed.table: _signed_rows(cell, t) for t in intakes if t.rows is not None or t.feed.snapshot}
        try:
            with cell.database.batch() as batch:
                for name, rows in moved.items():
                    batch.apply(name, rows)
                for name, found in signed.items():
                    if found.rows.num_rows:
                        batch.apply(name, found.rows)
        except BatchError as error:
            _set_aside(error, intakes, signed)
            continue
        return moved | {name: found.rows for name, found in signed.items()}


def _clock_rows(cell: Cell, clock: int) -> dict[str, pa.RecordBatch]:
    """The signed rows that set the clock, for each of the cell's tables of the clock. A table may be behind the others
    if it came with a new view."""
    found = {}
    for name, table in cell.tables.items():
        if is_clock(name):
            schema = changes_schema(table)
            now = pa.array([clock], schema.field(0).type)
            before = cell.database.table(name).to_arrow().column(0).combine_chunks()
            if before != now:
                signs = pa.array([-1] * len(before) + [1], pa.int64())
                found[name] = pa.RecordBatch.from_arrays([pa.concat_arrays([before, now]), signs], schema=schema)
    return found


def signed_of(cell: Cell, table: Intake) -> pa.RecordBatch:
    """The signed rows of a table. Raises Refusal."""
    return _signed_rows(cell, table).rows


def _signed_rows(cell: Cell, table: Intake) -> _Signed:
    """Signed rows of a table, and the rows of the input that they came from."""
    feed, definition = table.feed, table.definition
    found = table.rows
    if found is None:
        schema = changes_schema(definition).remove(len(definition.columns))
        found = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
    for row in unreadable(found):
        if not feed.set_aside:
            raise _refusal_of(unreadable_error(definition.name, found, row, feed.readable), (feed,), found, row)
        table.dropped[row] = {"column": None, "value": None, "reason": feed.readable}
    mask = np.ones(found.num_rows, np.bool_)
    mask[list(table.dropped)] = False
    kept = np.flatnonzero(mask)
    good = values(found) if mask.all() else values(found).take(pa.array(kept))
    form = form_of(feed.changes, feed.form_options, tuple(good.schema.names))
    previous = cell.database.table(definition.name).to_arrow() if feed.snapshot else None
    try:
        signed = signed_rows(
            good,
            definition,
            form,
            lookup=lambda keys: cell.database.table(definition.name).lookup(keys),
            previous=previous,
            set_aside=feed.set_aside,
        )
    except BatchError as error:
        raise _refusal_of(error, (feed,), found, None if error.row is None else int(kept[error.row])) from error
    for bad in signed.bad.to_pylist():
        table.dropped[int(kept[bad["row"]])] = {name: bad[name] for name in ("column", "value", "reason")}
    return _Signed(signed.rows, kept, signed.positions)


def _set_aside(error: BatchError, intakes: Sequence[Intake], signed: Mapping[str, _Signed]) -> None:
    """Drop the rows that an error is about, or raise the user's error."""
    table = next((t for t in intakes if t.feed.table == error.table), None)
    rows: list[int | None] = []
    if table is not None and error.table in signed:
        rows = [signed[error.table].origin(row) for row in error.rows]
    if table is None or table.rows is None:
        raise error
    feeds = [intake.feed for intake in intakes]
    if not rows or None in rows:
        raise _refusal_of(error, feeds, table.rows, None)
    if not table.feed.set_aside:
        raise _refusal_of(error, feeds, table.rows, rows[0])
    # Several rows at fault are found at once.
    if len(rows) == 1 and len(table.dropped) >= MOST_BAD:
        more = f"; {MOST_BAD} rows before it were bad, which is the limit"
        raise _refusal_of(error, feeds, table.rows, rows[0], more)
    for row in rows:
        assert row is not None
        table.dropped[row] = {"column": error.column, "value": None, "reason": _error_text(error, feeds)}


def _refusal_of(
    error: BatchError, feeds: Iterable[Feed], rows: pa.RecordBatch, row: int | None, more: str = ""
) -> Refusal:
    shown = "" if row is None else f"; the row is {values(rows).slice(row, 1).to_pylist()[0]}"
    return Refusal(_error_text(error, feeds), f"{shown}{more}", None if row is None else place_of(rows, row))


def _error_text(error: BatchError, feeds: Iterable[Feed]) -> str:
    """The text of an error, with the names of tables in the script. A foreign key names two tables."""
    text = str(error)
    for feed in sorted(feeds, key=lambda feed: -len(feed.table)):
        if feed.table != feed.source:
            text = text.replace(feed.table, feed.source)
    return text


def bad_rows(table: Intake) -> list[dict[str, Any]]:
    """The rows set aside, in JSON form, each with its place."""
    found = []
    for row, problem in sorted(table.dropped.items(), key=lambda found: found[0]):
        assert table.rows is not None
        given = table.rows.slice(row, 1).to_pylist()[0]
        given = {name: value for name, value in given.items() if name not in PLACE}
        bad = {"table": table.feed.source, "place": place_of(table.rows, row), **problem, "input": given}
        found.append(json.loads(json.dumps(bad, default=str)))
    return found
