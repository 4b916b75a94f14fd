"""What runs in a Python worker of an executor: the rows of a micro-batch go through the engines of their cells.

A partition has several cells, which run in threads, as compiled code does not hold the interpreter. Everything
is written under fresh names, and nothing counts before the manifest names it; so a try that is killed, repeated or
thrown away leaves nothing but files that are collected later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshviews.errors import FreshviewsError
from freshviews.query.block import TableDef
from freshviews.spark.advance import Wanted, advanced, listening
from freshviews.spark.checkpoint import cannot_write
from freshviews.spark.intake import Feed, Intake, Refusal, bad_rows, take_in
from freshviews.spark.rows import split
from freshviews.spark.state import Entry, loaded
from freshviews.sql import Statement

RESULT = pa.schema([pa.field("result", pa.string())])


@dataclass(frozen=True)
class Task:
    """A version to be made, as workers are told. ``entries[n]`` is the state of cell n before it, ``statements[n]``
    what its engine is made of.

    ``whole``: cells without rows run too, as their views or snapshots change.
    """

    root: str
    statements: tuple[tuple[Statement, ...], ...]
    feeds: tuple[Feed, ...]
    entries: tuple[Entry, ...]
    wanted: Wanted
    whole: bool


def run_partition(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take a partition through its cells; for each a row of JSON comes out, a refusal included."""
    parts = split(batches, [feed.slots for feed in task.feeds])

    def run(cell: int) -> dict[str, Any]:
        tables = {one.name: one for one in task.statements[cell] if isinstance(one, TableDef)}
        rows = [Intake(feed, tables[feed.table], found) for feed, found in zip(task.feeds, parts[cell], strict=True)]
        try:
            return _run(task, cell, rows)
        except Refusal as error:
            return {"cell": str(cell), "refused": error.text, "more": error.more, "place": error.place}
        except FreshviewsError as error:
            return {"cell": str(cell), "refused": str(error), "more": "", "place": None}
        except OSError as error:
            return {"cell": str(cell), "refused": cannot_write(Path(task.root), error), "more": "", "place": None}

    if len(parts) == 1:
        results = [run(cell) for cell in parts]
    else:
        with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as threads:
            results = list(threads.map(run, sorted(parts)))
    yield pa.RecordBatch.from_arrays([pa.array([json.dumps(result) for result in results], pa.string())], schema=RESULT)


def _run(task: Task, number: int, intakes: list[Intake]) -> dict[str, Any]:
    if not task.whole and all(intake.rows is None for intake in intakes):
        return {"cell": str(number)}
    root, entry = Path(task.root), task.entries[number]
    cell = loaded(root, str(number), entry, task.statements[number])
    wanted = task.wanted.within(cell.database.views)
    try:
        with listening(cell, wanted) as told:
            signed = take_in(cell, intakes)
    except BaseException:
        cell.database.close()
        raise
    result = advanced(root, str(number), entry, cell, signed, told, wanted)
    counted = [intake for intake in intakes if number in intake.feed.counted]
    return {
        **result,
        "rows": _counts((t.feed.source, t.rows.num_rows) for t in counted if t.rows is not None),
        "bad": [row for t in counted for row in bad_rows(t)],
    }


def _counts(found: Iterable[tuple[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, count in found:
        if count:
            total[name] = total.get(name, 0) + count
    return total
