"""Columns that random joins name exist, and are unambiguous."""

from __future__ import annotations

import pytest

from freshviews.errors import UnsupportedSql
from tests.agreement.choices import seeded
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Term
from tests.agreement.sql_from import Readable, from_clause
from tests.cells.simulated import catalog_of

pytestmark = pytest.mark.plain_python(only=True)

TABLES = "CREATE TABLE t (c1 BIGINT, c2 BIGINT); CREATE TABLE sums (c1 BIGINT, product0 DOUBLE, c2 DOUBLE);"


def readable(name: str, **kinds: str) -> Readable:
    return Readable(Text.same(name), tuple(Term(Text.same(column), kind) for column, kind in kinds.items()))


T = readable("t", c1="int", c2="int")
SUMS = readable("sums", c1="int", product0="matrix", c2="matrix")
"""A relation with sums of products, which joins do not read: the last one has the name of a column of ``t``."""


@pytest.mark.parametrize("relations", [(T, SUMS), (SUMS, T), (SUMS, SUMS), (T, SUMS, T), (T, T, SUMS), (SUMS, T, SUMS)])
def test_random_using_and_natural_joins_agree_with_duckdb(relations: tuple[Readable, ...]) -> None:
    by_name = 0
    for seed in range(80):
        text, visible, _ = from_clause(seeded(seed), relations)
        by_name += "USING" in text.spark or "NATURAL" in text.spark
        assert "NATURAL" not in text.spark or T in relations
        assert not any(column.kind == "matrix" for column in visible)
        try:
            catalog_of(f"{TABLES} CREATE MATERIALIZED VIEW v AS SELECT {visible[0].text.spark} AS c FROM {text.spark};")
        except UnsupportedSql:
            continue
    assert by_name > 4
