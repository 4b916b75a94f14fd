"""State and manifests, without Spark: a cell is restored from its files, and a cell of a failed try is not used."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from freshviews.engine.database import Database
from freshviews.errors import StoreError
from freshviews.spark.definition import tables_of
from freshviews.spark.state import cell as state
from freshviews.spark.state import cell_image
from freshviews.spark.state import child_process as forked
from freshviews.spark.state.cell import (
    EMPTY,
    appended,
    from_image,
    keep,
    load_cell,
    loaded,
    new_token,
    segment_of,
)
from freshviews.spark.state.cell_image import Entry
from freshviews.spark.state.checkpoint import collect
from freshviews.spark.state.manifest import Manifest, Manifests, VersionExists
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from freshviews.sql import Catalog, Statement, parse_script

TABLES = "CREATE TABLE t (a BIGINT, b STRING)"
SCRIPT = TABLES + "; CREATE MATERIALIZED VIEW v AS SELECT b, COUNT(*) AS n FROM t GROUP BY b"


def statements(script: str = SCRIPT) -> tuple[Statement, ...]:
    return tuple(parse_script(script, Catalog()))


@pytest.fixture
def in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are written synchronously, so that a test knows when."""
    monkeypatch.setenv(forked.SWITCH, "0")


@pytest.fixture
def fork() -> None:
    if not forked.can_fork():
        pytest.skip("nothing is forked here")


def rows(*given: tuple[int, str, int]) -> pa.Table:
    schema = state.changes_schema(tables_of(TABLES)["t"])
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*given, strict=True), schema, strict=True)], schema=schema
    )


def step(root: Path, entry: Entry, change: pa.Table, log_only: bool = False) -> Entry:
    """Apply a change to a cell, as a worker does."""
    store = store_of(root)
    cell = loaded(store, "0", entry, statements())
    cell.database.apply("t", change)
    after = appended(store, "0", entry, cell, segment_of(store, "0", {"t": change}), new_token(), log_only=log_only)
    cell.token = after["token"]
    keep(store, "0", cell)
    return after


def view(root: Path, entry: Entry, script: str = SCRIPT) -> list[tuple[object, ...]]:
    cell = load_cell(store_of(root), entry, statements(script))
    try:
        return sorted(cell.database.view("v"))
    finally:
        cell.database.close()


def loaded_view(root: Path, entry: Entry) -> list[tuple[object, ...]]:
    cell = loaded(store_of(root), "0", entry, statements())
    keep(store_of(root), "0", cell)
    return sorted(cell.database.view("v"))


def until(done: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def some(i: int) -> pa.Table:
    gone = [(i - 1, f"b{(i - 1) % 3}", -1)] if i % 5 == 0 and i else []
    return rows((i, f"b{i % 3}", 1), *gone)


@pytest.mark.parametrize("forks", [False, True])
def test_a_cell_is_restored_from_images_and_merged_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: bool
) -> None:
    if forks and not forked.can_fork():
        pytest.skip("nothing is forked here")
    monkeypatch.setenv(forked.SWITCH, str(int(forks)))
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 60)
    entry, seen = EMPTY, {"image": 0, "merged": 0}
    images = set()
    for i in range(150):
        entry = step(tmp_path, entry, some(i))
        images.add(entry["image"] and entry["image"]["folder"])
        seen["merged"] += any(segment["level"] for segment in entry["log"])
        if i % 17 == 0:
            assert view(tmp_path, entry) == loaded_view(tmp_path, entry)
        time.sleep(0.003 if forks else 0)
    assert len(images) > 2 and seen["merged"]
    assert sum(int(str(n)) for _, n in view(tmp_path, entry)) == 150 - 29
    folders = {path.name for path in (tmp_path / "state" / "0").iterdir() if path.is_dir()}
    assert entry["image"]["folder"].rpartition("/")[2] in folders


def test_a_cell_of_a_discarded_try_is_not_used(tmp_path: Path) -> None:
    first = step(tmp_path, EMPTY, rows((1, "x", 1)))
    step(tmp_path, first, rows((2, "lost", 1)))
    again = step(tmp_path, first, rows((3, "y", 1)))
    assert view(tmp_path, again) == [("x", 1), ("y", 1)] == loaded_view(tmp_path, again)


