"""Spark's answers equal those in the table of meanings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.meanings import ERROR, QUESTIONS, REFUSED, TABLES, comparable
from tests.tiers import some

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def asked(spark: Any) -> Any:
    for table, (columns, rows) in TABLES.items():
        spark.createDataFrame(rows, columns).createOrReplaceTempView(table)
    return spark


IN_4_1 = {"the empty grouping set alone": [], "a constant has no correlation": ERROR}
"""Questions that Spark 4.1 answers in another way: no group without rows, as if the set were not empty; a division by
zero."""


def test_spark_returns_the_answers_in_the_table_of_meanings(asked: Any) -> None:
    others = IN_4_1 if asked.version.startswith("4.1.") else {}
    for name, question in some((QUESTIONS | REFUSED).items()):
        expected = others.get(name, question.spark)
        try:
            found = comparable(asked.sql(question.query).collect())
        except Exception:
            assert expected == ERROR, name
            continue
        assert expected != ERROR and found == comparable(expected), name
