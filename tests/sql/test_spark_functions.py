"""Functions have Spark's values, types and errors, row by row: spark_functions.json has Spark's answers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from freshviews import Database
from freshviews.errors import EvaluationError
from freshviews.types import NULL
from tests.sql.function_calls import CALLS, TYPES, columns_of, rows_of
from tests.sql.printed import catalog, column_types, view

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

ERROR = ["an error"]
PATH = Path(__file__).with_name("spark_functions.json")
ANSWERS: dict[str, dict[str, Any]] = json.loads(PATH.read_text()) if PATH.exists() else {}


def plain(value: Any) -> Any:
    """A value as JSON: doubles, decimals, dates and moments as texts in a list. Intervals are cast to texts before."""
    return value if value is None or isinstance(value, str | bool | int) else [str(value)]


def close(one: Any, other: Any) -> bool:
    """True for equal answers; doubles may differ in their last bits, and the least BIGINT is an error here."""
    if one == ERROR and other == NULL:
        return True
    if one == other or ERROR in (one, other) or not (isinstance(one, list) and isinstance(other, list)):
        return bool(one == other)
    try:
        x, y = float(one[0]), float(other[0])
    except ValueError:
        return False
    return math.isclose(x, y, rel_tol=1e-13) or (math.isnan(x) and math.isnan(y))


def answers(call: str) -> tuple[str, list[Any]]:
    """The type of a call here, and its answer for each row."""
    columns = columns_of(call)
    table = f"CREATE TABLE q (at INT, {', '.join(f'{name} {TYPES[name[0]]}' for name in columns)})"
    query = f"SELECT at, {call} AS y FROM q"
    kind = column_types(view(query, catalog(f"{table};"))).split(", y ")[1].removesuffix(" NOT NULL")
    query = query if not kind.startswith("INTERVAL") else f"SELECT at, CAST({call} AS STRING) AS y FROM q"
    with Database() as database:
        database.execute(table)
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        found: dict[int, Any] = {}
        for at, row in enumerate(rows_of(call)):
            try:
                database.insert("q", [(at, *row)])
            except EvaluationError:
                found[at] = ERROR
        found |= {at: plain(value) for at, value in database.view("v")}
    return kind.lower().replace(", ", ","), [found[at] for at in sorted(found)]


def test_every_tested_function_call_has_recorded_answers() -> None:
    assert list(ANSWERS) == list(CALLS)


@pytest.mark.sample(10)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_the_answers_recorded_from_spark(call: str) -> None:
    kind, found = answers(call)
    recorded = ANSWERS[call]
    differing = [
        (row, here, there)
        for row, here, there in zip(rows_of(call), found, recorded["answers"], strict=True)
        if not close(here, there)
    ]
    assert not differing, f"{len(differing)} rows differ; the first is {differing[0]}"
    assert kind == recorded["type"].replace("timestamp_ntz", "timestamp")
