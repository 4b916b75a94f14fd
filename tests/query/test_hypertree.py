"""Generalised hypertree decompositions: known widths, and the conditions of a decomposition."""

from __future__ import annotations

import random
import time
from fractions import Fraction

import pytest

from freshviews.query.acyclic import is_acyclic
from freshviews.query.edge_cover import edge_cover_number
from freshviews.query.hypergraph import Edge, Hypergraph, hypergraph
from freshviews.query.hypertree import Bag, decomposition, fractional_width, searches_all
from tests.query.notation import query
from tests.query.orders import least_width, width_of


def cycle(length: int) -> Hypergraph:
    names = "abcdefghijklmnop"[:length]
    edges = tuple(Edge(f"R{i}", frozenset((names[i], names[(i + 1) % length]))) for i in range(length))
    return Hypergraph(tuple(names), frozenset(names), edges)


def clique(size: int) -> Hypergraph:
    names = "abcdef"[:size]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return Hypergraph(tuple(names), frozenset(names), tuple(Edge(a + b, frozenset((a, b))) for a, b in pairs))


def of(*edges: str, free: str = "") -> Hypergraph:
    """A hypergraph whose edges are given as strings of one-letter variables."""
    variables = tuple(sorted(set("".join(edges))))
    named = tuple(Edge(f"{i}:{edge}", frozenset(edge)) for i, edge in enumerate(edges))
    return Hypergraph(variables, frozenset(free), named)


def assert_decomposes(graph: Hypergraph, bags: tuple[Bag, ...]) -> None:
    """Every atom is at home in exactly one bag, which has its variables; members cover bags; bags are acyclic."""
    edges = {edge.name: edge.variables for edge in graph.edges}
    assert sorted(name for bag in bags for name in bag.home) == sorted(edges)
    for bag in bags:
        assert all(edges[name] <= bag.variables for name in bag.home)
        assert bag.variables <= frozenset[str]().union(*(edges[name] for name in (*bag.home, *bag.guards)))
        own = Hypergraph(graph.variables, graph.free, tuple(e for e in graph.edges if e.name in bag.home + bag.guards))
        assert width_of(own, (bag,)) <= width_of(graph, bags)
    assert is_acyclic(Edge(str(i), bag.variables) for i, bag in enumerate(bags))


def assert_restricted(graph: Hypergraph, bags: tuple[Bag, ...]) -> None:
    """The atoms of a bag bound its rows as all atoms would; it leaves out only atoms within others."""
    edges = {edge.name: edge.variables for edge in graph.edges}
    for bag in bags:
        members = [edges[name] for name in (*bag.home, *bag.guards)]
        assert edge_cover_number(bag.variables, members) == fractional_width(graph, (bag.variables,))
        within = [side for side in edges.values() if side <= bag.variables]
        assert all(any(side <= other for other in members) for side in within)


@pytest.mark.parametrize(
    ("graph", "width"),
    [
        (of("ab", "bc", "cd"), 1),
        (cycle(3), 2),
        (cycle(4), 2),
        (cycle(7), 2),
        (cycle(10), 2),
        (clique(4), 2),
        (clique(5), 3),
        # The dumbbell; the bowtie; a triangle with an atom over all three corners.
        (of("ab", "ac", "bc", "cd", "de", "df", "ef"), 2),
        (of("ab", "bc", "ca", "ad", "de", "ea"), 2),
        (of("ab", "bc", "ca", "abc"), 1),
        # A wheel of five spokes.
        (of("hv", "hw", "hx", "hy", "hz", "vw", "wx", "xy", "yz", "zv"), 2),
    ],
)
def test_a_decomposition_of_the_least_width_is_found(graph: Hypergraph, width: int) -> None:
    assert least_width(graph) == width
    bags = decomposition(graph)
    assert_decomposes(graph, bags)
    assert width_of(graph, bags) == width


def test_the_time_of_the_search_for_the_least_width_is_limited() -> None:
    """A fact table with sixteen columns, its returns, and six dimensions: the shape of TPC-DS Q85."""
    graph = of("abcdefghijklmnop", "bdqrst", "c", "quv", "suv", "rwxy", "a", "tz", free="efghijklmnopuvwxyz")
    start = time.process_time()
    bags = decomposition(graph)
    assert time.process_time() - start < 3
    assert not searches_all(graph)
    assert_decomposes(graph, bags)
    assert searches_all(cycle(10))


def test_a_cycle_of_four_is_split_into_two_bags_of_two_atoms() -> None:
    bags = decomposition(hypergraph(query("Q() = R(a, b), S(b, c), T(c, d), U(d, a)")))
    assert [bag.home for bag in bags] == [("R", "S"), ("T", "U")]


