"""Cyclic queries: neither deltas nor a trace has the better bound; the planner takes deltas and reports
alternatives."""

from __future__ import annotations

import pytest

from freshviews.cli.planned_script import plan_script
from freshviews.plan.delta import first_order
from freshviews.plan.explain import explain
from freshviews.plan.trie import incremental_trie_join
from freshviews.program.reference.interpreter import State
from freshviews.query.query import Query
from tests.query.notation import query

TRIANGLES = query("Q(a, b, c) = R(a, b), S(b, c), T(c, a)")
Rows = list[tuple[int, int]]


def steps_of(made: Query, strategy: str, rows: dict[str, Rows], update: tuple[str, tuple[int, int]]) -> int:
    """The steps of one insert, in the key order a, b, c."""
    if strategy == "first_order":
        program = first_order.plan(made)
    else:
        program = incremental_trie_join.plan(made, order=made.variables)
    state = State(program)
    for name, some in rows.items():
        state.apply(name, [({"c0": x, "c1": y}, 1) for x, y in some])
    relation, (x, y) = update
    before = state.steps
    state.apply(relation, [({"c0": x, "c1": y}, 1)])
    return state.steps - before


@pytest.mark.parametrize("n", [40, 160])
def test_a_trace_skips_values_that_deltas_visit(n: int) -> None:
    """All values that follow b are less than all that lead to a."""
    rows = {"S": [(1, i) for i in range(n)], "T": [(n + i, 1) for i in range(n)]}
    update = ("R", (1, 1))
    assert steps_of(TRIANGLES, "incremental_trie_join", rows, update) < 20
    assert steps_of(TRIANGLES, "first_order", rows, update) > n


@pytest.mark.parametrize("n", [40, 160])
def test_a_trace_visits_values_that_deltas_skip(n: int) -> None:
    """Under each a, b was skipped, as S had none: now it is visited, although no c of it leads anywhere."""
    rows = {"R": [(i, 1) for i in range(n)], "S": [(2, 1)], "T": [(3, i) for i in range(n)]}
    update = ("S", (1, 1))
    assert steps_of(TRIANGLES, "incremental_trie_join", rows, update) > n
    assert steps_of(TRIANGLES, "first_order", rows, update) < 20


TABLES = "".join(f"CREATE TABLE {name} (x BIGINT NOT NULL, y BIGINT NOT NULL);" for name in "rstuw")
CYCLE = "SELECT COUNT(*) AS n FROM r, s, t, u WHERE r.y = s.x AND s.y = t.x AND t.y = u.x AND u.y = r.x"
LISTED = "SELECT r.x AS a, s.x AS b, t.x AS c FROM r, s, t WHERE r.y = s.x AND s.y = t.x AND t.y = r.x"
COUNTED = "SELECT COUNT(*) AS n FROM r, s, t WHERE r.y = s.x AND s.y = t.x AND t.y = r.x"
PENDANT = (
    "SELECT DISTINCT r.x AS a, u.y AS b FROM r, s, t, u WHERE r.y = s.x AND s.y = t.x AND t.y = r.x AND u.x = r.x"
)
SHARED = "FROM r, s, t, u, w WHERE r.y = s.x AND s.y = t.x AND t.y = r.x AND r.y = u.x AND u.y = w.x AND w.y = r.x"
TWO_TRIANGLES = f"SELECT r.x AS a, r.y AS b, COUNT(*) AS n {SHARED} GROUP BY r.x, r.y"
TWO_TRIANGLES_LISTED = f"SELECT r.x AS a, r.y AS b, s.y AS c, u.y AS d {SHARED}"
BY_TRACE = "'freshviews.strategy' = 'incremental_trie_join'"


def lines_of(select: str, properties: str = "") -> list[str]:
    view = plan_script(f"{TABLES} CREATE MATERIALIZED VIEW v {properties} AS {select};").views[0]
    return explain(view.view, view.plans, {}).splitlines()


@pytest.mark.parametrize(
    ("select", "strategy", "named"),
    [
        (TWO_TRIANGLES, "crown", ["'freshviews.bag_strategy' = 'incremental_trie_join'"]),
        (TWO_TRIANGLES_LISTED, "first_order", ["'freshviews.strategy' = 'crown'", BY_TRACE]),
        (CYCLE, "first_order", ["'freshviews.strategy' = 'crown'", BY_TRACE]),
        (LISTED, "first_order", [BY_TRACE]),
        (COUNTED, "ivm_eps_linear", [BY_TRACE]),
        (PENDANT, "crown", ["'freshviews.bag_strategy' = 'incremental_trie_join'"]),
    ],
)
def test_explain_lists_alternative_strategies(select: str, strategy: str, named: list[str]) -> None:
    lines = lines_of(select)
    assert any(line.startswith(f"strategy  {strategy}: cyclic") for line in lines)
    at = next(i for i, line in enumerate(lines) if line.startswith("instead   "))
    reported = [line[10:].split(":")[0] for line in lines[at : lines.index("", at)]]
    assert reported == named
    for properties in reported:  # the reported properties are accepted
        assert any(line.startswith("strategy") for line in lines_of(select, f"TBLPROPERTIES ({properties})"))


@pytest.mark.parametrize(
    ("select", "properties"),
    [
        (CYCLE, "TBLPROPERTIES ('freshviews.strategy' = 'first_order')"),
        ("SELECT COUNT(*) AS n FROM r, s WHERE r.y = s.x", ""),
    ],
)
def test_explain_suggests_no_strategy_for_an_acyclic_query(select: str, properties: str) -> None:
    assert not any(line.startswith("instead") for line in lines_of(select, properties))
