"""Pathway, one batch at a time: the next goes in when all changes of the last one are visible.

``pw.sql`` gets the view unchanged. Dates are text and decimals doubles, as Pathway has neither. A table whose
rows are deleted has its identity as primary key; the others are declared as never deleting, which is faster.
"""

from __future__ import annotations

import logging
import queue
import re
import threading
from collections import Counter
from typing import Any

import pathway as pw
import pyarrow as pa

from benchmarks.measuring.answers import answer, hashed
from benchmarks.measuring.course import Course
from benchmarks.measuring.stream import Relation, Stream

KINDS = {"BIGINT": int, "INT": int, "DOUBLE": float, "DECIMAL": float}
WEIGHTS = (1_000_003, 998_244_353, 754_974_721, 167_772_161, 469_762_049)


class Fed(pw.io.python.ConnectorSubject):
    """A table that gets batches from a queue, and commits after each."""

    def __init__(self, deletes: bool) -> None:
        super().__init__()
        self.batches: queue.Queue[Any] = queue.Queue()
        self._deletes = deletes

    @property
    def _deletions_enabled(self) -> bool:
        return self._deletes

    def run(self) -> None:
        while (batch := self.batches.get()) is not None:
            for sign, rows in batch:
                change = self.next if sign > 0 else self.delete
                for row in rows:
                    change(**row)
            self.commit()


def run(stream: Stream) -> dict[str, Any]:
    """Run the stream by ``pw.sql``; a view that it refuses is reported with the reason."""
    logging.disable(logging.CRITICAL)
    deleted = {step.table for step in stream.steps if step.sign <= 0}
    subjects = {relation.name: Fed(relation.name in deleted) for relation in stream.relations}
    tables = {
        relation.name: pw.io.python.read(
            subjects[relation.name], schema=_schema(relation, relation.name in deleted), autocommit_duration_ms=None
        )
        for relation in stream.relations
    }
    try:
        result = _query(stream, tables)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]}
    names = result.column_names()
    seen = _Seen()
    # A batch that does not change the view emits nothing, so each batch also changes a number.
    emitted = [result.select(row=_any(*(result[name] for name in names), None))]
    emitted += [_tick(table, stream.relation(name)) for name, table in tables.items()]
    both = emitted[0].concat_reindex(*emitted[1:])
    pw.io.subscribe(both, on_change=seen.change, on_time_end=seen.end)
    found: list[dict[str, Any]] = []

    def feed() -> None:
        found.append(_feed(stream, subjects, seen))
        for subject in subjects.values():
            subject.batches.put(None)

    threading.Thread(target=feed, daemon=True).start()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return found[0]


def _feed(stream: Stream, subjects: dict[str, Fed], seen: _Seen) -> dict[str, Any]:
    batches = [[(sign, _rows(rows)) for sign, rows in step.parts] for step in stream.steps]
    course = Course(stream)
    for i, step in course:
        course.go()
        for name, subject in subjects.items():
            subject.batches.put(batches[i] if name == step.table else [])
        seen.visible.get()
        course.stop()
        if i in course.compared:
            course.answers[str(i)] = seen.answer(stream)
    return course.result()


def _rows(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = []
    for column in rows.columns:
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            column = column.cast(pa.string())
        elif pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        columns.append(column)
    return pa.record_batch(columns, rows.schema.names).to_pylist()


def _schema(relation: Relation, keyed: bool) -> Any:
    columns = {}
    for name, kind in relation.types().items():
        base = KINDS.get(kind.split("(")[0].split()[0], str)
        columns[name] = pw.column_definition(primary_key=keyed and name in relation.identity, dtype=base)
    return pw.schema_builder(columns)


def _query(stream: Stream, tables: dict[str, Any]) -> Any:
    """The view by ``pw.sql``; each occurrence of a table under another name is a table of that name."""
    text, given = stream.view, dict(tables)
    for name, table in tables.items():
        for alias in re.findall(rf"\b{name} (?!ON\b|JOIN\b|WHERE\b|GROUP\b|USING\b)([a-z]\w*)", text):
            text = re.sub(rf"\b{name} {alias}\b", alias, text)
            given[alias] = table.copy()
    return pw.sql(text, **given)


def _tick(table: Any, relation: Relation) -> Any:
    """A sum over all rows that almost every batch changes."""
    total: Any = 0
    whole = [name for name, kind in relation.types().items() if KINDS.get(kind.split("(")[0].split()[0]) is int]
    for name, weight in zip(whole, WEIGHTS, strict=False):
        total = total + table[name] * weight % 2_147_483_647
    summed = table.select(x=total).reduce(x=pw.reducers.sum(pw.this.x), c=pw.reducers.count())
    return summed.select(row=_any(relation.name, summed.x, summed.c))


def _any(*values: Any) -> Any:
    """A row as one hashable value."""
    return pw.declare_type(Any, pw.make_tuple(*values))


class _Seen:
    """The emitted rows of the view, and whether a whole batch is visible."""

    def __init__(self) -> None:
        self.visible: queue.Queue[int] = queue.Queue()
        self._rows: Counter[tuple[Any, ...]] = Counter()

    def change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        values = row["row"]
        if values[-1] is None:
            self._rows[values[:-1]] += 1 if is_addition else -1

    def end(self, time: int) -> None:
        self.visible.put(time)

    def answer(self, stream: Stream) -> Any:
        self._rows = +self._rows
        rows = list(self._rows.elements()) or stream.empty
        if len(rows) <= 2000:
            return answer(rows)
        import numpy as np

        return hashed(list(np.array(rows, np.int64).T))
