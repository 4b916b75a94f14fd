"""Rules under every strategy, with kernels and generated code as plain Python: started by ``test_rules.py``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.agreement.agreement import check
from tests.agreement.choices import seeded
from tests.agreement.profile import SHARE, SHARES
from tests.agreement.random_tables import versions
from tests.rules.meanings import MEANINGS, TABLES, scenario_of


@pytest.mark.parametrize("name", sorted(MEANINGS)[SHARE::SHARES])
def test_every_strategy_agrees_with_the_sql_of_a_rule(name: str) -> None:
    for seed, database in enumerate((None, "late", "durable")):
        stream = versions(seeded(seed), TABLES, False)
        case = replace(scenario_of(name), versions=stream)
        if database is None:
            check(case)
        else:
            check(case, (None,), database=database)
