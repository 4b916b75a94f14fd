"""Runs cells in a Python worker of Spark: their engines make the next version from the rows of a micro-batch."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from freshviews.catalog.definitions import TableDef
from freshviews.errors import FreshviewsError, OutOfMemory, StoreError
from freshviews.kernel.machine import beside
from freshviews.records import dataclass
from freshviews.spark.crash_points import reach
from freshviews.spark.state.cell import Cell, Segment, drop_cells_elsewhere, keep, load_cell, loaded
from freshviews.spark.state.cell_image import Entry, new_image
from freshviews.spark.state.checkpoint import cannot_write
from freshviews.spark.state.image_files import Writing
from freshviews.spark.state.probe import process_name, prove
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.worker.advance import Wanted, advanced, listening
from freshviews.spark.worker.ahead import Ahead, Arriving, growing_feeds
from freshviews.spark.worker.arrow_kinds import NotByArrow
from freshviews.spark.worker.files import Files, rows_of_files
from freshviews.spark.worker.intake import Feed, Intake, Refusal, bad_rows, take_in
from freshviews.spark.worker.rows import as_ordered_batch, groups, named
from freshviews.sql import Statement

RESULT = pa.schema([pa.field("result", pa.string())])
Waiting = dict[int, list[pa.RecordBatch]]
"""Rows by feed."""
T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """A version to make, in the checkpoint at ``address``. ``entries[n]``: the state of cell n before it.
    ``statements[n]``: the statements that create its engine. ``run``: the run that a process proves to see
    (``state.probe``).

    ``whole``: cells without rows run too, because their views or snapshots change. ``homes``: the process that had each
    cell last; the others free theirs. ``files``: files whose rows the worker reads itself. ``clock``: the time of the
    version, if views read the clock; then cells without rows run too.
    """

    address: str
    run: str
    statements: tuple[tuple[Statement, ...], ...]
    feeds: tuple[Feed, ...]
    entries: tuple[Entry, ...]
    wanted: Wanted
    whole: bool
    homes: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Files, ...] = ()
    clock: int | None = None


def run_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the rows of a partition through its cells; each yields a row of JSON, also if it refuses.

    The cells of a partition run in threads, as compiled code releases the interpreter lock. The main thread passes each
    cell its rows as Spark sends them. Every file has a fresh name, and is ignored until a manifest names it. So the
    files of a killed or repeated try do no harm, and are deleted later.
    """
    proof = _proof(task)
    if "refused" in proof:
        yield _answer([proof])
        return
    cells: dict[int, Arriving] = {}
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        ends: BaseException | None = None
        runs: dict[int, Future[dict[str, Any]]] = {}
        try:
            for number, feed, rows in _rows(task, batches):
                if number not in cells:
                    cells[number] = Arriving()
                    runs[number] = threads.submit(_result_of, _run, task, number, cells[number])
                cells[number].put((feed, rows))
        except NotByArrow as error:
            ends = error
        except BaseException as error:
            ends = error
            raise
        finally:
            for arriving in cells.values():
                arriving.put(ends)
    yield _answer([proof, *(_here(runs[number].result()) for number in sorted(runs))])


