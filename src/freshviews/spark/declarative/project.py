"""Runs a project: Spark updates the streaming tables and sinks, and freshviews maintains the materialized views.

If the project allows it, Spark recomputes the materialized views that freshviews cannot maintain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from freshviews.errors import FreshviewsError
from freshviews.records import dataclass
from freshviews.spark.declarative.catalog import created, declare_tables, note_tables
from freshviews.spark.declarative.graph import (
    MATERIALIZED_VIEW,
    STREAMING_TABLE,
    TEMPORARY_VIEW,
    VIEW,
    Dataset,
    Graph,
    Selection,
)
from freshviews.spark.declarative.lost_rows import lost_rows
from freshviews.spark.declarative.registry import read_definitions
from freshviews.spark.declarative.spec import UNSUPPORTED, ProjectError, ProjectSpec
from freshviews.spark.declarative.state import begin_state, keep_state, root_of, state_at
from freshviews.spark.declarative.views import Views, ancestors, maintained
from freshviews.spark.io.java_errors import cause
from freshviews.spark.pipeline import Pipeline
from freshviews.spark.session import SPARK_ERRORS, reason
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.runs import LOCK, Held
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of

_WRITTEN = "written"
"""The object of the state that has, by table, the version that it was written at."""

Report = Callable[[Dataset, str], object]
"""Called with each table that was updated, and by what."""

Stage = Callable[[str], object]
"""Called with what the run does from now on."""

BY_SPARK, MAINTAINED, UNCHANGED = "updated by Spark", "maintained", "unchanged"


@dataclass(frozen=True)
class Project:
    """A project whose definitions are resolved, and what is maintained of it."""

    spark: SparkSession
    spec: ProjectSpec
    graph: Graph
    views: Views

    @classmethod
    def open(cls, spark: SparkSession, spec: ProjectSpec) -> Project:
        """Read and resolve the definitions. Raises ProjectError, also for a view that cannot be maintained."""
        try:
            declare_tables(spark, root_of(spec))
        except (OSError, *SPARK_ERRORS) as error:
            raise ProjectError(f"{spec.file}: the tables of earlier runs cannot be declared: {reason(error)}") from None
        graph = Graph(spark, spec, read_definitions(spec, spark))
        views = maintained(graph, spark)
        if views.refused and not spec.recomputes:
            raise ProjectError(
                f"{chr(10).join(views.refused.values())}\n{spec.file}: Spark recomputes such views at each run if the "
                f"configuration has {UNSUPPORTED}: recompute"
            )
        return cls(spark, spec, graph, views)

    def lost_rows(self, chosen: Selection) -> list[str]:
        """A message for each table and sink of which Spark leaves out rows."""
        return lost_rows(self.graph, self.spark, chosen)

    def run(
        self, chosen: Selection, report: Report, stage: Stage = lambda text: None, cells: int | None = None
    ) -> None:
        """Update the chosen tables from what has arrived. Raises ProjectError, and what ``Pipeline.start`` raises."""
        root = root_of(self.spec)
        try:
            held = Held(root)
        except OSError as error:
            raise ProjectError(
                f"{self.spec.file}: storage: {root.address} cannot be written: {error.strerror or error}; correct "
                "the owner or the credentials, or name another address"
            ) from None
        tables = [one for one in self.graph.datasets.values() if one.kind in (STREAMING_TABLE, MATERIALIZED_VIEW)]
        try:
            self._run(chosen, report, stage, cells)
            note_tables(self.spark, root, tables)
        except BaseException:
            with suppress(OSError, *SPARK_ERRORS):  # the error of the run says what is wrong
                note_tables(self.spark, root, tables)
            raise
        finally:
            held.close()

    def _run(self, chosen: Selection, report: Report, stage: Stage, cells: int | None) -> None:
        datasets = self.graph.datasets
        above = {key: ancestors(datasets, key) for key in datasets}
        # Views over the table of a view, as that is: it is not updated.
        over_old = {key for key in self.views.names if any(not chosen.has(one) for one in above[key] & self._kept)}
        due = {key for key in self._kept - over_old if chosen.has(key)}
        after = {
            key
            for key, one in datasets.items()
            if key not in self._kept and one.kind != STREAMING_TABLE and above[key] & self._kept
        }
        self._by_spark(set(datasets) - after - self._kept, chosen, report, stage, sinks=True)
        if due:
            self._maintain(due, chosen, report, stage, cells)
        after |= {key for key in over_old if chosen.has(key)}
        plain = {one for key in after for one in above[key] if datasets[one].kind == TEMPORARY_VIEW}
        self._by_spark(after | plain, chosen, report, stage, sinks=False)

    @property
    def _kept(self) -> set[str]:
        return {*self.views.names}

    def _by_spark(self, keys: set[str], chosen: Selection, report: Report, stage: Stage, *, sinks: bool) -> None:
        datasets = self.graph.datasets.items()
        tables = [d for key, d in datasets if key in keys and chosen.has(key) and d.kind not in (TEMPORARY_VIEW, VIEW)]
        if tables:
            stage(f"Spark updates {', '.join(one.name for one in tables)}")
        self.graph.run(keys, chosen, sinks=sinks)
        self._forget(keys & self._kept)
        for one in tables:
            report(one, BY_SPARK)

    def _forget(self, keys: set[str]) -> None:
        """Forget which version the tables of views have, as Spark has written them."""
        if keys:
            store = self._store()
            left = {key: version for key, version in _written(store).items() if key not in keys}
            store.write(_WRITTEN, json.dumps(left).encode())

    def _maintain(self, due: set[str], chosen: Selection, report: Report, stage: Stage, cells: int | None) -> None:
        """Bring all views up to date, and write the tables of those that are due."""
        store = self._store()
        if any(map(chosen.resets, due)):
            store.delete([found.name for found in store.list("") if found.name != LOCK])
        frames = {name: make() for name, make in self.views.frames.items()}
        root, name = root_of(self.spec), store.address.rpartition("/")[2]
        begin_state(root, name)
        pipeline = Pipeline.of(self.spark, self.views.definition, store.address, frames=frames, cells=cells)
        stage(f"{'going on with' if Manifests(store).versions() else 'making'} {', '.join(self.views.names.values())}")
        query = pipeline.start(once=True)
        stage(f"reading {', '.join(table.name for table in self.views.definition.tables)}")
        query.awaitTermination()
        failed = query.exception()
        if failed is not None:
            raise failed
        for key, view in self.views.names.items():
            if key in due:
                self._write(self.graph.datasets[key], view, pipeline, query.version, store, report, stage)
        keep_state(root, name)

    def _store(self) -> Store:
        """The place of the state, by what it is made from: another table, or a reset one, has another place."""
        tables = [(one.sql, one.changes) for one in self.views.definition.tables]
        when = [created(self.spark, one) for one in self.views.streams]
        made_from = json.dumps([sorted(tables), self.graph.generations(self.views.streams), when])
        return state_at(root_of(self.spec), hashlib.sha256(made_from.encode()).hexdigest()[:16])

    def _write(
        self, one: Dataset, name: str, pipeline: Pipeline, version: int, store: Store, report: Report, stage: Stage
    ) -> None:
        """Write the contents of a view to its table, unless the table has them."""
        written = _written(store)
        try:
            wanted, there = {field.name: field.dataType for field in one.schema.fields}, self._columns(one)
            if there == wanted and not _changed(store, name, written.get(one.key), version):
                report(one, UNCHANGED)
                return
            if there != wanted:
                self.graph.materialize(one)
            stage(f"writing {one.name}")
            # In the order of the table, whose partitions are its last columns.
            columns = [F.col(f"`{column}`").cast(wanted[column]) for column in self.spark.table(one.quoted).columns]
            pipeline.view(name).select(*columns).write.insertInto(one.quoted, overwrite=True)
        except SPARK_ERRORS as error:
            raise ProjectError(
                f"{one.place}: materialized view {one.name} could not be written to its table: {cause(error)}; correct "
                "the cause, then run again"
            ) from None
        store.write(_WRITTEN, json.dumps({**written, one.key: version}).encode())
        report(one, MAINTAINED)

    def _columns(self, one: Dataset) -> dict[str, Any] | None:
        """The columns of a table of the catalog, with their types; None if it is not there."""
        if not self.spark.catalog.tableExists(one.quoted):
            return None
        return {field.name: field.dataType for field in self.spark.table(one.quoted).schema.fields}


def _written(store: Store) -> dict[str, int]:
    try:
        found = json_of(store.read(_WRITTEN))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {}  # all tables are written again
    return found if isinstance(found, dict) else {}


def _changed(store: Store, name: str, before: int | None, version: int) -> bool:
    """True if a view may have other rows at a version than at the one before."""
    if before is None or before > version:
        return True
    manifests = Manifests(store)
    try:
        return any(manifests.read(each).changes.get(name) for each in range(before + 1, version + 1))
    except FreshviewsError:  # not kept any more
        return True
