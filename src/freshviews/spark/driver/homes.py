"""Keeps cells on the same executors: each executor has one partition, which Spark runs there in every version.

Spark offers a task to any executor, unless the task reads a cached partition: then Spark offers it to the executor with
the cached block. The *anchor* is a cached table of one key per executor. Rows of a version carry the key of their
partition and are joined with the anchor, so each partition runs on the executor of its key, and the cells of the
partition stay in one Python worker of that executor. The join looks up one key per row, and adds no shuffle to the one
that sends rows to the cells.

If an executor is replaced, its lost block of the anchor is computed again on another executor. If the number of
executors changes, a new anchor is made, and each cell moves to a new home once.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

HOME = "_home"
_SETTLES = 20.0
"""Seconds for which the number of executors must stay before an anchor is replaced: they start one by one."""
_TRIES = 5
_LOCALITY = "spark.shuffle.reduceLocality.enabled"
_LOGGER = logging.getLogger("freshviews")
_POOL = "FRESHVIEWS_WORKERS"
_POOLS = RLock()


@dataclass(frozen=True)
class Partitions:
    """How cells are assigned to Spark's partitions. ``direct``: one partition, without a shuffle. ``keys[p]``: the key
    that hash partitioning sends to partition p; ``anchor`` has these keys, each cached on an executor."""

    count: int
    direct: bool
    keys: Sequence[int] = ()
    anchor: DataFrame | None = None

    def sent(self, rows: DataFrame, cell: str) -> DataFrame:
        """Rows in the partitions of their cells; ``cell`` is the expression of a row's cell."""
        if self.anchor is None:
            return rows.repartitionById(self.count, F.expr(f"{cell} % {self.count}"))
        key = F.expr(f"element_at(array({', '.join(map(str, self.keys))}), CAST({cell} % {self.count} AS INT) + 1)")
        placed = rows.withColumn(HOME, key).repartition(self.count, HOME)
        return placed.join(self.anchor.hint("shuffle_hash"), HOME).drop(HOME)


@contextmanager
def workers(spark: SparkSession, pool: str) -> Iterator[None]:
    """Functions given to Spark here run in Python workers of their own; an outer pool of the same thread counts.

    Spark gives a task any idle worker of the same environment. So an executor has one worker with cells, whatever
    other Python functions run there. All threads have one environment, so another thread waits: plan jobs here, and run
    them afterwards.
    """
    environment = spark.sparkContext.environment
    with _POOLS:
        before = environment.get(_POOL)
        environment[_POOL] = before or pool
        try:
            yield
        finally:
            if before is None:
                del environment[_POOL]


