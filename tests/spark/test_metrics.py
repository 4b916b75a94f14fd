"""Metrics of a running pipeline: the numbers of ``freshviews status``, served until the pipeline ends."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from demo.servers import free_port
from freshviews.cli.metrics import METRICS
from freshviews.spark import Pipeline
from freshviews.spark.io.sinks import SinkError
from freshviews.spark.phases import PHASES, Phases
from freshviews.spark.reading.contents import contents, latest, status
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import environment
from tests.spark.shop import SCRIPT, Shop, delivered
from tests.spark.test_commands import COMMAND, run

pytestmark = pytest.mark.spark

Served = dict[tuple[str, tuple[str, ...]], float]
"""Values by the name of a metric and the values of its labels."""


def served(port: int) -> Served:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    labels = {metric.name: metric.labels for metric in METRICS}
    return {
        (sample.name, tuple(sample.labels[label] for label in labels[sample.name])): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def until(port: int, condition: Callable[[Served], bool]) -> Served:
    end = time.monotonic() + 300
    while True:
        with suppress(ConnectionError, http.client.HTTPException):  # cut for a newer connection
            if condition(found := served(port)):
                return found
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.full
def test_metrics_equal_the_status_despite_hostile_clients(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write()
    port = free_port()
    command = [*COMMAND, "run", "shop.sql", "--master", "local[2]", "--metrics-port", str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        clients = []
        try:
            assert process.stderr is not None and process.stdout is not None
            assert process.stderr.readline() == f"metrics: http://127.0.0.1:{port}/metrics\n"
            early = served(port)
            assert early[("freshviews_phase_seconds_total", ("apply",))] == 0.0
            for start in (b"", b"\x00\xff garbage", b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 60_000):
                for _ in range(50):
                    clients.append(socket.create_connection(("127.0.0.1", port)))
                    clients[-1].send(start)
            until(port, lambda found: found.get(("freshviews_versions_total", ())) == 2)
            shop.write(orders=0)
            versions = [process.stdout.readline() for _ in range(3)]
            assert [line.partition(":")[0] for line in versions] == ["version 1", "version 2", "version 3"]
            time.sleep(3)  # until the text is rebuilt, with the version delivered
            found = served(port)
            said = json.loads(run(tmp_path, "status", "shop.sql", "--json").stdout)
            process.send_signal(signal.SIGTERM)
            assert process.wait(180) == 0
            resume = process.stderr.read()
        finally:
            process.kill()
            for client in clients:
                client.close()
    assert f"shop.sql --master local[2] --metrics-port {port}" in resume
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        served(port)
    _agree(found, said)
    assert said["version"] == 3 and said["starts"] == 1
    assert said["tables"]["items"]["rows"] == 120 and found[("freshviews_bad_rows_total", ("items",))] == 0
    assert delivered(tmp_path / "out" / "by_part") == shop.by_part()
    assert found[("freshviews_view_rows", ("by_part",))] == len(shop.by_part())
    assert found[("freshviews_view_rows", ("all_of_it",))] == 1
    assert found[("freshviews_sink_backlog_versions", ("by_part", "parquet"))] == 0
    for phase in ("plan", "read", "apply", "sync", "manifest", "sinks"):
        assert found[("freshviews_phase_seconds_total", (phase,))] > 0, phase
    assert {name for name, _ in found} == {metric.name for metric in METRICS}


def _agree(found: Served, said: dict[str, Any]) -> None:
    """Each number of the status that does not depend on the time is served."""
    pairs = [
        (("freshviews_versions_total", ()), said["version"]),
        (("freshviews_starts_total", ()), said["starts"]),
        (("freshviews_lag_seconds", ()), said["lag"]),
    ]
    for table, numbers in said["tables"].items():
        for name, key in (("rows_in_total", "rows"), ("bad_rows_total", "bad"), ("table_bytes", "bytes")):
            pairs.append(((f"freshviews_{name}", (table,)), numbers[key]))
        pairs.append((("freshviews_waiting_files", (table,)), said["waiting"][table]))
    for view, numbers in said["views"].items():
        for name, key in (("changes_out_total", "changed"), ("view_rows", "rows"), ("view_bytes", "bytes")):
            pairs.append(((f"freshviews_{name}", (view,)), numbers[key]))
    for key, value in pairs:
        assert found[key] == pytest.approx(value), key


@pytest.mark.full
def test_a_port_in_use_is_refused_in_one_line_before_spark_starts(tmp_path: Path) -> None:
    Shop(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        start = time.monotonic()
        done = run(tmp_path, "run", "shop.sql", "--once", "--metrics-port", str(port), JAVA_HOME="/no/java")
    assert done.returncode == 1 and time.monotonic() - start < 60
    assert re.fullmatch(
        rf"--metrics-port {port}: cannot listen at 127\.0\.0\.1:{port}: Address already in use; name another port, or "
        r"end the process that listens there\n",
        done.stderr,
    ), done.stderr


def test_the_status_counts_rows_and_failures_over_several_runs(spark: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    definition = read_script(SCRIPT, tmp_path)
    root = tmp_path / "ckpt"
    for number in (1, 2):
        shop.write()
        phases = Phases()
        query = Pipeline.of(spark, definition, root, cells=2).start(once=True, phases=phases)
        query.awaitTermination()
        assert set(phases.seconds) == set(PHASES)
        found = status(store_of(root), definition)
        assert found.starts == number
        for view in ("by_part", "all_of_it"):
            assert found.views[view]["rows"] == contents(store_of(root), latest(store_of(root)), view).num_rows, view
        held = [one["bytes"] for one in (*found.tables.values(), *found.views.values())]
        assert sum(held) == sum(found.cells.values()) > 0
        made = latest(store_of(root)).seconds
        if number == 2:
            # The phases of a version are parts of its seconds.
            parts = [phases.seconds[name] for name in ("plan", "read", "load", "apply", "sync", "merge")]
            assert all(part >= 0 for part in parts) and 0 < sum(parts) <= made
    folder = tmp_path / "out" / "by_part"
    folder.rename(tmp_path / "aside")
    folder.write_text("in the way")
    shop.write()
    with pytest.raises(SinkError):
        Pipeline.of(spark, definition, root).start(once=True).awaitTermination()
    found = status(store_of(root), definition)
    assert found.sinks["by_part"] == {"backlog": 1, "failures": 1}
    assert found.sinks["all_of_it"]["failures"] == 0
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    Pipeline.of(spark, definition, root).start(once=True).awaitTermination()
    found = status(store_of(root), definition)
    assert found.sinks["by_part"] == {"backlog": 0, "failures": 1} and found.starts == 4
    assert delivered(folder) == shop.by_part()
