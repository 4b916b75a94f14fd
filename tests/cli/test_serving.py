"""``freshviews serve`` over a checkpoint made without Spark: answers, their versions, and hostile requests."""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path
from threading import Semaphore, Thread
from urllib.parse import quote, urlencode

import pyarrow as pa
import pytest

from freshviews.asking import SelectProcesses
from freshviews.cli.serving import forms, versions
from freshviews.cli.serving import server as http_server
from freshviews.cli.serving.server import Answer, HttpServer, Request
from freshviews.cli.serving.site import Site
from freshviews.spark.reading.disk import on_disk
from freshviews.spark.state import checkpoint
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.stores.addresses import store_of
from tests.cli.sales import VIEWS, commit, sale
from tests.cli.sockets import answer_to

HOSTILE = "<script>alert('x')</script>\"&\n,;=cmd()"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with two versions."""
    folder = tmp_path_factory.mktemp("shop") / "shop.checkpoint"
    first = [sale(n, f"part {n % 7}") for n in range(120)]
    made = commit(folder, None, first)
    commit(folder, made, [sale(500, HOSTILE), sale(501, None, weight=None), sale(502, "", weight=float("nan")),
                          sale(0, "part 0", -1)])  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def site(root: Path) -> Site:
    return Site("shop.sql", lambda: store_of(root), lambda: None, ["shop.example"], most_rows=200)


def ask(site: Site, path: str, host: str = "127.0.0.1:8321", **parameters: object) -> Answer:
    target = path + (f"?{urlencode(parameters)}" if parameters else "")
    return site.answer(Request(target, (host,)))


def read(site: Site, path: str, **parameters: object) -> dict[str, object]:
    made = ask(site, path, format="json", **parameters)
    assert made.status == HTTPStatus.OK, made.body
    found: dict[str, object] = json.loads(made.body)
    return found


class Seen(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]
        assert not any(name.startswith("on") or name in ("style", "src") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_all_formats_of_a_view_have_the_same_rows(site: Site) -> None:
    found = read(site, "/view/by_part")
    assert found["version"] == 2 and found["view"] == "by_part" and found["total"] == 10
    rows = {(row["part"], row["n"]) for row in found["rows"]}  # type: ignore[attr-defined]
    counts = {f"part {n}": sum(i % 7 == n for i in range(1, 120)) for n in range(7)}
    assert rows == {*counts.items(), (HOSTILE, 1), (None, 1), ("", 1)}
    made = ask(site, "/VIEW/by_part".lower(), format="arrow")
    with pa.ipc.open_stream(made.body) as stream:
        table = stream.read_all()
        assert stream.schema.metadata == {b"freshviews.version": b"2"}
    assert {tuple(row.values()) for row in table.to_pylist()} == rows
    made = ask(site, "/view/BY_PART", format="csv")
    head, *lines = list(csv.reader(io.StringIO(made.body.decode())))
    assert head == ["part", "n"] and sorted(lines) == sorted([part or "", str(n)] for part, n in rows)
    for form in ("html", "json", "csv", "arrow"):
        assert ask(site, "/view/by_part", format=form).headers["Freshviews-Version"] == "2"
        assert ask(site, "/view/by_part", format=form, version=1).headers["Freshviews-Version"] == "1"
    assert read(site, "/view/by_part", version=1)["total"] == 7
    assert read(site, "/view/by_part")["total"] == 10


def test_values_without_a_json_type_become_strings(site: Site) -> None:
    rows = {row["id"]: row for row in read(site, "/view/kept")["rows"]}  # type: ignore[attr-defined]
    assert rows[502] == {"id": 502, "part": "", "price": "125.50", "weight": "nan", "day": "2026-01-05",
                         "at": "2026-01-05 12:30:00.250000"}  # fmt: skip
    assert rows[501]["weight"] is None and rows[501]["price"] is None and rows[500]["part"] == HOSTILE


def test_linked_pages_show_all_rows_of_one_version(site: Site, root: Path) -> None:
    seen: list[str] = []
    link = "/view/kept?limit=50"
    while link:
        page = Seen(site.answer(Request(link, ("localhost",))).body)
        assert "script" not in page.tags
        seen += re.findall(r"\b(\d+)part \d", page.text)
        following = [one for one in page.links if f"offset={len(seen)}" in one and "version=2" in one]
        link = following[0] if len(seen) % 50 == 0 and following else ""
    assert len(seen) == len(set(seen)) == 119
    assert "Rows 101 to 122 of 122, at version 2" in page.text and HOSTILE.split("\n")[0] in page.text
    assert "strategy" in page.text and VIEWS["kept"] in page.text and "NULL" in page.text


def test_the_query_page_answers_selects_and_refuses_other_statements(site: Site) -> None:
    found = read(site, "/query", sql="SELECT part, n FROM by_part WHERE n >= 17 ORDER BY n DESC, part LIMIT 2")
    assert (found["version"], found["total"]) == (2, 2)
    assert found["rows"] == [{"part": "part 0", "n": 17}, {"part": "part 1", "n": 17}]
    assert read(site, "/query", sql="SELECT COUNT(*) AS n FROM kept", version=1)["rows"] == [{"n": 120}]
    sql = "SELECT SUM(n) AS n FROM by_part JOIN (SELECT DISTINCT part FROM kept) USING (part)"
    assert read(site, "/query", sql=sql, version=1)["rows"] == [{"n": 120}]
    page = ask(site, "/query", sql="SELECT part FROM by_part WHERE n = 1 AND part LIKE '<%'")
    assert "script" not in Seen(page.body).tags and HOSTILE.split("\n")[0] in Seen(page.body).text
    for sql, status, message in [
        ("DROP TABLE sales", 400, "a SELECT over tables and views is accepted, not DROP"),
        ("SELECT * FROM by_part; DROP TABLE x", 400, "one SELECT is accepted"),
        ("SELECT * FROM sales", 404, "unknown table or view sales; there are kept, by_part"),
        ("SELECT * FROM `../../etc/passwd`", 404, "unknown table or view"),
        ("SELECT * FROM read_csv('/etc/hostname')", 400, "FROM takes tables, views and subqueries"),
        ("SELECT nope FROM by_part", 400, "unknown column nope; there are part, n"),
        ("SELECT part FROM by_part WHERE n = ?", 400, "the SELECT has 1 parameter"),
        ("", 400, "a SELECT is expected"),
        ("SELECT * FROM by_part WHERE n = " + "1" * 5000, 400, "at most 4000 characters"),
    ]:
        made = ask(site, "/query", sql=sql, format="json")
        assert made.status == status and message in Seen(made.body).text, (sql, made.body)
        assert "Freshviews-Version" not in made.headers
    for deep in ("(" * 1500 + "n = 1" + ")" * 1500, "NOT " * 900 + "n = 1", " OR ".join(["n = 1"] * 300)):
        assert ask(site, "/query", sql=f"SELECT * FROM by_part WHERE {deep}", format="json").status in (200, 400)


def test_the_query_page_limits_time_and_memory(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "SELECT_SECONDS", 0.3)
    sql = f"SELECT COUNT(*) AS n FROM {', '.join(f'kept k{number}' for number in range(9))} WHERE k1.id + k8.id = 7"
    made = ask(site, "/query", sql=sql, format="json")
    assert made.status == 400 and "took more than 0.3 s" in Seen(made.body).text
    monkeypatch.setattr(versions, "SELECT_SECONDS", 10.0)
    monkeypatch.setattr(versions, "MOST_BYTES", 1 << 20)
    made = ask(site, "/query", sql="SELECT a.part, b.at, c.id FROM kept a, kept b, kept c", format="json")
    assert made.status == 400 and "more than 1 MB" in Seen(made.body).text


def test_after_a_refused_select_with_texts_beyond_the_memory_the_query_page_answers_the_next(
    root: Path,
) -> None:
    own = Site("shop.sql", lambda: store_of(root), lambda: None)
    own._processes = SelectProcesses(1, 400 << 20)
    steps = ", ".join(f"w{number} AS (SELECT s || s AS s FROM w{number - 1})" for number in range(1, 33))
    made = ask(own, "/query", sql=f"WITH w0 AS (SELECT 'text' AS s), {steps} SELECT s FROM w32", format="json")
    assert made.status == 400 and "more than the 400 MB of memory that a SELECT has here" in Seen(made.body).text
    assert read(own, "/query", sql="SELECT COUNT(*) AS n FROM by_part")["rows"]
    own.close()


def test_the_page_of_the_pipeline_shows_its_status(site: Site, root: Path) -> None:
    (root / "error").write_text(f"it ended {HOSTILE}")
    page = Seen(ask(site, "/").body)
    found = json.loads(ask(site, "/", format="json").body)
    (root / "error").unlink()
    assert f"it ended {HOSTILE}" in page.text and found["error"] == f"it ended {HOSTILE}"
    assert "Version 2, not running" in page.text and "/view/by_part" in page.links and "script" not in page.tags
    files = [path for path in root.rglob("*") if path.is_file()]
    assert sum(part["bytes"] for part in on_disk(store_of(root)).values()) == sum(path.stat().st_size for path in files)
    assert found["version"] == 2 and sum(part["objects"] for part in found["disk"].values()) == len(files) + 1


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/../../etc/passwd", 404),
        ("/view/../../etc/passwd", 404),
        ("/view/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("/view/by_part/manifest", 404),
        ("/view/" + quote(HOSTILE), 404),
        ("/view/", 404),
        ("/view/by_part%00", 404),
        ("/view/%ff%fe", 400),
        ("/manifest/000000000002.json", 404),
        ("/nothing?format=%ff", 400),
        ("http://127.0.0.1/view/by_part", 400),
        ("*", 400),
        ("/view/by_part?limit=-1", 400),
        ("/view/by_part?limit=0", 400),
        ("/view/by_part?limit=201", 400),
        ("/view/by_part?limit=9999999999999999999999", 400),
        ("/view/by_part?offset=1e9", 400),
        ("/view/by_part?offset=٣", 400),
        ("/view/by_part?limit=1&limit=2", 400),
        ("/view/by_part?version=../1", 400),
        ("/view/by_part?version=99", 410),
        ("/view/by_part?format=xml", 400),
        ("/view/by_part?callback=x", 400),
        ("/view/by_part?sql=SELECT", 400),
        ("/view/by_part?" + "&".join(f"a{i}=" for i in range(50)), 400),
        ("/?format=csv", 400),
    ],
)
def test_hostile_requests_get_an_error_without_details(site: Site, target: str, status: int) -> None:
    made = site.answer(Request(target, ("127.0.0.1",)))
    assert made.status == status, made.body
    page = Seen(made.body)
    assert "script" not in page.tags and "Traceback" not in page.text and "root:" not in page.text
    assert "default-src 'none'" in made.headers["Content-Security-Policy"]
    assert made.headers["X-Content-Type-Options"] == "nosniff"
    assert not any(name.lower().startswith("access-control") for name in made.headers)


@pytest.mark.parametrize(
    ("hosts", "allowed"),
    [
        (("127.0.0.1:8321",), True),
        (("localhost",), True),
        (("[::1]:1",), True),
        (("SHOP.example:80",), True),
        (("evil.example:8321",), False),
        (("127.0.0.1.evil.example",), False),
        (("127.0.0.1@evil.example",), False),
        (("127.0.0.1:8321", "evil.example"), False),
        (("127.0.0.1/x",), False),
        (("",), False),
        ((), False),
    ],
)
def test_a_request_whose_host_header_names_another_server_is_refused(
    site: Site, hosts: tuple[str, ...], allowed: bool
) -> None:
    for target in ("/view/by_part?format=json", "/", "/style.css"):
        made = site.answer(Request(target, hosts))
        assert made.status == (HTTPStatus.OK if allowed else HTTPStatus.MISDIRECTED_REQUEST)
        assert allowed or b"part 1" not in made.body


def test_rows_and_bytes_of_an_answer_are_limited(
    site: Site, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Site("shop.sql", lambda: store_of(root), lambda: None, most_rows=100)
    for form in ("csv", "arrow"):
        made = ask(small, "/view/kept", format=form)
        assert made.status == 413 and "there are 122 rows, and an answer has at most 100" in Seen(made.body).text
        assert ask(small, "/view/kept", format=form, limit=100).headers["Freshviews-Total-Rows"] == "122"
        assert ask(small, "/view/kept", format=form, offset=22).status == 200
    assert len(read(small, "/view/kept")["rows"]) == 100  # type: ignore[arg-type]
    monkeypatch.setattr(forms, "MOST_BYTES", 500)
    for form in ("json", "csv", "arrow"):
        assert ask(site, "/view/kept", format=form).status == 413
        assert ask(site, "/view/kept", format=form, limit=2).status == 200


def test_a_request_that_waits_too_long_gets_status_503(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "PATIENCE", 0.05)
    own = Site("shop.sql", lambda: store_of(root), lambda: None)
    with own._versions._exclusive():
        assert ask(own, "/view/by_part").status == 503
    assert ask(own, "/view/by_part").status == 200


def test_a_new_version_is_read_from_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Site("shop.sql", lambda: store_of(tmp_path / "ckpt"), lambda: None)
    assert ask(own, "/").status == 503 and "no version yet" in Seen(ask(own, "/").body).text
    first = commit(tmp_path / "ckpt", None, [sale(1, "nut")])
    assert read(own, "/view/by_part")["rows"] == [{"part": "nut", "n": 1}]
    loads: list[object] = []
    monkeypatch.setattr("freshviews.spark.state.cell.load_cell", lambda *given: loads.append(given))
    second = commit(tmp_path / "ckpt", first, [sale(2, "nut")])
    found = read(own, "/view/by_part")
    assert (found["version"], found["rows"]) == (2, [{"part": "nut", "n": 2}]) and not loads
    monkeypatch.undo()
    Manifests(store_of(tmp_path / "ckpt")).commit(
        replace(second, version=3, cells={"0": {**second.cells["0"], "token": "x", "log": [
            {"token": "x", "level": 0, "rows": 1, "files": {"sales": "state/0/gone.arrow@0+8"}}]}})
    )  # fmt: skip
    assert ask(own, "/view/by_part").status == 410
    assert read(own, "/view/by_part", version=2)["total"] == 1


def collected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletes all state except that of the last version, as a pipeline does later."""
    monkeypatch.setattr(checkpoint, "READ_SECONDS", 0.0)
    checkpoint.collect(store_of(root), Manifests(store_of(root)), states=1)


