"""Agreement with kernels and generated code as plain Python.

Compiling a random query takes Numba a second or more; as plain Python its scenario takes a tenth of that.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from freshviews.errors import UnsupportedSql
from freshviews.kernel.memory import mem
from tests.agreement.agreement import BAGS_BY_TRACE, EVERY_STRATEGY, check
from tests.agreement.cases import ALIKE, CASES
from tests.agreement.choices import seeded
from tests.agreement.random_tables import versions
from tests.agreement.scenario import Scenario
from tests.agreement.shrinking import is_allowed, shrunk
from tests.agreement.sql_forms import forms_scenario
from tests.agreement.sql_places import places_scenario, range_scenario
from tests.agreement.sql_queries import scenario, scenarios
from tests.agreement.sql_sets import set_scenario
from tests.agreement.sql_top import top_scenario
from tests.agreement.views_of_script import definitions_of
from tests.tiers import CHANGE, QUICK, in_turn

pytestmark = pytest.mark.plain_python(only=True)

_DATABASES = (None, "live", None, "late", None, "live", None, "durable")


def test_kernels_run_as_plain_python_in_this_module() -> None:
    assert mem.PURE_PYTHON


@pytest.mark.long("all strategies, in plain Python, over one case")
@pytest.mark.sample(5)
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_strategy_agrees_with_the_oracle_on_the_table_of_cases(name: str) -> None:
    case, number = CASES[name], sorted(CASES).index(name)
    for seed, database in in_turn(((0, None), (1, "late"), (2, "durable")), number):
        wild = seed == 2
        stream = versions(seeded(seed), case.tables, wild)
        # make test-change runs every third strategy, in turn: the number without the ways above.
        several = EVERY_STRATEGY[number // 3 % 3 :: 3] if CHANGE else EVERY_STRATEGY
        strategies = several if database is None or (wild and not QUICK) else (None,)
        check(replace(case, versions=stream, duckdb=not wild), strategies, database=database)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(ALIKE))
def test_crown_agrees_with_the_oracle_on_isomorphic_bags(name: str) -> None:
    case = ALIKE[name]
    for seed in range(3):
        stream = versions(seeded(seed), case.tables, seed == 2)
        check(replace(case, versions=stream, duckdb=seed != 2), ["crown", BAGS_BY_TRACE])


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(name for name in CASES if "triangle" in name))
def test_traced_bags_agree_with_the_oracle_on_triangles(name: str) -> None:
    case = CASES[name]
    for seed in range(2):
        check(replace(case, versions=versions(seeded(seed), case.tables, False)), [BAGS_BY_TRACE])


@pytest.mark.seeds(192)
def test_every_strategy_agrees_with_the_oracle_on_random_views(seed: int) -> None:
    found = scenario(seeded(seed))
    # Every commit of a durable database is synced, which is slow.
    database = _DATABASES[seed % len(_DATABASES)]
    _check(found, EVERY_STRATEGY, database)


@pytest.mark.long("all strategies, in plain Python, over each scenario")
@pytest.mark.full
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios())
def test_every_strategy_agrees_with_the_oracle_on_views_that_hypothesis_generates(drawn: Scenario) -> None:
    check(drawn)


@pytest.mark.seeds(100)
def test_random_set_operations_agree_with_the_oracle(seed: int) -> None:
    _check_alone(set_scenario(seeded(seed)), seed, (None, "crown", "recompute"))


@pytest.mark.seeds(40)
def test_first_rows_in_random_orders_agree_with_the_oracle(seed: int) -> None:
    _check_alone(top_scenario(seeded(seed)), seed, (None, "first_order"))


def _check_alone(found: Scenario, seed: int, strategies: tuple[str | None, ...]) -> None:
    _check(found, strategies, _DATABASES[seed % len(_DATABASES)])


@pytest.mark.seeds(24)
def test_random_pipes_and_pivots_agree_with_the_oracle(seed: int) -> None:
    _check_alone(forms_scenario(seeded(seed)), seed, (None, "first_order"))


@pytest.mark.seeds(40)
def test_random_subqueries_in_every_clause_agree_with_the_oracle(seed: int) -> None:
    _check_accepted(places_scenario(seeded(seed), refused=False), seed)


@pytest.mark.seeds(40)
def test_random_range_joins_and_running_sums_agree_with_the_oracle(seed: int) -> None:
    _check_accepted(range_scenario(seeded(seed)), seed)


def _check_accepted(found: Scenario, seed: int) -> None:
    """Compares scenarios; some constructs, such as a subquery with grouping sets, are refused by name."""
    try:
        definitions_of(found)
    except UnsupportedSql:
        return
    strategies = EVERY_STRATEGY if seed % 2 else (None, "first_order")
    _check(found, strategies, _DATABASES[seed % len(_DATABASES)])


def _check(found: Scenario, strategies: tuple[str | None, ...], database: str | None) -> None:
    """Compare; a failure is shown with the shortest stream that fails in the same way."""
    try:
        check(found, strategies, database=database)
    except Exception as failure:
        kind = type(failure)

        def fails(less: Scenario) -> bool:
            if not is_allowed(less):
                return False
            try:
                check(less, strategies, database=database)
            except kind:
                return True
            except Exception:
                return False
            return False

        least = shrunk(found, fails)
        raise AssertionError(f"fails; its shortest stream fails, too:\n{least}") from failure
