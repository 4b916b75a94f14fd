from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.memory.mem import allocate, release
from freshviews.kernel.scalar.real import (
    REAL_WORDS,
    real_add_double,
    real_add_scaled,
    real_value,
)
from freshviews.ring import REAL, Real
from freshviews.types import NULL
from tests.kernel.words import MANY, block, code, double, words_at

ZEROS = (0,) * REAL_WORDS
HUGE = 1.7976931348623157e308
TINY = 5e-324

finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [TINY, -TINY, 3 * TINY, 2.2250738585072014e-308, -2.225073858507201e-308, HUGE, -HUGE, 1.0, 0.1, -0.1]
)
anything = finite | st.sampled_from([math.inf, -math.inf, math.nan])
multiplicity = (
    st.integers(-5, 5)
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63), 2**32, 2**32 - 1, -(2**31)])
)


@pytest.fixture
def total() -> Iterator[int]:
    address = allocate(REAL_WORDS)
    yield address
    release(address)


def sum_of(terms: list[tuple[float, int]], address: int) -> None:
    for x, k in terms:
        real_add_double(address, code(x), k)


def exact(terms: list[tuple[float, int]]) -> int:
    """The value in the interpreter's ring."""
    element = REAL.zero
    for x, k in terms:
        element = REAL.add(element, REAL.scale(REAL.lift(code(x)), k))
    return REAL.value(element)


@MANY
@given(st.lists(finite, max_size=30))
def test_a_finite_sum_equals_fsum(xs: list[float]) -> None:
    with block(ZEROS) as address:
        sum_of([(x, 1) for x in xs], address)
        try:
            expected = math.fsum(xs)
        except OverflowError:  # an intermediate sum of fsum overflows; ours cannot
            expected = double(exact([(x, 1) for x in xs]))
        assert real_value(address) == code(expected)


@MANY
@given(st.lists(st.tuples(anything, multiplicity), max_size=12))
def test_words_and_value_of_a_real_agree_with_the_exact_ring(terms: list[tuple[float, int]]) -> None:
    element = REAL.zero
    with block(ZEROS) as address:
        for x, k in terms:
            if not math.isfinite(x):
                k %= 2**40  # counts are modulo 2^64
            real_add_double(address, code(x), k)
            element = REAL.add(element, REAL.scale(REAL.lift(code(x)), k))
        words = words_at(address, REAL_WORDS)
        assert words == REAL.to_words(element)
        assert REAL.from_words(words) == element
        assert real_value(address) == REAL.value(element)
        assert (words == ZEROS) == REAL.is_zero(element)


@MANY
@given(st.lists(st.tuples(anything, multiplicity), max_size=12), st.randoms(use_true_random=False))
def test_deleting_all_doubles_in_any_order_zeroes_every_word_of_a_real(
    terms: list[tuple[float, int]], order: random.Random
) -> None:
    terms = [(x, max(k, -(2**63) + 1)) for x, k in terms]
    steps = terms + [(x, -k) for x, k in terms]
    order.shuffle(steps)
    with block(ZEROS) as address:
        sum_of(steps, address)
        assert words_at(address, REAL_WORDS) == ZEROS
        assert real_value(address) == 0


@MANY
@given(
    st.lists(st.tuples(anything, st.integers(-9, 9)), max_size=8),
    st.lists(st.tuples(anything, st.integers(-9, 9)), max_size=8),
    multiplicity,
)
def test_adding_a_sum_k_times_equals_adding_each_term_k_times(
    terms: list[tuple[float, int]], others: list[tuple[float, int]], k: int
) -> None:
    k = k // 16
    with block(ZEROS) as target, block(ZEROS) as source, block(ZEROS) as expected:
        sum_of(others, source)
        sum_of(terms, target)
        real_add_scaled(target, source, k)
        sum_of(terms + [(x, n * k) for x, n in others], expected)
        assert words_at(target, REAL_WORDS) == words_at(expected, REAL_WORDS)


def test_adding_a_real_scaled_by_the_least_int64_equals_adding_two_halves(total: int) -> None:
    with block(ZEROS) as source, block(ZEROS) as twice:
        sum_of([(-0.1, 1), (1e300, 3), (TINY, -1)], source)
        real_add_scaled(total, source, -(2**63))
        real_add_scaled(twice, source, -(2**62))
        real_add_scaled(twice, source, -(2**62))
        assert words_at(total, REAL_WORDS) == words_at(twice, REAL_WORDS)


