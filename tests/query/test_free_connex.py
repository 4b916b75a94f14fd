from __future__ import annotations

import pytest
from hypothesis import given, settings

from freshviews.query.acyclic import JoinTree
from freshviews.query.free_connex import is_free_connex
from freshviews.query.hierarchical import is_q_hierarchical
from freshviews.query.hypergraph import Hypergraph, hypergraph
from freshviews.query.query import Query
from tests.query.notation import query
from tests.query.orders import free_connex_tree
from tests.query.random_queries import queries
from tests.query.test_acyclic import connected, links_of


def graph_of(text: str) -> Hypergraph:
    return hypergraph(query(text))


@pytest.mark.parametrize(
    ("text", "free_connex"),
    [
        ("Q(b) = R(a, b), S(b, c)", True),
        ("Q(a) = R(a, b), S(b, c)", True),
        ("Q(a, c) = R(a, b), S(b, c)", False),
        ("Q(a, b, c) = R(a, b), S(b, c)", True),
        ("Q() = R(a, b), S(b, c)", True),
        ("Q(a, b, c) = R(a, b), S(b, c), T(c, a)", False),
        ("Q(a, b) = R(a), S(b), a < b", False),
    ],
)
def test_free_connex_means_acyclic_with_and_without_the_head(text: str, free_connex: bool) -> None:
    assert is_free_connex(graph_of(text)) is free_connex


@pytest.mark.parametrize(
    ("text", "height", "tree"),
    [
        # Figure 2 (c): both relations under the generalised relation [x2]
        ("Q(x2) = R1(x1, x2), R2(x2, x3)", 1, "[x2]\n  R1(x1, x2)\n  R2(x2, x3)"),
        # Figure 2 (a) under the head: R2 joins R1, which holds the output x1
        ("Q(x1) = R1(x1, x2), R2(x2, x3)", 2, "[x1]\n  R1(x1, x2)\n    R2(x2, x3)"),
        # Figure 1: [x3] above two branches
        (
            "Q(x1, x2, x3, x4) = R1(x1, x2), R2(x2, x3), R3(x3, x4), R4(x4, x5)",
            2,
            "[x3]\n  R2(x2, x3)\n    R1(x1, x2)\n  R3(x3, x4)\n    R4(x4, x5)",
        ),
    ],
)
def test_the_free_connex_trees_of_the_paper_are_found(text: str, height: int, tree: str) -> None:
    found = free_connex_tree(graph_of(text))
    assert found is not None
    assert str(found) == tree
    assert found.height == height


def test_the_hard_fifo_query_has_a_tree_of_height_3() -> None:
    found = free_connex_tree(graph_of("Q(a, b, c, d) = R(a), S(a, b), T(b, c), U(c, d), V(d)"))
    assert found is not None and found.height == 3


def check_definition(tree: JoinTree, graph: Hypergraph) -> None:
    """Definitions 3.1 and 3.2, with a generalised relation filled by one child."""
    nodes, links = links_of(tree)
    assert connected(nodes, links)
    names = [node.name for node in tree.nodes() if node.name is not None]
    assert sorted(names) == sorted(edge.name for edge in graph.edges)
    assert tree.variables <= graph.free

    def walk(node: JoinTree, above: tuple[JoinTree, ...]) -> None:
        if node.name is None:
            assert all(ancestor.name is None for ancestor in above)
            assert any(node.variables <= child.variables for child in node.children)
        seen = frozenset[str]().union(*(ancestor.variables for ancestor in above))
        if node.variables - seen & graph.free:
            first_bound = frozenset[str]()
            for ancestor in above:
                first_bound |= ancestor.variables - graph.free
            new_free = (node.variables - seen) & graph.free
            assert not new_free or not first_bound
        for child in node.children:
            assert child.key == child.variables & node.variables
            walk(child, (*above, node))

    walk(tree, ())


@settings(max_examples=300, deadline=None)
@given(queries())
def test_every_free_connex_query_has_a_valid_tree(of: Query) -> None:
    graph = hypergraph(of)
    tree = free_connex_tree(graph)
    assert (tree is not None) == is_free_connex(graph)
    if tree is not None:
        check_definition(tree, graph)


@settings(max_examples=300, deadline=None)
@given(queries())
def test_a_query_is_q_hierarchical_exactly_if_its_free_connex_tree_has_height_1(of: Query) -> None:
    graph = hypergraph(of)
    tree = free_connex_tree(graph)
    assert is_q_hierarchical(graph) == (tree is not None and tree.height == 1)
