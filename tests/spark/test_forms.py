"""Spark's answers to the forms of tests/sql/forms.py are those that are recorded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.forms import FORMS, TABLES
from tests.sql.meanings import comparable
from tests.tiers import some

pytestmark = pytest.mark.spark


def test_spark_returns_the_recorded_answers_of_all_query_forms(spark: Any) -> None:
    if not spark.version.startswith("4.1."):
        pytest.skip("the pipe operator and others came in Spark 4.1")
    for table, (columns, rows) in TABLES.items():
        spark.createDataFrame(rows, columns).createOrReplaceTempView(table)
    for query, rows in some(FORMS.items()):
        assert comparable(spark.sql(query).collect()) == comparable(rows), query