def _rows(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The rows of a partition by cell and feed, under the names of their source columns."""
    for batch in batches:
        for number, feed, rows in groups(batch, len(task.feeds)):
            yield number, feed, rows if feed < 0 else named(rows, task.feeds[feed].slots)
    if task.files:
        yield from rows_of_files(task.files)


def load_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Load the cells of a partition into this worker's memory before the first rows arrive."""
    yield _answer(load_numbers(task, {number for batch in batches for number, _, _ in groups(batch, 0)}))


def load_numbers(task: Task, numbers: Iterable[int]) -> list[dict[str, Any]]:
    """Load cells into this worker's memory; returns the result of each, after the proof of the process."""
    proof = _proof(task)
    if "refused" in proof:
        return [proof]
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        results = list(threads.map(partial(_load, task), sorted(numbers)))
    return [proof, *(_here(result) for result in results)]


def _load(task: Task, number: int) -> dict[str, Any]:
    store = store_of(task.address)
    cell = loaded(store, str(number), task.entries[number], task.statements[number])
    keep(store, str(number), cell)
    return {"cell": str(number), "loaded": cell.was_read}


def fill_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write an image of each cell of a partition, extended by the statements that its entry lacks.

    The rows are those of tables that are new in the cells.
    """
    proof = _proof(task)
    if "refused" in proof:
        yield _answer([proof])
        return
    waiting: dict[int, Waiting] = {}
    for number, feed, rows in _rows(task, batches):
        own = waiting.setdefault(number, {})
        if feed >= 0:
            own.setdefault(feed, []).append(rows)
    yield _answer([proof, *(_result_of(_fill, task, number, waiting.pop(number)) for number in sorted(waiting))])


def _here(result: dict[str, Any]) -> dict[str, Any]:
    """The result of a cell with the name of this process, if the cell is in it."""
    return {**result, "process": process_name()} if "loaded" in result else result


def _proof(task: Task) -> dict[str, Any]:
    """The proof that this process sees the checkpoint, or a refusal. Frees cells that live elsewhere."""
    store = store_of(task.address)
    try:
        proof = {"cell": "", "proof": prove(store, task.run)}
    except StoreError as error:
        return {"cell": "", "refused": str(error), "more": "", "place": None}
    drop_cells_elsewhere(store, task.homes, process_name())
    return proof


def _answer(results: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([json.dumps(result) for result in results], pa.string())], schema=RESULT
    )


def _result_of(run: Callable[[Task, int, T], dict[str, Any]], task: Task, number: int, rows: T) -> dict[str, Any]:
    """The result of a cell's run, or the reason for its refusal; ``no_row``: no row is at fault."""
    try:
        return run(task, number, rows)
    except Refusal as error:
        return {"cell": str(number), "refused": error.text, "more": error.more, "place": error.place}
    except FreshviewsError as error:
        no_row = isinstance(error, OutOfMemory)
        return {"cell": str(number), "refused": str(error), "more": "", "place": None, "no_row": no_row}
    except OSError as error:
        return {"cell": str(number), "refused": cannot_write(store_of(task.address), error), "more": "", "place": None}


def _run(task: Task, number: int, arriving: Arriving) -> dict[str, Any]:
    """Run rows through a cell; while they arrive, if there are many and its tables allow it."""
    growing = growing_feeds(task.feeds, {t.name: t for t in task.statements[number] if isinstance(t, TableDef)})
    if growing and arriving.many(growing):
        try:
            return _make_files(task, number, partial(_in_pieces, task, number, growing, arriving), arriving)
        except OutOfMemory:
            arriving.discard()
            raise
        except (FreshviewsError, OSError):
            pass  # the second try, which has all rows, reports the error
    waiting: Waiting = {}
    for feed, rows in arriving:
        if feed >= 0:
            waiting.setdefault(feed, []).append(rows)
    if not task.whole and not waiting and task.clock is None:
        return {"cell": str(number)}
    return _make_files(task, number, partial(_at_once, task, number, waiting), arriving)


@dataclass(frozen=True)
class _Taken:
    """The input that an engine has applied: the number of rows by source, and the bad rows."""

    rows: dict[str, int]
    bad: list[dict[str, Any]]


def _intakes(task: Task, cell: Cell, waiting: Waiting) -> list[Intake]:
    return [
        Intake(feed, cell.tables[feed.table], as_ordered_batch(waiting[i]) if i in waiting else None)
        for i, feed in enumerate(task.feeds)
    ]


def _fill(task: Task, number: int, waiting: Waiting) -> dict[str, Any]:
    store, entry = store_of(task.address), task.entries[number]
    cell = load_cell(store, entry, task.statements[number])
    name = new_image(str(number))
    writing = Writing(store, name)
    try:
        take_in(cell, _intakes(task, cell, waiting))
        cell.database.write_image(writing.folder)
        writing.finish()
        rows = cell.database.stored_rows
    finally:
        writing.end()
        cell.database.close()
    reach("image filled")
    return {"cell": str(number), "image": {"token": entry["token"], "folder": name, "rows": rows}}


def _at_once(task: Task, number: int, waiting: Waiting, cell: Cell, segment: Segment) -> _Taken:
    intakes = _intakes(task, cell, waiting)
    for table, rows in take_in(cell, intakes, task.clock).items():
        segment.add(table, rows)
    counted = [intake for intake in intakes if number in intake.feed.counted]
    counts = _counts((t.feed.source, t.rows.num_rows) for t in counted if t.rows is not None)
    return _Taken(counts, [row for t in counted for row in bad_rows(t)])


def _in_pieces(
    task: Task, number: int, growing: frozenset[int], arriving: Arriving, cell: Cell, segment: Segment
) -> _Taken:
    ahead = Ahead(cell, segment, task.feeds, growing)
    for feed, rows in arriving:
        if feed >= 0:
            ahead.take(feed, rows)
    rest = _at_once(task, number, ahead.waiting, cell, segment)
    taken = [(task.feeds[i].source, rows) for i, rows in ahead.taken.items() if number in task.feeds[i].counted]
    return _Taken(_counts([*rest.rows.items(), *taken]), rest.bad)


def _make_files(task: Task, number: int, take: Callable[[Cell, Segment], _Taken], arriving: Arriving) -> dict[str, Any]:
    """Apply rows to the engine of a cell and write all files of the next version, with the seconds of each phase."""
    store, entry = store_of(task.address), task.entries[number]
    compiled, waited = beside.waited(), arriving.waited
    start = _working()
    cell = loaded(store, str(number), entry, task.statements[number])
    was_read = cell.was_read
    wanted = task.wanted.within(cell.database.views)
    segment = Segment(store, str(number))
    ready = _working()
    try:
        with listening(cell, wanted) as emitted:
            taken = take(cell, segment)
    except BaseException:
        segment.discard()
        cell.database.close()
        raise
    applied = _working()
    result = advanced(store, str(number), entry, cell, segment, emitted, wanted)
    seconds = {
        "load": ready - start,
        "apply": applied - ready - (arriving.waited - waited),
        "sync": _working() - applied,
        "compile": beside.waited() - compiled,
    }
    return {**result, "rows": taken.rows, "bad": taken.bad, "seconds": seconds, "loaded": was_read}


def _working() -> float:
    """A clock that stands still while this thread waits for machine code."""
    return time.perf_counter() - beside.waited()


def _counts(found: Iterable[tuple[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, count in found:
        if count:
            total[name] = total.get(name, 0) + count
    return total
