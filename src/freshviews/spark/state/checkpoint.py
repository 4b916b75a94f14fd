"""Checks whether a pipeline may continue a checkpoint, and deletes objects of the checkpoint that are not needed.

A checkpoint has these objects in its store::

    <checkpoint>/spark/      Spark's own: offsets of the sources, numbers of micro-batches
    <checkpoint>/manifest/   an object per version
    <checkpoint>/state/  changes/  bad/  polled/    objects that manifests name
    <checkpoint>/aside/      files that are being written, in HDFS
    <checkpoint>/calls/      an object per named call of Pipeline.advance
    <checkpoint>/identity    identifies the checkpoint for sinks
    <checkpoint>/tables      by view, whether its sink table has had rows
    <checkpoint>/delivered   the last version delivered to the sinks, and the sinks that lack versions
    <checkpoint>/runs        how often the pipeline was started, and how often each sink refused a version
    <checkpoint>/lock        held by the process that runs the pipeline
"""

from __future__ import annotations

import errno
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from freshviews.errors import StoreError
from freshviews.records import dataclass
from freshviews.spark.definition import Definition, catalog_of
from freshviews.spark.state.growth import has_same_rows, refusal, replaced_views
from freshviews.spark.state.image_files import image_of
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.folder import try_to_write
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of, read_regular

KEEP_VERSIONS = 200
"""Versions whose changes are kept, for readers of the change stream."""
KEEP_STATES = 10
"""Versions whose state is kept, for readers while new versions are committed."""
READ_SECONDS = 60.0
"""Minimum age, in seconds, at which a version's state may be deleted: a reader may be using it."""
ORPHAN_SECONDS = 3600.0
"""Age, in seconds, at which a file that no manifest names belongs to no running try."""

_FOLDERS = ("state", "changes", "bad", "polled", "aside")


class CheckpointError(StoreError):
    """The checkpoint cannot be continued; the message says what to do."""


def cannot_write(store: Store, error: OSError) -> str:
    """The user's error if a checkpoint cannot be written, for example because a disk is full."""
    remedy = "free some space there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "correct the cause"
    return f"{store.address} cannot be written: {error}; committed versions are safe: {remedy}, then start again"


def check_store(store: Store) -> None:
    """Check that a store can be written, and decides between two that write the same object. Raises CheckpointError.

    A folder decides: a link to an existing name is an error on every file system that has links. Nothing is left in the
    folder, and a missing folder is not created.
    """
    name = f"probe/{uuid.uuid4().hex}"
    try:
        if store.is_local:
            try_to_write(store.local)
            return
        store.write_if_absent(name, b"first")
        try:
            store.write_if_absent(name, b"second")
        except FileExistsError:
            return
        finally:
            store.delete([name])
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {store.address} cannot be written: {error.strerror or error}; free some space, correct "
            "the owner or credentials, or name another place with --checkpoint"
        ) from error
    raise CheckpointError(
        f"the checkpoint {store.address} cannot be used: the server ignores If-None-Match, so two pipelines could "
        "overwrite each other; use a server with conditional puts"
    )


def spark_query(folder: Path) -> str | None:
    """The id of the streaming query in a folder of Spark's own files; None if there is none."""
    try:
        return str(json_of(read_regular(folder / "metadata"))["id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder / 'metadata'} cannot be read: {error}") from None


def check_query(folder: Path, manifest: Manifest) -> None:
    """Refuse a checkpoint whose versions were made with another Spark query than its Spark part has."""
    if manifest.query is None:
        return
    found = spark_query(folder)
    if found is None:
        raise CheckpointError(
            f"{folder} is gone, so the input of version {manifest.version} is unknown; put the folder back, or begin "
            "with a new checkpoint, which reads all input again"
        )
    if found != manifest.query:
        raise CheckpointError(
            f"{folder} belongs to another streaming query than the versions of the checkpoint; put the right folder "
            "back, or begin with a new checkpoint, which reads all input again"
        )


@dataclass(frozen=True)
class Difference:
    """The tables and views of a checkpoint that differ in a definition."""

    tables: tuple[str, ...]
    views: tuple[str, ...]


def difference(manifest: Manifest, definition: Definition, streaming: Sequence[str]) -> Difference:
    """The differences of a definition from a checkpoint, within the allowed changes (``state.growth``). Raises
    CheckpointError for any other change of a table or a view."""
    known = catalog_of(manifest.script, manifest.aggregates)
    wanted = definition.catalog
    before, now = known.tables, wanted.tables
    changed = [name for name, table in now.items() if name in before and not has_same_rows(before[name], table)]
    for name in changed:
        reason = refusal(before[name], now[name])
        if reason is None and before[name].trusted:
            reason = "rows of a trusted table are not stored"
        if reason is not None:
            raise CheckpointError(
                f"table {name} differs from its definition in this checkpoint: {reason}; declare the table as before "
                f"({_short(manifest.tables[name])}), or begin with a new checkpoint"
            )
    if manifest.sources is not None and list(streaming) != manifest.sources:
        for name in sorted(set(streaming) ^ set(manifest.sources)):
            what = "is new" if name in streaming else "is not there any more"
            raise CheckpointError(
                f"streaming table {name} {what}, but the streams of a checkpoint cannot change; begin with a new "
                "checkpoint"
            )
    return Difference(tuple(changed), tuple(replaced_views(known, wanted)))


def _short(sql: str) -> str:
    return " ".join(sql.split())


def collect(
    store: Store,
    manifests: Manifests,
    versions: int = KEEP_VERSIONS,
    states: int = KEEP_STATES,
    orphan_seconds: float = ORPHAN_SECONDS,
    needed_from: int | None = None,
    held: int | None = None,
) -> int:
    """Delete manifests but the last ``versions`` and those ``needed_from`` a version on, and objects that no remaining
    manifest needs; return the number of objects deleted. ``held``: a version that is kept with its state, and all after
    it.

    An object that no manifest names may belong to a version in progress, so only old ones are deleted. If the versions
    of an object have no state any more, or their manifests are deleted now, the object is deleted at once, unless a
    reader may just have found it.
    """
    there = manifests.versions()
    oldest = min([*there[-versions:][:1], *(one for one in (needed_from, held) if one is not None)], default=0)
    kept = [version for version in there if version >= oldest]
    dropped = [version for version in there if version < oldest]
    needed: set[str] = set()
    named: set[str] = set()
    now = time.time()
    for version in dropped:
        manifest = manifests.read(version)
        if manifest.time <= now - READ_SECONDS:
            named |= manifest.files()
    manifests.delete(dropped)
    for place, version in enumerate(kept):
        manifest = manifests.read(version)
        named |= manifest.files()
        with_state = place >= len(kept) - states or manifest.time > now - READ_SECONDS or version == held
        needed |= manifest.files() if with_state else manifest.files() - manifest.state_files()
    old = now - orphan_seconds
    gone = []
    for folder in _FOLDERS:
        for found in store.list(f"{folder}/"):
            names = _names(found.name)
            if not names & needed and (names & named or found.modified < old):
                gone.append(found.name)
    store.delete(gone)
    return len(gone)


def _names(name: str) -> set[str]:
    """The names by which a manifest may refer to an object: its own, and that of its image."""
    return {name, image_of(name), image_of(name.rpartition("/")[0])}
