"""A variable that a head does not name is searched only until its first match, if only presence matters."""

from __future__ import annotations

import numpy as np
import pytest

import freshviews as fv
from freshviews.catalog.definitions import ViewDef
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import address_of
from freshviews.plan.naming import RESULT
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.program.results import Held
from freshviews.query.block import Block
from freshviews.types import Dictionary

pytestmark = pytest.mark.compiled(3)

TABLES = "CREATE TABLE r (a INT NOT NULL, b INT NOT NULL); CREATE TABLE s (b INT NOT NULL, c INT NOT NULL);"
BODY = "r(a, b), s(b, c), s(c, d)"
HEADS = 10


def blocks_of(rules: str) -> list[tuple[Block, Program]]:
    """The blocks of the last head, under ``trie_join``."""
    with fv.Database() as db:
        db.execute(TABLES)
        db.rule(rules, {"freshviews.strategy": "trie_join"})
        *_, view = (one for name, one in db._relations.views.items() if "#" not in name)
        assert isinstance(view.definition, ViewDef)
        return [(b, p.program) for b, p in zip(view.definition.blocks, view.maintained.plans, strict=True)]


def rows_of(relation: str, fan_out: int) -> list[tuple[int, ...]]:
    """Each of a few heads is followed by every node, and so is every node."""
    if relation in ("r", "s"):
        return [(a, b) for a in range(HEADS if relation == "r" else fan_out) for b in range(fan_out)]
    return [(a,) for a in range(HEADS)]


def columns_of(relation: str) -> tuple[str, ...]:
    return {"r": ("a", "b"), "s": ("b", "c")}.get(relation, ("a",))


def interpreted(program: Program, fan_out: int) -> int:
    state = State(program)
    for relation in {trigger.relation for trigger in program.triggers}:
        columns = columns_of(relation)
        state.apply(relation, [(dict(zip(columns, row, strict=True)), 1) for row in rows_of(relation, fan_out)])
    assert set(state.output()) == {(a,) for a in range(HEADS)}
    state.steps = 0
    state.evaluate()
    return state.steps


@pytest.mark.parametrize(
    "rules",
    [
        f"has(a) <- {BODY}.",
        f"has(a) <- {BODY}. again(a) <- has(a), {BODY}.",
        f"either(a) <- {BODY}. either(a) <- {BODY}, b > 0.",
        f"lacks(a) <- {BODY}, !s(a, 99).",
        f"once(a) <- {BODY}. number(n) <- agg<<n = count()>> once(a).",
    ],
    ids=["a join", "a join with a head", "several bodies", "a negated atom", "what an aggregate is over"],
)
def test_a_search_for_an_unnamed_variable_ends_early(rules: str) -> None:
    found = blocks_of(rules.split(" number")[0])
    assert all(isinstance(program.result, Held) and program.result.presence for _, program in found)
    _, program = found[0]
    # As many rows are joined for each head as the cube of the fan-out.
    assert interpreted(program, 4) == interpreted(program, 12) <= 8 * HEADS


def test_a_count_visits_every_match() -> None:
    with fv.Database() as db:
        db.execute(
            TABLES + "CREATE MATERIALIZED VIEW n TBLPROPERTIES ('freshviews.strategy' = 'trie_join') AS"
            " SELECT r.a, COUNT(*) AS n FROM r JOIN s USING (b) JOIN s AS t ON s.c = t.b GROUP BY r.a"
        )
        (plan,) = db.view("n").state.maintained.plans
    assert plan.program.result == Held(RESULT) and interpreted(plan.program, 12) > 2 * interpreted(plan.program, 4)


def test_compiled_code_ends_a_search_at_the_first_match() -> None:
    ((block, program),) = blocks_of(f"has(a) <- {BODY}.")
    steps = []
    for fan_out in (4, 12):
        compiled = compile_block(program, block, (), (), None, counted=True)
        state = BlockState(program, compiled, 2, Dictionary())
        for relation in ("r", "s"):
            table = np.array(rows_of(relation, fan_out), np.int64)
            columns = [np.ascontiguousarray(table[:, i]) for i in range(2)]
            ones = np.ones(len(table), np.int64)
            places = dict(zip(columns_of(relation), map(address_of, columns), strict=True))
            state.run(relation, places, address_of(ones), len(table))
        state.status[STATUS_STEPS] = 0
        state.evaluate()
        assert sum(len(rows) for rows in state.rows(100)) == HEADS
        steps.append(int(state.status[STATUS_STEPS]))
        state.close()
    # Steps are moves of cursors; every trie may need one more to reach its position.
    assert steps[1] <= steps[0] + HEADS
