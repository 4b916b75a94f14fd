from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.expr.nodes import Call, Column, Literal
from freshviews.query.dependencies import FD, closure, from_keys, reduct
from freshviews.query.hierarchical import is_q_hierarchical
from freshviews.query.hypergraph import hypergraph, signature
from freshviews.query.variable_order import best_order, dynamic_width, is_free_top
from freshviews.types import BIGINT, BOOLEAN
from tests.query.notation import query
from tests.query.orders import is_valid, order_by_priority, static_width
from tests.query.random_queries import dependencies, queries

CHAIN = query("Q(w, x, y, z) = R(w, x), S(x, y), T(y, z)")
X_TO_Y, Y_TO_Z = FD(("x",), ("y",), "S"), FD(("y",), ("z",), "T")


def test_the_closure_follows_chains_of_dependencies() -> None:
    assert closure(("x",), (X_TO_Y, Y_TO_Z)) == {"x", "y", "z"}
    assert closure(("z",), (X_TO_Y, Y_TO_Z)) == {"z"}
    assert closure((), (FD((), ("a",)), FD(("a",), ("b",)))) == {"a", "b"}


def test_the_reduct_of_the_chain_query_is_q_hierarchical() -> None:
    graph = hypergraph(CHAIN)
    reduced = reduct(graph, (X_TO_Y, Y_TO_Z))
    assert [signature(e, graph) for e in reduced.edges] == ["R(w, x, y, z)", "S(x, y, z)", "T(y, z)"]
    assert not is_q_hierarchical(graph)
    assert is_q_hierarchical(reduced)


def test_with_dependencies_updates_of_the_chain_query_take_constant_time() -> None:
    order = order_by_priority(CHAIN, ("z", "y", "x", "w"), free_top=True)
    assert str(order) == "z []\n`-- y [z] T\n    `-- x [y] S\n        `-- w [x] R"
    assert dynamic_width(order, CHAIN) == 1
    assert dynamic_width(order, CHAIN, (X_TO_Y, Y_TO_Z)) == 0
    assert static_width(order, CHAIN, (X_TO_Y, Y_TO_Z)) == 1


def test_the_best_order_may_enumerate_determined_variables() -> None:
    orders = query("Q(o, d) = C(c), O(c, o, d), L(o)")
    key = FD(("o",), ("c", "d"), "O")
    order = best_order(orders, True, (key,))
    assert dynamic_width(order, orders, (key,)) == 0
    assert is_free_top(order, orders, (key,)) and not is_free_top(order, orders)
    assert dynamic_width(best_order(orders, True), orders) == 1


def test_a_key_determines_all_variables_of_its_atom() -> None:
    found = from_keys(CHAIN, {"S": (("c0",),), "T": (("c0",), ("c0", "c1"))})
    assert found == (X_TO_Y, Y_TO_Z)
    assert [str(fd) for fd in found] == ["x -> y", "y -> z"]


def test_a_key_implies_a_dependency_in_every_atom_of_a_self_join() -> None:
    found = from_keys(query("Q() = E(a, b), E(b, c)"), {"E": (("c0",),)})
    assert found == (FD(("a",), ("b",), "E"), FD(("b",), ("c",), "E_2"))


def test_nullable_keys_imply_no_dependency() -> None:
    atom = CHAIN.atoms[1]
    assert from_keys(CHAIN, {"S": (("c7",),)}) == ()
    nullable = Column("c0", BIGINT, True)
    loose = replace(atom, columns=(nullable, atom.columns[1]))
    assert from_keys(replace(CHAIN, atoms=(loose,)), {"S": (("c0",),)}) == ()
    held = replace(loose, filters=(Call("is_not_null", (nullable,), BOOLEAN, False),))
    assert from_keys(replace(CHAIN, atoms=(held,)), {"S": (("c0",),)}) == (X_TO_Y,)


def test_a_variable_computed_from_a_key_column_implies_no_dependency() -> None:
    atom = CHAIN.atoms[1]
    negated = replace(atom, columns=(Call("neg_int", (atom.columns[0],), BIGINT, False), atom.columns[1]))
    assert from_keys(replace(CHAIN, atoms=(negated,)), {"S": (("c0",),)}) == ()


def test_a_key_column_fixed_by_a_filter_needs_no_variable() -> None:
    fixed = Call("eq", (Column("c7", BIGINT), Literal(5, BIGINT)), BOOLEAN)
    atom = replace(CHAIN.atoms[1], filters=(fixed,))
    found = from_keys(replace(CHAIN, atoms=(atom,)), {"S": (("c0", "c7"),)})
    assert found == (X_TO_Y,)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_q_hierarchical_reduct_has_dynamic_width_0_if_all_relations_obey_the_dependencies(
    data: st.DataObject
) -> None:
    of = data.draw(queries())
    rules = data.draw(dependencies(of, anywhere=True))
    width = dynamic_width(best_order(of, True, rules), of, rules)
    assert is_q_hierarchical(reduct(hypergraph(of), rules)) == (width == 0)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_dependencies_never_increase_the_width(data: st.DataObject) -> None:
    of = data.draw(queries(conditions=True))
    rules = data.draw(dependencies(of))
    order = best_order(of, True)
    assert dynamic_width(order, of, rules) <= dynamic_width(order, of)
    assert static_width(order, of, rules) <= static_width(order, of)
    better = best_order(of, True, rules)
    assert is_valid(better, of) and is_free_top(better, of, rules)


def test_keys_of_optional_atoms_imply_dependencies_of_given_variables() -> None:
    made = query("Q(x, y, z) = R(x, k), S?(k | y, z)")
    assert from_keys(made, {"S": (("c0",),)}) == (FD(("k",), ("y", "z"), "S"),)
    # In default rows y is NULL for every k.
    assert from_keys(made, {"S": (("c1",),)}) == ()
