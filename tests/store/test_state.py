"""Snapshots store the state of views, so rows that are not stored need no log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import freshviews as fv
from freshviews.engine.views import view_image
from tests.store.killing import only

pytestmark = pytest.mark.compiled(3)

SCRIPT = """
CREATE TABLE clicks (who STRING, n INT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE people (who STRING PRIMARY KEY, town STRING);
CREATE MATERIALIZED VIEW towns AS
  SELECT town, COUNT(*) AS people, MIN(who) AS least FROM people GROUP BY town;
CREATE MATERIALIZED VIEW busy AS
  SELECT town, SUM(n) AS n, MAX(clicks.who) AS most FROM clicks JOIN people USING (who) GROUP BY town;
CREATE MATERIALIZED VIEW count AS SELECT SUM(n) AS n, COUNT(*) AS towns FROM busy;
"""


def make(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """A database with a snapshot and a later batch; returns the contents of its views."""
    with fv.Database(path) as db:
        db.execute(SCRIPT)
        db.insert("people", [(f"p{i}", f"town {i % 3}") for i in range(60)])
        for i in range(20):
            db.insert("clicks", [(f"p{i * j % 70}", j) for j in range(50)])
        db.snapshot()
        assert only(path, "log-*").stat().st_size == 0
        db.delete("clicks", [("p1", 1)])
        return contents(db)


def contents(db: fv.Database) -> dict[str, list[tuple[object, ...]]]:
    return {name: sorted(db.view(name)) for name in db.views}


def test_images_restore_views_of_trusted_tables(tmp_path: Path) -> None:
    expected = make(tmp_path)
    for turn in range(3):
        with fv.Database(tmp_path) as db:
            assert db.recovery is not None and db.recovery.replayed == 1
            assert contents(db) == expected and db.version == 22 + turn
            with pytest.raises(fv.CatalogError, match="are not stored; create the view"):
                db.execute("CREATE MATERIALIZED VIEW late AS SELECT n FROM clicks")
            with pytest.raises(fv.BatchError):
                db.insert("people", [("p1", "again")])
            reported: list[fv.Change] = []
            db.view("count").subscribe(reported.append)
            db.snapshot()
            db.apply("clicks", [("p2", 100 + turn, 1), ("p3", 3, -1)])
            assert len(reported) == 1
            expected = contents(db)


def test_another_process_plans_the_views_in_the_same_way(tmp_path: Path) -> None:
    expected = make(tmp_path)
    code = (
        "import sys, freshviews as fv\n"
        "with fv.Database(sys.argv[1]) as db: print({n: sorted(db.view(n)) for n in db.views})"
    )
    for seed in "12":
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == str(expected), done.stderr


def test_a_view_with_a_changed_program_is_backfilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = make(tmp_path)
    true_hash = view_image.hash_of
    with fv.Database(tmp_path) as db:
        views = db._relations.views.items()
        source = {n: view_image.identity_of(v.maintained.blocks[0].state.program) for n, v in views}

    def changed(name: str) -> None:
        monkeypatch.setattr(view_image, "hash_of", lambda text: true_hash(text) + ("x" if text == source[name] else ""))

    for name in ("towns", "count"):
        changed(name)
        with fv.Database(tmp_path) as db:
            assert contents(db) == expected
    changed("busy")
    with pytest.raises(fv.StoreError, match=r"state-\d+/view-2: the image of view busy is out of date"):
        fv.Database(tmp_path)
    monkeypatch.setattr(view_image, "hash_of", true_hash)
    with fv.Database(tmp_path) as db:
        assert contents(db) == expected


def test_the_error_of_a_damaged_or_missing_image_names_the_image(tmp_path: Path) -> None:
    expected = make(tmp_path)
    folder = only(tmp_path, "state-*")
    assert sorted(path.name for path in folder.iterdir()) == ["strings", "view-1", "view-2", "view-3"]
    for path in folder.iterdir():
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(fv.StoreError, match=f"{path} could not be opened"):
            fv.Database(tmp_path)
        broken = bytearray(data)
        broken[80] ^= 1
        path.write_bytes(broken)
        with pytest.raises(fv.StoreError, match=f"{path}, offset .*damaged"):
            fv.Database(tmp_path)
        path.write_bytes(data)
    with fv.Database(tmp_path) as db:
        assert contents(db) == expected


def test_images_of_unfinished_snapshots_are_deleted(tmp_path: Path) -> None:
    expected = make(tmp_path)
    (tmp_path / "state-000000000099").mkdir()
    (tmp_path / "state-000000000099" / "view-1").write_bytes(b"half")
    with fv.Database(tmp_path) as db:
        assert contents(db) == expected
        only(tmp_path, "state-*")
        db.snapshot()
        only(tmp_path, "state-*")


def test_the_previous_snapshot_stays_if_images_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from freshviews.store import crash_points as steps

    expected = make(tmp_path)

    def full(name: str) -> None:
        if name == "image written":
            raise OSError(28, "No space left on device")

    with fv.Database(tmp_path) as db:
        monkeypatch.setattr(steps, "hook", full)
        with pytest.raises(fv.StoreError, match="No space left"):
            db.snapshot()
        monkeypatch.setattr(steps, "hook", None)
        only(tmp_path, "state-*")
        assert contents(db) == expected
    with fv.Database(tmp_path) as db:
        assert contents(db) == expected
