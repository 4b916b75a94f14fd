"""A pipeline at work: from a micro-batch to a committed and delivered version.

The order: the rows go to their cell, whose worker writes files under fresh names; the driver writes one manifest
that names them, which commits the version; then sinks get it, and that is noted. The next micro-batch begins
after that, so at a restart at most the last version is not delivered.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from freshviews.errors import FreshviewsError
from freshviews.spark import checkpoint
from freshviews.spark.arrow_files import read_all
from freshviews.spark.definition import Definition
from freshviews.spark.manifest import Manifest, Manifests
from freshviews.spark.rows import PLACE, TABLE
from freshviews.spark.sinks import Delivered, Receiver, deliver, publish_bad
from freshviews.spark.sources import Source, needs_order, one_frame
from freshviews.spark.state import EMPTY
from freshviews.spark.steps import reach
from freshviews.spark.worker import Feed, Task, run_cell
from freshviews.store.files import write_whole
from freshviews.stream import Snapshots

COLLECT_EVERY = 50
"""Versions between two collections of files that are not needed."""

Listener = Callable[[Manifest], object]
"""Is told of every version once it is delivered."""


class PipelineError(FreshviewsError):
    """A micro-batch cannot be made a version; nothing of it is applied."""


class Stopped(Exception):
    """The micro-batch came after a stop was asked for; it is left for the next run."""


class Run:
    """The versions of one pipeline while its process runs."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        definition: Definition,
        receivers: Mapping[str, Receiver],
        listener: Listener | None,
    ) -> None:
        self.spark = spark
        self.root = root
        self.definition = definition
        self.manifests = Manifests(root)
        self.latest = self.manifests.latest()
        self.error: BaseException | None = None
        self.stopping = False
        self.working = Lock()
        self._receivers = receivers
        self._listener = listener
        self._delivered = Delivered(root)

    def begin(self, streaming: Sequence[Source], static: Sequence[Source]) -> None:
        """Deliver what a crash left undelivered, and make a version of what is new since the last run.

        Raises CheckpointError where the checkpoint cannot be continued.
        """
        names = [source.table.name for source in streaming]
        new = [view.name for view in self.definition.views]
        if self.latest is not None:
            checkpoint.check_query(self.root, self.latest)
            new = checkpoint.check_definition(self.latest, self.definition, names)
            if self._delivered.version() < self.latest.version:
                self._deliver(self.latest)
        before = self.latest or Manifest(0, -1, None, 0.0, {}, {})
        due = [s for s in static if isinstance(s.form, Snapshots) or s.table.name not in before.loaded]
        views = {view.name: view.sql for view in self.definition.views}
        if self.latest is None or new or due or views.keys() != before.views.keys():
            frame, feeds = self.frame_of(due) if due else (None, [])
            loaded = sorted({*before.loaded, *(source.table.name for source in due)})
            self._make(frame, feeds, replace(before, loaded=loaded), new, ordered=any(map(needs_order, due)))

    def frame_of(self, sources: Sequence[Source]) -> tuple[DataFrame, list[Feed]]:
        """The rows of sources as one DataFrame, and how workers take it apart."""
        frame, slots = one_frame(sources)
        feeds = [
            Feed(
                source.table.name,
                names,
                source.spec.changes,
                source.spec.form_options,
                source.spec.bad_rows is not None,
                isinstance(source.form, Snapshots),
            )
            for source, names in zip(sources, slots, strict=True)
        ]
        return frame, feeds

    def micro_batch(self, frame: DataFrame, batch: int, streaming: Sequence[Source], feeds: list[Feed]) -> None:
        """What foreachBatch calls. A micro-batch that is committed already is passed over."""
        try:
            with self.working:
                if self.stopping:
                    raise Stopped
                reach("batch begun")
                self._micro_batch(frame, batch, streaming, feeds)
        except Stopped:
            raise
        except BaseException as error:
            self.error = error
            note_error(self.root, error)
            raise

    def _micro_batch(self, frame: DataFrame, batch: int, streaming: Sequence[Source], feeds: list[Feed]) -> None:
        before = self.latest
        assert before is not None
        query = checkpoint.spark_query(self.root)
        if before.query is not None and query != before.query:
            checkpoint.check_query(self.root, before)
        if batch == before.batch:
            return
        if batch != before.batch + 1:
            raise checkpoint.CheckpointError(
                f"micro-batch {batch} comes after {before.batch}, which is the last in version {before.version}: the "
                f"folders in {self.root} are not of the same time; begin with a new checkpoint"
            )
        names = [source.table.name for source in streaming]
        after = replace(before, batch=batch, query=query, sources=names)
        self._make(frame, feeds, after, [], ordered=any(map(needs_order, streaming)))

    def _make(
        self, frame: DataFrame | None, feeds: list[Feed], base: Manifest, new_views: list[str], ordered: bool
    ) -> None:
        """Make and deliver the version after ``base``, which holds what is known of it already."""
        start = time.time()
        version = base.version + 1
        tables = {table.name: table.sql for table in self.definition.tables}
        views = {view.name: view.sql for view in self.definition.views}
        complete = [view.name for view in self.definition.views if view.output == "complete"]
        cells = base.cells or {"0": EMPTY}
        task = Task(str(self.root), version, list(tables.values()), views, feeds, cells, new_views, complete)
        results = self._results(frame, task, ordered)
        reach("cells done")
        changed = _summed(result["changed"] for result in results)
        rows = _summed(result["rows"] for result in results)
        manifest = replace(
            base,
            version=version,
            time=time.time(),
            tables=tables,
            views=views,
            cells={**cells, **{result["cell"]: result["entry"] for result in results}},
            changes=_gathered(result["changes"] for result in results),
            contents=_gathered(result["contents"] for result in results),
            bad=_gathered(result["bad"] for result in results),
            rows=rows,
            changed=changed,
            bytes=_summed({n: s["bytes"] for n, s in r["sizes"].items()} for r in results) or base.bytes,
            seconds=time.time() - start,
            totals=_totals(base, rows, changed, _summed(result["bad_rows"] for result in results)),
        )
        self.manifests.commit(manifest)
        self.latest = manifest
        self._deliver(manifest)
        if version % COLLECT_EVERY == 0:
            checkpoint.collect(self.root, self.manifests)

    def _results(self, frame: DataFrame | None, task: Task, ordered: bool) -> list[dict[str, Any]]:
        results = self._run(frame, task, ordered)
        if "refused" in results[0] and frame is not None and not ordered:
            # Once more, with the file and row of each row, for the message; nothing was applied.
            results = self._run(frame, task, True)
        for result in results:
            if "refused" in result:
                raise PipelineError(f"version {task.version} cannot be made: {result['refused']}")
        return results

    def _run(self, frame: DataFrame | None, task: Task, placed: bool) -> list[dict[str, Any]]:
        # A row of no table, for Spark runs no function over an empty partition.
        nothing = self.spark.range(1).select(F.lit(-1).alias(TABLE))
        placed = placed or any(feed.set_aside for feed in task.feeds)
        if frame is None:
            whole = nothing
        else:
            # The number of a row is given here, as Spark gives none in a stream.
            kept = frame.withColumn(PLACE[-1], F.monotonically_increasing_id()) if placed else frame.drop(*PLACE)
            whole = kept.unionByName(nothing, allowMissingColumns=True)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return run_cell(task, batches)

        try:
            found = whole.repartition(1).mapInArrow(work, "result string").collect()
        except (PySparkException, Py4JJavaError) as error:
            raise PipelineError(f"version {task.version} cannot be made: {cause(error)}") from error
        return [json.loads(row["result"]) for row in found]

    def _deliver(self, manifest: Manifest) -> None:
        for view in self.definition.views:
            files = (manifest.contents if view.output == "complete" else manifest.changes).get(view.name, [])
            receiver = self._receivers.get(view.name)
            if files and (receiver is not None or view.provider is not None):
                rows = read_all(self.root, files)
                assert rows is not None
                deliver(self.spark, view, rows, manifest.version, receiver)
        for table in self.definition.tables:
            for name in manifest.bad.get(table.name, []):
                if table.bad_rows is not None:
                    publish_bad(self.root / name, Path(table.bad_rows), table.name, manifest.version)
        self._delivered.note(manifest.version)
        if self._listener is not None:
            self._listener(manifest)


def cause(error: Exception) -> str:
    """What Spark says was wrong, without its stacks."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        messages = []
        while java is not None:
            messages.append(" ".join(str(java.getMessage()).split()))
            java = java.getCause()
        return ": ".join(dict.fromkeys([messages[0], messages[-1]]))
    text = str(error).partition("=== Streaming Query ===")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("at ", "File ", "Driver stacktrace", "Traceback"))]
    return (kept or [type(error).__name__])[0]


def note_error(root: Path, error: BaseException | None) -> None:
    """Leave what ended a run for ``status``; None clears it."""
    write_whole(root / "error", b"" if error is None else f"{error}".encode())


def _summed(counts: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _gathered(names: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in names:
        for key, name in each.items():
            found.setdefault(key, []).append(name)
    return found


def _totals(base: Manifest, rows: dict[str, int], changed: dict[str, int], bad: dict[str, int]) -> dict[str, Any]:
    return {
        name: _summed([base.totals.get(name, {}), more])
        for name, more in (("rows", rows), ("changed", changed), ("bad", bad))
    }
