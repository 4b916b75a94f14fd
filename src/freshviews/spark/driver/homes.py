"""Assigns each cell to one executor of Spark. This executor is called the *home* of the cell.

A Python worker of the home keeps the engine of the cell in memory from version to version.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock, RLock
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from freshviews.records import dataclass

HOME = "_home"
_START = 10.0
"""Maximum seconds to wait for the executors that Spark starts with, and of the jobs that spread the first anchor: cells
that share an executor would move later."""
_REPLACED = 15.0
"""Maximum seconds to wait for the replacement of an executor."""
_SETTLES = 20.0
"""Seconds between two tries to use executors without a key: executors start one by one, or are busy."""
_SPREADS = 2.0
"""Maximum seconds of the jobs that spread another anchor: Spark picks the executor of each."""
_BACKLOG = 1_500
"""Milliseconds of a task for which another one waits, so that dynamic allocation starts an executor."""
_LOCALITY = "shuffle.reduceLocality.enabled"
_LOGGER = logging.getLogger("freshviews")
_POOL = "FRESHVIEWS_WORKERS"
_POOLS = RLock()


@dataclass(frozen=True)
class Partitions:
    """How cells are assigned to Spark's partitions. ``direct``: one partition, without a shuffle, and ``cores``: the
    cores of its process. ``keys[c]``: the key in ``anchor`` that hash partitioning sends to the partition of cell c."""

    count: int
    direct: bool
    cores: int = 1
    keys: Sequence[int] = ()
    anchor: DataFrame | None = None

    def for_text(self) -> Partitions:
        """The partitions for rows of text files: with more than two cores, reading in parallel is worth a shuffle."""
        return replace(self, direct=self.direct and self.cores <= 2)

    def sent(self, rows: DataFrame, cell: str) -> DataFrame:
        """Rows in the partitions of their cells; ``cell`` is the expression of a row's cell."""
        if self.anchor is None:
            return rows.repartitionById(self.count, F.expr(f"{cell} % {self.count}"))
        key = F.expr(f"element_at(array({', '.join(map(str, self.keys))}), CAST({cell} AS INT) + 1)")
        placed = rows.withColumn(HOME, key).repartition(self.count, HOME)
        return placed.join(self.anchor.hint("shuffle_hash"), HOME).drop(HOME)


