"""The engine, the interpreter, the oracle and DuckDB agree, on a table of cases and on random views and streams.

Compiled code runs a part of the table over many streams; all of it, and the random scenarios, run with kernels and
generated code as plain Python (test_plain_python.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.agreement.agreement import BAGS_BY_TRACE, EVERY_STRATEGY, check
from tests.agreement.bulk import check_bulk
from tests.agreement.cases import ALIKE, COMPILED
from tests.agreement.choices import seeded
from tests.agreement.random_tables import versions
from tests.agreement.sql_queries import scenario
from tests.agreement.views_of_script import FACTORISED

STREAMS = 12

DIAGONAL: dict[str | None, tuple[str, ...]] = {
    None: ("a join, doubles",),
    "recompute": ("an inequality join, doubles",),
    "first_order": ("a condition across tables, distinct values",),
    "change_propagation": ("a product, rows",),
    "higher_order": ("a star, integers",),
    "view_tree": ("a self join, extremes",),
    FACTORISED: ("a path, rows",),
    "crown": ("a path, rows", "a join over Z, rows"),
    "ivm_eps": ("a triangle, decimals",),
    "ivm_eps_linear": ("a triangle, decimals",),
    "trie_join": ("a triangle of one table, integers", "a join over Z, counts"),
    "incremental_trie_join": ("groups by columns of several tables",),
}
"""The cases that ``make test`` compiles under each strategy; the strategy maintains them."""


def _pairs() -> list[Any]:
    return [
        pytest.param(strategy, name, marks=[] if name in DIAGONAL[strategy] else [pytest.mark.full])
        for strategy in EVERY_STRATEGY
        for name in COMPILED
    ]


@pytest.mark.large(60)
@pytest.mark.parametrize(("strategy", "name"), _pairs())
def test_compiled_code_agrees_with_the_oracle_over_many_streams(strategy: str | None, name: str) -> None:
    case = COMPILED[name]
    for seed in range(STREAMS):
        wild = seed % 4 == 3
        stream = versions(seeded(seed), case.tables, wild)
        maintained = check(replace(case, versions=stream, duckdb=not wild), [strategy], interpreted=False)
        assert maintained == [strategy] or name not in DIAGONAL[strategy]


@pytest.mark.sample(7)
@pytest.mark.parametrize("strategy", ["crown", BAGS_BY_TRACE])
@pytest.mark.parametrize("name", ALIKE)
def test_compiled_crown_agrees_with_the_oracle_on_isomorphic_bags(name: str, strategy: str) -> None:
    case = ALIKE[name]
    for seed in range(4):
        check(replace(case, versions=versions(seeded(seed), case.tables, False)), [strategy], interpreted=False)


@pytest.mark.large(20)
@pytest.mark.full
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_agrees_with_duckdb_on_many_rows(name: str) -> None:
    cubic = ("triangle", "star", "product", "inequality", "path")
    check_bulk(COMPILED[name], EVERY_STRATEGY, rows=150 if any(word in name for word in cubic) else 400, seed=1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(2))
def test_compiled_code_agrees_with_the_oracle_on_random_views(seed: int) -> None:
    check(scenario(seeded(seed)), [None], interpreted=False, database=("live", "late", "durable")[seed % 3])
