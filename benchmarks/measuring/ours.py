"""freshviews over a stream, with the planner's choice of a strategy or a named one."""

from __future__ import annotations

import re
import time
from typing import Any

import pyarrow as pa

import freshviews as fv
from benchmarks.measuring.answers import answer, answer_of
from benchmarks.measuring.course import Course
from benchmarks.measuring.stream import Step, Stream

WARM_STEPS, WARM_ROWS = 40, 20
FEW = 10
"""Maximum rows of integers that are passed as tuples."""
_STORED = re.compile(r"^ {4}(\S.*?) +([\d,]+) rows +([\d,]+) bytes$", re.MULTILINE)
_TRACE = re.compile(r"^trace of \S+: ([\d,]+) operations, ([\d,]+) intervals", re.MULTILINE)
_SPACE = re.compile(r"^space +(.*)$", re.MULTILINE)


def keep_fresh(stream: Stream, named: str | None = None) -> dict[str, Any]:
    """Run a stream through ``Database``, one batch a call, and time it.

    If freshviews refuses the view, or the named strategy cannot maintain it, the result has the reason.
    """
    script = "\n".join(relation.ddl(checked=stream.checked) for relation in stream.relations)
    properties = f" TBLPROPERTIES ('freshviews.strategy' = '{named}')" if named else ""
    script += f"\nCREATE MATERIALIZED VIEW v{properties} AS {stream.view};"
    try:
        ready = _warm(script, stream)
    except fv.FreshviewsError as error:
        return {"refused": str(error).splitlines()[0]}
    with fv.Database() as db:
        db.execute(script)
        calls = {1: db.insert, -1: db.delete, 0: db.apply}
        view = db.view("v")
        course = Course(stream)
        course.ready = ready
        if stream.deltas:
            view.subscribe(lambda change: course.delta(len(change)))
        most: dict[str, Any] = {"state_bytes": 0, "state_rows": 0}
        traced = (0, 0)
        for i, step in course:
            call, rows = calls[step.sign], _given(step)
            course.go()
            call(step.table, rows)
            course.stop()
            if i in course.compared:
                _answer(course, i, view)
                text = view.explain()
                stored = _STORED.findall(text)
                for operations, held in _TRACE.findall(text):
                    traced = max(traced, (int(operations.replace(",", "")), int(held.replace(",", ""))))
                for key, place in (("state_rows", 1), ("state_bytes", 2)):
                    most[key] = max(most[key], sum(int(found[place].replace(",", "")) for found in stored))
        about = view.explain()
        stats = db.stats()["views"]["v"]
    spaces = dict.fromkeys(found.strip() for found in _SPACE.findall(about))
    if traced[0]:
        most["note"] = f"at most {traced[1]:,} intervals for a trace of {traced[0]:,} operations"
    return course.result(strategy_taken=stats["strategy"], space="; ".join(spaces), **most)


def _given(step: Step) -> pa.RecordBatch | list[tuple[int, ...]]:
    """The rows of a batch as a program would have them: a few rows of integers as tuples, others as Arrow."""
    if len(step.rows) > FEW or not all(map(pa.types.is_integer, step.rows.schema.types)):
        return step.rows
    return list(zip(*(column.to_pylist() for column in step.rows.columns), strict=True))


def _answer(course: Course, i: int, view: fv.View) -> None:
    """Read the view; the time counts if reading is part of the stream's run."""
    if course.stream.read:
        course.go()
    start = time.perf_counter()
    rows: pa.Table | None = None
    number = 0
    for batch in view.to_batches():
        number += len(batch)
        if not course.stream.read:
            rows = pa.table(batch) if rows is None else pa.concat_tables([rows, pa.table(batch)])
    course.read(number, time.perf_counter() - start)
    if course.stream.read:
        course.stop()
        rows = view.to_arrow()
    course.answers[str(i)] = answer([]) if rows is None else answer_of(rows)


def _warm(script: str, stream: Stream) -> float:
    """Compile or load the programs before the run; returns the seconds."""
    start = time.perf_counter()
    ready = 0.0
    with fv.Database() as db:
        db.execute(script)
        if stream.deltas:
            db.view("v").subscribe(len)
        calls = {1: db.insert, -1: db.delete, 0: db.apply}
        done: list[Step] = []
        for step in stream.steps[:WARM_STEPS]:
            few = Step(step.sign, step.table, step.rows.slice(0, WARM_ROWS))
            calls[few.sign](few.table, _given(few))
            ready = ready or time.perf_counter() - start
            done.append(few)
        db.view("v").to_arrow()
        for step in done[::-1]:
            if step.sign > 0:
                db.delete(step.table, step.rows)
    return ready
