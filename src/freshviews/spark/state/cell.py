"""The state of a cell outside Spark: an image of its engine, and the log of changes since.

::

    entry = {"token": t9, "image": {"token": t6, "folder": "state/0/image-...", "rows": 8000},
             "pending": {"token": t8, "folder": "state/0/image-...", "rows": 9500},
             "log": [{"token": t7, "level": 1, "rows": 800, "files": {...}}, {"token": t9, "level": 0, ...}]}

The image holds strings, tables and views as they lie in memory and is mapped, so that loading a cell costs by the
log. Every version appends one segment to the log. When ``FAN_IN`` segments of a level have gathered beyond those a
lagging worker may need, the oldest become one of the next level. So a version writes its change and, over time, a
logarithm of it.

When the log has as many rows as the image, a child of the worker writes a new image from the memory it
inherits, while versions go on: it is ``pending`` until it is whole, which its name tells (see
``engine.durable.database_image``); the first version to see that makes it the image and drops the log up to it. Of a
child
that is killed files remain that do not count, and another is begun once nothing was written for ``STALLED`` seconds.
While views that come later are filled (see ``filling``), the log only grows.

A loaded cell is kept in the worker's memory under its token, a name that no two tries share. It is used only where
the manifest names that token, or one from which the log leads on.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshviews.catalog.definitions import TableDef
from freshviews.engine.codes.encoding import MULTIPLICITY
from freshviews.engine.database import Database
from freshviews.errors import StoreError
from freshviews.kernel.image import compile_writer
from freshviews.spark.state.arrow_files import ArrowWriter, read_all
from freshviews.spark.state.forked import can_fork, in_child
from freshviews.sql import Statement
from freshviews.store.files import TEMPORARY
from freshviews.types.columns import arrow_type

_LOGGER = logging.getLogger("freshviews")

FAN_IN = 8
SMALLEST_IMAGE = int(os.environ.get("FRESHVIEWS_SMALLEST_IMAGE", "5000000"))
"""Rows of log below which no image is written: replaying them takes a quarter to two microseconds each."""
STALLED = 60.0
"""Seconds without a sign of life after which an image will not be finished."""
IMAGE = "image-"
"""How the names of images begin, in the folder of a cell."""

Entry = dict[str, Any]
EMPTY: Entry = {"token": "", "image": None, "log": []}


@dataclass
class Cell:
    """A cell at work: its engine, the version it is at, and the statements it was made of."""

    database: Database
    token: str
    statements: tuple[Statement, ...]

    @property
    def tables(self) -> dict[str, TableDef]:
        """Its tables by name."""
        return {one.name: one for one in self.statements if isinstance(one, TableDef)}


_CELLS: dict[tuple[str, str], Cell] = {}
"""Cells that are loaded in this process, by checkpoint and number."""


def new_token() -> str:
    return uuid.uuid4().hex


def new_image(number: str) -> str:
    """The name of a folder for an image of a cell."""
    return f"state/{number}/{IMAGE}{uuid.uuid4().hex}"


def changes_schema(table: TableDef) -> pa.Schema:
    """Columns of a table and ``_multiplicity``."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in table.columns]
    return pa.schema([*fields, pa.field(MULTIPLICITY, pa.int64())])