def test_an_image_of_a_discarded_try_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_line: None
) -> None:
    first = step(tmp_path, EMPTY, rows((1, "x", 1)))
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 1)
    lost = step(tmp_path, first, rows((2, "lost", 1)))
    assert lost["pending"]["token"] == lost["token"] and (tmp_path / lost["pending"]["folder"]).exists()
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 100)
    again = step(tmp_path, first, rows((3, "y", 1)))
    assert again["image"] is None and again["pending"] is None
    assert view(tmp_path, again) == [("x", 1), ("y", 1)] == loaded_view(tmp_path, again)


def test_a_lagging_cell_reads_only_the_missing_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = step(tmp_path, EMPTY, rows((1, "x", 1)))
    lagging = state._CELLS.pop((str(tmp_path), "0"))
    second = step(tmp_path, first, rows((2, "y", 1)))
    state._CELLS[(str(tmp_path), "0")] = lagging
    monkeypatch.setattr(state, "load_cell", lambda *given: pytest.fail("loaded anew"))
    assert loaded_view(tmp_path, second) == [("x", 1), ("y", 1)]


def test_versions_are_made_while_an_image_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork: None
) -> None:
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 20)
    go = tmp_path / "go"
    true_write = Database.write_image

    def slow(database: Database, folder: Path) -> None:
        until(go.exists)
        true_write(database, folder)

    monkeypatch.setattr(Database, "write_image", slow)
    entry = EMPTY
    while entry.get("pending") is None:
        entry = step(tmp_path, entry, some(len(entry["log"])))
    pending = entry["pending"]
    first = len(entry["log"])
    for i in range(first, first + 60):
        entry = step(tmp_path, entry, some(i))
        assert entry["pending"] == pending and entry["image"] is None
        if i % 20 == 0:
            assert view(tmp_path, entry) == loaded_view(tmp_path, entry)
    tokens = [segment["token"] for segment in entry["log"]]
    beyond = entry["log"][tokens.index(pending["token"]) + 1 :]
    assert len(beyond) < 60 and any(segment["level"] for segment in beyond)
    go.touch()
    until((tmp_path / pending["folder"]).exists)
    # A reader of the committed version already uses the image.
    monkeypatch.setattr(state, "read_all", only_of(beyond, state.read_all))
    assert view(tmp_path, entry) == loaded_view(tmp_path, entry)
    monkeypatch.undo()
    after = step(tmp_path, entry, some(1))
    assert after["image"] == pending and after["pending"] is None
    assert [segment["token"] for segment in after["log"][:-1]] == [segment["token"] for segment in beyond]
    assert view(tmp_path, after) == loaded_view(tmp_path, after)


def only_of(segments: list[Entry], true_read: Callable[..., object]) -> Callable[..., object]:
    known = {name for segment in segments for name in segment["files"].values()}

    def read(store: Store, names: list[str]) -> object:
        assert set(names) <= known
        return true_read(store, names)

    return read


def test_an_image_written_in_the_background_shortens_a_log_that_only_grows(
    tmp_path: Path, in_line: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 4)
    entry = step(tmp_path, EMPTY, rows((1, "x", 1)))
    cell = load_cell(store_of(tmp_path), entry, statements())
    cell.database.write_image(tmp_path / "aside")
    cell.database.close()
    image = {"token": entry["token"], "folder": "aside", "rows": 1}
    for i in range(40):
        entry = step(tmp_path, entry, rows((i, "xy"[i % 2], 1)), log_only=True)
    assert len(entry["log"]) == 41 and entry["image"] is None and entry.get("pending") is None
    short = from_image(entry, image)
    assert len(short["log"]) == 40 and short["token"] == entry["token"]
    assert view(tmp_path, short) == view(tmp_path, entry) == [("x", 21), ("y", 20)]
    # Afterwards images are written again.
    after = step(tmp_path, step(tmp_path, short, rows((1, "x", 1))), rows((1, "x", 1)))
    assert after["image"]["folder"] != "aside" and len(after["log"]) == 1


