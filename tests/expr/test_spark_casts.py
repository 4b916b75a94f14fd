"""CAST of a text has Spark's values, also for texts that nearly have the format of a type.

Each line of spark_casts.json is a text and Spark's TRY_CAST by type, NULL for an absent type. A DOUBLE is Python's
text of it, a DATE days and a TIMESTAMP microseconds. tests/spark/test_casts.py asks Spark again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from freshviews.expr.nodes import Literal
from freshviews.sql.expressions.attempts import try_cast
from freshviews.sql.expressions.build import NotHeld
from freshviews.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
    decimal,
)

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

TEXTS: list[tuple[str, dict[str, Any]]] = json.loads(Path(__file__).with_name("spark_casts.json").read_text())
TYPES = (TINYINT, SMALLINT, INT, BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, decimal(5, 2), decimal(18, 0))


def cast_of(text: str, to: SqlType) -> Any:
    """The code of TRY_CAST, in the form of the table."""
    made = try_cast(Literal(text, STRING), to)
    assert isinstance(made, Literal)
    if made.value is None or not (to.is_decimal or to == DOUBLE):
        return made.value
    if to == DOUBLE:
        return repr(float(made.value) + 0.0)
    shown = try_cast(made, STRING)
    assert isinstance(shown, Literal)
    return shown.value


@pytest.mark.parametrize("to", TYPES, ids=str)
def test_a_cast_of_a_text_returns_the_same_value_as_spark(to: SqlType) -> None:
    assert {text: cast_of(text, to) for text, _ in TEXTS} == {text: answers.get(str(to)) for text, answers in TEXTS}


@pytest.mark.parametrize("text", ["2019-10-06 10:11:12 Europe/Paris", "10:11", "T10:11:12", "2019-10-06 10:11:12 PST"])
def test_time_zone_names_and_times_without_a_day_are_refused(text: str) -> None:
    # Spark converts them by the zones of the machine and by the current day.
    assert cast_of(text, TIMESTAMP) is None


@pytest.mark.parametrize(
    ("text", "to"),
    [
        ("-9223372036854775808", BIGINT),
        (" -9223372036854775808\t", BIGINT),
        ("-290308-12-21 19:59:05.224192", TIMESTAMP),
        ("-9223372036854775808", decimal(19, 0)),
        ("99999999999999999999", decimal(38, 0)),
        ("1e17", decimal(38, 2)),
    ],
)
def test_a_value_beyond_64_bits_is_an_error(text: str, to: SqlType) -> None:
    with pytest.raises(NotHeld, match=r"stands for NULL|the 64 bits in which"):
        try_cast(Literal(text, STRING), to)
