"""SELECTs have the types, rows and errors of Spark, but for those that are listed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from freshviews.asking import bound, question_of, relations_of, run, translated
from freshviews.errors import FreshviewsError
from freshviews.sql import Catalog, parse_script
from tests.asking.questions import ANSWERS, DIFFERENT, REFUSED, TABLE, TABLES, WIDER, printed, same

pytestmark = pytest.mark.plain_python(only=True)

(_DEFINED,) = parse_script(TABLE, Catalog())
CATALOG = Catalog().after(_DEFINED)


def answer(sql: str, rows: pa.Table) -> pa.Table:
    question = question_of(sql)
    values, kinds = bound(question, None)
    found = translated(question, relations_of(question, CATALOG), kinds)
    return run(found, {name: rows.select(columns) for name, _, columns in found.reads}, values)


@pytest.mark.full
def test_a_select_returns_the_same_types_and_rows_as_spark() -> None:
    different, refused, wider = set(), set(), set()
    for table, sql, types, rows in ANSWERS:
        try:
            mine = printed(answer(sql, TABLES[table]))
        except FreshviewsError:
            if types is not None:
                refused.add(sql)
            continue
        if types is None or rows is None:
            wider.add(sql)
        elif " UNION " in sql and "ORDER BY" not in sql:
            assert same((mine[0], sorted(mine[1])), types, sorted(rows)), sql
        elif not same(mine, types, rows):
            different.add(sql)
    assert refused == set(REFUSED)
    assert wider == set(WIDER)
    known = {f"SELECT {one} AS y FROM q" for one in DIFFERENT}
    grouped = {f"SELECT t, {one} AS y FROM q GROUP BY t ORDER BY t" for one in DIFFERENT}
    assert known <= different <= known | grouped


@pytest.mark.parametrize("expression", DIFFERENT)
def test_expressions_that_differ_from_spark_return_the_listed_values(expression: str) -> None:
    sql = f"SELECT {expression} AS y FROM q"
    table = next(table for table, asked, _, _ in ANSWERS if asked == sql)
    assert printed(answer(sql, TABLES[table]))[1] == [[DIFFERENT[expression]]]
