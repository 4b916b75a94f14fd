"""The threads of a run that make versions: micro-batches, polls, backfills."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark.driver.run import Run, Stopped
from freshviews.spark.phases import Phases
from freshviews.spark.pipeline import Pipeline
from freshviews.spark.state.manifest import Manifest
from freshviews.spark.state.stores.addresses import store_of

pytestmark = pytest.mark.spark


def test_no_version_is_made_after_an_error_in_a_thread(spark: Any, tmp_path: Path) -> None:
    """Otherwise the sink that refused this version would get the next one, and never this one."""
    (tmp_path / "script.sql").write_text(
        "CREATE STREAMING TABLE t (k BIGINT) USING parquet OPTIONS (path 'in');"
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t;"
    )
    (tmp_path / "in").mkdir()
    definition = Pipeline.from_script(spark, tmp_path / "script.sql")._definition
    run = Run(spark, store_of(tmp_path / "store"), definition, {}, None, 1, Phases())
    run.latest = Manifest(1, -1, None, 0.0, {}, {})
    waits, found = Event(), []

    def other() -> None:
        waits.set()
        try:
            with run._base_of_next():
                found.append("a version")
        except Stopped:
            found.append("nothing")

    thread = Thread(target=other)
    refused = OSError("the sink refuses")
    with pytest.raises(OSError, match="the sink refuses"), run._base_of_next():
        thread.start()
        waits.wait()
        raise refused
    thread.join()
    assert found == ["nothing"] and run.error is refused
    run.fail(refused)
    run.fail(Stopped())
    assert run.error is refused
    run.release()
