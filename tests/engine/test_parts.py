"""A new kind of part of a program is one line, and runs wherever programs run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from freshviews import Database
from freshviews.engine.blocks import parts
from freshviews.engine.blocks.parts.part import Owner, Part

pytestmark = pytest.mark.plain_python

SCRIPT = """CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE MATERIALIZED VIEW joined AS SELECT a, c FROM r JOIN s USING (b);
CREATE MATERIALIZED VIEW groups AS SELECT a, COUNT(*) AS n FROM r GROUP BY a"""

TRACED = SCRIPT.replace("joined AS", "joined TBLPROPERTIES ('freshviews.strategy' = 'incremental_trie_join') AS")


class Counter(Part):
    """A part that counts the rows and versions of a program."""

    def __init__(self, made: list[Counter], owner: Owner) -> None:
        self.rows = self.versions = 0
        self.closed = False
        self.views = sorted(owner.handles())
        made.append(self)

    def after(self, owner: Owner, n: int) -> None:
        assert sorted(owner.handles()) == self.views
        self.rows += n

    def end_version(self, owner: Owner) -> None:
        self.versions += 1

    def clear(self) -> None:
        self.rows = 0

    def close(self) -> None:
        self.closed = True

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        return {"counter": (1, 8 * self.rows)}

    def described(self, owner: Owner) -> list[str]:
        return [f"counted: {self.rows} rows for {owner.program.strategy}"]

    def image(self) -> dict[str, Any]:
        return {"counted": self.rows}

    def restore(self, owner: Owner, image: Mapping[str, Any]) -> None:
        self.rows = image.get("counted", -1)


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> list[Counter]:
    """The counters of the programs of joins, in the order in which they were made."""
    made: list[Counter] = []

    def counter_of(owner: Owner) -> Part | None:
        return Counter(made, owner) if len(owner.program.triggers) > 1 else None

    monkeypatch.setattr(parts, "KINDS", [*parts.KINDS, counter_of])
    return made


def parts_of(db: Database, view: str) -> list[str]:
    (block,) = db._relations.views[view].maintained.blocks
    return [type(part).__name__ for part in block.state.parts]


def test_parts_are_called_after_each_batch(counters: list[Counter]) -> None:
    db = Database()
    db.execute(SCRIPT)
    (counter,) = counters
    assert parts_of(db, "joined") == ["Counter"] and parts_of(db, "groups") == []
    assert counter.views
    db.insert("r", [(1, 1)])  # The direct way.
    db.insert("s", [(i % 2, i) for i in range(30)])  # The general way.
    assert counter.rows == 31
    db.delete("s", [(0, 0), (1, 1)])
    assert counter.rows == 33
    assert db._relations.views["joined"].maintained.sizes()["counter"] == (1, 8 * 33)
    assert "\n\ncounted: 33 rows for " in db.view("joined").explain()
    db._relations.views["joined"].maintained.clear()
    assert counter.rows == 0 and not counter.closed
    db.close()
    assert counter.closed


def test_parts_of_a_traced_join_are_called_in_order_after_each_version(counters: list[Counter]) -> None:
    with Database() as db:
        db.execute(TRACED)
        assert parts_of(db, "joined") == ["Tracing", "Counter"]
        (counter,) = counters
        before = counter.versions
        with db.batch() as batch:
            batch.insert("r", [(1, 1)])
            batch.insert("s", [(1, 2), (1, 3)])
        assert counter.rows == 3 and counter.versions == before + 1
        assert sorted(db.view("joined")) == [(1, 2), (1, 3)]


@pytest.mark.parametrize("known", [True, False])
def test_an_image_stores_the_parts_of_a_view(
    known: bool, counters: list[Counter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not known:
        monkeypatch.setattr(Counter, "image", Part.image)
    with Database(tmp_path) as db:
        db.execute(SCRIPT)
        db.insert("r", [(i, 1) for i in range(40)])
        db.snapshot()
    with Database(tmp_path) as db:
        assert counters[-1].rows == (40 if known else -1) and len(counters) > 1
        db.insert("s", [(1, 7)])
        assert len(list(db.view("joined"))) == 40
