"""The running example of the CROWN paper: Figure 3, Examples 4.2, 4.3 and 5.8.

The figure shows counters, live rows and witnesses, not all tuples; the relations here are made of the rows that the
examples name.
"""

from __future__ import annotations

from collections import Counter

import pytest

from freshviews.plan.crown import propagation as crown
from freshviews.plan.crown.nodes import JOINED, JOINS, LIVE
from freshviews.program.reference.interpreter import State
from freshviews.query.acyclic import JoinTree
from freshviews.query.hypergraph import hypergraph
from freshviews.query.join_trees import best_tree
from tests.plan.oracle import Key
from tests.query.notation import query

QUERY = query("Q(x1, x2, x3, x4) = R1(x1, x2), R2(x2, x3), R3(x3, x4), R4(x4, x5)")

# (2, 2) and (2, 4) of R2 join with R1; four rows of R3 join with R4; x3 = 4 alone has both.
RELATIONS: dict[str, list[Key]] = {
    "R1": [(1, 2), (2, 2)],
    "R2": [(2, 2), (2, 4), (1, 1), (1, 2), (1, 4)],
    "R3": [(1, 1), (1, 2), (3, 2), (4, 4), (4, 3)],
    "R4": [(1, 1), (2, 2), (4, 4)],
}


def apply(state: State, relation: str, row: Key, m: int) -> Counter[Key]:
    """The change of the result by one update."""
    state.apply(relation, [(dict(zip(("c0", "c1"), row, strict=True)), m)])
    return Counter({key: count for key, (count,) in state.change().items()})


def count(state: State, view: str, key: Key, component: str = "count") -> int:
    names = [c.name for c in state.program.view(view).components]
    payload = state.views[view].get(key)
    return 0 if payload is None else payload[names.index(component)]


def projection(state: State, view: str, place: int) -> dict[Key, int]:
    """V_p: the slices of the joined rows by the variable at a place, with their counts of derivations."""
    (index,) = (ix for at, ix in state.subsets[view, JOINED].items() if at == (place,))
    return {key: len(rows) for key, rows in index.items() if rows}


@pytest.fixture
def state() -> State:
    program = crown.plan_enumerated(QUERY, distinct=True)
    assert program is not None
    state = State(program)
    for relation, rows in RELATIONS.items():
        for row in rows:
            apply(state, relation, row, 1)
    return state


def test_the_join_tree_of_the_example_equals_figure_1_c() -> None:
    tree = best_tree(hypergraph(QUERY), {})
    assert isinstance(tree, JoinTree)
    assert str(tree) == "[x3]\n  R2(x2, x3)\n    R1(x1, x2)\n  R3(x3, x4)\n    R4(x4, x5)"
    assert tree.height == 2


def test_views_and_counters_have_the_contents_of_example_4_2(state: State) -> None:
    assert state.members("R2", JOINED) == {(2, 2), (2, 4)}
    assert state.members("R3", JOINED) == {(1, 1), (1, 2), (3, 2), (4, 4)}
    assert projection(state, "R2", 1) == {(2,): 1, (4,): 1}
    assert projection(state, "R3", 0) == {(1,): 2, (3,): 1, (4,): 1}
    # The virtual relation of [x3] is the union of both projections; a counter of 2 makes a row of V_s.
    assert {key: payload[0] for key, payload in state.views["G_x3"].items()} == {(1,): 1, (2,): 1, (3,): 1, (4,): 2}
    assert state.members("G_x3", JOINED) == {(4,)}
    assert state.members("R2", LIVE) == {(2, 4)}
    assert set(state.output()) == {(1, 2, 4, 4), (2, 2, 4, 4)}


def test_an_insert_has_the_effects_of_examples_4_3_and_5_8(state: State) -> None:
    change = apply(state, "R1", (1, 1), 1)
    # Three rows of R2 with x2 = 1 become joined; the path of each ends elsewhere.
    assert state.members("R2", JOINED) == {(2, 2), (2, 4), (1, 1), (1, 2), (1, 4)}
    assert all(count(state, "R2", row, JOINS) == 1 for row in state.members("R2", JOINED))
    assert projection(state, "R2", 1) == {(1,): 1, (2,): 2, (4,): 2}
    assert count(state, "G_x3", (1,)) == 2 and state.members("G_x3", JOINED) == {(1,), (4,)}
    # (1, 2) is no witness; (1) of [x3] is, and (1, 4) of R2, whose x3 is live.
    assert change == {(1, 1, 1, 1): 1, (1, 1, 1, 2): 1, (1, 1, 4, 4): 1}
    assert state.members("R2", LIVE) == {(2, 4), (1, 1), (1, 4)}


def test_a_delete_has_the_effects_of_examples_4_3_and_5_8(state: State) -> None:
    apply(state, "R1", (1, 1), 1)
    change = apply(state, "R4", (1, 1), -1)
    assert count(state, "R3", (1, 1), JOINS) == 0
    assert state.members("R3", JOINED) == {(1, 2), (3, 2), (4, 4)}
    assert projection(state, "R3", 0) == {(1,): 1, (3,): 1, (4,): 1}  # that of (1) was 2: the propagation stops
    assert state.members("G_x3", JOINED) == {(1,), (4,)}
    assert change == {(1, 1, 1, 1): -1}
    assert state.members("R2", LIVE) == {(2, 4), (1, 1), (1, 4)}
    assert set(state.output()) == {(1, 2, 4, 4), (2, 2, 4, 4), (1, 1, 1, 2), (1, 1, 4, 4)}


def test_deleting_the_last_row_of_a_slice_removes_the_live_rows_below(state: State) -> None:
    assert apply(state, "R3", (4, 4), -1) == {(1, 2, 4, 4): -1, (2, 2, 4, 4): -1}
    assert state.members("R2", LIVE) == set() == state.members("G_x3", JOINED)
