"""Narrow sums of doubles are exact for values that fit; other values are reported and ignored."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.memory.mem import load
from freshviews.kernel.rings.narrow import (
    NARROW_WORDS,
    narrow_add_double,
    narrow_add_scaled,
    narrow_as_real,
    narrow_rest,
    narrow_value,
)
from freshviews.kernel.scalar.payload import TOO_NARROW
from freshviews.kernel.scalar.real import REAL_WORDS, real_rest, real_value
from freshviews.ring import NARROW, REAL, Real
from tests.kernel.words import MANY, block, code, words_at

UNIT = 2**114
RANGE = 2**256
EDGES = (
    2.0**-114, -(2.0**-114), 2.0**-115, 3 * 2.0**-115, 5e-324, 2.2250738585072014e-308, math.nextafter(2.0**78, 0),
    -math.nextafter(2.0**78, 0), 2.0**78, 1e300, math.inf, -math.inf, math.nan, 0.0, 0.1, -0.1,
    math.ldexp(2**53 - 1, -114), math.ldexp(2**53 - 1, -115), math.ldexp(2**53 - 2, -115),
)  # fmt: skip
"""Doubles at both ends of the range."""

double = st.sampled_from(EDGES) | st.floats() | st.builds(math.ldexp, st.floats(-1, 1), st.integers(-120, 90))
multiplicity = (
    st.integers(-5, 5)
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63), 2**32, 2**32 - 1, -(2**31)])
)
ZEROS = (0,) * NARROW_WORDS


def fits(x: float) -> bool:
    return math.isfinite(x) and abs(x) < 2.0**78 and (Fraction(x) * UNIT).denominator == 1


def modulo(units: int) -> int:
    return (units + RANGE // 2) % RANGE - RANGE // 2


def units_at(address: int) -> int:
    return int(NARROW.from_words(words_at(address, NARROW_WORDS)).finite * UNIT)


@MANY
@given(st.lists(st.tuples(double, multiplicity), max_size=12))
def test_doubles_that_fit_narrow_sums_are_added_and_doubles_that_do_not_fit_are_reported(
    terms: list[tuple[float, int]]
) -> None:
    units, reported = 0, False
    with block(ZEROS) as address, block([0]) as status:
        for x, k in terms:
            narrow_add_double(address, code(x), k, status)
            if fits(x):
                units += int(Fraction(x) * UNIT) * k
                reported |= units != modulo(units)
                units = modulo(units)
            else:
                reported = True
            assert units_at(address) == units
            assert load(status, 0) == (TOO_NARROW if reported else 0)


@MANY
@given(st.lists(st.tuples(double, multiplicity), max_size=12), st.randoms(use_true_random=False))
def test_deleting_all_doubles_in_any_order_zeroes_every_word_of_a_narrow_sum(
    terms: list[tuple[float, int]], order: random.Random
) -> None:
    terms = [(x, max(k, -(2**63) + 1)) for x, k in terms]
    steps = terms + [(x, -k) for x, k in terms]
    order.shuffle(steps)
    with block(ZEROS) as address, block([0]) as status:
        for x, k in steps:
            narrow_add_double(address, code(x), k, status)
        assert words_at(address, NARROW_WORDS) == ZEROS


@MANY
@given(st.integers(-RANGE // 2, RANGE // 2 - 1), st.integers(0, 255))
def test_a_narrow_sum_and_a_real_of_one_number_have_equal_values_and_rounding_errors(
    units: int, shift: int
) -> None:
    element = Real(Fraction(units >> shift, UNIT))
    with block(NARROW.to_words(element)) as address, block((0,) * REAL_WORDS) as real:
        narrow_as_real(real, address)
        assert words_at(real, REAL_WORDS) == REAL.to_words(element)
        assert narrow_value(address) == real_value(real) == REAL.value(element)
        nearest = struct.unpack("<d", struct.pack("<q", narrow_value(address)))[0]
        assert narrow_rest(address) == real_rest(real) == code(float(element.finite - Fraction(nearest)))


@MANY
@given(
    st.integers(-RANGE // 2, RANGE // 2 - 1),
    st.integers(-RANGE // 2, RANGE // 2 - 1),
    st.integers(0, 255),
    multiplicity,
)
def test_adding_a_scaled_narrow_sum_is_exact_or_reports_an_overflow(
    target: int, source: int, shift: int, k: int
) -> None:
    source >>= shift
    words = [NARROW.to_words(Real(Fraction(units, UNIT))) for units in (target, source)]
    with block(words[0]) as at, block(words[1]) as other, block([0]) as status:
        narrow_add_scaled(at, other, k, status)
        total = target + k * source
        assert units_at(at) == modulo(total)
        if total != modulo(total):
            assert load(status, 0) == TOO_NARROW
        elif abs(k * source) < RANGE // 8:
            assert load(status, 0) == 0
