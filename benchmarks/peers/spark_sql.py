"""Spark: recomputing the view at the points of comparison, and its stream joins, which do not support deletes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring.answers import answer, answer_of
from benchmarks.measuring.course import Course, limit
from benchmarks.measuring.stream import Stream
from benchmarks.pipeline.run import session


def recompute(stream: Stream) -> dict[str, Any]:
    """Spark SQL over cached tables; only the query is timed, at the points of comparison."""
    db = duckdb.connect()
    for relation in stream.relations:
        db.execute(relation.plain_ddl())
    with session() as spark:
        course = Course(stream, sampled=stream.compared)
        warm = False
        for i, step in course:
            for sign, rows in step.parts:
                db.register("batch", rows)
                keys = ", ".join(stream.relation(step.table).identity)
                db.execute(
                    f"INSERT INTO {step.table} SELECT * FROM batch"
                    if sign > 0
                    else f"DELETE FROM {step.table} WHERE ({keys}) IN (SELECT ({keys}) FROM batch)"
                )
                db.unregister("batch")
            if i not in course.compared:
                continue
            frames = []
            for relation in stream.relations:
                found = db.execute(f"SELECT * FROM {relation.name}")
                rows = (getattr(found, "to_arrow_table", None) or found.fetch_arrow_table)()
                frame = spark.createDataFrame(rows).repartition(2).cache()
                frame.count()
                frame.createOrReplaceTempView(relation.name)
                frames.append(frame)
            if not warm:
                try:
                    spark.sql(stream.view).toArrow()
                except Exception as error:
                    return {"refused": str(error).splitlines()[0][:200]}
                warm = True
            course.go()
            result = spark.sql(stream.view).toArrow()
            course.stop()
            course.answers[str(i)] = answer_of(result)
            for frame in frames:
                frame.unpersist()
        return course.result(sampled_steps=len(course.compared), cpu_seconds=None, rows_per_cpu_second=None)


def join_streams(stream: Stream) -> dict[str, Any]:
    """Streams joined in append mode, one for each occurrence of the edge table, over the first batches, which have only
    inserts. A file is a batch; the output is counted or stored."""
    if "atoms" not in stream.pattern:
        return {"missing": "no stream-stream join: the view aggregates more than a count of rows"}
    if "DISTINCT" in stream.view:
        return {"missing": "no stream-stream join: DISTINCT over joined streams is not in append mode"}
    counted = "COUNT(*)" in stream.view
    first = next((i for i, step in enumerate(stream.steps) if any(s < 0 for s, _ in step.parts)), len(stream.steps))
    inserts = Stream(stream.relations, stream.view, stream.steps[:first], tuple(range(first)), pattern=stream.pattern)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place, session() as spark:
        for i, step in enumerate(inserts.steps):
            ((_, rows),) = step.parts
            (Path(place) / "edge").mkdir(exist_ok=True)
            pq.write_table(pa.Table.from_batches([rows]), Path(place) / "edge" / f"{i:06d}.parquet")
            time.sleep(0.002)  # Spark reads files in the order of their times, in milliseconds
        query = stream.view.replace("COUNT(*) AS n", "r.src")
        schema = "src BIGINT, dst BIGINT"
        for alias, *_ in stream.pattern["atoms"]:  # type: ignore[attr-defined]
            reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1")
            reader.parquet(f"{place}/edge").createOrReplaceTempView(f"edge_{alias}")
            query = query.replace(f"edge {alias}", f"edge_{alias} {alias}")
        Course(inserts)  # reports that the clock starts; a micro-batch is not an iteration of this loop
        ended: list[tuple[float, int, Any]] = []
        total = 0
        kept: list[Any] = []

        def each(results: Any, batch: int) -> None:
            nonlocal total
            if counted:
                total += results.count()
            else:
                kept.append(results.toArrow())
            ended.append((time.perf_counter(), batch, total))

        start = time.perf_counter()
        writer = spark.sql(query).writeStream.foreachBatch(each).outputMode("append")
        running = writer.option("checkpointLocation", f"{place}/notes").trigger(availableNow=True).start()
        timer = Timer(limit() if limit() < 1e6 else 1e6, running.stop)
        timer.start()
        complete = running.awaitTermination(min(limit(), 1e6))
        timer.cancel()
        if not ended:
            return {"cut": f"cut off after {limit():g} s, in the first batch"}
        rows_done = sum(len(step.rows) for step in inserts.steps[: len(ended)])
        seconds = ended[-1][0] - start
        found: dict[str, Any] = {
            "rows": rows_done,
            "wall_seconds": seconds,
            "rows_per_second": rows_done / seconds,
            "steps_done": len(ended),
            "steps": len(stream.steps),
            "note": f"inserts alone: {len(ended):,} of {len(stream.steps):,} batches",
            "answers": {str(batch): answer([(n,)]) for _, batch, n in ended} if counted else {},
        }
        if not complete:
            found["cut"] = f"cut off after {limit():g} s: {len(ended):,} of {len(inserts.steps):,} batches of inserts"
        return found
