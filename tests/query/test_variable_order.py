from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.plan.delta import view_tree
from freshviews.query import order_search
from freshviews.query.hypergraph import hypergraph
from freshviews.query.query import Query
from freshviews.query.variable_order import (
    OrderNode,
    VariableOrder,
    best_order,
    dynamic_width,
    is_enumerable,
    is_free_top,
    update_exponents,
)
from freshviews.query.width import bag
from tests.query.notation import query
from tests.query.orders import canonical_order, is_valid, order_by_priority, static_width
from tests.query.random_queries import dependencies, queries


def test_the_best_order_of_a_known_query_is_found() -> None:
    order = best_order(query("Q(a, b, c) = R(a, b), S(a, c, e), T(a, c, d)"), True)
    assert str(order) == ("a []\n|-- b [a] R\n`-- c [a]\n    |-- e [a, c] S\n    `-- d [a, c] T")


@pytest.mark.parametrize(
    ("text", "static", "dynamic"),
    [
        ("Q() = R(a, b), S(b, c), T(c, a)", Fraction(3, 2), 1),
        ("Q() = R(a, b, c), S(b, c, d), T(c, d, a), U(d, a, b)", Fraction(4, 3), 1),
        ("Q() = R(a, b), S(b, c), T(c, d), U(d, a)", 2, 1),
        ("Q() = R(a, b), S(b, c), T(c, d), U(d, e)", 1, 1),
        ("Q() = R(a, b), S(b, c), T(c, d), U(d, e), V(e, a)", 2, 2),
        ("Q(a, c) = R(a, b), S(b, c)", 2, 1),
        ("Q(a, b, c) = R(a, b), S(b, c)", 1, 0),
        ("Q() = R(a, b), S(a)", 1, 0),
        ("Q() = R(), S()", 0, 0),
    ],
)
def test_the_widths_of_known_queries_are_right(text: str, static: Fraction | int, dynamic: int) -> None:
    of = query(text)
    order = best_order(of, True)
    assert (static_width(order, of), dynamic_width(order, of)) == (static, dynamic)
    assert is_valid(order, of) and is_free_top(order, of) and order.exact


def test_free_variables_below_bound_variables_are_carried_up() -> None:
    of = query("Q(a, c) = R(a, b), S(b, c)")
    order = best_order(of, False)
    assert str(order) == "b []\n|-- a [b] R\n`-- c [b] S"
    assert (static_width(order, of), dynamic_width(order, of)) == (2, 1)


def test_holding_groups_is_cheaper_than_enumerating_groups() -> None:
    of = query("Q(a) = R(a, b), S(b, c), T(c)")
    assert update_exponents(best_order(of, False), of) == {"R": 0, "S": 1, "T": 1}


def test_holding_the_product_of_unconnected_atoms_raises_the_dynamic_width() -> None:
    of = query("Q(a, b) = R(a), S(b)")
    assert dynamic_width(best_order(of, True), of) == 0
    assert dynamic_width(best_order(of, False), of) == 1


def test_atoms_and_conditions_without_variables_are_listed_separately() -> None:
    order = best_order(query("Q(a) = R(a), S()"), True)
    assert order.ground == ("S",)
    assert str(order) == "a [] R\n() S"


def test_a_condition_is_computed_at_the_first_node_with_all_its_variables() -> None:
    of = query("Q() = R(a), S(b), a < b")
    order = best_order(of, True)
    assert order.roots == (OrderNode("a", (OrderNode("b", (), (), ("S",), (), ("b",)),), (), ("R",), (0,), ()),)
    assert str(order) == "a [] R factor 0\n`-- b [] S carries b"
    assert is_enumerable(order, of)


def test_conditions_between_free_variables_prevent_enumeration() -> None:
    of = query("Q(a, b) = R(a), S(b), a < b")
    order = best_order(of, True)
    assert is_free_top(order, of) and not is_enumerable(order, of)


def test_the_canonical_order_puts_dominating_variables_above() -> None:
    of = query("Q(d, g) = R(a, b, d), S(a, b, e), T(a, c, f), U(a, c, g)")
    assert str(canonical_order(of)) == (
        "a []\n"
        "|-- b [a]\n"
        "|   |-- d [a, b] R\n"
        "|   `-- e [a, b] S\n"
        "`-- c [a]\n"
        "    |-- f [a, c] T\n"
        "    `-- g [a, c] U"
    )
    assert canonical_order(of).free_top is False
    with pytest.raises(ValueError, match="not hierarchical"):
        canonical_order(query("Q() = R(a), S(a, b), T(b)"))


def test_an_order_that_separates_the_variables_of_an_atom_is_invalid() -> None:
    of = query("Q() = R(a, b)")
    assert not is_valid(VariableOrder((OrderNode("a"), OrderNode("b"))), of)
    assert not is_valid(VariableOrder((OrderNode("a"),)), of)


def test_many_interchangeable_variables_are_ordered_exactly() -> None:
    many = ", ".join(f"v{i}" for i in range(40))
    order = best_order(query(f"Q({many}) = R(a, {many}), S(a)"), False)
    assert order.exact
    assert order.roots[0].variable == "a"


def test_large_hierarchical_queries_get_the_least_dynamic_width() -> None:
    leaves = ", ".join(f"R{i}(a, b{i})" for i in range(20))
    of = query(f"Q(a) = {leaves}")
    order = best_order(of, True)
    assert dynamic_width(order, of) == 0 and order.exact


def test_a_long_path_gets_dynamic_width_2_or_less() -> None:
    of = query("Q() = " + ", ".join(f"R{i}(v{i}, v{i + 1})" for i in range(24)))
    order = best_order(of, True)
    assert is_valid(order, of)
    assert dynamic_width(order, of) <= 2


