"""``trie_join``: its bounds by counting, its key order, and the caching and tabulating of sums in its plans."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import freshviews as fv
from benchmarks.counting.moves import count_of, counted
from benchmarks.counting.worst_cases import LOOMIS_WHITNEY, TRIANGLE, slope, worst_case
from freshviews.engine.blocks.runtime import BlockState
from freshviews.plan.delta import first_order
from freshviews.plan.trie import incremental_trie_join, trie_join
from freshviews.plan.trie.key_order import best_key_order
from freshviews.program.printer import print_program
from freshviews.program.reference.interpreter import State
from freshviews.program.statements import Add, Leap, Lookup, Statement, Sum
from freshviews.program.structure import bodies, visit
from freshviews.query.query import Query
from tests.program.wellformed import check
from tests.query.notation import query as in_notation

LARGEST = int(os.environ.get("FRESHVIEWS_TRIE_ROWS", "32000"))
"""Rows of the largest worst case; a million in the long form."""


def _sizes(least: int, most: int) -> list[int]:
    found = []
    while least <= most:
        found.append(least)
        least *= 4
    return found


@pytest.mark.parametrize(("name", "atoms", "most"), [("triangle", TRIANGLE, 1.55), ("four", LOOMIS_WHITNEY, 1.40)])
def test_cursor_moves_are_bounded_by_the_largest_possible_result(
    name: str, atoms: dict[str, str], most: float
) -> None:
    query = count_of(atoms)
    sizes = _sizes(2_000, LARGEST)
    steps = [counted(query, "trie_join", worst_case(atoms, size))[0] for size in sizes]
    assert slope(sizes, steps) <= most, f"{name}: {dict(zip(sizes, steps, strict=True))}"


@pytest.mark.parametrize("atoms", [TRIANGLE, LOOMIS_WHITNEY])
def test_a_plan_of_binary_joins_takes_quadratically_many_steps(atoms: dict[str, str]) -> None:
    query = count_of(atoms)
    sizes = _sizes(800, 12_800)
    found = [counted(query, "change_propagation", worst_case(atoms, size)) for size in sizes]
    assert 1.8 <= slope(sizes, [steps for steps, _ in found]) <= 2.1
    assert [n for _, n in found] == [counted(query, "trie_join", worst_case(atoms, size))[1] for size in sizes]


def test_the_cursor_with_the_fewest_values_bounds_the_moves() -> None:
    # Even and odd numbers leap over one another all along; a third relation with one value ends that at once.
    query = count_of({"r": "ax", "s": "ay", "t": "az"})
    even, odd = (np.column_stack([np.arange(k, 200_000, 2), np.zeros(100_000, np.int64)]) for k in (0, 1))
    few = np.array([[99_999, 0]])
    steps, found = counted(query, "trie_join", {"r": even, "s": odd, "t": few})
    assert found == 0 and steps < 20


FOUR = {"r": "ab", "s": "bc", "t": "cd", "u": "da"}
FIVE = {"r": "ab", "s": "bc", "t": "cd", "u": "de", "v": "ea"}
TAILED = {**FOUR, "v": "de", "w": "ea"}


def test_the_program_of_a_four_cycle_tabulates_paths_from_a_corner() -> None:
    program = trie_join.plan(count_of(FOUR))
    assert [(view.key, view.definition) for view in program.upkeep.scratch] == [(("c",), "what d add up to, by c")]
    scratch = program.upkeep.scratch[0].name
    added = [s for s in visit(program.upkeep.statements) if isinstance(s, Add) and s.view == scratch]
    asked = [s.key for s in visit(program.upkeep.statements) if isinstance(s, Lookup)]
    assert len(added) == 1 and asked == [("c",)]
    assert not [s for s in visit(program.upkeep.statements) if isinstance(s, Sum) and s.remembered]


def test_the_program_of_a_five_cycle_caches_sums_for_each_pair_of_corners() -> None:
    program = trie_join.plan(count_of(FIVE))
    assert [view.key for view in program.upkeep.scratch] == [("d",)]
    remembered = [s.remembered for s in visit(program.upkeep.statements) if isinstance(s, Sum) and s.remembered]
    assert remembered == [("a", "c")]


def test_sums_are_not_tabulated_if_that_may_take_more_steps() -> None:
    # Few rows lead to c, compared with those that lead back to a.
    sizes = {"r": 10.0, "s": 10.0, "t": 1e6, "u": 1e6}
    order = ("a", "b", "c", "d")
    assert not trie_join.plan(count_of(FOUR), order=order, sizes=sizes).upkeep.scratch
    assert trie_join.plan(count_of(FOUR), order=order).upkeep.scratch


@pytest.mark.parametrize("atoms", [FOUR, FIVE, TAILED], ids=["four", "five", "four and three"])
@pytest.mark.parametrize("free", ["", "a", "b", "ac"])
def test_trie_join_and_first_order_count_the_same_cycles(atoms: dict[str, str], free: str) -> None:
    query = replace(count_of(atoms), free=tuple(free))
    ours, deltas = State(trie_join.plan(query)), State(first_order.plan(query))
    draw = np.random.default_rng(len(atoms))
    for _ in range(3):
        for name in atoms:
            rows = [({"c0": int(a), "c1": int(b)}, int(m)) for a, b, m in draw.integers((0, 0, -1), (5, 5, 3), (8, 3))]
            for state in (ours, deltas):
                state.apply(name, rows)
        assert ours.output() == deltas.output()
    check(ours.program)


def test_compiled_trie_join_and_first_order_count_equal_cycles() -> None:
    query = count_of(FOUR)
    rows = {name: np.random.default_rng(i).integers(0, 900, (6_000, 2)) for i, name in enumerate(FOUR)}
    assert counted(query, "trie_join", rows)[1] == counted(query, "first_order", rows)[1] > 0


def test_a_star_query_is_counted_by_a_product_of_sums() -> None:
    query = count_of({"r": "xa", "s": "xb", "t": "xc"})
    program = trie_join.plan(query)
    nested = max(_depth(s) for s in program.upkeep.statements)
    assert nested == 2, print_program(program)


def _depth(statement: Statement) -> int:
    inner = max((_depth(s) for body in bodies(statement) for s in body), default=0)
    return inner + isinstance(statement, Leap)


OUTER = "Q(a, z) = R(a, b), S(b, c), T(c, a), U?(a | z), !V(b)"


def test_the_program_of_an_outer_join_equals_the_golden_file(golden: Callable[[str, str], None]) -> None:
    golden("programs/outer-join.trie_join.txt", print_program(trie_join.plan(in_notation(OUTER))))


def test_optional_and_negated_atoms_add_only_lookups() -> None:
    nodes = range(12)
    edges = [({"c0": i, "c1": j}, 1) for i in nodes for j in nodes]
    inner, outer = (
        State(trie_join.plan(in_notation(text))) for text in ("Q(a) = R(a, b), S(b, c), T(c, a)", OUTER)
    )
    for state in (inner, outer):
        for name in "RST":
            state.apply(name, edges)
    outer.apply("U", [({"c0": i, "c1": j}, 1) for i in nodes if i % 2 for j in nodes])
    outer.apply("V", [({"c0": 5}, 1)])
    before = [state.steps for state in (inner, outer)]
    for state in (inner, outer):
        state.apply("R", [({"c0": 1, "c1": 99}, 1)])
    joined, both = (state.steps - first for state, first in zip((inner, outer), before, strict=True))
    # Each pair of a and b looks V up; the rows of U and the default rows are added to groups: two steps each.
    assert both <= joined + len(nodes) ** 2 + 2 * (6 * 12 + 6)


def test_the_program_of_a_traced_outer_join_equals_the_golden_file(golden: Callable[[str, str], None]) -> None:
    program = incremental_trie_join.plan(in_notation(OUTER))
    check(program)
    golden("programs/outer-join.incremental_trie_join.txt", print_program(program))


def test_an_update_of_an_optional_atom_does_not_repeat_the_trace() -> None:
    nodes = range(12)
    state = State(incremental_trie_join.plan(in_notation(OUTER)))
    for name in "RST":
        state.apply(name, [({"c0": i, "c1": j}, 1) for i in nodes for j in nodes])
    for m in (1, 1, -1, -1):
        before = state.steps
        state.apply("U", [({"c0": 3, "c1": 4}, m)])
        # The row, its indicator and two lookups of derivations that the trace has found.
        assert state.steps - before <= 8


def test_a_key_order_has_only_variables_of_ordinary_atoms() -> None:
    assert set(best_key_order(in_notation(OUTER))) == {"a", "b", "c"}


def test_a_join_ends_at_the_first_match_if_only_presence_matters() -> None:
    query = replace(count_of({"r": "ab", "s": "bc"}), free=("a",))
    some, every = State(trie_join.plan(query, once=True)), State(trie_join.plan(query, order=("a", "b", "c")))
    for state in (some, every):
        state.apply("r", [({"c0": a, "c1": b}, 1) for a in range(10) for b in range(10)])
        state.apply("s", [({"c0": b, "c1": c}, 1) for b in range(10) for c in range(10)])
    assert set(some.output()) == set(every.output()) == {(a,) for a in range(10)}
    assert set(some.output().values()) == {(1,)}
    for state in (some, every):
        state.steps = 0
        state.evaluate()
    assert some.steps < every.steps / 3


def test_atoms_with_the_same_relation_and_key_order_share_a_trie() -> None:
    query = count_of({"r": "ab", "s": "ac", "t": "bc"})
    clique = replace(query, atoms=tuple(replace(atom, relation="e") for atom in query.atoms))
    program = trie_join.plan(clique)
    assert [trie.view for trie in program.upkeep.tries] == ["e"]
    first = next(s for s in visit(program.upkeep.statements) if isinstance(s, Leap))
    assert len(first.cursors) == 1


def test_the_key_order_begins_with_the_smaller_relation() -> None:
    query = count_of({"big": "ab", "small": "bc"})
    assert best_key_order(query, sizes={"big": 1e6, "small": 10.0})[0] == "b"
    star = count_of({"one": "xa", "two": "yb", "many": "xy"})
    assert best_key_order(star, sizes={"one": 1e6, "two": 10.0, "many": 1e6})[0] == "y"


def test_a_query_of_many_variables_has_a_key_order() -> None:
    letters = "abcdefghijkl"
    query = count_of({f"r{i}": letters[i] + letters[(i + 1) % len(letters)] for i in range(len(letters))})
    assert sorted(best_key_order(query)) == sorted(letters)


SCRIPT = """
    CREATE TABLE r (a BIGINT, b BIGINT);
    CREATE TABLE s (b BIGINT, c BIGINT);
    CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS
        SELECT r.a AS a, COUNT(*) AS n FROM r JOIN s ON r.b = s.b AND r.a = s.c GROUP BY r.a;
