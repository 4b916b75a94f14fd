"""Writes a stored table to a file, and reads it back. The file has the rows, and how many rows have each key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from freshviews.engine.codes.dictionary_mark import check_mark, mark_of
from freshviews.engine.codes.words import words_in
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.tables.packing import Packing, unpacked
from freshviews.errors import OtherProgram, StoreError
from freshviews.kernel.image import Mapping as MappedFile
from freshviews.kernel.image import image_of, shape_of
from freshviews.kernel.memory.mapping import unmap
from freshviews.store.array_file import ArrayFile, write_arrays
from freshviews.types.dictionary import Dictionary

KIND = "table"
_PIECE = 1 << 16
"""Rows that are added at a time from an image in another layout."""


def write_table_image(path: Path, name: str, table: BaseTable, dictionary: Dictionary, sync: bool) -> None:
    """Write the image of a settled base table, whole or not at all. Raises StoreError."""
    images = [image_of(handle) for handle in table.handles]
    about = {
        "kind": KIND,
        "table": name,
        "strings": mark_of(dictionary),
        "columns": table.columns,
        "packing": _places(table),
        "tables": [{"shape": image.shape, "kept": image.kept} for image in images],
    }
    write_arrays(path, about, [array for image in images for array in image.arrays], sync)


def read_table_image(path: Path, name: str, table: BaseTable, dictionary: Dictionary, verify: bool) -> None:
    """Restore an empty base table from an image.

    An image in another layout, as of an older writer, is read row by row. ``verify``: see ``ArrayFile.map``. Raises
    OtherProgram if the table has other columns or keys; StoreError, after which the table must be closed.
    """
    with ArrayFile(path) as file:
        about = file.about
        if about.get("kind") != KIND:
            raise StoreError(f"{path} is not an image of a table")
        if about["table"] != name:
            raise StoreError(f"{path} is an image of table {about['table']}, not of {name}")
        packing = _packing_of(about, table)
        if packing is None:
            raise OtherProgram(
                f"{path}: the image of table {name} has other columns, keys or layout than the table; open it with the "
                "release that wrote it"
            )
        check_mark(path, f"table {name}", about, dictionary)
        mapping = file.map(0, len(file), verify)
        parts = about["tables"]
        if about.get("packing") == _places(table) and _shapes(about) == _own_shapes(table):
            table.take_image([part["kept"] for part in parts], mapping)
            return
        try:
            _add_rows(path, table, parts[0], packing, mapping)
        finally:
            unmap(mapping.low, mapping.high - mapping.low)


def _packing_of(about: Mapping[str, Any], table: BaseTable) -> Packing | None:
    """The packing of the rows of an image; None if it has other columns or keys."""
    columns = len(table.columns)
    words = [shape[1] for shape in _shapes(about)]
    sides = [shape[1] for shape in _own_shapes(table)][1:]
    if words[1:] != sides:
        return None
    if "packing" not in about:
        # Older writers packed no columns, and had the same order.
        return unpacked(columns) if words[0] == columns else None
    if about["columns"] != list(table.columns):
        return None
    return Packing(np.array(about["packing"], np.int64), 0, words[0])


def _places(table: BaseTable) -> list[list[int]]:
    places: list[list[int]] = table.packing.places.tolist()
    return places


def _shapes(about: Mapping[str, Any]) -> list[list[int]]:
    return [part["shape"] for part in about["tables"]]


def _own_shapes(table: BaseTable) -> list[list[int]]:
    return [list(shape_of(handle)) for handle in table.handles]


def _add_rows(path: Path, table: BaseTable, part: Mapping[str, Any], packing: Packing, mapping: MappedFile) -> None:
    """Add the rows of an image in another layout. They were settled, so they break no rule."""
    width = part["shape"][0]
    rows = words_in(mapping.places[0], part["kept"][1], width)[:, : packing.words + 1]
    for start in range(0, len(rows), _PIECE):
        piece = rows[start : start + _PIECE]
        try:
            stopped = table.add_rows(piece[piece[:, -1] != 0], packing)
        except AssertionError as error:
            raise StoreError(f"{path} is damaged: {error}") from error
        if stopped is not None:
            raise StoreError(f"{path}: memory ran out while the rows of table {table.name} were read")
        table.settle()
