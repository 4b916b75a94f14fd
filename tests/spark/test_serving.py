"""``freshviews serve`` with a pipeline that commits and collects: each answer is the view at its version.

DuckDB recomputes the views from the input up to the version of each answer.
"""

from __future__ import annotations

import csv
import http.client
import io
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import descendants, environment, gone, kill
from tests.spark.servers import BUCKET

pytestmark = [pytest.mark.spark, pytest.mark.full]

VERSIONS = int(os.environ.get("SERVED_VERSIONS", "12"))
SCRIPT = """
CREATE STREAMING TABLE moves (id BIGINT, part STRING, qty INT)
  USING csv OPTIONS (path 'in', header 'true', changes 'op');
CREATE MATERIALIZED VIEW by_part AS SELECT part, COUNT(*) AS n, SUM(qty) AS qty FROM moves GROUP BY part;
CREATE MATERIALIZED VIEW kept AS SELECT id, part, qty FROM moves WHERE qty > 2;
CREATE MATERIALIZED VIEW total USING json OPTIONS (path 'out', output 'complete')
  AS SELECT COUNT(*) AS n, SUM(qty) AS qty FROM moves;
"""
ANEW = {
    "by_part": "SELECT part, SUM(s), SUM(s * qty) FROM moves WHERE file <= ? GROUP BY part HAVING SUM(s) > 0",
    "kept": "SELECT id, part, qty FROM moves WHERE file <= ? AND qty > 2 GROUP BY id, part, qty HAVING SUM(s) > 0",
    "total": "SELECT COALESCE(SUM(s), 0), SUM(s * qty) FROM moves WHERE file <= ?",
}
"""The views, computed from signed rows and the files that have them."""

HASTY = """
import sys
from freshviews.spark.driver import run
from freshviews.spark.state import checkpoint
run.COLLECT_EVERY, checkpoint.READ_SECONDS = 1, 0.0
checkpoint.collect.__defaults__ = (3, 1, *checkpoint.collect.__defaults__[2:])
from freshviews.cli.main import app
app(sys.argv[1:])
"""
"""A pipeline that deletes the state of a version as soon as there is a newer one."""


@dataclass(frozen=True)
class Seen:
    """An answer: the version and the view that it names, and its rows."""

    version: int
    view: str
    rows: Counter[tuple[Any, ...]]


class Input:
    """Files of signed rows, and the rows of all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.random = random.Random(4)
        self.signed: list[tuple[int, int, int, str, int]] = []
        self.ends = [0]
        self._here: list[tuple[int, str, int]] = []
        (folder / "in").mkdir()

    def write(self) -> None:
        """Write the next file: new rows, and deletes of earlier ones."""
        number, lines = len(self.ends), []
        for _ in range(self.random.randrange(5, 25)):
            if self._here and self.random.random() < 0.4:
                sign, row = -1, self._here.pop(self.random.randrange(len(self._here)))
            else:
                sign, row = 1, (len(self.signed), f"part {self.random.randrange(9)}", self.random.randrange(9))
                self._here.append(row)
            self.signed.append((number, sign, *row))
            lines.append(("+" if sign > 0 else "-", *row))
        self.ends.append(len(self.signed))
        aside = self.folder / f"aside-{number}"
        with aside.open("w", newline="") as file:
            csv.writer(file).writerows([("op", "id", "part", "qty"), *lines])
        aside.rename(self.folder / "in" / f"{number:05d}.csv")

    def recomputed(self, rows: int) -> dict[str, Counter[tuple[Any, ...]]]:
        """The views after the first files, identified by their total number of rows."""
        moves = pa.table(list(zip(*self.signed, strict=True)), names=["file", "s", "id", "part", "qty"])
        with duckdb.connect() as connection:
            connection.register("moves", moves)
            file = self.ends.index(rows)
            return {view: Counter(connection.execute(sql, [file]).fetchall()) for view, sql in ANEW.items()}


class Client(Thread):
    """Requests each format until ``ended`` is set."""

    def __init__(self, port: int, number: int, ended: Event) -> None:
        super().__init__(daemon=True)
        self.port, self.random, self.ended = port, random.Random(number), ended
        self.seen: list[Seen] = []
        self.failed: list[tuple[str, int, bytes]] = []

    def run(self) -> None:
        while not self.ended.is_set():
            view, form = self.random.choice([*ANEW]), self.random.choice(["json", "csv", "arrow", "sql"])
            path = f"/view/{view}?format={form}&limit=100000"
            if form == "sql":
                path = f"/query?format=json&limit=100000&sql={quote(f'SELECT * FROM {view} ORDER BY 1')}"
            status, headers, body = ask(self.port, path)
            if status == 200:
                self.seen.append(read(view, form, headers, body))
            else:
                self.failed.append((path, status, body))


def ask(port: int, path: str) -> tuple[int, dict[str, str], bytes]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    try:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        client.close()


def read(view: str, form: str, headers: dict[str, str], body: bytes) -> Seen:
    """An answer, in which all mentions of the version are equal."""
    version = int(headers["Freshviews-Version"])
    if form == "csv":
        lines = csv.DictReader(io.StringIO(body.decode()))
        rows = [tuple(v if n == "part" else int(v) if v else None for n, v in line.items()) for line in lines]
    elif form == "arrow":
        with pa.ipc.open_stream(body) as stream:
            assert stream.schema.metadata == {b"freshviews.version": str(version).encode()}
            rows = [tuple(row.values()) for row in stream.read_all().to_pylist()]
    else:
        made = json.loads(body)
        assert made["version"] == version
        rows = [tuple(row.values()) for row in made["rows"]]
    assert len(rows) == int(headers["Freshviews-Total-Rows"])
    return Seen(version, view, Counter(rows))


@pytest.fixture(params=["folder", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the checkpoint."""
    if request.param == "folder":
        return str(tmp_path / "shop.checkpoint")
    for name, value in request.getfixturevalue("s3").items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@contextmanager
