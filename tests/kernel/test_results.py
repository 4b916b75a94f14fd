from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.memory.mem import load
from freshviews.kernel.output.results import (
    AVERAGE,
    SUM,
    SUM_REST,
    avg_decimal,
    avg_int,
    bits_result,
    double_result,
    value_result,
)
from freshviews.kernel.scalar.operations import code as compiled_code
from freshviews.kernel.scalar.payload import AVERAGE_OVERFLOW, BITS_OVERFLOW
from freshviews.kernel.scalar.real import REAL_WORDS, real_add_double
from freshviews.types import NULL
from tests.kernel.words import MANY, block, code, double

int64 = st.integers(-(2**63) + 1, 2**63 - 1)


def test_aggregates_without_values_are_null() -> None:
    with block([0] * REAL_WORDS) as real, block([0]) as status:
        assert avg_int(0, 0) == NULL
        assert avg_decimal(0, 0, 10_000, status) == NULL
        assert double_result(SUM, real, 0) == NULL
        assert double_result(AVERAGE, real, 0) == NULL
        assert double_result(SUM_REST, real, 0) == NULL
        assert value_result(0, 0) == NULL
        assert bits_result(0, 0, status) == NULL
        assert load(status, 0) == 0


def test_results_of_sums_and_extremes_are_the_stored_words() -> None:
    assert value_result(-5, 3) == -5
    assert value_result(0, 3) == 0
    assert value_result(-7, 1) == -7
    assert value_result(0, 2) == 0


def test_the_result_of_a_bitwise_aggregate_is_the_stored_word() -> None:
    with block([0]) as status:
        assert [bits_result(value, 1, status) for value in (-7, 0, NULL + 1)] == [-7, 0, NULL + 1]
        assert load(status, 0) == 0
        assert bits_result(NULL, 1, status) == NULL
        assert load(status, 0) == BITS_OVERFLOW


@MANY
@given(int64, st.integers(1, 2**53))
def test_the_average_of_integers_is_the_total_as_a_double_divided_by_the_count(total: int, count: int) -> None:
    assert double(avg_int(total, count)) == float(total) / count


@MANY
@given(int64, st.integers(1, 2**40), st.sampled_from([1, 10, 10_000, 10**18]))
def test_the_average_of_decimals_rounds_half_up_or_reports_an_overflow(
    total: int, count: int, multiplier: int
) -> None:
    with localcontext() as context:
        context.prec = 60
        exact = (Decimal(total) * multiplier / count).quantize(Decimal(1), ROUND_HALF_UP)
    with block([0]) as status:
        average = avg_decimal(total, count, multiplier, status)
        if abs(exact) < 2**63:
            assert (average, load(status, 0)) == (int(exact), 0)
        else:
            assert (average, load(status, 0)) == (NULL, AVERAGE_OVERFLOW)


@pytest.mark.parametrize(("total", "count", "average"), [(5, 2, 3), (-5, 2, -3), (7, 3, 2), (-1, 3, 0)])
def test_a_tie_in_an_average_of_decimals_rounds_away_from_zero(total: int, count: int, average: int) -> None:
    with block([0]) as status:
        assert avg_decimal(total, count, 1, status) == average


@MANY
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=10))
def test_sum_and_average_of_doubles_are_rounded_from_the_exact_sum(xs: list[float]) -> None:
    with block([0] * REAL_WORDS) as real:
        for x in xs:
            real_add_double(real, code(x), 1)
        assert double(double_result(SUM, real, len(xs))) == math.fsum(xs)
        assert double_result(AVERAGE, real, len(xs)) == code(math.fsum(xs) / len(xs))


def test_no_result_is_minus_zero_or_a_noncanonical_nan() -> None:
    assert compiled_code(-0.0) == 0
    assert avg_int(0, -1) == 0
    assert compiled_code(-math.nan) == code(math.nan)
    with block([0] * REAL_WORDS) as real:
        real_add_double(real, code(math.nan), 1)
        assert double_result(AVERAGE, real, 2) == code(math.nan)
        real_add_double(real, code(math.nan), -1)
        real_add_double(real, code(-5e-324), 1)
        assert double_result(AVERAGE, real, 4) == 0


@MANY
@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=12))
def test_a_sum_and_its_rounding_error_have_the_digits_of_two_doubles(xs: list[float]) -> None:
    exact = sum(map(Fraction, xs))
    with block([0] * REAL_WORDS) as real:
        for x in xs:
            real_add_double(real, code(x), 1)
        first, rest = double(double_result(SUM, real, len(xs))), double(double_result(SUM_REST, real, len(xs)))
    assert first == float(exact)
    assert rest == float(exact - Fraction(first))


def test_the_rounding_error_of_an_infinite_sum_is_zero() -> None:
    with block([0] * REAL_WORDS) as real:
        real_add_double(real, code(math.inf), 1)
        real_add_double(real, code(1.0), 1)
        assert double_result(SUM_REST, real, 2) == 0
