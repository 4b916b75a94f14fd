"""The first rows of each group, numbers and ranks: the cost of an update, and the stored columns."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

import freshviews as fv
from freshviews.catalog.definitions import ViewDef
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.words import address
from freshviews.plan.planner import plan_block
from freshviews.types.dictionary import Dictionary
from tests.sql.printed import catalog, views

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(2)]

TABLE = "CREATE TABLE t (g INT NOT NULL, x INT NOT NULL, id INT NOT NULL);"
NUMBER = "ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC, id)"
FIRST = f"SELECT g, id FROM (SELECT *, {NUMBER} AS n FROM t) AS q WHERE n <= 3"
SHOWN = f"SELECT g, id, n FROM (SELECT *, {NUMBER} AS n FROM t) AS q WHERE n <= 3"
RANKED = "SELECT g, id FROM t QUALIFY RANK() OVER (PARTITION BY g ORDER BY x DESC) <= 3"
APPENDED = "SELECT id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x, id) AS n FROM t"


def made(query: str) -> tuple[ViewDef, ...]:
    return views(query, catalog(TABLE))


def steps(query: str, rows: int) -> list[int]:
    """The steps of updates of a group of this size, counted by generated code: a first row is inserted, then
    deleted."""
    view = made(query)[0]
    block = view.blocks[0]
    table = catalog(TABLE).table("t")
    assert table is not None
    plan = plan_block(view, block, {"t": table})
    state = BlockState(plan.program, compile_block(plan.program, block, (), (), None, True), 3, Dictionary())

    def update(x: int, m: int) -> int:
        before = int(state.status[STATUS_STEPS])
        words = {name: np.array([value], np.int64) for name, value in (("g", 1), ("x", x), ("id", x))}
        sign = np.array([m], np.int64)
        state.run("t", {name: (address(one), 1) for name, one in words.items()}, (address(sign), 1), 1)
        if state.compiled.end_version is not None:
            state.settle()
        return int(state.status[STATUS_STEPS]) - before

    for x in random.Random(rows).sample(range(rows), rows):
        update(x, 1)
    return [update(x, 1) for x in range(rows, rows + 5)] + [update(x, -1) for x in range(rows, rows + 5)]


@pytest.mark.parametrize(("query", "most"), [(FIRST, 8), (SHOWN, 16), (RANKED, 16)])
def test_steps_of_an_update_do_not_grow_with_the_group(query: str, most: int) -> None:
    assert max(steps(query, 20)) == max(steps(query, 400)) <= most


def test_rows_appended_at_the_end_change_no_other_row_number() -> None:
    assert max(steps(APPENDED, 400)[:5]) <= 6


def test_a_row_number_that_is_only_compared_is_not_stored() -> None:
    (first, _), (shown, _) = made(FIRST), made(SHOWN)
    assert first.blocks[0].limit is not None and not first.blocks[0].limit.number
    assert shown.blocks[0].limit is not None and shown.blocks[0].limit.number
    assert first.blocks[0].limit.limit == shown.blocks[0].limit.limit == 3


@pytest.mark.parametrize(
    ("test", "places"),
    [
        ("n = 1", (0, 1)),
        ("n = 2", (1, 1)),
        ("n < 4", (0, 3)),
        ("3 >= n", (0, 3)),
        ("n BETWEEN 2 AND 4", (1, 3)),
        ("n > 1 AND n <= 5 AND n <= 9", (1, 4)),
        ("n <= 0", (0, 0)),
        ("n > 5 AND n < 3", (5, 0)),
    ],
)
def test_a_condition_on_a_row_number_becomes_an_offset_and_a_limit(test: str, places: tuple[int, int]) -> None:
    limit = made(FIRST.replace("n <= 3", test))[0].blocks[0].limit
    assert limit is not None and (limit.offset, limit.limit) == places


def test_only_selected_rows_with_row_numbers_are_stored() -> None:
    numbered = f"WITH w AS (SELECT *, {NUMBER} AS n FROM t)"
    found = made(f"{numbered} SELECT a.id, b.id AS c FROM w a JOIN w b ON a.g = b.g WHERE a.n <= 2 AND b.n = 4")
    limits = [one.blocks[0].limit for one in found[:-1]]
    assert [(one.offset, one.limit, one.number) for one in limits if one is not None] == [(0, 2, ""), (3, 1, "")]


def test_first_rows_of_groups_are_right_with_equal_rows() -> None:
    order, held = random.Random(8), Counter[tuple[int, int, int]]()
    changed = Counter[tuple[int, ...]]()
    with fv.Database() as db:
        db.execute(f"{TABLE} CREATE MATERIALIZED VIEW v AS {SHOWN}; CREATE MATERIALIZED VIEW w AS {FIRST};")
        db.view("v").subscribe(lambda change: changed.update(dict(change)))
        for _ in range(60):
            with db.batch() as batch:
                for _ in range(order.randrange(1, 6)):
                    row = (order.randrange(2), order.randrange(4), order.randrange(2))
                    if held[row] and order.random() < 0.5:
                        batch.delete("t", [row])
                        held[row] -= 1
                    else:
                        batch.insert("t", [row])
                        held[row] += 1
            expected = []
            for group in range(2):
                copies = sorted((row for row in held.elements() if row[0] == group), key=lambda row: (-row[1], row[2]))
                expected += [(row[0], row[2], n) for n, row in enumerate(copies[:3], 1)]
            assert sorted(db.view("v")) == sorted(expected)
            assert sorted(db.view("w")) == sorted((g, id_) for g, id_, _ in expected)
            assert Counter(expected) == Counter({row: m for row, m in changed.items() if m})
