from __future__ import annotations

from itertools import combinations, permutations, product

import pytest
from hypothesis import given, settings

from freshviews.query.acyclic import JoinTree, gyo, is_acyclic, join_tree
from freshviews.query.hypergraph import Edge, hypergraph
from freshviews.query.query import Query
from tests.query.notation import query
from tests.query.random_queries import queries


def edges(text: str) -> tuple[Edge, ...]:
    return hypergraph(query(f"Q() = {text}")).edges


def connected(nodes: list[tuple[int, frozenset[str]]], links: set[tuple[int, int]]) -> bool:
    """Running intersection: the nodes of each variable form one piece."""
    for variable in frozenset().union(*(variables for _, variables in nodes)):
        having = {i for i, variables in nodes if variable in variables}
        inside = [link for link in links if set(link) <= having]
        if len(inside) != len(having) - 1:  # the links form a forest
            return False
    return True


def links_of(tree: JoinTree) -> tuple[list[tuple[int, frozenset[str]]], set[tuple[int, int]]]:
    nodes = list(tree.nodes())
    number = {id(node): i for i, node in enumerate(nodes)}
    links = {(number[id(node)], number[id(child)]) for node in nodes for child in node.children}
    return [(i, node.variables) for i, node in enumerate(nodes)], links


def some_join_tree_exists(given_edges: tuple[Edge, ...]) -> bool:
    """Tries every parent of every edge, as in the definition."""
    count = len(given_edges)
    nodes = [(i, edge.variables) for i, edge in enumerate(given_edges)]
    for parents in product(*(range(i) for i in range(1, count))):
        # parents come first in the numbering, so all numberings are tried
        for order in permutations(range(count)):
            links = {(order[parent], order[i + 1]) for i, parent in enumerate(parents)}
            if connected(nodes, links):
                return True
    return False


@pytest.mark.parametrize(
    ("text", "acyclic"),
    [
        ("R(a, b)", True),
        ("R(a, b), S(b, c), T(c, d)", True),
        ("R(a, b), S(b, c), T(c, a)", False),
        ("R(a, b), S(b, c), T(c, a), U(a, b, c)", True),
        ("R(a, b), S(b, c), T(c, d), U(d, a)", False),
        ("R(a, b, c), S(b, c, d), T(c, d, a), U(d, a, b)", False),
        ("R(a), S(b)", True),
        ("E(a, b), E(b, c), E(c, a)", False),
    ],
)
def test_gyo_decides_whether_queries_are_acyclic(text: str, acyclic: bool) -> None:
    assert is_acyclic(edges(text)) is acyclic
    assert (join_tree(edges(text)) is not None) is acyclic


def test_the_reduction_of_gyo_is_printed_step_by_step() -> None:
    assert str(gyo(edges("R(a, b), S(b, c)"))) == (
        "a is only in R; c is only in S; R is in S; b is only in S"
    )


def test_gyo_reduces_a_triangle_with_a_tail_to_the_triangle() -> None:
    left = gyo(edges("R(a, b), S(b, c), T(c, a), U(c, d)")).left
    assert [edge.name for edge in left] == ["R", "S", "T"]


def test_the_join_tree_of_a_path_has_the_given_root() -> None:
    tree = join_tree(edges("R(a, b), S(b, c), T(c, d)"), "R")
    assert str(tree) == "R(a, b)\n  S(b, c)\n    T(c, d)"
    assert tree is not None and tree.height == 3 and tree.children[0].key == {"b"}


@settings(max_examples=150, deadline=None)
@given(queries())
def test_gyo_accepts_exactly_the_queries_with_a_join_tree(of: Query) -> None:
    graph_edges = hypergraph(of).edges
    tree = join_tree(graph_edges)
    assert (tree is not None) == some_join_tree_exists(graph_edges)
    if tree is not None:
        nodes, links = links_of(tree)
        assert connected(nodes, links)
        assert sorted(str(node.name) for node in tree.nodes()) == sorted(e.name for e in graph_edges)


@settings(max_examples=100, deadline=None)
@given(queries())
def test_the_verdict_of_gyo_does_not_depend_on_the_order_of_atoms(of: Query) -> None:
    graph_edges = hypergraph(of).edges
    assert is_acyclic(graph_edges) == is_acyclic(tuple(reversed(graph_edges)))
    for one, other in combinations(range(len(graph_edges)), 2):
        swapped = list(graph_edges)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        assert is_acyclic(graph_edges) == is_acyclic(swapped)
