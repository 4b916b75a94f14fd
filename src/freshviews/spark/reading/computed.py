"""Computes the rows of a view from the states of cells, which a checkpoint stores.

Each engine that has a part of these rows is loaded into this process, which then reads the part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from freshviews.catalog.catalog import ViewDefs
from freshviews.catalog.definitions import TableDef
from freshviews.catalog.watermark import takes_whole_versions
from freshviews.engine.database import Database
from freshviews.errors import FreshviewsError
from freshviews.kernel.machine.beside import FEW_ROWS, LITTLE
from freshviews.spark.layout.layout import MERGE, Layout
from freshviews.spark.state.bundle import net, read_all
from freshviews.spark.state.cell import EMPTY, keep, load_cell, loaded
from freshviews.spark.state.cell_image import Entry, settled
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.store import Store
from freshviews.sql import Statement
from freshviews.types.columns import MULTIPLICITY


def parts_of(store: Store, manifest: Manifest, layout: Layout, view: str, keep_cells: bool) -> list[pa.Table]:
    """The rows of a view, a table per engine and part. ``keep_cells``: see ``contents``."""
    output = layout.outputs[view]
    stages = {MERGE: layout.merge_statements} if output.stage == "merge" else dict(enumerate(layout.statements))
    found: list[pa.Table] = []
    for number, statements in stages.items():
        entry = manifest.cells.get(str(number), EMPTY)
        with (
            _kept_engine(store, str(number), entry, statements)
            if keep_cells
            else _temporary_engine(store, entry, statements, output.views)
        ) as database:
            found += [database.view(part).to_arrow() for part in output.views if part in database.views]
    return found


@contextmanager
def _kept_engine(store: Store, number: str, entry: Entry, statements: tuple[Statement, ...]) -> Iterator[Database]:
    """An engine that stays in memory, unless reading it fails."""
    cell = loaded(store, number, entry, statements)
    try:
        yield cell.database
    except BaseException:
        cell.database.close()
        raise
    keep(store, number, cell)


@contextmanager
def _temporary_engine(
    store: Store, entry: Entry, statements: tuple[Statement, ...], views: Collection[str]
) -> Iterator[Database]:
    """An engine that is read once and dropped."""
    entry = settled(store, entry)
    if entry["image"] is not None:
        database = load_cell(store, entry, statements).database
    else:
        needed = needed_for(views, statements)
        replayed = _engine_of_few_rows(store, entry, needed)
        database = load_cell(store, entry, needed).database if replayed is None else replayed
    try:
        yield database
    finally:
        database.close()


def needed_for(views: Collection[str], statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements that some views need: their definitions, and those of the relations that they read."""
    wanted = {view.lower() for view in views}
    kept: list[Statement] = []
    for statement in reversed(statements):
        if isinstance(statement, ViewDefs):
            if wanted.isdisjoint(view.name.lower() for view in statement.views):
                continue
            wanted.update(name.lower() for view in statement.views for name in view.inputs)
        elif isinstance(statement, TableDef):
            if statement.name.lower() not in wanted:
                continue
            wanted.update(key.table.lower() for key in statement.foreign_keys)
        kept.append(statement)
    return tuple(reversed(kept))


def _engine_of_few_rows(store: Store, entry: Entry, statements: tuple[Statement, ...]) -> Database | None:
    """An engine built from the few rows of its log, in pieces that plain Python may process. None if there are many
    rows, or if they must be applied as a whole: deletes may precede the rows that they delete, and windows depend on
    the order of rows, watermarks on their versions."""
    if sum(segment["rows"] for segment in entry["log"]) > 2 * LITTLE:
        return None
    rows: dict[str, pa.Table] = {}
    for table in statements:
        if isinstance(table, TableDef):
            if takes_whole_versions(table):
                return None
            name = table.name
            found = read_all(store, [part["files"][name] for part in entry["log"] if name in part["files"]])
            if found is not None:
                rows[name] = found if _only_inserts(found) else net(found)
    if sum(len(one) for one in rows.values()) > LITTLE or not all(map(_only_inserts, rows.values())):
        return None
    database = Database(threads=1)
    try:
        database.define(statements)
        for name, one in rows.items():
            for start in range(0, len(one), FEW_ROWS):
                database.apply(name, one.slice(start, FEW_ROWS))
        return database
    except FreshviewsError:
        # A part of the rows may break a rule that all rows together obey.
        database.close()
        return None


def _only_inserts(rows: pa.Table) -> bool:
    return not len(rows) or pc.min(rows.column(MULTIPLICITY)).as_py() > 0
