"""Reads the contents or the change of a view at a committed version, and the status of a pipeline.

Everything is read from the checkpoint. Reading needs no Spark, and does not disturb a running pipeline.
"""

from __future__ import annotations

import json
import time
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from freshviews.catalog.catalog import unknown
from freshviews.catalog.kept_rings import aggregates_in
from freshviews.errors import CatalogError, StoreError
from freshviews.records import dataclass
from freshviews.spark.definition import Definition, catalog_of, views_of
from freshviews.spark.reading.arrival import waiting
from freshviews.spark.state.bundle import read_all, read_change
from freshviews.spark.state.delivered import Delivered
from freshviews.spark.state.growth import replaced_views
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.runs import Runs, is_running, runs_of
from freshviews.spark.state.spark_files import files_at
from freshviews.spark.state.stores.store import Store
from freshviews.types.columns import arrow_type
from freshviews.types.sorting import sorted_rows

if TYPE_CHECKING:
    from freshviews.catalog.definitions import ViewDef
    from freshviews.spark.layout.layout import Layout


@dataclass(frozen=True)
class Status:
    """The status of a pipeline."""

    version: int
    batch: int
    age: float
    """Seconds since the last version was committed."""
    lag: float
    """Seconds from the arrival of the last version's newest input until it was committed."""
    tables: dict[str, dict[str, int]]
    """Per table, in total: ``rows`` taken, ``bad`` rows set aside, and ``bytes`` stored."""
    views: dict[str, dict[str, int]]
    """Per view: ``changed`` rows in total, ``bytes`` stored, and its ``rows``, which are absent if an older release
    began the view."""
    delivered: int
    running: bool | None
    """True while a process runs the pipeline; None if the store has no locks, so it is unknown."""
    error: str | None
    """The error that ended the last run; None if it was stopped or still runs."""
    waiting: dict[str, int]
    """Per table read from a folder, the files that are in no planned micro-batch."""
    filling: tuple[str, ...]
    """Views of the script that the last version lacks; a running pipeline is backfilling them."""
    starts: int
    """Runs of the checkpoint that began."""
    sinks: dict[str, dict[str, int]]
    """Per view of the script with a sink: ``backlog``, committed versions that the sink does not have, and
    ``failures``, how often it refused one."""
    refused: dict[str, str] = field(default_factory=dict)
    """Per view whose sink refused the last version and still lacks it: the error."""
    cells: dict[str, int] = field(default_factory=dict)
    """Per cell, and for the merge, the bytes that its tables and views take."""
    refilling: tuple[str, ...] = ()
    """Views that have another SELECT in the script than in the last version, and those that read such a view; a running
    pipeline is backfilling them, and the last version has them as they were."""
    cells_loaded: int = 0
    """Cells that workers read from files for the last version; 0 in a run without failures, after its first one."""
    cells_moved: int = 0
    """Cells that another process had for the version before."""


def latest(store: Store) -> Manifest:
    """The last committed version of a checkpoint. Raises StoreError if there is none."""
    manifests = Manifests(store)
    while True:
        versions = manifests.versions()
        if not versions:
            error = last_error(store)
            remedy = "run the pipeline first" if error is None else f"its last run ended: {error}"
            raise StoreError(f"{store.address} has no version yet; {remedy}")
        try:
            return manifests.read(versions[-1])
        except StoreError:
            # The manifest was collected between two reads, so there are newer ones.
            if manifests.versions()[-1:] in ([], versions[-1:]):
                raise


def view_schema(manifest: Manifest, view: str) -> tuple[str, pa.Schema]:
    """A view's name as defined, and its columns. Raises CatalogError if there is no such view."""
    found = catalog(manifest)
    for name, definition in found.items():
        if name.lower() == view.lower():
            return name, pa.schema([pa.field(c.name, arrow_type(c.type)) for c in definition.columns])
    raise CatalogError(unknown("view", view, found))


def contents(store: Store, manifest: Manifest, view: str, *, keep_cells: bool = False) -> pa.Table:
    """The contents of a view at a version. If the version stores them for a sink, they are read; else its cells are
    loaded, so the cost grows with the state.

    ``keep_cells``: the cells stay in the memory of this process; then the contents of a later version cost its change,
    and other threads must wait. The rows are in the order of the view's ORDER BY if it shows the columns of the order,
    or one database holds the view.
    """
    name, schema = view_schema(manifest, view)
    # The status needs no plan of the cells, and stored contents need no engine: both take long to import.
    from freshviews.spark.layout.layout import layout_of

    layout = layout_of(manifest)
    parts = _stored(store, manifest, layout, name)
    if parts is None:
        from freshviews.spark.reading.computed import parts_of

        parts = parts_of(store, manifest, layout, name, keep_cells)
    rows = pa.concat_tables(parts).cast(schema) if parts else schema.empty_table()
    order = catalog(manifest)[name].order
    if len(parts) < 2 or order is None or order.places is None or order.relation:
        return rows
    keys = [(rows.column(p.column), p.descending, p.nulls_last) for p in order.places]
    return rows.take(sorted_rows([*keys, *((column, False, False) for column in rows.columns)]))