def test_an_image_whose_writer_is_killed_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork: None
) -> None:
    """The child stops in the middle of the image and is killed there."""
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 20)
    true_write = Database.write_image

    def half(database: Database, folder: Path) -> None:
        aside = folder.with_name(folder.name + ".tmp")
        aside.mkdir()
        (aside / "strings").write_bytes(b"half")
        (tmp_path / "child").write_text(str(os.getpid()))
        time.sleep(60)

    monkeypatch.setattr(Database, "write_image", half)
    entry = EMPTY
    while entry.get("pending") is None:
        entry = step(tmp_path, entry, some(len(entry["log"])))
    first = entry["pending"]
    child = tmp_path / "child"
    until(lambda: child.exists() and bool(child.read_text()))
    os.kill(int(child.read_text()), signal.SIGKILL)
    monkeypatch.setattr(Database, "write_image", true_write)
    entry = step(tmp_path, entry, some(1))
    assert entry["pending"] == first
    assert view(tmp_path, entry) == loaded_view(tmp_path, entry)
    monkeypatch.setattr(cell_image, "STALLED", -1.0)
    entry = step(tmp_path, entry, some(2))
    second = entry["pending"]
    assert second["folder"] != first["folder"] and second["token"] == entry["token"]
    until((tmp_path / second["folder"]).exists)
    entry = step(tmp_path, entry, some(3))
    assert entry["image"] == second and len(entry["log"]) == 1
    assert view(tmp_path, entry) == loaded_view(tmp_path, entry)
    Manifests(store_of(tmp_path)).commit(manifest(1, cells={"0": entry}))
    collect(store_of(tmp_path), Manifests(store_of(tmp_path)), orphan_seconds=-1)
    assert [path.name for path in (tmp_path / "state" / "0").glob("image-*") if path.is_dir()] == [
        second["folder"].split("/")[-1]
    ]
    assert view(tmp_path, entry) == loaded_view(tmp_path, entry)


def test_a_child_process_keeps_no_file_of_its_parent_open(tmp_path: Path, fork: None) -> None:
    reader, writer = os.pipe()
    ended: list[int] = []

    def work() -> None:
        (tmp_path / "files").write_text(" ".join(os.listdir("/proc/self/fd")))
        assert os.getsid(0) == os.getpid()
        (tmp_path / "process").write_text(str(os.getpid()))
        until((tmp_path / "go").exists)
        raise ValueError

    assert forked.in_child(work, ended.append)
    until(lambda: (tmp_path / "process").exists() and (tmp_path / "process").read_text() != "")
    os.close(writer)
    assert os.read(reader, 1) == b""  # the child has not inherited its end
    os.close(reader)
    (tmp_path / "go").touch()
    until(lambda: ended == [1])
    assert len((tmp_path / "files").read_text().split()) <= 5
    assert not Path(f"/proc/{(tmp_path / 'process').read_text()}").exists()


CHILD = """
import sys
from pathlib import Path
from freshviews.spark.state import cell_image
from tests.spark.test_state import *
cell_image.SMALLEST_IMAGE = 20_000
entry = EMPTY
for i in range(3):
    entry = step(Path(sys.argv[1]), entry, rows(*((j, f"b{j % 97}", 1) for j in range(i * 9000, i * 9000 + 9000))))
print(entry["pending"]["folder"], flush=True)
print(entry)
"""


def test_a_child_process_outlives_its_parent(
    tmp_path: Path, fork: None
) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", CHILD, tmp_path]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=180)
    folder, _, reported = done.stdout.partition("\n")
    assert done.returncode == 0, done.stderr
    entry = eval(reported)
    expected = Counter(f"b{j % 97}" for j in range(27000))
    assert view(tmp_path, entry) == sorted(expected.items())
    until((tmp_path / folder).exists)
    assert view(tmp_path, entry) == sorted(expected.items())
    assert step(tmp_path, entry, rows((1, "z", 1)))["image"] == entry["pending"]


