"""A version to all its sinks: what one of them refuses keeps it from no other.

A sink outside of this machine may refuse for a while, so it is tried again; each refusal is logged with its cause. If
it does not take the version, the run ends when all others have had it; the next run gives it to that sink alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from freshviews.spark.connectors.declarations import COMPLETE, connector_of
from freshviews.spark.definition import Definition, ViewSpec
from freshviews.spark.io.sink_files import FORMATS
from freshviews.spark.io.sinks import Due, Receiver, SinkError, deliver, publish_bad
from freshviews.spark.state.bundle import read_all, read_change
from freshviews.spark.state.identity import identity_of
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.runs import note_failure, note_part, runs_of
from freshviews.spark.state.stores.store import Store

_LOGGER = logging.getLogger("freshviews")

WAITS = (1.0, 5.0)
"""Seconds before each further try."""


@dataclass(frozen=True)
class Sinks:
    """The sinks of a pipeline. ``receivers``: functions of the user, by view."""

    spark: SparkSession
    store: Store
    receivers: Mapping[str, Receiver]


def deliver_all(
    sinks: Sinks, definition: Definition, manifest: Manifest, again: bool, stopped: Callable[[], bool]
) -> None:
    """Deliver a version. ``again``: a run before may have delivered it, or a part. ``stopped``: try no more.

    Raises SinkError with every refusal, when all sinks have had their turn.
    """
    before = runs_of(sinks.store)
    have = set(before.have) if again and before.part == manifest.version else set()
    refused: dict[str, SinkError] = {}
    for view in definition.views:
        rows = None if view.name in have else _rows(sinks, view, manifest)
        if rows is not None:
            error = _tried(sinks, view, rows, manifest, again, stopped)
            if error is None:
                have.add(view.name)
            else:
                refused[view.name] = error
    errors = [*refused.values(), *_set_aside(sinks.store, definition, manifest)]
    if errors or before.part:
        causes = {name: error.cause for name, error in refused.items()}
        note_part(sinks.store, manifest.version if errors else 0, have if errors else (), causes)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SinkError("; ".join(map(str, errors)))


def _rows(sinks: Sinks, view: ViewSpec, manifest: Manifest) -> pa.Table | None:
    """The change of a view at a version, or its contents; None if its sink gets nothing."""
    if view.name not in sinks.receivers and view.provider is None:
        return None
    if view.output == COMPLETE:
        if view.name not in manifest.anew:
            return None
        return read_all(sinks.store, list(manifest.contents[view.name].values()))
    rows = read_change(sinks.store, manifest.changes.get(view.name, []))
    return rows if rows is not None and rows.num_rows else None


def _tried(
    sinks: Sinks, view: ViewSpec, rows: pa.Table, manifest: Manifest, again: bool, stopped: Callable[[], bool]
) -> SinkError | None:
    """The refusal of a sink; None if it has the version."""
    receiver = sinks.receivers.get(view.name)
    identity = identity_of(sinks.store) if connector_of(view.provider).tables else ""
    elsewhere = receiver is None and view.provider not in (*FORMATS, "console")
    for wait in (*(WAITS if elsewhere else ()), None):
        try:
            deliver(sinks.spark, view, rows, Due(manifest.version, again, manifest.time, identity), receiver)
            return None
        except SinkError as error:
            note_failure(sinks.store, view.name)
            if wait is None or not error.passes or stopped():
                return error
            _LOGGER.warning("view %s, version %d: %s; trying again", view.name, manifest.version, error.cause)
            time.sleep(wait)
            again = True
    raise AssertionError


def _set_aside(store: Store, definition: Definition, manifest: Manifest) -> list[SinkError]:
    """Give the rows that a version set aside to the user's folders; the refusals."""
    refused = []
    for table in definition.tables:
        for name in manifest.bad.get(table.name, []):
            if table.bad_rows is not None:
                try:
                    publish_bad(store.read(name), Path(table.bad_rows), table.name, manifest.version)
                except SinkError as error:
                    refused.append(error)
    return refused