def _stored(store: Store, manifest: Manifest, layout: Layout, view: str) -> list[pa.Table] | None:
    """The contents that a version has for a sink, a table per part; None if it lacks a part of them."""
    files = manifest.contents.get(view)
    if not files or not files.keys() >= layout.parts(view):
        return None
    found = (read_all(store, [name]) for _, name in sorted(files.items()))
    return [one for one in found if one is not None]


def changes(store: Store, manifest: Manifest, view: str) -> pa.Table | None:
    """The change of a view at a version: its columns and ``_multiplicity``; None if nothing changed."""
    return read_change(store, manifest.changes.get(view, []))


def status(store: Store, definition: Definition | None = None) -> Status:
    """The status of a checkpoint's pipeline; ``definition`` names the places of its files.

    Raises StoreError if it has no version yet.
    """
    # Read in this order: a version committed meanwhile makes the counts older than the state, which is safe.
    delivered = Delivered(store)
    running = is_running(store)
    error = last_error(store)
    runs = runs_of(store)
    manifest = latest(store)
    totals = manifest.totals
    return Status(
        manifest.version,
        manifest.batch,
        time.time() - manifest.time,
        manifest.lag,
        {
            name: {
                "rows": totals.get("rows", {}).get(name, 0),
                "bad": totals.get("bad", {}).get(name, 0),
                "bytes": manifest.bytes.get(name, 0),
            }
            for name in manifest.tables
        },
        {
            name: {
                "changed": totals.get("changed", {}).get(name, 0),
                "bytes": manifest.bytes.get(name, 0),
                **({"rows": manifest.stored[name]} if name in manifest.stored else {}),
            }
            for name in manifest.views
        },
        delivered.version,
        running,
        error,
        _waiting(store, manifest, definition),
        definition.added(manifest.views) if definition is not None else (),
        runs.starts,
        _sinks(manifest, delivered, definition, runs),
        runs.refused,
        {cell: sum(held.values()) for cell, held in manifest.sizes.items()},
        _refilling(manifest, definition),
        manifest.cells_loaded,
        manifest.cells_moved,
    )


def _refilling(manifest: Manifest, definition: Definition | None) -> tuple[str, ...]:
    if definition is None:
        return ()
    if not manifest.rings and all(view.sql == manifest.views.get(view.name, view.sql) for view in definition.views):
        return ()
    return tuple(replaced_views(catalog_of(manifest.script, manifest.aggregates), definition.catalog))


def _sinks(
    manifest: Manifest, delivered: Delivered, definition: Definition | None, runs: Runs
) -> dict[str, dict[str, int]]:
    # A version is delivered before the next one begins, so only the last one can be missing, except for sinks behind.
    due = {*manifest.changes, *manifest.gone, *manifest.anew} if delivered.version < manifest.version else set()
    due -= set(runs.have) if runs.part == manifest.version else set()
    waiting = dict.fromkeys(due, 1) | {
        view: max(0, manifest.version + 1 - first) for view, first in delivered.behind.items()
    }
    return {
        view.name: {"backlog": waiting.get(view.name, 0), "failures": runs.failures.get(view.name, 0)}
        for view in (definition.views if definition is not None else ())
        if view.provider is not None
    }


def _waiting(store: Store, manifest: Manifest, definition: Definition | None) -> dict[str, int]:
    streaming = manifest.sources or []
    tables = [table for table in definition.tables if table.name in streaming] if definition is not None else []
    if not tables:
        return {}
    with files_at(store, manifest.spark) as folder:
        found = {table.name: waiting(folder, streaming.index(table.name), table) for table in tables}
    return {name: count for name, count in found.items() if count is not None}


def last_error(store: Store) -> str | None:
    """The error that ended the last run."""
    try:
        return store.read("error").decode() or None
    except FileNotFoundError:
        return None


def catalog(manifest: Manifest) -> dict[str, ViewDef]:
    """The views of a version by name."""
    return _views_of(manifest.script, json.dumps(manifest.rings))


@lru_cache(16)
def _views_of(script: str, rings: str) -> dict[str, ViewDef]:
    """The versions of a run have the same script and rings."""
    return views_of(script, aggregates_in(json.loads(rings)))
