"""Unused strings leave the dictionary, and used ones stay."""

from __future__ import annotations

import random
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from freshviews import Database
from freshviews.catalog.catalog import Catalog
from freshviews.engine.change import Change
from freshviews.engine.codes.decoding import Decoder
from freshviews.engine.codes.string_codes import codes_of
from freshviews.engine.commit.collection import Collection
from freshviews.engine.commit.string_keys import string_keys
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.program.program import Program
from freshviews.sql.statements.sql_script import parse_script

pytestmark = pytest.mark.plain_python

EVENTS = """CREATE TABLE events (id STRING PRIMARY KEY, kind STRING, n INT);
CREATE MATERIALIZED VIEW loud AS SELECT id, UPPER(id) AS loud, kind || '!' AS kind FROM events;
CREATE MATERIALIZED VIEW ends AS
  SELECT kind, MIN(id) AS first, MAX(id) AS last, COUNT(*) AS n FROM events GROUP BY kind;
CREATE MATERIALIZED VIEW above AS SELECT kind, first FROM ends WHERE n > 1"""


def collecting(path: Path | None = None, script: str = EVENTS, least: int = 8) -> Database:
    """A database that collects often."""
    db = Database(path)
    if not db.tables:
        db.execute(script)
    db._collection = Collection(db._dictionary, least)
    return db


def in_dictionary(db: Database) -> set[str]:
    return {text for text in db._dictionary.entries() if text is not None}


def window(db: Database, first: int, end: int, width: int, arrow: bool = False) -> None:
    """Move a window of rows with unique ids from one number to another."""
    for i in range(first, end):
        rows = [(f"id {i}", f"kind {i % 3}", i)]
        gone = [(f"id {i - width}", f"kind {(i - width) % 3}", i - width)] if i >= width else []
        if arrow:
            names = ["id", "kind", "n"]
            db.insert("events", pa.table([pa.array(c) for c in zip(*rows, strict=True)], names))
            if gone:
                db.delete("events", pa.table([pa.array(c) for c in zip(*gone, strict=True)], names))
            continue
        db.insert("events", rows)
        if gone:
            db.delete("events", gone)


def check(db: Database, first: int, end: int) -> None:
    live = range(first, end)
    assert sorted(db.view("loud")) == sorted((f"id {i}", f"ID {i}", f"kind {i % 3}!") for i in live)
    expected = []
    for kind in range(3):
        ids = sorted(f"id {i}" for i in live if i % 3 == kind)
        expected.append((f"kind {kind}", ids[0], ids[-1], len(ids)))
    assert sorted(db.view("ends")) == expected
    assert sorted(db.view("above")) == [(kind, least) for kind, least, _, _ in expected]
    assert db.view("loud").to_arrow().num_rows == len(live)


@pytest.mark.parametrize("arrow", [False, True])
def test_a_moving_window_leaves_no_strings_behind(arrow: bool) -> None:
    with collecting() as db:
        window(db, 0, 600, 20, arrow)
        check(db, 580, 600)
        assert db._collection.ended > 3
        assert len(db._dictionary) < 500
        assert db.stats()["strings"] < 500
        assert codes_of(db._dictionary).bytes() <= 3 << 14


def test_strings_in_use_stay_if_the_primary_key_is_not_the_first_column() -> None:
    script = """CREATE TABLE items (name STRING NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (id));
    CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM items"""
    with collecting(script=script) as db:
        kept = [(f"kept {i}", 10**9 + i) for i in range(30)]
        db.insert("items", kept)
        for i in range(300):
            db.insert("items", [(f"name {i}", i)])
            db.delete("items", [(f"name {i}", i)])
        assert db._collection.ended > 3
        assert {name for name, _ in kept} <= in_dictionary(db)
        db.delete("items", kept)
        assert list(db.view("counted")) == [(0,)]