def test_new_and_changed_views_are_backfilled_from_the_tables_of_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_line: None
) -> None:
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 5)
    entry = EMPTY
    for i in range(9):
        entry = step(tmp_path, entry, some(i))
    assert entry["image"] and entry["log"]
    counted = view(tmp_path, entry)
    other = SCRIPT.replace("FROM t", "FROM t WHERE b <> 'b1'")
    assert view(tmp_path, entry, other) == [row for row in counted if row[0] != "b1"]
    more = SCRIPT + "; CREATE MATERIALIZED VIEW w AS SELECT SUM(n) AS n FROM v"
    cell = load_cell(store_of(tmp_path), entry, statements(more))
    assert list(cell.database.view("w")) == [(sum(int(str(n)) for _, n in counted),)]


def test_the_error_names_a_damaged_or_missing_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_line: None
) -> None:
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 5)
    entry = EMPTY
    for i in range(9):
        entry = step(tmp_path, entry, some(i))
    folder = tmp_path / entry["image"]["folder"]
    assert sorted(path.name for path in folder.iterdir()) == ["contents", "strings", "table-1", "view-1"]
    for path in folder.iterdir():
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(StoreError, match=f"{path} could not be opened"):
            view(tmp_path, entry)
        path.write_bytes(data[:-1])
        with pytest.raises(StoreError, match=f"{path}, offset .*damaged"):
            view(tmp_path, entry)
        path.write_bytes(data)
    assert view(tmp_path, entry) == loaded_view(tmp_path, entry)


def test_a_full_disk_loses_an_image_but_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_line: None, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 5)

    def full(database: Database, folder: Path) -> None:
        raise StoreError(f"{folder} could not be written: No space left on device")

    monkeypatch.setattr(Database, "write_image", full)
    entry = EMPTY
    for i in range(9):
        entry = step(tmp_path, entry, some(i))
        assert entry["image"] is None and entry.get("pending") is None
    assert "No space left on device; the log grows" in caplog.text
    assert view(tmp_path, entry) == loaded_view(tmp_path, entry)


