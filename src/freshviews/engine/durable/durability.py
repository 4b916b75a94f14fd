"""Writes a snapshot of a database: the rows of its tables, its strings, and the native state of each view."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.relations import Relations
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window import rows_in_window
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.store.crash_points import reach
from freshviews.store.payload import PayloadPart, parts_to_bytes
from freshviews.store.record import IMAGES, SCRIPT, TABLE
from freshviews.store.strings import write_strings
from freshviews.types.dictionary import Dictionary

ROWS = 1 << 16
"""Rows of a table in one record of a snapshot."""

STRINGS = "strings"
"""Name of the file of strings, in the folder of the images."""


def snapshot_records(scripts: list[str], relations: Relations) -> Iterator[tuple[int, bytes]]:
    """Kinds and payloads of the records of a snapshot."""
    for script in scripts:
        yield SCRIPT, script.encode()
    unstored = [table.number for table in relations.tables.values() if table.stored is None and table.written]
    about = {"views": _image_names(relations), "unstored": unstored}
    latest = {str(table.number): table.latest for table in relations.tables.values() if table.watermark is not None}
    yield IMAGES, json.dumps(about | ({"latest": latest} if latest else {})).encode()
    for table in relations.tables.values():
        for batch in _rows_of(table):
            INTERRUPTION.raise_if_unchanged()
            rows = table.decoder.change(batch)
            yield TABLE, parts_to_bytes([PayloadPart(table.number, table.name, rows)])


def _rows_of(table: TableState) -> Iterator[CodeBatch]:
    """The rows of a table for a snapshot: stored rows, or the rows of the window in order."""
    if not table.has_window:
        yield from table.stored.batches(ROWS) if table.stored is not None else ()
        return
    held = rows_in_window(table)
    for start in range(0, len(held.rows), ROWS):
        rows = held.rows[start : start + ROWS]
        columns = {name: rows[:, i] for i, name in enumerate(held.columns)}
        yield CodeBatch(table.name, columns, np.ones(len(rows), np.int64))


def write_state(folder: Path, relations: Relations, dictionary: Dictionary) -> None:
    """Write the strings and the image of every view into the folder of a snapshot."""
    write_strings(folder / STRINGS, dictionary, 0)
    reach("strings written")
    names = _image_names(relations)
    for view in relations.views.values():
        INTERRUPTION.raise_if_unchanged()
        view.maintained.write_image(folder / names[view.name])
        reach("image written")


def _image_names(relations: Relations) -> dict[str, str]:
    """The file of each view's image."""
    return {view.name: f"view-{i}" for i, view in enumerate(relations.views.values(), 1)}
