"""Spark's answers to the questions of tests/asking are those that are recorded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.asking.questions import ANSWERS, TABLES, printed, same
from tests.tiers import some

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.long("asks Spark a thousand SELECTs, one by one")]


def test_spark_computes_the_recorded_answers_of_every_query(spark: Any) -> None:
    for table, sql, types, rows in some(ANSWERS):
        given = TABLES[table]
        zoned = given.set_column(11, "ts", given.column("ts").cast(pa.timestamp("us", "UTC")))
        spark.createDataFrame(zoned).createOrReplaceTempView("q")
        try:
            found = printed(spark.sql(sql).toArrow())
        except Exception:
            assert types is None, sql
            continue
        assert types is not None and rows is not None, sql
        if "ORDER BY" in sql or len(rows) < 2:
            assert same(found, types, rows), sql
