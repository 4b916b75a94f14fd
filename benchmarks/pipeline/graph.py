"""Patterns in a window over a graph: triangles and paths of three edges over the trust network of Epinions.

A fifth of all edges is in the window; each arrival deletes the oldest edge, and at the end the window is drained.
10,000 changes are a file and a micro-batch. It is compared with Spark, which recomputes the count after some
micro-batches over cached edges, and with Spark's stream joins, which do not support deletes, over the first files,
which have only inserts.

The graph is SNAP's soc-Epinions1 as ``src,dst`` in the file that EPINIONS names, or benchmarks/data/epinions.csv;
without the file, a random graph with power-law degrees is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring.answers import answer
from benchmarks.measuring.processes import cpu_seconds_of
from benchmarks.measuring.stream import spread_over
from benchmarks.pipeline.run import (
    after_warming,
    counts_of,
    folder,
    put,
    rate,
    run_once,
    scaled,
    seconds_between,
    seconds_of,
    session,
)
from benchmarks.workloads.graphs import Edges, chung_lu, epinions, window_of, windowed

TITLE = "pipeline, graph"
VIEWS = {
    "triangles": """
        SELECT COUNT(*) AS n FROM edges a JOIN edges b ON a.dst = b.src JOIN edges c ON b.dst = c.src AND c.dst = a.src
    """,
    "3-hop paths": "SELECT COUNT(*) AS n FROM edges a JOIN edges b ON a.dst = b.src JOIN edges c ON b.dst = c.src",
}
CASES = tuple(VIEWS)
STRATEGIES = ("freshviews", "Spark", "Spark, stream joins")
UNIT = "rows/s"
TARGETS: dict[str, float] = {}
TARGET_RATIOS = {"Spark": 100.0, "Spark, stream joins": 100.0}

CHANGES = scaled(10_000, 2_000)
"""Changes in a micro-batch."""
POINTS = 10
"""Micro-batches after which Spark recomputes the count; doing so after each would take hours."""
LIMIT = max(20.0, min(180.0, scaled(180)))
"""Seconds after which a peer is cut off."""
SCRIPT = """
CREATE STREAMING TABLE edges (src BIGINT, dst BIGINT)
  USING parquet OPTIONS (path 'edges', changes 'signed', maxFilesPerTrigger '1');
