"""What runs beside freshviews: DuckDB computing the answer anew, and plain Python with adjacency sets."""

from __future__ import annotations

import gc
from typing import Any

import duckdb

from benchmarks.measuring import Stopwatch
from benchmarks.stream import Stream, answer

MEASURED_ELSEWHERE = {
    "star, in key order": "F-IVM 12.5 M/s, DBToaster 8.8 M/s row by row",
    "star, shuffled": "F-IVM 4.4 M/s",
    "tpch q1": "DBToaster 4.1 M/s",
    "tpch q3": "DBToaster 20 M/s",
    "tpch q6": "DBToaster 71 M/s",
    "tpch q10": "DBToaster 12 M/s",
    "tpch q12": "DBToaster 14 M/s",
    "tpch q14": "DBToaster 52 M/s",
    "triangle": "DBToaster (first-order) 2.1 M/s, F-IVM 0.7 M/s, Pathway 0.004 M/s, pg_ivm 0.003 M/s",
    "single rows": "Pathway 22 ms",
    "memory": "F-IVM about 51 bytes",
    "first use": "F-IVM 6 s with g++",
}
"""Measured earlier, on other hardware of two shared cores, as rows per CPU second of one thread: an orientation,
not a comparison. What is compared runs in the same run."""


def recompute(stream: Stream) -> dict[str, Any]:
    """DuckDB, one thread: append each batch, and compute the answer after the steps to be compared.

    Computing it after every batch would take hours. Seconds are therefore those of the sampled steps, append
    and query, and the rate is that of their rows.
    """
    db = duckdb.connect(config={"threads": 1})
    for relation in stream.relations:
        db.execute(relation.plain_ddl())
    compared = frozenset(stream.compared)
    answers = {}
    rows = 0
    watch = Stopwatch()
    watch.pause()
    watch.cpu = watch.wall = 0.0
    gc.collect()
    for i, step in enumerate(stream.steps):
        if i in compared:
            watch.go()
        db.register("batch", step.rows)
        if step.sign > 0:
            db.execute(f"INSERT INTO {step.table} SELECT * FROM batch")
        else:
            same = stream.relation(step.table).identity
            keys = ", ".join(same)
            db.execute(f"DELETE FROM {step.table} WHERE ({keys}) IN (SELECT ({keys}) FROM batch)")
        if i in compared:
            found = db.execute(stream.view).fetchall()
            watch.pause()
            rows += len(step.rows)
            answers[str(i)] = answer(found)
        db.unregister("batch")
    return {**watch.rates(rows), "answers": answers, "sampled_steps": len(compared), "steps": len(stream.steps)}


def count_triangles(stream: Stream) -> dict[str, Any]:
    """Directed triangles of an edge table, kept by the intersection of adjacency sets."""
    updates = []
    for i, step in enumerate(stream.steps):
        sources, targets = (column.to_pylist() for column in step.rows.columns)
        updates.append((i, step.sign, list(zip(sources, targets, strict=True))))
    successors: dict[int, set[int]] = {}
    predecessors: dict[int, set[int]] = {}
    nothing: set[int] = set()
    compared = frozenset(stream.compared)
    answers = {}
    count = 0
    gc.collect()
    gc.freeze()
    watch = Stopwatch()
    for i, sign, edges in updates:
        if sign > 0:
            for a, b in edges:
                count += 3 * len(successors.get(b, nothing) & predecessors.get(a, nothing))
                successors.setdefault(a, set()).add(b)
                predecessors.setdefault(b, set()).add(a)
        else:
            for a, b in edges:
                successors[a].remove(b)
                predecessors[b].remove(a)
                count -= 3 * len(successors.get(b, nothing) & predecessors.get(a, nothing))
        if i in compared:
            answers[str(i)] = answer([(count,)])
    watch.pause()
    return {**watch.rates(stream.rows), "answers": answers}
