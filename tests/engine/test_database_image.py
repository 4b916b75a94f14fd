"""A database restored from its image agrees with one that was never interrupted."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.engine.database import Database
from freshviews.engine.views import view_image
from freshviews.errors import OtherProgram
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.sql import Catalog, Statement, parse_script
from freshviews.store import array_file

pytestmark = pytest.mark.compiled(4)

TABLES = """
CREATE TABLE towns (town STRING PRIMARY KEY, area DECIMAL(9, 2));
CREATE TABLE people (id BIGINT PRIMARY KEY, name STRING, town STRING REFERENCES towns (town), pass STRING UNIQUE);
CREATE TABLE visits (id BIGINT, day DATE, cost DOUBLE);
"""
VIEWS = """
CREATE MATERIALIZED VIEW by_town AS
  SELECT town, COUNT(*) AS n, SUM(cost) AS cost, AVG(area) AS area, MIN(name) AS least
  FROM visits JOIN people USING (id) JOIN towns USING (town) WHERE name <> 'p3' GROUP BY town;
CREATE MATERIALIZED VIEW total AS SELECT SUM(n) AS n, COUNT(*) AS towns FROM by_town;
CREATE MATERIALIZED VIEW pairs AS
  SELECT a.name AS one, b.name AS other FROM people a JOIN people b ON a.town = b.town WHERE a.id < b.id;
CREATE MATERIALIZED VIEW busy AS
  SELECT name FROM people JOIN (SELECT DISTINCT id FROM visits WHERE cost > 2) AS dear USING (id);
