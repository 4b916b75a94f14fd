"""Triangles listed by heavy and light parts: rows and changes, the views by definition, steps and delay by counting."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from benchmarks.workloads.hard import oumv_stream
from freshviews.plan.eps import triangle_listing as ivm_eps_listing
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.query.query import Query
from tests.plan.oracle import Relation, evaluate_query
from tests.plan.parts import check_parts
from tests.plan.test_ivm_eps import slope
from tests.plan.test_ivm_eps_four import Update, apply, relations_of, stream
from tests.program import wellformed
from tests.query.notation import query

QUERIES = {
    "triangles": query("Q(a, b, c) = R(a, b), S(b, c), T(c, a)"),
    "in another order, with a condition": query("Q(c, a, b) = R(a, b), S(b, c), T(c, a), a < b"),
    "of one table": query("Q(a, b, c) = E(a, b), E(b, c), E(c, a)"),
    "with a variable of all": query("Q(a, x, b, c) = R(a, x, b), S(b, x, c), T(c, x, a)"),
}


def planned(one: Query, epsilon: float = 0.5, distinct: bool = False) -> Program:
    program = ivm_eps_listing.plan(one, epsilon, distinct)
    assert program is not None
    return program


def rows_of(state: State) -> dict[tuple[int, ...], int]:
    found: list[tuple[tuple[int, ...], int]] = []
    state.enumerate(lambda row, payload: found.append((row, payload[0])))
    rows = dict(found)
    assert len(rows) == len(found), "a row comes twice"
    return rows


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_listed_rows_and_their_changes_equal_the_join_after_every_step(
    name: str, distinct: bool, epsilon: float
) -> None:
    one = QUERIES[name]
    program = planned(one, epsilon, distinct)
    wellformed.check(program)
    state, relations = State(program), relations_of(one)
    before: dict[tuple[int, ...], int] = {}
    most = 0
    for i, (relation, row, m) in enumerate(stream(relations, 5, 200)):
        if distinct:
            m = 1 if (relation, row) not in {(r, k) for r in relations for k in relations[r].rows} else -1
            m = m if m > 0 else -relations[relation].rows[row]
        apply(state, (relation, row, m))
        relations[relation].add(row, m)
        if i % 2:
            continue
        check_parts(state)
        counts = {key: found["count"] for key, found in evaluate_query(one, relations).items() if found["count"]}
        expected = {key: 1 if distinct else m for key, m in counts.items()}
        assert rows_of(state) == expected
        change = {key: expected.get(key, 0) - before.get(key, 0) for key in {**expected, **before}}
        assert state.change() == {key: (m,) for key, m in change.items() if m}
        assert all(state.find(key) == (m,) for key, m in list(expected.items())[:3])
        before, most = expected, max(most, len(expected))
    assert most > 1, most
    if epsilon == 0.1:
        assert state.balances.minor > 0


def test_pair_views_join_heavy_with_light_parts() -> None:
    state, relations = State(planned(QUERIES["triangles"], 0.2)), relations_of(QUERIES["triangles"])
    seen = set()
    for update in stream(relations, 6, 160):
        apply(state, update)
        heavy = {key: set(state.views[f"{store}_heavy"]) for store, key in (("R", "a"), ("S", "b"), ("T", "c"))}
        for view, one, other, key, row in (
            ("V_RS", "R", "S", ("a", "b", "c"), "T"), ("V_ST", "S", "T", ("b", "c", "a"), "R"),
            ("V_TR", "T", "R", ("c", "a", "b"), "S"),
        ):
            expected = {
                dict_of(key, x, y, z): (m[0] * n[0],)
                for (x, y), m in state.views[one].items()
                for (also, z), n in state.views[other].items()
                if y == also and (x,) in heavy[key[0]] and (y,) not in heavy[key[1]]
            }
            assert state.views[view] == expected
            numbers = Counter((z, x) for x, _, z in (in_order(key, found) for found in expected))
            assert state.views[f"N{view[1:]}"] == {pair: (n,) for pair, n in numbers.items()}
            assert state.members(row, "listed") == set(numbers) & set(state.views[row])
            seen.update([view] if expected else [])
    assert len(seen) == 3, "views were tested empty"


def dict_of(key: tuple[str, ...], *values: int) -> tuple[int, ...]:
    """Values of the variables of ``key`` in the order a, b, c."""
    return tuple(value for _, value in sorted(zip(key, values, strict=True)))


def in_order(key: tuple[str, ...], row: tuple[int, ...]) -> tuple[int, ...]:
    """A row in the order a, b, c, as values of the variables of ``key``."""
    return tuple(row["abc".index(variable)] for variable in key)


def test_updates_without_a_subscriber_take_sublinear_time() -> None:
    found = []
    for n in (100, 400, 1600):
        state = State(planned(QUERIES["triangles"]))
        state.want_changes(False)
        worst = 0.0
        for phase in oumv_stream(4, n, rounds=2):
            before = state.steps
            for update in phase:
                apply(state, update)
            worst = max(worst, (state.steps - before) / max(len(phase), 1))
        # An update of R finds every second value of c, or none, and takes a few steps.
        found.append((float(n), worst))
    assert slope(found) <= 0.6, found


def test_a_change_takes_a_constant_number_of_steps_per_row() -> None:
    """R(0, 0) comes and goes while S and T have n pairs for it, all with heavy values."""
    for n in (200, 800):
        state = State(planned(QUERIES["triangles"]))
        for c in range(n):
            apply(state, ("S", (0, c), 1))
            apply(state, ("T", (c, 0), 1))
        before = state.steps
        apply(state, ("R", (0, 0), 1))
        assert len(state.change()) == n
        assert state.steps - before <= 3 * n + 40


def test_the_delay_between_rows_is_constant() -> None:
    """The steps from row to row do not depend on deleted rows."""
    state, rng = State(planned(QUERIES["triangles"])), random.Random(3)
    relations = {name: Relation(("c0", "c1")) for name in "RST"}
    rows: list[Update] = [
        (name, (int(40 * rng.random() ** 3), int(40 * rng.random() ** 2)), 1) for _ in range(250) for name in "RST"
    ]
    for update in rows:
        apply(state, update)
        relations[update[0]].add(update[1], 1)
    for relation, row, _ in rows[:500]:
        apply(state, (relation, row, -1))
        relations[relation].add(row, -1)
    gaps, last = [], state.steps

    def emit(row: tuple[int, ...], payload: tuple[int, ...]) -> None:
        nonlocal last
        gaps.append(state.steps - last)
        last = state.steps

    state.enumerate(emit)
    assert len(gaps) > 20 and max(gaps) <= 4, max(gaps)
