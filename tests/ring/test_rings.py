"""The laws of rings, as properties, for every ring; and a ring whose elements have no fixed size."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.ring import (
    INTEGER,
    NARROW,
    REAL,
    RINGS,
    Cofactor,
    CofactorRing,
    ProductRing,
    Real,
    RecordedRing,
    Ring,
    RingError,
    named,
    ring_over,
)
from freshviews.ring.laws import LAWS, Law
from freshviews.types import NULL
from tests.ring.user_rings import AGGREGATES


def code(x: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", x or 0.0))[0])


Rows = frozenset[tuple[frozenset[int], int]]


@dataclass(frozen=True)
class RowsRing:
    """Relations of sets of codes under union and join, with multiplicities: relation-valued payloads.

    Real contents would be in memory of their own; here a list stands for that memory, and the one word is a position in
    it.
    """

    name: str = "rows"
    words: int = 1
    zero: Rows = frozenset()
    one: Rows = frozenset({(frozenset(), 1)})

    def _sum(self, pairs: list[tuple[frozenset[int], int]]) -> Rows:
        sums: dict[frozenset[int], int] = {}
        for row, m in pairs:
            sums[row] = sums.get(row, 0) + m
        return frozenset((row, m) for row, m in sums.items() if m)

    def add(self, a: Rows, b: Rows) -> Rows:
        return self._sum([*a, *b])

    def negate(self, a: Rows) -> Rows:
        return self.scale(a, -1)

    def scale(self, a: Rows, k: int) -> Rows:
        return self._sum([(row, m * k) for row, m in a])

    def multiply(self, a: Rows, b: Rows) -> Rows:
        return self._sum([(x | y, m * n) for x, m in a for y, n in b])

    def is_zero(self, a: Rows) -> bool:
        return not a

    def lift(self, code: int) -> Rows:
        return frozenset({(frozenset({code}), 1)})

    def to_words(self, a: Rows) -> tuple[int, ...]:
        if not a:
            return (0,)
        CONTENTS.append(a)
        return (len(CONTENTS),)

    def from_words(self, words: tuple[int, ...]) -> Rows:
        return CONTENTS[words[0] - 1] if words[0] else frozenset()


CONTENTS: list[Rows] = []

COFACTORS = [named(ring_over(f"cofactor.{number}", (0, 2, 5))) for number in ("integer", "double")]
ROWS = RowsRing()
PRODUCT = ProductRing(("count", "total", "weight"), (INTEGER, INTEGER, REAL))

numbers = st.integers(-(2**20), 2**20)
integral_reals = st.builds(Real, st.builds(Fraction, numbers))
doubles = st.floats().map(lambda x: REAL.lift(0x7FF8000000000000 if math.isnan(x) else code(x)))
reals = st.lists(st.tuples(doubles, st.integers(-5, 5)), max_size=4).map(
    lambda terms: _total(REAL, [REAL.scale(x, k) for x, k in terms])
)


def _total(ring: Ring[Any], elements: Sequence[Any]) -> Any:
    total = ring.zero
    for element in elements:
        total = ring.add(total, element)
    return total


def cofactors(ring: Ring[Any]) -> st.SearchStrategy[Any]:
    """Sums of rows with multiplicities, and elements that are not sums of rows."""
    assert isinstance(ring, CofactorRing)
    units = 1 if ring.number == "integer" else 2**40
    number = st.integers(-(2**20), 2**20).map(lambda x: x * units)
    return st.builds(
        lambda count, sums, products: ring.add(
            Cofactor(count), Cofactor(0, _placed(ring.variables, sums), _placed(ring.pairs, products))
        ),
        st.integers(-9, 9),
        st.lists(number, min_size=3, max_size=3),
        st.lists(number, min_size=6, max_size=6),
    )


def _placed(places: Sequence[Any], numbers: Sequence[int]) -> Any:
    return tuple((place, x) for place, x in zip(places, numbers, strict=True) if x)


def users(name: str) -> tuple[Ring[Any], st.SearchStrategy[Any]]:
    """A user's ring over its first argument, and its elements: sums of products of lifts, with multiplicities."""
    ring = AGGREGATES[name].ring.over((0,))
    codes = st.integers(-200, 200) if ring.kinds[0] == "w" else st.floats(-20, 20).map(code)
    lifted = codes.map(ring.lift)
    products = lifted if ring.product is None else st.builds(ring.multiply, lifted, lifted)
    terms = st.lists(st.tuples(lifted | products, st.integers(-5, 5)), max_size=4)
    return ring, terms.map(lambda found: _total(ring, [ring.scale(a, k) for a, k in found]))


