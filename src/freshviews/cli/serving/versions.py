"""Reads views of a checkpoint at committed versions, for many readers in one process."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from freshviews.asking import Limits, SelectProcesses
from freshviews.catalog.kept_rings import aggregates_in
from freshviews.catalog.rings import known_as
from freshviews.cli.planned_script import plan_script, reduced_to
from freshviews.errors import CatalogError, FreshviewsError, NameProblem, StoreError
from freshviews.plan.explain import explain
from freshviews.spark.reading.contents import contents, latest, view_schema
from freshviews.spark.reading.select import selected
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.store import Store

_R = TypeVar("_R")

KEPT_BYTES = 512 << 20
PATIENCE = 20.0
"""Seconds that a reader waits for another reader."""
TRIES = 5
"""Versions that a reader tries, each newer than the one before."""
SELECT_SECONDS = 10.0
"""Seconds that a SELECT may take, and ``MOST_BYTES`` of the rows that it may return."""
MOST_BYTES = 256 << 20
LONGEST_SELECT = 4000
"""Most characters of a SELECT: its cost grows with its length."""


class Refused(Exception):
    """A request that is refused: the status and a message."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Gone(Refused):
    """The state of a version is collected."""

    def __init__(self, version: int) -> None:
        message = f"the state of version {version} has been deleted; read the last version"
        super().__init__(HTTPStatus.GONE, message)


class Versions:
    """The versions of a checkpoint that can be read. All methods raise Refused.

    Loaded cells advance to the next version by their log, so a new version costs only its changes. Contents of views
    are cached, up to ``KEPT_BYTES``. Only one thread at a time loads cells or runs a SELECT.

    A reader who names no version gets the last committed version, or a newer version that is already loaded. The
    pipeline may delete the state of a version before it is read. Then a newer version is tried, at most ``TRIES``
    versions in all.
    """

    def __init__(self, store: Store, processes: SelectProcesses) -> None:
        """``processes``: answer the SELECTs of ``select``."""
        self.store = store
        self._processes = processes
        self._computing = Lock()
        self._kept: OrderedDict[tuple[int, float, str], pa.Table] = OrderedDict()
        self._last: Manifest | None = None

    def at(self, version: int | None) -> Manifest:
        """A version; None: the last one."""
        try:
            return latest(self.store) if version is None else Manifests(self.store).read(version)
        except StoreError as error:
            status = HTTPStatus.SERVICE_UNAVAILABLE if version is None else HTTPStatus.GONE
            raise Refused(status, str(error)) from None

    def rows(self, version: int | None, name: str) -> tuple[Manifest, str, pa.Table]:
        """A version, the name of a view in it, and the view's contents."""

        def find(manifest: Manifest) -> str:
            try:
                return view_schema(manifest, name)[0]
            except CatalogError as error:
                raise Refused(HTTPStatus.NOT_FOUND, str(error)) from None

        def read(manifest: Manifest) -> tuple[Manifest, str, pa.Table]:
            view = find(manifest)
            known = self._kept.get((manifest.version, manifest.time, view))
            if known is not None:
                return manifest, view, known
            with self._exclusive():
                manifest = self._newest(manifest, version)
                view = find(manifest)
                return manifest, view, self._rows(self.store, manifest, view)

        return self._read_at(version, read)

    def select(self, version: int | None, sql: str) -> tuple[Manifest, pa.Table]:
        """A version, and the result of a SELECT over its views."""
        if len(sql) > LONGEST_SELECT:
            raise Refused(HTTPStatus.BAD_REQUEST, f"a SELECT of at most {LONGEST_SELECT} characters is accepted")

        def read(manifest: Manifest) -> tuple[Manifest, pa.Table]:
            with self._exclusive():
                manifest = self._newest(manifest, version)
                return manifest, self._selected(manifest, sql)

        return self._read_at(version, read)

    def _read_at(self, version: int | None, read: Callable[[Manifest], _R]) -> _R:
        """The result of ``read`` at a version. If the last version is collected meanwhile, reads a newer one."""
        for _ in range(TRIES - 1):
            try:
                return read(self.at(version))
            except Gone:
                if version is not None:
                    raise
        return read(self.at(version))

    def _newest(self, manifest: Manifest, version: int | None) -> Manifest:
        """The version to read now: a newer one if another thread has read it meanwhile."""
        last = self._last
        if version is not None or last is None or last.version <= manifest.version:
            return manifest
        manifest = self.at(None)
        if manifest.version < last.version:
            # The checkpoint was deleted and replaced by a new one.
            self._kept.clear()
            self._last = None
        return manifest

    def _selected(self, manifest: Manifest, sql: str) -> pa.Table:
        try:
            limits = Limits(SELECT_SECONDS, MOST_BYTES)
            return selected(self.store, manifest, sql, self._rows, limits, (), self._processes)
        except NameProblem as error:
            raise Refused(HTTPStatus.NOT_FOUND, str(error)) from None
        except FreshviewsError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None

    def _rows(self, store: Store, manifest: Manifest, view: str) -> pa.Table:
        key = (manifest.version, manifest.time, view)
        if key not in self._kept:
            # Reading an older version must not move the cells back: the next newer one needs all of them.
            newest = self._last is None or manifest.version >= self._last.version
            try:
                self._kept[key] = contents(store, manifest, view, keep_cells=newest)
            except (FileNotFoundError, StoreError):
                raise Gone(manifest.version) from None
            if newest:
                self._last = manifest
            while len(self._kept) > 1 and sum(table.nbytes for table in self._kept.values()) > KEPT_BYTES:
                self._kept.popitem(last=False)
        return self._kept[key]

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if not self._computing.acquire(timeout=PATIENCE):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "another request is being computed; try again")
        try:
            yield
        finally:
            self._computing.release()


def plan_text(manifest: Manifest, view: str) -> str:
    """The text of EXPLAIN for a view."""
    return _plan_text(manifest.script, view, json.dumps(manifest.rings))


@lru_cache(64)
def _plan_text(script: str, view: str, rings: str) -> str:
    with known_as(aggregates_in(json.loads(rings))):
        return "\n".join(explain(one.view, one.plans, {}) for one in reduced_to(plan_script(script), view).views)
