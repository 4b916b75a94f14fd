from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings

from freshviews.query.free_connex import is_free_connex
from freshviews.query.hierarchical import (
    buried_free,
    crossing_pair,
    delta_rank,
    is_hierarchical,
    is_q_hierarchical,
)
from freshviews.query.hypergraph import hypergraph
from freshviews.query.order_search import Space, least_static_width
from freshviews.query.query import Query
from freshviews.query.variable_order import best_order, dynamic_width
from tests.query.notation import query
from tests.query.orders import canonical_order, is_valid
from tests.query.random_queries import queries

LECTURE = [
    # query, hierarchical, q-hierarchical, i of delta_i
    ("Q(b, d) = R(a, b, d), S(a, b), T(a, c, e), U(a, c, f)", True, False, 1),
    ("Q(a, b) = R(a), S(a, b), T(b)", False, False, None),
    ("Q(a, b, c) = R(a, b, d), S(a, b), T(a, c, e), U(a, c, f)", True, True, 0),
    ("Q(a) = S(a, b), T(b)", True, False, 1),
    ("Q(a, d, e, g) = R(a, b, d), S(a, b, e), T(a, c, f), U(a, c, g)", True, False, 1),
    ("Q(d, g) = R(a, b, d), S(a, b, e), T(a, c, f), U(a, c, g)", True, False, 2),
    ("Q(a, c) = R(a, b), S(b, c)", True, False, 1),
    ("Q() = R(a, b), S(b)", True, True, 0),
    ("Q(a, b, c) = R(a, x), S(b, x), T(c, x)", True, False, 2),
]


@pytest.mark.parametrize(("text", "hierarchical", "q_hierarchical", "rank"), LECTURE)
def test_the_classes_of_known_queries_are_right(
    text: str, hierarchical: bool, q_hierarchical: bool, rank: int | None
) -> None:
    graph = hypergraph(query(text))
    assert is_hierarchical(graph) is hierarchical
    assert is_q_hierarchical(graph) is q_hierarchical
    assert delta_rank(graph) == rank


def test_witnesses_list_the_variables_that_prevent_a_class() -> None:
    assert crossing_pair(hypergraph(query("Q() = R(a), S(a, b), T(b)"))) == ("a", "b")
    assert buried_free(hypergraph(query("Q(a) = S(a, b), T(b)"))) == ("a", "b")


def test_a_condition_over_two_atoms_is_not_hierarchical() -> None:
    assert not is_hierarchical(hypergraph(query("Q(a, b) = R(a), S(b), a < b")))
    assert is_q_hierarchical(hypergraph(query("Q(a) = R(a, b), S(a), a < b")))


@settings(max_examples=300, deadline=None)
@given(queries())
def test_the_number_i_of_a_delta_i_hierarchical_query_equals_its_dynamic_width(of: Query) -> None:
    rank = delta_rank(hypergraph(of))
    width = dynamic_width(best_order(of, True), of)
    if rank is not None:
        assert width == rank


@settings(max_examples=300, deadline=None)
@given(queries(conditions=True))
def test_a_query_is_q_hierarchical_exactly_if_its_dynamic_width_is_0(of: Query) -> None:
    graph = hypergraph(of)
    assert is_q_hierarchical(graph) == (dynamic_width(best_order(of, True), of) == 0)
    if is_hierarchical(graph):
        order = canonical_order(of)
        assert is_valid(order, of)
        free_top = order.free_top and dynamic_width(order, of) == 0
        assert free_top == is_q_hierarchical(graph)


@settings(max_examples=300, deadline=None)
@given(queries())
def test_static_and_dynamic_width_of_a_hierarchical_query_differ_by_at_most_1(of: Query) -> None:
    graph = hypergraph(of)
    if is_hierarchical(graph):
        difference = least_static_width(Space(graph, (), True)) - dynamic_width(best_order(of, True), of)
        assert difference in (Fraction(0), Fraction(1))


@settings(max_examples=300, deadline=None)
@given(queries(conditions=True))
def test_every_q_hierarchical_query_is_free_connex(of: Query) -> None:
    graph = hypergraph(of)
    assert not is_q_hierarchical(graph) or is_free_connex(graph)
