"""Reports rows, seconds and bytes of each version of a run, under the names of Spark's ``StreamingQueryProgress``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from freshviews.records import dataclass
from freshviews.spark.phases import Phases
from freshviews.spark.state.manifest import Manifest

KEPT = 100
"""The number of versions whose progress is kept, as in Spark."""
OURS = "freshviews."
"""Prefix of our phases among those of Spark."""


@dataclass(frozen=True)
class Made:
    """A version, and its seconds by phase, empty for a version of an earlier run. ``of_batch``: it is of a micro-batch
    of this run, so Spark has a progress for it."""

    manifest: Manifest
    seconds: Mapping[str, float]
    of_batch: bool


class Recent:
    """The last versions of a run. One thread adds, others may read meanwhile."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._before = phases.seconds
        self._made: deque[Made] = deque(maxlen=KEPT)

    def add(self, manifest: Manifest, of_batch: bool) -> None:
        """Add a delivered version. Its own seconds are those since the previous one."""
        now = self._phases.seconds
        seconds = {phase: now[phase] - self._before[phase] for phase in now}
        self._before = now
        self._made.append(Made(manifest, seconds, of_batch))

    @property
    def versions(self) -> list[Made]:
        """The versions, the latest last."""
        return list(self._made)


def progress(made: Made, spark: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The progress of a version, with that of its micro-batch among Spark's own progresses."""
    manifest = made.manifest
    # While a batch waits, Spark may report a progress before that of the batch itself.
    found = [one for one in spark if made.of_batch and one["batchId"] == manifest.batch]
    own = dict(found[-1]) if found else {}
    at = datetime.fromtimestamp(manifest.time, UTC)
    milliseconds = {f"{OURS}{phase}": round(1000 * seconds) for phase, seconds in made.seconds.items()}
    return {
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z",
        "batchId": manifest.batch,
        "batchDuration": round(1000 * manifest.seconds),
        "numInputRows": sum(manifest.rows.values()),
        **own,
        "durationMs": {**own.get("durationMs", {}), **milliseconds},
        "stateOperators": [*own.get("stateOperators", ()), *_state_operators(manifest)],
        "version": manifest.version,
        "batch": manifest.batch,
        "rows": manifest.rows,
        "changed": manifest.changed,
        "bytes": manifest.bytes,
        "seconds": manifest.seconds,
        "lag": manifest.lag,
        "bad": manifest.totals.get("bad", {}),
        "cellsLoaded": manifest.cells_loaded,
        "cellsMoved": manifest.cells_moved,
        "spark": found[-1] if found else None,
    }


def count_rows(spark: SparkSession, query: str, rows: Sequence[int]) -> None:
    """Add rows that workers have read to those that Spark counts in its running micro-batch, of each source with new
    files."""
    jvm: Any = spark._jvm
    # It only serves reports.
    with suppress(Py4JError):
        running = spark._jsparkSession.streams().get(jvm.java.util.UUID.fromString(query)).streamingQuery()
        leaves = running.lastExecution().executedPlan().collectLeaves()
        found = [leaves.apply(i) for i in range(leaves.size())]
        scans = [leaf.metrics() for leaf in found if leaf.metrics().contains("numFiles")]
        if len(scans) == len(rows):
            for metrics, count in zip(scans, rows, strict=True):
                metrics.apply("numOutputRows").add(count)


def _state_operators(manifest: Manifest) -> list[dict[str, Any]]:
    """The state of tables and views, in the form of Spark's reports about its own operators."""
    tables = [
        {
            "operatorName": f"table {name}",
            "numRowsUpdated": manifest.rows.get(name, 0),
            "memoryUsedBytes": manifest.bytes.get(name, 0),
        }
        for name in manifest.tables
    ]
    views = [
        {
            "operatorName": f"view {name}",
            **({"numRowsTotal": manifest.stored[name]} if name in manifest.stored else {}),
            "numRowsUpdated": manifest.changed.get(name, 0),
            "memoryUsedBytes": manifest.bytes.get(name, 0),
        }
        for name in manifest.views
    ]
    return [*tables, *views]
