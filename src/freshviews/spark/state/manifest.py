"""Writes and reads manifests. The manifest of a version is one object that names all state and output of the version.

A version is committed if and only if its manifest exists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field, fields
from typing import Any

from freshviews.catalog.kept_rings import aggregates_in
from freshviews.catalog.rings import RingAggregate
from freshviews.errors import StoreError
from freshviews.records import dataclass
from freshviews.spark.crash_points import reach
from freshviews.spark.state.bundle import object_of
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of

FORMAT = 4
_FOLDER = "manifest/"


@dataclass(frozen=True)
class Manifest:
    """A committed version.

    ``batch``: Spark's number of the last micro-batch in it (-1: none yet); ``query``: the id of the streaming query
    that counted it. ``tables``, ``views``: the SQL of each by name. ``ordered``: the SQL of all in its order, where a
    table got columns after a view. ``sources``: the streaming tables, in Spark's order, once a micro-batch is in;
    ``loaded``: tables of batch sources. ``plan``: which rows go to which cell (``freshviews.cells``). ``cells``: each
    cell, and the merge, to its state; ``sizes``: to the bytes of each of its tables and views. ``changes[view]``: files
    of the view's change at this version. ``contents[view]``: its contents by part, if its sink needs them; ``anew``:
    the parts that are new. ``bad[table]``: rows set aside. ``rows``: input rows per table. ``changed``: rows of each
    view's change. ``arrived``: when the newest input arrived, if known. ``polled[table]``: the position of a table that
    is polled (``io.polled``). ``stored``: rows of each view, absent where an older release began the view. ``spark``:
    objects with Spark's own files (``state.spark_files``). ``keys``: the columns of the key of each view that is
    delivered by it. ``refilled``: views that have another SELECT from this version on. ``gone[view]``: if such a view
    has other columns, the files of its old rows, which its change does not take back. ``rings``: users' rings that the
    views have aggregates over, by lower-case name (``freshviews.catalog.kept_rings``).
    ``cells_loaded``: cells that workers read from files for this version; ``cells_moved``: those that were in another
    process before. ``totals``: counts since the beginning. ``clock``: the time that views read at this version, in
    microseconds since 1970 in UTC; None before a view has read it. Files are objects of the checkpoint's store, and
    sections of such (``state.bundle``).
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
    spark: list[str] = field(default_factory=list)
    call: str = ""
    ordered: str = ""
    polled: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, list[str]] = field(default_factory=dict)
    refilled: list[str] = field(default_factory=list)
    gone: dict[str, list[str]] = field(default_factory=dict)
    rings: dict[str, Any] = field(default_factory=dict)
    cells_loaded: int = 0
    cells_moved: int = 0
    clock: int | None = None

    @property
    def script(self) -> str:
        """Plain SQL that creates the tables and views."""
        return self.ordered or ";\n".join([*self.tables.values(), *self.views.values()])

    @property
    def aggregates(self) -> dict[str, RingAggregate]:
        """The aggregates over users' rings in its script. Raises StoreError if they are stored in another form."""
        return aggregates_in(self.rings)

    @property
    def lag(self) -> float:
        """Seconds from the arrival of the newest input to the commit; the seconds of the commit if the arrival is
        unknown."""
        return self.seconds if self.arrived is None else max(0.0, self.time - self.arrived)

    def files(self) -> set[str]:
        """Every object, and folder of objects, that the version needs."""
        contents = [list(files.values()) for files in self.contents.values()]
        known = [[one["known"]] for one in self.polled.values() if one["known"]]
        lists = [*self.changes.values(), *contents, *self.bad.values(), *self.gone.values(), *known]
        return {object_of(name) for names in lists for name in names} | self.state_files() | set(self.spark)

    def state_files(self) -> set[str]:
        """Objects of the cells' logs, and folders of their images."""
        found: set[str] = set()
        for cell in self.cells.values():
            found.update(object_of(name) for segment in cell["log"] for name in segment["files"].values())
            found.update(image["folder"] for image in (cell["image"], cell.get("pending")) if image)
        return found


def to_json(manifest: Manifest) -> bytes:
    """The object of a manifest. Its length grows with the cells, and it is written with every version."""
    held = {one.name: getattr(manifest, one.name) for one in fields(manifest)}
    return json.dumps({"format": FORMAT, **held}, separators=(",", ":")).encode()


class VersionExists(StoreError):
    """Another process has committed the version."""


class Manifests:
    """The manifests in a store, objects in ``manifest``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def versions(self) -> list[int]:
        """Committed versions that still exist, in order."""
        stems = (one.name.removeprefix(_FOLDER).removesuffix(".json") for one in self._store.list(_FOLDER))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def latest(self) -> Manifest | None:
        """The last committed version; None before the first. Raises StoreError if it cannot be read."""
        versions = self.versions()
        return self.read(versions[-1]) if versions else None

    def read(self, version: int) -> Manifest:
        """A committed version. Raises StoreError if it is missing or not readable."""
        where = f"{self._store.address}/{_name(version)}"
        try:
            found = json_of(self._store.read(_name(version)))
        except FileNotFoundError:
            raise StoreError(
                f"{self._store.address} does not have version {version}: the version was removed, or never existed"
            ) from None
        except (OSError, ValueError) as error:
            raise StoreError(f"{where} cannot be read: {error}") from None
        if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
            raise StoreError(f"{where} is of another release of freshviews; begin with a new checkpoint")
        try:
            return Manifest(**found)
        except TypeError as error:
            raise StoreError(f"{where} cannot be read: {error}") from None

    def commit(self, manifest: Manifest) -> None:
        """Commit a version; it is durable when this returns. Raises VersionExists if it is committed already."""
        try:
            self._store.write_if_absent(_name(manifest.version), to_json(manifest))
        except FileExistsError:
            raise VersionExists(
                f"version {manifest.version} was committed by another process: two pipelines run on one checkpoint; "
                "stop one of them"
            ) from None
        reach("manifest in place")

    def delete(self, versions: Iterable[int]) -> None:
        """Delete versions."""
        self._store.delete([_name(version) for version in versions])


def _name(version: int) -> str:
    return f"{_FOLDER}{version:012d}.json"