class Homes:
    """The process in which each cell of a checkpoint was last."""

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self._processes: dict[str, str] = {}
        self._loaded = self._moved = 0

    @property
    def processes(self) -> Mapping[str, str]:
        """By cell, the process that has it."""
        return self._processes

    def partitions(self, text: bool) -> Partitions:
        """As of ``Anchor``."""
        return self._anchor.partitions(text)

    def note(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Note where the cells of a job ran."""
        for result in results:
            process = result.get("process")
            if process is not None:
                self._loaded += result["loaded"]
                self._moved += self._processes.get(result["cell"], process) != process
                self._processes[result["cell"]] = process

    def counted(self) -> tuple[int, int]:
        """The cells that were read from files, and those that were in another process before, since the last call."""
        counts = self._loaded, self._moved
        self._loaded = self._moved = 0
        return counts


def homes_of(spark: SparkSession, address: str) -> Homes:
    """The homes of the cells of a checkpoint in a Spark application. They outlast a run: so does each worker."""
    application = spark.sparkContext.applicationId
    with _LOCK:
        if application not in _ANCHORS:
            _ANCHORS[application] = Anchor(spark)
        return _HOMES.setdefault((application, address), Homes(_ANCHORS[application]))


class Anchor:
    """The partitions of a Spark application, one per executor."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._at: Partitions | None = None
        self._cached: _Cached | None = None
        self._executors: frozenset[str] = frozenset()
        self._other_since: float | None = None
        self._lock = Lock()

    def partitions(self, text: bool) -> Partitions:
        """One partition per executor: its cells share a Python worker, which keeps them in memory between versions.

        ``text``: rows are read from text files; on many cores that is worth a shuffle.
        """
        context = self._spark.sparkContext
        if context.master.startswith("local["):
            return Partitions(1, not text or context.defaultParallelism <= 2)
        with self._lock:
            executors = self._running()
            if not executors:
                return Partitions(1, False)
            if self._at is None:
                self._warn_of_locality()
            if self._at is None or self._is_outgrown(self._at, executors):
                self._at = self._replaced(len(executors))
            elif executors != self._executors:
                self._spread(self._at.count)
            self._executors = executors
            return self._at

    def _warn_of_locality(self) -> None:
        if self._spark.sparkContext.getConf().get(_LOCALITY, "true") != "false":
            _LOGGER.warning(
                "cells may move between executors, and are then read from the checkpoint again: start Spark with "
                "%s=false",
                _LOCALITY,
            )

    def _is_outgrown(self, at: Partitions, executors: frozenset[str]) -> bool:
        """True if the number of executors has been another one for a while."""
        now = time.monotonic()
        if len(executors) == at.count:
            self._other_since = None
        elif self._other_since is None or executors != self._executors:
            self._other_since = now
        return self._other_since is not None and now - self._other_since >= _SETTLES

    def _replaced(self, count: int) -> Partitions:
        if self._cached is not None:
            self._cached.free()
        self._other_since = None
        keys = _keys(self._spark, count)
        # The name of this anchor, so that Spark takes no older one for it.
        text = f"SELECT explode(array({', '.join(map(str, keys))})) AS {HOME}, '{uuid.uuid4().hex}' AS anchor"
        frame = self._spark.sql(text).repartition(count, HOME).persist()
        self._cached = _Cached(self._spark, frame)
        self._spread(count)
        return Partitions(count, False, keys, frame.select(HOME))

    def _spread(self, count: int) -> None:
        """Compute the blocks that are missing, and again those that share an executor while another one has none."""
        assert self._cached is not None
        for _ in range(_TRIES):
            self._cached.compute()
            places = self._cached.places(count)
            crowded = [p for p, place in enumerate(places) if place in places[:p]]
            free = self._running() - set(places)
            if not crowded or not free:
                return
            self._cached.forget(crowded[: len(free)])

    def _running(self) -> frozenset[str]:
        """Host and port of the executors."""
        jvm = self._spark._jvm
        assert jvm is not None
        driver = jvm.org.apache.spark.SparkEnv.get().blockManager().blockManagerId().hostPort()
        found = self._spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ").split()
        return frozenset(found) - {driver}


_ANCHORS: dict[str, Anchor] = {}
_HOMES: dict[tuple[str, str], Homes] = {}
_LOCK = Lock()


class _Cached:
    """A cached frame and the executors of its blocks."""

    def __init__(self, spark: SparkSession, frame: DataFrame) -> None:
        self._jvm: Any = spark._jvm
        self._frame = frame
        plan = frame._jdf.queryExecution().withCachedData()
        self._rdd = plan.cacheBuilder().cachedColumnBuffers().id()

    def free(self) -> None:
        """Drop all blocks."""
        self._frame.unpersist()

    def compute(self) -> None:
        """Compute the blocks that are not there."""
        self._frame.count()

    def places(self, count: int) -> list[str]:
        """Host and port of the executor of each block; "" where there is none."""
        found = [self._master.getLocations(self._block(number)) for number in range(count)]
        return [places.apply(0).hostPort() if places.size() else "" for places in found]

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop blocks."""
        for number in numbers:
            self._master.removeBlock(self._block(number))

    @property
    def _master(self) -> Any:
        return self._jvm.org.apache.spark.SparkEnv.get().blockManager().master()

    def _block(self, number: int) -> Any:
        return self._jvm.org.apache.spark.storage.RDDBlockId(self._rdd, number)


def _keys(spark: SparkSession, count: int) -> list[int]:
    """For each partition the least integer that Spark's hash partitioning sends there."""
    tries = 20 * count + 50
    (found,) = spark.sql(
        f"SELECT transform(sequence(0, {tries}), x -> pmod(hash(CAST(x AS INT)), {count})) AS places"
    ).head() or ((),)
    return [found.index(number) for number in range(count)]