def loaded(root: Path, number: str, entry: Entry, statements: tuple[Statement, ...]) -> Cell:
    """The cell at the version an entry names, from memory or from its files.

    It is taken out of memory: ``keep`` puts it back once its state is known to be good.
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
    """The cell at the version an entry names, from its files. Costs by its log, if the statements are as they were."""
    entry = _settled(root, entry)
    if entry["image"] is None:
        database = Database()
        database.define(statements)
    else:
        database = Database.from_image(root / entry["image"]["folder"], statements)
    cell = Cell(database, entry["token"], statements)
    _apply(root, cell, entry["log"])
    return cell


def keep(root: Path, number: str, cell: Cell) -> None:
    """Keep a loaded cell for the next version."""
    _CELLS[(str(root), number)] = cell


def segments_after(entry: Entry, token: str) -> list[Any] | None:
    """The segments that lead from a token to the entry; None where the token is not on the way."""
    if entry["token"] == token:
        return []
    if token == (entry["image"]["token"] if entry["image"] else EMPTY["token"]):
        return list(entry["log"])
    for i, segment in enumerate(entry["log"]):
        if segment["token"] == token:
            return list(entry["log"][i + 1 :])
    return None


def _apply(root: Path, cell: Cell, segments: list[Any]) -> None:
    """Apply segments as one batch: what counts is their sum, and that stood at the version they lead to."""
    if not segments:
        return
    with cell.database.batch() as batch:
        for name in cell.tables:
            files = [segment["files"][name] for segment in segments if name in segment["files"]]
            rows = read_all(root, files)
            if rows is not None and rows.num_rows:
                batch.apply(name, rows)


class Segment:
    """Signed rows for the log of a cell, in files by table, written as they come; ``rows`` counts them."""

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
        """The files, whole and synced, by table."""
        return {table: writer.finish() for table, writer in self._files.items()}

    def discard(self) -> None:
        """Delete the files."""
        for writer in self._files.values():
            writer.discard()


def segment_of(root: Path, number: str, changes: Mapping[str, pa.Table]) -> Segment:
    """A segment of changes that are at hand."""
    segment = Segment(root, number)
    for table, rows in changes.items():
        for batch in rows.to_batches():
            segment.add(table, batch)
    return segment


def appended(
    root: Path, number: str, entry: Entry, cell: Cell, segment: Segment, token: str, *, log_only: bool = False
) -> Entry:
    """The entry after a change, its files finished. The cell must have the change already.

    ``log_only``: what the entry has stays as it is, and the change is put behind it.
    """
    files = segment.finish()
    if not files:
        return entry
    log = [*entry["log"], {"token": token, "level": 0, "rows": segment.rows, "files": files}]
    if log_only:
        return {**entry, "token": token, "log": log}
    after = _settled(root, {**entry, "token": token, "log": log})
    pending = after.get("pending")
    # The file system's clock, which need not be this machine's.
    now = (root / next(iter(files.values()))).stat().st_mtime
    if pending is None or _is_given_up(root, pending, now):
        after = {**after, "pending": _begun(root, number, after, cell)}
    return {**after, "log": _merged(root, number, after)}


def from_image(entry: Entry, image: Mapping[str, Any]) -> Entry:
    """The entry with an image of it that was written aside, at a token that is still in its log."""
    log = segments_after(entry, image["token"])
    assert log is not None
    return {"token": entry["token"], "image": dict(image), "log": log}


def _settled(root: Path, entry: Entry) -> Entry:
    """The entry with the pending image as its image, if that is whole by now."""
    pending = entry.get("pending")
    if pending is None or not (root / pending["folder"]).exists():
        return entry
    log = entry["log"]
    known = next((i for i, segment in enumerate(log, 1) if segment["token"] == pending["token"]), None)
    if known is None:
        return {**entry, "pending": None}
    return {**entry, "image": pending, "pending": None, "log": log[known:]}


def _begun(root: Path, number: str, entry: Entry, cell: Cell) -> dict[str, Any] | None:
    """Begin an image of a cell as it is now, if one is due."""
    image = entry["image"]
    if sum(part["rows"] for part in entry["log"]) <= max(SMALLEST_IMAGE, image["rows"] if image else 0):
        return None
    name = new_image(number)
    folder = root / name
    # There before the child is, as a sign of life.
    folder.with_name(folder.name + TEMPORARY).mkdir(parents=True)
    if can_fork():
        compile_writer()

    def write() -> None:
        cell.database.write_image(folder)

    def ended(code: int) -> None:
        if code != 0:
            _LOGGER.warning("%s was not finished (exit code %d); the log goes on until another is", folder, code)

    if not in_child(write, ended):
        try:
            write()
        except StoreError as error:
            _LOGGER.warning("%s; the log goes on until an image is written", error)
            return None
    return {"token": entry["token"], "folder": name, "rows": cell.database.stored_rows}


def _is_given_up(root: Path, pending: Mapping[str, Any], now: float) -> bool:
    """Whether nothing has come of an image that is not whole for so long that nothing will."""
    folder = root / pending["folder"]
    aside = folder.with_name(folder.name + TEMPORARY)
    try:
        latest = max(path.stat().st_mtime for path in (aside, *aside.iterdir()))
    except FileNotFoundError:
        # Renamed between two looks, or gone.
        return not folder.exists()
    return bool(latest < now - STALLED)


def _merged(root: Path, number: str, entry: Entry) -> list[Any]:
    """The log with the oldest ``FAN_IN`` segments of a level made one, where twice as many have gathered.

    Those up to a pending image stay as they are: they are soon gone, and none may reach beyond it.
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
    """Segments of a level as one of the next."""
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
