"""Reading a checkpoint disturbs no pipeline, and tolerates concurrent changes."""

from __future__ import annotations

import fcntl
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from freshviews.errors import StoreError
from freshviews.spark.reading.contents import contents, latest, status
from freshviews.spark.script import read_script
from freshviews.spark.state.manifest import Manifest, Manifests
from freshviews.spark.state.runs import is_running
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from freshviews.store import files
from freshviews.store.files import lock


def commit(root: Path, version: int, **given: object) -> None:
    made = Manifest(version, version, "q", time.time(), {}, {}, **given)  # type: ignore[arg-type]
    Manifests(store_of(root)).commit(made)


def test_checking_whether_a_pipeline_runs_does_not_block_its_start(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(files.PATIENCE / 4, lambda: fcntl.flock(looking, fcntl.LOCK_UN)).start()
        with lock(tmp_path / "lock"):
            assert is_running(store_of(tmp_path))
            with pytest.raises(StoreError, match="is open already in process"):
                lock(tmp_path / "lock")
    assert not is_running(store_of(tmp_path))


def test_readers_of_a_collected_version_read_a_newer_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path, 7)
    seen = iter([[6], [7]])
    monkeypatch.setattr(Manifests, "versions", lambda self: next(seen, [7]))
    assert latest(store_of(tmp_path)).version == 7
    monkeypatch.setattr(Manifests, "versions", lambda self: [6])
    with pytest.raises(StoreError, match="does not have version 6"):
        latest(store_of(tmp_path))


def test_status_never_shows_more_versions_delivered_than_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.spark
@pytest.mark.full
def test_the_stored_rows_of_a_view_are_in_the_order_of_the_view(spark: Any, tmp_path: Path) -> None:
    """For a view of several cells, a merged one, and one in order; also after a sink that needs no contents gets
    them."""
    from freshviews.spark import Pipeline

    (tmp_path / "in").mkdir()
    views = {
        "kept": "SELECT id, part FROM t WHERE id % 3 > 0 ORDER BY id DESC",
        "by_kind": "SELECT id % 2 AS kind, COUNT(*) AS n FROM t GROUP BY id % 2 ORDER BY n DESC",
        "least": "SELECT part, COUNT(*) AS n FROM t GROUP BY part ORDER BY part",
    }
    table = "CREATE STREAMING TABLE t (id INT, part STRING) USING json OPTIONS (path 'in', changes 'op');"
    for number, output in enumerate(("changes", "complete")):
        rows = [{"op": "+", "id": number * 100 + n, "part": f"p{n % 5}"} for n in range(20)]
        if number:
            rows += [{"op": "-", "id": n, "part": f"p{n % 5}"} for n in (number, number + 5)]
        (tmp_path / "in" / f"{number}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        script = table + ";".join(
            f"CREATE MATERIALIZED VIEW {name} USING json OPTIONS (path 'out{number}/{name}', output '{output}') "
            f"AS {sql}"
            for name, sql in views.items()
        )
        query = Pipeline.of(spark, read_script(script, tmp_path), tmp_path / "ckpt", cells=2).start(once=True)
        query.awaitTermination()
        store = store_of(tmp_path / "ckpt")
        made = latest(store)
        if output == "complete":
            assert made.contents.keys() == views.keys()
        for name in views:
            assert contents(store, made, name).equals(contents(store, replace(made, contents={}), name)), (number, name)