ELEMENTS: list[tuple[Ring[Any], st.SearchStrategy[Any]]] = [
    (INTEGER, numbers),
    (REAL, reals),
    (NARROW, st.builds(Real, st.builds(Fraction, st.integers(-(2**150), 2**150), st.just(2**114)))),
    (PRODUCT, st.tuples(numbers, numbers, reals)),
    *((ring, cofactors(ring)) for ring in COFACTORS),
    *(users(name) for name in AGGREGATES),
    (
        ROWS,
        st.lists(st.tuples(st.frozensets(st.integers(0, 2)), st.integers(-3, 3)), max_size=4).map(
            lambda pairs: RowsRing()._sum(pairs)
        ),
    ),
]
# Factors all of whose products are defined.
FACTORS: list[tuple[Ring[Any], st.SearchStrategy[Any]]] = [
    (
        ring,
        {
            REAL.name: integral_reals,
            NARROW.name: integral_reals,
            PRODUCT.name: st.tuples(numbers, numbers, integral_reals),
        }.get(ring.name, s),
    )
    for ring, s in ELEMENTS
    if not isinstance(ring, RecordedRing) or ring.product is not None
]
integers = st.integers(-(2**40), 2**40)


def params(cases: list[tuple[Ring[Any], st.SearchStrategy[Any]]]) -> list[Any]:
    return [pytest.param(ring, elements, id=ring.name.partition("(")[0]) for ring, elements in cases]


@pytest.mark.parametrize(("ring", "elements"), params(ELEMENTS))
@given(st.data())
def test_the_laws_of_addition_hold(ring: Ring[Any], elements: st.SearchStrategy[Any], data: st.DataObject) -> None:
    _check([law for law in LAWS if not law.multiplies], ring, elements, data)


