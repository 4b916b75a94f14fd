"""The kernels of cofactor rings agree with the rings to the last bit, and note overflows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.rings import cofactor, cofactor_results, elements, wide
from freshviews.kernel.scalar.payload import NO_FIXED_POINT, SUM_OVERFLOW
from freshviews.ring import Cofactor, CofactorRing, RingError, named, ring_over
from freshviews.types import NULL

NUMBERS = ("integer", "double")
on_numbers = pytest.mark.parametrize("number", NUMBERS)


def code(x: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", x or 0.0))[0])


def double(of: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", of))[0])


def words(values: Sequence[int] | int) -> Any:
    return np.zeros(values, np.int64) if isinstance(values, int) else np.array(values, np.int64)


def at(array: Any) -> int:
    return int(array.ctypes.data)


def ring_of(number: str, variables: Sequence[int]) -> CofactorRing:
    ring = named(ring_over(f"cofactor.{number}", variables))
    assert isinstance(ring, CofactorRing)
    return ring


def codes(number: str) -> st.SearchStrategy[int]:
    if number == "integer":
        return st.integers(-(10**6), 10**6) | st.sampled_from([0, 2**28, -(2**28)])
    modest = st.floats(-(2.0**40), 2.0**40) | st.floats(-1e-3, 1e-3) | st.sampled_from([0.1, -0.5, 2.0**-64, 0.0])
    return modest.map(code)


def lifted(ring: CofactorRing, row: Sequence[int]) -> Cofactor:
    found = ring.one
    for variable, x in zip(ring.variables, row, strict=True):
        found = ring.multiply(found, ring_of(ring.number, [variable]).lift(x))
    return found


def product(
    full: CofactorRing, parts: Sequence[tuple[CofactorRing, Any]], k: int, target: Any, lifted: int | None = None
) -> int:
    """Add ``k`` times the product of elements in memory; returns the error. Part ``lifted`` has no products."""
    first = cofactor.FIRST_PART + cofactor.PART_WORDS * len(parts)
    shape, places = [len(parts), len(full.variables), 0], []
    for i, (ring, element) in enumerate(parts):
        shape += [at(element), len(ring.variables), first + len(places), int(i == lifted)]
        places += [full.variables.index(v) for v in ring.variables]
    shape[cofactor.ROOM] = first + len(places)
    size = 1 if full.number == "integer" else cofactor.SUM_SIZE
    room = cofactor.room_words(len(parts), len(full.variables), size)
    made, status = words([*shape, *places, *[0] * room]), words(4)
    add = cofactor.cofactor_add if full.number == "integer" else cofactor.wide_cofactor_add
    add(at(target), at(made), k, at(status))
    return int(status[0])


def one_row(number: str, row: Sequence[int]) -> tuple[Any, int]:
    """The count and the sums of a row in memory, and the error."""
    if number == "integer":
        return words([1, *row]), 0
    target, status = words(1 + cofactor.SUM_SIZE * len(row)), words(4)
    values = words(row)  # Keeps the array alive during the call, which may compile.
    cofactor.wide_cofactor_lift(at(target), at(values), len(row), at(status))
    return target, int(status[0])


def lift(ring: CofactorRing, row: Sequence[int]) -> tuple[Any, int]:
    """The element of a row in memory, and the error."""
    made, error = one_row(ring.number, row)
    target = words(ring.words)
    return target, error or product(ring, [(ring, made)], 1, target, lifted=0)


@on_numbers
@given(st.data())
def test_compiled_sums_and_products_of_cofactors_agree_with_the_ring(number: str, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(6)))
    cuts = sorted(data.draw(st.lists(st.integers(1, 5), max_size=2, unique=True)))
    ranges = [order[a:b] for a, b in zip([0, *cuts], [*cuts, 6], strict=True)]
    full = ring_of(number, range(6))
    expected, parts = full.one, []
    for variables in ranges:
        ring = ring_of(number, variables)
        row = st.lists(codes(number), min_size=len(variables), max_size=len(variables))
        rows = data.draw(st.lists(st.tuples(row, st.integers(-3, 3)), max_size=3))
        target, total = words(ring.words), ring.zero
        for values, m in rows:
            element, error = lift(ring, values)
            if error == SUM_OVERFLOW:
                with pytest.raises(RingError):
                    ring.to_words(lifted(ring, values))
                return
            assert error == 0
            assert tuple(element.tolist()) == ring.to_words(lifted(ring, values))
            assert product(ring, [(ring, element)], m, target) == 0
            total = ring.add(total, ring.scale(lifted(ring, values), m))
        assert tuple(target.tolist()) == ring.to_words(total)
        parts.append((ring, target))
        expected = full.multiply(expected, total)
    own = None
    if data.draw(st.booleans()):
        # The product of the others with one row that the kernel lifts.
        own = data.draw(st.integers(0, len(parts) - 1))
        values = data.draw(st.lists(codes(number), min_size=len(ranges[own]), max_size=len(ranges[own])))
        parts[own] = (parts[own][0], one_row(number, values)[0])
        expected = full.one
        for i, (ring, element) in enumerate(parts):
            factor = lifted(ring, values) if i == own else ring.from_words(tuple(element.tolist()))
            expected = full.multiply(expected, factor)
    k = data.draw(st.integers(-5, 5))
    target = words(full.words)
    error = product(full, parts, k, target, own)
    try:
        fits = full.to_words(full.scale(expected, k))
    except RingError:
        assert error == SUM_OVERFLOW
        return
    assert error == 0
    assert tuple(target.tolist()) == fits
    # Adding and subtracting leaves no bit behind.
    product(full, parts, -k, target, own)
    assert not target.any()


@on_numbers
@given(st.data())
def test_results_of_cofactors_are_rounded_once(number: str, data: st.DataObject) -> None:
    ring, unit = ring_of(number, (0, 1)), Fraction(1, 2**64 if number == "double" else 1)
    rows = data.draw(st.lists(st.lists(codes(number), min_size=2, max_size=2), max_size=5))
    total = ring.zero
    for row in rows:
        total = ring.add(total, lifted(ring, row))
    sums, products, n = dict(total.sums), dict(total.products), total.count
    functions = [(0, -1, -1), (0, 0, -1), (0, 1, -1), (0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1)]
    target, element = words(len(functions)), words(ring.to_words(total))
    table = words([word for one in functions for word in (*one, 0)])
    wide_flag = int(number == "double")
    cofactor_results.cofactor_results(at(target), at(element), 2, wide_flag, at(table), len(functions))
    assert target[0] == n
    if n == 0:
        assert target[1:].tolist() == [NULL] * 6
        return
    exact = [sums.get(0, 0) * unit, sums.get(1, 0) * unit]
    exact += [products.get((0, 0), 0) * unit**2, products.get((0, 1), 0) * unit**2]
    found = target[1:5].tolist()
    assert found == ([int(x) for x in exact] if number == "integer" else [code(float(x)) for x in exact])
    for place, (i, j) in ((5, (0, 1)), (6, (1, 1))):
        comoment = float((n * products.get((i, j), 0) - sums.get(i, 0) * sums.get(j, 0)) * unit**2)
        assert target[place] == (NULL if n == 1 else code(comoment / n / (n - 1)))


@pytest.mark.parametrize("x", [float("nan"), float("inf"), float("-inf"), 2.0**63, -(2.0**70)])
def test_a_double_without_a_fixed_point_form_is_reported(x: float) -> None:
    assert lift(ring_of("double", [0]), [code(x)])[1] == NO_FIXED_POINT


def test_overflow_of_integer_cofactors_is_reported_and_can_be_undone() -> None:
    ring = ring_of("integer", [0])
    element, error = lift(ring, [2**40])
    assert error == SUM_OVERFLOW
    element, error = lift(ring, [2**31])
    target = words(ring.words)
    assert error == 0
    assert product(ring, [(ring, element)], 1, target) == 0
    assert product(ring, [(ring, element)], 1, target) == SUM_OVERFLOW
    product(ring, [(ring, element)], -2, target)
    assert not target.any()


def test_overflow_of_double_cofactors_is_reported_and_can_be_undone() -> None:
    ring = ring_of("double", [0])
    element, error = lift(ring, [code(2.0**62)])
    target = words(ring.words)
    assert error == 0
    assert product(ring, [(ring, element)], 1, target) == 0
    assert product(ring, [(ring, element)], 1, target) == SUM_OVERFLOW
    product(ring, [(ring, element)], -2, target)
    assert not target.any()


@given(st.integers(-(2**127), 2**127 - 1))
def test_a_number_of_two_words_is_read_as_the_nearest_double(x: int) -> None:
    magnitude = words(2)
    source = words([int(np.uint64((x >> 64 * i) & (2**64 - 1)).astype(np.int64)) for i in range(2)])
    negative = wide.magnitude_of(at(magnitude), at(source), 2)
    assert (-1 if negative else 1) * wide.double_of(at(magnitude), 2, 64) == float(Fraction(x, 2**64))


def test_a_payload_with_components_of_several_rings_is_added_by_its_layout() -> None:
    ring = ring_of("double", [0, 1])
    element = ring.to_words(lifted(ring, [code(0.1), code(-7.25)]))
    layout = words([0, 2, elements.INTEGERS, 2, elements.WIDE, 2])
    target, source = words(2 + ring.words), words([5, -6, *element])
    elements.add_elements(at(target), at(source), at(layout), 3)
    assert tuple(target[:2].tolist()) == (15, -18)
    assert ring.from_words(tuple(target[2:].tolist())) == ring.scale(ring.from_words(element), 3)
    elements.add_elements(at(target), at(source), at(layout), -3)
    assert elements.words_are_zero(at(target), len(target))
