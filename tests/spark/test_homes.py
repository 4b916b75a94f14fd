"""Cells stay in the process that has them: nothing is read from files after the first version."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.driver.homes import Homes, Partitions, assigned, workers
from freshviews.spark.reading.contents import latest
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.clusters import EXECUTOR, running, standalone
from tests.spark.faults import command_of, descendants, environment, gone, kill
from tests.spark.shop import EVERY_SINK, Shop, check

pytestmark = pytest.mark.spark

MASTER = "local-cluster[3,1,1024]"
VERSIONS = 100 if "KILLS" in os.environ else 8

PROGRAM = """
import sys, threading, time
from freshviews.spark import Pipeline, start_session
from freshviews.spark.driver import homes
from pyspark.sql.functions import udf

homes._SETTLES = 0.0  # A first anchor that leaves executors out is replaced at the next version, and cells move.

def others(spark, ended):
    "Python and plain jobs of all sizes, beside the versions."
    add = udf(lambda value: value + 1, "long")
    wait = udf(lambda value: time.sleep(4.5) or value, "long")
    number = 0
    while not ended.is_set():
        spark.range(0, 100, 1, 6).select(add("id")).collect()
        spark.range(0, 100_000, 1, 6).selectExpr("id % 7 AS k").groupBy("k").count().collect()
        if number % 20 == 5:
            spark.range(0, 3, 1, 3).select(wait("id")).collect()
        number += 1
        time.sleep(1)

def made(spark):
    pipeline = Pipeline(spark, "ckpt", cells=CELLS)
    pipeline.table_of("CREATE TABLE orders (o_id BIGINT NOT NULL, cust BIGINT, PRIMARY KEY (o_id))")
    pipeline.table_of("CREATE TABLE items (o_id BIGINT, part BIGINT)")
    pipeline.view("by_part", "SELECT part, COUNT(*) AS n FROM orders JOIN items USING (o_id) GROUP BY part")
    return pipeline

def advance(spark, versions):
    orders = spark.range(200).selectExpr("id AS o_id", "id % 9 AS cust")
    for version in range(versions):
        rows = spark.range(60).selectExpr("(id * 7 + {0}) % 200 AS o_id".format(version), "id % 5 AS part")
        made(spark).advance({"items": rows, "orders": orders} if version == 0 else {"items": rows})

def stream(spark, versions):
    for number in range(versions):
        rows = spark.range(0, 60, 1, 1).selectExpr("(id * 7 + {0}) % 200 AS o_id".format(number), "id % 5 AS part")
        rows.write.mode("append").parquet("items")
    pipeline = Pipeline.from_script(spark, "shop.sql", cells=CELLS)
    pipeline.start(once=True).awaitTermination()

def main(how, versions, master):
    spark = start_session(master, quiet=True)
    ended = threading.Event()
    beside = threading.Thread(target=others, args=(spark, ended))
    beside.start()
    try:
        how(spark, versions)
    finally:
        ended.set()
        beside.join()
    spark.stop()

