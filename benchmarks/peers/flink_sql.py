"""Flink SQL in a local mini-cluster: joins as Flink plans them by default, mini-batches on, all cores.

Its experimental multi-join (``table.optimizer.multi-join.enabled``) returns wrong triangle counts and stays off. Flink
does not report when a batch is done. So it gets all rows between two points of comparison as one file for each table,
and the next files when the view has the right answer. That favours Flink, which waits ten times instead of after every
batch.
"""

from __future__ import annotations

import json
import os
import queue
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.measuring.answers import answer, hashed, same_rows
from benchmarks.measuring.course import Course, expected_answers
from benchmarks.measuring.stream import Stream

SETTINGS = {
    "parallelism.default": str(os.cpu_count()),
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "20 ms",
    "table.exec.mini-batch.size": "5000",
    "table.exec.resource.default-parallelism": str(os.cpu_count()),
    "jobmanager.memory.heap.size": "1g",
}
START = 2.0
"""Seconds for the tasks of a job to start; they do not count."""
QUIET = 0.25
"""Seconds without a change of the view after which it is compared."""
STALE = 30.0
"""Seconds without a change after which a wrong answer is final."""


def run(stream: Stream) -> dict[str, Any]:
    """Run the stream through Flink SQL; a view that Flink refuses is reported with the reason."""
    expected = expected_answers()
    if not expected:
        return {"missing": "there is no answer of another strategy to wait for"}
    settings = Configuration()
    for key, value in SETTINGS.items():
        settings.set_string(key, value)
    builder = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings)
    environment = TableEnvironment.create(builder.build())
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place:
        for relation in stream.relations:
            folder = Path(place) / relation.name
            folder.mkdir()
            columns = ", ".join(f"`{name}` {_type(kind)}" for name, kind in relation.types().items())
            environment.execute_sql(
                f"CREATE TABLE {relation.name} ({columns}) WITH ('connector' = 'filesystem', "
                f"'path' = 'file://{folder}', 'format' = 'debezium-json', 'source.monitor-interval' = '5 ms')"
            )
        try:
            result = environment.sql_query(stream.view).execute()
        except Exception as error:
            reasons = [line.strip() for line in str(error).splitlines() if "Exception: " in line]
            return {"refused": (reasons[-1] if reasons else str(error).splitlines()[0])[-200:]}
        client = result.get_job_client()
        assert client is not None
        while client.get_job_status().result().name != "RUNNING":
            time.sleep(0.1)
        time.sleep(START)
        return _fed(stream, Path(place), _Seen(result.collect(), stream.empty), expected)


def _fed(stream: Stream, place: Path, seen: _Seen, expected: dict[str, Any]) -> dict[str, Any]:
    texts = _files(stream)
    course = Course(stream, grouped=True)
    for i, _ in course:
        if i not in course.compared:
            continue
        course.go()
        for table, text in texts[i].items():
            aside = place / table / f".{i:06d}"
            aside.write_text(text)
            aside.rename(place / table / f"{i:06d}.json")
        wrong = seen.wait_for(expected[str(i)], course)
        course.stop()
        if wrong is not None:
            return {"failed": f"after step {i} it has {wrong[:2]}, and {expected[str(i)][:2]} is right"[:300]}
        course.answers[str(i)] = expected[str(i)]
    return course.result()


def _files(stream: Stream) -> dict[int, dict[str, str]]:
    """The rows before each point of comparison, by table, as text."""
    found: dict[int, dict[str, str]] = {}
    lines: dict[str, list[str]] = {}
    for i, step in enumerate(stream.steps):
        for sign, rows in step.parts:
            for row in rows.to_pylist():
                values = {key: v if isinstance(v, int | float | str) else str(v) for key, v in row.items()}
                change = {"before": None, "after": values, "op": "c"}
                if sign < 0:
                    change = {"before": values, "after": None, "op": "d"}
                lines.setdefault(step.table, []).append(json.dumps(change))
        if i in stream.compared:
            found[i] = {table: "\n".join(text) + "\n" for table, text in lines.items()}
            lines = {}
    return found


def _type(kind: str) -> str:
    return {"TIMESTAMP": "TIMESTAMP(6)"}.get(kind, kind)


class _Seen:
    """The view as emitted by Flink so far."""

    def __init__(self, changes: Any, empty: list[tuple[int, ...]]) -> None:
        self._empty = empty
        self._rows: Counter[tuple[Any, ...]] = Counter()
        self._emitted: queue.Queue[Any] = queue.Queue()
        self._last = time.perf_counter()
        threading.Thread(target=self._read, args=(changes,), daemon=True).start()

    def _read(self, changes: Any) -> None:
        for row in changes:
            self._emitted.put((time.perf_counter(), row.get_row_kind().value, tuple(row)))

    def wait_for(self, expected: Any, course: Course) -> Any:
        """Wait until the view is as expected and stop the clock at its last change; otherwise return the view."""
        begun = time.perf_counter()
        while True:
            try:
                at, kind, row = self._emitted.get(timeout=QUIET)
                # 0 and 2 are +I and +U, 1 and 3 are -U and -D.
                self._rows[row] += 1 if kind in (0, 2) else -1
                self._last = at
            except queue.Empty:
                now = time.perf_counter()
                has = self._answer(expected)
                if same_rows(has, expected):
                    course.stop()
                    course.give_back(now - max(self._last, begun))
                    course.go()
                    return None
                if now - max(self._last, begun) > STALE:
                    return has

    def _answer(self, expected: Any) -> Any:
        self._rows = Counter({row: count for row, count in self._rows.items() if count})
        rows = list(self._rows.elements())
        if expected and expected[0][0] == "rows":
            import numpy as np

            return hashed(list(np.array(rows, np.int64).reshape(len(rows), -1).T)) if rows else answer([])
        return answer(rows or self._empty)
