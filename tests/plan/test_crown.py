"""Change propagation without joins whose result is enumerated: results, changes, delay, steps of updates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews.errors import PlanError
from freshviews.plan import crown
from freshviews.program.interpreter import State
from freshviews.program.nodes import COUNT, Program
from freshviews.program.printer import print_program
from freshviews.query.hypergraph import hypergraph
from freshviews.query.join_trees import all_trees
from freshviews.query.query import Aggregate, Query
from tests.plan.oracle import Key, evaluate_query
from tests.plan.streams import Stream, relations_of
from tests.plan.test_strategies import assert_maintained
from tests.program import wellformed
from tests.query.notation import query
from tests.query.random_queries import queries

EXAMPLES = (
    "Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)",
    "Q(b, c) = R(a, b), S(b, c), T(c, d)",
    "Q(a, b, c, d) = R(a, b), S(b, c), T(c, d), U(d, e)",
    "Q(k) = R(k, a), S(k, b), T(k, c)",
    "Q(a, b, c, d) = R(a, b, u), S(b, c, v), T(c, d, w)",
    "Q(a, b) = R(a), S(b)",
    "Q(a, b) = R(a, b), S(b), T(c)",
    "Q(a) = R(a, b), S(b, c), T(c, d)",
    "Q(a, b, c, d, e) = R(a, b), S(b, c), T(c, d), U(d, e)",
    "Q(a, b, c) = R(a, b), S(a, c, e), T(a, c, d)",
    "Q() = R(a, b), S(b, c)",
    "Q(a, b, c) = E(a, b), E(b, c)",
)


def counting(made: Query) -> Query:
    return replace(made, aggregates=(Aggregate(COUNT, "integer"),))


def enumerated(made: Query, distinct: bool = False, tree: str | None = None) -> Program:
    program = crown.plan_enumerated(made, distinct, tree=tree)
    assert program is not None
    return program


def keys(made: Query, stream: Stream) -> set[Key]:
    return {key for key, payload in evaluate_query(made, stream.relations).items() if payload[COUNT]}


def assert_distinct_maintained(program: Program, made: Query, stream: Stream, batches: int) -> None:
    """Every row once, every change of a row once, whether or not changes were wanted for a while."""
    state = State(program)
    before: set[Key] = set()
    for i, batch in enumerate(stream.batches(batches)):
        state.want_changes(i % 5 != 3)
        state.apply(batch.relation, batch.rows())
        after = keys(made, stream)
        assert state.output() == dict.fromkeys(after, (1,)), f"after {batch}:\n{print_program(program)}"
        expected = dict.fromkeys(after - before, (1,)) | dict.fromkeys(before - after, (-1,))
        assert state.change() == (expected if i % 5 != 3 else {}), f"change of {batch}"
        before = after
    assert not any(state.views.values())


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_enumerated_as_a_bag_and_as_a_set(text: str) -> None:
    made = query(text)
    for seed in range(8):
        assert_maintained(enumerated(made), made, Stream(relations_of(made), seed), 25)
        assert_distinct_maintained(enumerated(made, True), made, Stream(relations_of(made), seed, signed=False), 25)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_tree_keeps_the_query(text: str) -> None:
    made = query(text)
    for tree in all_trees(hypergraph(made), 40):
        for distinct in (False, True):
            program = crown.of_tree(made, tree, distinct)
            wellformed.check(program)
            stream = Stream(relations_of(made), 3, signed=not distinct)
            if distinct:
                assert_distinct_maintained(program, made, stream, 12)
            else:
                assert_maintained(program, made, stream, 12)


def planned(made: Query, distinct: bool) -> Program | None:
    try:
        return crown.plan_enumerated(made, distinct)
    except PlanError:
        return None


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(queries(conditions=True), st.integers(0, 10**6))
def test_random_acyclic_queries_are_enumerated_as_bags(made: Query, seed: int) -> None:
    program = planned(counting(made), False)
    assume(program is not None)
    assert program is not None
    wellformed.check(program)
    assert_maintained(program, counting(made), Stream(relations_of(made), seed), 10)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(queries(conditions=True), st.integers(0, 10**6))
def test_random_free_connex_queries_are_enumerated_as_sets(made: Query, seed: int) -> None:
    program = planned(counting(made), True)
    assume(program is not None)
    assert program is not None
    wellformed.check(program)
    assert_distinct_maintained(program, counting(made), Stream(relations_of(made), seed, signed=False), 10)