CELLS = int(sys.argv[4])
main({"advance": advance, "stream": stream}[sys.argv[1]], int(sys.argv[2]), sys.argv[3])
"""
STREAM = """
CREATE STREAMING TABLE items (o_id BIGINT, part BIGINT) USING parquet OPTIONS (path 'items', maxFilesPerTrigger '1');
CREATE MATERIALIZED VIEW by_part AS SELECT part, COUNT(*) AS n FROM items GROUP BY part;
CREATE MATERIALIZED VIEW pairs AS SELECT a.part, COUNT(*) AS n FROM items a JOIN items b USING (o_id) GROUP BY a.part;
"""


def moves(checkpoint: Path, first: int) -> list[tuple[int, int]]:
    """How many cells were read from files, and how many moved, in each version after ``first``."""
    found = Manifests(store_of(checkpoint))
    kept: list[Manifest] = [found.read(version) for version in found.versions() if version > first]
    assert kept
    return [(one.cells_loaded, one.cells_moved) for one in kept]


def test_threads_do_not_share_a_pool_of_workers() -> None:
    """Functions that one thread gives to Spark never get the pool that another thread has chosen."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(environment={}))
    seen: list[tuple[str, str]] = []

    def choose(pool: str) -> None:
        for _ in range(50):
            with workers(spark, pool), workers(spark, "inner"):  # type: ignore[arg-type]
                time.sleep(0)
                seen.append((pool, *spark.sparkContext.environment.values()))

    threads = [threading.Thread(target=choose, args=(pool,)) for pool in ("cells", "filling")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {("cells", "cells"), ("filling", "filling")} and not spark.sparkContext.environment


def test_the_pool_of_workers_for_cells_can_be_set_while_another_thread_copies_the_environment() -> None:
    """PySpark copies the environment of each function that it sends, without the lock of the pools."""
    spark = SimpleNamespace(sparkContext=SimpleNamespace(environment={"PYTHONHASHSEED": "0"}))
    copied = iter(spark.sparkContext.environment.items())
    next(copied)
    with workers(spark, "cells"):  # type: ignore[arg-type]
        assert not list(copied)
        copied = iter(spark.sparkContext.environment.items())
        next(copied)
    assert list(copied) and spark.sparkContext.environment == {"PYTHONHASHSEED": "0"}


def test_a_shuffle_spreads_the_reading_of_text_files_over_more_than_two_cores() -> None:
    for cores, direct in ((1, True), (2, True), (3, False)):
        context = SimpleNamespace(master=f"local[{cores}]", defaultParallelism=cores)
        at = Homes(SimpleNamespace(sparkContext=context), None).partitions()  # type: ignore[arg-type]
        assert (at.count, at.direct, at.for_text().direct) == (1, True, direct)


@pytest.mark.full
def test_each_version_looks_up_the_executors_of_its_cells_only_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def partitions(self: Homes, cells: int = 1) -> Partitions:
        asked.append(cells)
        return own(self, cells)

    own = Homes.partitions
    monkeypatch.setattr(Homes, "partitions", partitions)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.csv").write_text("k\n1\n")
    (tmp_path / "script.sql").write_text(
        "CREATE STREAMING TABLE a (k BIGINT) USING csv OPTIONS (path 'a', header 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM a;"
    )
    query = Pipeline.from_script(spark, tmp_path / "script.sql").start(once=True)
    query.awaitTermination()
    assert len(asked) == query.version == 2  # the first version has no rows


def test_at_a_restart_the_rows_of_a_cell_go_to_the_worker_that_loads_the_cell(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "script.sql").write_text(
        "CREATE STREAMING TABLE a (k BIGINT) USING csv OPTIONS (path 'a', header 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM a;"
    )
    for number in range(2):
        (tmp_path / "a" / f"{number}.csv").write_text("k\n1\n")
        Pipeline.from_script(spark, tmp_path / "script.sql", cells=2).start(once=True).awaitTermination()
        last = latest(store_of(tmp_path / "script.checkpoint"))
        # The daemon that starts workers stays: Spark fails a task whose idle worker has lost it.
        daemons = [one for one in descendants(os.getpid()) if "pyspark.daemon" in command_of(one)]
        workers = [worker for daemon in daemons for worker in descendants(daemon)]
        for worker in workers:
            kill(worker)
        assert not gone(workers)
    # Both cells are in a new worker. Only the cell with rows has files, which were read once.
    assert (last.version, last.cells_loaded, last.cells_moved) == (3, 1, 2)


@pytest.mark.parametrize(
    ("before", "places", "balance", "after"),
    [
        ({}, ("a", "b", "c"), True, "abcabca"),
        ({0: "a", 1: "b", 2: "c"}, ("c", "b", "d"), True, "dbc"),  # a is lost, d replaces it
        ({0: "a", 1: "b", 2: "c"}, ("b", "c"), True, "bbc"),
        ({0: "a", 1: "b", 2: "c"}, ("a", "b", "c", "d"), True, "abc"),  # another one is of no use
        ({0: "a", 1: "b", 2: "a", 3: "b"}, ("a", "b", "c"), True, "abab"),
        ({0: "a", 1: "b", 2: "a", 3: "b", 4: "a"}, ("a", "b", "c"), True, "ababc"),
        ({0: "a", 1: "a", 2: "c"}, ("a", "a", "c"), True, "aac"),
        ({0: "a", 1: "a", 2: "c"}, ("a", "d", "c"), False, "aac"),
        ({0: "a", 1: "a", 2: "c"}, ("a", "d", "c"), True, "adc"),
    ],
)
def test_a_cell_stays_at_its_executor(
    before: dict[int, str], places: tuple[str, ...], balance: bool, after: str
) -> None:
    assert assigned(len(after), before, places, balance=balance) == dict(enumerate(after))


@pytest.mark.long("a cluster of three executors")
@pytest.mark.kills
def test_a_cell_of_a_killed_executor_moves_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    with running(tmp_path, MASTER, environment(), cells=3) as started:
        started.next_version()
        started.next_version()
        for _ in range(2):
            shop.write(orders=0)
            started.next_version()
        executors = [one for one in descendants(started.process.pid) if EXECUTOR in command_of(one)]
        kill(executors[0])
        for _ in range(6):
            shop.write(orders=0)
            started.next_version()
        found = moves(tmp_path / "shop.checkpoint", 2)
        started.stop()
    check(tmp_path, shop)
    assert found == [(0, 0)] * 2 + [(1, 1)] + [(0, 0)] * 5


@pytest.mark.long("a cluster of three executors, started twice")
@pytest.mark.kills
def test_each_cell_is_read_once_after_a_restart(tmp_path: Path) -> None:
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    number = 0
    for _ in range(2):
        with running(tmp_path, MASTER, environment(), cells=3) as started:
            started.version = number
            for _ in range(3):
                if started.version > 1:
                    shop.write(orders=0)
                started.next_version()
            number = started.version
            started.stop()
    check(tmp_path, shop)
    assert moves(tmp_path / "shop.checkpoint", 3) == [(3, 0), (0, 0), (0, 0)]


@pytest.mark.long("a cluster of three executors")
@pytest.mark.kills
@pytest.mark.parametrize(
    ("how", "master", "cells"),
    [("advance", MASTER, 3), ("stream", MASTER, 3), ("stream", "local-cluster[2,2,1024]", 4)],
)
def test_other_spark_jobs_do_not_move_cells(tmp_path: Path, how: str, master: str, cells: int) -> None:
    """8 versions; 100 under ``make kills``. An executor with two cores has its cells in one worker, too."""
    (tmp_path / "shop.sql").write_text(STREAM)
    command = [sys.executable, "-c", PROGRAM, how, str(VERSIONS), master, str(cells)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = moves(tmp_path / ("ckpt" if how == "advance" else "shop.checkpoint"), 1)
    assert len(found) >= VERSIONS - 1 and set(found) == {(0, 0)}, found


DYNAMIC = {
    "dynamicAllocation.enabled": "true",
    "dynamicAllocation.shuffleTracking.enabled": "true",
    "dynamicAllocation.minExecutors": "0",
    "dynamicAllocation.maxExecutors": "2",
    "dynamicAllocation.executorIdleTimeout": "15s",
}


@pytest.mark.long("two executors that come and may go")
@pytest.mark.kills
def test_dynamic_allocation_keeps_the_executors_of_cells(tmp_path: Path) -> None:
    """A cell moves at most once, when the second executor has come; then both stay, also if idle."""
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    given = {**environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    options = [part for name, value in DYNAMIC.items() for part in ("--conf", f"spark.{name}={value}")]
    with standalone(tmp_path) as (master, workers), running(tmp_path, master, given, *options) as started:
        started.next_version()
        started.next_version()
        for _ in range(2):
            time.sleep(25)
            for _ in range(3):
                shop.write(orders=0)
                started.next_version()
        executors = [one for worker in workers for one in descendants(worker.pid) if EXECUTOR in command_of(one)]
        started.stop()
    check(tmp_path, shop)
    found = moves(tmp_path / "shop.checkpoint", 2)
    assert len(executors) == 2 and sum(moved for _, moved in found) <= 1 and found[-5:] == [(0, 0)] * 5, found


@pytest.mark.long("Spark ends workers after a minute")
@pytest.mark.kills
def test_cells_stay_in_memory_while_a_stream_is_idle_for_minutes(tmp_path: Path) -> None:
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    with running(tmp_path, "local[1]", environment()) as started:
        started.next_version()
        started.next_version()
        time.sleep(100)
        shop.write(orders=0)
        started.next_version()
        started.stop()
    check(tmp_path, shop)
    assert moves(tmp_path / "shop.checkpoint", 2) == [(0, 0)]
