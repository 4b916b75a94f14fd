"""Empty views initialised in passes: the same contents as from one table after the other, in fewer steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.delta import first_order, view_tree
from freshviews.plan.passes import EXHAUSTIVE, Pass, _Costs, _in_order, passes
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.query.query import Query
from tests.plan.cases import CASES
from tests.plan.streams import Stream, relations_of
from tests.plan.test_strategies import on_grid, planned
from tests.query.notation import query
from tests.query.random_queries import queries

Rows = dict[str, list[tuple[dict[str, int], int]]]


def plain(program: Program, names: Sequence[str]) -> tuple[Pass, ...]:
    """Passes over one relation after the other."""
    numbers = range(len(program.triggers))
    return tuple(Pass(name, tuple(k for k in numbers if program.triggers[k].relation == name)) for name in names)


def filled(program: Program, order: Sequence[Pass], rows: Rows) -> State:
    """The state after passes over the rows, in two batches each, while no subscriber wants the change."""
    state = State(program, wanted=False)
    for one in order:
        state.program = replace(program, triggers=tuple(program.triggers[k] for k in one.triggers))
        half = len(rows[one.relation]) // 2
        for batch in (rows[one.relation][:half], rows[one.relation][half:]):
            state.apply(one.relation, batch)
    state.program = program
    return state


def check(program: Program, made: Query, seed: int) -> bool:
    """Initialise in passes and table by table, compare, and continue. Returns whether there are passes."""
    names = list(relations_of(made))
    order = passes(program, names, dict.fromkeys(names, 1e5))
    if order is None:
        return False
    assert sorted(k for one in order for k in one.triggers) == list(range(len(program.triggers)))
    rows: Rows = {name: [] for name in names}
    for batch in Stream(relations_of(made), seed, signed=False).batches(3 * len(names), size=6):
        rows[batch.relation] += batch.rows()
    states = [filled(program, one, rows) for one in (plain(program, names), order)]
    assert states[0].views == states[1].views
    for name in reversed(names):
        for state in states:
            state.apply(name, [(row, -m) for row, m in rows[name]])
        assert states[0].views == states[1].views
    assert not any(states[1].views.values())
    return True


@pytest.mark.sample(5)
@on_grid
def test_passes_initialise_the_same_views(strategy: object, query: Query) -> None:
    program = planned(strategy, query)  # type: ignore[arg-type]
    for seed in range(2):
        check(program, query, seed)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ("crown", "view_tree", "higher_order", "change_propagation"))
def test_paths_over_one_table_are_initialised_in_passes(name: str) -> None:
    assert check(STRATEGIES[name].of_query(CASES["one-relation paths"]), CASES["one-relation paths"], 3)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ("crown", "view_tree", "higher_order", "change_propagation", "first_order"))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=queries(conditions=True), seed=st.integers(0, 2**16))
def test_initialising_views_in_passes_or_table_by_table_gives_equal_views(name: str, made: Query, seed: int) -> None:
    try:
        program = STRATEGIES[name].of_query(made)
    except PlanError:
        return
    check(program, made, seed)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ("crown", "view_tree", "higher_order"))
@pytest.mark.full
def test_a_path_through_a_hub_is_initialised_in_linear_time(name: str) -> None:
    """All edges meet in one node, so there are as many paths of two edges as pairs of edges."""
    made = query("Q() = E(a, b), E(b, c), E(c, d)")
    program = STRATEGIES[name].of_query(made)
    order = passes(program, ["E"], {"E": 1e5})
    assert order is not None
    steps = []
    for n in (100, 200, 400):
        ends = [edge for i in range(1, n) for edge in ((0, i), (i, 0))]
        rows: Rows = {"E": [({"c0": a, "c1": b}, 1) for a, b in ends]}
        steps.append([filled(program, one, rows).steps for one in (plain(program, ["E"]), order)])
    assert steps[2][0] > 3.5 * steps[1][0]
    assert steps[2][1] < 2.5 * steps[1][1] < 2.5 * 2.5 * steps[0][1]


def test_the_pass_over_the_middle_relation_of_a_path_comes_last() -> None:
    program = view_tree.plan(query("Q() = R(a, b), S(b, c), T(c, d)"))
    order = passes(program, ["R", "S", "T"], {"R": 1e5, "S": 1e5, "T": 1e5})
    assert order is not None and order[-1].relation == "S"


def test_the_order_of_many_passes_is_chosen_from_last_to_first() -> None:
    made = query("Q() = A(a, b), B(b, c), C(c, d), D(d, e), E(e, f), F(f, g), G(g, h), H(h, i)")
    program = view_tree.plan(made)
    names = [atom.relation for atom in made.atoms]
    costs = _Costs(program, dict.fromkeys(names, 1e5))
    assert len(names) > EXHAUSTIVE
    order = _in_order(costs)
    assert sorted(order) == list(range(len(names)))
    assert all(costs.cost(k, frozenset(order[:i])) == 1e5 for i, k in enumerate(order))


def test_updates_in_constant_time_need_no_order_of_passes() -> None:
    made = CASES["star"]
    assert passes(view_tree.plan(made), list(relations_of(made)), dict.fromkeys(relations_of(made), 1e5)) is None


@pytest.mark.sample(5)
@pytest.mark.parametrize("dimension", (1e2, 1e4, 1e6))
def test_the_pass_over_a_fact_table_comes_last(dimension: float) -> None:
    program = first_order.plan(query("Q(g, h) = F(k, l), D(k, g), E(l, h)"))
    order = passes(program, ["F", "D", "E"], {"F": 1e6, "D": dimension, "E": dimension})
    assert order is not None and order[-1].relation == "F"
    assert passes(program, ["D", "E", "F"], {"F": 1e6, "D": dimension, "E": dimension}) is None