def test_stats_count_bytes_of_strings_and_windows() -> None:
    script = """CREATE TABLE t (name STRING, n BIGINT)
        TBLPROPERTIES ('freshviews.trusted' = 'true', 'freshviews.window' = '100 rows');
        CREATE MATERIALIZED VIEW v AS SELECT name, COUNT(*) AS n FROM t GROUP BY name"""
    with collecting(script=script) as db:
        db.insert("t", [("x", 0)])
        before = db.stats()
        db.insert("t", [(f"{i:0200}", i) for i in range(100)])
        after = db.stats()
        assert after["tables"]["t"]["bytes"] == db.bytes_of("t") == 100 * 2 * 8
        assert after["string_bytes"] - before["string_bytes"] > 100 * 200
        parts = [*after["tables"].values(), *after["views"].values()]
        assert after["bytes"] == after["string_bytes"] + sum(one["bytes"] for one in parts)


def test_a_reopened_database_frees_unused_strings(tmp_path: Path) -> None:
    with collecting(tmp_path / "db") as db:
        window(db, 0, 200, 20)
        db.snapshot()
        window(db, 200, 260, 20)
        check(db, 240, 260)
    with collecting(tmp_path / "db") as db:
        check(db, 240, 260)
        assert len(db._dictionary) < 500
        window(db, 260, 600, 20)
        check(db, 580, 600)
        assert len(db._dictionary) < 500


def test_an_image_records_which_codes_are_free(tmp_path: Path) -> None:
    with collecting() as db:
        window(db, 0, 300, 20)
        statements = parse_script(EVENTS, Catalog())
        db.write_image(tmp_path / "image")
    with Database.from_image(tmp_path / "image", statements) as db:
        db._collection = Collection(db._dictionary, 8)
        check(db, 280, 300)
        window(db, 300, 600, 20)
        check(db, 580, 600)
        assert len(db._dictionary) < 500


def test_an_image_with_free_codes_can_be_opened_with_a_new_view(tmp_path: Path) -> None:
    """The constant of the view takes no free code: views of the image would be refused for another dictionary."""
    with collecting() as db:
        window(db, 0, 300, 20)
        known = db._dictionary
        assert None in known.entries(len(known) - 16, len(known))
        for i in range(len(known)):
            # Until free codes are left only among the last ones, by which an image knows its dictionary.
            if None not in known.entries(0, len(known) - 16):
                break
            known.pin(f"pinned {i}")
        assert None in known.entries()
        db.write_image(tmp_path / "image")
    script = f"CREATE MATERIALIZED VIEW new AS SELECT id FROM events WHERE kind <> 'new constant';{EVENTS}"
    create, rest = script.split(";", 1)
    table, views = rest.split(";", 1)
    with Database.from_image(tmp_path / "image", parse_script(f"{table};{create};{views}", Catalog())) as db:
        check(db, 280, 300)
        assert sorted(db.view("new")) == sorted((f"id {i}",) for i in range(280, 300))


def test_a_looked_up_row_keeps_its_strings_until_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(least=1) as db:
        window(db, 0, 20, 20)

        def others() -> None:
            if db._lock.acquire(blocking=False):
                window(db, 20, 60, 20)
                db._dictionary._recent.forget()
                db._lock.release()

        decode = Decoder.row

        def late(decoder: Decoder, codes: Any) -> tuple[Any, ...]:
            monkeypatch.undo()
            thread = Thread(target=others)
            thread.start()
            thread.join()
            return decode(decoder, codes)

        monkeypatch.setattr(Decoder, "row", late)
        assert db.view("ends")["kind 0"] == ("kind 0", "id 0", "id 9", 7)
        others()
        check(db, 40, 60)


