"""Lanes of triggers: run over a batch in any order, they have the effect of the whole trigger, and cost little more."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.costs import lanes
from freshviews.plan.costs.degrees import Assumed
from freshviews.plan.costs.lanes import MOST_LANES, lanes_of
from freshviews.program.printer import print_trigger
from freshviews.program.program import Program, Trigger
from freshviews.program.reference.balances import Balances
from freshviews.program.reference.interpreter import State
from freshviews.program.structure import uses, visit
from freshviews.query.query import Query
from tests.plan.streams import Stream, relations_of
from tests.plan.test_strategies import on_grid, planned
from tests.query.notation import query
from tests.query.random_queries import queries

STAR = "Q(x, y, z) = F(a, b, c), A(a, x), B(b, y), C(c, z)"


def divided(program: Program, number: int) -> tuple[Trigger, ...]:
    """The lanes of a trigger that has several."""
    found = lanes_of(program, number, Assumed(program, {}))
    return () if found is None or len(found.lanes) == 1 else tuple(lane.trigger for lane in found.lanes)


def in_lanes(program: Program, seed: int) -> Program | None:
    """The program with each trigger replaced by its lanes in a random order; None if no trigger has lanes."""
    random, triggers = Random(seed), []
    for number, trigger in enumerate(program.triggers):
        found = list(divided(program, number)) or [trigger]
        random.shuffle(found)
        triggers += found
    return None if len(triggers) == len(program.triggers) else replace(program, triggers=tuple(triggers))


def changes_less(balances: Balances, n: int) -> bool:
    """Whether any ``n`` updates leave the stores within the bounds of a major rebalancing."""
    return balances.balancing is None or (balances.low <= balances.size - n and balances.size + n < balances.base)


def check(program: Program, made: Query, seed: int) -> bool:
    """Check all views and all changes against the whole triggers, after every batch. Returns whether there are
    lanes."""
    other = in_lanes(program, seed)
    if other is None:
        return False
    states = [State(program), State(other)]
    for batch in Stream(relations_of(made), seed).batches(5 * len(relations_of(made)), size=6):
        rows = list(batch.rows())
        # A batch that may cause a major rebalancing does not run in lanes.
        states[1].program = other if changes_less(states[0].balances, len(rows)) else program
        for state in states:
            state.apply(batch.relation, rows)
        assert states[0].views == states[1].views
        assert states[0].output() == states[1].output()
        assert states[0].change() == states[1].change()
    return True


@pytest.mark.sample(5)
@on_grid
def test_lanes_have_the_same_effect_as_the_whole_trigger(strategy: object, query: Query) -> None:
    program = planned(strategy, query)  # type: ignore[arg-type]
    for seed in range(2):
        check(program, query, seed)


@pytest.mark.parametrize("name", ("view_tree", "higher_order", "change_propagation", "first_order"))
def test_triggers_of_a_star_have_lanes(name: str) -> None:
    made = query(STAR)
    for seed in range(5):
        assert check(STRATEGIES[name].of_query(made), made, seed)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ("crown", "view_tree", "higher_order", "change_propagation", "first_order"))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=queries(conditions=True), seed=st.integers(0, 2**16))
def test_lanes_of_random_queries_have_the_same_effect_as_the_whole_trigger(name: str, made: Query, seed: int) -> None:
    try:
        program = STRATEGIES[name].of_query(made)
    except PlanError:
        return
    check(program, made, seed)


@pytest.mark.sample(5)
@on_grid
def test_no_lane_uses_a_view_that_another_lane_changes(
    strategy: object, query: Query
) -> None:
    program = planned(strategy, query)  # type: ignore[arg-type]
    for number in range(len(program.triggers)):
        found = divided(program, number)
        assert len(found) <= MOST_LANES and len(found) != 1
        for one, other in combinations(found, 2):
            for writer, reader in ((one, other), (other, one)):
                changed = {view for s in visit(writer.body) for view in uses(s).changes}
                used = {view for s in visit(reader.body) for view in (*uses(s).views, *uses(s).changes)}
                assert not changed & used


def test_a_star_stores_rows_and_results_in_different_lanes() -> None:
    program = STRATEGIES["first_order"].of_query(query(STAR))
    (number,) = (i for i, trigger in enumerate(program.triggers) if trigger.relation == "F")
    found = [print_trigger(program, lane) for lane in divided(program, number)]
    assert len(found) == 2
    assert sorted("Q[" in text for text in found) == sorted("F[" not in text for text in found) == [False, True]


def test_each_view_of_a_chain_has_a_lane_of_its_own() -> None:
    program = STRATEGIES["view_tree"].of_query(query(STAR))
    numbers = range(len(program.triggers))
    assert max(len(divided(program, number)) for number in numbers) > 2


@pytest.mark.parametrize("text", ["Q() = E(a, b), E(b, c)", "Q() = E(a, b), E(b, c), E(c, a)"])
def test_a_trigger_of_a_self_join_has_one_lane(text: str) -> None:
    program = STRATEGIES["first_order"].of_query(query(text))
    for number, trigger in enumerate(program.triggers):
        store = {view for s in visit(trigger.body) for view in uses(s).changes}
        if any(view in store for s in visit(trigger.body) for view in uses(s).views):
            assert divided(program, number) == ()


def test_lanes_with_the_same_lookups_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    program = STRATEGIES["view_tree"].of_query(query(STAR))
    number = max(range(len(program.triggers)), key=lambda i: len(divided(program, i)))
    many = len(divided(program, number))
    monkeypatch.setattr(lanes, "MOST_REPEATED", 1.0)
    assert len(divided(program, number)) < many
    monkeypatch.setattr(lanes, "MOST_STATEMENTS", 1)
    assert divided(program, number) == ()
