"""How a durable database comes back: from its newest snapshot, and what the log has beyond it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from freshviews.engine.commit import commit
from freshviews.engine.draft import Draft
from freshviews.engine.durability import changes_of
from freshviews.engine.relations import Relations
from freshviews.errors import FreshviewsError, StoreError
from freshviews.sql.script import parse_script
from freshviews.store.directory import Directory
from freshviews.store.record import SCRIPT, UNSTORED, Record
from freshviews.types.dictionary import Dictionary


@dataclass(frozen=True)
class Recovery:
    """What opening a durable database found."""

    version: int
    """The version it is at."""
    snapshot_version: int | None
    """The version of the snapshot it started from, None where there was none."""
    replayed: int
    """Batches replayed from the log."""
    dropped_bytes: int
    """Bytes of a torn tail that were cut off the log."""
    dropped: str | None
    """The message about them, None where there were none."""


@dataclass(frozen=True)
class Recovered:
    """The state a directory holds."""

    relations: Relations
    scripts: list[str]
    report: Recovery


def recover(directory: Directory, dictionary: Dictionary) -> Recovered:
    """Read a directory back. Raises StoreError where it is corrupt, or its SQL can no longer be executed."""
    relations = Relations()
    scripts: list[str] = []
    snapshot_version: int | None = None
    version = replayed = 0
    try:
        if directory.snapshot is not None:
            records = list[Record]()
            for record in directory.snapshot.records():
                snapshot_version = version = record.version
                if record.kind == SCRIPT:
                    scripts.append(record.payload.decode())
                else:
                    records.append(record)
            relations = _from_snapshot(scripts, records, dictionary)
        for held, record in directory.records():
            if record.kind == SCRIPT:
                if not held:
                    scripts.append(record.payload.decode())
                    relations = _executed(scripts[-1], relations, dictionary)
            elif not held or record.flags & UNSTORED:
                commit(changes_of(record, relations, only_unstored=held), relations, _no_log)
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


def _no_log() -> None:
    """What is replayed is in the log."""


def _from_snapshot(scripts: list[str], records: list[Record], dictionary: Dictionary) -> Relations:
    """The relations a snapshot holds. Its rows were checked when they came, so they are just stored."""

    def load(relations: Relations) -> None:
        for record in records:
            for table, encoded in changes_of(record, relations, only_unstored=False):
                assert table.stored is not None
                if table.stored.add(encoded.batch) is not None:
                    raise StoreError(f"memory ran out while table {table.name} was loaded")
                table.stored.settle()
                table.written = True

    draft = Draft(Relations(), dictionary, nullcontext, everything=True)
    try:
        draft.replay(scripts, load)
        return draft.finish()
    except BaseException:
        draft.abandon()
        raise


def _executed(script: str, relations: Relations, dictionary: Dictionary) -> Relations:
    draft = Draft(relations, dictionary, nullcontext, everything=True)
    try:
        draft.run(parse_script(script, relations.catalog))
        return draft.finish()
    except BaseException:
        draft.abandon()
        raise
