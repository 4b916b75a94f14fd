"""Change propagation without joins, with an enumerated result: results, changes, delay, steps of updates."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews.errors import PlanError
from freshviews.plan.crown import propagation as crown
from freshviews.program.payload import COUNT
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.query.free_connex import is_free_connex
from freshviews.query.hierarchical import is_q_hierarchical
from freshviews.query.hypergraph import hypergraph
from freshviews.query.join_trees import all_trees, parse_tree
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
    """Every row occurs once, every change of a row once, also after a time in which changes were not wanted."""
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
def test_every_example_is_enumerated_with_multiplicities(text: str) -> None:
    made = query(text)
    for seed in range(8):
        assert_maintained(enumerated(made), made, Stream(relations_of(made), seed), 25)
        assert_distinct_maintained(enumerated(made, True), made, Stream(relations_of(made), seed, signed=False), 25)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_join_tree_maintains_the_query(text: str) -> None:
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
def test_random_acyclic_queries_are_enumerated_with_multiplicities(made: Query, seed: int) -> None:
    program = planned(counting(made), False)
    assume(program is not None)
    assert program is not None
    wellformed.check(program)
    assert_maintained(program, counting(made), Stream(relations_of(made), seed), 10)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(queries(conditions=True), st.integers(0, 10**6))
def test_random_free_connex_queries_are_enumerated_with_distinct_rows(made: Query, seed: int) -> None:
    program = planned(counting(made), True)
    assume(program is not None)
    assert program is not None
    wellformed.check(program)
    assert_distinct_maintained(program, counting(made), Stream(relations_of(made), seed, signed=False), 10)


# Bounds, counted


def longest_delay(state: State) -> int:
    """The most steps before, between and after the rows of an enumeration."""
    before, gaps = state.steps, [0]

    def note(row: Key, count: int) -> None:
        nonlocal before
        gaps.append(state.steps - before)
        before = state.steps

    state.enumerate(note)
    return max(*gaps, state.steps - before)


def steps_of(program: Program, updates: list[tuple[str, Key, int]], wanted: bool = False) -> list[int]:
    """The steps of each update."""
    state = State(program)
    state.want_changes(wanted)
    taken = []
    for relation, row, m in updates:
        before = state.steps
        state.apply(relation, [({f"c{i}": value for i, value in enumerate(row)}, m)])
        taken.append(state.steps - before)
    return taken


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(queries(), st.booleans(), st.integers(0, 10**6))
def test_the_delay_depends_on_the_query_alone(made: Query, distinct: bool, seed: int) -> None:
    made = counting(made)
    assume(is_free_connex(hypergraph(made)))
    program = enumerated(made, distinct)
    rng = random.Random(seed)
    for size in (10, 60, 240):
        state = State(program)
        for name, relation in relations_of(made).items():
            rows = [tuple(rng.randrange(size // 4) for _ in relation.columns) for _ in range(size)]
            state.apply(name, [(dict(zip(relation.columns, row, strict=True)), 1) for row in set(rows)])
        assert longest_delay(state) <= 4 * len(made.atoms) + 4, print_program(program)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(queries(), st.integers(0, 10**6))
def test_enumerating_a_change_adds_a_constant_number_of_steps_per_row(made: Query, seed: int) -> None:
    """Enumeration adds at most a constant number of steps per row of the change, and one more per update."""
    made = counting(made)
    assume(is_free_connex(hypergraph(made)))
    program = enumerated(made, True)
    stream = Stream(relations_of(made), seed, values=4, signed=False)
    reported, silent = State(program), State(program)
    silent.want_changes(False)
    for batch in stream.batches(20, size=1):
        before = reported.steps, silent.steps
        reported.apply(batch.relation, batch.rows())
        silent.apply(batch.relation, batch.rows())
        more = (reported.steps - before[0]) - (silent.steps - before[1])
        updates = silent.steps - before[1]
        assert more <= (6 * len(made.atoms) + 6) * (len(reported.change()) + updates)


@pytest.mark.parametrize("text", ["Q(k) = R(k, a), S(k, b), T(k, c)", "Q(a, b, c) = R(a, b), S(a, c)"])
def test_updates_of_a_q_hierarchical_query_take_constant_steps(text: str) -> None:
    made = query(text)
    assert is_q_hierarchical(hypergraph(made))
    for distinct in (False, True):
        program = enumerated(made, distinct)
        most = []
        for size in (20, 200, 2000):
            updates = [(a.relation, (0, i), 1) for i in range(size) for a in made.atoms]
            updates += [(relation, row, -1) for relation, row, _ in updates]
            most.append(max(steps_of(program, updates)))
        assert most[0] == most[1] == most[2] <= 20


def random_updates(made: Query, size: int, window: int | None, seed: int) -> list[tuple[str, Key, int]]:
    """Insertions over few values; when a window is full, its oldest row is deleted."""
    rng = random.Random(seed)
    inserted: list[tuple[str, Key]] = []
    updates: list[tuple[str, Key, int]] = []
    here: set[tuple[str, Key]] = set()
    for i in range(size):
        atom = rng.choice(made.atoms)
        row = (i, rng.randrange(8)) if rng.random() < 0.5 else (rng.randrange(8), i)
        row = row[: len(atom.variables)]
        if (atom.relation, row) in here:
            continue
        if window is not None and len(inserted) >= window:
            relation, oldest = inserted.pop(0)
            here.discard((relation, oldest))
            updates.append((relation, oldest, -1))
        inserted.append((atom.relation, row))
        here.add((atom.relation, row))
        updates.append((atom.relation, row, 1))
    return updates


HEIGHT_2 = (
    "Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)",
    "Q(b, c) = R(a, b), S(b, c), T(c, d)",
    "Q(x1, x2, x3, x4) = R1(x1, x2), R2(x2, x3), R3(x3, x4), R4(x4, x5)",
)


@pytest.mark.parametrize("text", HEIGHT_2)
@pytest.mark.parametrize("window", [None, 50, 400])
def test_insert_only_and_fifo_streams_take_constant_steps_on_average(text: str, window: int | None) -> None:
    made = query(text)
    program = enumerated(made, True)
    for seed in range(3):
        averages = []
        for size in (500, 1500, 4500):
            taken = steps_of(program, random_updates(made, size, window, seed))
            averages.append(sum(taken) / len(taken))
        assert max(averages) <= 12, averages


def test_steps_grow_with_the_enclosureness_of_the_tree() -> None:
    """Figure 4: long lifespans around many short ones, in both relations."""
    made = query("Q(a, b, c) = R(a, b), S(b, c)")
    flat, r_on_top = (parse_tree(text, hypergraph(made)) for text in ("[b](R, S)", "R(S)"))
    means: dict[str, list[float]] = {"flat": [], "R on top": []}
    for size in (10, 40, 160):
        updates = [("R", (i, 0), 1) for i in range(size)]
        for i in range(size):
            updates += [("S", (0, i), 1), ("S", (0, i), -1)]
        for name, tree in (("flat", flat), ("R on top", r_on_top)):
            taken = steps_of(crown.of_tree(made, tree, True), updates)
            means[name].append(sum(taken) / len(taken))
    assert max(means["flat"]) <= 8
    grown = [mean / size for mean, size in zip(means["R on top"], (10, 40, 160), strict=True)]
    assert all(1 <= one <= 4 for one in grown), means
