"""Rules under every strategy, with kernels and generated code as plain Python."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.agreement.agreement import check
from tests.agreement.choices import seeded
from tests.agreement.random_tables import versions
from tests.rules.meanings import MEANINGS, TABLES, scenario_of

pytestmark = pytest.mark.plain_python(only=True)

NEGATED = sorted(name for name, (rules, _) in MEANINGS.items() if "!" in rules.replace("!=", ""))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NEGATED)
def test_a_view_with_negated_atoms_in_a_trace_has_the_rows_of_the_sql_of_its_rule(name: str) -> None:
    case = scenario_of(name, {"freshviews.strategy": "incremental_trie_join"})
    assert any("NOT EXISTS" in view.text.spark for view in case.views)
    for seed, database in enumerate((None, "late", "durable")):
        check(replace(case, versions=versions(seeded(seed), TABLES, False)), (None,), database=database)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_every_strategy_agrees_with_the_sql_of_a_rule(name: str) -> None:
    for seed, database in enumerate((None, "late", "durable")):
        stream = versions(seeded(seed), TABLES, False)
        case = replace(scenario_of(name), versions=stream)
        if database is None:
            check(case)
        else:
            check(case, (None,), database=database)
