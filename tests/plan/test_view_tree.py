"""View trees whose result stays factorised: results, changes, delay, and the lecture's examples."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews.expr.nodes import Column
from freshviews.plan.delta.view_tree import plan_factorised
from freshviews.program.payload import COUNT
from freshviews.program.printer import print_program
from freshviews.program.reference.interpreter import State
from freshviews.query.dependencies import FD
from freshviews.query.query import Aggregate, Query
from freshviews.types import BIGINT
from tests.plan.streams import Stream, relations_of
from tests.plan.test_lecture import ACYCLIC, lecture
from tests.plan.test_strategies import assert_maintained
from tests.query.notation import query
from tests.query.random_queries import queries

FREE_CONNEX = (
    "Q(a, b, c) = R(a, b), S(a, c, e), T(a, c, d)",
    "Q(a, b, c) = R(a, b), S(b, c)",
    "Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)",
    "Q(a, b) = R(a), S(b)",
    "Q(a, b) = R(a, b), S(b), T(c)",
    "Q(a, b, c, d) = R(a, b), S(a, c), T(a, c, d), U(a, e)",
)


def renamed(text: str) -> Query:
    """A query whose columns have the names of its variables, for golden files."""
    made = query(text)
    atoms = tuple(
        replace(a, columns=tuple(Column(v, BIGINT, False) for v in a.variables)) for a in made.atoms
    )
    return replace(made, atoms=atoms)


def test_the_view_tree_of_the_lecture_equals_the_golden_file(golden) -> None:  # type: ignore[no-untyped-def]
    program = plan_factorised(lecture(ACYCLIC))
    assert program is not None
    golden("programs/acyclic.view_tree_factorised.txt", print_program(program))


def test_a_chain_with_keys_takes_constant_time(golden) -> None:  # type: ignore[no-untyped-def]
    chain = renamed("Q(w, x, y, z) = R(w, x), S(x, y), T(y, z)")
    keys = (FD(("x",), ("y",), "S"), FD(("y",), ("z",), "T"))
    program = plan_factorised(chain, keys)
    assert program is not None
    assert dict(program.bounds)["update"] == "O(1)"
    golden("programs/chain_under_keys.view_tree_factorised.txt", print_program(program))


def test_every_free_connex_example_is_maintained() -> None:
    for text in FREE_CONNEX:
        made = query(text)
        program = plan_factorised(made)
        assert program is not None, text
        for seed in range(5):
            assert_maintained(program, made, Stream(relations_of(made), seed, signed=False), 25)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(queries(conditions=True), st.integers(0, 10**6))
def test_a_factorised_view_tree_maintains_every_enumerable_query(made: Query, seed: int) -> None:
    made = replace(made, aggregates=(Aggregate(COUNT, "integer"),))
    program = plan_factorised(made)
    assume(program is not None)
    assert program is not None
    assert_maintained(program, made, Stream(relations_of(made), seed, signed=False), 12)


def test_the_delay_between_two_rows_does_not_grow_with_the_database() -> None:
    made = query("Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)")
    program = plan_factorised(made)
    assert program is not None
    longest = []
    for size in (10, 100, 1000):
        state = State(program)
        # Dangling rows on every side: an enumeration may visit none of them between two results.
        for i in range(size):
            state.apply("R", [({"c0": i, "c1": i % 7}, 1)])
            state.apply("S", [({"c0": i % 11, "c1": i}, 1)])
            state.apply("T", [({"c0": 3 * i, "c1": i}, 1)])
        before, gaps = state.steps, [0]

        def note(row: tuple[int, ...], count: int, state: State = state, gaps: list[int] = gaps) -> None:
            nonlocal before
            gaps.append(state.steps - before)
            before = state.steps

        before = state.steps
        state.enumerate(note)
        longest.append(max(gaps))
    assert longest[0] <= 12
    assert longest == [longest[0]] * 3 or max(longest) <= 12
