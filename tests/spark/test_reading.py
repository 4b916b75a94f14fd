"""Looking at a checkpoint disturbs nobody, and bears with what changes meanwhile."""

from __future__ import annotations

import fcntl
import threading
import time
from pathlib import Path

import pytest

from freshviews.errors import StoreError
from freshviews.spark.reading.contents import latest, status
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.runs import is_running
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from freshviews.store import files
from freshviews.store.files import lock


def commit(root: Path, version: int, **given: object) -> None:
    made = Manifest(version, version, "q", time.time(), {}, {}, **given)  # type: ignore[arg-type]
    Manifests(store_of(root)).commit(made)


def test_who_looks_whether_it_runs_keeps_nobody_from_starting(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(files.PATIENCE / 4, lambda: fcntl.flock(looking, fcntl.LOCK_UN)).start()
        with lock(tmp_path / "lock"):
            assert is_running(store_of(tmp_path))
            with pytest.raises(StoreError, match="is open already, in the process with id"):
                lock(tmp_path / "lock")
    assert not is_running(store_of(tmp_path))


def test_a_version_collected_between_two_looks_gives_way_to_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, 7)
    seen = iter([[6], [7]])
    monkeypatch.setattr(Manifests, "versions", lambda self: next(seen, [7]))
    assert latest(store_of(tmp_path)).version == 7
    monkeypatch.setattr(Manifests, "versions", lambda self: [6])
    with pytest.raises(StoreError, match="version 6 is not kept any more"):
        latest(store_of(tmp_path))


def test_status_never_says_that_more_is_delivered_than_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path, 1, seconds=2.0)
    (tmp_path / "delivered").write_text("1")

    def meanwhile(store: Store) -> bool:
        commit(tmp_path, 2, arrived=time.time() - 5, seconds=2.0)
        store.write("delivered", b"2")
        return True

    monkeypatch.setattr("freshviews.spark.reading.contents.is_running", meanwhile)
    found = status(store_of(tmp_path))
    assert found.delivered <= found.version == 2
    assert 5 <= found.lag < 6 and found.age < 5
    assert Manifests(store_of(tmp_path)).read(1).lag == 2.0
