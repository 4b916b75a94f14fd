"""The state of a cell outside Spark: an image of its tables, and the log of changes since.

::

    entry = {"token": t9, "image": {"token": t6, "files": {"orders": "state/0/..."}, "rows": 8000},
             "log": [{"token": t7, "level": 1, "rows": 800, "files": {...}}, {"token": t9, "level": 0, ...}]}

The image holds the rows of the base tables; views are filled from them when the cell is loaded. Every version
appends one segment to the log. When ``FAN_IN`` segments of a level have gathered beyond those a lagging worker may
need, the oldest become one of the next level; when the log is half as long as the image, a new image is written. So
a version writes its change and, over time, a logarithm of it.

A loaded cell is kept in the worker's memory under its token, a name that no two tries share. It is used only where
the manifest names that token, or one from which the log leads on.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshviews.engine.database import Database
from freshviews.engine.encoding import MULTIPLICITY
from freshviews.query.block import TableDef
from freshviews.spark.arrow_files import read_all, write_arrow
from freshviews.types.columns import arrow_type

FAN_IN = 8
SMALLEST_IMAGE = 20_000
"""Rows of log below which no image is written."""

Entry = dict[str, Any]
EMPTY: Entry = {"token": "", "image": None, "log": []}


@dataclass
class Cell:
    """A cell at work: its engine, the version it is at, and the SQL it was made of."""

    database: Database
    token: str
    tables: dict[str, TableDef]
    script: str


_CELLS: dict[tuple[str, str], Cell] = {}
"""Cells that are loaded in this process, by checkpoint and number."""


def new_token() -> str:
    return uuid.uuid4().hex


def changes_schema(table: TableDef) -> pa.Schema:
    """Columns of a table and ``_multiplicity``."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in table.columns]
    return pa.schema([*fields, pa.field(MULTIPLICITY, pa.int64())])


def loaded(root: Path, number: str, entry: Entry, tables: Mapping[str, TableDef], script: str) -> Cell:
    """The cell at the version an entry names, from memory or from its files.

    It is taken out of memory: ``keep`` puts it back once its state is known to be good.
    """
    cell = _CELLS.pop((str(root), number), None)
    if cell is not None and cell.script == script:
        missing = _missing(entry, cell.token)
        if missing is not None:
            _apply(root, cell, missing)
            cell.token = entry["token"]
            return cell
    if cell is not None:
        cell.database.close()
    return load_cell(root, entry, tables, script)


def load_cell(root: Path, entry: Entry, tables: Mapping[str, TableDef], script: str) -> Cell:
    """The cell at the version an entry names, from its files."""
    cell = Cell(Database(), entry["token"], dict(tables), script)
    cell.database.execute(script)
    image = [entry["image"]] if entry["image"] else []
    _apply(root, cell, [*image, *entry["log"]])
    return cell


def keep(root: Path, number: str, cell: Cell) -> None:
    """Keep a loaded cell for the next version."""
    _CELLS[(str(root), number)] = cell


def _missing(entry: Entry, token: str) -> list[Any] | None:
    """The segments that lead from a token to the entry; None where the token is not on the way."""
    if entry["token"] == token:
        return []
    if entry["image"] and entry["image"]["token"] == token:
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


def appended(root: Path, number: str, entry: Entry, cell: Cell, changes: Mapping[str, pa.Table], token: str) -> Entry:
    """The entry after a change, its files written and synced. The cell must have the change already."""
    files = {
        name: write_arrow(root, f"state/{number}", name, rows.schema, rows.to_batches())
        for name, rows in changes.items()
        if rows.num_rows
    }
    if not files:
        return entry
    rows = sum(table.num_rows for table in changes.values())
    log = [*entry["log"], {"token": token, "level": 0, "rows": rows, "files": files}]
    image = entry["image"]
    if sum(part["rows"] for part in log) > max(SMALLEST_IMAGE, (image["rows"] if image else 0) // 2):
        return {"token": token, "image": _image(root, number, cell, token), "log": []}
    return {"token": token, "image": image, "log": _merged(root, number, log, cell.tables)}


def _image(root: Path, number: str, cell: Cell, token: str) -> dict[str, Any]:
    files: dict[str, str] = {}
    total = 0
    for name, table in cell.tables.items():
        schema = changes_schema(table)
        counted = 0

        def batches(name: str = name, schema: pa.Schema = schema) -> Any:
            nonlocal counted
            for batch in cell.database.table(name).to_batches():
                counted += batch.num_rows
                ones = pa.array([1] * batch.num_rows, pa.int64())
                yield pa.RecordBatch.from_arrays([*batch.columns, ones], schema=schema)

        files[name] = write_arrow(root, f"state/{number}", name, schema, batches())
        total += counted
    return {"token": token, "files": files, "rows": total}


def _merged(root: Path, number: str, log: list[Any], tables: Mapping[str, TableDef]) -> list[Any]:
    """The log with the oldest ``FAN_IN`` segments of a level made one, where twice as many have gathered."""
    level = 0
    while any(segment["level"] >= level for segment in log):
        here = [segment for segment in log if segment["level"] == level]
        if len(here) >= 2 * FAN_IN:
            oldest, at = here[:FAN_IN], log.index(here[0])
            files = {}
            for name in tables:
                rows = read_all(root, [s["files"][name] for s in oldest if name in s["files"]])
                if rows is not None:
                    files[name] = write_arrow(root, f"state/{number}", name, rows.schema, rows.to_batches())
            whole = {
                "token": oldest[-1]["token"],
                "level": level + 1,
                "rows": sum(segment["rows"] for segment in oldest),
                "files": files,
            }
            log = [*log[:at], whole, *log[at + FAN_IN :]]
        level += 1
    return log
