"""The state of a cell outside Spark: an image of its engine, and the log of changes since.

::

    entry = {"token": t9, "image": {"token": t6, "folder": "state/0/image-...", "rows": 8000},
             "pending": {"token": t8, "folder": "state/0/image-...", "rows": 9500},
             "log": [{"token": t7, "level": 1, "rows": 800, "files": {...}}, {"token": t9, "level": 0, ...}]}

The image holds strings, tables and views in their memory layout and is mapped, so loading a cell costs the length of
its log. Every version appends one segment to the log. When ``FAN_IN`` segments of a level have gathered, beyond those
that a lagging worker may need, the oldest are merged into one of the next level. So a version writes its change and,
amortised, a logarithm of it.

When the log has as many rows as the image, a child of the worker writes a new image from the memory it inherits, while
versions continue. The image is ``pending`` until it is whole, which its name shows (see
``engine.durable.database_image``). The first version that sees a whole one uses it as the image and drops the log up to
it. A killed child leaves files that do not count; another image is begun if nothing was written for ``STALLED``
seconds. While later views are backfilled (see ``filling``), the log only grows.

A loaded cell stays in the worker's memory under its token, a name that no two tries share. It is used only if the
manifest names that token, or one that the log leads to from it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshviews.catalog.definitions import TableDef
from freshviews.engine.codes.encoding import MULTIPLICITY
from freshviews.engine.database import Database
from freshviews.kernel.beside import wait_always
from freshviews.spark.state.arrow_files import ArrowWriter, read_all
from freshviews.spark.state.cell_image import Entry, begun, is_given_up, settled
from freshviews.sql import Statement
from freshviews.types.columns import arrow_type

FAN_IN = 8
EMPTY: Entry = {"token": "", "image": None, "log": []}


@dataclass
class Cell:
    """A loaded cell: its engine, its version, and the statements that created it."""

    database: Database
    token: str
    statements: tuple[Statement, ...]

    @property
    def tables(self) -> dict[str, TableDef]:
        """Its tables by name."""
        return {one.name: one for one in self.statements if isinstance(one, TableDef)}


_CELLS: dict[tuple[str, str], Cell] = {}
"""Cells loaded in this process, by checkpoint and number."""


def new_token() -> str:
    return uuid.uuid4().hex


def changes_schema(table: TableDef) -> pa.Schema:
    """Columns of a table and ``_multiplicity``."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in table.columns]
    return pa.schema([*fields, pa.field(MULTIPLICITY, pa.int64())])


def loaded(root: Path, number: str, entry: Entry, statements: tuple[Statement, ...]) -> Cell:
    """The cell at the version that an entry names, from memory or from its files.

    It is removed from memory; ``keep`` puts it back when its state is known to be good.
    """
    cell = _CELLS.pop((str(root), number), None)
    if cell is not None and cell.statements == statements:
        missing = segments_after(entry, cell.token)
        if missing is not None:
            _apply(root, cell, missing)
            cell.token = entry["token"]
            return cell
    if cell is not None:
        cell.database.close()
    return load_cell(root, entry, statements)


def load_cell(root: Path, entry: Entry, statements: tuple[Statement, ...]) -> Cell:
    """Load the cell at the version that an entry names. Costs the length of its log if the statements are unchanged."""
    wait_always()
    entry = settled(root, entry)
    if entry["image"] is None:
        # The other cores have other cells.
        database = Database(threads=1)
        database.define(statements)
    else:
        database = Database.from_image(root / entry["image"]["folder"], statements, threads=1)
    cell = Cell(database, entry["token"], statements)
    _apply(root, cell, entry["log"])
    return cell


def keep(root: Path, number: str, cell: Cell) -> None:
    """Keep a loaded cell for the next version."""
    _CELLS[(str(root), number)] = cell


def segments_after(entry: Entry, token: str) -> list[Any] | None:
    """The segments from a token to the entry; None if the token is not in the log."""
    if entry["token"] == token:
        return []
    if token == (entry["image"]["token"] if entry["image"] else EMPTY["token"]):
        return list(entry["log"])
    for i, segment in enumerate(entry["log"]):
        if segment["token"] == token:
            return list(entry["log"][i + 1 :])
    return None


