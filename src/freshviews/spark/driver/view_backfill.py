"""Backfills new views, and views with a new SELECT, from stored rows while the stream continues.

A Spark job loads a copy of each cell at one version, and adds the views to the copy. When the job is done, the copies
replace the cells between two micro-batches.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from freshviews.spark.crash_points import reach
from freshviews.spark.driver.homes import Partitions, workers
from freshviews.spark.driver.stages import results_of, through_cells
from freshviews.spark.driver.stored_rows import backfill, logged_rows, stored_rows
from freshviews.spark.driver.version import Input, PipelineError, on_the_way
from freshviews.spark.io.java_errors import cause
from freshviews.spark.layout.layout import Layout
from freshviews.spark.state.cell import EMPTY, from_image
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.probe import NotSeen, run_of
from freshviews.spark.state.stores.store import Store
from freshviews.spark.worker.advance import Wanted
from freshviews.spark.worker.rows import PLACE
from freshviews.spark.worker.worker import Task, fill_partition


class Filling:
    """Backfills the views ``names`` into the cells of version ``at``, from layout ``old`` to ``new``. The cells have
    those that are ``replaced``, with another SELECT.

    Create it between two micro-batches; ``run`` blocks until the images are written.

    A pipeline with new views first continues with the views of its checkpoint. Meanwhile a Spark job loads a second
    copy of each cell, at one version. The job adds the new views and the rows that only they need, and writes the copy
    as an image. Then, between two micro-batches, the cells switch to the images, and read later changes from the logs.

    The switch is a version of its own, in which the change of an added view is its whole contents. ``replaced_views``
    makes the change of a view with a replaced SELECT.

    The job uses at most half of the cores. Nothing is committed before the switch. If a run ends earlier, the next run
    starts the backfill again.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        old: Layout,
        new: Layout,
        at: Manifest,
        names: tuple[str, ...],
        replaced: tuple[str, ...] = (),
    ) -> None:
        self.new = new
        self.names = names
        self.since = at.version
        self._replaced = replaced
        self._spark, self._store, self._old, self._at = spark, store, old, at
        self._group = f"freshviews-filling-{uuid.uuid4().hex}"
        self._job = self._writing_job()
        self._images: Mapping[str, Any] = {}

    def _writing_job(self) -> DataFrame:
        spark, store, old, at = self._spark, self._store, self._old, self._at
        with workers(spark, "filling"):
            given = backfill(old.roles, self.new, lambda table: stored_rows(spark, store, old, at, table))
            rows = None if given is None else on_the_way(given, given.frame.drop(*PLACE), old.cells)
            feeds = () if given is None else tuple(feed for own in given.feeds for feed in own)
            entries = tuple(at.cells.get(str(number), EMPTY) for number in range(old.cells))
            task = Task(store.address, run_of(store), self.new.statements, feeds, entries, Wanted(at.version, ()), True)
            count = max(1, min(old.cells, spark.sparkContext.defaultParallelism // 2))
            return through_cells(spark, rows, task, range(old.cells), Partitions(count, False), fill_partition)

    def run(self) -> None:
        """Write the images. Raises PipelineError if a view cannot be backfilled."""
        context = self._spark.sparkContext
        context.setJobGroup(self._group, f"freshviews fills {', '.join(self.names)}", interruptOnCancel=True)
        try:
            results = results_of(self._store, self._job)
        except (PySparkException, Py4JJavaError, NotSeen) as error:
            raise PipelineError(f"{self._failure()}: {cause(error)}; start again to try once more") from error
        refused = next((result["refused"] for result in results if "refused" in result), None)
        if refused is not None:
            raise PipelineError(f"{self._failure()}: {refused}; {self._remedy()}")
        self._images = {result["cell"]: result["image"] for result in results}
        reach("images filled")

    def cancel(self) -> None:
        """Make ``run`` raise and end."""
        self._spark.sparkContext.cancelJobGroup(self._group)

    def _failure(self) -> str:
        return f"{', '.join(self.names)} cannot be backfilled"

    def _remedy(self) -> str:
        if not self._replaced:
            return "remove the view from the script to continue without it"
        return f"write {' and '.join(self._replaced)} as before to continue with the rows that are there"

    def finished(self, latest: Manifest) -> Manifest:
        """The later version whose cells continue from the images."""
        cells = {
            number: from_image(entry, self._images[number])
            for number, entry in latest.cells.items()
            if number in self._images
        }
        return replace(latest, cells={**latest.cells, **cells})

    def missed(self, latest: Manifest) -> Input | None:
        """The rows since then that only the new views need."""
        spark, store, old, at = self._spark, self._store, self._old, self._at
        with workers(spark, "filling"):
            return backfill(old.roles, self.new, lambda table: logged_rows(spark, store, old, latest, table, at))
