"""A disk that is full at any step: the pipeline stops and names the remedy, and continues exactly once there is
room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark import Pipeline
from freshviews.spark.reading.contents import last_error, latest
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault
from tests.spark.shop import EVERY_SINK, Shop, check

pytestmark = [pytest.mark.spark, pytest.mark.full]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk for this test alone."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a disk of a few megabytes needs the right to mount one: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


STEPS = [
    ("rows applied", "worker", "cannot be written"),  # the log does not fit
    ("log written", "worker", "cannot be written"),  # the changes
    ("manifest half written", "driver", "cannot be written"),
    ("manifest in place", "driver", "did not take it"),  # a sink
    ("sink written", "driver", "did not take it|cannot record it"),  # the next sink, or the note
]


@pytest.mark.full
@pytest.mark.large(2)
@pytest.mark.parametrize("cells", [2, 1])
def test_a_pipeline_continues_after_a_full_disk_at_any_step(spark: Any, disk: Path, fault: Fault, cells: int) -> None:
    shop = Shop(disk, script=EVERY_SINK)
    root = disk / "shop.checkpoint"

    def run() -> BaseException | None:
        try:
            Pipeline.from_script(spark, disk / "shop.sql", cells=cells).start(once=True).awaitTermination()
        except Exception as error:
            return error
        return None

    shop.write()
    assert run() is None
    for step, who, message in STEPS:
        shop.write(6, 9)
        before = latest(store_of(root)).version
        fault.plan(step, "fill", who, folder=disk)
        error = run()
        assert fault.met and error is not None, step
        assert "No space left on device" in str(error) and "start again" in str(error), (step, error)
        assert any(one in str(error) for one in message.split("|")), (step, error)
        committed = latest(store_of(root)).version
        assert committed == before + (step in ("manifest in place", "sink written"))
        # With no room at all it does not start, and the checkpoint stays as it is.
        assert run() is not None and latest(store_of(root)).version == committed
        os.unlink(disk / "filler")
        assert run() is None
        assert last_error(store_of(root)) is None
        check(disk, shop)
