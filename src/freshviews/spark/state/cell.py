"""Loads the engine of a cell from its files, and writes the files of the cell's next version.

The files are an image of the engine, and a log of the changes after the image. An entry of a manifest names the files,
and says by tokens, such as t9, to which state of the cell each leads. An unfinished image is ``pending``::

    entry = {"token": t9, "image": {"token": t6, "folder": "state/0/image-...", "rows": 8000},
             "pending": {"token": t8, "folder": "state/0/image-...", "rows": 9500},
             "log": [{"token": t7, "level": 1, "rows": 800, "files": {...}}, {"token": t9, "level": 0, ...}]}
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freshviews.catalog.definitions import TableDef
from freshviews.engine.database import Database
from freshviews.kernel.machine.beside import wait_always
from freshviews.spark.state.bundle import Bundle, object_of, read_all
from freshviews.spark.state.cell_image import Entry, begun, is_given_up, settled
from freshviews.spark.state.image_files import image_folder
from freshviews.spark.state.stores.store import Store
from freshviews.sql import Statement
from freshviews.types.columns import MULTIPLICITY, arrow_type

FAN_IN = 8
EMPTY: Entry = {"token": "", "image": None, "log": []}


@dataclass
class Cell:
    """A loaded cell: its engine, its version, and the statements that created it. ``was_read``: the last use of the
    cell read files."""

    database: Database
    token: str
    statements: tuple[Statement, ...]
    was_read: bool = False

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


def loaded(store: Store, number: str, entry: Entry, statements: tuple[Statement, ...]) -> Cell:
    """The cell at the version that an entry names, from memory or from its files.

    It is removed from memory; ``keep`` puts it back when its state is known to be good.

    A loaded cell stays in the worker's memory under its token. The cell is used only if the manifest names this token,
    or if the manifest's log continues from it.
    """
    cell = _CELLS.pop((store.address, number), None)
    if cell is not None and cell.statements == statements:
        missing = segments_after(entry, cell.token)
        if missing is not None:
            _apply(store, cell, missing)
            cell.token, cell.was_read = entry["token"], bool(missing)
            return cell
    if cell is not None:
        cell.database.close()
    return load_cell(store, entry, statements)


def load_cell(store: Store, entry: Entry, statements: tuple[Statement, ...]) -> Cell:
    """Load the cell at the version that an entry names. Costs the length of its log if the statements are unchanged."""
    wait_always()
    entry = settled(store, entry)
    if entry["image"] is None:
        # The other cores have other cells.
        database = Database(threads=1)
        database.define(statements)
    else:
        database = Database.from_image(image_folder(store, entry["image"]["folder"]), statements, threads=1)
    cell = Cell(database, entry["token"], statements, entry["image"] is not None or bool(entry["log"]))
    _apply(store, cell, entry["log"])
    return cell


def keep(store: Store, number: str, cell: Cell) -> None:
    """Keep a loaded cell for the next version."""
    _CELLS[(store.address, number)] = cell


def cells_here() -> frozenset[int]:
    """The identities of the cells in this process."""
    return frozenset(map(id, _CELLS.values()))


def drop_cells_elsewhere(store: Store, homes: Mapping[str, str], here: str) -> None:
    """Free the cells of a checkpoint that another process than ``here`` has; ``homes``: the process of each cell."""
    for address, number in list(_CELLS):
        if address == store.address and homes.get(number, here) != here:
            _CELLS.pop((address, number)).database.close()


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


def _apply(store: Store, cell: Cell, segments: list[Any]) -> None:
    """Apply segments as one batch: their sum counts, and it was valid at the version they lead to."""
    if not segments:
        return
    with cell.database.batch(replayed=True) as batch:
        for name in cell.tables:
            files = [segment["files"][name] for segment in segments if name in segment["files"]]
            rows = read_all(store, files)
            if rows is not None and rows.num_rows:
                batch.apply(name, rows)


class Segment:
    """Signed rows for the log of a cell, written to one object as they arrive; ``rows`` counts those of the version."""

    def __init__(self, store: Store, number: str) -> None:
        self.rows = 0
        self._bundle = Bundle(store, f"state/{number}")

    def add(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows of a table."""
        if rows.num_rows:
            self._bundle.add(table, rows.schema, [rows])
            self.rows += rows.num_rows

    def add_merged(self, table: str, level: int, rows: pa.Table) -> str:
        """Add the rows of a table in older segments that become one of a level; return the name of the section."""
        section = f"{table} {level}"
        self._bundle.add(section, rows.schema, rows.combine_chunks().to_batches())
        return section

    def finish(self) -> dict[str, str]:
        """Begin to make the object durable; return the names of its sections for a manifest."""
        return self._bundle.finish()

    def wait(self) -> None:
        """Wait until it is durable. Raises OSError."""
        self._bundle.wait()

    def discard(self) -> None:
        """Discard it."""
        self._bundle.discard()


