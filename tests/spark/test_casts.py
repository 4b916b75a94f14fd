"""Spark answers the casts of tests/expr/test_spark_casts.py as stored."""

from __future__ import annotations

from typing import Any

import pytest

from freshviews.types import DATE, DOUBLE, TIMESTAMP, SqlType
from tests.expr.test_spark_casts import TEXTS, TYPES


def _asked(to: SqlType) -> str:
    made = f"TRY_CAST(s AS {to})"
    return f"unix_date({made})" if to == DATE else f"unix_micros({made})" if to == TIMESTAMP else made


@pytest.mark.spark
@pytest.mark.full
def test_spark_casts_texts_to_the_recorded_values(spark: Any) -> None:
    texts = [(i, text) for i, (text, _) in enumerate(TEXTS)]
    spark.createDataFrame(texts, "i int, s string").createOrReplaceTempView("q")
    rows = spark.sql(f"SELECT i, {', '.join(map(_asked, TYPES))} FROM q").collect()
    assert len(rows) == len(TEXTS)
    for i, *values in rows:
        shown = [repr(v + 0.0) if t == DOUBLE and v is not None else v for t, v in zip(TYPES, values, strict=True)]
        shown = [str(v) if t.is_decimal and v is not None else v for t, v in zip(TYPES, shown, strict=True)]
        text, answers = TEXTS[i]
        assert {str(t): v for t, v in zip(TYPES, shown, strict=True) if v is not None} == answers, text