def imaged(root: Path, made: Manifest) -> Manifest:
    """The version after ``made``, whose state is one new object that needs no older state."""
    return commit(root, replace(made, cells={}), [sale(number, "cog") for number in range(made.version + 1)])


def test_a_reader_of_a_collected_version_gets_a_newer_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ckpt"
    made = commit(root, None, [sale(1, "nut")])
    own = Site("shop.sql", lambda: store_of(root), lambda: None)
    answers: list[dict[str, object]] = []
    asked = [("/view/by_part", {}), ("/query", {"sql": "SELECT part, n FROM by_part"})]
    threads = [Thread(target=lambda one=one: answers.append(read(own, one[0], **one[1]))) for one in asked]
    chosen = Semaphore(0)
    at = versions.Versions.at

    def noted(self: versions.Versions, version: int | None) -> Manifest:
        found = at(self, version)
        chosen.release()
        return found

    monkeypatch.setattr(versions.Versions, "at", noted)
    with own._versions._exclusive():
        for thread in threads:
            thread.start()
            chosen.acquire(timeout=20)
        imaged(root, made)
        collected(root, monkeypatch)
    for thread in threads:
        thread.join(30)
    assert [(one["version"], one["rows"]) for one in answers] == [(2, [{"part": "cog", "n": 2}])] * 2
    assert ask(own, "/view/by_part", version=1).status == 410


