"""Delivers versions to all sinks; if one sink refuses a version, the others still get it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, current_thread

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from freshviews.records import dataclass
from freshviews.spark.connectors.declarations import COMPLETE, UPSERT, connector_of
from freshviews.spark.definition import Definition, ViewSpec
from freshviews.spark.io.sink_kinds.key_changes import with_gone
from freshviews.spark.io.sink_kinds.sink_files import FORMATS
from freshviews.spark.io.sinks import Due, Receiver, SinkError, deliver, publish_bad
from freshviews.spark.state.begun import begun, forget_others, note_begun
from freshviews.spark.state.bundle import read_all, read_change
from freshviews.spark.state.delivered import Delivered
from freshviews.spark.state.identity import identity_of
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.runs import note_failure, note_part, note_refused, runs_of
from freshviews.spark.state.stores.store import Store

_LOGGER = logging.getLogger("freshviews")

WAITS = (1.0, 5.0)
"""Seconds before each further try."""
PAUSES = (5.0, 60.0)
"""Seconds between two tries of a sink that is behind: at first, and at most."""
_LONGEST = 180.0
"""Seconds that the end of a run waits for a sink that is being tried."""
MOST_BEHIND = 1_000
"""Versions that a sink may be behind before the run ends."""


@dataclass(frozen=True)
class Sinks:
    """The sinks of a pipeline. ``receivers``: functions of the user, by view."""

    spark: SparkSession
    store: Store
    manifests: Manifests
    receivers: Mapping[str, Receiver]


class Deliveries:
    """The delivery of the versions of one run. ``patient``: the run continues while a sink is behind.

    A refused delivery is retried, and each refusal is logged. If all retries fail, the sink is *behind*. A continuous
    run then continues, while a thread retries until the sink has every version, in order. A run that is not continuous
    delivers the version to all other sinks, and then ends with an error. The next run delivers the version to the
    refusing sink alone.

    A delivery is recorded after the sink has the version, so a crash may lead to a second delivery: see ``sinks``.
    """

    def __init__(self, sinks: Sinks) -> None:
        self.patient = False
        self._sinks = sinks
        self._delivered = Delivered(sinks.store)
        self._lock = Lock()
        """Held while the next two are read or changed together."""
        self._latest = 0
        self._behind: dict[str, int] = dict(self._delivered.behind)
        self._refused: dict[str, str] = {}
        self._failed: Exception | None = None
        self._stopping = Event()
        self._chasing: dict[str, InheritableThread] = {}

    @property
    def version(self) -> int:
        """The last version that was offered to every sink."""
        return self._delivered.version

    @property
    def oldest(self) -> int | None:
        """The oldest version that is needed for sinks that are behind: the one before the first missing version. None
        if no sink is behind."""
        with self._lock:
            return min((version - 1 for version in self._behind.values()), default=None)

    def resume(self, definition: Definition, latest: Manifest, stopped: Callable[[], bool]) -> None:
        """Continue after an earlier run: deliver missing versions to sinks that are behind, and the ``latest`` version
        to all sinks that may lack it. Raises SinkError in a run that is not patient."""
        self._latest = self.version
        views = {view.name: view for view in definition.views if _has_sink(self._sinks, view)}
        forget_others(self._sinks.store, views)
        for name in [name for name in self._behind if name not in views]:
            del self._behind[name]
        errors: list[SinkError] = []
        for name in list(self._behind):
            if self.patient:
                self._chase(views[name])
                continue
            try:
                self._catch_up(views[name], stopped)
            except SinkError as error:
                errors.append(error)
        if self.version < latest.version:
            self.deliver(definition, latest, stopped, again=True)
        if errors:
            raise SinkError("; ".join(map(str, errors)))

    def deliver(
        self, definition: Definition, manifest: Manifest, stopped: Callable[[], bool], again: bool = False
    ) -> None:
        """Deliver a version. ``again``: an earlier run may have delivered it, or a part. ``stopped``: do not try again.

        Raises SinkError with all refusals, after every sink was tried.
        """
        if self._failed is not None:
            raise self._failed
        store = self._sinks.store
        before = runs_of(store)
        have = set(before.have) if again and before.part == manifest.version else set()
        refused: dict[str, SinkError] = {}
        fallen: list[ViewSpec] = []
        with self._lock:
            self._latest = manifest.version
            behind = dict(self._behind)
        for view in definition.views:
            skipped = view.name in have or view.name in behind
            rows = None if skipped else _rows(self._sinks, view, manifest)
            if rows is None and not skipped:
                _begin_table(self._sinks, view, manifest)
            if rows is not None:
                error = _refusal_after_tries(self._sinks, view, rows, manifest, again, stopped)
                if error is None:
                    have.add(view.name)
                elif self.patient and error.passes and _is_elsewhere(self._sinks, view) and not stopped():
                    _LOGGER.warning(
                        "view %s, version %d: %s; the run continues, and tries again until the sink has every version",
                        view.name, manifest.version, error.cause,
                    )  # fmt: skip
                    self._refused[view.name] = error.cause
                    fallen.append(view)
                else:
                    refused[view.name] = error
        errors = [*refused.values(), *_set_aside(store, definition, manifest)]
        if errors or before.part:
            causes = {name: error.cause for name, error in refused.items()}
            note_part(store, manifest.version if errors else 0, have if errors else (), {**self._refused, **causes})
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise SinkError("; ".join(map(str, errors)))
        with self._lock:
            behind = self._behind | dict.fromkeys((view.name for view in fallen), manifest.version)
            self._delivered.note(manifest.version, behind)
            self._behind = behind
        if behind:
            note_refused(store, self._refused)
        for view in fallen:
            self._chase(view, PAUSES[0])
        for name, first in behind.items():
            # A sink that accepts versions again may catch up.
            if manifest.version - first >= MOST_BEHIND and name in self._refused:
                cause = self._refused[name]
                raise SinkError(
                    f"the sink of view {name} lacks {MOST_BEHIND} versions, from version {first} on: {cause}"
                )

    def stop(self) -> None:
        """Stop trying sinks that are behind. Waits for tries under way, but not if called from one: another run may
        follow at once."""
        self._stopping.set()
        for thread in list(self._chasing.values()):
            if thread is not current_thread():
                thread.join(_LONGEST)

    def _chase(self, view: ViewSpec, pause: float = 0.0) -> None:
        """Deliver missing versions to a sink, in a thread of its own, until it has all; first after a ``pause``."""

        def chase() -> None:
            wait = pause
            while not self._stopping.wait(wait):
                try:
                    self._catch_up(view, self._stopping.is_set)
                    return
                except Exception as error:
                    if not isinstance(error, SinkError) or not error.passes:
                        _LOGGER.warning("view %s: its sink is not tried again: %s", view.name, error)
                        self._failed = error
                        return
                    self._refused[view.name] = error.cause
                    note_refused(self._sinks.store, self._refused)
                    wait = min(max(2 * wait, PAUSES[0]), PAUSES[1])
                    _LOGGER.warning("view %s: %s; trying again in %d seconds", view.name, error.cause, wait)

        thread = InheritableThread(target=chase, daemon=True)
        thread.start()
        self._chasing[view.name] = thread

    def _catch_up(self, view: ViewSpec, stopped: Callable[[], bool]) -> None:
        """Deliver every version that a sink lacks, in order. Raises SinkError if it refuses one, and StoreError."""
        again = True
        while not stopped():
            with self._lock:
                version = self._behind[view.name]
                if version > self._latest:
                    behind = {name: first for name, first in self._behind.items() if name != view.name}
                    self._delivered.note(self.version, behind)
                    self._behind = behind
                    self._refused.pop(view.name, None)
                    break
            manifest = self._sinks.manifests.read(version)
            rows = _rows(self._sinks, view, manifest)
            if rows is None:
                _begin_table(self._sinks, view, manifest)
            error = None if rows is None else _refusal_of_try(self._sinks, view, rows, manifest, again)
            if error is not None:
                raise error
            again = False
            with self._lock:
                behind = {**self._behind, view.name: version + 1}
                self._delivered.note(self.version, behind)
                self._behind = behind
                self._refused.pop(view.name, None)
        else:
            return
        note_refused(self._sinks.store, self._refused)
        _LOGGER.warning("view %s: its sink has every version again", view.name)


def _rows(sinks: Sinks, view: ViewSpec, manifest: Manifest) -> pa.Table | None:
    """The change of a view at a version, or its contents; None if its sink gets nothing."""
    if not _has_sink(sinks, view):
        return None
    if view.output == COMPLETE:
        if view.name not in manifest.anew:
            return None
        return read_all(sinks.store, list(manifest.contents[view.name].values()))
    rows = read_change(sinks.store, manifest.changes.get(view.name, []))
    gone = read_change(sinks.store, manifest.gone.get(view.name, [])) if view.output == UPSERT else None
    if gone is not None and view.written is not None:
        rows = with_gone(rows, gone, view.written.key)
    return rows if rows is not None and rows.num_rows else None


def _has_sink(sinks: Sinks, view: ViewSpec) -> bool:
    return view.provider is not None or view.name in sinks.receivers


def _is_elsewhere(sinks: Sinks, view: ViewSpec) -> bool:
    """True if the sink of a view is outside of this machine."""
    return view.name not in sinks.receivers and view.provider not in (*FORMATS, "console")


def _refusal_after_tries(
    sinks: Sinks, view: ViewSpec, rows: pa.Table, manifest: Manifest, again: bool, stopped: Callable[[], bool]
) -> SinkError | None:
    """The refusal of a sink; None if it has the version."""
    for wait in (*(WAITS if _is_elsewhere(sinks, view) else ()), None):
        error = _refusal_of_try(sinks, view, rows, manifest, again)
        if error is None or wait is None or not error.passes or stopped():
            return error
        _LOGGER.warning("view %s, version %d: %s; trying again", view.name, manifest.version, error.cause)
        time.sleep(wait)
        again = True
    raise AssertionError


def _refusal_of_try(sinks: Sinks, view: ViewSpec, rows: pa.Table, manifest: Manifest, again: bool) -> SinkError | None:
    """The refusal of a sink after one try; None if it has the version. Raises OSError of the store."""
    due = Due(manifest.version, again, manifest.time)
    is_table = _is_table(sinks, view)
    try:
        if is_table:
            known = begun(sinks.store).get(view.name)
            if known is None and view.output != COMPLETE and not _is_new(sinks, view, manifest):
                raise SinkError(
                    f"view {view.name}, version {manifest.version}: the view is older than its sink table, so the "
                    "sink table would lack rows; give the view another name, or begin with a new checkpoint"
                )
            due = replace(due, checkpoint=identity_of(sinks.store), begun=bool(known))
        deliver(sinks.spark, view, rows, due, sinks.receivers.get(view.name))
    except SinkError as error:
        note_failure(sinks.store, view.name)
        return error
    if is_table and not due.begun:
        note_begun(sinks.store, view.name, True)
    return None


def _begin_table(sinks: Sinks, view: ViewSpec, manifest: Manifest) -> None:
    """Record that the table of a view has its first version, which has no rows."""
    if _is_table(sinks, view) and view.name not in begun(sinks.store) and _is_new(sinks, view, manifest):
        note_begun(sinks.store, view.name, False)


def _is_table(sinks: Sinks, view: ViewSpec) -> bool:
    return view.name not in sinks.receivers and connector_of(view.provider).keeps


def _is_new(sinks: Sinks, view: ViewSpec, manifest: Manifest) -> bool:
    """True if a version is the view's first."""
    return manifest.version == 1 or view.name not in sinks.manifests.read(manifest.version - 1).views


def _set_aside(store: Store, definition: Definition, manifest: Manifest) -> list[SinkError]:
    """Write the rows that a version set aside to the user's folders; returns the refusals."""
    refused = []
    for table in definition.tables:
        for name in manifest.bad.get(table.name, []):
            if table.bad_rows is not None:
                try:
                    publish_bad(store.read(name), Path(table.bad_rows), table.name, manifest.version)
                except SinkError as error:
                    refused.append(error)
    return refused
