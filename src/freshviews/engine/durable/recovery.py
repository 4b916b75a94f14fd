"""Recovers a durable database from its newest snapshot and the log after it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import field
from pathlib import Path

import numpy as np

from freshviews.engine.commit.commit import General, commit, run_views
from freshviews.engine.commit.records import changes_of
from freshviews.engine.draft import Draft
from freshviews.engine.durable.durability import STRINGS
from freshviews.engine.relations import Relations
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.watermark import follow_time
from freshviews.engine.tables.window import replay_window, restore_window
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import FreshviewsError, OtherProgram, StoreError
from freshviews.kernel.machine.beside import TakenRows, take_in
from freshviews.records import dataclass
from freshviews.sql.statements.sql_script import parse_script
from freshviews.store.directory import Directory
from freshviews.store.files import json_of
from freshviews.store.record import IMAGES, SCRIPT, Record
from freshviews.store.strings import read_strings
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary


@dataclass(frozen=True)
class Recovery:
    """The findings of opening a durable database: ``Database.recovery``.

    Attributes
    ----------
    version
        The version that the database is at.
    snapshot_version
        The version of the snapshot that it started from, None where there was none.
    replayed
        Batches replayed from the log.
    dropped_bytes
        Bytes of a torn tail that were cut off the log.
    dropped
        The message about them, None where there were none.

    Examples
    --------
    >>> with fv.Database("shop") as shop:
    ...     shop.execute("CREATE TABLE items (part STRING, qty INT)")
    ...     version = shop.insert("items", [("bolt", 3)])
    >>> fv.Database("shop").recovery.replayed
    1
    """

    version: int
    snapshot_version: int | None
    replayed: int
    dropped_bytes: int
    dropped: str | None


@dataclass(frozen=True)
class Recovered:
    """The state a directory holds."""

    relations: Relations
    scripts: list[str]
    report: Recovery


def recover(directory: Directory, dictionary: Dictionary, taken: TakenRows) -> Recovered:
    """Read a directory back. ``taken`` counts the rows, so that a small database need not wait for the compiler.

    Raises StoreError if it is corrupt, or its SQL can no longer be executed.
    """
    relations = Relations()
    scripts: list[str] = []
    snapshot_version: int | None = None
    version = replayed = 0
    try:
        if directory.snapshot is not None:
            images = _Images(directory.snapshot.state)
            records = list[Record]()
            for record in directory.snapshot.records():
                snapshot_version = version = record.version
                if record.kind == SCRIPT:
                    scripts.append(record.payload.decode())
                elif record.kind == IMAGES:
                    images = _images_of(directory.snapshot.path, directory.snapshot.state, record)
                else:
                    records.append(record)
            relations = _from_snapshot(scripts, records, images, dictionary, taken)
        for record in directory.records():
            if record.kind == SCRIPT:
                scripts.append(record.payload.decode())
                relations = _executed(scripts[-1], relations, dictionary)
            else:
                changes = changes_of(record, relations)
                with take_in(taken, _rows_of(changes)):
                    commit(General(changes, relations, run_views, np.zeros(1, np.int64).data))
                for table, encoded in changes:
                    if table.has_window:
                        replay_window(table, encoded.batch)
                    follow_time(table, encoded.batch)
                replayed += 1
            version = max(version, record.version)
    except StoreError:
        relations.close()
        raise
    except FreshviewsError as error:
        relations.close()
        raise StoreError(f"{directory.path} cannot be read back: {error}") from error
    except BaseException:
        relations.close()
        raise
    report = Recovery(version, snapshot_version, replayed, directory.log.dropped_bytes, directory.log.dropped)
    return Recovered(relations, scripts, report)


@dataclass(frozen=True)
class _Images:
    """The images of a snapshot: their folder, file by view, the numbers of trusted tables that had rows, and by number
    of a table with a watermark its latest time."""

    folder: Path
    views: dict[str, str] = field(default_factory=dict)
    unstored: tuple[int, ...] = ()
    latest: dict[str, int] = field(default_factory=dict)


def _images_of(snapshot: Path, folder: Path, record: Record) -> _Images:
    try:
        return _Images(folder, **json_of(record.payload))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{snapshot}: the names of the images in the snapshot cannot be read: {error}") from None


def _from_snapshot(
    scripts: list[str], records: list[Record], images: _Images, dictionary: Dictionary, taken: TakenRows
) -> Relations:
    """The relations a snapshot holds. Its rows were checked when they were committed, so they are stored unchecked.

    A view with other programs is backfilled from its inputs, if these are stored.
    """

    def load(relations: Relations) -> None:
        for table in relations.tables.values():
            table.latest = images.latest.get(str(table.number), NULL)
        for record in records:
            for table, encoded in changes_of(record, relations):
                if table.has_window:
                    columns = [encoded.batch.columns[column.name] for column in table.definition.columns]
                    restore_window(table, np.column_stack(columns))
                if table.stored is None:
                    continue
                with take_in(taken, len(encoded.batch)):
                    if table.stored.add(encoded.batch) is not None:
                        raise StoreError(f"memory ran out while table {table.name} was loaded")
                    table.stored.settle()
                table.had_rows = True

    def restore(view: ViewState, relations: Relations) -> bool:
        try:
            if view.name not in images.views:
                raise OtherProgram(
                    f"{images.folder} has no image of view {view.name}, and the view cannot be backfilled from a "
                    "trusted table; open the database with the release that wrote it"
                )
            view.maintained.read_image(images.folder / images.views[view.name], verify=True)
        except OtherProgram:
            for name in view.maintained.inputs:
                table = relations.tables.get(name.lower())
                if table is not None and table.number in images.unstored:
                    raise
            return False
        return True

    if images.views:
        read_strings(images.folder / STRINGS, dictionary)
    draft = Draft(Relations(), dictionary, nullcontext, everything=True)
    try:
        draft.replay(scripts, load, restore)
        relations = draft.finish()
        for table in relations.tables.values():
            table.had_rows = table.had_rows or table.number in images.unstored
        return relations
    except BaseException:
        draft.abandon()
        raise


def _rows_of(changes: Changes) -> int:
    return sum(len(encoded.batch) for _, encoded in changes)


def _executed(script: str, relations: Relations, dictionary: Dictionary) -> Relations:
    draft = Draft(relations, dictionary, nullcontext, everything=True)
    try:
        draft.run(parse_script(script, relations.catalog))
        return draft.finish()
    except BaseException:
        draft.abandon()
        raise