CREATE MATERIALIZED VIEW counted AS {view};
"""


def edges() -> tuple[Edges, str]:
    """Edges in the order of arrival, shape (edges, 2), and the name of the graph."""
    there = epinions()
    found, name = (chung_lu(20_000, 300_000, 3.0), "a random graph") if there is None else (there, "Epinions")
    return found[: scaled(len(found))], name


def measure(case: str, strategy: str) -> dict[str, Any]:
    """Changes per second of the median micro-batch, and the mean CPU seconds of one, or of a query of Spark."""
    rows, name = edges()
    run: Callable[..., dict[str, Any]] = {
        "freshviews": _freshviews,
        "Spark": _recomputed,
        "Spark, stream joins": _joined,
    }[strategy]
    # Spark's own joins keep state in the Java process; a pipeline does not.
    settings = {} if strategy == "freshviews" else {"spark.driver.memory": "6g"}
    with folder() as place, session(settings=settings) as spark:
        found = run(spark, place, rows, VIEWS[case])
    noted = f"; {found['note']}" if found.get("note") else ""
    return {**found, "note": f"{name}{noted}", "graph": name}


def _write(place: Path, rows: Edges, first: int | None = None) -> int:
    """Write files of changes, all or the ``first`` ones; return their number."""
    which, signs = windowed(len(rows), window_of(len(rows)))
    files = range(0, len(which), CHANGES)[:first]
    for number, start in enumerate(files):
        part = slice(start, start + CHANGES)
        src, dst = rows[which[part]].T
        put(pa.table({"src": src, "dst": dst, "_multiplicity": signs[part]}), place / "edges" / f"{number:06d}.parquet")
    return len(files)


def _freshviews(spark: Any, place: Path, rows: Edges, view: str) -> dict[str, Any]:
    _write(place, rows)
    script = place / "graph.sql"
    script.write_text(SCRIPT.format(view=view))
    used = cpu_seconds_of(os.getpid())
    versions = run_once(spark, script, view="counted")
    used = cpu_seconds_of(os.getpid()) - used
    # The last file may be shorter.
    found = rate(CHANGES, after_warming(seconds_of(versions)[:-1]))
    answers = {str(batch): answer([(n,)]) for batch, n in counts_of(versions).items() if batch >= 0}
    made = [version.manifest.seconds for version in versions]
    return {**found, "made": made, "answers": answers, "cpu": used / len(versions)}


def _recomputed(spark: Any, place: Path, rows: Edges, view: str) -> dict[str, Any]:
    """Recompute in Spark. Only the query is timed; loading the edges into the cache is free."""
    which, signs = windowed(len(rows), window_of(len(rows)))
    steps = spread_over(-(-len(which) // CHANGES), POINTS + 1)[:-1]
    seconds: list[float] = []
    used = 0.0
    answers = {}
    until = time.perf_counter() + LIMIT
    for i, step in enumerate(steps):
        there, sign = which[: (step + 1) * CHANGES], signs[: (step + 1) * CHANGES]
        src, dst = rows[np.setdiff1d(there[sign > 0], there[sign < 0])].T
        frame = spark.createDataFrame(pa.table({"src": src, "dst": dst})).repartition(2).cache()
        frame.count()
        frame.createOrReplaceTempView("edges")
        # One extra query at first, so that code is compiled before it is timed.
        for _ in range(2 if i == 0 else 1):
            start, before = time.perf_counter(), cpu_seconds_of(os.getpid())
            found = _within(spark, until - start, lambda: spark.sql(view).collect())
            taken = time.perf_counter() - start
        frame.unpersist()
        if found is None:
            return _cut_off(seconds, f"{i} of {len(steps)} points", answers)
        seconds.append(taken)
        used += cpu_seconds_of(os.getpid()) - before
        answers[str(step)] = answer(found)
    return {**rate(CHANGES, seconds), "answers": answers, "cpu": used / len(seconds)}


def _joined(spark: Any, place: Path, rows: Edges, view: str) -> dict[str, Any]:
    """Spark's joins of streams, in append mode and without watermarks; the output of each batch is counted."""
    from pyspark.errors import StreamingQueryException

    files = _write(place, rows, max(window_of(len(rows)) // CHANGES, 1))
    schema = "src BIGINT, dst BIGINT"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1")
    # One stream for each occurrence in the query.
    query = view.replace("COUNT(*) AS n", "a.src")
    for name in "abc":
        reader.parquet(str(place / "edges")).createOrReplaceTempView(f"edges_{name}")
        query = query.replace(f"edges {name}", f"edges_{name} {name}")
    ended: list[float] = []
    answers = {}
    total = 0

    def each(results: Any, batch: int) -> None:
        nonlocal total
        total += results.count()
        ended.append(time.perf_counter())
        answers[str(batch)] = answer([(total,)])

    start, used = time.perf_counter(), cpu_seconds_of(os.getpid())
    writer = spark.sql(query).writeStream.foreachBatch(each).outputMode("append")
    running = writer.option("checkpointLocation", str(place / "notes")).trigger(availableNow=True).start()
    try:
        complete = running.awaitTermination(LIMIT)
    except StreamingQueryException as error:
        note = f"Spark gave up after {len(ended)} of {files} files: {str(error).splitlines()[0][:200]}"
        seconds = after_warming(seconds_between([start, *ended])) or [LIMIT]
        return {**rate(CHANGES, seconds), "answers": answers, "note": note}
    seconds = after_warming(seconds_between([start, *ended]))
    if not complete:
        return _cut_off(seconds, f"{len(ended)} of {files} files of inserts", answers)
    used = (cpu_seconds_of(os.getpid()) - used) / len(ended)
    return {**rate(CHANGES, seconds), "answers": answers, "note": "inserts alone", "cpu": used}


def _cut_off(seconds: list[float], reached: str, answers: dict[str, Any]) -> dict[str, Any]:
    """The result of a run that was cut off; if no micro-batch ended, the rate is an upper bound."""
    return {**rate(CHANGES, seconds or [LIMIT]), "answers": answers, "note": f"cut off after {LIMIT:g} s: {reached}"}


def _within(spark: Any, seconds: float, work: Callable[[], Any]) -> Any:
    """The result of ``work``; None if its jobs were stopped at the limit."""
    over = []

    def stop() -> None:
        over.append(True)
        spark.sparkContext.cancelAllJobs()

    timer = Timer(max(seconds, 0.1), stop)
    timer.start()
    try:
        return work()
    except Exception:
        if over:
            return None
        raise
    finally:
        timer.cancel()