def test_atoms_outside_of_cycles_have_bags_of_their_own() -> None:
    text = "Q() = R(a, b), S(b, c), T(c, d), U(d, a), V(a, e), W(e, f), X(f)"
    bags = decomposition(hypergraph(query(text)))
    assert [bag.home for bag in bags if len(bag.home) == 1] == [("V",), ("W",), ("X",)]


def test_bags_that_make_the_query_free_connex_are_preferred() -> None:
    """A 4-cycle splits into two halves in two ways; in one of them b and d are together."""
    for free, halves in (("ac", [("0:ab", "1:bc"), ("2:cd", "3:da")]), ("bd", [("0:ab", "3:da"), ("1:bc", "2:cd")])):
        assert [bag.home for bag in decomposition(of("ab", "bc", "cd", "da", free=free))] == halves


def test_an_uncovered_bag_is_guarded_by_another_atom() -> None:
    """abcd is needed to cover b and c together with eg: no partition of the atoms has width 2."""
    graph = of("abcd", "eg", "bf", "cf", "fg", "de", "ae")
    bags = decomposition(graph)
    assert_decomposes(graph, bags)
    assert width_of(graph, bags) == 2
    assert any(bag.guards for bag in bags)


@pytest.mark.parametrize(
    ("text", "bags"),
    [
        # Two triangles that share an edge; one of attributes as well; four that share two.
        ("Q() = R(a, b), S(b, c), T(c, a), U(b, d), V(d, a)", {"R S T": "", "U V": "R"}),
        ("Q() = R(a, b, x), S(b, c), T(c, a), U(b, d), V(d, a)", {"R": "", "S T": "R", "U V": "R"}),
        (
            "Q() = R(a, b), S(b, c), T(c, a), U(b, d), V(d, a), W(b, e), X(e, a), Y(c, f), Z(f, b)",
            {"R S T": "", "U V": "R", "W X": "R", "Y Z": "S"},
        ),
        # Two cliques of four that share a triangle; a clique; an atom within an edge restricts nothing more.
        (
            "Q() = A(b, c), B(c, d), C(b, d), D(a, b), E(a, c), F(a, d), G(e, b), H(e, c), I(e, d)",
            {"A B C D E F": "", "G H I": "A B C"},
        ),
        ("Q(a) = R(a, b), S(a, c), T(a, d), U(b, c), V(b, d), W(c, d)", {"R S T U V W": ""}),
        ("Q() = R(a, b), S(b, c), T(c, a), U(a), V(b, a)", {"R S T": "", "U": "", "V": ""}),
        # A cycle of five with a chord: in no bag the others have more rows than an edge, so none is cut in halves.
        ("Q() = A(a, b), B(b, c), C(c, d), D(d, e), E(e, a), F(a, c)", {"A B": "F", "C D E F": ""}),
    ],
)
def test_atoms_guard_the_bags_that_have_their_variables(text: str, bags: dict[str, str]) -> None:
    found = decomposition(hypergraph(query(text)))
    assert {" ".join(bag.home): " ".join(bag.guards) for bag in found} == bags


def test_the_least_fractional_width_breaks_ties() -> None:
    """ab, bc and cd cover all variables by two atoms, with b and d together; da, ac and bd then make triangles."""
    graph = of("ab", "bc", "cd", "da", "ac", free="ac")
    bags = decomposition(graph)
    assert {frozenset("abc"), frozenset("acd")} == {bag.variables for bag in bags}
    assert fractional_width(graph, tuple(bag.variables for bag in bags)) == Fraction(3, 2)
    assert fractional_width(graph, (frozenset("abcd"),)) == 2 == least_width(graph)


def test_random_queries_get_a_valid_decomposition_of_least_width() -> None:
    rng = random.Random(5)
    cyclic = 0
    for _ in range(400):
        names = "abcdefgh"[: rng.randint(3, 8)]
        sizes = [min(len(names), rng.choice((2, 2, 2, 3, 4))) for _ in range(rng.randint(3, 8))]
        edges = ["".join(rng.sample(names, size)) for size in sizes]
        graph = of(*edges, free="".join(v for v in names if rng.random() < 0.5 and any(v in e for e in edges)))
        bags = decomposition(graph)
        assert_decomposes(graph, bags)
        width = least_width(graph)
        assert width_of(graph, bags) == width
        assert_restricted(graph, bags)
        assert (width == 1) == is_acyclic(graph.edges)
        cyclic += width > 1
    assert cyclic > 100


def test_queries_of_many_atoms_get_a_valid_decomposition() -> None:
    for graph in (cycle(14), of(*(a + b for a in "abcd" for b in "efgh"))):
        bags = decomposition(graph)
        assert_decomposes(graph, bags)
        assert width_of(graph, bags) < len(graph.edges) // 2
