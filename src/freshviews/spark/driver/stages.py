"""Runs the two stages that compute a version: the cells, then the *merge*.

Each cell applies its rows. If several cells have rows of one group of a view, the merge, which is another engine,
combines their changes of this group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DateType, NumericType, TimestampNTZType, TimestampType

from freshviews.catalog.nesting import room
from freshviews.errors import OtherProgram
from freshviews.spark.driver.homes import Partitions, workers
from freshviews.spark.layout.layout import MERGE, Layout
from freshviews.spark.state.bundle import object_of, read_all
from freshviews.spark.state.cell import keep, loaded, segment_of
from freshviews.spark.state.cell_image import Entry
from freshviews.spark.state.probe import check_proofs
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from freshviews.spark.worker import between_tasks
from freshviews.spark.worker.advance import Wanted, advanced, listening
from freshviews.spark.worker.rows import TO, cell_and_feed, cell_of
from freshviews.spark.worker.worker import Task, load_numbers

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_SIMPLIFIED = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
_NO_LIMIT = 2**31 - 1
_FEW = 100
"""Maximum number of columns of a frame whose batches are limited by rows alone: 100,000 rows have about 100 MB."""
_FIXED = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)

Results = Sequence[dict[str, Any]]
Run = Callable[[Task, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Runs the rows of a partition through its cells; see ``worker``."""


def through_cells(
    spark: SparkSession, frame: DataFrame | None, task: Task, cells: range, at: Partitions, run: Run
) -> DataFrame:
    """The rows of a frame, each with its ``_to``, through some cells."""
    feeds = len(task.feeds)
    # Add a row per cell that belongs to no table: cells without rows must run, and Spark starts no task without rows.
    each = spark.range(cells.start, cells.stop).selectExpr(f"{cell_and_feed('id', -1, feeds)} AS {TO}")
    whole = each if frame is None else frame.unionByName(each, allowMissingColumns=True)
    if at.count == 1 and at.direct:
        sent = whole.coalesce(1)
    else:
        sent = at.sent(whole, cell_of(feeds))
    _limit_bytes(spark, sent)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with between_tasks.task():
            yield from run(task, batches)

    # The task is pickled, which recurses as deeply as the expressions of its views.
    with room(), workers(spark, "cells"):
        return sent.mapInArrow(work, "result string")


def loaded_at_once(spark: SparkSession, task: Task, cells: range) -> Results:
    """Load cells into the one worker of local mode; returns their results. Raises NotSeen.

    Spark's SQL does not plan the job: in a new Java process that takes seconds, in which the worker can load. The
    worker is the one that gets the rows, because Spark takes a worker by the environment of its functions, and this
    function has that of functions of SQL.
    """

    def work(numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
        with between_tasks.task():
            yield from load_numbers(task, numbers)

    simplified = spark.conf.get(_SIMPLIFIED, "true") == "true"
    with room(), workers(spark, "cells", {"SPARK_SIMPLIFIED_TRACEBACK": "1"} if simplified else {}):
        job = spark.sparkContext.parallelize(cells, 1).mapPartitions(work)
        # The function is pickled with its environment here.
        _ = job._jrdd
    return _checked(store_of(task.address), job.collect())


def _limit_bytes(spark: SparkSession, sent: DataFrame) -> None:
    """Make Spark add up the bytes of an Arrow batch, which it repeats at each row, only if rows may be long.

    Rows of few columns of fixed width are short enough if they are counted. What the user has set stays, and so does
    the setting of the pipeline's own session, in which other threads may run jobs: micro-batches have another one.
    """
    session = sent.sparkSession
    if session is spark or session.sparkContext.getConf().contains(_BYTES):
        return
    short = len(sent.columns) <= _FEW and all(isinstance(field.dataType, _FIXED) for field in sent.schema)
    if short:
        session.conf.set(_BYTES, str(_NO_LIMIT))
    else:
        session.conf.unset(_BYTES)


def touch_workers(spark: SparkSession, at: Partitions) -> None:
    """Run a task without work in the workers of the cells: Spark ends a worker that had no task for a minute."""
    each = spark.range(len(at.keys) or 1)
    sent = each.coalesce(1) if at.anchor is None else at.sent(each, "id")
    with workers(spark, "cells"):
        job = sent.mapInArrow(_nothing, "id bigint")
    job.collect()


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, 0)


def results_of(store: Store, found: DataFrame) -> Results:
    """The results of the cells, each once, when their rows are through. Raises NotSeen if a worker writes elsewhere."""
    return _checked(store, [json.loads(row["result"]) for row in found.collect()])


def _checked(store: Store, results: Results) -> Results:
    """Results without the proofs of processes, which are checked. Raises NotSeen."""
    check_proofs(store, [result["proof"] for result in results if "proof" in result])
    return [result for result in results if "proof" not in result]


def run_merge(store: Store, layout: Layout, entry: Entry, results: Results, wanted: Wanted, whole: bool) -> Results:
    """Run the cells' changes of a version through the merge; no result if there are none.

    The files of these changes are not needed afterwards.
    """
    files: dict[str, list[str]] = {}
    for table, views in layout.inputs.items():
        files[table] = [r["changes"][view] for r in results for view in views if view in r.get("changes", {})]
    if not layout.merge_statements or (not whole and not any(files.values())):
        return []
    signed = {table: read_all(store, names) for table, names in files.items() if names}
    taken: Mapping[str, pa.Table] = {table: rows for table, rows in signed.items() if rows is not None}
    cell = loaded(store, MERGE, entry, layout.merge_statements)
    try:
        with listening(cell, wanted) as emitted, cell.database.batch() as batch:
            for table, rows in taken.items():
                batch.apply(table, rows)
    except BaseException:
        cell.database.close()
        raise
    return [advanced(store, MERGE, entry, cell, segment_of(store, MERGE, taken), emitted, wanted)]


def can_go_on(store: Store, layout: Layout, entry: Entry) -> bool:
    """True if the merge can continue from its files, and is now in memory.

    False if another release of freshviews wrote them in an unknown form; the merge is then rebuilt from the cells.
    """
    if not layout.merge_statements:
        return True
    try:
        keep(store, MERGE, loaded(store, MERGE, entry, layout.merge_statements))
    except OtherProgram:
        return False
    return True


def forget_told(store: Store, layout: Layout, results: Results) -> None:
    """Delete the objects that only the merge needed."""
    kept = {name for output in layout.outputs.values() if output.stage == "cells" for name in output.views}
    gone: list[str] = []
    for result in results:
        changes = result.get("changes", {})
        if changes and not result["contents"] and kept.isdisjoint(changes):
            gone += {object_of(name) for name in changes.values()}
    store.delete(gone)


def files_of(layout: Layout, view: str, by_cell: Sequence[Mapping[str, Any]], what: str) -> list[str]:
    """The files that make up the change or contents of a view, from the results of both stages."""
    names = layout.outputs[view].views
    return [result[what][name] for result in by_cell for name in names if name in result.get(what, {})]
