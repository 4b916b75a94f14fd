"""Images are written by children of Spark's Python workers while the stream continues."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.cell_image import SMALLEST_IMAGE
from freshviews.spark.state.child_process import can_fork, in_child
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.shop import Shop, delivered

pytestmark = [pytest.mark.spark, pytest.mark.skipif(not can_fork(), reason="nothing is forked here")]


def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def test_a_spark_task_ends_before_its_child_process(spark: Any, tmp_path: Path) -> None:
    """The child must not hold the sockets between the worker and the JVM."""
    place = str(tmp_path)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        folder = Path(place)

        def child() -> None:
            found = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if int(name) < 3]
            (folder / f"files-{os.getpid()}").write_text(" ".join(found))
            until((folder / "go").exists)
            (folder / f"done-{os.getpid()}").touch()

        list(batches)
        assert in_child(child, lambda code: None)
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()]})

    frame = spark.range(1).coalesce(1).mapInArrow(work, "pid long")
    workers = [row["pid"] for _ in range(4) for row in frame.collect()]
    until(lambda: len(list(tmp_path.glob("files-*"))) == 4)
    assert {name for path in tmp_path.glob("files-*") for name in path.read_text().split()} == {os.devnull}
    assert len(set(workers)) < 4, "workers ended with their children"
    assert not list(tmp_path.glob("done-*"))
    (tmp_path / "go").touch()
    until(lambda: len(list(tmp_path.glob("done-*"))) == 4)


@pytest.mark.full
def test_two_cells_of_a_worker_write_images_together(spark: Any, tmp_path: Path) -> None:
    """Both cells of a worker fork in the same micro-batch, from different threads."""
    shop = Shop(tmp_path)
    root = tmp_path / "shop.checkpoint"
    pending: set[str] = set()
    images: set[str] = set()
    for turn in range(5):
        shop.write(orders=200, items=int(2.3 * SMALLEST_IMAGE) if turn in (0, 2) else 200)
        query = Pipeline.from_script(spark, tmp_path / "shop.sql", cells=2).start(once=True)
        query.awaitTermination()
        assert query.exception() is None
        entries = [latest(store_of(root)).cells[number] for number in "01"]
        images |= {entry["image"]["folder"] for entry in entries if entry["image"]}
        begun = {entry["pending"]["folder"] for entry in entries if entry.get("pending")}
        pending |= begun
        if turn != 2:  # else the next version runs beside them, or after them
            until(lambda: all((root / name).exists() for name in begun))  # noqa: B023
        expected = shop.by_part()
        found = contents(store_of(root), latest(store_of(root)), "by_part").to_pylist()
        assert Counter(tuple(row.values()) for row in found) == expected == delivered(tmp_path / "out" / "by_part")
    assert len(pending) == 4 and len(images & pending) >= 2
    assert all(len(entry["log"]) < 5 for entry in entries)