@pytest.mark.parametrize(("ring", "elements"), params(FACTORS))
@given(st.data())
def test_the_laws_of_multiplication_hold(
    ring: Ring[Any], elements: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    _check([law for law in LAWS if law.multiplies], ring, elements, data)


def _check(laws: Sequence[Law], ring: Ring[Any], elements: st.SearchStrategy[Any], data: st.DataObject) -> None:
    a, b, c = (data.draw(elements) for _ in range(3))
    j, k = data.draw(integers), data.draw(integers)
    for law in laws:
        assert law.left(ring, a, b, c, j, k) == law.right(ring, a, b, c, j, k), law.text


@pytest.mark.parametrize(("ring", "elements"), params(ELEMENTS))
@given(st.data())
def test_elements_are_encoded_as_words_and_only_zero_as_zero_words(
    ring: Ring[Any], elements: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    a = data.draw(elements)
    words = ring.to_words(a)
    assert len(words) == ring.words
    assert all(-(2**63) <= word < 2**63 for word in words)
    assert ring.from_words(words) == a
    assert ring.is_zero(a) == (not any(words))
    assert ring.to_words(ring.zero) == (0,) * ring.words


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_a_sum_of_reals_is_rounded_once(xs: list[float]) -> None:
    total = _total(REAL, [REAL.lift(code(x)) for x in xs])
    try:
        expected = math.fsum(xs)
    except OverflowError:
        return
    assert REAL.value(total) == code(expected)


@given(reals, integral_reals)
def test_an_integer_multiplies_any_real(a: Real, k: Real) -> None:
    assert k.integer is not None
    assert REAL.multiply(a, k) == REAL.multiply(k, a) == REAL.scale(a, k.integer)


@pytest.mark.parametrize("x", [0.5, math.inf, math.nan])
def test_two_reals_have_a_product_only_if_one_real_is_an_integer(x: float) -> None:
    with pytest.raises(RingError, match=r"one factor must be an integer"):
        REAL.multiply(REAL.lift(code(x)), REAL.lift(code(0.1)))


def test_an_infinity_or_a_nan_can_be_subtracted_from_a_sum() -> None:
    one, inf, nan = (REAL.lift(code(x)) for x in (1.5, math.inf, math.nan))
    total = _total(REAL, [one, inf, nan])
    assert REAL.value(total) == code(math.nan)
    total = REAL.add(total, REAL.negate(nan))
    assert REAL.value(total) == code(math.inf)
    assert REAL.value(REAL.add(total, REAL.lift(code(-math.inf)))) == code(math.nan)
    assert REAL.value(REAL.add(total, REAL.negate(inf))) == code(1.5)


def test_a_sum_past_the_range_of_doubles_is_infinite() -> None:
    greatest = REAL.lift(code(1.7976931348623157e308))
    assert REAL.value(REAL.scale(greatest, 2)) == code(math.inf)
    assert REAL.value(REAL.scale(greatest, -2)) == code(-math.inf)


def test_the_lift_of_null_is_zero() -> None:
    assert REAL.is_zero(REAL.lift(NULL))
    assert REAL.value(Real(Fraction(-1, 2**1080))) == 0


def test_an_element_that_does_not_fit_its_words_is_refused() -> None:
    with pytest.raises(RingError, match="64 bits"):
        INTEGER.to_words(2**63)
    with pytest.raises(RingError, match="is outside the range"):
        REAL.to_words(Real(Fraction(1, 3)))
    with pytest.raises(RingError, match="is outside the range"):
        REAL.to_words(Real(Fraction(2**1101)))


def test_a_product_ring_computes_component_by_component() -> None:
    ring = ProductRing(("count", "total"), (INTEGER, INTEGER))
    assert ring.name == "product(count: integer, total: integer)"
    assert ring.multiply((2, 3), (4, 5)) == (8, 15)
    assert ring.lift(7) == (7, 7)
    assert ring.position("total") == 1
    assert not ring.is_zero((0, 1))


def test_a_product_ring_needs_a_distinct_name_for_each_component() -> None:
    with pytest.raises(ValueError, match="give each ring its own name"):
        ProductRing(("count", "count"), (INTEGER, INTEGER))
    with pytest.raises(ValueError, match="give each ring its own name"):
        ProductRing(("count",), (INTEGER, INTEGER))


def test_the_cofactor_of_a_product_is_the_product_of_cofactors() -> None:
    # x in {1, 2} and y in {3, 4}: all four pairs.
    x, y = (named(ring_over("cofactor.integer", [i])) for i in (0, 1))
    left, right = x.add(x.lift(1), x.lift(2)), y.add(y.lift(3), y.lift(4))
    sums, products = ((0, 6), (1, 14)), (((0, 0), 10), ((0, 1), 21), ((1, 1), 50))
    assert x.multiply(left, right) == Cofactor(4, sums, products)


def test_a_double_is_lifted_to_the_nearest_fixed_point() -> None:
    ring = named(ring_over("cofactor.double", [3]))
    assert ring.lift(code(0.1)).sums == ((3, int(Fraction(0.1) * 2**64)),)
    assert ring.lift(code(-(2.0**-65))).sums == ((3, -1),)
    assert ring.lift(code(2.0**-66)) == Cofactor(1)
    for x in (math.inf, math.nan, 2.0**63):
        with pytest.raises(RingError, match="no fixed-point form"):
            ring.lift(code(x))


def test_a_cofactor_beyond_64_bits_is_refused() -> None:
    ring = named(ring_over("cofactor.integer", [0]))
    with pytest.raises(RingError, match="has a variable that"):
        ring.to_words(Cofactor(1, ((1, 1),)))
    with pytest.raises(RingError, match="64 bits"):
        ring.to_words(Cofactor(1, ((0, 2**63),)))


def test_built_in_rings_are_found_by_name() -> None:
    assert [(name, ring.name) for name, ring in RINGS.items()] == [(n, n) for n in ("integer", "real", "real.narrow")]


def test_a_narrow_real_consists_of_the_middle_words_of_a_real() -> None:
    for x in (Fraction(0), Fraction(-1, 2**114), 2**140 - Fraction(1, 2**100), Fraction(-(2**141))):
        words = NARROW.to_words(Real(x))
        assert words == REAL.to_words(Real(x))[15:19]
        assert NARROW.from_words(words) == Real(x)
    for wide in (Real(Fraction(1, 2**115)), Real(Fraction(2) ** 141), Real(nans=1), Real(positive=1)):
        with pytest.raises(RingError):
            NARROW.to_words(wide)
