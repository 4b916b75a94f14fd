"""Isomorphic bags of a cyclic query: one program maintains them, for nodes that read different variables."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews.plan.crown import propagation as crown
from freshviews.plan.crown.alike import Kept, kept_of
from freshviews.plan.crown.free_connex_query import prepared
from freshviews.program.reference.interpreter import State
from freshviews.program.statements import Loop
from freshviews.program.structure import visit
from freshviews.query.acyclic import is_acyclic
from freshviews.query.hypergraph import hypergraph
from freshviews.query.query import Aggregate, Lift, Query
from tests.plan.bag_strategies import BAG_STRATEGIES, bag_strategy
from tests.plan.streams import Stream, relations_of
from tests.plan.test_crown import assert_distinct_maintained, enumerated, keys
from tests.plan.test_strategies import assert_maintained
from tests.program import wellformed
from tests.query.notation import column, query

ENDS = "E(a, b), E(a, c), E(b, c)", "E(d, e), E(d, f), E(e, f)"
DUMBBELL = f"{ENDS[0]}, E(c, d), {ENDS[1]}"
ALIKE = (
    f"Q(c, d) = {DUMBBELL}",
    f"Q(a, b, c, d, e, f) = {DUMBBELL}",
    f"Q(b, c, d) = {DUMBBELL}, a < b, d < e",
    "Q(a) = E(a, b), E(b, c), E(c, a), E(a, d), E(d, e), E(e, a)",
    "Q(a, c) = E(a, b), E(b, c), E(c, d), E(d, a)",
    "Q(c, d) = E(a, a), E(a, b), E(a, c), E(b, c), F(c, d), E(d, d), E(d, e), E(d, f), E(e, f)",
    "Q(c, d, g) = E(a, b), E(a, c), E(b, c), F(c, d), E(d, e), E(d, f), E(e, f), F(f, g), E(g, h), E(g, i), E(h, i)",
)
APART = (
    # Another table, another direction, another condition, a filter.
    "Q(c, d) = E(a, b), E(a, c), E(b, c), E(c, d), F(d, e), E(d, f), E(e, f)",
    "Q(c, d) = E(a, b), E(b, c), E(c, a), E(c, d), E(d, e), E(d, f), E(e, f)",
    f"Q(c, d) = {DUMBBELL}, a < b, e < d",
    f"Q(c, d) = {DUMBBELL}, b < c",
)


def kept(made: Query, widened: bool = True) -> tuple[Kept, ...]:
    return kept_of(prepared(made).bags, widened)


@pytest.mark.parametrize("text", ALIKE)
def test_one_program_maintains_isomorphic_bags(text: str) -> None:
    made = query(text)
    (one,) = kept(made)
    assert len(one.read) == len(prepared(made).bags) > 1
    for name, read in one.read.items():
        assert len(read) == len(prepared(made).bags[name].query.free)
        assert set(read) <= set(one.query.free)


@pytest.mark.parametrize("text", APART)
def test_different_bags_have_programs_of_their_own(text: str) -> None:
    assert len(kept(query(text))) == 2


def test_bags_with_different_sums_have_programs_of_their_own() -> None:
    lifts = (Lift("E", column("c0")),)
    made = query(f"Q(c, d) = {DUMBBELL}", (Aggregate("count", "integer"), Aggregate("x", "integer", lifts)))
    assert len(kept(made)) == 2
    assert_maintained(crown.plan(made), made, Stream(relations_of(made), 1), 15)


def test_bags_of_different_variables_share_no_stored_join() -> None:
    """The two ends read different corners; in the other query both read all corners."""
    assert [len(kept(query(text), False)) for text in ALIKE[:2]] == [2, 1]
    programs = [crown.plan(query(ALIKE[0]), inner=bag_strategy(name)) for name in ("first_order", "view_tree")]
    assert [sum(one.relation == "E" for one in program.triggers) > 2 for program in programs] == [False, True]


def test_changes_are_summed_before_a_projecting_node() -> None:
    """An update that is the first edge of triangles has many last corners and one first corner."""
    program = enumerated(query(ALIKE[0]), distinct=True)
    loops = [s for s in visit(program.triggers[0].body) if isinstance(s, Loop) and s.view == "E_E_2_E_3_E"]
    assert len(loops) == 6
    for loop in loops:
        changed = {s.view for s in visit((loop,)) if type(s).__name__ == "Add"}
        assert "E_E_2_E_3" not in changed or "E_5_E_6_E_7" not in changed


@pytest.mark.parametrize("text", (*ALIKE, *APART))
def test_results_and_changes_of_isomorphic_bags_equal_the_oracle(text: str) -> None:
    made = query(text)
    for seed in range(4):
        for program in (enumerated(made), crown.plan(made)):
            wellformed.check(program)
            assert_maintained(program, made, Stream(relations_of(made), seed, values=3), 25)
        distinct = crown.plan_enumerated(made, distinct=True)
        if distinct is not None:
            assert_distinct_maintained(distinct, made, Stream(relations_of(made), seed, values=3, signed=False), 25)


def test_each_update_reports_its_own_change() -> None:
    made = query(ALIKE[1])
    state = State(enumerated(made, distinct=True))
    stream = Stream(relations_of(made), 5, values=3, signed=False)
    followed = Stream(relations_of(made), 5, values=3, signed=False)
    before = keys(made, followed)
    for batch in stream.batches(12):
        for single in batch.singles():
            (row, m) = single.updates[0]
            followed.relations[single.relation].add(row, m)
            state.apply(single.relation, single.rows())
            after = keys(made, followed)
            assert state.change() == dict.fromkeys(after - before, (1,)) | dict.fromkeys(before - after, (-1,))
            before = after


@st.composite
def with_twins(draw: st.DrawFn) -> Query:
    """Two or three copies of a cycle, with edges in any direction, on a path or around a common corner."""
    length = draw(st.sampled_from((3, 3, 4)))
    turned = [draw(st.booleans()) for _ in range(length)]
    copies = draw(st.integers(2, 3 if length == 3 else 2))
    around = draw(st.booleans())
    atoms = []
    for i in range(copies):
        corners = [f"{'abcdefgh'[k]}{i}" if k or not around else "a" for k in range(length)]
        sides = [(corners[k], corners[(k + 1) % length]) for k in range(length)]
        atoms += [f"E({', '.join(reversed(s) if t else s)})" for s, t in zip(sides, turned, strict=True)]
        if i and not around:
            ends = [f"{draw(st.sampled_from('abc'))}{at}" for at in (i - 1, i)]
            atoms.append(f"{draw(st.sampled_from('EF'))}({', '.join(ends)})")
    used = sorted({v for atom in atoms for v in atom[2:-1].split(", ")})
    free = [v for v in used if draw(st.booleans())]
    if draw(st.booleans()):
        one, other = draw(st.lists(st.sampled_from(used), min_size=2, max_size=2, unique=True))
        atoms.append(f"{one} < {other}")
    return query(f"Q({', '.join(free)}) = {', '.join(atoms)}")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(with_twins(), st.sampled_from(BAG_STRATEGIES), st.integers(0, 10**6))
def test_random_isomorphic_bags_agree_with_the_oracle(made: Query, inner: str, seed: int) -> None:
    """Held and enumerated, as bags and as sets."""
    assume(not is_acyclic(hypergraph(made).edges))
    assume(len(kept(made, bag_strategy(inner).widened)) < len(prepared(made).bags))
    relations = relations_of(made)
    for program in (
        crown.plan(made, inner=bag_strategy(inner)),
        crown.plan_enumerated(made, inner=bag_strategy(inner)),
    ):
        assert program is not None
        wellformed.check(program)
        assert_maintained(program, made, Stream(relations, seed, values=2), 8)
    program = crown.plan_enumerated(made, distinct=True, inner=bag_strategy(inner))
    if program is not None:
        assert_distinct_maintained(program, made, Stream(relations, seed, values=2, signed=False), 8)
