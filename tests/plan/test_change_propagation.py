"""The intermediate results that change propagation stores."""

from __future__ import annotations

from freshviews.plan.delta import change_propagation
from tests.query.notation import query


def views_of(text: str) -> dict[str, tuple[str, ...]]:
    return {view.name: view.key for view in change_propagation.plan(query(text)).views}


def order_of(text: str) -> str:
    return "".join(atom.name for atom in change_propagation.join_order(query(text)))


def test_intermediate_results_are_keyed_by_the_variables_still_needed() -> None:
    assert views_of("Q(a, d) = R(a, b), S(b, c), T(c, d)") == {
        "R": ("a", "b"),
        "S": ("b", "c"),
        "RS": ("a", "c"),
        "T": ("c", "d"),
        "Q": ("a", "d"),
    }


def test_a_variable_of_a_later_condition_stays_in_the_key() -> None:
    views = views_of("Q() = R(a, b), S(b, c), T(c, d), U(d, e), a < d")
    assert (views["RS"], views["RST"]) == (("a", "c"), ("d",))


def test_the_first_connected_atom_is_joined_next() -> None:
    assert order_of("Q() = R(a, b), S(b, c), T(c, d)") == "RST"
    assert order_of("Q() = R(a, b), T(c, d), S(b, c)") == "RST"
    assert order_of("Q() = R(a), T(c), S(a, b), U(b)") == "RSUT"
