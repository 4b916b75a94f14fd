"""ORDER BY ... LIMIT in views, through the public API."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.catalog.definitions import ViewDef
from freshviews.engine.views.maintained import MaintainedView
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.plan.planner import may_be_negative
from freshviews.types import Dictionary

pytestmark = pytest.mark.compiled(3)

TABLE = "CREATE TABLE t (x INT, y STRING);"
BEST = "CREATE MATERIALIZED VIEW best AS SELECT y, x FROM t ORDER BY x DESC LIMIT 10 OFFSET 2;"
ROWS = 60 if PURE_PYTHON else 3_000
Row = tuple[Any, ...]


def first(rows: Counter[Row]) -> Counter[Row]:
    """The rows of BEST: by x, then y, then x."""
    copies = [row for row, m in rows.items() for _ in range(m)]
    copies.sort(key=lambda row: (row[0] is not None, row[0] or 0))
    copies.sort(key=lambda row: (-(row[0] or 0) if row[0] is not None else 10**9, row[1].encode()))
    return Counter((y, x) for x, y in copies[2:12])


def test_changes_add_up_to_the_first_rows() -> None:
    order, held, told = random.Random(3), Counter[Row](), Counter[Row]()
    db = fv.Database()
    db.execute(TABLE + BEST)
    sizes = []

    def add(change: fv.Change) -> None:
        told.update(dict(change))
        sizes.append(len(list(change)))

    db.view("best").subscribe(add)
    for _ in range(ROWS):
        row = (order.choice((None, *range(40))), f"{order.randrange(3)}")
        if held[row] and order.random() < 0.6:
            db.delete("t", [row])
            held[row] -= 1
        else:
            db.insert("t", [row])
            held[row] += 1
    expected = first(held)
    assert Counter(db.view("best")) == expected
    assert {row: m for row, m in told.items() if m} == expected
    # At each of the two ends one row enters or leaves.
    assert max(sizes) <= 4


def test_first_rows_are_right_after_a_backfill_and_a_restart(tmp_path: Path) -> None:
    order = random.Random(4)
    rows = [(order.randrange(200), f"{i % 7}") for i in range(ROWS)]
    with fv.Database(tmp_path) as db:
        db.execute(TABLE)
        db.insert("t", rows)
        db.execute(BEST)
        assert Counter(db.view("best")) == first(Counter(rows))
    with fv.Database(tmp_path) as db:
        assert Counter(db.view("best")) == first(Counter(rows))
        db.delete("t", rows[: ROWS // 2])
        assert Counter(db.view("best")) == first(Counter(rows[ROWS // 2 :]))


def test_first_rows_are_maintained_after_a_restore(tmp_path: Path) -> None:
    db = fv.Database()
    db.execute(TABLE + BEST)
    definition = db.view("best").state.definition
    assert isinstance(definition, ViewDef)
    rows = Counter((x % 50, f"{x % 3}") for x in range(200))
    db.insert("t", list(rows.elements()))
    state = db.view("best").state
    state.maintained.write_image(tmp_path / "best")
    inputs = {"t": db.table("t")._state.definition}
    again = MaintainedView(definition, inputs, state.decoder.dictionary)
    again.prepare()
    again.read_image(tmp_path / "best")
    assert isinstance(state.decoder.dictionary, Dictionary)
    assert again.rows == 10
    batch = db.table("t")._state.encoder.encode([(60, "9"), (49, "0")], 1).batch
    again.apply(batch)
    db.insert("t", [(60, "9"), (49, "0")])
    found = [c for b in again.contents(100) for c in zip(*(v.tolist() for v in b.columns.values()), strict=True)]
    there = [c for b in state.batches(100) for c in zip(*(v.tolist() for v in b.columns.values()), strict=True)]
    assert sorted(found) == sorted(there)
    again.close()


def test_a_refused_batch_leaves_the_first_rows_unchanged() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (x INT PRIMARY KEY, y INT);"
        "CREATE MATERIALIZED VIEW best AS SELECT x, y FROM t ORDER BY 100 / y DESC LIMIT 2;"
    )
    db.insert("t", [(1, 5), (2, 4), (3, 3)])
    before = sorted(db.view("best"))
    assert before == [(2, 4), (3, 3)]
    for rows in ([(4, 1), (5, 0)], [(6, 1), (1, 1)]):
        with pytest.raises(fv.BatchError):
            db.insert("t", rows)
        assert sorted(db.view("best")) == before
    db.delete("t", [(3, 3)])
    assert sorted(db.view("best")) == [(1, 5), (2, 4)]


def test_a_view_may_be_ordered_by_a_constant_and_limited_to_0_rows() -> None:
    db = fv.Database()
    db.execute(
        TABLE + "CREATE MATERIALIZED VIEW ones AS SELECT 'a' AS a, 1 AS one FROM t ORDER BY one LIMIT 2 OFFSET 1;"
        "CREATE MATERIALIZED VIEW none AS SELECT x FROM t ORDER BY x LIMIT 0;"
        "CREATE MATERIALIZED VIEW mixed AS SELECT 1 AS one, y FROM t ORDER BY 'b', one, length(y) DESC LIMIT 1;"
    )
    assert list(db.view("ones")) == list(db.view("none")) == list(db.view("mixed")) == []
    db.insert("t", [(1, "a"), (2, "bb"), (3, "c"), (4, "d")])
    assert list(db.view("ones")) == [("a", 1), ("a", 1)]
    assert list(db.view("none")) == []
    assert list(db.view("mixed")) == [(1, "bb")]
    db.delete("t", [(2, "bb"), (3, "c"), (4, "d")])
    assert list(db.view("ones")) == list(db.view("none")) == []
    assert list(db.view("mixed")) == [(1, "a")]


def test_the_strategy_property_applies_below_a_limit() -> None:
    db = fv.Database()
    join = "SELECT a.x, b.y FROM t a JOIN t b ON a.y = b.y ORDER BY a.x LIMIT 3"
    db.execute(
        TABLE + f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'change_propagation') AS {join}"
    )
    assert "strategy  top_k: " in db.view("v").explain()
    assert "ordered by x, y" in db.view("v").explain()
    assert "reads v#1" in db.view("v").explain()
    held = db._relations.views["v#1"].maintained.explain()
    assert "strategy  change_propagation: named by the user" in held
    with pytest.raises(fv.UnsupportedSql, match="which has a LIMIT"):
        db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.strategy' = 'first_order')")
    db.execute("ALTER VIEW v SET TBLPROPERTIES ('owner' = 'me')")
    db.insert("t", [(1, "a"), (2, "a")])
    assert sorted(db.view("v")) == [(1, "a"), (1, "a"), (2, "a")]
    db.execute("DROP MATERIALIZED VIEW v")
    assert not db.views


def test_the_strategy_property_applies_below_nested_limits() -> None:
    nested = "SELECT x FROM (SELECT a.x FROM t a JOIN t b ON a.y = b.y ORDER BY x LIMIT 3) AS q ORDER BY x DESC LIMIT 2"
    create = TABLE + "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{}') AS " + nested
    db = fv.Database()
    with pytest.raises(fv.PlanError, match="there is no strategy 'fast'"):
        db.execute(create.format("fast"))
    db.execute(create.format("change_propagation"))
    assert "strategy  change_propagation: named by the user" in db._relations.views["v#1"].maintained.explain()
    db.insert("t", [(1, "a"), (2, "b"), (3, "c"), (4, "d")])
    assert sorted(db.view("v")) == [(2,), (3,)]


def test_a_named_strategy_stores_an_ordered_subquery_only_once() -> None:
    """The strategy is for the rows of the view, which has no LIMIT itself."""
    joined = "SELECT q.y FROM t JOIN (SELECT x, y FROM t ORDER BY x LIMIT 5) AS q USING (x)"
    create = f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'first_order') AS {joined}"
    with fv.Database() as db:
        db.execute(TABLE + create)
        assert list(db._relations.views) == ["v#1", "v"]
        assert "strategy  top_k" in db._relations.views["v#1"].maintained.explain()
        assert "strategy  first_order: named by the user" in db.view("v").explain()


def test_first_rows_never_have_negative_multiplicities() -> None:
    """So their readers need not handle negative counts, as with rows of a trusted table."""
    trusted = TABLE.replace(";", " TBLPROPERTIES ('freshviews.trusted' = 'true');")
    with fv.Database() as db:
        db.execute(trusted + BEST + "CREATE MATERIALIZED VIEW pairs AS SELECT x, y FROM t;")
        db.apply("t", [(i, "a", 1 if i % 2 else -1) for i in range(30)])
        assert min(m for _, m in Counter(db.view("best")).items()) > 0
        assert not may_be_negative(db._relations.views["best"].definition)
        assert may_be_negative(db._relations.views["pairs"].definition)
        db.execute("CREATE MATERIALIZED VIEW p AS SELECT DISTINCT a.y, b.x FROM best AS a JOIN best AS b ON a.x = b.x;")
        assert "multiplicities may be negative" not in db.view("p").explain()
        assert sorted(db.view("p")) == sorted({(row[0], row[1]) for row in db.view("best")})