"""
SCRIPT = TABLES + VIEWS
STEPS = 15 if PURE_PYTHON else 60


def statements(script: str = SCRIPT) -> list[Statement]:
    return parse_script(script, Catalog())


def contents(db: Database) -> dict[str, Any]:
    tables = {name: sorted(db.table(name), key=repr) for name in db.tables}
    return tables | {name: sorted(db.view(name), key=repr) for name in db.views}


def steps(order: random.Random) -> list[Callable[[Database], object]]:
    """Batches for a database, many of them refused for a key, a foreign key, or a delete of a missing row."""
    found: list[Callable[[Database], object]] = []
    for _ in range(STEPS):
        town, other = f"t{order.randrange(6)}", f"t{order.randrange(6)}"
        i = order.randrange(20)
        kind = order.choice(["town", "no town", "person", "person", "no person", "visits", "visits", "no visits"])
        who = (i, f"p{i % 7}" if i % 5 else None, town if i % 4 else None, order.choice([None, f"pass {i % 9}"]))
        visit, times = (i, None, order.choice([0.5, 3.0, None])), order.randrange(1, 3)
        if kind == "town":
            found.append(lambda db, r=(town, i): db.insert("towns", [r]))
        elif kind == "no town":
            found.append(lambda db, t=other: db.delete("towns", [r for r in db.table("towns") if r[0] == t]))
        elif kind == "person":
            found.append(lambda db, r=who: db.insert("people", [r]))
        elif kind == "no person":
            found.append(lambda db, i=i: db.delete("people", [r for r in db.table("people") if r[0] == i]))
        elif kind == "visits":
            found.append(lambda db, r=visit, n=times: db.apply("visits", [(*r, n)]))
        else:
            found.append(lambda db, r=visit: db.delete("visits", [r]))
    return found


def outcome(step: Callable[[Database], object], db: Database) -> str | None:
    try:
        step(db)
    except fv.BatchError as error:
        return str(error)
    return None


@pytest.mark.parametrize("mapped", [1, 1 << 18], ids=["mapped", "read"])
@pytest.mark.parametrize("seed", range(3))
def test_a_restored_database_agrees_with_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, mapped: int
) -> None:
    """Contents, changes, and refusals with their messages agree, over images of images."""
    monkeypatch.setattr(array_file, "MAPPED", mapped)
    order = random.Random(seed)
    one, other = Database(), Database()
    one.execute(SCRIPT)
    other.define(statements())
    refused = 0
    for number, step in enumerate(steps(order)):
        if order.random() < 0.15:
            folder = tmp_path / str(number)
            other.write_image(folder, sync=False)
            # The writer continues too.
            fresh = Database.from_image(folder, statements())
            assert outcome(step, other) == outcome(step, fresh)
            assert contents(fresh) == contents(other)
            other.close()
            other = fresh
            said = outcome(step, one)
        else:
            told: list[list[fv.Change]] = [[], []]
            subscriptions = [
                db.view(v).subscribe(log.append) for db, log in zip((one, other), told, strict=True) for v in db.views
            ]
            said = outcome(step, one)
            assert outcome(step, other) == said
            changes = [sorted((c.view, sorted(map(repr, c.to_arrow().to_pylist()))) for c in log) for log in told]
            assert changes[0] == changes[1]
            for subscription in subscriptions:
                subscription.unsubscribe()
        refused += said is not None
        if number % 5 == 0:
            assert contents(one) == contents(other)
    assert contents(one) == contents(other) and refused > STEPS / 10
    held, again = bytes_of(one), bytes_of(other)
    # SEEN, the bits of touched rows, is made again for the restored rows.
    assert held.keys() == again.keys() and all(abs(held[name] - again[name]) <= 100 for name in held)


def bytes_of(db: Database) -> dict[str, int]:
    stats = db.stats()
    return {name: found["bytes"] for kind in ("tables", "views") for name, found in stats[kind].items()}


def filled() -> Database:
    db = Database()
    db.execute(SCRIPT)
    db.insert("towns", [(f"t{i}", i) for i in range(5)])
    db.insert("people", [(i, f"p{i % 9}", f"t{i % 5}", f"pass {i}") for i in range(40)])
    db.insert("visits", [(i % 50, None, float(i)) for i in range(200)])
    return db


def test_keys_and_foreign_keys_are_enforced_for_rows_restored_from_an_image(tmp_path: Path) -> None:
    with filled() as db:
        db.write_image(tmp_path / "image")
    with Database.from_image(tmp_path / "image", statements()) as db:
        for table, row, said in (
            ("people", (7, "x", "t1", "new"), "PRIMARY KEY"),
            ("people", (100, "x", "t1", "pass 7"), "UNIQUE"),
            ("people", (100, "x", "nowhere", "new"), "FOREIGN KEY"),
        ):
            with pytest.raises(fv.BatchError, match=said):
                db.insert(table, [row])
        with pytest.raises(fv.BatchError, match="FOREIGN KEY"):
            db.delete("towns", [("t1", 1)])
        with pytest.raises(fv.BatchError, match="not there"):
            db.delete("visits", [(3, None, 99.0)])
        db.delete("visits", [(3, None, 3.0)])
        db.delete("people", [(7, "p7", "t2", "pass 7")])
        db.insert("people", [(7, "again", "t4", "pass 7")])
        with filled() as never:
            never.delete("visits", [(3, None, 3.0)])
            never.delete("people", [(7, "p7", "t2", "pass 7")])
            never.insert("people", [(7, "again", "t4", "pass 7")])
            assert contents(db) == contents(never)


def test_an_image_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image"
    true_write = array_file.write_arrays
    with filled() as db:
        for name in ("strings", "table-3", "view-2", "contents"):

            def failing(path: Path, *given: Any, name: str = name) -> None:
                if path.name == name:
                    raise OSError(28, "No space left on device")
                true_write(path, *given)

            modules = ("tables.table_image", "views.view_image", "durable.database_image")
            for module in (*(f"engine.{name}" for name in modules), "store.strings"):
                monkeypatch.setattr(f"freshviews.{module}.write_arrays", failing)
            with pytest.raises(fv.StoreError, match=f"{path} could not be written: .*No space left"):
                db.write_image(path)
            monkeypatch.undo()
            assert list(tmp_path.iterdir()) == []
            with pytest.raises(fv.StoreError, match="contents could not be opened"):
                Database.from_image(path, statements())
        # Files left by a killed writer are overwritten.
        (tmp_path / "image.tmp").mkdir()
        (tmp_path / "image.tmp" / "view-1").write_bytes(b"half")
        db.write_image(path)
        assert [found.name for found in tmp_path.iterdir()] == ["image"]
        with pytest.raises(fv.StoreError, match="exists already"):
            db.write_image(path)
        with Database.from_image(path, statements(), verify=True) as again:
            assert contents(again) == contents(db)


def test_the_error_of_a_missing_or_damaged_image_file_names_the_file(tmp_path: Path) -> None:
    with filled() as db:
        db.write_image(tmp_path / "image")
        expected = contents(db)
    names = {path.name for path in (tmp_path / "image").iterdir()}
    assert names >= {"contents", "strings", "table-1", "table-2", "table-3", "view-1", "view-5"}
    for path in (tmp_path / "image").iterdir():
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(fv.StoreError, match=f"{path} could not be opened"):
            Database.from_image(tmp_path / "image", statements())
        for broken in (data[:-1], data[:80] + bytes([data[80] ^ 1]) + data[81:]):
            path.write_bytes(broken)
            with pytest.raises(fv.StoreError, match=f"{path}, offset .*damaged"):
                Database.from_image(tmp_path / "image", statements(), verify=True)
        path.write_bytes(data)
    view = tmp_path / "image" / "view-1"
    (tmp_path / "image" / "table-1").write_bytes(view.read_bytes())
    with pytest.raises(fv.StoreError, match="table-1 is not an image of a table"):
        Database.from_image(tmp_path / "image", statements())
    assert expected["total"]


def test_views_that_differ_from_the_image_are_backfilled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "image"
    with filled() as db:
        db.write_image(folder)
        before = contents(db)
    read: list[str] = []
    true_read = view_image.read_image

    def noted(path: Path, view: str, *given: Any) -> Any:
        found = true_read(path, view, *given)
        read.append(view)
        return found

    monkeypatch.setattr("freshviews.engine.views.maintained.read_image", noted)
    # Images differ by strings in comparisons, and by the definitions of input views.
    other = SCRIPT.replace("'p3'", "'p4'") + "CREATE MATERIALIZED VIEW late AS SELECT COUNT(*) AS n FROM pairs;"
    with Database.from_image(folder, statements(other)) as db, filled() as never:
        assert sorted(name.split("#")[0] for name in read) == ["busy", "busy", "pairs"]
        assert list(db.view("late")) == [(len(before["pairs"]),)]
        assert contents(db)["by_town"] != before["by_town"] and contents(db)["total"] != before["total"]
        never.execute("DROP MATERIALIZED VIEW total; DROP MATERIALIZED VIEW by_town")
        never.execute(VIEWS[: VIEWS.index("CREATE MATERIALIZED VIEW pairs")].replace("'p3'", "'p4'"))
        assert contents(db)["by_town"] == contents(never)["by_town"]
        assert contents(db)["total"] == contents(never)["total"]
    read.clear()
    with Database.from_image(folder, statements(TABLES)) as db:
        assert contents(db) == {name: before[name] for name in db.tables} and read == []
    # Other spelling and spaces give the same view.
    with Database.from_image(folder, statements(SCRIPT.replace("SELECT town, COUNT", "SELECT  town,\n COUNT"))) as db:
        assert contents(db) == before and "by_town" in read
    true_hash = view_image.hash_of
    for name in ("by_town", "total", "pairs"):
        with filled() as db:
            source = view_image.identity_of(db._relations.views[name].maintained.blocks[0].state.program)
        monkeypatch.setattr(view_image, "hash_of", lambda text, s=source: true_hash(text) + ("x" if text == s else ""))
        read.clear()
        with Database.from_image(folder, statements()) as db:
            assert contents(db) == before and name not in read and len(read) == 4


def test_opening_an_image_refuses_changed_tables(tmp_path: Path) -> None:
    folder = tmp_path / "image"
    with filled() as db:
        db.write_image(folder)
    for old, new in (("DOUBLE", "FLOAT"), ("day DATE, ", ""), ("pass STRING UNIQUE", "pass STRING")):
        with pytest.raises(fv.StoreError, match=r"table (visits|people) has other columns or keys"):
            Database.from_image(folder, statements(SCRIPT.replace(old, new)))
    with Database.from_image(folder, statements(SCRIPT + "CREATE TABLE late (x INT);")) as db:
        assert list(db.table("late")) == []


TRUSTED = """
CREATE TABLE t (a BIGINT, b STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW v AS SELECT b, SUM(a) AS a FROM t GROUP BY b;
"""


def test_views_of_trusted_tables_are_never_backfilled_from_an_image(tmp_path: Path) -> None:
    with Database() as db:
        db.execute(TRUSTED)
        db.write_image(tmp_path / "empty")
        db.insert("t", [(1, "x"), (2, "y"), (3, "x")])
        assert db.stored_rows == 2
        db.write_image(tmp_path / "image")
    with Database.from_image(tmp_path / "image", statements(TRUSTED)) as db:
        db.delete("t", [(3, "x")])
        assert sorted(db.view("v")) == [("x", 1), ("y", 2)]
        with pytest.raises(fv.CatalogError, match="are not stored; create the view"):
            db.execute("CREATE MATERIALIZED VIEW w AS SELECT a FROM t")
    more = TRUSTED + "CREATE MATERIALIZED VIEW w AS SELECT a FROM t;"
    for changed in (more, TRUSTED.replace("SUM(a)", "SUM(a + 1)")):
        with pytest.raises(OtherProgram, match=r"view [vw] .* from the trusted table t"):
            Database.from_image(tmp_path / "image", statements(changed))
        with Database.from_image(tmp_path / "empty", statements(changed)) as db:
            db.insert("t", [(1, "x")])


def test_define_refuses_durable_databases_and_used_names(tmp_path: Path) -> None:
    with Database(tmp_path / "kept") as db, pytest.raises(fv.FreshviewsError, match=r"use Database\.execute"):
        db.define(statements())
    with Database() as db:
        db.define(statements())
        with pytest.raises(fv.CatalogError, match="towns exists already"):
            db.define(statements(TABLES))
        with pytest.raises(fv.CatalogError, match="t exists already"):
            db.define(2 * statements("CREATE TABLE t (a INT)"))
        assert "t" not in db.tables
        db.execute("DROP MATERIALIZED VIEW total")
        db.define(parse_script(SCRIPT, Catalog())[-3:][:1])
        assert sorted(db.views) == ["busy", "by_town", "pairs", "total"]


@pytest.mark.skipif(PURE_PYTHON, reason="this is that run")
def test_a_process_with_another_hash_seed_restores_the_views(tmp_path: Path) -> None:
    with filled() as db:
        db.write_image(tmp_path / "image")
        expected = contents(db)
    code = f"""
from freshviews.engine import backfill
from freshviews.engine import draft
from tests.engine.test_database_image import *
def never(*given): raise AssertionError
draft.fill = never
print(contents(Database.from_image({str(tmp_path / "image")!r}, statements())))
"""
    for seed in "12":
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == str(expected), done.stderr