def _apply(root: Path, cell: Cell, segments: list[Any]) -> None:
    """Apply segments as one batch: their sum counts, and it was valid at the version they lead to."""
    if not segments:
        return
    with cell.database.batch() as batch:
        for name in cell.tables:
            files = [segment["files"][name] for segment in segments if name in segment["files"]]
            rows = read_all(root, files)
            if rows is not None and rows.num_rows:
                batch.apply(name, rows)


class Segment:
    """Signed rows for the log of a cell, in files by table, written as they arrive; ``rows`` counts them."""

    def __init__(self, root: Path, number: str) -> None:
        self.rows = 0
        self._root = root
        self._folder = f"state/{number}"
        self._files: dict[str, ArrowWriter] = {}

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows of a table."""
        if not rows.num_rows:
            return
        if table not in self._files:
            self._files[table] = ArrowWriter(self._root, self._folder, table, rows.schema)
        self._files[table].write(rows)
        self.rows += rows.num_rows

    def finish(self) -> dict[str, str]:
        """The finished and synced files, by table."""
        return {table: writer.finish() for table, writer in self._files.items()}

    def discard(self) -> None:
        """Delete the files."""
        for writer in self._files.values():
            writer.discard()


def segment_of(root: Path, number: str, changes: Mapping[str, pa.Table]) -> Segment:
    """A segment of the given changes."""
    segment = Segment(root, number)
    for table, rows in changes.items():
        for batch in rows.to_batches():
            segment.add(table, batch)
    return segment


def appended(
    root: Path, number: str, entry: Entry, cell: Cell, segment: Segment, token: str, *, log_only: bool = False
) -> Entry:
    """The entry after a change whose files are finished. The cell must have applied the change.

    ``log_only``: append to the log and change nothing else.
    """
    files = segment.finish()
    if not files:
        return entry
    log = [*entry["log"], {"token": token, "level": 0, "rows": segment.rows, "files": files}]
    if log_only:
        return {**entry, "token": token, "log": log}
    after = settled(root, {**entry, "token": token, "log": log})
    pending = after.get("pending")
    # The file system's clock may differ from this machine's.
    now = (root / next(iter(files.values()))).stat().st_mtime
    if pending is None or is_given_up(root, pending, now):
        after = {**after, "pending": begun(root, number, after, cell.database)}
    return {**after, "log": _merged(root, number, after)}


def from_image(entry: Entry, image: Mapping[str, Any]) -> Entry:
    """The entry with an image that was written separately, at a token that is still in its log."""
    log = segments_after(entry, image["token"])
    assert log is not None
    return {"token": entry["token"], "image": dict(image), "log": log}


def _merged(root: Path, number: str, entry: Entry) -> list[Any]:
    """Merge the oldest ``FAN_IN`` segments of a level where twice as many have gathered.

    Segments up to a pending image are not merged: they are dropped soon, and no segment may reach beyond the image.
    """
    tokens = [segment["token"] for segment in entry["log"]]
    pending = entry.get("pending")
    first = tokens.index(pending["token"]) + 1 if pending is not None else 0
    before, log = entry["log"][:first], entry["log"][first:]
    level = 0
    while any(segment["level"] >= level for segment in log):
        here = [segment for segment in log if segment["level"] == level]
        if len(here) >= 2 * FAN_IN:
            at = log.index(here[0])
            log = [*log[:at], _one_of(root, number, here[:FAN_IN]), *log[at + FAN_IN :]]
        level += 1
    return [*before, *log]


def _one_of(root: Path, number: str, segments: Sequence[Any]) -> dict[str, Any]:
    """Merge segments of a level into one of the next."""
    names = dict.fromkeys(name for segment in segments for name in segment["files"])
    changes: dict[str, pa.Table] = {}
    for name in names:
        rows = read_all(root, [segment["files"][name] for segment in segments if name in segment["files"]])
        assert rows is not None
        changes[name] = rows.combine_chunks()
    return {
        "token": segments[-1]["token"],
        "level": segments[0]["level"] + 1,
        "rows": sum(segment["rows"] for segment in segments),
        "files": segment_of(root, number, changes).finish(),
    }
