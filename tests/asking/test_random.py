"""A random SELECT has the types and rows of the view over it."""

from __future__ import annotations

from collections import Counter

import pytest

import freshviews as fv
from freshviews.errors import FreshviewsError, UnsupportedSql
from tests.agreement.choices import Choices, seeded
from tests.agreement.duckdb_peer import comparable
from tests.agreement.scenario import Scenario
from tests.agreement.sql_dependent import dependent_scenario
from tests.agreement.sql_queries import scenario
from tests.agreement.sql_sets import set_scenario

pytestmark = pytest.mark.plain_python(only=True)


def scenario_of(choose: Choices) -> Scenario:
    return choose.pick((scenario, scenario, dependent_scenario, set_scenario))(choose)


@pytest.mark.seeds(100)
def test_a_random_select_has_the_rows_of_its_view(seed: int) -> None:
    found = scenario_of(seeded(seed))
    if any(table.trusted for table in found.tables) or not found.duckdb:
        return
    with fv.Database() as db:
        db.execute(";\n".join(one.text.spark for one in (*found.tables, *found.plain)))
        for version in found.versions[:4]:
            with db.batch() as batch:
                for table, updates in version:
                    for row, multiplicity in updates:
                        (batch.insert if multiplicity > 0 else batch.delete)(table, [row] * abs(multiplicity))
        for view in found.views:
            try:
                db.execute(view.text.spark)
                expected = db.view(view.name).to_arrow()
            except FreshviewsError:
                return
            if "STRING_AGG" in view.query.spark:  # of equal keys in any order
                continue
            try:
                mine = db.sql(view.query.spark).to_arrow()
            except UnsupportedSql:
                continue
            assert mine.schema.types == expected.schema.types, view.query.spark
            rows = [Counter(map(comparable, zip(*one.to_pydict().values(), strict=True))) for one in (mine, expected)]
            assert rows[0] == rows[1], view.query.spark
