"""The metrics of given numbers, without Spark, and their server under hostile requests."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from freshviews.cli import pipeline
from freshviews.cli.metrics import METRICS, PAGE, Numbers, Texts, metrics_page, text_of
from freshviews.cli.serving import server as http_server
from freshviews.cli.serving.server import Busy, HttpServer, ServerError
from freshviews.cli.source import ReadError
from freshviews.spark.definition import Definition, ViewSpec
from freshviews.spark.phases import PHASES, Phases
from freshviews.spark.reading.contents import Status, status
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.runs import Runs, note_failure, note_start, runs_of
from freshviews.spark.state.stores.addresses import store_of
from tests.cli.sockets import answer_to

STATUS = Status(
    version=7,
    batch=5,
    age=12.5,
    lag=0.25,
    tables={"orders": {"rows": 100, "bad": 2, "bytes": 4096}, 'a"b\n\\': {"rows": 1, "bad": 0, "bytes": 8}},
    views={"v": {"changed": 30, "bytes": 512, "rows": 9}, "old": {"changed": 1, "bytes": 2}},
    delivered=6,
    running=True,
    error=None,
    waiting={"orders": 3},
    filling=("new",),
    starts=4,
    sinks={"v": {"backlog": 1, "failures": 2}},
    cells={"0": 4000, "merge": 608},
)
DISK = {"notes": {"objects": 1, "bytes": 9}}
NUMBERS = Numbers("1.2.3", 1e9, dict.fromkeys(PHASES, 0.5), {"v": "parquet"}, STATUS, DISK)


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_every_number_of_a_status_is_among_the_metrics() -> None:
    found = samples(text_of(NUMBERS))
    v = (("sink", "parquet"), ("view", "v"))
    expected = {
        ("freshviews_info", (("release", "1.2.3"),)): 1,
        ("freshviews_start_time_seconds", ()): 1e9,
        ("freshviews_phase_seconds_total", (("phase", "sync"),)): 0.5,
        ("freshviews_status_readable", ()): 1,
        ("freshviews_starts_total", ()): 4,
        ("freshviews_versions_total", ()): 7,
        ("freshviews_version_age_seconds", ()): 12.5,
        ("freshviews_lag_seconds", ()): 0.25,
        ("freshviews_cells_loaded", ()): 0,
        ("freshviews_cells_moved", ()): 0,
        ("freshviews_waiting_files", (("table", "orders"),)): 3,
        ("freshviews_rows_in_total", (("table", "orders"),)): 100,
        ("freshviews_rows_in_total", (("table", 'a"b\n\\'),)): 1,
        ("freshviews_bad_rows_total", (("table", "orders"),)): 2,
        ("freshviews_table_bytes", (("table", "orders"),)): 4096,
        ("freshviews_cell_bytes", (("cell", "merge"),)): 608,
        ("freshviews_stored_bytes", (("part", "notes"),)): 9,
        ("freshviews_changes_out_total", (("view", "v"),)): 30,
        ("freshviews_view_rows", (("view", "v"),)): 9,
        ("freshviews_view_bytes", (("view", "v"),)): 512,
        ("freshviews_view_filling", (("view", "v"),)): 0,
        ("freshviews_view_filling", (("view", "new"),)): 1,
        ("freshviews_sink_backlog_versions", v): 1,
        ("freshviews_sink_failures_total", v): 2,
    }
    assert expected == {key: found.get(key) for key in expected}
    assert {name for name, _ in found} == {metric.name for metric in METRICS}
    # An older release did not count its rows.
    assert ("freshviews_view_rows", (("view", "old"),)) not in found


def test_metrics_of_the_run_are_available_before_the_first_status() -> None:
    found = samples(text_of(Numbers("1", 0.0, {"plan": 1.0}, {}, None)))
    assert found[("freshviews_status_readable", ())] == 0
    assert {name for name, _ in found} == {metric.name for metric in METRICS if metric.of_run is not None}


def test_metrics_have_their_declared_types() -> None:
    lines = [line.split() for line in text_of(NUMBERS).decode().splitlines() if line.startswith("# TYPE")]
    assert [(name, kind) for _, _, name, kind in lines] == [(metric.name, metric.kind) for metric in METRICS]
    assert all(metric.name.endswith("_total") == (metric.kind == "counter") for metric in METRICS)


def test_the_status_shows_row_counts_backlogs_and_the_number_of_starts(tmp_path: Path) -> None:
    views = {"v": "CREATE MATERIALIZED VIEW v AS SELECT 1", "w": "", "old": ""}
    made = Manifest(3, 2, "q", time.time(), {}, views, changes={"v": ["f"]}, stored={"v": 5, "w": 0})
    Manifests(store_of(tmp_path)).commit(made)
    definition = Definition(
        views=(ViewSpec("v", "", "parquet"), ViewSpec("w", "", "json"), ViewSpec("old", ""))
    )
    (tmp_path / "delivered").write_text("2")
    note_start(store_of(tmp_path))
    note_failure(store_of(tmp_path), "v")
    found = status(store_of(tmp_path), definition)
    assert found.starts == 1
    assert found.sinks == {"v": {"backlog": 1, "failures": 1}, "w": {"backlog": 0, "failures": 0}}
    assert [found.views[name].get("rows") for name in ("v", "w", "old")] == [5, 0, None]
    (tmp_path / "delivered").write_text("3")
    assert status(store_of(tmp_path), definition).sinks["v"]["backlog"] == 0


def test_old_manifests_have_no_row_counts(tmp_path: Path) -> None:
    Manifests(store_of(tmp_path)).commit(Manifest(1, 0, "q", 1.0, {}, {}, stored={"v": 5}))
    file = next((tmp_path / "manifest").glob("*.json"))
    found = json.loads(file.read_text())
    del found["stored"]
    file.write_text(json.dumps(found))
    assert Manifests(store_of(tmp_path)).read(1).stored == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"starts": null, "failures": {}}', '{"starts": 1, "failures": []}']
)
def test_unreadable_counts_of_starts_and_failures_restart_at_zero(tmp_path: Path, text: str) -> None:
    (tmp_path / "runs").write_text(text)
    assert runs_of(store_of(tmp_path)) == Runs()
    note_start(store_of(tmp_path))
    assert runs_of(store_of(tmp_path)) == Runs(1)


def test_counts_that_cannot_be_written_raise_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    note_start(store_of(tmp_path / "file"))
    note_failure(store_of(tmp_path / "file"), "v")
    assert runs_of(store_of(tmp_path / "file")) == Runs()


def test_the_seconds_of_a_phase_are_those_of_its_slowest_cell() -> None:
    phases = Phases()
    phases.add_job(10.0, [{"load": 0.0, "apply": 2.0, "sync": 1.0}, {"load": 1.0, "apply": 3.0, "sync": 2.0}, {}])
    found = phases.seconds
    assert [found[name] for name in ("load", "apply", "sync", "read")] == [1.0, 3.0, 2.0, 4.0]
    phases.add_job(1.0, [])
    phases.add_job(1.0, [{"apply": 2.0}])
    assert phases.seconds["read"] == 5.0
    with pytest.raises(ZeroDivisionError), phases.timed("merge"):
        raise ZeroDivisionError
    assert phases.seconds["merge"] > 0
    with pytest.raises(KeyError):
        phases.add("lunch", 1.0)


def test_numbers_that_take_long_to_read_are_read_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("freshviews.cli.metrics.time.monotonic", lambda: now[0])
    reads: list[float] = []

    def read() -> Numbers:
        reads.append(now[0])
        now[0] += 0.5
        return NUMBERS

    texts = Texts(read)
    for moment in (100.0, 105.0, 110.0, 111.0, 112.0):
        now[0] = moment
        assert texts.text(1).startswith(b"# HELP freshviews_info")
    assert reads == [100.0, 111.0]


def test_one_thread_reads_the_numbers_while_others_wait() -> None:
    reading, go_on = threading.Event(), threading.Event()

    def read() -> Numbers:
        reading.set()
        go_on.wait(30)
        return NUMBERS

    texts = Texts(read)
    thread = threading.Thread(target=texts.text, args=(1,))
    thread.start()
    assert reading.wait(30)
    with pytest.raises(Busy):
        texts.text(0.01)
    go_on.set()
    thread.join()
    assert texts.text(0.01)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    made = HttpServer("127.0.0.1", 0, metrics_page(lambda patience: b"page\n"), option="metrics-")
    made.start()
    yield made
    made.close()


def port_of(server: HttpServer) -> int:
    return int(server.address.split(":")[2])


def fetch(server: HttpServer) -> bytes:
    with urllib.request.urlopen(server.address + PAGE, timeout=30) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return bytes(answer.read())


@pytest.mark.parametrize(
    ("request_text", "code"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"GET /metrics?name=x HTTP/1.0\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", b"404"),
        (b"GET //metrics/ HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 999999999\r\n\r\nx", b"501"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"501"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n", b"400"),
        (b"GET /metrics HTTP/9.9.9\r\n\r\n", b"400"),
        (b"<script> /x HTTP/1.1\r\n\r\n", b"501"),
    ],
)
def test_only_get_requests_for_metrics_are_answered(
    server: HttpServer, request_text: bytes, code: bytes
) -> None:
    found = answer_to(port_of(server), request_text)
    first = found.split(b"\r\n")[0]
    assert code in first or code in found[:200], found
    assert found.endswith(b"page\n") == (code == b"200") and b"Python" not in found and b"text/html" not in found
    assert fetch(server) == b"page\n"


@pytest.mark.parametrize(
    "hostile",
    [
        b"x" * 1_000_000,
        b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"".join(b"X%d: %s\r\n" % (i, b"x" * 5000) for i in range(50)) + b"\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(5000)) + b"\r\n",
        bytes(range(256)) * 100,
        b"",
    ],
    ids=["line", "header", "headers", "many headers", "bytes", "nothing"],
)
def test_a_hostile_request_does_not_stop_the_server(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch, hostile: bytes
) -> None:
    monkeypatch.setattr(http_server, "SECONDS", 0.5)
    assert b"page" not in answer_to(port_of(server), hostile)
    assert fetch(server) == b"page\n"


def test_silent_connections_do_not_block_other_clients(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http_server, "SECONDS", 1.0)
    before = threading.active_count()
    clients = []
    for i in range(300):
        clients.append(socket.create_connection(("127.0.0.1", port_of(server)), timeout=30))
        clients[-1].sendall(b"GET /met"[: i % 8])
    assert fetch(server) == b"page\n"
    assert threading.active_count() <= before + 2 * http_server.MOST + 1
    for client in clients:
        with client, suppress(ConnectionError):
            assert b"page" not in client.recv(65536)
    end = time.monotonic() + 30
    while threading.active_count() > before:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert fetch(server) == b"page\n"
    assert capfd.readouterr() == ("", "")


def test_the_connection_of_a_slow_client_is_closed(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=30) as client:
        end = time.monotonic() + 30
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                client.sendall(b"G")
                time.sleep(0.05)


def test_a_client_never_sees_the_text_of_an_error_in_reading_numbers() -> None:
    errors: list[Exception] = [Busy(), ValueError("a secret")]

    def text(patience: float) -> bytes:
        raise errors.pop(0)

    with closing(HttpServer("127.0.0.1", 0, metrics_page(text))) as server:
        server.start()
        for code in (503, 500):
            with pytest.raises(urllib.error.HTTPError) as found:
                urllib.request.urlopen(server.address + PAGE, timeout=30)
            assert found.value.code == code and b"secret" not in found.value.read()


def test_a_port_in_use_is_refused_with_the_remedy(server: HttpServer) -> None:
    port = port_of(server)
    with pytest.raises(ServerError, match=rf"--metrics-port {port}: .*:{port}: .*in use; name another port"):
        HttpServer("127.0.0.1", port, metrics_page(lambda patience: b""), option="metrics-")
    fetch(server)
    server.close()
    server.close()
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        fetch(server)
    HttpServer("127.0.0.1", port, metrics_page(lambda patience: b""), option="metrics-").close()


@pytest.mark.parametrize("host", ["", "no.such.host.invalid", "203.0.113.7", "a" * 300, "a..b"])
def test_a_metrics_host_that_is_not_this_machine_is_refused(host: str) -> None:
    with pytest.raises(ServerError, match=r"--metrics-host .*; name an address, such as 127\.0\.0\.1"):
        HttpServer(host, 0, metrics_page(lambda patience: b""), option="metrics-")


def test_the_error_names_prometheus_client_if_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with (
        pytest.raises(ReadError, match=r"pip install 'freshviews\[spark\]'"),
        pipeline._metrics(Definition(), store_of(tmp_path), Phases(), "127.0.0.1", 0),
    ):
        pass


def test_the_metrics_report_an_unreadable_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pipeline._metrics(Definition(), store_of(tmp_path), Phases(), "127.0.0.1", 0):
        address = capsys.readouterr().err.removeprefix("metrics: ").strip()
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert samples(answer.read())[("freshviews_status_readable", ())] == 0
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=30)
