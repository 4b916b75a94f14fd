"""Spark's answers in tests/sql/spark_intervals.json are those of the installed Spark.

``python -m tests.spark.test_intervals 'INTERVAL 1 DAY * 2'`` adds the expressions that are given to the file, and asks
Spark for all others again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sql.test_intervals import ANSWERS
from tests.tiers import some

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.long("asks Spark hundreds of questions")]

PATH = Path(__file__).parents[1] / "sql" / "spark_intervals.json"


def asked(spark: Any, expression: str) -> list[str | None] | None:
    """The type of an expression over constants and its text; only the type if it fails, None if Spark refuses it."""
    from pyspark.errors import PySparkException

    try:
        typed = spark.sql(f"SELECT {expression} AS y").schema[0].dataType.simpleString()
    except PySparkException:
        return None
    try:
        return [typed, spark.sql(f"SELECT CAST({expression} AS STRING) AS y").collect()[0][0]]
    except PySparkException:
        return [typed]


def test_spark_computes_the_recorded_intervals(spark: Any) -> None:
    for expression in some(ANSWERS):
        assert asked(spark, expression) == ANSWERS[expression], expression


if __name__ == "__main__":
    from freshviews.spark.session import start_session

    session = start_session("local[1]", {}, quiet=True)
    made = {one: asked(session, one) for one in (*ANSWERS, *sys.argv[1:])}
    lines = ",\n".join(f"{json.dumps(one)}: {json.dumps(found, ensure_ascii=False)}" for one, found in made.items())
    PATH.write_text(f"{{\n{lines}\n}}\n")
    session.stop()
