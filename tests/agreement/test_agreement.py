"""The engine, the interpreter, the oracle and DuckDB agree, on a table of cases and on random views and streams.

Compiled code runs a part of the table over many streams; all of it, and the random scenarios, run with kernels and
generated code as plain Python in processes of their own. See ``profile.py`` for how much.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.agreement.agreement import BAGS_BY_TRACE, EVERY_STRATEGY, check
from tests.agreement.bulk import check_bulk
from tests.agreement.cases import ALIKE, COMPILED
from tests.agreement.choices import seeded
from tests.agreement.in_shares import run_as_plain_python
from tests.agreement.profile import SCENARIOS
from tests.agreement.random_tables import versions
from tests.agreement.sql_queries import scenario

STREAMS = 12


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("strategy", EVERY_STRATEGY)
def test_compiled_code_agrees_over_many_streams(name: str, strategy: str | None) -> None:
    case = COMPILED[name]
    for seed in range(STREAMS):
        wild = seed % 4 == 3
        stream = versions(seeded(seed), case.tables, wild)
        check(replace(case, versions=stream, duckdb=not wild), [strategy], interpreted=False)


@pytest.mark.parametrize("strategy", ["crown", BAGS_BY_TRACE])
@pytest.mark.parametrize("name", ALIKE)
def test_compiled_code_agrees_on_bags_that_are_alike(name: str, strategy: str) -> None:
    case = ALIKE[name]
    for seed in range(4):
        check(replace(case, versions=versions(seeded(seed), case.tables, False)), [strategy], interpreted=False)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_agrees_with_duckdb_on_many_rows(name: str) -> None:
    cubic = ("triangle", "star", "product", "inequality", "path")
    check_bulk(COMPILED[name], EVERY_STRATEGY, rows=150 if any(word in name for word in cubic) else 400, seed=1)


@pytest.mark.parametrize("seed", range(min(8, SCENARIOS // 100)))
def test_compiled_code_agrees_on_random_views(seed: int) -> None:
    check(scenario(seeded(seed)), [None], interpreted=False, database=("live", "late", "durable")[seed % 3])


def test_plain_python_agrees_on_all_cases_and_on_random_views_and_streams() -> None:
    run_as_plain_python("tests/agreement/plain_python.py")
