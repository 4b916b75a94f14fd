"""What runs in a Python worker of an executor: the rows of a micro-batch go through the engine of their cell.

Everything is written under fresh names, and nothing counts before the manifest names it; so a try that is
killed, repeated or thrown away leaves nothing but files that are collected later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshviews.engine.change import Change
from freshviews.engine.encoding import MULTIPLICITY
from freshviews.errors import BatchError, FreshviewsError
from freshviews.query.block import TableDef
from freshviews.spark.arrow_files import write_arrow, write_bytes
from freshviews.spark.definition import form_of, tables_of
from freshviews.spark.rows import PLACE, UNREADABLE, Slots, place_of, split, unreadable, unreadable_error, values
from freshviews.spark.state import Cell, Entry, appended, changes_schema, keep, loaded, new_token
from freshviews.spark.steps import reach
from freshviews.stream import signed_rows
from freshviews.stream.events import primary_key

MOST_BAD = 1000
"""Rows of one table that a micro-batch may set aside one by one, because the engine refused them."""

RESULT = pa.schema([pa.field("result", pa.string())])


@dataclass(frozen=True)
class Feed:
    """How rows of a table come: its slots, format, and whether bad rows are set aside."""

    table: str
    slots: Slots
    changes: str | None
    form_options: dict[str, str]
    set_aside: bool
    snapshot: bool = False
    """Whether what comes is the whole contents, even if nothing comes."""


@dataclass(frozen=True)
class Task:
    """A version to be made, as workers are told. ``cells[n]`` is the entry of cell n before it."""

    root: str
    version: int
    tables: list[str]
    views: dict[str, str]
    feeds: list[Feed]
    cells: dict[str, Entry]
    new_views: list[str] = field(default_factory=list)
    complete: list[str] = field(default_factory=list)

    @property
    def script(self) -> str:
        return ";\n".join([*self.tables, *self.views.values()])


@dataclass
class _Table:
    """Rows of one table in this micro-batch."""

    feed: Feed
    definition: TableDef
    rows: pa.RecordBatch | None
    dropped: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Rows set aside, each with column, value and reason."""