def test_loading_a_cell_takes_little_memory_and_time(tmp_path: Path, in_line: None) -> None:
    """In a process of its own, whose memory is measured: an image of 100 MB of numbers is mapped, not read."""
    store = store_of(tmp_path)
    cell = loaded(store, "0", EMPTY, statements())
    schema = rows((1, "x", 1)).schema
    numbers = pa.array(range(1_000_000), pa.int64())
    names = pa.array([f"b{i % 50}" for i in range(1_000_000)])
    change = pa.Table.from_arrays([numbers, names, pa.array([1] * 1_000_000, pa.int64())], schema=schema)
    cell.database.apply("t", change)
    # A delete flushes the deferred rows to the slots; otherwise the first delete after loading would do that.
    cell.database.apply("t", rows((0, "b0", -1), (0, "b0", 1)))
    entry = appended(store, "0", EMPTY, cell, segment_of(store, "0", {"t": change}), new_token())
    size = sum(path.stat().st_size for path in (tmp_path / entry["pending"]["folder"]).iterdir())
    assert size > 4e7
    code = f"""
import resource
from pathlib import Path
from freshviews.spark.state import cell_image
from tests.spark.test_state import *
load_cell(store_of({str(tmp_path)!r}), EMPTY, statements())
change = rows((5, "b5", -1), (-1, "new", 1))
def memory():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
before = memory()
cell = load_cell(store_of({str(tmp_path)!r}), {entry!r}, statements())
cell.database.apply("t", change)
print(memory() - before, sorted(cell.database.view("v"))[-1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    grown, _, rest = done.stdout.partition(" ")
    assert int(grown) * 1024 < size / 4 and rest.strip() == "('new', 1)"


def manifest(version: int, **given: object) -> Manifest:
    return Manifest(version, version, "q", 0.0, {}, {}, **given)  # type: ignore[arg-type]


def test_the_second_commit_of_a_version_raises_version_exists(tmp_path: Path) -> None:
    Manifests(store_of(tmp_path)).commit(manifest(1))
    with pytest.raises(VersionExists):
        Manifests(store_of(tmp_path)).commit(manifest(1, rows={"t": 1}))
    assert Manifests(store_of(tmp_path)).latest() == manifest(1)
    assert [path.name for path in (tmp_path / "manifest").iterdir()] == ["000000000001.json"]


def test_objects_of_kept_versions_are_not_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_line: None
) -> None:
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 3)
    order = random.Random(1)
    entry, kept, gone = EMPTY, Manifests(store_of(tmp_path)), 0
    for version in range(1, 40):
        entry = step(tmp_path, entry, rows(*((version, order.choice("xyz"), 1) for _ in range(order.randrange(1, 3)))))
        contents = {str(row[0]): row[1] for row in view(tmp_path, entry)}
        kept.commit(manifest(version, cells={"0": entry}, totals={"rows": contents}))
        gone += collect(store_of(tmp_path), kept, versions=6, states=2, orphan_seconds=3600)
        for last in kept.versions()[-2:]:
            found = kept.read(last)
            assert dict(view(tmp_path, found.cells["0"])) == found.totals["rows"]
    assert gone > 20 and kept.versions() == list(range(34, 40))
    orphan = tmp_path / "state" / "0" / "orphan.arrow"
    orphan.write_bytes(b"")
    assert collect(store_of(tmp_path), kept, versions=6, states=2, orphan_seconds=3600) == 0
    assert collect(store_of(tmp_path), kept, versions=6, states=2, orphan_seconds=-1) >= 1
    assert not orphan.exists()
    named = {name.split("/")[2] for version in kept.versions()[-2:] for name in kept.read(version).state_files()}
    found = {path.name for path in (tmp_path / "state" / "0").iterdir()}
    assert {name.removesuffix(".begun") for name in found} == named


def test_versions_that_a_sink_has_not_received_are_not_collected(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    kept = Manifests(store)
    for version in range(1, 21):
        store.write(f"changes/{version}.arrow", b"change")
        kept.commit(manifest(version, changes={"v": [f"changes/{version}.arrow"]}))
    collect(store, kept, versions=6, states=2, orphan_seconds=-1, needed_from=9)
    assert kept.versions() == list(range(9, 21))
    assert len(list((tmp_path / "changes").iterdir())) == 12
    collect(store, kept, versions=6, states=2, orphan_seconds=-1, needed_from=18)
    assert kept.versions() == list(range(15, 21))


def test_changes_of_dropped_versions_are_deleted_without_delay(tmp_path: Path) -> None:
    """Once, they were taken for those of a version in progress; a fast stream had an hour of them on disk."""
    store = store_of(tmp_path)
    kept = Manifests(store)
    now = time.time()
    for version in range(1, 21):
        store.write(f"changes/{version}.arrow", b"change")
        made = manifest(version, changes={"v": [f"changes/{version}.arrow"]})
        # A reader may just have found the changes of 3 to 10.
        kept.commit(replace(made, time=now if 3 <= version <= 10 else 0.0))
    collect(store, kept, versions=6, states=2)
    found = {path.name for path in (tmp_path / "changes").iterdir()}
    assert found == {f"{version}.arrow" for version in (*range(3, 11), *range(15, 21))}


def test_state_of_recent_versions_is_not_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_line: None
) -> None:
    monkeypatch.setattr(cell_image, "SMALLEST_IMAGE", 1)
    entry, kept = EMPTY, Manifests(store_of(tmp_path))
    now = time.time()
    for version, age in enumerate((200, 150, 100, 90, 30, 20, 10, 5), 1):
        entry = step(tmp_path, entry, rows((version, "x", 1), (version, "y", 1)))
        kept.commit(replace(manifest(version, cells={"0": entry}), time=now - age))
    assert collect(store_of(tmp_path), kept, states=1) > 0
    assert [sum(n for _, n in view(tmp_path, kept.read(v).cells["0"])) for v in (5, 6, 7, 8)] == [10, 12, 14, 16]
    with pytest.raises((StoreError, OSError)):
        view(tmp_path, kept.read(1).cells["0"])
