"""Optional and negated atoms over join trees: results, changes, lookups of rows, delay, steps of updates."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews.errors import PlanError
from freshviews.plan.crown import propagation as crown
from freshviews.plan.delta import first_order
from freshviews.plan.strategy import BagPlanner
from freshviews.plan.trie import incremental_trie_join
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.program.results import Enumerated
from freshviews.query.query import Query
from tests.plan.cases import sums, total
from tests.plan.oracle import evaluate_query
from tests.plan.streams import Stream, relations_of
from tests.plan.test_crown import assert_distinct_maintained, counting, longest_delay, steps_of
from tests.plan.test_optional import CASES, X1, optional_queries
from tests.plan.test_strategies import assert_maintained
from tests.program import wellformed
from tests.query.notation import query

REFUSED = {
    "two keys of two tables": "the outer join with S, because no node of the join tree has k, l",
    "keys of an optional and of another": "the outer join with U, because no node of the join tree has x, y",
    "not exists, of two": "NOT EXISTS over S, because no node of the join tree has x, y",
    "not exists over an optional": "NOT EXISTS over T, because no node of the join tree has y",
}

FORMS = ("rows", "set", "groups", "held")


def planned(made: Query, form: str) -> Program | None:
    """The program of a query in one form; None if the query has no such form."""
    if form == "held":
        return crown.plan(made)
    if form == "groups":
        return crown.plan(made, stored=False) if crown.why_groups_are_stored(made) is None else None
    return crown.plan_enumerated(counting(made), form == "set")


def assert_form_maintained(program: Program, made: Query, form: str, seed: int, batches: int) -> None:
    stream = Stream(relations_of(made), seed, signed=False)
    if form == "set":
        assert_distinct_maintained(program, made, stream, batches)
    else:
        assert_maintained(program, counting(made) if form == "rows" else made, stream, batches)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", [name for name in CASES if name not in REFUSED])
def test_every_outer_join_and_negation_is_maintained_in_every_result_form(case: str, form: str) -> None:
    made = CASES[case]
    program = planned(made, form)
    if program is None:
        pytest.skip("the result is held")
    wellformed.check(program)
    assert isinstance(program.result, Enumerated) == (form != "held")
    for seed in range(4):
        assert_form_maintained(program, made, form, seed, 25)


@pytest.mark.parametrize(("case", "reason"), REFUSED.items())
def test_an_atom_without_a_node_in_the_join_tree_is_refused(case: str, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        crown.plan(CASES[case])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(made=optional_queries(), seed=st.integers(0, 2**16))
def test_random_outer_joins_and_negations_agree_with_the_oracle(form: str, made: Query, seed: int) -> None:
    try:
        program = planned(made, form)
    except PlanError:
        assume(False)
    assume(program is not None)
    assert program is not None
    wellformed.check(program)
    assert_form_maintained(program, made, form, seed, 8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(made=optional_queries(), seed=st.integers(0, 2**16))
def test_an_enumerated_row_is_found_by_its_values(made: Query, seed: int) -> None:
    try:
        program = planned(counting(made), "rows")
    except PlanError:
        assume(False)
    assert program is not None and isinstance(program.result, Enumerated)
    assume(program.result.member)
    state, stream = State(program), Stream(relations_of(made), seed, signed=False)
    null = -(2**63)
    for batch in stream.batches(8):
        state.apply(batch.relation, batch.rows())
        there = evaluate_query(counting(made), stream.relations)
        keys = set(there)
        for key in there:
            keys.update((*key[:i], value, *key[i + 1 :]) for i in range(len(key)) for value in (null, 0, 1))
        for key in keys:
            assert state.find(key) == ((there[key]["count"],) if key in there else (0,)), print_program(program)


BAGS = {"first_order": first_order.plan, "incremental_trie_join": incremental_trie_join.plan}


@pytest.mark.parametrize("inner", BAGS)
@pytest.mark.parametrize(
    "text",
    [
        "Q(a, z) = R(a, b), S(b, c), T(c, a), U?(a | z)",
        "Q(a, z) = R(a, b), S(b, c), T(c, a), V(a, d), !W(b, c), U?(d | z)",
        "Q(a, e) = R(a, b), S(b, c), T(c, a), V(a, d), R(d, e), S(e, f), T(f, d), !W(d), U?(a |)",
    ],
)
def test_bags_are_combined_with_outer_joins_and_negation(text: str, inner: str) -> None:
    made = query(text)
    program = crown.plan(made, inner=BagPlanner(BAGS[inner], widened=True))
    wellformed.check(program)
    for seed in range(3):
        assert_maintained(program, made, Stream(relations_of(made), seed, signed=False), 30)


def test_the_program_of_an_outer_join_equals_the_golden_file(golden: Callable[[str, str], None]) -> None:
    program = planned(query("Q(x, k, y, z) = R(x, k), S?(k | y), T?(y | z), !U(x)"), "set")
    assert program is not None
    golden("programs/outer-join.crown.txt", print_program(program))


# Bounds, counted

STAR = "Q(x, k, l, y, z) = F(x, k, l), S?(k | y), T?(l | z), !U(x)"


def test_the_delay_does_not_depend_on_the_number_of_rows() -> None:
    for text in (STAR, "Q(x, k, y, z) = R(x, k), S?(k | y), T?(y | z)"):
        program = planned(query(text), "rows")
        assert program is not None
        rng = random.Random(1)
        delays = []
        for size in (10, 80, 320):
            state = State(program)
            for name, relation in relations_of(query(text)).items():
                rows = {tuple(rng.randrange(size // 4) for _ in relation.columns) for _ in range(size)}
                rows = {row for row in rows if name != "U" or row[0] % 5 == 0}
                state.apply(name, [(dict(zip(relation.columns, row, strict=True)), 1) for row in rows])
            delays.append(longest_delay(state))
        # At most a loop over each node; below an absent partner a loop has one default row.
        assert max(delays) <= 12, delays


@pytest.mark.parametrize("distinct", [False, True])
def test_the_steps_of_an_update_of_an_optional_dimension_grow_with_the_reported_change(distinct: bool) -> None:
    program = planned(query(STAR), "set" if distinct else "rows")
    assert program is not None and dict(program.bounds)["update"].startswith("O(lambda)")
    for size in (20, 400):
        facts = [("F", (i, i % 10, 3), 1) for i in range(size)]
        dimension = [("S", (k, j), m) for k in range(10) for m in (1, -1) for j in range(3)]
        silent = steps_of(program, facts + dimension)
        # Inserts and deletes of dimension rows without facts cost nothing, whichever of fact and dimension comes first.
        assert max(silent) <= 14, silent
        reported = steps_of(program, facts + dimension, wanted=True)
        assert max(reported[:size]) <= 16
        assert max(reported[size:]) <= 6 * (size // 10) + 12


def test_the_bound_of_an_update_covers_every_changed_node() -> None:
    bounds = {
        "Q(x, k, l, y, z) = F(x, k, l), S?(k | y), T?(l | z)": "O(1)",
        "Q(x, k, y, z) = R(x, k), S?(k | y), T?(y | z)": "O(1)",
        # A row of T changes the sums of the rows of S with its w, and those are rows of the projection on k and y.
        "Q(x, k, y) = R(x, k), S?(k | y, w), T?(w |)": "O(lambda), O(1) if rows leave in the order in which they came",
    }
    for text, bound in bounds.items():
        program = planned(query(text), "rows")
        assert program is not None and dict(program.bounds)["update"] == bound


def test_excluded_rows_are_visited_only_when_a_negated_row_appears_or_disappears() -> None:
    made = query("Q(x, k, y) = R(x, k), S(k, y), !U(k)")
    program = planned(made, "set")
    assert program is not None
    for size in (20, 400):
        base = [("S", (0, 0), 1), *(("R", (i, 0), 1) for i in range(size))]
        excluding = [("U", (0,), 1), ("U", (0,), 1), ("U", (0,), 3), ("U", (0,), -4), ("U", (0,), -1)]
        taken = steps_of(program, base + excluding)[-len(excluding) :]
        assert max(taken[1:4]) <= 2, "a row that is there already, or stays, flips nothing"
        assert max(taken) <= 4 * size + 10


def test_inserting_a_first_optional_row_without_a_sum_takes_constant_steps() -> None:
    made = sums("Q(a, k) = F(a, k), S?(k |)", total("s", ("S", X1)))
    program = planned(made, "held")
    assert program is not None
    state = State(program)
    for i in range(100):
        state.apply("F", [({"c0": i, "c1": i % 2}, 1)])
    before = state.steps
    # The first partner with nothing to add replaces the default row, and changes no sum.
    state.apply("S", [({"c0": 0, "c1": 0}, 1)])
    assert state.steps - before <= 4