def test_strings_that_changes_readers_or_batches_use_are_not_collected() -> None:
    with collecting() as db:
        kept: list[Change] = []
        subscription = db.view("loud").subscribe(kept.append)
        window(db, 0, 40, 20)
        subscription.unsubscribe()
        readers = [iter(db.view(name).to_batches(3)) for name in ("loud", "ends")]
        read: list[list[Any]] = [next(reader).to_pylist() for reader in readers]
        with db.batch() as batch:
            batch.insert("events", [("of a batch", "kind 0", 1)])
            window(db, 40, 300, 20)
        db.delete("events", [("of a batch", "kind 0", 1)])
        window(db, 300, 400, 20)
        assert db._collection.ended > 3
        check(db, 380, 400)
        for rows, reader in zip(read, readers, strict=True):
            rows += [row for batch in reader for row in batch.to_pylist()]
        assert sorted(row["loud"] for row in read[0]) == sorted(f"ID {i}" for i in range(20, 40))
        assert sorted(row["kind"] for row in read[1]) == ["kind 0", "kind 1", "kind 2"]
        assert [row[0] for change in kept for row, _ in change] == [
            name for i in range(40) for name in ([f"id {i}"] if i < 20 else [f"id {i}", f"id {i - 20}"])
        ]
        kept.clear()
        window(db, 400, 700, 20)
        assert db.stats()["strings"] < 500


def test_refused_batches_leave_no_strings_behind() -> None:
    with collecting() as db:
        window(db, 0, 20, 20)
        for i in range(300):
            with pytest.raises(Exception, match="not there"):
                db.delete("events", [(f"never {i}", "kind 0", i)])
        window(db, 20, 320, 20)
        assert not any(text.startswith("never 1") for text in in_dictionary(db))
        check(db, 300, 320)


def test_strings_of_constants_stay_after_a_collection() -> None:
    script = """CREATE TABLE r (a STRING, b STRING);
    CREATE MATERIALIZED VIEW v AS SELECT a, CASE WHEN b = 'yes' THEN 'agreed' ELSE CONCAT(b, ', no') END AS c FROM r"""
    with collecting(script=script) as db:
        for i in range(200):
            db.insert("r", [(str(i), "yes"), (str(i), f"maybe {i}")])
            db.delete("r", [(str(i), "yes"), (str(i), f"maybe {i}")])
        assert db._collection.ended > 3
        db.insert("r", [("x", "yes"), ("x", "perhaps")])
        assert sorted(db.view("v")) == [("x", "agreed"), ("x", "perhaps, no")]
        assert {"yes", "agreed"} <= in_dictionary(db)


@pytest.mark.parametrize("trusted", [False, True])
def test_strings_of_rows_that_leave_a_window_are_freed(trusted: bool) -> None:
    properties = "'freshviews.window' = '20 rows'" + (", 'freshviews.trusted' = 'true'" if trusted else "")
    script = f"""CREATE TABLE r (a STRING, b STRING) TBLPROPERTIES ({properties});
    CREATE MATERIALIZED VIEW v AS SELECT LOWER(a) AS a, COUNT(*) AS n FROM r GROUP BY LOWER(a)"""
    with collecting(script=script) as db:
        for i in range(600):
            db.insert("r", [(f"A{i}", f"B{i}")])
        assert sorted(db.view("v")) == sorted((f"a{i}", 1) for i in range(580, 600))
        assert db.stats()["strings"] < 500


JOINS = {
    "view_tree": "SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c",
    "higher_order": "SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c",
    "change_propagation": "SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c",
    "first_order": "SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c",
    "crown": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "trie_join": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "incremental_trie_join": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "recompute": "SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c",
}


@pytest.mark.parametrize("strategy", JOINS)
@pytest.mark.parametrize("trusted", [False, True])
def test_every_strategy_keeps_the_strings_of_its_rows(strategy: str, trusted: bool) -> None:
    trust = "TBLPROPERTIES ('freshviews.trusted' = 'true')" if trusted else ""
    script = f"""CREATE TABLE r (a STRING, b STRING) {trust}; CREATE TABLE s (b STRING, c STRING) {trust};
    CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}') AS {JOINS[strategy]}"""
    rng = random.Random(strategy)
    held: dict[str, list[tuple[str, str]]] = {"r": [], "s": []}
    with collecting(script=script, least=4) as db:
        for step in range(250):
            table = rng.choice("rs")
            rows = held[table]
            if len(rows) > 12 or (rows and rng.random() < 0.3):
                gone = [rows.pop(rng.randrange(len(rows))) for _ in range(rng.randrange(1, min(4, len(rows) + 1)))]
                db.delete(table, gone)
            else:
                key = f"key {step // 20}.{rng.randrange(3)}"
                new = [(f"a{step}", key) if table == "r" else (key, f"c{step}") for _ in range(rng.randrange(1, 3))]
                rows += new
                db.insert(table, new)
            if step % 10 == 0:
                joined = sorted((a, c) for a, b in held["r"] for other, c in held["s"] if b == other)
                if strategy in ("crown", "trie_join", "incremental_trie_join"):
                    assert sorted(db.view("v")) == joined
                else:
                    assert sorted(row[:2] for row in db.view("v")) == sorted(set(joined))
        assert db._collection.ended > 3
        assert db.stats()["strings"] < 150


