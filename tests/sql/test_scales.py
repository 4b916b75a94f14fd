"""Comparisons of integers and decimals of different scales never overflow, at any place of a query."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from freshviews import Database

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(8)]

INTEGERS = [2**62, 2**53, 1, 2, -1, -(2**62), 0, 2**63 - 1, None]
DECIMALS = [
    *map(Decimal, ("1.5000", "2.0000", "-1.0000", "0.5000", "99999999999999.9999", "-1.2500", "9007199254740.9920")),
    None,
]
CONSTANTS = ["0.5", "-0.5", "1.0", "1.5", "2", "-1.25", "9223372036854775807", "922337203685477580.7"]
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def rows_of(query: str) -> list[str]:
    with Database() as database:
        database.execute("CREATE TABLE b (b BIGINT); CREATE TABLE d (m DECIMAL(18, 4))")
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        database.insert("b", [(one,) for one in INTEGERS])
        database.insert("d", [(one,) for one in DECIMALS])
        return sorted(map(repr, map(tuple, database.view("v"))))


def shown(rows: Any) -> list[str]:
    return sorted(map(repr, rows))


def answer(holds: Callable[[Any, Any], bool], a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else holds(a, b)


@pytest.mark.parametrize("sign", SIGNS)
def test_a_comparison_with_a_constant_of_another_scale_does_not_overflow(sign: str) -> None:
    holds = SIGNS[sign]
    for column, table, values in (("b", "b", INTEGERS), ("m", "d", DECIMALS)):
        query = ", ".join(f"{column} {sign} {one} AS c{place}" for place, one in enumerate(CONSTANTS))
        expected = [(value, *(answer(holds, value, Decimal(one)) for one in CONSTANTS)) for value in values]
        assert rows_of(f"SELECT {column}, {query} FROM {table}") == shown(expected)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT b, m FROM b JOIN d ON b {} m",
        "SELECT b, m FROM b, d WHERE b {} m",
        "SELECT b, m FROM b, d GROUP BY b, m HAVING b {} m",
        "SELECT b, m FROM b, d WHERE CASE WHEN b {} m THEN TRUE END",
    ],
)
def test_a_comparison_of_columns_of_two_scales_does_not_overflow(sign: str, query: str) -> None:
    pairs = [(a, b) for a in INTEGERS for b in DECIMALS if answer(SIGNS[sign], a, b)]
    assert rows_of(query.format(sign)) == shown(pairs)


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("SELECT b FROM b WHERE b IN (1.5, 2)", [2]),
        ("SELECT b FROM b WHERE b NOT IN (1.5, 2)", [one for one in INTEGERS if one not in (2, None)]),
        ("SELECT b FROM b WHERE b BETWEEN 0.5 AND 1.5", [1]),
        (f"SELECT b FROM b WHERE b IN ({', '.join(f'{i}.{i % 10}' for i in range(1005))})", [0]),
        (f"SELECT m FROM d WHERE m IN ({', '.join(f'{i}.{i % 2 * 5}' for i in range(1005))})",
         [Decimal("1.5000"), Decimal("2.0000")]),
        ("SELECT b FROM b WHERE b IN (SELECT m FROM d)", [2, -1]),
        ("SELECT b FROM b WHERE EXISTS (SELECT 1 FROM d WHERE d.m = b.b)", [2, -1]),
        ("SELECT m FROM d WHERE m NOT IN (SELECT b FROM b WHERE b IS NOT NULL AND b > 0)",
         [one for one in DECIMALS if one not in (2, None)]),
        ("SELECT b FROM b WHERE b <=> 2.0", [2]),
        ("SELECT b FROM b LEFT JOIN d ON b = m WHERE m IS NULL", [one for one in INTEGERS if one not in (2, -1)]),
    ],
)  # fmt: skip
def test_a_query_over_two_scales_does_not_overflow(query: str, values: list[Any]) -> None:
    assert rows_of(query) == shown((one,) for one in values)


def test_null_safe_equality_at_two_scales_matches_null_with_null() -> None:
    pairs = [(2, Decimal("2.0000")), (-1, Decimal("-1.0000")), (None, None)]
    assert rows_of("SELECT b, m FROM b JOIN d ON b <=> m") == shown(pairs)