"""


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'freshviews.key_order' = 'a, x'", "view v: there is no variable 'x'; list all of a"),
        ("'freshviews.key_order' = 'a, b, a'", "view v: 'a' is given twice in 'freshviews.key_order'"),
        ("'freshviews.key_order' = 'a'", "view v: variable 'b' is missing; list all of a"),
        (
            "'freshviews.key_order' = 'a, b', 'freshviews.strategy' = 'crown'",
            "view v: 'freshviews.key_order' is an option of strategy trie_join, but the view names strategy crown",
        ),
        (
            "'freshviews.key_order' = 'a, b', 'freshviews.bag_strategy' = 'first_order'",
            "view v: 'freshviews.key_order' is an option of strategy trie_join, but the view names strategy crown",
        ),
    ],
)
def test_an_invalid_key_order_is_refused(properties: str, message: str) -> None:
    with fv.Database() as db, pytest.raises(fv.PlanError) as refusal:
        db.execute(SCRIPT.format(properties=properties))
    assert message in str(refusal.value)


def test_a_named_key_order_is_used_and_shown_by_explain() -> None:
    with fv.Database() as db:
        db.execute(SCRIPT.format(properties="'freshviews.key_order' = 'b, a'"))
        reported = db.view("v").explain()
    assert "strategy  trie_join: named by the user" in reported
    assert "key order b, a" in reported
    assert "tries     r_b_a = r by b, a, for r; s = s by b, a, for s" in reported


def test_trie_join_stores_the_same_views_as_first_order() -> None:
    query: Query = count_of(TRIANGLE)
    stored = [(v.name, v.key, v.components) for v in first_order.plan(query).views]
    assert [(v.name, v.key, v.components) for v in trie_join.plan(query).views] == stored


def test_a_version_with_rows_of_several_tables_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[BlockState] = []
    evaluate = BlockState.evaluate
    monkeypatch.setattr(BlockState, "evaluate", lambda state: (evaluated.append(state), evaluate(state))[1])
    with fv.Database() as db:
        db.execute("""CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT);
            CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'trie_join') AS
            SELECT r.a, s.c FROM r JOIN s ON r.b = s.b""")
        before = len(evaluated)
        with db.batch() as batch:
            batch.insert("r", [(1, 2)])
            batch.insert("s", [(2, 3)])
        assert list(db.view("v")) == [(1, 3)]
        assert len(evaluated) == before + 1
