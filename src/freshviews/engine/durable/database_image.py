"""Writes and reads the image of a database: a folder with files of its strings, tables and views.

::

    contents     the tables and views by name, each with its file and a fingerprint of its definition
    strings      the dictionary
    table-1 ...  stored base tables
    window-1 ... the rows in a table's window, in the order in which they leave
    view-1 ...   views, including internal ones
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from freshviews.catalog.catalog import Catalog, Statement
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.words import address, words_at
from freshviews.engine.draft import Draft
from freshviews.engine.relations import Relations
from freshviews.engine.tables.table_image import read_table_image, write_table_image
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.tables.window import restore_window, rows_in_window
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import OtherProgram, StoreError
from freshviews.kernel.image import plain_array
from freshviews.kernel.memory.mapping import unmap
from freshviews.store.array_file import ArrayFile, write_arrays
from freshviews.store.files import TEMPORARY, sync_directory
from freshviews.store.strings import read_strings, write_strings
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary

KIND = "database"
WINDOW = "window"
CONTENTS = "contents"
STRINGS = "strings"


def write_database(folder: Path, relations: Relations, dictionary: Dictionary, sync: bool) -> None:
    """Write the image of a database, whole or not at all; ``sync``: it is on the disk before this returns.

    Raises StoreError, also if the folder exists.
    """
    aside = folder.with_name(folder.name + TEMPORARY)
    if folder.exists():
        raise StoreError(f"{folder} exists already; write the image to a new folder")
    try:
        aside.mkdir(parents=True, exist_ok=True)
        write_strings(aside / STRINGS, dictionary, 0, sync=sync)
        tables: dict[str, dict[str, Any]] = {}
        prints = _prints(relations.catalog)
        for i, table in enumerate(relations.tables.values(), 1):
            tables[table.name] = {"file": None, "print": prints[table.name.lower()], "written": table.written}
            if table.stored is not None:
                write_table_image(aside / f"table-{i}", table.name, table.stored, dictionary, sync)
                tables[table.name]["file"] = f"table-{i}"
            if table.watermark is not None:
                tables[table.name]["latest"] = table.latest
            if table.has_window:
                rows = np.ascontiguousarray(rows_in_window(table).rows)
                about = {"kind": WINDOW, "table": table.name, "shape": rows.shape}
                write_arrays(aside / f"window-{i}", about, [plain_array(address(rows), rows.size, rows.size)], sync)
                tables[table.name]["window"] = f"window-{i}"
        views = {}
        for i, view in enumerate(relations.views.values(), 1):
            view.maintained.write_image(aside / f"view-{i}", sync=sync)
            views[view.name] = {"file": f"view-{i}", "print": prints[view.name.lower()]}
        write_arrays(aside / CONTENTS, {"kind": KIND, "tables": tables, "views": views}, [], sync)
        os.rename(aside, folder)
        if sync:
            sync_directory(folder.parent)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise StoreError(f"{folder} could not be written: {error}") from error
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def read_database(folder: Path, statements: Iterable[Statement], dictionary: Dictionary, verify: bool) -> Relations:
    """The relations of an image. ``dictionary`` is empty; ``statements`` define the tables and views.

    Tables that the image lacks are empty, and views that it lacks are backfilled. Relations that ``statements`` lack
    are ignored. ``verify``: see ``ArrayFile.map``. Raises StoreError if a file is damaged or a table differs,
    OtherProgram if a view cannot be backfilled because rows of a trusted table are not stored.

    The folder is written under another name and renamed when it is complete. Opening the image maps its files. Rows are
    read one by one only if the layout of a stored table has changed. The database must have the tables of the image. A
    view whose definition or programs have changed is backfilled from its inputs.
    """
    with ArrayFile(folder / CONTENTS) as file:
        about = file.about
    if about.get("kind") != KIND:
        raise StoreError(f"{folder} is not an image of a database")
    catalog = Catalog()
    for statement in statements:
        catalog = catalog.after(statement)
    prints = _prints(catalog)
    read_strings(folder / STRINGS, dictionary)

    def load(relations: Relations) -> None:
        for table in relations.tables.values():
            part = about["tables"].get(table.name)
            if part is None:
                continue
            if part["print"] != prints[table.name.lower()]:
                raise StoreError(
                    f"{folder}: table {table.name} has other columns or keys than when the image was written; define "
                    "the table as it was"
                )
            if table.stored is not None:
                read_table_image(folder / part["file"], table.name, table.stored, dictionary, verify)
                table.had_rows = part["written"]
            table.latest = part.get("latest", NULL)
            if table.has_window and "window" in part:
                restore_window(table, _window_rows(folder / part["window"], verify))
            elif table.has_window and part["written"]:
                raise StoreError(
                    f"{folder}: table {table.name} had no window when the image was written, so the order of its rows "
                    "is unknown; define the table without a window, or insert its rows again"
                )

    def restore(view: ViewState, relations: Relations) -> bool:
        part = about["views"].get(view.name)
        if part is not None and part["print"] == prints[view.name.lower()]:
            try:
                view.maintained.read_image(folder / part["file"], verify=verify)
                return True
            except OtherProgram:
                pass
        for name in view.maintained.inputs:
            table = relations.get(name)
            if isinstance(table, TableState) and not table.is_stored and _written(about, table):
                raise OtherProgram(
                    f"{folder}: the image of view {view.name} is out of date, and the view cannot be backfilled from "
                    f"the trusted table {table.name}; insert the rows of the table again"
                )
        return False

    draft = Draft(Relations(), dictionary, nullcontext, everything=False)
    try:
        draft.remake(catalog, {name: i for i, name in enumerate(catalog.tables, 1)}, load, restore)
        relations = draft.finish()
    except BaseException:
        draft.abandon()
        raise
    for table in relations.tables.values():
        table.had_rows = _written(about, table)
    return relations


def _window_rows(path: Path, verify: bool) -> Codes:
    with ArrayFile(path) as file:
        if file.about.get("kind") != WINDOW:
            raise StoreError(f"{path} is not a file of a window's rows")
        rows, width = file.about["shape"]
        mapping = file.map(0, 1, verify)
        try:
            return words_at(mapping.places[0], rows, width)
        finally:
            unmap(mapping.low, mapping.high - mapping.low)


def _written(about: Mapping[str, Any], table: TableState) -> bool:
    return bool(about["tables"].get(table.name, {}).get("written", False))


def _prints(catalog: Catalog) -> dict[str, str]:
    """By lower-case name, a hash that differs for relations with different contents.

    A view's print includes the prints of its inputs, because the same SELECT over another view is another view.
    """
    found: dict[str, str] = {}
    for table in catalog.tables.values():
        found[table.name.lower()] = _print(replace(table, properties=()), [])
    for view in catalog.views.values():
        plain = replace(view, properties=(), sql="")
        beside = [] if view.combined is None else [str(view.combined)]
        beside += [str(block.gathering) for block in view.blocks if block.gathering is not None]
        beside += [str(one.amount) for block in view.blocks for one in block.distinct if one.amount is not None]
        found[view.name.lower()] = _print(plain, [*beside, *(found[name.lower()] for name in view.inputs)])
    return found


def _print(definition: TableDef | ViewDef, inputs: list[str]) -> str:
    # Definitions consist of tuples, strings and numbers, whose repr is the same in every process.
    return hashlib.sha256("\n".join([repr(definition), *inputs]).encode()).hexdigest()[:32]
