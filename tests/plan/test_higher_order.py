"""The views that the higher-order strategy makes."""

from __future__ import annotations

import pytest

from freshviews.errors import PlanError
from freshviews.plan.delta import higher_order
from freshviews.program.reference.interpreter import State
from tests.plan.cases import CASES
from tests.query.notation import query


def views_of(text: str) -> dict[str, tuple[str, ...]]:
    return {view.name: view.key for view in higher_order.plan(query(text)).views}


def test_the_key_of_a_view_consists_of_join_variables_and_free_variables() -> None:
    assert views_of("Q(a, b, c) = R(a, b), S(a, c, e), T(a, c, d)") == {
        "R": ("a", "b"),
        "V_S": ("a", "c"),
        "V_T": ("a", "c"),
        "V_ST": ("a", "c"),
        "Q": ("a", "b", "c"),
    }


def test_views_with_reordered_columns_are_stored_once() -> None:
    assert set(views_of("Q() = R(a, b), S(b, c), T(c, a)")) == {"R", "S", "T", "V_ST", "V_RT", "V_RS", "Q"}


def test_each_component_of_a_split_path_has_one_view() -> None:
    parts = {"V_R", "S", "V_T", "V_RS", "V_ST", "Q"}
    assert set(views_of("Q() = R(a, b), S(b, c), T(c, d)")) == parts


def test_a_condition_within_a_component_is_applied_in_its_view() -> None:
    views = views_of("Q(a) = R(a, b), S(b, c), T(c, d), b != d")
    assert views["V_ST"] == ("b",)


def test_a_condition_across_components_adds_its_variables_to_their_views() -> None:
    views = views_of("Q() = R(a), S(a, b), T(a, c), b < c")
    assert (views["S"], views["T"]) == (("a", "b"), ("a", "c"))


def test_equal_lookups_of_a_trigger_are_merged() -> None:
    state = State(higher_order.plan(CASES["lecture"]))
    state.apply("T", [({"c0": 1, "c1": 2, "c2": 3}, 1)])
    state.steps = 0
    state.apply("S", [({"c0": 1, "c1": 2, "c2": 3}, 1)])
    # The update, one lookup of V_T, adds to V_ST and V_S.
    assert state.steps == 4


def test_an_update_of_a_star_query_takes_constant_time() -> None:
    made = query("Q() = R(k, a), S(k, b), T(k, c)")
    for size in (10, 1000):
        state = State(higher_order.plan(made))
        for i in range(size):
            for name in "RST":
                state.apply(name, [({"c0": i % 3, "c1": i}, 1)])
        state.steps = 0
        state.apply("R", [({"c0": 1, "c1": 0}, 1)])
        # The update, two lookups, adds to the result and to the marginalised R.
        assert state.steps == 5


def test_a_query_that_would_need_too_many_views_is_refused() -> None:
    keys = ", ".join(f"k{i}" for i in range(10))
    dimensions = ", ".join(f"D{i}(k{i}, a{i})" for i in range(10))
    with pytest.raises(PlanError, match="256 views"):
        higher_order.plan(query(f"Q() = F({keys}), {dimensions}"))
