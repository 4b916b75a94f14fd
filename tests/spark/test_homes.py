"""Cells stay in the process that has them: nothing is read from files after the first version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark.driver.homes import workers
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.clusters import EXECUTOR, running
from tests.spark.faults import command_of, descendants, environment, kill
from tests.spark.shop import EVERY_SINK, Shop, check

pytestmark = pytest.mark.spark

MASTER = "local-cluster[3,1,1024]"
VERSIONS = 100 if "KILLS" in os.environ else 8

ADVANCE = """
import json, sys
from freshviews.spark import Pipeline, start_session
from pyspark.sql.functions import udf

def main(versions):
    spark = start_session("{master}", quiet=True)
    orders = spark.range(200).selectExpr("id AS o_id", "id % 9 AS cust")
    other = udf(lambda value: value + 1, "long")
    for version in range(versions):
        pipeline = Pipeline(spark, "ckpt", cells=3)
        pipeline.table_of("CREATE TABLE orders (o_id BIGINT NOT NULL, cust BIGINT, PRIMARY KEY (o_id))")
        pipeline.table_of("CREATE TABLE items (o_id BIGINT, part BIGINT)")
        pipeline.view("by_part", "SELECT part, COUNT(*) AS n FROM orders JOIN items USING (o_id) GROUP BY part")
        rows = spark.range(60).selectExpr("(id * 7 + {{0}}) % 200 AS o_id".format(version), "id % 5 AS part")
        given = {{"items": rows, "orders": orders}} if version == 0 else {{"items": rows}}
        pipeline.advance(given)
        spark.range(0, 100, 1, 6).select(other("id")).collect()
    spark.stop()

main({versions})
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


@pytest.mark.long("a cluster of three executors")
@pytest.mark.kills
def test_cells_of_a_stream_stay_in_their_executor_until_it_is_lost(tmp_path: Path) -> None:
    shop = Shop(tmp_path, script=EVERY_SINK)
    shop.write()
    with running(tmp_path, MASTER, environment(), cells=3) as started:
        started.next_version()
        started.next_version()
        for _ in range(VERSIONS):
            shop.write(orders=0)
            started.next_version()
        assert set(moves(tmp_path / "shop.checkpoint", 2)) == {(0, 0)}
        executors = [one for one in descendants(started.process.pid) if EXECUTOR in command_of(one)]
        kill(executors[0])
        shop.write(orders=0)
        started.next_version()
        for _ in range(4):
            shop.write(orders=0)
            started.next_version()
        lost = moves(tmp_path / "shop.checkpoint", 2 + VERSIONS)
        started.stop()
    check(tmp_path, shop)
    # The lost cell is read where it goes on, and once more if the executor that replaces the lost one takes it.
    assert 1 <= sum(loaded for loaded, _ in lost) <= 2 and lost[-1] == (0, 0)


@pytest.mark.long("a cluster of three executors")
@pytest.mark.kills
def test_cells_of_advance_stay_in_their_process_while_other_python_functions_run(tmp_path: Path) -> None:
    program = ADVANCE.format(master=MASTER, versions=VERSIONS)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(moves(tmp_path / "ckpt", 1)) == {(0, 0)}, json.dumps(moves(tmp_path / "ckpt", 0))


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