@contextmanager
def workers(spark: SparkSession, pool: str, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Functions given to Spark here run in Python workers of their own; an outer pool of the same thread counts.

    Spark gives a task any idle worker of the same environment. So an executor has one worker with cells, whatever
    other Python functions run there. All threads have one environment, so another thread waits: plan jobs here, and run
    them afterwards. The environment is replaced, not changed: a thread that does not wait may be copying it.
    """
    context = spark.sparkContext
    with _POOLS:
        before = context.environment
        context.environment = {_POOL: pool, **before, **more}
        try:
            yield
        finally:
            added = {_POOL, *more} - before.keys()
            context.environment = {name: value for name, value in context.environment.items() if name not in added}


class Homes:
    """The executor of each cell of a checkpoint, and the process in which the cell was last."""

    def __init__(self, spark: SparkSession, anchors: Anchors) -> None:
        self._spark = spark
        self._anchors = anchors
        self._executors: dict[int, str] = {}
        self._places: Sequence[str] = ()
        self._processes: dict[str, str] = {}
        self._loaded = self._moved = 0

    @property
    def processes(self) -> Mapping[str, str]:
        """By cell, the process that has it."""
        return self._processes

    def partitions(self, cells: int = 1) -> Partitions:
        """One partition per executor: its cells share a Python worker, which keeps them in memory between versions.

        ``cells``: their number, at least that of a call before.
        """
        context = self._spark.sparkContext
        if context.master.startswith("local["):
            return Partitions(1, True, context.defaultParallelism)
        cells = max(cells, len(self._executors))
        anchor = self._anchors.current(cells)
        if anchor is None:
            # As many tasks as cells, so that dynamic allocation starts executors for them.
            return Partitions(cells, False)
        followed = {cell: self._anchors.followed(one) for cell, one in self._executors.items()}
        self._executors = assigned(cells, followed, anchor.places, balance=anchor.places != self._places)
        self._places = anchor.places
        keys = [anchor.keys[anchor.places.index(self._executors[cell])] for cell in range(cells)]
        return Partitions(len(anchor.keys), False, keys=keys, anchor=anchor.rows)

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


def assigned(cells: int, before: Mapping[int, str], places: Sequence[str], *, balance: bool) -> dict[int, str]:
    """The executor of each cell, of those in ``places``: the one of ``before`` if it is there.

    Other cells go where the fewest are. ``balance``: cells also move from executors with more than their share.

    A cell stays at its executor while the executor runs. If the executor is lost between two versions, the next version
    waits some seconds for a replacement. Without one, each of its cells goes to the executor with the fewest cells. A
    new executor gets cells only from executors with more than the average number of cells, rounded up.
    """
    executors = [one for one in dict.fromkeys(places) if one]
    found = {cell: executor for cell, executor in before.items() if executor in executors}
    number = Counter(found.values())

    def put(cell: int) -> None:
        found[cell] = min(executors, key=lambda one: number[one])
        number[found[cell]] += 1

    for cell in range(cells):
        if cell not in found:
            put(cell)
    most = max(executors, key=lambda one: number[one])
    while balance and number[most] > -(-len(found) // len(executors)):
        number[most] -= 1
        put(max(cell for cell, executor in found.items() if executor == most))
        most = max(executors, key=lambda one: number[one])
    return found


def homes_of(spark: SparkSession, address: str) -> Homes:
    """The homes of the cells of a checkpoint in a Spark application. They outlast a run: so does each worker."""
    application = spark.sparkContext.applicationId
    with _LOCK:
        if application not in _ANCHORS:
            _ANCHORS[application] = Anchors(spark)
        return _HOMES.setdefault((application, address), Homes(spark, _ANCHORS[application]))


@dataclass(frozen=True)
class Anchor:
    """A cached table of ``keys``, of which partition p has key p; ``places[p]``: host and port of its executor.

    Spark offers a task to any executor, unless the task reads a cached partition. The *anchor* is a cached table of one
    key per executor. Each row of a version gets the key of its cell's executor, and is joined with the anchor. So the
    rows of an executor's cells are one partition, and its task runs on that executor. The join adds no shuffle.
    """

    keys: Sequence[int]
    cached: DataFrame
    rows: DataFrame
    places: Sequence[str]


class Anchors:
    """The anchor of a Spark application, and those before it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._at: Anchor | None = None
        self._executors: frozenset[str] = frozenset()
        self._tried = 0.0
        self._followed: dict[str, str] = {}
        self._lock = Lock()

    def followed(self, executor: str) -> str:
        """The executor that repeated the tasks of a lost one; the same one otherwise."""
        return self._followed.get(executor, executor)

    def current(self, cells: int) -> Anchor | None:
        """The anchor for a job with this number of cells; None if there is no executor."""
        with self._lock:
            executors = self._running()
            if self._at is None:
                self._warn_of_locality()
                executors = self._awaited(min(cells, self._expected(cells)), _START)
                if executors:
                    self._at = self._new(min(cells, len(executors)), _START)
            elif executors != self._executors:
                self._at = self._looked_up(self._at)
                if not executors.issuperset(self._at.places):
                    executors = self._awaited(len(set(self._at.places)), _REPLACED)
                    self._at = self._spread(self._at, len(executors), _SPREADS)
            self._executors = executors
            wanted = min(cells, len(executors))
            is_due = time.monotonic() - self._tried > _SETTLES
            if self._at is not None and is_due and len({*self._at.places} - {""}) < wanted:
                self._at = self._on_more(self._at, wanted)
            return self._at

    def _warn_of_locality(self) -> None:
        if self._conf(_LOCALITY, "true") != "false":
            _LOGGER.warning(
                "cells may move between executors, and are then read from the checkpoint again: start Spark with "
                "spark.%s=false",
                _LOCALITY,
            )

    def _conf(self, name: str, default: str) -> str:
        return self._spark.sparkContext.getConf().get(f"spark.{name}", default) or default

    @property
    def _is_dynamic(self) -> bool:
        return self._conf("dynamicAllocation.enabled", "false") == "true"

    def _expected(self, cells: int) -> int:
        """The number of executors that Spark starts with, if that is known; with dynamic allocation as many as have a
        core for each cell."""
        if self._is_dynamic:
            most = int(self._conf("dynamicAllocation.maxExecutors", str(cells)))
            return min(-(-cells // int(self._conf("executor.cores", "1"))), most)
        cluster = re.match(r"local-cluster\[\s*(\d+)", self._spark.sparkContext.master)
        return int(cluster[1]) if cluster else int(self._conf("executor.instances", "0"))

    def _awaited(self, count: int, seconds: float) -> frozenset[str]:
        """The executors, after waiting until there are ``count``."""
        until = time.monotonic() + seconds
        while len(executors := self._running()) < count and time.monotonic() < until:
            if self._is_dynamic:
                self._keep_waiting(count)
            else:
                time.sleep(0.05)
        return executors

    def _keep_waiting(self, executors: int) -> None:
        """A job with a task for each core of a number of executors. Dynamic allocation starts executors for tasks that
        wait for a second, takes back what is requested otherwise, and an executor has one task for all of its cells."""
        tasks = executors * int(self._conf("executor.cores", "1"))
        waits = f"java_method('java.lang.Thread', 'sleep', {_BACKLOG}L)"
        self._spark.range(0, tasks, 1, tasks).selectExpr(waits).collect()

    def _looked_up(self, at: Anchor) -> Anchor:
        """The anchor with its places now: where a task was repeated, the block of its partition was computed again."""
        places = [new or old for new, old in zip(self._places(at), at.places, strict=True)]
        self._followed |= {old: new for new, old in zip(places, at.places, strict=True) if old != new}
        return replace(at, places=places)

    def _on_more(self, at: Anchor, count: int) -> Anchor:
        """An anchor on this number of executors, if Spark spreads its tasks so and no executor with cells is left out;
        else the same one."""
        self._tried = time.monotonic()
        if len(at.keys) >= count:
            return self._spread(at, count, _SPREADS)
        new = self._new(count, _SPREADS)
        free, kept = (at, new) if set(at.places) <= set(new.places) else (new, at)
        free.cached.unpersist()
        return kept

    def _new(self, count: int, seconds: float) -> Anchor:
        self._tried = time.monotonic()
        keys = _keys(self._spark, count)
        # The name of this anchor, so that Spark takes no older one for it.
        text = f"SELECT explode(array({', '.join(map(str, keys))})) AS {HOME}, '{uuid.uuid4().hex}' AS anchor"
        cached = self._spark.sql(text).repartition(count, HOME).persist()
        return self._spread(Anchor(keys, cached, cached.select(HOME), ()), count, seconds)

    def _spread(self, at: Anchor, executors: int, seconds: float) -> Anchor:
        """Compute the blocks that are missing, and again those that share an executor while another one has none."""
        until = time.monotonic() + seconds
        while True:
            at.cached.count()
            places = self._places(at)
            crowded = [number for number, place in enumerate(places) if place in ("", *places[:number])]
            if len(places) - len(crowded) >= min(executors, len(places)) or time.monotonic() > until:
                return replace(at, places=places)
            for number in crowded:
                self._master.removeBlock(self._block(at, number))

    def _running(self) -> frozenset[str]:
        """Host and port of the executors."""
        driver = self._jvm.org.apache.spark.SparkEnv.get().blockManager().blockManagerId().hostPort()
        found = self._spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ").split()
        return frozenset(found) - {driver}

    def _places(self, at: Anchor) -> list[str]:
        """Host and port of the executor of each block; "" where there is none."""
        found = [self._master.getLocations(self._block(at, number)) for number in range(len(at.keys))]
        return [places.apply(0).hostPort() if places.size() else "" for places in found]

    def _block(self, at: Anchor, number: int) -> Any:
        rdd = at.cached._jdf.queryExecution().withCachedData().cacheBuilder().cachedColumnBuffers().id()
        return self._jvm.org.apache.spark.storage.RDDBlockId(rdd, number)

    @property
    def _master(self) -> Any:
        return self._jvm.org.apache.spark.SparkEnv.get().blockManager().master()


_ANCHORS: dict[str, Anchors] = {}
_HOMES: dict[tuple[str, str], Homes] = {}
_LOCK = Lock()


def _keys(spark: SparkSession, count: int) -> list[int]:
    """For each partition the least integer that Spark's hash partitioning sends there."""
    tries = 20 * count + 50
    (found,) = spark.sql(
        f"SELECT transform(sequence(0, {tries}), x -> pmod(hash(CAST(x AS INT)), {count})) AS places"
    ).head() or ((),)
    return [found.index(number) for number in range(count)]