def test_a_tiny_value_stays_in_a_sum_when_huge_values_cancel(total: int) -> None:
    sum_of([(HUGE, 2**62), (TINY, 1), (HUGE, -(2**62))], total)
    assert double(real_value(total)) == TINY
    real_add_double(total, code(TINY), -1)
    assert words_at(total, REAL_WORDS) == ZEROS


def test_a_sum_beyond_the_range_of_doubles_is_infinite(total: int) -> None:
    sum_of([(HUGE, 2)], total)
    assert double(real_value(total)) == math.inf
    sum_of([(HUGE, -4)], total)
    assert double(real_value(total)) == -math.inf
    sum_of([(HUGE, 3)], total)
    assert double(real_value(total)) == HUGE


def test_overflow_begins_at_half_a_unit_past_the_greatest_double(total: int) -> None:
    half_unit = 2.0**970
    sum_of([(HUGE, 1), (half_unit, 1)], total)
    assert double(real_value(total)) == math.inf
    real_add_double(total, code(TINY), -1)
    assert double(real_value(total)) == HUGE


def test_denormals_add_exactly_and_grow_into_normals(total: int) -> None:
    sum_of([(TINY, 2**52 - 1)], total)
    assert double(real_value(total)) == 2.225073858507201e-308
    real_add_double(total, code(TINY), 1)
    assert double(real_value(total)) == 2.2250738585072014e-308


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([2.0**53, 1.0], 2.0**53),  # a tie goes to the even one below
        ([2.0**53, 3.0], 2.0**53 + 4),  # and to the even one above
        ([2.0**53, 1.0, TINY], 2.0**53 + 2),  # past the tie
        ([2.0**53, 1.0, -TINY], 2.0**53),
        ([-(2.0**53), -1.0], -(2.0**53)),
        ([-(2.0**53), -1.0, -TINY], -(2.0**53) - 2),
        ([2.0**54 - 2, 1.0], 2.0**54),  # the carry reaches the exponent
        ([1e308, 1e308, -1e308], 1e308),
    ],
)
def test_rounding_is_to_the_nearest_and_ties_go_to_even(
    parts: list[float], expected: float, total: int
) -> None:
    sum_of([(x, 1) for x in parts], total)
    assert double(real_value(total)) == expected


@MANY
@given(st.integers(0, 2**130), st.integers(0, 2000), st.booleans())
def test_any_pattern_of_bits_is_rounded_as_python_rounds_fractions(
    pattern: int, shift: int, negative: bool
) -> None:
    value = Fraction(pattern * 2**shift, 2**1074)
    element = Real(-value if negative else value)
    try:
        expected = float(element.finite)
    except OverflowError:
        expected = -math.inf if negative else math.inf
    with block(REAL.to_words(element)) as address:
        assert real_value(address) == code(expected)


def test_nan_and_opposite_infinities_give_nan(total: int) -> None:
    sum_of([(1.5, 1), (math.inf, 1)], total)
    assert double(real_value(total)) == math.inf
    sum_of([(-math.inf, 1)], total)
    assert math.isnan(double(real_value(total)))
    sum_of([(math.inf, -1)], total)
    assert double(real_value(total)) == -math.inf
    sum_of([(math.nan, 2)], total)
    assert real_value(total) == code(math.nan)
    sum_of([(math.nan, -2), (-math.inf, -1)], total)
    assert double(real_value(total)) == 1.5


def test_an_infinity_deleted_before_its_insert_counts_as_the_opposite_infinity(total: int) -> None:
    sum_of([(math.inf, -1)], total)
    assert double(real_value(total)) == -math.inf
    sum_of([(math.inf, 1)], total)
    assert words_at(total, REAL_WORDS) == ZEROS


def test_every_nan_counts_as_the_same_nan(total: int) -> None:
    real_add_double(total, NULL, 7)
    assert words_at(total, REAL_WORDS) == ZEROS
    real_add_double(total, struct.unpack("<q", b"\x01\0\0\0\0\0\xf0\xff")[0], 1)
    assert real_value(total) == code(math.nan)


def test_a_sum_of_a_long_stream_does_not_drift(total: int) -> None:
    order = random.Random(1)
    xs = [order.uniform(-1, 1) * 10.0 ** order.randint(-20, 20) for _ in range(2000)]
    sum_of([(x, 1) for x in xs], total)
    assert double(real_value(total)) == math.fsum(xs)
    kept = xs[:100]
    sum_of([(x, -1) for x in xs[100:]], total)
    assert double(real_value(total)) == math.fsum(kept)


def test_the_ring_of_reals_and_its_kernel_agree_on_the_number_of_words() -> None:
    assert REAL.words == REAL_WORDS
