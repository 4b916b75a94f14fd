"""A few of the states that ``make states`` compares with DuckDB, and its reports."""

from __future__ import annotations

import pytest

from tests.agreement import states
from tests.agreement.constructs import NAMES, constructs
from tests.agreement.scenario import BaseTable, NamedView, Scenario, TableColumn, Text
from tests.agreement.sql_windows import windows_scenario
from tests.agreement.states import Course, Failure, Totals, replay, run_number

pytestmark = pytest.mark.plain_python(only=True)


@pytest.mark.seeds(60)
def test_long_streams_agree_with_duckdb_after_every_batch(seed: int) -> None:
    shown: list[str] = []
    assert not run_number(0, seed, Totals(), shown.append), "\n".join(shown)


@pytest.mark.seeds(40)
def test_window_functions_agree_with_duckdb_after_every_batch(seed: int) -> None:
    shown: list[str] = []
    assert not run_number(0, seed, Totals(), shown.append, (windows_scenario,)), "\n".join(shown)


def test_views_agree_with_duckdb_after_ctrl_c_undid_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    totals = Totals()
    interrupted = [Course(interrupted=True), Course("higher_order", interrupted=True)]
    monkeypatch.setattr(states, "_courses", lambda *drawn: interrupted)
    monkeypatch.setattr(states, "_BATCHES", (10,))
    for number in range(4):
        assert not run_number(1, number, totals, shown.append), "\n".join(shown)
    assert totals.interrupts > 20


def test_a_run_is_determined_by_its_seed() -> None:
    first, second = Totals(), Totals()
    for totals in (first, second):
        for number in range(2):
            run_number(5, number, totals, print)
    assert first == second
    assert first.states > 10
    assert f"{first.states:,} states" in first.report(1.0)


def test_the_report_of_a_difference_from_duckdb_shows_as_few_rows_as_possible() -> None:
    """DuckDB gets another query than the engine."""
    table = BaseTable("r", (TableColumn("a", "BIGINT"),))
    view = NamedView("v", Text("SELECT a FROM r", "SELECT a FROM r WHERE a > 1"))
    versions = tuple((("r", (((value,), 1), ((value + 2,), 1))),) for value in (2, 3, 0, 4, 5))
    found = Scenario((table,), (view,), versions)
    with pytest.raises(AssertionError, match="only the first has"):
        replay(found, Course())
    least = Failure(found, Course(late=2), AssertionError()).least()
    assert least.scenario.versions == ((("r", (((0,), 1),)),),)
    assert "version 1: r +1 (0,)" in str(least)


def test_sql_constructs_are_recognised_in_the_text_of_a_view() -> None:
    view = NamedView(
        "v",
        Text.same(
            "SELECT p.a AS c1, (SELECT MAX(u.b) FROM s AS u WHERE u.b < p.a) AS c2 FROM r AS p LEFT JOIN r AS q "
            "ON p.a = q.a WHERE p.a NOT IN (SELECT u.b FROM s AS u WHERE u.b = p.a)"
        ),
    )
    found = constructs(Scenario((), (view,)), view)
    assert set(found) <= set(NAMES)
    assert found == [
        "LEFT JOIN",
        "NOT IN (SELECT)",
        "a scalar subquery",
        "correlated by =",
        "correlated by a range",
        "MIN, MAX",
        "a self join",
    ]