def run_cell(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take a partition through its cell; the result is one row of JSON, a refusal included."""
    (number,) = task.cells
    try:
        result = _run(task, number, list(batches))
    except (FreshviewsError, OSError) as error:
        result = {"refused": str(error)}
    yield pa.RecordBatch.from_arrays([pa.array([json.dumps(result)])], schema=RESULT)


def _run(task: Task, number: str, batches: list[pa.RecordBatch]) -> dict[str, Any]:
    root, entry = Path(task.root), task.cells[number]
    definitions = tables_of(";\n".join(task.tables))
    parts = split(batches, [feed.slots for feed in task.feeds])
    tables = [_Table(feed, definitions[feed.table], rows) for feed, rows in zip(task.feeds, parts, strict=True)]
    cell = loaded(root, number, entry, definitions, task.script)
    try:
        changes, told = _applied(task, cell, tables)
    except FreshviewsError:
        cell.database.close()
        raise
    reach("rows applied")
    token = new_token()
    after = appended(root, number, entry, cell, changes, token)
    reach("log written")
    result = {
        "cell": number,
        "entry": after,
        "rows": {t.feed.table: t.rows.num_rows for t in tables if t.rows is not None and t.rows.num_rows},
        "bad": {t.feed.table: _write_bad(root, task.version, t) for t in tables if t.dropped},
        "bad_rows": {t.feed.table: len(t.dropped) for t in tables if t.dropped},
        **_written(root, task, cell, told),
    }
    reach("changes written")
    cell.token = after["token"]
    keep(root, number, cell)
    return result


def _applied(task: Task, cell: Cell, tables: list[_Table]) -> tuple[dict[str, pa.Table], dict[str, list[pa.Table]]]:
    """The signed rows of each table, now in the engine, and the changes of the views that were there before.

    A row that the engine refuses is set aside and the rest tried again, where that is wanted.
    """
    told: dict[str, list[pa.Table]] = {}

    def tell(change: Change) -> None:
        told.setdefault(change.view, []).append(change.to_arrow())

    subscriptions = [cell.database.view(name).subscribe(tell) for name in task.views if name not in task.new_views]
    try:
        while True:
            signed = {t.feed.table: _signed(cell, t) for t in tables if t.rows is not None or t.feed.snapshot}
            try:
                with cell.database.batch() as batch:
                    for name, (rows, _) in signed.items():
                        if rows.num_rows:
                            batch.apply(name, rows)
            except BatchError as error:
                _set_aside(error, tables, signed)
                continue
            return {name: pa.Table.from_batches([rows]) for name, (rows, _) in signed.items()}, told
    finally:
        for subscription in subscriptions:
            subscription.unsubscribe()


def _signed(cell: Cell, table: _Table) -> tuple[pa.RecordBatch, Any]:
    """Signed rows of a table, and the rows of the input that they came from."""
    feed, definition = table.feed, table.definition
    found = table.rows
    if found is None:
        schema = changes_schema(definition).remove(len(definition.columns))
        found = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
    for row in unreadable(found):
        if not feed.set_aside:
            raise _told(unreadable_error(definition.name, found, row), found, row)
        table.dropped[row] = {"column": None, "value": None, "reason": UNREADABLE}
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
            lookup=lambda keys: _stored(cell, definition, keys),
            previous=previous,
            set_aside=feed.set_aside,
        )
    except BatchError as error:
        raise _told(error, found, None if error.row is None else int(kept[error.row])) from error
    for bad in signed.bad.to_pylist():
        table.dropped[int(kept[bad["row"]])] = {name: bad[name] for name in ("column", "value", "reason")}
    positions = np.arange(signed.rows.num_rows) if signed.positions is None else signed.positions
    origin = np.where(positions >= 0, kept[np.clip(positions, 0, None)] if len(kept) else -1, -1)
    return signed.rows, origin


def _stored(cell: Cell, table: TableDef, keys: pa.RecordBatch) -> pa.Table:
    """Stored rows that have one of the keys; costs a scan of the table."""
    names = [table.columns[i].name for i in primary_key(table)]
    wanted = pa.Table.from_batches([keys])
    stored = cell.database.table(table.name)
    found = [stored.schema.empty_table()]
    first = pc.unique(wanted.column(names[0]))
    for batch in stored.to_batches():
        part = batch.filter(pc.is_in(batch.column(names[0]), value_set=first))
        if part.num_rows:
            found.append(pa.Table.from_batches([part]))
    rows = pa.concat_tables(found)
    return rows if len(names) == 1 else rows.join(wanted, names, join_type="left semi")


def _set_aside(error: BatchError, tables: list[_Table], signed: dict[str, tuple[pa.RecordBatch, Any]]) -> None:
    """Drop the row an error is about, or raise what the user is told."""
    table = next((t for t in tables if t.feed.table == error.table), None)
    row = None
    if table is not None and error.row is not None and error.table in signed:
        origin = int(signed[error.table][1][error.row])
        row = origin if origin >= 0 else None
    if table is None or row is None or table.rows is None:
        raise error
    if not table.feed.set_aside:
        raise _told(error, table.rows, row)
    if len(table.dropped) >= MOST_BAD:
        raise _told(error, table.rows, row, f"; {MOST_BAD} rows were bad before it, and more are too many")
    table.dropped[row] = {"column": error.column, "value": None, "reason": str(error)}


def _told(error: BatchError, rows: pa.RecordBatch, row: int | None, more: str = "") -> FreshviewsError:
    place = "" if row is None else place_of(rows, row)
    said = f" ({place})" if place else ""
    shown = "" if row is None else f"; the row is {values(rows).slice(row, 1).to_pylist()[0]}"
    return FreshviewsError(f"{error}{said}{shown}{more}")


def _write_bad(root: Path, version: int, table: _Table) -> str:
    assert table.rows is not None
    lines = []
    for row, problem in sorted(table.dropped.items(), key=lambda found: found[0]):
        place = place_of(table.rows, row)
        file = place.rpartition(", row ")[0] or None
        given = table.rows.slice(row, 1).to_pylist()[0]
        given = {name: value for name, value in given.items() if name not in PLACE}
        number = int(place.rpartition(", row ")[2]) if place else row + 1
        told = {"table": table.feed.table, "version": version, "file": file, "row": number, **problem}
        lines.append(json.dumps({**told, "input": given}, default=str, ensure_ascii=False))
    return write_bytes(root, "bad", table.feed.table, ".json", ("\n".join(lines) + "\n").encode())


def _written(root: Path, task: Task, cell: Cell, told: dict[str, list[pa.Table]]) -> dict[str, Any]:
    """The files of the views' changes and contents."""
    changes: dict[str, str] = {}
    changed: dict[str, int] = {}
    contents: dict[str, str] = {}
    sizes: dict[str, dict[str, int]] = {}
    for name in task.views:
        view = cell.database.view(name)
        if name in task.new_views:
            whole = view.to_arrow()
            ones = pa.array(np.ones(whole.num_rows, np.int64))
            found = whole.append_column(pa.field(MULTIPLICITY, pa.int64(), nullable=False), ones)
        elif name in told:
            found = pa.concat_tables(told[name])
        else:
            found = None
        if found is not None and found.num_rows:
            changes[name] = write_arrow(root, f"changes/{name}", str(task.version), found.schema, found.to_batches())
            changed[name] = found.num_rows
        if name in task.complete and found is not None:
            contents[name] = write_arrow(root, "contents", name, view.schema, view.to_batches())
        sizes[name] = {"bytes": _bytes(cell, name)}
    return {"changes": changes, "changed": changed, "contents": contents, "sizes": sizes}


def _bytes(cell: Cell, view: str) -> int:
    """Bytes that a view keeps, internal views included."""
    found = cell.database._relations.views
    names = [key for key in found if key == view.lower() or key.startswith(view.lower() + "#")]
    return sum(found[key].maintained.bytes() for key in names)