def test_a_reader_tries_a_limited_number_of_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ckpt"
    commit(root, None, [sale(1, "nut")])
    own = Site("shop.sql", lambda: store_of(root), lambda: None)
    tried: list[int] = []

    def none(store: object, manifest: Manifest, view: str, keep_cells: bool) -> pa.Table:
        tried.append(manifest.version)
        imaged(root, manifest)
        raise FileNotFoundError(view)

    monkeypatch.setattr(versions, "contents", none)
    assert ask(own, "/view/by_part").status == 410
    assert tried == list(range(1, versions.TRIES + 1))


def test_a_new_checkpoint_at_the_same_address_is_read(tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    own = Site("shop.sql", lambda: store_of(root), lambda: None)
    made = None
    for number in range(3):
        made = commit(root, made, [sale(number, "nut")])
    assert read(own, "/view/by_part")["version"] == 3
    shutil.rmtree(root)
    commit(root, None, [sale(1, "cog")])
    found = read(own, "/view/by_part")
    assert (found["version"], found["rows"]) == (1, [{"part": "cog", "n": 1}])


def test_a_new_checkpoint_shows_no_rows_of_a_deleted_checkpoint(tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    own = Site("shop.sql", lambda: store_of(root), lambda: None)
    for part in ("nut", "cog"):
        commit(root, None, [sale(1, part)])
        assert read(own, "/view/by_part")["rows"] == [{"part": part, "n": 1}]
        shutil.rmtree(root)


def test_requests_read_the_checkpoint_of_the_last_run(tmp_path: Path) -> None:
    commit(tmp_path / "a", None, [sale(1, "nut")])
    commit(tmp_path / "b", None, [sale(1, "cog")])
    roots = [tmp_path / "none", tmp_path / "a", tmp_path / "b"]
    own = Site("spark-pipeline.yml", lambda: store_of(roots[0]), lambda: None)
    assert ask(own, "/view/by_part").status == 503
    for part in ("nut", "cog"):
        del roots[0]
        assert read(own, "/view/by_part")["rows"] == [{"part": part, "n": 1}]


def test_a_view_defined_before_alter_table_keeps_its_columns_in_its_plan(tmp_path: Path) -> None:
    made = commit(tmp_path / "ckpt", None, [sale(1, "nut")])
    script = (
        "CREATE TABLE t (a INT); CREATE TABLE u (a INT);"
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM t UNION ALL SELECT * FROM u; ALTER TABLE t ADD COLUMN b INT"
    )
    assert versions.plan_text(replace(made, ordered=script), "v").startswith("view v(a INT)")


def test_reading_an_older_version_keeps_newer_cells_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "ckpt"
    first = commit(root, None, [sale(1, "nut")])
    second = commit(root, first, [sale(2, "nut")])
    own = Site("shop.sql", lambda: store_of(root), lambda: None)
    assert read(own, "/view/by_part")["rows"] == [{"part": "nut", "n": 2}]
    assert read(own, "/view/by_part", version=1)["rows"] == [{"part": "nut", "n": 1}]
    third = commit(root, second, [sale(3, "nut")])
    loads: list[object] = []
    monkeypatch.setattr("freshviews.spark.state.cell.load_cell", lambda *given: loads.append(given))
    # A reader has chosen version 2 but reads it after another one has read version 3.
    assert read(own, "/view/by_part")["rows"] == [{"part": "nut", "n": 3}]
    looks = iter([second])
    monkeypatch.setattr(versions, "latest", lambda store: next(looks, third))
    assert read(own, "/view/kept")["version"] == 3
    assert not loads


def test_the_server_answers_only_get_requests(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "SECONDS", 0.5)
    server = HttpServer("127.0.0.1", 0, site.answer, seconds=30)
    server.start()
    try:
        port = int(server.address.rpartition(":")[2])

        host = f"Host: 127.0.0.1:{port}\r\n".encode()
        good = answer_to(port, b"GET /view/by_part?format=json HTTP/1.1\r\n" + host + b"\r\n")
        assert b"200 OK" in good and b"Freshviews-Version: 2" in good and b"Access-Control" not in good
        for method in (b"POST", b"PUT", b"DELETE", b"OPTIONS", b"HEAD", b"TRACE", b"CONNECT"):
            found = answer_to(port, method + b" /view/by_part HTTP/1.1\r\n" + host + b"\r\n")
            assert b"501" in found.split(b"\r\n")[0] and b"part 1" not in found
        assert b"421" in answer_to(port, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").split(b"\r\n")[0]
        assert b"421" in answer_to(port, b"GET / HTTP/1.0\r\n\r\n").split(b"\r\n")[0]
        assert b"421" in answer_to(port, b"GET / HTTP/1.1\r\n" + host + b"Host: evil.example\r\n\r\n").split(b"\r\n")[0]
        started = time.monotonic()
        assert b"200" not in answer_to(port, b"GET / HTTP/1.1\r\n" + host)
        assert b"200" not in answer_to(port, b"GET /query?sql=" + b"x" * 100_000 + b" HTTP/1.1\r\n" + host + b"\r\n")
        assert time.monotonic() - started < 20
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("GET", "/view/kept?format=csv")
        assert len(client.getresponse().read().splitlines()) == 124  # the hostile text has two lines
    finally:
        server.close()


def test_the_serve_command_answers_until_it_gets_a_signal(root: Path) -> None:
    command = [sys.executable, "-m", "freshviews.cli", "serve", "shop.sql", "--port", "0"]
    with subprocess.Popen(command, cwd=root.parent, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.fullmatch(r".*shop\.checkpoint at (http://127\.0\.0\.1:(\d+))/ until Ctrl-C\n", line)
            assert found is not None, line
            client = http.client.HTTPConnection("127.0.0.1", int(found[2]), timeout=60)
            client.request("GET", "/?format=json")
            assert json.loads(client.getresponse().read())["version"] == 2
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0 and process.stderr.read() == ""
        finally:
            process.kill()


def test_clients_are_answered_during_hostile_requests(root: Path) -> None:
    """Connections to the command that are silent, send garbage or huge bodies, or do not read their answer."""
    command = [sys.executable, "-m", "freshviews.cli", "serve", "shop.sql", "--port", "0"]
    with subprocess.Popen(command, cwd=root.parent, stderr=subprocess.PIPE, text=True) as process:
        clients: list[socket.socket] = []
        try:
            assert process.stderr is not None
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline())
            assert found is not None
            port = int(found[1])
            host = f"Host: 127.0.0.1:{port}\r\n".encode()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port), timeout=5)  # Only 127.0.0.1 is served.
            huge = host + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 1_000_000
            deep = quote("(" * 1300 + "n = 1" + ")" * 1300)
            for request in (
                b"",
                b"\x00\xff\r\n garbage",
                b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200,
                b"POST /view/by_part HTTP/1.1\r\n" + huge,
                b"GET /view/kept?format=csv HTTP/1.1\r\n" + huge,
                f"GET /query?format=json&sql=SELECT+*+FROM+by_part+WHERE+{deep} HTTP/1.1\r\n".encode() + host + b"\r\n",
            ):
                for _ in range(20):
                    clients.append(socket.create_connection(("127.0.0.1", port), timeout=10))
                    with suppress(OSError):  # it was closed for a newer one
                        clients[-1].sendall(request)
            for path, text in (("/view/by_part?format=json", b"part 1"), ("/?format=json", b"delivered")):
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                client.request("GET", path)
                answer = client.getresponse()
                assert answer.status == 200 and text in answer.read()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0 and process.stderr.read() == ""
        finally:
            process.kill()
            for one in clients:
                one.close()
