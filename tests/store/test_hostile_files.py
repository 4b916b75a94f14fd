"""Files of a database or checkpoint that someone else wrote are refused with their name, without waiting."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.errors import StoreError
from freshviews.spark.state.begun import begun
from freshviews.spark.state.bundle import Bundle, read_all
from freshviews.spark.state.delivered import Delivered
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.runs import Runs, runs_of
from freshviews.spark.state.stores.addresses import store_of
from freshviews.store.files import json_of

pytestmark = pytest.mark.plain_python(only=True)

NESTED = b"[" * 100_000


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """End a test that waits for a FIFO."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A closed database with a snapshot and a log after it."""
    with fv.Database(tmp_path / "db") as db:
        db.execute("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a")
        db.insert("t", [(1,)])
        db.snapshot()
        db.insert("t", [(2,)])
    return tmp_path / "db"


REPLACED: dict[str, Callable[[Path], Any]] = {
    "fifo": os.mkfifo,
    "directory": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("by", REPLACED)
@pytest.mark.parametrize("pattern", ["meta.json", "snapshot-*.fvsnap", "log-*.fvlog", "state-*/*"])
def test_the_error_names_a_file_that_is_not_a_regular_file(closed: Path, pattern: str, by: str) -> None:
    path = sorted(closed.glob(pattern))[-1]
    path.unlink()
    REPLACED[by](path)
    with pytest.raises(StoreError, match=path.name):
        fv.Database(closed)


STRANGE = [NESTED, b"[]", b"7", b"\xff"]


@pytest.mark.parametrize("text", [*STRANGE, b'{"format": 1e999}', b'{"format": 1, "log": Infinity}'])
def test_a_malformed_meta_json_is_refused(closed: Path, text: bytes) -> None:
    (closed / "meta.json").write_bytes(text)
    with pytest.raises(StoreError):
        fv.Database(closed)


@pytest.mark.parametrize("text", [*STRANGE, b"null", b'{"format": 1}'])
def test_a_malformed_manifest_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "manifest").mkdir()
    path = tmp_path / "manifest" / f"{7:012d}.json"
    path.write_bytes(text)
    with pytest.raises(StoreError, match=path.name):
        Manifests(store_of(tmp_path)).latest()


@pytest.mark.parametrize("by", REPLACED)
def test_an_object_that_is_not_a_regular_file_is_not_read(tmp_path: Path, by: str) -> None:
    REPLACED[by](tmp_path / "delivered")
    store = store_of(tmp_path)
    with pytest.raises(StoreError, match="delivered"):
        Delivered(store)
    with pytest.raises(OSError, match="not a regular file"):
        store.read_range("delivered", 0, 8)


def test_deeply_nested_checkpoint_objects_are_refused(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    for name in ("runs", "delivered", "tables"):
        store.write(name, NESTED)
    assert runs_of(store) == Runs()
    with pytest.raises(StoreError, match="nested too deeply"):
        Delivered(store)
    with pytest.raises(OSError, match="nested too deeply"):
        begun(store)


@pytest.mark.parametrize("damage", ["cut", "offsets"])
def test_corrupt_rows_of_a_checkpoint_are_refused_with_their_object(tmp_path: Path, damage: str) -> None:
    store = store_of(tmp_path)
    rows = pa.record_batch({"s": ["abc", "defg", "hi"]})
    bundle = Bundle(store, "changes", "contents-")
    bundle.add("all", rows.schema, [rows])
    name = bundle.finish()["all"]
    bundle.wait()
    assert read_all(store, [name]) == pa.Table.from_batches([rows])
    path = tmp_path / name.partition("@")[0]
    data = path.read_bytes()
    whole, other = np.array([[0, 3, 7, 9], [0, 8, 7, 9]], np.int32)
    path.write_bytes(data[:-40] + bytes(40) if damage == "cut" else data.replace(whole.tobytes(), other.tobytes()))
    with pytest.raises(StoreError, match=f"{path.name} is corrupt"):
        read_all(store, [name])


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    assert json_of(b'{"a": [1.5, [2]]}') == {"a": [1.5, [2]]}
    with pytest.raises(ValueError, match="nested too deeply"):
        json_of(b'{"a":' * 100_000)