def pipeline(folder: Path, address: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HASTY, "run", "shop.sql", "--json", "--master", "local[2]", "--cells", "2"]
    with (
        (folder / "errors").open("w") as errors,
        subprocess.Popen(
            [*command, "--checkpoint", address],
            cwd=folder, env={**environment(), "FRESHVIEWS_SMALLEST_IMAGE": "100"}, stdout=subprocess.PIPE,
            stderr=errors, text=True,
        ) as process,
    ):  # fmt: skip
        try:
            yield process
        finally:
            left = descendants(process.pid)
            process.kill()
            for one in gone(left, 5):
                kill(one)


@contextmanager
def serving(folder: Path, address: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "freshviews.cli", "serve", "shop.sql", "--port", "0", "--checkpoint", address]
    with subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            assert found is not None, line
            yield int(found[1]), process
        finally:
            process.kill()


@pytest.mark.large(2)
@pytest.mark.long("a pipeline runs beside a server and clients, through tens of versions")
def test_every_answer_shows_the_view_at_its_version(tmp_path: Path, address: str) -> None:
    given = Input(tmp_path)
    (tmp_path / "shop.sql").write_text(SCRIPT)
    given.write()
    ended = Event()
    ends: dict[int, int] = {}
    with pipeline(tmp_path, address) as running, serving(tmp_path, address) as (port, server):
        assert running.stdout is not None
        assert ask(port, "/view/total")[0] == 503  # No version yet.
        clients = [Client(port, number, ended) for number in range(4)]
        while len(ends) < VERSIONS:
            line = running.stdout.readline()
            assert line, (tmp_path / "errors").read_text()
            made = json.loads(line)
            ends[made["version"]] = sum(made["rows"].values()) + max(ends.values(), default=0)
            if len(ends) == 1:
                for client in clients:
                    client.start()
            given.write()
        ended.set()
        for client in clients:
            client.join(90)
            assert not client.is_alive()
        first = Manifests(store_of(address)).versions()[0]
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0
        assert server.stderr is not None and server.stderr.read() == ""
        running.send_signal(signal.SIGINT)
        for line in running.stdout:
            made = json.loads(line)
            ends[made["version"]] = sum(made["rows"].values()) + max(ends.values())
        assert running.wait(120) == 0
    failed = list(itertools.chain.from_iterable(client.failed for client in clients))
    assert not failed, failed[:3]
    seen = list(itertools.chain.from_iterable(client.seen for client in clients))
    expected = {version: given.recomputed(ends[version]) for version in {one.version for one in seen}}
    for one in seen:
        assert one.rows == expected[one.version][one.view], one
    for client in clients:
        asked = [one.version for one in client.seen]
        assert asked == sorted(asked), "an answer is older than one before"
    assert len(expected) > VERSIONS / 3 and first > VERSIONS / 2, (len(expected), first)
    print(f"{len(seen)} answers of {len(expected)} versions")
