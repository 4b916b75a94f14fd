"""Rows that a running sum selects, through the public API."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freshviews as fv
from freshviews.catalog.definitions import ViewDef
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.words import address
from freshviews.engine.views.maintained import MaintainedView
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.plan.planner import plan_block
from freshviews.program.printer import print_program
from freshviews.program.reference.interpreter import State
from freshviews.types.dictionary import Dictionary
from tests.sql.printed import catalog, views

pytestmark = pytest.mark.compiled(2)

BIDS = "CREATE TABLE bids (number INT PRIMARY KEY, broker INT, volume INT, price INT);"
VWAP = (
    "SELECT SUM(b.price * b.volume) AS vwap FROM bids AS b"
    " WHERE 0.25 * (SELECT SUM(volume) FROM bids) > (SELECT SUM(s.volume) FROM bids AS s WHERE s.price > b.price)"
)
OF_BROKERS = (
    "SELECT b.number, b.price FROM bids AS b WHERE (SELECT SUM(s.volume) FROM bids AS s"
    " WHERE s.broker = b.broker AND s.price <= b.price) <= 0.5 * (SELECT SUM(o.volume) FROM bids AS o"
    " WHERE o.broker = b.broker)"
)
SCRIPT = f"{BIDS} CREATE MATERIALIZED VIEW vwap AS {VWAP}; CREATE MATERIALIZED VIEW low AS {OF_BROKERS};"
EVENTS = 60 if PURE_PYTHON else 1_000
Bid = tuple[int, int, int, int]


def vwap(bids: Counter[Bid]) -> list[tuple[Any, ...]]:
    total, found = sum(v for _, _, v, _ in bids), []
    for _, _, volume, price in bids:
        above = [v for _, _, v, p in bids if p > price]
        if above and sum(above) * 4 < total:
            found.append(price * volume)
    return [(sum(found) if found else None,)]


def low(bids: Counter[Bid]) -> list[tuple[Any, ...]]:
    found = []
    for number, broker, _, price in bids:
        own = [(v, p) for _, b, v, p in bids if b == broker]
        if 2 * sum(v for v, p in own if p <= price) <= sum(v for v, _ in own):
            found.append((number, price))
    return sorted(found)


def events(seed: int, count: int) -> list[tuple[Bid, int]]:
    """Inserts and deletes of bids, some with volumes below zero."""
    draw, held, made = random.Random(seed), [], []
    for number in range(count):
        if held and draw.random() < 0.4:
            made.append((held.pop(draw.randrange(len(held))), -1))
        else:
            held.append((number, draw.randrange(3), draw.randrange(-3, 20), draw.randrange(12)))
            made.append((held[-1], 1))
    return made


def apply(db: fv.Database, bids: Counter[Bid], batch: list[tuple[Bid, int]]) -> None:
    db.apply("bids", [(*bid, m) for bid, m in batch])
    for bid, m in batch:
        bids[bid] += m
        if not bids[bid]:
            del bids[bid]


@pytest.mark.long("the first of the file compiles both views: a minute and more with others running")
@pytest.mark.parametrize("size", [1, 7])
def test_rows_and_changes_of_a_threshold_selection_agree_with_its_definition(size: int) -> None:
    bids, told = Counter[Bid](), Counter[tuple[Any, ...]]()
    db = fv.Database()
    db.execute(SCRIPT)
    db.view("low").subscribe(lambda change: told.update(dict(change)))
    stream = events(size, EVENTS)
    for at in range(0, len(stream), size):
        apply(db, bids, stream[at : at + size])
        if at % 20 < size:
            assert list(db.view("vwap")) == vwap(bids)
            assert sorted(db.view("low")) == low(bids)
    assert sorted(row for row, m in told.items() for _ in range(m)) == low(bids)
    apply(db, bids, [(bid, -1) for bid in bids])
    assert list(db.view("vwap")) == [(None,)]
    assert list(db.view("low")) == []


def test_a_threshold_selection_survives_a_reopen_and_a_backfill(tmp_path: Path) -> None:
    bids, stream = Counter[Bid](), events(3, EVENTS)
    half = len(stream) // 2
    with fv.Database(tmp_path) as db:
        db.execute(BIDS)
        apply(db, bids, stream[: half // 2])
        db.execute(SCRIPT.removeprefix(BIDS))
        apply(db, bids, stream[half // 2 : half])
        db.snapshot()
        assert sorted(db.view("low")) == low(bids)
    with fv.Database(tmp_path) as db:
        assert list(db.view("vwap")) == vwap(bids)
        for event in stream[half : half + 20]:
            apply(db, bids, [event])
        assert sorted(db.view("low")) == low(bids)
        db.replan("low")
        db.execute("ALTER VIEW low SET TBLPROPERTIES ('freshviews.strategy' = 'first_order')")
        apply(db, bids, stream[half + 20 :])
        assert sorted(db.view("low")) == low(bids)
        assert list(db.view("vwap")) == vwap(bids)


def test_a_threshold_selection_is_maintained_after_a_restore(tmp_path: Path) -> None:
    db, bids = fv.Database(), Counter[Bid]()
    db.execute(SCRIPT)
    apply(db, bids, events(4, EVENTS))
    (state,) = [v for v in db._relations.views.values() if "threshold" in v.maintained.strategies and "low" in v.name]
    definition = state.definition
    assert isinstance(definition, ViewDef)
    inputs = {name: db._relations.get(name).definition for name in definition.inputs}  # type: ignore[union-attr]
    state.maintained.write_image(tmp_path / "image")
    again = MaintainedView(definition, inputs, state.decoder.dictionary)
    again.prepare()
    again.read_image(tmp_path / "image")
    try:
        assert again.rows == state.maintained.rows == len(low(bids))
        batch = db.table("bids")._state.encoder.encode([(10**6 + i, 1, 5, i) for i in range(5)], 1).batch
        for one in (again, state.maintained):
            assert one.apply(batch) is None
        contents = [sorted(map(str, (b.columns for b in one.contents(100)))) for one in (again, state.maintained)]
        assert contents[0] == contents[1]
    finally:
        again.close()


def test_a_refused_batch_leaves_a_threshold_selection_unchanged() -> None:
    db, bids = fv.Database(), Counter[Bid]()
    db.execute(SCRIPT + "CREATE MATERIALIZED VIEW shares AS SELECT 100 / volume AS share FROM bids WHERE volume > -9;")
    apply(db, bids, [bid for bid in events(5, EVENTS) if bid[0][2] != 0])
    before = list(db.view("vwap")), sorted(db.view("low"))
    assert before == (vwap(bids), low(bids))
    for volume in (0, 1):
        rows = [(10**6, 1, 10**9, 3), (10**6 + volume, 1, 0, 3)]
        with pytest.raises(fv.BatchError):
            db.insert("bids", rows)
        assert (list(db.view("vwap")), sorted(db.view("low"))) == before
    apply(db, bids, [((10**6, 2, 7, 3), 1)])
    assert sorted(db.view("low")) == low(bids)


def test_a_batch_with_an_overflowing_sum_is_undone() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (x INT, y BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT x FROM t AS a WHERE (SELECT SUM(y) FROM t AS b WHERE b.x < a.x) < 5;"
    )
    db.insert("t", [(1, 2), (2, 2), (3, 2), (4, 2)])
    assert sorted(db.view("v")) == [(2,), (3,)]
    with pytest.raises(fv.EvaluationError, match="does not fit 64 bits"):
        db.insert("t", [(1, 2**62), (2, 2**62)])
    assert sorted(db.view("v")) == [(2,), (3,)]
    db.insert("t", [(1, 2**62), (2, -(2**62))])
    assert sorted(db.view("v")) == [(3,)]


def test_a_threshold_selection_follows_a_window() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (x INT, y INT) TBLPROPERTIES ('freshviews.window' = '4 rows');"
        "CREATE MATERIALIZED VIEW v AS SELECT x, y FROM t AS a"
        " WHERE (SELECT COUNT(*) FROM t AS b WHERE b.y > a.y) < 2;"
    )
    for i in range(9):
        db.insert("t", [(i, (i * 5) % 9)])
        kept = [(j, (j * 5) % 9) for j in range(max(0, i - 3), i + 1)]
        assert sorted(db.view("v")) == sorted(sorted(kept, key=lambda row: -row[1])[:2])


def test_explain_shows_a_threshold_selection_and_its_bound() -> None:
    db = fv.Database()
    db.execute(SCRIPT)
    texts = [v.maintained.explain() for v in db._relations.views.values() if "threshold" in v.maintained.strategies]
    assert "bids b(volume, price) * [sum of bids weights(price) before price desc nulls first < limit of" in texts[0]
    assert "update    O(log N), and again O(log N) for each row that enters or leaves the selection" in texts[0]
    assert "[sum of bids weights(broker, price) through price <= limit of" in texts[1]


def test_unsupported_threshold_conditions_use_another_strategy() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (x INT, y DOUBLE, z INT);"
        "CREATE MATERIALIZED VIEW a AS SELECT x FROM t AS a WHERE (SELECT SUM(y) FROM t AS b WHERE b.x < a.x) < 5;"
        "CREATE MATERIALIZED VIEW b AS SELECT x FROM t AS a WHERE (SELECT SUM(z) FROM t AS b WHERE b.x < a.x) < z;"
        "CREATE MATERIALIZED VIEW c AS SELECT x FROM t AS a WHERE (SELECT SUM(z) FROM t AS b WHERE b.x < a.x + a.z) < 2"
        " OR x = 0;"
    )
    assert not any("threshold" in view.maintained.strategies for view in db._relations.views.values())
    db.insert("t", [(0, 1.0, 1), (1, 3.0, 2), (2, 2.0, 3), (3, 1.0, 9)])
    assert sorted(db.view("a")) == [(1,), (2,)]
    assert sorted(db.view("b")) == [(1,), (3,)]
    assert sorted(db.view("c")) == [(0,)]


def selection() -> tuple[ViewDef, Any]:
    """The view of the selection of VWAP, and its plan."""
    known = catalog(BIDS)
    made = views(VWAP, known)
    inputs: dict[str, Any] = {**known.tables, **{one.name: one for one in made}}
    found = next(one for one in made if one.blocks[0].selection is not None)
    return found, plan_block(found, found.blocks[0], inputs)


def test_the_program_of_vwap_equals_its_golden_file(golden: Callable[[str, str], None]) -> None:
    golden("programs/vwap.threshold.txt", print_program(selection()[1].program))


def test_steps_of_an_update_grow_with_the_moved_rows() -> None:
    """Counted by the interpreter and, without lookups of missing rows, by the generated code."""
    view, plan = selection()
    limits = plan.program.triggers[-1].relation
    state = State(plan.program)
    block = view.blocks[0]
    engine = BlockState(plan.program, compile_block(plan.program, block, (), (), None, True), 3, Dictionary())
    rows = 300

    def update(relation: str, row: dict[str, int], m: int) -> int:
        before = state.steps, int(engine.status[STATUS_STEPS])
        state.apply(relation, [(row, m)])
        words = {name: np.array([value], np.int64) for name, value in row.items()}
        sign = np.array([m], np.int64)
        engine.run(relation, {name: (address(one), 1) for name, one in words.items()}, (address(sign), 1), 1)
        engine.settle()
        taken = state.steps - before[0], int(engine.status[STATUS_STEPS]) - before[1]
        assert taken[1] <= 3 + 2 * taken[0]
        return taken[0]

    def move(limit: int) -> int:
        """The steps of a new limit."""
        taken = update(limits, {"limit": limit}, 1)
        taken += update(limits, {"limit": limit_now[0]}, -1) if limit_now else 0
        limit_now[:] = [limit]
        return taken

    def selected() -> int:
        return sum(count for (count,) in state.output().values())

    limit_now: list[int] = []
    for price in range(rows):
        update("bids", {"price": price, "volume": 1}, 1)
    assert selected() == 0
    assert move(101) >= 100
    # From 1 to 100 bids are above the selected ones.
    assert selected() == 100
    assert update("bids", {"price": 5, "volume": 7}, 1) <= 20
    assert update("bids", {"price": rows, "volume": 0}, 1) <= 20
    assert selected() == 101
    assert update("bids", {"price": rows, "volume": 4}, 1) <= 20 + 3 * 4
    assert selected() == 97
