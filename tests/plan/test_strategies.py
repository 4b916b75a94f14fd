"""Every strategy, on every case, over random streams: the interpreted program against the oracle."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.eps import hierarchical as ivm_eps_hierarchical
from freshviews.program.payload import Component
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.program.results import Held
from freshviews.query.query import Query
from freshviews.ring import named
from tests.plan.cases import CASES
from tests.plan.oracle import Key, evaluate_query, is_zero
from tests.plan.streams import Stream, relations_of
from tests.program import wellformed
from tests.query.random_queries import queries

Strategy = Callable[[Query], Program]
Result = dict[Key, tuple[object, ...]]

PLANS: dict[str, Strategy] = {
    **{name: one.of_query for name, one in STRATEGIES.items()},
    "ivm_eps_hierarchical": ivm_eps_hierarchical.plan,
}
"""Every strategy, and the form of ivm_eps that lists the result."""

GRID = [
    pytest.param(strategy, query, id=f"{name}-{case}")
    for name, strategy in PLANS.items()
    for case, query in CASES.items()
]
on_grid = pytest.mark.parametrize(("strategy", "query"), GRID)


def planned(strategy: Strategy, query: Query) -> Program:
    """The program; the test is skipped if the strategy cannot maintain the query."""
    try:
        return strategy(query)
    except PlanError as refusal:
        pytest.skip(str(refusal))


def components_of(program: Program) -> tuple[Component, ...]:
    """The components that the program has for a row of the result."""
    return program.view(program.result.view).components if isinstance(program.result, Held) else program.result.emitted


def expected(query: Query, stream: Stream, program: Program) -> Result:
    """The oracle's result, with the components that the program has."""
    names = [c.name for c in components_of(program)]
    found = evaluate_query(query, stream.relations)
    result = {key: tuple(payload[name] for name in names) for key, payload in found.items()}
    return {key: payload for key, payload in result.items() if not all(map(is_zero, payload))}


def difference(query: Query, program: Program, after: Result, before: Result) -> Result:
    """The change that leads from ``before`` to ``after``."""
    rings = [named(c.ring) for c in components_of(program)]
    zero = tuple(ring.zero for ring in rings)
    grown = {}
    for key in {**after, **before}:
        one, other = after.get(key, zero), before.get(key, zero)
        delta = tuple(r.add(a, r.negate(b)) for r, a, b in zip(rings, one, other, strict=True))
        if delta != zero:
            grown[key] = delta
    return grown


def assert_maintained(program: Program, query: Query, stream: Stream, batches: int) -> None:
    """Result and change equal the oracle's after every batch, and at the end every view is empty."""
    state = State(program)
    before: Result = {}
    for batch in stream.batches(batches):
        state.apply(batch.relation, batch.rows())
        after = expected(query, stream, program)
        assert state.output() == after, f"after {batch}:\n{print_program(program)}"
        assert state.change() == difference(query, program, after, before), f"change of {batch}"
        before = after
    assert not any(state.views.values()), {name: rows for name, rows in state.views.items() if rows}


@pytest.mark.sample(5)
@on_grid
def test_result_and_change_equal_the_oracle_after_every_batch(strategy: Strategy, query: Query) -> None:
    program = planned(strategy, query)
    for seed in range(3):
        relations = relations_of(query)
        assert_maintained(program, query, Stream(relations, seed), batches=6 + 4 * len(relations))


@pytest.mark.sample(5)
@on_grid
def test_a_program_follows_the_rules_of_the_trigger_language(strategy: Strategy, query: Query) -> None:
    wellformed.check(planned(strategy, query))


@pytest.mark.sample(5)
@on_grid
def test_a_batch_equals_its_single_updates_in_any_order(strategy: Strategy, query: Query) -> None:
    program = planned(strategy, query)
    whole, single, reverse = State(program), State(program), State(program)
    batches = list(Stream(relations_of(query), seed=7).batches(8, size=6))[:8]
    for batch in batches:
        whole.apply(batch.relation, batch.rows())
        for update in batch.rows():
            single.apply(batch.relation, [update])
    for batch in reversed(batches):
        reverse.apply(batch.relation, reversed(batch.rows()))
    # Which values are heavy depends on the order of updates; stored relations and the result do not.
    parted = set() if program.balancing is None else {p.heavy for p in program.balancing.partitions}
    parted.update(program.balancing.auxiliary if program.balancing is not None else ())
    kept = [{name: rows for name, rows in s.views.items() if name not in parted} for s in (whole, single, reverse)]
    assert kept[0] == kept[1] == kept[2]
    assert whole.output() == single.output() == reverse.output()
    assert whole.change() == single.change() == reverse.change()


@pytest.mark.sample(5)
@on_grid
def test_deleting_all_inserted_rows_leaves_every_view_empty(strategy: Strategy, query: Query) -> None:
    state = State(planned(strategy, query))
    batches = list(Stream(relations_of(query), seed=11).batches(8))[:8]
    for batch in batches:
        state.apply(batch.relation, batch.rows())
    for batch in reversed(batches):
        state.apply(batch.relation, batch.negated().rows())
    assert not any(state.views.values())
    assert state.output() == {} == state.change()


@pytest.mark.parametrize("name", PLANS)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(query=queries(conditions=True), seed=st.integers(0, 2**16))
def test_random_queries_agree_with_the_oracle_under_every_strategy(name: str, query: Query, seed: int) -> None:
    try:
        program = PLANS[name](query)
    except PlanError:
        return
    wellformed.check(program)
    assert_maintained(program, query, Stream(relations_of(query), seed), batches=6)
