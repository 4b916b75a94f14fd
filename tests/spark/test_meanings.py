"""Spark answers what the table of meanings says that it answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.meanings import ERROR, QUESTIONS, TABLES, comparable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def asked(spark: Any) -> Any:
    for table, (columns, rows) in TABLES.items():
        spark.createDataFrame(rows, columns).createOrReplaceTempView(table)
    return spark


def test_spark_answers_as_the_table_says(asked: Any) -> None:
    for name, question in QUESTIONS.items():
        try:
            found = comparable(asked.sql(question.query).collect())
        except Exception:
            assert question.spark == ERROR, name
            continue
        assert question.spark != ERROR and found == comparable(question.spark), name