@pytest.mark.parametrize("batch", [100, 1000, 4000])
def test_memory_of_strings_is_released_after_most_rows_were_deleted(batch: int) -> None:
    rows = 400 if PURE_PYTHON else 40_000
    with collecting(script="CREATE TABLE t (a STRING NOT NULL PRIMARY KEY)", least=64) as db:
        store = codes_of(db._dictionary)
        ids = [f"{i:034}" for i in range(rows)]
        for start in range(0, rows, 4000):
            db.insert("t", pa.table({"a": ids[start : start + 4000]}))
        full = store.bytes()
        kept = ids[: rows // 50]
        for start in range(len(kept), rows, batch):
            db.delete("t", pa.table({"a": ids[start : start + batch]}))
        for i in range(200):
            db.insert("t", [(f"x {i}",)])
            db.delete("t", [(f"x {i}",)])
        # Places of codes below the largest one stay.
        assert store.bytes() - 5.1 * len(db._dictionary) <= 0.05 * full + 4096
        assert db.stats()["strings"] <= 1.5 * len(kept) + 64 + 200
        assert sorted(db.table("t")) == [(text,) for text in kept]


def test_a_collection_step_is_bounded_for_any_number_of_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 300 if PURE_PYTHON else 30_000
    monkeypatch.setattr("freshviews.engine.commit.collection.LONGEST", 100)
    monkeypatch.setattr("freshviews.engine.commit.collection.URGENT", 50)
    with collecting(script="CREATE TABLE t (a STRING NOT NULL)", least=16) as db:
        ids = [f"{i:034}" for i in range(rows)]
        db.insert("t", pa.table({"a": ids}))
        db.delete("t", pa.table({"a": ids[100:]}))
        before, steps = db.stats()["strings"], 0
        while db.stats()["strings"] > 200:
            db.insert("t", [("x",)])
            db.delete("t", [("x",)])
            steps += 2
            now = db.stats()["strings"]
            # Freeing a string is worth 16 units of work; a slice of 16 may go beyond the limit, in each of two commits.
            assert before - now <= 2 * (100 // 16 + 16 + 1)
            before = now
            assert steps < 100 * rows
        assert sorted(db.table("t")) == [(text,) for text in ids[:100]]


def test_deletes_start_no_collection_while_there_are_few_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    script = "CREATE TABLE t (a INT, b STRING); CREATE MATERIALIZED VIEW v AS SELECT a FROM t"
    with collecting(script=script, least=64) as db:
        monkeypatch.setattr(db._collection, "_begin", lambda relations: looked.append(len(relations.views)))
        for _ in range(3):
            db.insert("t", [(i, "x") for i in range(100)])
            db.delete("t", [(i, "x") for i in range(100)])
        assert not looked
        db.insert("t", [(i, f"x {i}") for i in range(100)])
        assert looked == [1]


def test_collections_find_the_string_keys_of_each_program_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Program] = []

    def counted(program: Program) -> dict[str, tuple[int, ...]]:
        found.append(program)
        return string_keys(program)

    monkeypatch.setattr("freshviews.engine.commit.collection.string_keys", counted)
    with collecting() as db:
        window(db, 0, 200, 20)
        assert db._collection.ended > 3
        assert found and len(found) == len({id(program) for program in found})
        check(db, 180, 200)
