"""Cyclic queries over bags of a hypertree decomposition: change propagation without joins across them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from freshviews import Database
from freshviews.cli.planned_script import plan_script
from freshviews.cli.source import ScriptError
from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.crown import propagation as crown
from freshviews.plan.crown.free_connex_query import prepared
from freshviews.plan.eps import triangle_linear as ivm_eps_linear
from freshviews.plan.strategy import BagPlanner
from freshviews.plan.trie import trie_join
from freshviews.program.payload import COUNT
from freshviews.program.reference.interpreter import State
from freshviews.query.acyclic import is_acyclic
from freshviews.query.hypergraph import hypergraph
from freshviews.query.query import Aggregate, Query
from tests.plan.bag_strategies import BAG_STRATEGIES, bag_strategy
from tests.plan.streams import Stream, relations_of
from tests.plan.test_crown import assert_distinct_maintained, enumerated
from tests.plan.test_strategies import assert_maintained
from tests.program import wellformed
from tests.query.notation import query

DUMBBELL = "R(a, b), S(a, c), T(b, c), U(c, d), V(d, e), W(d, f), X(e, f)"
BOWTIE = "R(a, b), S(b, c), T(c, a), U(a, d), V(d, e), W(e, a)"
GUARDED = "A(a, b, c, d), B(e, g), C(b, f), D(c, f), E(f, g), F(d, e), H(a, e)"
TWO_TRIANGLES = "R(a, b), S(b, c), T(c, a), U(b, d), V(d, a)"
EXAMPLES = (
    f"Q(c, d) = {DUMBBELL}",
    f"Q(a, b, c, d, e, f) = {DUMBBELL}",
    f"Q(a, f) = {DUMBBELL}",
    f"Q() = {BOWTIE}",
    f"Q(a, b, e) = {BOWTIE}",
    "Q(a, b, c) = R(a, b), S(b, c), T(c, a)",
    "Q() = R(a, b), S(b, c), T(c, a)",
    "Q(a, b, c, d) = R(a, b), S(b, c), T(c, d), U(d, a)",
    "Q(b, d) = R(a, b), S(b, c), T(c, d), U(d, a)",
    "Q(a, b) = R(a, b), S(b, c), T(c, d), U(d, a), a < c, b != d",
    "Q(a) = E(a, b), E(b, c), E(c, a)",
    "Q(a, c) = E(a, b), E(b, c), E(c, d), E(d, a), a < c",
    f"Q() = {TWO_TRIANGLES}",
    f"Q(a, b, c, d) = {TWO_TRIANGLES}, a < d",
    "Q(x) = R(a, b, x), S(b, c), T(c, a), U(b, d), V(d, a)",
    "Q(a, b) = E(a, b), E(b, c), E(c, a), E(b, d), E(d, a)",
    f"Q(a, b, c, d, e, f, g) = {GUARDED}",
    f"Q(a, f) = {GUARDED}",
)


def names_of(made: Query) -> set[str]:
    return set(prepared(made).bags)


def test_a_dumbbell_has_two_bags_and_a_relation_between_them() -> None:
    """A bag projects on the variables that others need: a triangle on the corner of the bridge."""
    made = prepared(query(f"Q(c, d) = {DUMBBELL}"))
    assert {name: bag.query.free for name, bag in made.bags.items()} == {"R_S_T": ("c",), "V_W_X": ("d",)}
    assert {atom.name for atom in made.query.atoms} == {"R_S_T", "U", "V_W_X"}
    assert made.free == {"c", "d"}


def test_a_bowtie_is_split_into_two_triangles() -> None:
    assert names_of(query(f"Q(a) = {BOWTIE}")) == {"R_S_T", "U_V_W"}
    assert names_of(query("Q(a, b) = R(a, b), S(b, c), T(c, d), U(d, a)")) == {"R_S", "T_U"}


def test_a_guard_is_the_projection_of_an_atom_of_another_bag() -> None:
    guards = [guard for bag in prepared(query(EXAMPLES[-1])).bags.values() for guard in bag.guards.values()]
    assert guards and {atom.name for atom in guards} == {"A"}


def held(text: str, rows: dict[str, list[tuple[int, ...]]]) -> int:
    """The rows of all views of the program, for any order of the tables."""
    found = set()
    for relations in (list(rows), list(reversed(rows))):
        state = State(crown.plan(query(text)))
        for relation in relations:
            batch = [({f"c{i}": value for i, value in enumerate(row)}, 1) for row in rows[relation]]
            state.apply(relation, batch)
        assert state.output()
        found.add(sum(len(view) for view in state.views.values()))
    (size,) = found
    return size


@pytest.mark.parametrize("columns", ["", "a", "a, b, c, d"])
@pytest.mark.parametrize("edge", ["R(a, b)", "R(a, b, x)"])
def test_an_edge_in_two_triangles_restricts_the_bags_of_both_triangles(columns: str, edge: str) -> None:
    """Every b meets every a over one c and over one d; R has N of these N^2 pairs."""
    n = 60
    to, back = [(i, 0) for i in range(n)], [(0, i) for i in range(n)]
    rows = {"U": to, "V": back, "S": to, "T": back, "R": [(i, i, i) for i in range(n)]}
    assert held(f"Q({columns}) = {edge}, S(b, c), T(c, a), U(b, d), V(d, a)", rows) < 16 * n < n * n / 3


def test_all_edges_of_a_clique_restrict_its_only_bag() -> None:
    """Every c and every d meet both a and b; W has N of these N^2 pairs."""
    n = 60
    first, second = [(0, i) for i in range(n)], [(1, i) for i in range(n)]
    rows = {"R": [(0, 1)], "S": first, "T": first, "U": second, "V": second, "W": [(i, i) for i in range(n)]}
    text = "R(a, b), S(a, c), T(a, d), U(b, c), V(b, d), W(c, d), P(c, x)"
    for columns in ("", "c, d", "x"):
        assert held(f"Q({columns}) = {text}", {**rows, "P": [(0, 0)]}) < 16 * n < n * n / 3


def test_a_condition_restricts_every_bag_that_has_its_variables() -> None:
    made = prepared(query("Q() = R(a, b), S(b, c), T(c, d), U(d, a), a < c"))
    assert [len(bag.query.conditions) for bag in made.bags.values()] == [1, 1]
    assert not made.query.conditions


def test_explain_shows_the_atoms_that_restrict_a_bag() -> None:
    bags = dict(crown.plan(query("Q() = R(a, b, x), S(b, c), T(c, a), U(b, d), V(d, a)")).bounds)["bags"]
    assert bags.splitlines() == [
        "S_T(b, a) = S(b, c) * T(c, a) where R(a, b), by first_order",
        "U_V(b, a) = U(b, d) * V(d, a) where R(a, b), by first_order",
    ]


@pytest.mark.parametrize("text", EXAMPLES)
def test_cyclic_queries_are_enumerated_over_their_bags(text: str) -> None:
    made = query(text)
    for seed in range(3):
        assert_maintained(enumerated(made), made, Stream(relations_of(made), seed), 20)
        program = crown.plan_enumerated(made, distinct=True)
        if program is not None:
            stream = Stream(relations_of(made), seed, signed=False)
            assert_distinct_maintained(program, made, stream, 20)


@pytest.mark.parametrize("inner", BAG_STRATEGIES)
@pytest.mark.parametrize("text", EXAMPLES)
def test_every_bag_strategy_maintains_the_bags(text: str, inner: str) -> None:
    made = query(text)
    program = crown.plan(made, inner=bag_strategy(inner))
    wellformed.check(program)
    assert f"by {inner}" in dict(program.bounds)["bags"]
    assert_maintained(program, made, Stream(relations_of(made), 3), 12)


@st.composite
def cyclic_queries(draw: st.DrawFn) -> Query:
    """A cycle of three to five variables, chords and pendant atoms, over one relation or several."""
    names = "abcde"[: draw(st.integers(3, 5))]
    sides = [(one, other) for one, other in pairwise(names + names[0])]
    more = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True)
    sides += [tuple(draw(more)) for _ in range(draw(st.integers(0, 2)))]
    same = draw(st.booleans())
    atoms = [f"{'E' if same and len(s) == 2 else 'RSTUVWX'[i]}({', '.join(s)})" for i, s in enumerate(sides)]
    used = sorted({v for side in sides for v in side})
    free = [v for v in used if draw(st.booleans())]
    if draw(st.booleans()):
        one, other = draw(st.lists(st.sampled_from(used), min_size=2, max_size=2, unique=True))
        atoms.append(f"{one} < {other}")
    return query(f"Q({', '.join(free)}) = {', '.join(atoms)}", (Aggregate(COUNT, "integer"),))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(cyclic_queries(), st.sampled_from(BAG_STRATEGIES), st.integers(0, 10**6))
def test_random_cyclic_queries_agree_with_the_oracle(made: Query, inner: str, seed: int) -> None:
    """Results and changes: as bags, held and enumerated, and as sets."""
    assume(not is_acyclic(hypergraph(made).edges))
    relations = relations_of(made)
    for program in (
        crown.plan(made, inner=bag_strategy(inner)),
        crown.plan_enumerated(made, inner=bag_strategy(inner)),
    ):
        assert program is not None
        wellformed.check(program)
        assert_maintained(program, made, Stream(relations, seed, values=3), 8)
    program = crown.plan_enumerated(made, distinct=True, inner=bag_strategy(inner))
    if program is not None:
        assert_distinct_maintained(program, made, Stream(relations, seed, values=3, signed=False), 8)


SQL = """CREATE TABLE g (src BIGINT NOT NULL, dst BIGINT NOT NULL);
CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS SELECT DISTINCT t.dst AS a, u.dst AS b
  FROM g r, g s, g t, g u WHERE r.dst = s.src AND s.dst = t.src AND t.dst = r.src AND u.src = t.dst;"""


@pytest.mark.parametrize("inner", BAG_STRATEGIES)
def test_a_property_of_the_view_chooses_the_strategy_of_its_bags(inner: str) -> None:
    """Compiled, over rows that are inserted and deleted; compared with a view without bags."""
    with Database() as db:
        db.execute(SQL.format(properties=f"'freshviews.bag_strategy' = '{inner}'"))
        other = SQL.split(";")[1].replace("VIEW v", "VIEW w")
        db.execute(other.format(properties="'freshviews.strategy' = 'first_order'"))
        kept = f"bags      r_s_t(src) = r(src, r_dst) * s(r_dst, s_dst) * t(s_dst, src), by {inner}"
        assert kept in db.view("v").explain()
        reported: Counter[tuple[int, ...]] = Counter()
        db.view("v").subscribe(lambda change: reported.update(dict(change)))
        rows = [(i % 6, (i * i + 1) % 7) for i in range(30)] + [(i, (i + 1) % 7) for i in range(7)]
        rows += [(i * i % 211, i * i * i % 199) for i in range(1500)]
        for at in range(0, len(rows), 97):
            db.insert("g", rows[at : at + 97])
        db.delete("g", rows[::3])
        found = list(db.view("v"))
        assert sorted(found) == sorted(db.view("w")) and found
        assert reported == Counter(found)


@pytest.mark.full
def test_traced_bags_survive_a_restart(tmp_path: Path) -> None:
    """The trace is rebuilt from the rows of the bag; the change of an update is reported when its derivations are."""
    rows = [(i % 6, (i * i + 1) % 7) for i in range(30)] + [(i, (i + 1) % 7) for i in range(7)]
    with Database(tmp_path) as db:
        db.execute(SQL.format(properties="'freshviews.bag_strategy' = 'incremental_trie_join'"))
        db.insert("g", rows)
        before = Counter(db.view("v"))
    for _ in range(2):
        with Database(tmp_path) as db:
            assert Counter(db.view("v")) == before
            signed = [(*row, sign) for row in rows[::2] for sign in (-1, 1)]
            batches = list(db.apply_in_order("g", [*signed, (*rows[-1], -1)], "v", rows=5))
            reported = [tuple(one.values()) for batch in batches for one in batch.to_pylist()]
            assert [one[-1] for one in reported] == sorted(one[-1] for one in reported)
            for i in range(len(signed)):  # an event that belongs to a row is repeated with it
                gone, come = (Counter({one[:2]: one[2] for one in reported if one[3] == at}) for at in (i, i + 1))
                assert i % 2 or (all(m < 0 for m in gone.values()) and {r: -m for r, m in gone.items()} == dict(come))
            changes: Counter[tuple[int, ...]] = Counter()
            for a, b, m, _ in reported:
                changes[a, b] += m
            after = Counter(db.view("v"))
            assert {r: m for r, m in changes.items() if m} == {
                r: after[r] - before[r] for r in {*before, *after} if after[r] != before[r]
            }
            db.insert("g", rows[-1:])
            assert Counter(db.view("v")) == before != after


def test_a_property_of_the_view_sets_the_key_order_of_its_traced_bags() -> None:
    properties = "'freshviews.bag_strategy' = 'incremental_trie_join', 'freshviews.key_order' = '{}'"
    script = SQL.format(properties=properties.format("r_dst, s_dst, src, u_dst"))
    plan = plan_script(script).views[0].plans[0]
    assert plan.strategy == "crown"
    assert "by incremental_trie_join in order of r_dst, s_dst, src" in dict(plan.program.bounds)["bags"]
    assert [one.rule.order for one in plan.program.upkeep.joins] == [("r_dst", "s_dst", "src")]
    with pytest.raises(ScriptError, match=r"view v: variable 'u_dst' is missing; list all of src, r_dst"):
        plan_script(SQL.format(properties=properties.format("r_dst, s_dst, src")))


def test_a_traced_bag_skips_values_that_a_bag_of_deltas_visits() -> None:
    """The corners that follow b lie before those that lead to a: deltas look at all of them, a trace at two."""
    made = query("Q(a, d) = R(a, b), S(b, c), T(c, a), U(a, d)")
    steps = {}
    for name in ("first_order", "incremental_trie_join"):
        for n in (50, 200):
            state = State(crown.plan(made, inner=bag_strategy(name)))
            state.apply("S", [({"c0": 1, "c1": i}, 1) for i in range(n)])
            state.apply("T", [({"c0": n + i, "c1": 1}, 1) for i in range(n)])
            before = state.steps
            state.apply("R", [({"c0": 1, "c1": 1}, 1)])
            steps[name, n] = state.steps - before
    assert steps["first_order", 200] > 3 * steps["first_order", 50] > 150
    assert steps["incremental_trie_join", 200] == steps["incremental_trie_join", 50] < 20


def test_a_strategy_that_cannot_maintain_a_bag_is_refused_with_the_reason() -> None:
    made = query("Q(a, d) = R(a, b), S(b, c), T(c, a), U(a, d)")
    with pytest.raises(PlanError, match="trie_join cannot maintain a bag, because this strategy reports no changes"):
        crown.plan(made, inner=BagPlanner(trie_join.plan))
    with pytest.raises(PlanError, match="ivm_eps cannot maintain a bag, because this strategy has heavy and"):
        crown.plan(made, inner=BagPlanner(ivm_eps_linear.plan))


def test_an_unknown_bag_strategy_is_refused() -> None:
    known = "to first_order or change_propagation or higher_order or view_tree or incremental_trie_join"
    with Database() as db:
        for name in ("crown", "recompute", "trie_join", "nothing"):
            with pytest.raises(PlanError, match=known):
                db.execute(SQL.format(properties=f"'freshviews.bag_strategy' = '{name}'"))
        properties = "'freshviews.strategy' = 'view_tree', 'freshviews.bag_strategy' = 'first_order'"
        with pytest.raises(PlanError, match=r"bag_strategy' is an option of strategy crown, but the view names"):
            db.execute(SQL.format(properties=properties))


@pytest.mark.parametrize(
    "text",
    [
        # Relations and variables with the names that bags, their views, rows and variables would have.
        "Q(a, d) = R(a, R_S_T_a), S(R_S_T_a, c), T(a, c), R_S_T(a, d), R_S_T_R(d, R_S_T_delta)",
        "Q(a, r_s_t_row) = r(a, b), s(b, c), t(a, c), r_s_t_r(a, r_s_t_row), r_s(a, b_row), s_t(b_row, r_row_sums)",
        "Q(a, d) = A(a, b), B(b, c), A_B(c, a), C(a, d), A_B_C(d, e), B_A(e, f), D(f, d)",
    ],
)
def test_names_of_bags_are_unique_in_the_program(text: str) -> None:
    made = query(text)
    assert len(prepared(made).bags) >= 1
    for distinct in (False, True):
        program = crown.plan_enumerated(made, distinct)
        if program is None:
            continue
        wellformed.check(program)
        names = [view.name for view in program.views]
        assert len(set(names)) == len(names)
        stream = Stream(relations_of(made), 2, signed=not distinct)
        (assert_distinct_maintained if distinct else assert_maintained)(program, made, stream, 10)


LOLLIPOP = (
    "CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL); CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL);"
    "CREATE TABLE t (c BIGINT NOT NULL, a BIGINT NOT NULL); CREATE TABLE u (b BIGINT NOT NULL, d BIGINT NOT NULL);"
    "CREATE TABLE w (d BIGINT NOT NULL, e BIGINT NOT NULL);"
    "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{}'{}) AS SELECT r.a, r.b, u.d, w.e"
    " FROM r, s, t, u, w WHERE r.b = s.b AND s.c = t.c AND t.a = r.a AND u.b = r.b AND w.d = u.d;"
)


def top_of(db: Database) -> str:
    return next(line.split()[1] for line in db.view("v").explain().splitlines() if line.startswith("tree"))


@pytest.mark.parametrize(("said", "top"), [("r_s_t 100000, w 1", "[b]"), ("w 100000, r_s_t 1", "[d]")])
def test_declared_numbers_of_updates_decide_the_join_tree(said: str, top: str) -> None:
    with Database() as db:
        db.execute(LOLLIPOP.format("crown", f", 'freshviews.updates' = '{said}'"))
        assert top_of(db) == top


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("said", ["r_s 5", "r", "r five", "r 1,, s 2"])
def test_malformed_expected_updates_are_refused_under_every_strategy(strategy: str, said: str) -> None:
    with Database() as db, pytest.raises(PlanError, match="must be a name and its number"):
        db.execute(LOLLIPOP.format(strategy, f", 'freshviews.updates' = '{said}'"))


def test_replan_chooses_the_tree_of_a_cyclic_view_by_past_updates() -> None:
    """Trees are compared by changed rows of bags: one update of s changes a thousand, so few updates of s cost more
    than those of w."""
    with Database() as db:
        db.execute(LOLLIPOP.format("crown", ""))
        assert top_of(db) == "[b]"
        db.insert("r", [(1, 1)])
        db.insert("s", [(1, 1)])
        db.insert("t", [(1, 1)])
        db.insert("u", [(1, 3)])
        db.insert("w", [(3, i) for i in range(10_000)])
        assert db.stats()["views"]["v"]["replan"] and db.replan("v")
        assert top_of(db) == "[d]"
        assert len(db.view("v")) == 10_000
    with Database() as db:
        db.execute(LOLLIPOP.format("crown", ""))
        db.insert("r", [(i, 1) for i in range(1000)])
        db.insert("t", [(1, i) for i in range(1000)])
        db.insert("u", [(1, 3)])
        for i in range(19):
            db.apply("s", [(1, 1, 1 if i % 2 == 0 else -1)])
        db.insert("w", [(3, i % 10) for i in range(10_000)])
        assert db.stats()["views"]["v"]["replan"] is None and not db.replan("v")
        assert top_of(db) == "[b]"
