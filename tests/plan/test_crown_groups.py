"""Groups over several nodes of a join tree: combined from payloads of rows, never stored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews.cli.planned_script import plan_script
from freshviews.expr.nodes import Column
from freshviews.plan.crown import propagation as crown
from freshviews.plan.strategy import Plan
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.program.results import Enumerated, Held
from freshviews.query.query import Aggregate, Lift, Query
from freshviews.types import BIGINT
from tests.plan.oracle import evaluate_query
from tests.plan.streams import Stream, relations_of
from tests.plan.test_crown import longest_delay
from tests.plan.test_strategies import assert_maintained
from tests.program import wellformed
from tests.query.notation import query
from tests.query.random_queries import queries

SPREAD = (
    "Q(a, b, c) = R(a, b), S(b, c), T(c, d)",
    "Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)",
    "Q(a, b, c) = R(a, b), S(b, c)",
    "Q(a, c) = R(a, b), S(c, d)",
    "Q(b, c, d) = R(a, b), S(b, c), T(c, d), U(d, e)",
    "Q(a, b, d) = R(a, b), S(b, d, u), T(d, v), U(b, w)",
    "Q(a, b, c, x) = R(a, b), S(b, c), T(c, a), U(a, x)",
)
"""Queries that are free-connex, or free-connex over bags; no node has all variables of the output."""

HELD = {
    "Q(a) = R(a, b), S(b, c)": "at most as many as rows of R",
    "Q(b) = R(a, b), S(b, c)": "at most as many as rows of R",
    "Q() = R(a, b), S(b, c)": "there is one",
    "Q(a, c) = R(a, b), S(b, c)": "free-connex only with b in the output; each group is a sum over these",
}


def summing(text: str) -> Query:
    """The query with a sum over a column of each of its first two atoms, a sum of their product, and a sum of
    doubles."""
    made = query(text)
    first, second = (Lift(atom.name, Column("c1", BIGINT, False)) for atom in made.atoms[:2])
    sums = (
        Aggregate("count", "integer"),
        Aggregate("z", "real", (replace(second, expr=Column("c0", BIGINT, False)),)),
        Aggregate("x", "integer", (first,)),
        Aggregate("xy", "integer", (first, second)),
    )
    return replace(made, aggregates=sums)


def grouped(made: Query) -> Program:
    assert crown.why_groups_are_stored(made) is None
    return crown.plan(made, stored=False)


@pytest.mark.parametrize("text", SPREAD)
def test_groups_over_several_nodes_are_maintained_without_being_stored(text: str) -> None:
    made = summing(text)
    program = grouped(made)
    wellformed.check(program)
    assert isinstance(program.result, Enumerated) and not any(view.journal for view in program.views)
    for seed in range(6):
        assert_maintained(program, made, Stream(relations_of(made), seed), 20)


@pytest.mark.parametrize("text", SPREAD)
def test_a_group_is_found_by_its_columns(text: str) -> None:
    made = summing(text)
    state, stream = State(grouped(made)), Stream(relations_of(made), 5)
    for batch in stream.batches(15):
        state.apply(batch.relation, batch.rows())
        there = evaluate_query(made, stream.relations)
        for key in [*there, (99,) * len(made.free)]:
            payload = there.get(key)
            names = [c.name for c in state.program.result.emitted]
            zero = state.find((99,) * len(made.free))
            assert state.find(key) == (zero if payload is None else tuple(payload[name] for name in names))


@pytest.mark.parametrize(("text", "reason"), HELD.items())
def test_the_reason_for_storing_groups_is_found(text: str, reason: str) -> None:
    assert crown.why_groups_are_stored(summing(text)) == reason


def test_the_delay_between_groups_does_not_grow_with_rows() -> None:
    def delay(size: int) -> int:
        state = State(grouped(summing("Q(a, b, c) = R(a, b), S(b, c), T(c, d)")))
        rows = range(size)
        state.apply("R", [({"c0": i, "c1": i % 3}, 1) for i in rows])
        state.apply("S", [({"c0": i % 3, "c1": i}, 1) for i in rows])
        state.apply("T", [({"c0": i, "c1": j}, 1) for i in rows if i % 2 for j in range(3)])
        return longest_delay(state)

    assert delay(12) == delay(48)


def test_stored_rows_grow_with_the_relations_not_with_the_groups() -> None:
    state = State(grouped(summing("Q(a, b, c) = R(a, b), S(b, c)")))
    state.apply("R", [({"c0": i, "c1": 0}, 1) for i in range(100)])
    state.apply("S", [({"c0": 0, "c1": i}, 1) for i in range(100)])
    assert len(state.output()) == 10_000
    assert sum(map(len, state.views.values())) <= 3 * 200


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(queries(conditions=True), st.integers(0, 10**6))
def test_random_groups_over_several_nodes_agree_with_the_oracle(made: Query, seed: int) -> None:
    assume(crown.why_groups_are_stored(made) is None)
    program = crown.plan(made, stored=False)
    wellformed.check(program)
    assert_maintained(program, made, Stream(relations_of(made), seed), 8)


TABLES = "CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL, x BIGINT);" \
    "CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL, y BIGINT{});"
VIEW = "CREATE MATERIALIZED VIEW v {} AS SELECT {}, {} FROM r JOIN s ON r.b = s.b GROUP BY {};"


def planned(columns: str, aggregate: str, named: bool = True, key: str = "") -> Plan:
    properties = "TBLPROPERTIES ('freshviews.strategy' = 'crown')" if named else ""
    script = plan_script(TABLES.format(key) + VIEW.format(properties, columns, f"{aggregate} AS n", columns))
    return script.views[0].plans[0]


@pytest.mark.parametrize(
    ("columns", "aggregate", "reason"),
    [
        ("r.a, r.b, s.c", "COUNT(DISTINCT s.y)", "distinct values (count) are not products of payloads"),
        ("r.a, r.b, s.c", "MIN(s.y)", "distinct values (min) are not products of payloads"),
        ("r.a, s.c", "COUNT(*)", "free-connex only with b in the output; each group is a sum over these"),
        ("r.a", "SUM(s.y)", "at most as many as rows of r"),
    ],
)
def test_explain_shows_why_groups_are_stored(columns: str, aggregate: str, reason: str) -> None:
    plan = planned(columns, aggregate)
    assert isinstance(plan.program.result, Held)
    assert dict(plan.program.bounds)["groups"] == f"stored: {reason}"


def test_the_planner_chooses_crown_for_groups_of_several_tables() -> None:
    spread = planned("r.a, r.b, s.c", "COUNT(*)", named=False)
    assert spread.strategy == "crown" and isinstance(spread.program.result, Enumerated)
    assert planned("r.a", "COUNT(*)", named=False).strategy != "crown"
    assert planned("r.a, r.b, s.c", "MAX(s.y)", named=False).strategy != "crown"
    # A row of r determines the row of s, and so the group: there are no more groups than rows of r.
    assert planned("r.a, r.b, s.c", "COUNT(*)", named=False, key=", PRIMARY KEY (b)").strategy != "crown"
