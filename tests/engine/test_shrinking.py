"""Memory is released after deletes, together with undone batches, open readers, keys, and reopens."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from freshviews import Database
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.errors import BatchError, EvaluationError
from freshviews.kernel.hash import shrink
from freshviews.kernel.hash.entries import LIVE, NEXT_HOMES, PACKED, USED
from freshviews.kernel.hash.entries import NOT_PACKING as WHOLE
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from tests.store.killing import killed_at

pytestmark = pytest.mark.plain_python

ROWS = 240 if PURE_PYTHON else 3000

SCRIPT = """
CREATE TABLE item (id BIGINT NOT NULL, a BIGINT NOT NULL, b BIGINT, PRIMARY KEY (id));
CREATE TABLE other (b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE third (c BIGINT NOT NULL, a BIGINT NOT NULL);
CREATE MATERIALIZED VIEW joined TBLPROPERTIES ('freshviews.strategy' = 'first_order')
  AS SELECT i.id, o.c FROM item i JOIN other o ON i.b = o.b;
CREATE MATERIALIZED VIEW counted AS SELECT a, COUNT(*) AS n, SUM(b) AS s FROM item GROUP BY a;
CREATE MATERIALIZED VIEW crowned TBLPROPERTIES ('freshviews.strategy' = 'crown')
  AS SELECT i.id, o.b, o.c FROM item i JOIN other o ON i.b = o.b;
CREATE MATERIALIZED VIEW turned TBLPROPERTIES ('freshviews.strategy' = 'ivm_eps_linear')
  AS SELECT COUNT(*) AS n FROM item i JOIN other o ON i.b = o.b JOIN third t ON o.c = t.c AND t.a = i.a;
"""

Item = tuple[int, int, int | None]
Seen = dict[str, Counter[tuple[object, ...]]]
Pair = tuple[int, int]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain Python, steps are small, so that versions come between them."""
    if PURE_PYTHON:
        monkeypatch.setattr(shrink, "LEAST", 8)
        monkeypatch.setattr(shrink, "PIECE", 64)
        monkeypatch.setattr(shrink, "SPARE", 8)


class Shop:
    """A database, and plain collections with its expected rows."""

    def __init__(self, db: Database, seed: int) -> None:
        self.db = db
        self.order = random.Random(seed)
        self.items: list[Item] = []
        self.pairs: dict[str, list[Pair]] = {"other": [], "third": []}
        self.next = 0
        self.met: Counter[str] = Counter()

    def fill(self) -> None:
        order = self.order
        new: list[Item] = []
        for _ in range(ROWS):
            b = None if order.random() < 0.1 else order.randrange(ROWS // 4)
            new.append((self.next, order.randrange(ROWS // 10), b))
            self.next += 1
        self.db.insert("item", new)
        self.items += new
        for name, pairs in self.pairs.items():
            more = [(order.randrange(ROWS // 4), order.randrange(ROWS // 10)) for _ in range(ROWS // 2)]
            self.db.insert(name, more)
            pairs += more

    def delete(self, rows: int) -> None:
        """Delete some rows of all tables in one version."""
        order = self.order
        with self.db.batch() as batch:
            for name, held in (("item", self.items), *self.pairs.items()):
                order.shuffle(held)
                gone, held[:] = held[:rows], held[rows:]
                batch.delete(name, gone)

    def delete_one(self) -> None:
        """Delete a row in a version of its own."""
        for name, held in self.pairs.items():
            if held:
                self.db.delete(name, [held.pop()])

    def overflow(self) -> None:
        """A batch that the second view refuses, after the tables and the first view have taken it."""
        a = self.items[0][1] if self.items else 0
        with pytest.raises(EvaluationError), self.db.batch() as batch:
            batch.delete("item", self.items[1 : len(self.items) // 2])
            batch.insert("item", [(self.next + i, a, 2**62) for i in range(3)])

    def refuse(self) -> None:
        """A batch that is undone, because its last delete has no row."""
        with pytest.raises(BatchError), self.db.batch() as batch:
            batch.delete("item", self.items[: len(self.items) // 2])
            batch.insert("item", [(self.next + i, 0, 0) for i in range(10)])
            batch.delete("item", [(-1, 0, 0)])

    def note(self) -> None:
        """Count the states of tables that occur."""
        for table in self.db._relations.tables.values():
            assert table.stored is not None
            for handle in table.stored.handles:
                self._note(handle)
        for view in self.db._relations.views.values():
            for block in view.maintained.blocks:
                for handle in block.state.tables:
                    self._note(handle)

    def _note(self, handle: int) -> None:
        self.met["packing"] += load(handle, PACKED) != WHOLE
        self.met["slots"] += load(handle, NEXT_HOMES) > 0

    def check(self) -> None:
        db = self.db
        by_b: dict[int, list[int]] = {}
        for b, c in self.pairs["other"]:
            by_b.setdefault(b, []).append(c)
        pairs = [(i, b, c) for i, _, b in self.items if b is not None for c in by_b.get(b, ())]
        assert Counter(db.view("joined")) == Counter((i, c) for i, _, c in pairs)
        assert Counter(db.view("crowned")) == Counter(pairs)
        groups: dict[int, list[int | None]] = {}
        for _, a, b in self.items:
            groups.setdefault(a, []).append(b)
        expected = []
        for a, values in groups.items():
            known = [b for b in values if b is not None]
            expected.append((a, len(values), sum(known) if known else None))
        assert sorted(db.view("counted")) == sorted(expected)
        thirds = Counter(self.pairs["third"])
        item_a = {i: a for i, a, _ in self.items}
        assert list(db.view("turned")) == [(sum(thirds[c, item_a[i]] for i, _, c in pairs),)]
        stored = db._relations.tables["item"].stored
        assert stored is not None
        keys = self.order.sample(self.items, min(20, len(self.items)))
        found: CodeBatch = stored.with_keys([np.array([row[0] for row in keys] + [-5], np.int64)])
        assert sorted(zip(found.columns["id"].tolist(), found.columns["a"].tolist(), strict=True)) == sorted(
            row[:2] for row in keys
        )


@pytest.mark.parametrize("seed", range(3))
def test_views_stay_right_while_tables_shrink(seed: int) -> None:
    with Database() as db:
        db.execute(SCRIPT)
        shop = Shop(db, seed)
        for _ in range(2):
            shop.fill()
            while len(shop.items) > ROWS // 20:
                shop.delete(shop.order.choice((1, 5, ROWS // 15)))
                shop.note()
                if shop.order.random() < 0.3:
                    shop.order.choice((shop.refuse, shop.overflow, shop.delete_one))()
                if shop.order.random() < 0.1:
                    shop.check()
            shop.check()
        assert not PURE_PYTHON or (shop.met["packing"] and shop.met["slots"])


def test_a_reader_keeps_its_version_while_tables_shrink() -> None:
    with Database() as db:
        db.execute(SCRIPT)
        shop = Shop(db, 5)
        shop.fill()
        expected = {name: Counter(db.view(name)) for name in ("joined", "crowned", "counted")}
        readers = {name: db.view(name).to_batches(7) for name in expected}
        read: dict[str, Counter[tuple[object, ...]]] = {name: Counter() for name in expected}
        for name, reader in readers.items():
            read[name] += Counter(tuple(row.values()) for row in next(reader).to_pylist())
        while shop.items:
            shop.delete(ROWS // 15)
        for name, reader in readers.items():
            for batch in reader:
                read[name] += Counter(tuple(row.values()) for row in batch.to_pylist())
        assert read == expected
        shop.check()


def test_a_reopened_database_continues_to_pack_half_packed_tables(tmp_path: Path) -> None:
    shop: Shop | None = None
    for turn in range(4):
        with Database(tmp_path / "db") as db:
            if shop is None:
                db.execute(SCRIPT)
                shop = Shop(db, 7)
            shop.db = db
            shop.fill()
            shop.met.clear()
            while len(shop.items) > ROWS // 20 and not shop.met["packing"]:
                shop.delete(1 + ROWS // 60)
                shop.note()
            shop.check()
            assert not PURE_PYTHON or shop.met["packing"]
            if turn % 2 == 0:
                db.snapshot()


def deletes(db: Database, snapshot: bool = False) -> dict[int, Seen]:
    """Delete most rows, with a snapshot between; returns the contents that each version must have."""
    db.execute(SCRIPT)
    shop = Shop(db, 11)
    shop.fill()
    found = {}
    for turn in range(12):
        shop.delete(ROWS // 25)
        if turn == 6 and snapshot:
            db.snapshot()
        found[db.version] = seen(db)
    return found


def seen(db: Database) -> Seen:
    return {name: Counter(db.view(name)) for name in ("joined", "counted", "crowned", "turned")}


@pytest.fixture(scope="module")
def expected() -> dict[int, Seen]:
    with Database() as db:
        return deletes(db)


@pytest.mark.parametrize("step", ["record half written", "record synced", "version visible"])
@pytest.mark.parametrize("time", [7, 11, 14])
def test_committed_versions_survive_a_kill_while_tables_shrink(
    tmp_path: Path, expected: dict[int, Seen], step: str, time: int
) -> None:
    def work() -> None:
        deletes(Database(tmp_path / "db"), snapshot=True)

    assert killed_at(step, time, work)
    with Database(tmp_path / "db") as db:
        assert seen(db) == expected[db.version]
        for name in ("item", "other", "third"):
            db.delete(name, list(db.table(name)))
        assert list(db.view("counted")) == list(db.view("joined")) == []


def test_tables_whose_rows_are_all_deleted_release_nearly_all_memory() -> None:
    with Database() as db:
        db.execute(SCRIPT)
        empty = db.stats()["bytes"]
        shop = Shop(db, 9)
        shop.fill()
        full = db.stats()["bytes"]
        while shop.items:
            shop.delete(ROWS // 100)
        for _ in range(50):
            db.insert("item", [(-1, 0, 0)])
            db.delete("item", [(-1, 0, 0)])
            db.insert("other", [(-1, 0)])
            db.delete("other", [(-1, 0)])
        assert db.stats()["bytes"] - empty < (full - empty) / 3
        stored = db._relations.tables["item"].stored
        assert stored is not None
        for handle in stored.handles:
            assert load(handle, USED) <= 2 * load(handle, LIVE) + shrink.SPARE
