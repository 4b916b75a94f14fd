"""Optional and negated atoms: the interpreted programs of all strategies that accept them, against the oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freshviews.errors import PlanError
from freshviews.expr.nodes import Call, Column
from freshviews.plan.crown import propagation as crown
from freshviews.plan.delta import change_propagation, first_order, higher_order, view_tree
from freshviews.plan.trie import incremental_trie_join, trie_join
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.query.query import Aggregate, Query
from freshviews.types import BIGINT, BOOLEAN
from tests.plan.cases import filtered, sums, total
from tests.plan.streams import Stream, relations_of
from tests.plan.test_strategies import Strategy, assert_maintained, expected
from tests.program import wellformed
from tests.query.notation import column, query

STRATEGIES: dict[str, Strategy] = {
    "first_order": first_order.plan,
    "change_propagation": change_propagation.plan,
    "higher_order": higher_order.plan,
    "view_tree": view_tree.plan,
    "crown": crown.plan,
    "trie_join": trie_join.plan,
    "incremental_trie_join": incremental_trie_join.plan,
}
MAY_REFUSE = ("higher_order", "view_tree", "crown")
X1 = column("c1")


def is_null(made: Query, variable: str) -> Query:
    """The query with a condition that a variable is NULL."""
    condition = Call("is_null", (Column(variable, BIGINT, True),), BOOLEAN, False)
    return replace(made, conditions=(*made.conditions, condition))


CASES: dict[str, Query] = {
    "left join": query("Q(x, y) = R(x, k), S?(k | y)"),
    "left join, grouped": query("Q(x) = R(x, k), S?(k | y)"),
    "left join, keys alone": query("Q(x) = R(x, k), S?(k |)"),
    "left join, summed": sums("Q(x) = R(x, k), S?(k |)", total("s", ("S", X1)), total("t", ("R", column("c0")))),
    "left join, of products": sums("Q() = R(x, k), S?(k |)", total("s", ("R", column("c0")), ("S", X1))),
    "star": sums(
        "Q(a) = F(a, k, l), S?(k | y), T?(l |)", total("s", ("F", column("c0"))), total("t", ("T", X1))
    ),
    "chain": query("Q(x, z) = R(x, k), S?(k | y), T?(y | z)"),
    "chain, summed": sums("Q(x) = R(x, k), S?(k | y), T?(y |)", total("s", ("T", X1)), total("u", ("S", X1))),
    "chain of three": query("Q(x, w) = R(x, k), S?(k | y), T?(y | z), U?(z | w)"),
    "two keys": query("Q(x, y) = R(x, k, l), S?(k, l | y)"),
    "two keys of two tables": query("Q(x, y) = R(x, k), T(x, l), S?(k, l | y)"),
    "keys of an optional and of another": query("Q(x, z) = R(x, k), S?(k | y), U?(x, y | z)"),
    "self join": query("Q(a, c) = E(a, b), E?(b | c)"),
    "self join, twice": query("Q(a) = E(a, b), E?(b | c), E?(a | d)"),
    "no key": query("Q(x, y) = R(x), S?(| y)"),
    "inner below left": query("Q(x, y) = R(x, k), T(x, z), S?(k | y)"),
    "inner joins beside": query("Q(z, y) = R(x, k), T(x, z), U(z), S?(k | y)"),
    "rows without a partner": is_null(query("Q(x) = R(x, k), S?(k | y)"), "y"),
    "a condition across": is_null(query("Q(x, y, z) = R(x, k), S?(k | y), T?(k | z)"), "z"),
    "a filter on the right": filtered(
        query("Q(x, y) = R(x, k), S?(k | y)"), "S", Call("lt", (column("c0"), X1), BOOLEAN, False)
    ),
    "a cycle and a tail": query("Q(a, z) = R(a, b), S(b, c), T(c, a), U?(a | z)"),
    "not exists": query("Q(x) = R(x, k), !S(k)"),
    "not exists, of two": query("Q(x, y) = R(x, k), T(k, y), !S(x, y)"),
    "not exists, twice": query("Q() = R(x, k), !S(k), !T(x)"),
    "not exists, of one table": query("Q(a, b) = E(a, b), !E(b, a)"),
    "not exists, summed": sums("Q(k) = R(x, k), T(x), !S(k)", total("s", ("R", column("c0")))),
    "not exists over an optional": query("Q(x, y) = R(x, k), S?(k | y), !T(y)"),
    "not exists beside an optional": query("Q(x, y) = R(x, k), S?(k | y), !T(x)"),
    "not exists on a triangle": query("Q() = R(a, b), S(b, c), T(c, a), !U(a, c)"),
}


def planned(name: str, made: Query) -> Program:
    """The program; the test is skipped if the strategy cannot maintain the query."""
    try:
        return STRATEGIES[name](made)
    except PlanError as refusal:
        assert name in MAY_REFUSE, "these take every query"
        pytest.skip(str(refusal))


on_grid = pytest.mark.parametrize("case", CASES)
by_all = pytest.mark.parametrize("name", STRATEGIES)
by_deltas = pytest.mark.parametrize("name", [name for name in STRATEGIES if "trie_join" not in name])


@by_all
@on_grid
def test_result_and_change_equal_the_oracle_after_every_batch(name: str, case: str) -> None:
    program = planned(name, CASES[case])
    wellformed.check(program)
    for seed in range(4):
        relations = relations_of(CASES[case])
        assert_maintained(program, CASES[case], Stream(relations, seed, signed=False), batches=8 + 5 * len(relations))


@by_all
@on_grid
def test_updates_of_a_batch_in_reverse_order_give_the_same_result(name: str, case: str) -> None:
    made = CASES[case]
    program = planned(name, made)
    one, other = State(program), State(program)
    stream = Stream(relations_of(made), 5, signed=False)
    for i, batch in enumerate(stream.batches(12)):
        one.apply(batch.relation, batch.rows())
        other.apply(batch.relation, reversed(batch.rows()))
        assert one.output() == other.output()
        if i < 12:
            assert one.output() == expected(made, stream, program), print_program(program)


@st.composite
def optional_queries(draw: st.DrawFn) -> Query:
    """One or two ordinary atoms, up to three optional atoms that join earlier ones, and perhaps a negated one."""
    bound = ["a", "b"]
    atoms = ["R(a, b)"]
    if draw(st.booleans()):
        atoms.append("S(b, c)")
        bound.append("c")
    ordinary = list(bound)
    chained = True
    for i in range(draw(st.integers(0, 3))):
        keys = draw(st.lists(st.sampled_from(bound), min_size=0 if i == 0 else 1, max_size=2, unique=True))
        opened = ["xyz"[i]] if draw(st.booleans()) else []
        atoms.append(f"{'TUV'[i]}?({', '.join(keys)} | {', '.join(opened)})")
        bound += opened if chained else []
    if draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from(bound), min_size=1, max_size=2, unique=True))
        atoms.append(f"!W({', '.join(keys)})")
    free = [v for v in bound if draw(st.booleans())]
    lifts = [f for f in ("R", "T", "U") if any(atom.startswith(f) for atom in atoms)]
    totals: list[Aggregate] = []
    for name in lifts:
        if draw(st.booleans()):
            totals.append(total(f"s_{name}", (name, column("c1"))))
    made = sums(f"Q({', '.join(free)}) = {', '.join(atoms)}", *totals)
    opened_now = [v for v in bound if v not in ordinary]
    if opened_now and draw(st.booleans()):
        made = is_null(made, draw(st.sampled_from(opened_now)))
    return made


@by_all
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=optional_queries(), seed=st.integers(0, 2**16))
def test_random_queries_with_optional_and_negated_atoms_agree_with_the_oracle(
    name: str, made: Query, seed: int
) -> None:
    try:
        program = STRATEGIES[name](made)
    except PlanError:
        assert name in MAY_REFUSE
        return
    wellformed.check(program)
    assert_maintained(program, made, Stream(relations_of(made), seed, signed=False), batches=8)


def _steps(state: State, relation: str, row: dict[str, int], m: int = 1) -> int:
    before = state.steps
    state.apply(relation, [(row, m)])
    return state.steps - before


@by_deltas
def test_inserting_a_fact_takes_constant_steps(name: str) -> None:
    made = sums("Q(x) = F(x, k, l), S?(k |), T?(l |)", total("s", ("S", X1)), total("t", ("T", X1)))
    state = State(planned(name, made))
    for k in range(10):
        state.apply("S", [({"c0": k, "c1": k}, 1)])
    costs = [_steps(state, "F", {"c0": i % 7, "c1": i % 20, "c2": i % 3}) for i in range(400)]
    # The first facts create the rows of their groups.
    assert max(costs[100:]) <= 10


@by_deltas
def test_updates_of_optional_rows_cost_as_much_as_in_an_inner_join(name: str) -> None:
    outer = query("Q(x, y) = F(x, k), S?(k | y)")
    inner = replace(outer, atoms=tuple(replace(atom, given=None) for atom in outer.atoms))
    left, plain = State(STRATEGIES[name](outer)), State(STRATEGIES[name](inner))
    for state in (left, plain):
        for i in range(300):
            state.apply("F", [({"c0": i, "c1": 1}, 1)])
        state.apply("S", [({"c0": 1, "c1": 0}, 1)])
    more = [_steps(state, "S", {"c0": 1, "c1": 5}) for state in (left, plain)]
    assert more[0] <= more[1] + 2
    # The last row of a key restores the default rows of its facts, once.
    state = left
    state.apply("S", [({"c0": 1, "c1": 5}, -1)])
    assert _steps(state, "S", {"c0": 1, "c1": 0}, -1) <= 2 * more[1] + 5
