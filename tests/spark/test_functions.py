"""Spark's answers in tests/sql/spark_functions.json are those of the installed Spark."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.sql.function_calls import CALLS, TYPES, columns_of, rows_of
from tests.sql.test_spark_functions import ANSWERS, ERROR, PATH, close, plain
from tests.tiers import some


def literal(column: str, value: Any) -> str:
    """A value of a column as a literal."""
    kind = TYPES[column[0]].replace("TIMESTAMP", "TIMESTAMP_NTZ")
    if isinstance(value, timedelta):
        seconds = Decimal(value // timedelta(microseconds=1)).scaleb(-6)
        return f"CAST(CAST(CAST('{seconds:f}' AS DECIMAL(20, 6)) AS INTERVAL DAY TO SECOND) AS {kind})"
    if kind == TYPES["o"] and value is not None:
        return f"CAST(CAST({value} AS INTERVAL MONTH) AS {kind})"
    if value is None:
        return f"CAST(NULL AS {kind})"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{text}'" if kind == "STRING" else f"CAST('{text}' AS {kind})"


def asked(spark: Any, call: str) -> dict[str, Any]:
    """The type of a call, and its answer for each row."""
    from pyspark.errors import PySparkException

    columns, rows = columns_of(call), rows_of(call)
    names = ", ".join(columns)

    def asking(some: list[tuple[Any, ...]]) -> Any:
        texts = (", ".join(literal(name, value) for name, value in zip(columns, row, strict=True)) for row in some)
        return spark.sql(f"SELECT {call} AS y FROM VALUES {', '.join(f'({one})' for one in texts)} AS q({names})")

    def answers(some: list[tuple[Any, ...]]) -> list[Any]:
        try:
            return [plain(one[0]) for one in asking(some).collect()]
        except PySparkException:
            half = len(some) // 2
            return [*answers(some[:half]), *answers(some[half:])] if half else [ERROR]

    typed = asking(rows).schema[0].dataType.simpleString()
    if typed.startswith("interval"):
        call = f"CAST({call} AS STRING)"  # Python has no value of months.
    return {"type": typed, "answers": answers(rows)}


pytestmark = pytest.mark.spark


@pytest.mark.full
@pytest.mark.long("asks Spark thousands of questions")
def test_spark_computes_the_recorded_answers_of_every_function_call(spark: Any) -> None:
    for call in some(CALLS):
        found = asked(spark, call)
        assert found["type"] == ANSWERS[call]["type"], call
        assert all(map(close, found["answers"], ANSWERS[call]["answers"])), call


if __name__ == "__main__":
    from freshviews.spark.session import start_session

    session = start_session("local[1]", {}, quiet=True)
    only = [call for call in CALLS if any(word in call for word in sys.argv[1:])] if sys.argv[1:] else list(CALLS)
    made = {call: asked(session, call) if call in only or call not in ANSWERS else ANSWERS[call] for call in CALLS}
    lines = ",\n".join(f"{json.dumps(call)}: {json.dumps(made[call], ensure_ascii=False)}" for call in CALLS)
    PATH.write_text(f"{{\n{lines}\n}}\n".replace(3 * "X", "X\\u0058X"))  # no marker of work that is left
    session.stop()
