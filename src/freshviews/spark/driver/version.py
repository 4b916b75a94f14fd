"""Computes a version without committing it: runs the cells and the merge, and makes a manifest of their results.

The merge is the engine that combines results of cells. The manifest names all files of the version.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from freshviews.cells import Role
from freshviews.errors import FreshviewsError
from freshviews.records import dataclass
from freshviews.spark.connectors.declarations import UPSERT
from freshviews.spark.crash_points import reach
from freshviews.spark.definition import Definition
from freshviews.spark.driver.homes import Homes, Partitions
from freshviews.spark.driver.routing import routed
from freshviews.spark.driver.stages import (
    Results,
    files_of,
    forget_told,
    loaded_at_once,
    results_of,
    run_merge,
    through_cells,
)
from freshviews.spark.io.java_errors import cause
from freshviews.spark.io.places import numbered, place_fields, place_text
from freshviews.spark.layout.layout import MERGE, Layout
from freshviews.spark.phases import Phases
from freshviews.spark.state.cell import EMPTY
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.probe import NotSeen, run_of
from freshviews.spark.state.stores.store import Store
from freshviews.spark.worker.advance import Wanted
from freshviews.spark.worker.files import Files
from freshviews.spark.worker.intake import Feed
from freshviews.spark.worker.rows import PLACE, FilePlace
from freshviews.spark.worker.worker import Task, load_partition, run_partition


class PipelineError(FreshviewsError):
    """A micro-batch cannot become a version; nothing of it is applied."""


@dataclass
class ReadByWorkers:
    """Files that workers read in place of Spark. ``refused``: the reason for which Spark had to read them after all."""

    files: tuple[Files, ...]
    refused: str | None = None


@dataclass(frozen=True)
class Input:
    """Rows that go into a version.

    ``frame`` numbers the tables; ``feeds[t]`` are those of table t, one for each of its ``roles[t]``. ``ordered``:
    there are changes by key, so the order of rows matters. ``text``: rows are read from text files.
    """

    frame: DataFrame
    feeds: Sequence[Sequence[Feed]]
    roles: Sequence[Sequence[Role]]
    ordered: bool
    text: bool
    windowed: Mapping[int, Feed] = field(default_factory=dict)
    """By number of a table with a window in several cells: its feed to the engine that maintains the window."""
    given: DataFrame | None = None
    """The rows before windows, if ``frame`` has others."""
    read: ReadByWorkers | None = None
    """The files of ``frame``, if workers may read them."""

    @property
    def set_aside(self) -> bool:
        return any(feed.set_aside for own in self.feeds for feed in own)


def make(
    spark: SparkSession,
    store: Store,
    layout: Layout,
    definition: Definition,
    base: Manifest,
    given: Input | None,
    phases: Phases,
    homes: Homes,
    *,
    before: Results = (),
    whole: bool = False,
    rebuild: bool = False,
    log_only: bool = False,
) -> Manifest:
    """Return the manifest of the version after ``base``, which has the fields that are known already. ``before``: the
    results of the engine that maintains windows. If a view reads the clock, the version sets it to the time of this
    machine (``_clock_of``).

    ``phases`` gets the seconds. ``whole``: every cell runs. ``rebuild``: rebuild the merge from the contents of the
    cells. ``log_only``: the cells' logs only grow. Raises PipelineError; nothing is applied then.
    """
    start = time.time()
    version = base.version + 1
    complete = frozenset(view.name for view in definition.views if view.output == "complete")
    fed = frozenset(name for names in layout.inputs.values() for name in names)
    cells = Wanted(
        version,
        layout.cell_views,
        (frozenset(layout.cell_views) - _known_views(base.sizes, merge=False)) | (fed if rebuild else frozenset()),
        layout.stage_views("cells", complete),
        log_only,
    )
    feeds = tuple(feed for own in given.feeds for feed in own) if given is not None else ()
    entries = tuple(base.cells.get(str(n), EMPTY) for n in range(layout.cells))
    clock = _clock_of(base, rebuild) if layout.reads_clock else base.clock
    homes_now = dict(homes.processes)
    task = Task(store.address, run_of(store), layout.statements, feeds, entries, cells, whole, homes_now, clock=clock)
    results = [*before, *taken_through(spark, store, given, task, range(layout.cells), phases, homes)]
    merge = Wanted(
        version,
        layout.merge_views,
        frozenset(layout.merge_views) - _known_views(base.sizes, merge=True),
        layout.stage_views("merge", complete),
    )
    try:
        with phases.timed("merge"):
            merged = run_merge(store, layout, EMPTY if rebuild else base.cells.get(MERGE, EMPTY), results, merge, whole)
    except FreshviewsError as error:
        raise PipelineError(f"version {version} cannot be made: {error}") from error
    reach("cells done")
    both = [*results, *merged]
    # A rebuilt merge reports its whole contents; suppress those that were already reported.
    reported_before = frozenset(base.views) if rebuild else frozenset()
    made = _gather(layout, base, both, complete, reported_before)
    aside = Counter(row["table"] for result in results for row in result.get("bad", []))
    bad = _bad_files(store, version, results, given)
    forget_told(store, layout, results)
    rows = _summed(result.get("rows", {}) for result in results)
    read, moved = homes.counted()
    return replace(
        made,
        version=version,
        time=time.time(),
        tables=definition.table_statements,
        views={view.name: view.sql for view in definition.views},
        ordered=definition.script if definition.alterations else "",
        keys={v.name: list(v.written.key) for v in definition.views if v.written is not None and v.output == UPSERT},
        plan=layout.plan.to_json(),
        rings=layout.rings,
        bad=bad,
        rows=rows,
        seconds=time.time() - start,
        cells_loaded=read,
        cells_moved=moved,
        clock=clock,
        totals=_totals(base, rows, made.changed, dict(aside)),
    )


def _clock_of(base: Manifest, rebuild: bool) -> int:
    """The clock of a version. One that rebuilds the merge reports no change of the views that were there, so their
    clock stands still."""
    if rebuild and base.clock is not None:
        return base.clock
    return max(machine_time(), base.clock or 0)


def machine_time() -> int:
    """The time of this machine, in microseconds since 1970 in UTC."""
    return time.time_ns() // 1000


def load_cells(spark: SparkSession, store: Store, layout: Layout, manifest: Manifest, homes: Homes) -> None:
    """Load the cells of a version in the workers that will run them. Raises what Spark raises, and NotSeen."""
    entries = tuple(manifest.cells.get(str(number), EMPTY) for number in range(layout.cells))
    task = Task(store.address, run_of(store), layout.statements, (), entries, Wanted(manifest.version, ()), False)
    at, cells = homes.partitions(layout.cells), range(layout.cells)
    if at.direct:
        homes.note(loaded_at_once(spark, task, cells))
    else:
        homes.note(results_of(store, through_cells(spark, None, task, cells, at, load_partition)))


def _known_views(sizes: Mapping[str, Mapping[str, int]], merge: bool) -> frozenset[str]:
    """Views of a stage that an engine already had."""
    return frozenset(name for cell, views in sizes.items() if (cell == MERGE) == merge for name in views)


def taken_through(
    spark: SparkSession,
    store: Store,
    given: Input | None,
    task: Task,
    cells: range,
    phases: Phases,
    homes: Homes,
) -> Results:
    """The results of some cells with the rows of an input. Raises PipelineError, which names a refused row. All tries
    run where the cells are when it is called."""
    placed = given is not None and (given.ordered or given.set_aside)
    at = homes.partitions(cells.stop)
    read = given.read if given is not None and at.count == 1 else None
    if read is not None:
        # Spark reads what a worker does not: files of another form, and the places of bad rows.
        feeds = tuple(replace(feed, set_aside=False) for feed in task.feeds)
        by_worker = replace(task, feeds=feeds, files=read.files)
        results = _tried(spark, store, None, by_worker, cells, False, phases, homes, at)
        refused = [result for result in results if "refused" in result]
        if any(not result.get("no_row") for result in refused):
            read.refused, placed = str(refused[0]["refused"]), True
    if read is None or read.refused is not None:
        results = _tried(spark, store, given, task, cells, placed, phases, homes, at)
        refused = [result for result in results if "refused" in result]
    if any(not result.get("no_row") for result in refused) and given is not None and not placed:
        # Run again with the place of each row, for the message; nothing was applied.
        again = _tried(spark, store, given, task, cells, True, phases, homes, at)
        refused = [result for result in again if "refused" in result] or refused
    if refused:
        first = next((result for result in refused if result["place"]), refused[0])
        place: FilePlace | None = tuple(first["place"]) if first["place"] else None
        where = place_text(place, numbered(_input_rows(given), [place])) if place and given is not None else ""
        shown = f" ({where})" if where else ""
        raise PipelineError(f"version {task.wanted.version} cannot be made: {first['refused']}{shown}{first['more']}")
    return results


_OTHER_COLUMNS = (
    "; a run reads CSV files by the header that the newest file had when the run began, or by the declared columns if "
    "there was no file: start again to read the new header, or write the file with the columns of the others"
)


def _tried(
    spark: SparkSession,
    store: Store,
    given: Input | None,
    task: Task,
    cells: range,
    placed: bool,
    phases: Phases,
    homes: Homes,
    at: Partitions,
) -> Results:
    try:
        with phases.timed("plan"):
            frame = None
            if given is not None:
                rows = with_places(given.frame) if placed else given.frame.drop(*PLACE)
                frame = on_the_way(given, rows, cells.stop)
            at = at.for_text() if given is not None and given.text else at
            job = through_cells(spark, frame, task, cells, at, run_partition)
        start = time.perf_counter()
        results = results_of(store, job)
        phases.add_job(time.perf_counter() - start, [result.get("seconds", {}) for result in results])
        homes.note(results)
        return results
    except (PySparkException, Py4JJavaError) as error:
        reason = cause(error)
        more = _OTHER_COLUMNS if "CSV header does not conform" in reason else ""
        raise PipelineError(f"version {task.wanted.version} cannot be made: {reason}{more}") from error
    except NotSeen as error:
        raise PipelineError(f"version {task.wanted.version} cannot be made: {error}") from error


def on_the_way(given: Input, rows: DataFrame, cells: int) -> DataFrame:
    """Rows of an input, one copy per cell that they go to."""
    return routed(rows, [own[0].slots for own in given.feeds], given.roles, cells)


def with_places(frame: DataFrame) -> DataFrame:
    """Rows with their numbers, which are assigned here, because Spark assigns none in a stream."""
    return frame.withColumn(PLACE[-1], F.monotonically_increasing_id())


def _input_rows(given: Input) -> DataFrame:
    """The rows of an input as they were read."""
    return with_places(given.frame if given.given is None else given.given)


def _gather(
    layout: Layout, base: Manifest, results: Results, complete: frozenset[str], reported_before: frozenset[str]
) -> Manifest:
    """The manifest with the results of the stages; ``silent`` views report nothing, because it was reported before."""
    views = [view for view in layout.outputs if view not in reported_before]
    changes = {view: files_of(layout, view, results, "changes") for view in views}
    changed = {
        view: sum(r["changed"].get(name, 0) for r in results if "changed" in r for name in layout.outputs[view].views)
        for view in views
    }
    # The rows of a view are the sum of all its changes.
    stored = {}
    for view, output in layout.outputs.items():
        if view in base.stored or view not in base.views:
            names = output.views if view in views else ()
            net = sum(r["net"].get(name, 0) for r in results if "net" in r for name in names)
            stored[view] = base.stored.get(view, 0) + net
    contents: dict[str, dict[str, str]] = {}
    anew = []
    for view in sorted(complete):
        names = layout.outputs[view].views
        new = {f"{n}@{r['cell']}": r["contents"][n] for r in results for n in names if n in r.get("contents", {})}
        contents[view] = {**base.contents.get(view, {}), **new}
        if new and view not in reported_before:
            anew.append(view)
    sizes = {**base.sizes, **{result["cell"]: result["sizes"] for result in results if "sizes" in result}}
    return replace(
        base,
        cells={**base.cells, **{result["cell"]: result["entry"] for result in results if "entry" in result}},
        sizes=sizes,
        changes={view: files for view, files in changes.items() if files},
        changed={view: count for view, count in changed.items() if count},
        contents=contents,
        anew=anew,
        stored=stored,
        bytes=_bytes(layout, sizes),
    )


def _bytes(layout: Layout, sizes: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Bytes that each table and view takes, over all cells and the merge."""
    total: Counter[str] = Counter()
    for by_view in sizes.values():
        total.update(by_view)
    views = {view: sum(total[name] for name in layout.held(view)) for view in layout.outputs}
    known = [name for name, table in layout.catalog.tables.items() if not table.internal]
    tables = {name: sum(total[role.name] for role in layout.plan.roles_of(name)) for name in known}
    return {**tables, **views}


