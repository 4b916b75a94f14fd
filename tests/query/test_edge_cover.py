from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.query.edge_cover import edge_cover_number


def cover(*edges: str) -> Fraction:
    sets = [frozenset(edge) for edge in edges]
    return edge_cover_number(frozenset().union(*sets), sets)


@pytest.mark.parametrize(
    ("edges", "number"),
    [
        (("ab",), Fraction(1)),
        (("ab", "bc"), Fraction(2)),
        (("ab", "bc", "ca"), Fraction(3, 2)),
        (("abc", "bcd", "cda", "dab"), Fraction(4, 3)),
        (("abcd", "bcde", "cdea", "deab", "eabc"), Fraction(5, 4)),
        (("ab", "bc", "cd", "da"), Fraction(2)),
        (("ab", "bc", "cd", "de", "ea"), Fraction(5, 2)),
        (("ab", "bc", "cd"), Fraction(2)),
        (("ab", "bc", "ca", "ad"), Fraction(2)),
        # the Fano plane: seven lines of three points, each weighs a third
        (("abc", "ade", "afg", "bdf", "beg", "cdg", "cef"), Fraction(7, 3)),
        ((), Fraction(0)),
    ],
)
def test_edge_cover_numbers_of_known_queries_are_right(edges: tuple[str, ...], number: Fraction) -> None:
    assert cover(*edges) == number


def test_a_variable_that_no_edge_covers_is_an_error() -> None:
    with pytest.raises(ValueError, match="variable c is in no edge"):
        edge_cover_number(frozenset("abc"), [frozenset("ab")])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=1, max_size=6))
def test_the_fractional_cover_number_lies_between_integral_bounds(edges: list[frozenset[str]]) -> None:
    variables = frozenset().union(*edges)
    number = edge_cover_number(variables, edges)
    subsets = [[e for i, e in enumerate(edges) if mask >> i & 1] for mask in range(1 << len(edges))]
    whole = min(len(s) for s in subsets if frozenset().union(*s) == variables)
    letters = sorted(variables)
    independent = max(
        len(chosen)
        for mask in range(1 << len(letters))
        for chosen in [frozenset(v for i, v in enumerate(letters) if mask >> i & 1)]
        if all(len(chosen & edge) <= 1 for edge in edges)
    )
    assert independent <= number <= whole


GRID = (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(1))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.frozensets(st.sampled_from("abcde"), min_size=1, max_size=3), min_size=1, max_size=4))
def test_the_cover_number_is_at_least_every_packing_and_at_most_every_cover(
    edges: list[frozenset[str]],
) -> None:
    variables = sorted(frozenset().union(*edges))
    number = edge_cover_number(frozenset(variables), edges)
    for weights in product(GRID, repeat=len(edges)):
        covers = all(sum(w for w, e in zip(weights, edges, strict=True) if v in e) >= 1 for v in variables)
        assert not covers or sum(weights) >= number
    for weights in product(GRID, repeat=len(variables)):
        of = dict(zip(variables, weights, strict=True))
        packs = all(sum(of[v] for v in edge) <= 1 for edge in edges)
        assert not packs or sum(weights) <= number
