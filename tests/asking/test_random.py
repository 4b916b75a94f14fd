"""A random SELECT has the types and rows of the view over it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import freshviews as fv
from freshviews.errors import FreshviewsError, UnsupportedSql
from tests.agreement.choices import Choices, seeded
from tests.agreement.duckdb_peer import comparable
from tests.agreement.scenario import Scenario
from tests.agreement.sql_dependent import dependent_scenario
from tests.agreement.sql_forms import forms_scenario
from tests.agreement.sql_queries import scenario
from tests.agreement.sql_sets import set_scenario

pytestmark = pytest.mark.plain_python(only=True)


def scenario_of(choose: Choices) -> Scenario:
    return choose.pick((scenario, scenario, dependent_scenario, set_scenario, forms_scenario))(choose)


@pytest.mark.seeds(100)
def test_a_random_select_returns_the_rows_of_a_view_with_the_same_query(seed: int) -> None:
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
            if "STRING_AGG" in view.query.spark or "ANY_VALUE" in view.query.spark:  # of equal keys in any order
                continue
            try:
                mine = db.sql(view.query.spark).to_arrow()
            except UnsupportedSql:
                continue
            assert mine.schema.types == expected.schema.types, view.query.spark
            rows = [Counter(map(comparable, zip(*one.to_pydict().values(), strict=True))) for one in (mine, expected)]
            assert rows[0] == rows[1], view.query.spark


NUMBERS = ("{n} + {n}", "{n} - {n}", "{n} * {n}", "~{n}", "-{n}", "{n} & {n}", "{n} | {n}", "{n} ^ {n}", "({n})",
           "{n} % 3", "{n} DIV 3", "CASE WHEN {c} THEN {n} ELSE {n} END")  # fmt: skip
CONDITIONS = ("{n} < {n}", "{n} = {n}", "{n} <> {n}", "{n} <=> {n}", "NOT {c}", "{c} AND {c}", "{c} OR {c}", "({c})",
              "{n} BETWEEN {n} AND {n}", "{n} IS NOT NULL", "({c}) = ({c})", "({c}) IS TRUE", "{n} NOT IN (1, {n})",
              "s LIKE ANY ('a%', '%b')", "{n} = ANY (ARRAY[1, {n}])")  # fmt: skip
LEAVES = {"n": ("a", "b", "1", "2", "3", "-1"), "c": ("p", "a < b", "s LIKE 'a%'", "s IS NULL", "a IN (1, 2)")}


def expression(choose: Choices, kind: str, depth: int) -> str:
    if depth == 0:
        return choose.pick(LEAVES[kind])
    parts = re.split(r"\{(\w)\}", choose.pick(NUMBERS if kind == "n" else CONDITIONS))
    return "".join(expression(choose, part, depth - 1) if at % 2 else part for at, part in enumerate(parts))


@pytest.mark.seeds(100)
def test_a_select_and_a_view_have_the_same_operator_precedence(seed: int) -> None:
    choose = seeded(seed)
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a INT, b INT, s STRING, p BOOLEAN)")
        numbers, texts, flags = (None, *range(-4, 9)), ("a", "ab", "b", "", None), (True, False, None)
        db.insert("t", [tuple(map(choose.pick, (numbers, numbers, texts, flags))) for _ in range(10)])
        query = f"SELECT {expression(choose, 'n', 3)} AS x, {expression(choose, 'c', 3)} AS y FROM t"
        try:
            db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        except FreshviewsError:
            return
        expected = Counter(tuple(row.values()) for row in db.view("v").to_arrow().to_pylist())
        assert Counter(db.sql(query)) == expected, query