def segment_of(store: Store, number: str, changes: Mapping[str, pa.Table]) -> Segment:
    """A segment of the given changes."""
    segment = Segment(store, number)
    for table, rows in changes.items():
        for batch in rows.to_batches():
            segment.add(table, batch)
    return segment


def appended(
    store: Store, number: str, entry: Entry, cell: Cell, segment: Segment, token: str, *, log_only: bool = False
) -> Entry:
    """The entry after a change, whose rows are in ``segment``; it counts after ``segment.wait``. The cell must have
    applied the change.

    ``log_only``: append to the log and change nothing else.

    The image is mapped, so the cost of loading a cell depends only on the length of its log. Every version appends one
    segment to the log. When a level has twice ``FAN_IN`` segments, the older half is merged into one segment of the
    next level. So a row is written a logarithmic number of times, amortised.
    """
    if not segment.rows:
        return entry
    after = entry if log_only else settled(store, entry)
    new = {"token": token, "level": 0, "rows": segment.rows, "sections": {name: name for name in cell.tables}}
    log = [*after["log"], new]
    if not log_only:
        log = _merge_segments(store, segment, after, log)
    names = segment.finish()
    after = {**after, "token": token, "log": [_named_segment(part, names) for part in log]}
    if log_only:
        return after
    pending = after.get("pending")
    if pending is None or is_given_up(store, pending, object_of(next(iter(names.values())))):
        after = {**after, "pending": begun(store, number, after, cell.database)}
    return after


def _named_segment(part: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A segment of the log; a segment in the new object now has names for its sections."""
    if "sections" not in part:
        return dict(part)
    files = {table: names[section] for table, section in part["sections"].items() if section in names}
    return {"token": part["token"], "level": part["level"], "rows": part["rows"], "files": files}


def from_image(entry: Entry, image: Mapping[str, Any]) -> Entry:
    """The entry with an image that was written separately, at a token that is still in its log.

    When the log has as many rows as the image, a child process of the worker writes a new image. It is ``pending``
    until it is complete (see ``engine.durable.database_image``). The next version then uses the new image, and drops
    the log up to it. If the child process has written nothing for ``STALLED`` seconds, another image is begun.
    """
    log = segments_after(entry, image["token"])
    assert log is not None
    return {"token": entry["token"], "image": dict(image), "log": log}


def _merge_segments(store: Store, segment: Segment, entry: Entry, log: list[Any]) -> list[Any]:
    """Merge the oldest ``FAN_IN`` segments of a level where twice as many have gathered, into the object of a segment.

    So none of the new object is read here. Segments up to a pending image are not merged: they are dropped soon, and no
    segment may reach beyond the image.
    """
    tokens = [part["token"] for part in log]
    pending = entry.get("pending")
    first = tokens.index(pending["token"]) + 1 if pending is not None else 0
    before, log = log[:first], log[first:]
    level = 0
    while any(part["level"] >= level for part in log):
        here = [part for part in log if part["level"] == level]
        if len(here) >= 2 * FAN_IN:
            at = log.index(here[0])
            log = [*log[:at], _one_of(store, segment, here[:FAN_IN]), *log[at + FAN_IN :]]
        level += 1
    return [*before, *log]


def _one_of(store: Store, segment: Segment, parts: Sequence[Any]) -> dict[str, Any]:
    """Merge segments of a level into one of the next."""
    level = parts[0]["level"] + 1
    sections: dict[str, str] = {}
    for table in dict.fromkeys(table for part in parts for table in part["files"]):
        rows = read_all(store, [part["files"][table] for part in parts if table in part["files"]])
        assert rows is not None
        sections[table] = segment.add_merged(table, level, rows)
    return {
        "token": parts[-1]["token"],
        "level": level,
        "rows": sum(part["rows"] for part in parts),
        "sections": sections,
    }
