"""The web server and the worker of ``demo.live`` follow a view, driven by a client over HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demo.live import worker

pytestmark = pytest.mark.plain_python


@pytest.mark.full
def test_the_demo_worker_mirrors_the_view_in_sqlite(tmp_path: Path) -> None:
    assert worker.run(tmp_path / "mirror.sqlite", 0.5)


@contextmanager
def served() -> Iterator[Any]:
    """A client of the server, which runs in a thread on a free port."""
    uvicorn, httpx = pytest.importorskip("uvicorn"), pytest.importorskip("httpx")
    pytest.importorskip("fastapi")
    from demo.live.app import app

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(30)


def events(response: Any) -> Iterator[tuple[int, str, list[Any]]]:
    """The version, kind and rows of each event."""
    found: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            found[name] = value
        elif "id" in found:
            yield int(found["id"]), found["event"], json.loads(found["data"])
            found = {}


def test_a_browser_gets_all_rows_then_each_change() -> None:
    with served() as client:
        from demo.live.app import view

        assert "EventSource" in client.get("/").text
        wrong = client.post("/items", json=[["bolt", 2**40]])
        assert wrong.status_code == 422 and "table items, row 0, column qty" in wrong.json()["detail"]
        first = client.post("/items", json=[["bolt", 3], ["nut", 5]]).json()
        with client.stream("GET", "/changes") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            following = events(response)
            assert next(following) == (first, "snapshot", [[["bolt", 3], 1], [["nut", 5], 1]])
            client.post("/items", json=[["bolt", 4]])
            assert next(following) == (first + 1, "change", [[["bolt", 3], -1], [["bolt", 7], 1]])
        client.post("/items", json=[["bolt", 1]])
        with client.stream("GET", "/changes", headers={"Last-Event-ID": str(first + 1)}) as response:
            assert next(events(response)) == (first + 2, "change", [[["bolt", 7], -1], [["bolt", 8], 1]])
        with client.stream("GET", "/changes", headers={"Last-Event-ID": "1000"}) as response:
            assert next(events(response))[1] == "snapshot"
        end = time.monotonic() + 30
        while len(view.state.subscriptions) > 1 and time.monotonic() < end:  # what remains keeps the last changes
            client.post("/items", json=[["bolt", 1]])
            time.sleep(0.05)
        assert len(view.state.subscriptions) == 1


def test_wrong_rows_are_refused_by_the_demo_server() -> None:
    with served() as client:
        assert client.post("/items", json=[["bolt", "many"]]).status_code == 422