def _bad_files(store: Store, version: int, results: Results, given: Input | None) -> dict[str, list[str]]:
    """Write the rows set aside, an object per table, with their row numbers in their files."""
    rows = [row for result in results for row in result.get("bad", [])]
    if not rows or given is None:
        return {}
    for row in rows:
        row["place"] = tuple(row["place"]) if row["place"] else None
    numbers = numbered(_input_rows(given), [row["place"] for row in rows if row["place"]])
    lines: dict[str, list[tuple[FilePlace, str]]] = {}
    for row in rows:
        place = row.pop("place")
        table = row.pop("table")
        said = {"table": table, "version": version, **place_fields(place, numbers), **row}
        lines.setdefault(table, []).append((place or ("", 0, 0), json.dumps(said, ensure_ascii=False)))
    names = {}
    for table, found in lines.items():
        name = f"bad/{table}-{uuid.uuid4().hex}.json"
        store.write(name, "".join(f"{line}\n" for _, line in sorted(found)).encode())
        names[table] = [name]
    return names


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _totals(base: Manifest, rows: dict[str, int], changed: dict[str, int], bad: dict[str, int]) -> dict[str, Any]:
    return {
        name: _summed([base.totals.get(name, {}), more])
        for name, more in (("rows", rows), ("changed", changed), ("bad", bad))
    }