def quality(order: VariableOrder, of: Query, rules: tuple) -> tuple:
    hidden = order.free_top and not is_enumerable(order, of, rules)
    return hidden, dynamic_width(order, of, rules), static_width(order, of, rules)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_permutation_gives_a_better_order_than_the_search(data: st.DataObject) -> None:
    of = data.draw(queries(conditions=True))
    rules = data.draw(dependencies(of))
    free_top = data.draw(st.booleans())
    every = [order_by_priority(of, p, free_top) for p in permutations(of.variables)]
    allowed = [o for o in every if not free_top or is_free_top(o, of, rules)]
    found = best_order(of, free_top, rules)
    assert is_valid(found, of) and found.exact
    assert quality(found, of, rules) == min(quality(o, of, rules) for o in allowed)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_greedy_order_is_valid_and_an_order_marked_exact_has_the_least_dynamic_width(data: st.DataObject) -> None:
    of = data.draw(queries(conditions=True))
    free_top = data.draw(st.booleans())
    best = best_order(of, free_top)
    limit = order_search.EXACT_LIMIT
    try:
        order_search.EXACT_LIMIT = 0
        greedy = best_order(of, free_top)
    finally:
        order_search.EXACT_LIMIT = limit
    assert is_valid(greedy, of) and (not free_top or is_free_top(greedy, of))
    assert quality(greedy, of, ())[:2] >= quality(best, of, ())[:2]
    assert not greedy.exact or dynamic_width(greedy, of) == dynamic_width(best, of)


Rows = dict[tuple[int, ...], int]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_view_tree_over_an_order_computes_the_query(data: st.DataObject) -> None:
    """The definitions of keys, atoms, factors and carried variables in code: each view joins its children and its
    atoms, computes its factors, and sums out all variables except keys, carried and free ones."""
    of = data.draw(queries(conditions=True))
    order = best_order(of, data.draw(st.booleans()))
    rows = {
        atom.name: dict.fromkeys(
            data.draw(st.lists(st.tuples(*[st.integers(0, 2)] * len(atom.variables)), max_size=6)), 1
        )
        for atom in of.atoms
    }
    graph = hypergraph(of)

    def view(node: OrderNode) -> tuple[tuple[str, ...], Rows]:
        parts = [view(child) for child in node.children]
        parts += [(of.atom(name).variables, rows[name]) for name in node.atoms]
        schema, joined = join(parts)
        below = frozenset(node.variables)
        assert set(schema) == bag(graph, node.here, below, False) | (graph.free & below)
        for position in node.factors:
            left, right = (schema.index(v) for v in of.factors[position])
            joined = {row: m for row, m in joined.items() if row[left] < row[right]}
        return project(schema, joined, (*node.keys, *node.carried, *(v for v in of.free if v in below)))

    schema, result = join([view(root) for root in order.roots])
    assert project(schema, result, of.free)[1] == nested_loops(of, rows)


def join(parts: list[tuple[tuple[str, ...], Rows]]) -> tuple[tuple[str, ...], Rows]:
    schema: tuple[str, ...] = ()
    joined: Rows = {(): 1}
    for names, part in parts:
        merged = tuple(dict.fromkeys((*schema, *names)))
        together: Rows = {}
        for (one, m), (other, n) in product(joined.items(), part.items()):
            binding = dict(zip(schema, one, strict=True))
            if all(binding.setdefault(v, x) == x for v, x in zip(names, other, strict=True)):
                together[tuple(binding[v] for v in merged)] = m * n
        schema, joined = merged, together
    return schema, joined


def project(schema: tuple[str, ...], rows: Rows, onto: tuple[str, ...]) -> tuple[tuple[str, ...], Rows]:
    names = tuple(dict.fromkeys(onto))
    summed: Rows = {}
    for row, m in rows.items():
        key = tuple(row[schema.index(v)] for v in names)
        summed[key] = summed.get(key, 0) + m
    return names, summed


def nested_loops(of: Query, rows: dict[str, Rows]) -> Rows:
    schema, joined = join([(atom.variables, rows[atom.name]) for atom in of.atoms])
    for factor in of.factors:
        left, right = (schema.index(v) for v in factor)
        joined = {row: m for row, m in joined.items() if row[left] < row[right]}
    return project(schema, joined, of.free)[1]


def test_variables_of_the_same_atoms_are_placed_at_one_node() -> None:
    many = tuple(f"v{i}" for i in range(2000))
    order = best_order(query(f"Q(a, {', '.join(many)}) = R(a, {', '.join(many)}), S(a)"), True)
    (root,) = order.roots
    assert root.here == ("a",) and root.atoms == ("S",)
    (below,) = root.children
    assert below.here == many and below.keys == ("a",) and below.atoms == ("R",)
    assert order.paths["v7"] == ("a", *many)
    assert order.exact


def test_variables_of_the_same_atoms_are_searched_as_one_variable() -> None:
    sides = [", ".join(f"{side}{i}" for i in range(8)) for side in "abcd"]
    of = query(f"Q() = R({sides[0]}, {sides[1]}), S({sides[1]}, {sides[2]}), T({sides[2]}, {sides[3]})")
    space = order_search.Space(hypergraph(of), (), True)
    assert order_search.classes(space) == 4
    order = best_order(of, True)
    assert is_valid(order, of) and order.exact
    assert [node.variable for node in order.nodes() if node.variable.endswith("0")] == ["b0", "a0", "c0", "d0"]


def test_the_variable_order_of_a_large_query_is_marked_as_greedy() -> None:
    of = query("Q() = " + ", ".join(f"R{i}(v{i}, v{i + 1})" for i in range(24)))
    order = best_order(of, True)
    assert not order.exact and order.greedy == 25
    assert view_tree.plan(of).bounds[-1][1].startswith("greedy, over 25 variables\n")
