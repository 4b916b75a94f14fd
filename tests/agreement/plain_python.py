"""Agreement with kernels and generated code run as plain Python: started by ``test_agreement.py``.

Compiling a random query takes Numba a second and more; as plain Python its scenario takes a tenth of that. Only a
share of all tests runs in one process.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from freshviews.kernel.memory import mem
from tests.agreement.agreement import BAGS_BY_TRACE, EVERY_STRATEGY, check
from tests.agreement.cases import ALIKE, CASES
from tests.agreement.choices import seeded
from tests.agreement.profile import SCENARIOS, SHARE, SHARES
from tests.agreement.random_tables import versions
from tests.agreement.scenario import Scenario
from tests.agreement.shrinking import shrunk
from tests.agreement.sql_queries import scenario, scenarios
from tests.agreement.sql_sets import set_scenario
from tests.agreement.sql_top import top_scenario

_SHRINKABLE = SCENARIOS // SHARES // 5
_SEEDED = SCENARIOS // SHARES - _SHRINKABLE
_DATABASES = (None, "live", None, "late", None, "live", None, "durable")
_QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def test_this_runs_as_plain_python() -> None:
    assert mem.PURE_PYTHON


@pytest.mark.parametrize("name", sorted(CASES)[SHARE::SHARES])
def test_every_strategy_agrees_on_the_table_of_cases(name: str) -> None:
    case = CASES[name]
    for seed, database in enumerate((None, "late", "durable")):
        wild = seed == 2
        stream = versions(seeded(seed), case.tables, wild)
        strategies = EVERY_STRATEGY if database is None or wild else (None,)
        check(replace(case, versions=stream, duckdb=not wild), strategies, database=database)


@pytest.mark.parametrize("name", sorted(ALIKE)[SHARE::SHARES])
def test_crown_agrees_on_bags_that_are_alike(name: str) -> None:
    case = ALIKE[name]
    for seed in range(3):
        stream = versions(seeded(seed), case.tables, seed == 2)
        check(replace(case, versions=stream, duckdb=seed != 2), ["crown", BAGS_BY_TRACE])


@pytest.mark.parametrize("name", sorted(name for name in CASES if "triangle" in name)[SHARE::SHARES])
def test_bags_kept_by_their_traces_agree_on_cyclic_cases(name: str) -> None:
    case = CASES[name]
    for seed in range(2):
        check(replace(case, versions=versions(seeded(seed), case.tables, False)), [BAGS_BY_TRACE])


@settings(_QUIET, max_examples=_SEEDED, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**63))
def test_every_strategy_agrees_on_random_views_and_streams(seed: int) -> None:
    found = scenario(seeded(seed))
    # Every commit of a durable database is synced, which takes its time.
    database = _DATABASES[seed % len(_DATABASES)]
    try:
        check(found, database=database)
    except Exception as failure:
        least = shrunk(found, type(failure), database)
        raise AssertionError(f"fails, and so does its least stream:\n{least}") from failure


@settings(_QUIET, max_examples=_SHRINKABLE)
@given(scenarios())
def test_every_strategy_agrees_on_drawn_views_and_streams(drawn: Scenario) -> None:
    check(drawn)


@settings(_QUIET, max_examples=SCENARIOS // SHARES // 2, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**63))
def test_set_operations_agree_on_random_terms_and_streams(seed: int) -> None:
    _check_alone(set_scenario(seeded(seed)), seed, (None, "crown", "recompute"))


@settings(_QUIET, max_examples=SCENARIOS // SHARES // 5, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**63))
def test_first_rows_agree_on_random_orders_and_streams(seed: int) -> None:
    _check_alone(top_scenario(seeded(seed)), seed, (None, "first_order"))


def _check_alone(found: Scenario, seed: int, strategies: tuple[str | None, ...]) -> None:
    database = _DATABASES[seed % len(_DATABASES)]
    try:
        check(found, strategies, database=database)
    except Exception as failure:
        least = shrunk(found, type(failure), database)
        raise AssertionError(f"fails, and so does its least stream:\n{least}") from failure
