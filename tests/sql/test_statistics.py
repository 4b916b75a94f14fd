"""BIT_XOR, SKEWNESS, KURTOSIS, TRY_SUM and TRY_AVG have Spark's values, also after deletes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from freshviews import Database
from freshviews.errors import BatchError, SqlError
from freshviews.kernel.memory.mem import PURE_PYTHON
from tests.sql.printed import catalog, column_types, view

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(9)]

COLUMNS = "y TINYINT, i INT, l BIGINT, x DOUBLE, p DECIMAL(2, 1), s STRING"
GREATEST = 2**63 - 1


def rows_of(items: str, rows: Sequence[Any]) -> list[Any]:
    """The one row of a view of aggregates, over rows of which some come and go."""
    with Database() as database:
        database.execute(f"CREATE TABLE t ({COLUMNS})")
        database.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {items} FROM t")
        passing = (3, 7, 123456789, 2.5e10, None, "3")
        database.insert("t", [passing, passing])
        database.insert("t", rows)
        database.delete("t", [passing, passing])
        ((found),) = database.view("v")
        return list(found)


FULL = ("y", "i", "l", "x", "p", "s")


def of(column: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows with these values in one column."""
    return [tuple(value if name == column else None for name in FULL) for value in values]


@pytest.mark.parametrize(
    ("items", "rows", "answer"),
    [
        ("bit_xor(i)", of("i", 1, 2, 2), [1]),
        ("bit_xor(y)", of("y", 1, 2, -128), [-125]),
        ("bit_xor(i), bit_xor(i) FILTER (WHERE i > 5)", of("i", 1, None), [1, None]),
        ("bit_xor(i), bit_xor(NULL)", [], [None, None]),
        ("bit_xor(l)", of("l", -(2**63) + 1, 1, 5), [-(2**63) + 5]),
        ("skewness(i), kurtosis(i)", of("i", 1, 2, 2, 10), [1.1099684291823666, -0.6973338424563691]),
        ("skewness(i), kurtosis(i)", of("i", 1), [None, None]),
        ("skewness(x), kurtosis(x)", of("x", 0.1, 0.1, 0.1), [None, None]),
        ("skewness(x), kurtosis(x)", of("x", 1.0, math.nan), [math.nan, math.nan]),
        ("skewness(s), kurtosis(NULL)", of("s", "1", "2", "2", "10"), [1.1099684291823666, None]),
        ("try_sum(l)", of("l", GREATEST, 1), [None]),
        ("try_sum(l)", of("l", GREATEST, GREATEST, 1 - GREATEST, -GREATEST), [1]),
        ("try_sum(l)", of("l", 1 - GREATEST, -3), [None]),
        ("try_avg(l)", of("l", GREATEST, 1, -5), [3.0744573456182584e18]),
        ("try_sum(l)", of("l", -GREATEST, 123), [123 - GREATEST]),
        ("try_sum(i), try_avg(i), try_sum(DISTINCT i)", of("i", 5, 5, 2), [12, 4.0, 7]),
        ("try_sum(l), try_avg(l)", of("l", None), [None, None]),
        ("try_sum(s), try_sum(DISTINCT s), try_sum(NULL)", of("s", "1", "1"), [2.0, 1.0, None]),
        ("regr_avgx(i, p), regr_avgy(p, i)", [(None, 1, None, None, Decimal("1.5"), None)], [Decimal("1.50000")] * 2),
        ("regr_avgx(i, p), regr_avgy(p, l)", [(None, 1, None, None, Decimal("1.5"), None)], [Decimal("1.50000"), None]),
        ("try_sum(l) FILTER (WHERE l < 9)", of("l", GREATEST, 8), [8]),
        ("try_sum(DISTINCT l)", of("l", GREATEST, GREATEST, -1), [GREATEST - 1]),
        ("try_sum(DISTINCT l), try_sum(DISTINCT l) FILTER (WHERE l < 9)", of("l", GREATEST, 1), [None, 1]),
        ("var_pop(DISTINCT l)", of("l", 2**53, 2**53 + 1, 1), [2.0282409603651666e31]),
        ("var_pop(DISTINCT x), var_samp(DISTINCT x)", of("x", math.nan, math.nan, 1.0), [math.nan, math.nan]),
        ("var_pop(DISTINCT x)", of("x", 0.0, -0.0, 1.0), [0.25]),
        ("var_pop(DISTINCT s)", of("s", "1", "1.0", "3"), [1.0]),
        ("var_pop(DISTINCT NULL), var_pop(DISTINCT 1)", of("i", 2), [None, 0.0]),
    ],
)
def test_an_aggregate_returns_the_same_value_as_spark(items: str, rows: Sequence[Any], answer: list[Any]) -> None:
    found = rows_of(items, rows)
    assert list(map(type, found)) == list(map(type, answer))
    assert all(
        a == b or (isinstance(a, float) and (math.isclose(a, b, rel_tol=1e-14) or (math.isnan(a) and math.isnan(b))))
        for a, b in zip(found, answer, strict=True)
    ), found


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("bit_xor(y)", "TINYINT"),
        ("bit_xor(i)", "INT"),
        ("bit_xor(NULL)", "INT"),
        ("skewness(p)", "DOUBLE"),
        ("try_sum(i)", "BIGINT"),
        ("try_sum(p)", "DECIMAL(12, 1)"),
        ("regr_avgx(i, p)", "DECIMAL(6, 5)"),
        ("regr_avgy(i, p)", "DOUBLE"),
        ("try_avg(p)", "DECIMAL(6, 5)"),
        ("try_sum(s)", "DOUBLE"),
        ("try_sum(NULL)", "DOUBLE"),
    ],
)
def test_an_aggregate_has_the_same_type_as_in_spark(call: str, kind: str) -> None:
    assert column_types(view(f"SELECT {call} AS y FROM t", catalog(f"CREATE TABLE t ({COLUMNS});"))) == f"y {kind}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("bit_xor(s)", "bit_xor takes integers, not STRING"),
        ("bit_xor(p)", "bit_xor takes integers, not DECIMAL"),
        ("bit_xor(DISTINCT i)", "bit_xor of DISTINCT values is not supported"),
        ("skewness(i, i)", "skewness takes 1 argument, not 2"),
        ("try_sum(i, i)", "try_sum takes 1 argument, not 2"),
    ],
)
def test_a_wrong_call_is_refused_with_the_reason(call: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        rows_of(call, [])


def test_a_batch_is_refused_if_a_bit_xor_is_the_least_bigint() -> None:
    with pytest.raises(BatchError, match="does not fit 64 bits"):
        rows_of("bit_xor(l)", of("l", -(2**63) + 1, 1))


def test_moments_of_numbers_far_from_zero_keep_their_digits_after_deletes() -> None:
    source = random.Random(7)
    values = [10.0**4 + source.gauss(0, 1) ** 3 for _ in range(40 if PURE_PYTHON else 400)]
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    second, third, fourth = (sum((x - mean) ** k for x in exact) / len(exact) for k in (2, 3, 4))
    found = rows_of("skewness(x), kurtosis(x)", of("x", *values))
    assert found == pytest.approx([float(third) / float(second) ** 1.5, float(fourth / second**2) - 3], rel=1e-11)


def test_bit_xor_follows_joins_groups_and_grouping_sets() -> None:
    source = random.Random(3)
    with Database() as database:
        database.execute("CREATE TABLE r (g INT, k INT, x BIGINT); CREATE TABLE s (k INT)")
        database.execute(
            "CREATE MATERIALIZED VIEW v AS SELECT g, BIT_XOR(x) AS x FROM r JOIN s ON r.k = s.k GROUP BY ROLLUP (g)"
        )
        left: list[tuple[int, int, int]] = []
        right: list[tuple[int]] = []
        for _ in range(6):
            rows = [(source.randrange(2), source.randrange(3), source.randrange(-99, 99)) for _ in range(5)]
            keys = [(source.randrange(3),) for _ in range(3)]
            gone = [one for one in left if source.random() < 0.3]
            former = right
            left, right = [*(one for one in left if one not in gone), *rows], [*right[2:], *keys]
            with database.batch() as batch:
                batch.delete("r", gone)
                batch.insert("r", rows)
                batch.delete("s", former[:2])
                batch.insert("s", keys)
            expected: dict[int | None, int] = {}
            for g, k, x in left:
                for group in (g, None):
                    for _ in range(right.count((k,))):
                        expected[group] = expected.get(group, 0) ^ x
            assert {g: x for g, x in database.view("v") if g is not None or expected} == expected


PAIRS = [(1, -1, 2), (1, 1, 2), (1, 1, 2), (1, 2, 3), (1, None, 5), (2, None, 1), (3, 7, 1), (3, 7, None)]
PAIRS += [(4, 5, 5), (4, 6, 6), (4, 6, 6)]
NOTHING = [None] * 4
OF_DISTINCT = {
    "stddev(DISTINCT x)": [1.5275252316519468, None, None, 0.7071067811865476],
    "stddev_pop(DISTINCT x) FILTER (WHERE y > 2)": [0.0, None, None, 0.5],
    "variance(DISTINCT x)": [2.3333333333333335, None, None, 0.5],
    "var_pop(DISTINCT x)": [1.5555555555555556, None, 0.0, 0.25],
    "var_samp(DISTINCT x) FILTER (WHERE y > 2)": [None, None, None, 0.5],
    "skewness(DISTINCT x)": [-0.3818017741606064, None, None, 0.0],
    "kurtosis(DISTINCT x)": [-1.4999999999999998, None, None, -2.0],
    "covar_pop(DISTINCT x, y)": [0.44444444444444436, None, 0.0, 0.25],
    "covar_samp(DISTINCT x, y)": [0.6666666666666665, None, None, 0.5],
    "corr(DISTINCT x, y)": [0.7559289460184544, None, None, 1.0],
    "regr_count(DISTINCT x, y)": [3, 0, 1, 2],
    "regr_sxx(DISTINCT x, y)": [0.5, None, 0.0, 0.5],
    "regr_syy(DISTINCT x, y)": [4.666666666666667, None, 0.0, 0.5],
    "regr_sxy(DISTINCT x, y)": [1.333333333333333, None, 0.0, 0.5],
    "regr_slope(DISTINCT x, y)": [2.0, None, None, 1.0],
    "regr_intercept(DISTINCT x, y)": [-4.0, None, None, 0.0],
    "regr_r2(DISTINCT x, y)": [0.5714285714285713, None, None, 1.0],
    "regr_avgx(DISTINCT x, y)": [2.5, None, 1.0, 5.5],
    "regr_avgy(DISTINCT x, y)": [0.6666666666666666, None, 7.0, 5.5],
}
"""Spark's answers by group, over PAIRS. Functions of two arguments that read one take its distinct values."""


def test_moments_of_distinct_values_equal_those_of_spark() -> None:
    with Database() as database:
        database.execute("CREATE TABLE t (g INT, x INT, y INT)")
        listed = ", ".join(f"{call} AS c{i}" for i, call in enumerate(OF_DISTINCT))
        database.execute(f"CREATE MATERIALIZED VIEW v AS SELECT g, {listed} FROM t GROUP BY g")
        passing = [(g, x, y) for g in (1, 4, 5) for x, y in ((-3, 2), (6, 6), (None, 1))]
        database.insert("t", [*passing, *PAIRS, *passing])
        database.delete("t", [*passing, *passing])
        rows = sorted(database.view("v"))
    assert [row[0] for row in rows] == [1, 2, 3, 4]
    for call, *found in zip(OF_DISTINCT, *(row[1:] for row in rows), strict=True):
        for value, answer in zip(found, OF_DISTINCT[call], strict=True):
            assert value == (None if answer is None else pytest.approx(answer, rel=1e-14)), call


def test_moments_of_distinct_values_share_one_store() -> None:
    calls = "VAR_POP(DISTINCT x), KURTOSIS(DISTINCT x), AVG(DISTINCT CAST(x AS DOUBLE))"
    with Database() as database:
        database.execute("CREATE TABLE t (g INT, x INT)")
        database.execute(f"CREATE MATERIALIZED VIEW v AS SELECT g, {calls} FROM t GROUP BY g")
        stored = str(database.view("v").explain()).partition("stored:")[2]
    assert stored.count(" rows ") == 2, "the view itself, and one store of values"


STARS = [
    ("COUNT(t.*)", 3),
    ("COUNT(*, a)", 3),
    ("COUNT(a, t.*)", 3),
    ("COUNT(*, *)", 3),
    ("COUNT(*, 1)", 3),
    ("COUNT(ALL *)", 4),
    ("COUNT(* EXCEPT (b))", 3),
    ("COUNT(* EXCEPT (b, s))", 4),
    ("COUNT(DISTINCT *)", 2),
    ("COUNT(DISTINCT t.*, a)", 2),
    ("COUNT(DISTINCT * EXCEPT (b, s))", 3),
    ("COUNT(t.*) FILTER (WHERE a = 1)", 1),
]
STARS_OF_A_JOIN = [("COUNT(t.*, u.*)", 1), ("COUNT(u.*, 1)", 2), ("COUNT(DISTINCT u.*)", 1), ("COUNT(*, 1)", 1)]
"""Spark's answers, over t and over t LEFT JOIN u. COUNT(*) alone counts the rows where a column is NULL, too."""
STARRED = "CREATE TABLE t (a INT, b INT, d DOUBLE, s STRING); CREATE TABLE u (a INT, c INT);"


@pytest.mark.parametrize(
    ("source", "calls"),
    [("t", STARS), ("t LEFT JOIN u ON t.a = u.a", STARS_OF_A_JOIN), ("t LEFT JOIN u USING (a)", STARS_OF_A_JOIN)],
)
@pytest.mark.parametrize("over", ["", " OVER ()"])
def test_count_of_a_table_star_counts_only_rows_without_nulls(
    source: str, calls: list[tuple[str, int]], over: str
) -> None:
    with Database() as database:
        database.execute(STARRED)
        listed = ", ".join(f"{call}{over} AS c{i}" for i, (call, _) in enumerate(calls))
        database.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {listed} FROM {source}")
        row = (2, 3, -1.25, "x")
        database.insert("t", [(1, 2, 2.5, "a"), (1, None, 3.5, None), row, row, (9, 9, 9.0, "y")])
        database.insert("u", [(1, 2), (2, None), (None, 4)])
        database.delete("t", [(9, 9, 9.0, "y")])
        rows = {*database.view("v")}
    assert rows == {tuple(number for _, number in calls)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("COUNT(w.*)", "unknown table w"),
        ("COUNT(* EXCEPT (w))", "unknown column w"),
        ("COUNT(* EXCEPT (a, b, d, s))", "count takes . or at least 1 argument"),
        ("COUNT(* REPLACE (1 AS a))", "REPLACE in COUNT is not supported; .*EXCEPT"),
        ("SUM(t.*)", "here is not supported; name the columns; . is accepted in SELECT and in COUNT"),
        ("COUNT(t.*) OVER (ORDER BY SUM(a))", "here is not supported"),
        ("COUNT(w.*) OVER ()", "unknown table w"),
        ("SUM(t.*) OVER ()", "here is not supported; name the columns"),
    ],
)
def test_a_star_in_a_wrong_place_is_refused_with_the_remedy(call: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        view(f"SELECT {call} AS y FROM t", catalog(STARRED))
