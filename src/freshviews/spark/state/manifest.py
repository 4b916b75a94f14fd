"""Manifests: one small file per version, which names all state and output of that version.

A version is committed exactly if its manifest exists. A manifest is written to a temporary file, synced, and linked to
its name. A link to an existing name fails, so of two processes one commits the version and the other gets
VersionExists.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from freshviews.errors import StoreError
from freshviews.spark.crash_points import reach
from freshviews.store.files import sync_directory

FORMAT = 3


@dataclass(frozen=True)
class Manifest:
    """A committed version.

    ``batch``: Spark's number of the last micro-batch in it (-1: none yet); ``query``: the id of the streaming query
    that counted it. ``tables``, ``views``: the SQL of each by name. ``sources``: the streaming tables, in Spark's
    order, once a micro-batch is in; ``loaded``: tables of batch sources. ``plan``: which rows go to which cell
    (``freshviews.cells``). ``cells``: each cell, and the merge, to its state; ``sizes``: to the bytes of each of its
    tables and views. ``changes[view]``: files of the view's change at this version. ``contents[view]``: its contents by
    part, if its sink needs them; ``anew``: the parts that are new. ``bad[table]``: rows set aside. ``rows``: input rows
    per table. ``changed``: rows of each view's change. ``arrived``: when the newest input arrived, if known.
    ``stored``: rows of each view, absent where an older release began the view. ``totals``: counts since the
    beginning. File names are relative to the checkpoint.
    """

    version: int
    batch: int
    query: str | None
    time: float
    tables: dict[str, str]
    views: dict[str, str]
    sources: list[str] | None = None
    loaded: list[str] = field(default_factory=list)
    plan: str = ""
    cells: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    changes: dict[str, list[str]] = field(default_factory=dict)
    contents: dict[str, dict[str, str]] = field(default_factory=dict)
    anew: list[str] = field(default_factory=list)
    bad: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    arrived: float | None = None
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)

    @property
    def lag(self) -> float:
        """Seconds from the arrival of the newest input to the commit; the seconds of the commit if the arrival is
        unknown."""
        return self.seconds if self.arrived is None else max(0.0, self.time - self.arrived)

    def files(self) -> set[str]:
        """Every file, and folder of files, that the version names."""
        contents = [list(files.values()) for files in self.contents.values()]
        lists = [*self.changes.values(), *contents, *self.bad.values()]
        return {name for names in lists for name in names} | self.state_files()

    def state_files(self) -> set[str]:
        """Files of the cells' logs, and folders of their images."""
        found: set[str] = set()
        for cell in self.cells.values():
            found.update(name for segment in cell["log"] for name in segment["files"].values())
            found.update(image["folder"] for image in (cell["image"], cell.get("pending")) if image)
        return found


class VersionExists(StoreError):
    """Another process has committed the version."""


class Manifests:
    """The manifests of a checkpoint, in ``<root>/manifest``."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "manifest"

    def versions(self) -> list[int]:
        """Committed versions that still exist, in order."""
        if not self.folder.exists():
            return []
        return sorted(int(path.stem) for path in self.folder.glob("*.json") if path.stem.isdigit())

    def latest(self) -> Manifest | None:
        """The last committed version; None before the first. Raises StoreError if it cannot be read."""
        versions = self.versions()
        return self.read(versions[-1]) if versions else None

    def read(self, version: int) -> Manifest:
        """A committed version. Raises StoreError if it is missing or not readable."""
        path = self._path(version)
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            raise StoreError(f"version {version} is not kept any more (or never was) in {self.folder}") from None
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}") from None
        if found.pop("format", None) != FORMAT:
            raise StoreError(f"{path} is of another release of freshviews; begin with a new checkpoint")
        return Manifest(**found)

    def commit(self, manifest: Manifest) -> None:
        """Commit a version; it is durable when this returns. Raises VersionExists if it is committed already."""
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = self.folder / f".{uuid.uuid4().hex}"
        text = json.dumps({"format": FORMAT, **asdict(manifest)}).encode()
        try:
            with aside.open("wb") as file:
                file.write(text[: len(text) // 2])
                reach("manifest half written")
                file.write(text[len(text) // 2 :])
                file.flush()
                os.fsync(file.fileno())
            reach("manifest written")
            try:
                os.link(aside, self._path(manifest.version))
            except FileExistsError:
                raise VersionExists(
                    f"version {manifest.version} was committed by another process: two pipelines run on one checkpoint"
                ) from None
        finally:
            aside.unlink(missing_ok=True)
        sync_directory(self.folder)
        reach("manifest in place")

    def _path(self, version: int) -> Path:
        return self.folder / f"{version:012d}.json"
