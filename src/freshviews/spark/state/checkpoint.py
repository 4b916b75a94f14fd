"""The folder of a checkpoint: its lock, which pipelines may continue it, and the collection of unneeded files.

::

    <checkpoint>/spark/      Spark's own: offsets of the sources, numbers of micro-batches
    <checkpoint>/manifest/   a file per version
    <checkpoint>/state/  changes/  contents/  bad/    files that manifests name
    <checkpoint>/delivered   the last version that went to the sinks
    <checkpoint>/runs        how often it was started, and what sinks refused
    <checkpoint>/lock        held by the process that runs the pipeline
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from freshviews.errors import StoreError
from freshviews.spark.definition import Definition, tables_of, views_of
from freshviews.spark.state.cell_image import IMAGE
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.store.files import TEMPORARY

KEEP_VERSIONS = 200
"""Versions whose changes are kept, for readers of the change stream."""
KEEP_STATES = 10
"""Versions whose state is kept, for readers while new versions are committed."""
READ_SECONDS = 60.0
"""Minimum age, in seconds, at which a version's state may be deleted: a reader may be using it."""
ORPHAN_SECONDS = 3600.0
"""Age, in seconds, at which a file that no manifest names belongs to no running try."""

_FOLDERS = ("state", "changes", "contents", "bad")


class CheckpointError(StoreError):
    """The checkpoint cannot be continued; the message says what to do."""


def checkpoint_path(name: str) -> Path:
    """The folder of a checkpoint. Raises CheckpointError if it is no path of a file system."""
    plain = name.removeprefix("file://") if name.startswith("file://") else name.removeprefix("file:")
    if "://" in plain:
        raise CheckpointError(
            f"checkpoint {name}: a folder that all workers see under the same path is accepted (a local one in "
            "local mode, a shared one on a cluster), not an object store"
        )
    return Path(plain).absolute()


def cannot_write(root: Path, error: OSError) -> str:
    """The user's error if the folder of a checkpoint cannot be written, for example because a disk is full."""
    return f"{root} cannot be written: {error}; committed versions are safe: free some space there, then start again"


def spark_query(root: Path) -> str | None:
    """The id of Spark's streaming query in a checkpoint; None if there is none."""
    try:
        return str(json.loads((root / "spark" / "metadata").read_text())["id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{root / 'spark' / 'metadata'} cannot be read: {error}") from None


def check_query(root: Path, manifest: Manifest) -> None:
    """Refuse a checkpoint whose versions were made with another Spark query than its Spark part has."""
    if manifest.query is None:
        return
    found = spark_query(root)
    if found is None:
        raise CheckpointError(
            f"{root / 'spark'} is gone, so nobody knows which input is in version {manifest.version}; put it back, "
            "or begin with a new checkpoint, which reads all input again"
        )
    if found != manifest.query:
        raise CheckpointError(
            f"{root / 'spark'} is of another streaming query than the versions beside it; put the right one back, "
            "or begin with a new checkpoint, which reads all input again"
        )


def check_definition(manifest: Manifest, definition: Definition, streaming: Sequence[str]) -> list[str]:
    """The views that are new. Raises CheckpointError if an existing table or view was changed."""
    before = tables_of(";\n".join(manifest.tables.values()))
    now = tables_of(";\n".join(table.sql for table in definition.tables))
    for name, table in now.items():
        if name in before and before[name] != table:
            raise CheckpointError(
                f"table {name} is not what it was in this checkpoint; it was: {_short(manifest.tables[name])}; "
                "write it so again, or begin with a new checkpoint"
            )
    if manifest.sources is not None and list(streaming) != manifest.sources:
        for name in sorted(set(streaming) ^ set(manifest.sources)):
            what = "is new" if name in streaming else "is not there any more"
            raise CheckpointError(
                f"streaming table {name} {what}, and the streams of a checkpoint are fixed once it has begun; "
                "begin with a new checkpoint"
            )
    known = views_of(";\n".join([*manifest.tables.values(), *manifest.views.values()]))
    wanted = views_of(definition.script)
    for name, view in wanted.items():
        if name in known and (known[name].blocks, known[name].combined) != (view.blocks, view.combined):
            raise CheckpointError(
                f"view {name} has another SELECT than in this checkpoint; give the new one another name, "
                "or run once without it, which drops the old one"
            )
    return [name for name in wanted if name not in known]


def _short(sql: str) -> str:
    return " ".join(sql.split())


def collect(
    root: Path,
    manifests: Manifests,
    versions: int = KEEP_VERSIONS,
    states: int = KEEP_STATES,
    orphan_seconds: float = ORPHAN_SECONDS,
) -> int:
    """Delete manifests but the last ``versions``, and files that no remaining manifest needs; return the number of
    files deleted.

    A file that no manifest names may belong to a version in progress, so only old ones are deleted. A file whose
    versions have no state any more is deleted at once.
    """
    kept = manifests.versions()
    for version in kept[:-versions]:
        (manifests.folder / f"{version:012d}.json").unlink(missing_ok=True)
    kept = kept[-versions:]
    needed: set[str] = set()
    named: set[str] = set()
    now = time.time()
    for place, version in enumerate(kept):
        manifest = manifests.read(version)
        named |= manifest.files()
        with_state = place >= len(kept) - states or manifest.time > now - READ_SECONDS
        needed |= manifest.files() if with_state else manifest.files() - manifest.state_files()
    old = now - orphan_seconds
    gone = 0
    for folder in _FOLDERS:
        for path in list((root / folder).rglob("*")):
            names = _names(root, path)
            with suppress(FileNotFoundError):  # a child that writes an image renames it
                if path.is_file() and not names & needed and (names & named or path.stat().st_mtime < old):
                    path.unlink()
                    gone += 1
    for path in (root / "state").glob(f"*/{IMAGE}*"):
        with suppress(OSError):  # not empty
            if str(path.relative_to(root)) not in needed and path.stat().st_mtime < old:
                path.rmdir()
    return gone


def _names(root: Path, path: Path) -> set[str]:
    """The names by which a manifest may refer to a file: its own, and that of the image that contains it."""
    folder = path.parent.relative_to(root)
    return {str(path.relative_to(root)), str(folder), str(folder).removesuffix(TEMPORARY)}
