"""Four relations by heavy and light values: views equal their definitions, and no update takes linear time."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from freshviews.errors import PlanError
from freshviews.plan.delta import first_order
from freshviews.plan.eps import four_relations as ivm_eps_four
from freshviews.plan.eps.cases import Auxiliary, Where
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.query.query import Query
from tests.plan.oracle import Relation, evaluate_query
from tests.plan.parts import check_parts
from tests.plan.test_ivm_eps import slope
from tests.program import wellformed
from tests.query.notation import query

QUERIES = {
    "path": query("Q() = R(b), S(b, c), T(c, d), U(d)"),
    "path with ends": query("Q() = R(a, b), S(b, c), T(c, d), U(d, e)"),
    "cycle": query("Q() = R(a, b), S(b, c), T(c, d), U(d, a)"),
    "cycle of one table": query("Q() = E(a, b), E(b, c), E(c, d), E(d, a)"),
    "cycle of pairs": query("Q() = R(a, x, b), S(b, c), T(c, d), U(d, x, a)"),
    "Loomis-Whitney": query("Q() = R(b, c, d), S(c, d, a), T(d, a, b), U(a, b, c)"),
}
each_query = pytest.mark.parametrize("name", QUERIES)
Update = tuple[str, tuple[int, ...], int]


def relations_of(one: Query) -> dict[str, Relation]:
    return {a.relation: Relation(tuple(f"c{i}" for i in range(len(a.columns)))) for a in one.atoms}


def apply(state: State, update: Update) -> None:
    relation, row, m = update
    state.apply(relation, [({f"c{i}": value for i, value in enumerate(row)}, m)])


def stream(relations: dict[str, Relation], seed: int, count: int) -> Iterator[Update]:
    """Skewed inserts and deletes with multiplicities of either sign. In the end all rows are deleted."""
    rng = random.Random(seed)
    there: list[Update] = []
    for i in range(count):
        if there and rng.random() < (0.2 if i < count // 2 else 0.6):
            name, row, m = there.pop(rng.randrange(len(there)))
            yield name, row, -m
        else:
            name = rng.choice(sorted(relations))
            width = 3 if len(relations[name].columns) == 3 else 5
            row = tuple(int(width * rng.random() ** rng.choice((1, 4))) for _ in relations[name].columns)
            there.append((name, row, rng.choice((1, 1, 2, -1))))
            yield there[-1]
    while there:
        name, row, m = there.pop()
        yield name, row, -m


def heavy_values(state: State) -> dict[tuple[str, ...], Counter[tuple[int, ...]]]:
    """By key, the values that are heavy in some relation, and the number of these relations, from the partitions."""
    assert state.program.balancing is not None
    counted: dict[tuple[str, ...], Counter[tuple[int, ...]]] = {}
    for partition in state.program.balancing.partitions:
        counted.setdefault(partition.value, Counter()).update(state.views[partition.heavy].keys())
    return counted


def check_heavy(state: State) -> None:
    for key, found in heavy_values(state).items():
        view = state.views.get(f"heavy_{'_'.join(key)}")
        assert view is None or view == {value: (n,) for value, n in found.items()}


def defined(state: State, one: Query, auxiliary: Auxiliary) -> dict[tuple[int, ...], tuple[int]]:
    """The rows of a view by its definition: a nested-loop join of the relations, filtered by which values are heavy."""

    heavy = heavy_values(state)

    def holds(row: dict[str, int], where: Where) -> bool:
        return all((tuple(row[v] for v in part.key) in heavy[part.key]) == wanted for part, wanted in where.items())

    rows: list[tuple[dict[str, int], int]] = [({}, 1)]
    for name in auxiliary.atoms:
        variables = state.program.view(name).key
        rows = [
            ({**row, **dict(zip(variables, key, strict=True))}, m * payload[0])
            for row, m in rows
            for key, payload in state.views[name].items()
            if all(row.get(v, x) == x for v, x in zip(variables, key, strict=True))
        ]
    found: Counter[tuple[int, ...]] = Counter()
    for row, m in rows:
        assert sum(holds(row, where) for where in auxiliary.where) <= 1, "cases overlap"
        if any(holds(row, where) for where in auxiliary.where):
            found[tuple(row[v] for v in auxiliary.key)] += m
    return {key: (n,) for key, n in found.items() if n}


def table_of(one: Query) -> ivm_eps_four.Table:
    found = ivm_eps_four.shape_of(one)
    assert found is not None
    shape, order, sides = found
    return ivm_eps_four.TABLES[shape](order, sides)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
@each_query
def test_parts_and_views_equal_their_definitions_after_every_step(name: str, epsilon: float) -> None:
    one = QUERIES[name]
    program = ivm_eps_four.plan(one, epsilon)
    wellformed.check(program)
    table = table_of(one)
    state, relations = State(program), relations_of(one)
    met: set[str] = set()
    for i, update in enumerate(stream(relations, 4, 160)):
        apply(state, update)
        relations[update[0]].add(update[1], update[2])
        met.update(a.name for a in table.auxiliaries if state.views[a.name])
        if i % 3:
            continue
        check_parts(state)
        check_heavy(state)
        for auxiliary in table.auxiliaries:
            assert state.views[auxiliary.name] == defined(state, one, auxiliary), auxiliary.name
        found = {k: (v["count"],) for k, v in evaluate_query(one, relations).items() if v["count"]}
        assert state.output() == found
    assert not any(state.views.values())
    assert state.balances.major > 4
    if epsilon == 0.1:
        assert state.balances.minor > 0 and len(met) > len(table.auxiliaries) / 2, "views were tested empty"


def hard(name: str, n: int) -> tuple[list[Update], list[Update]]:
    """The stored rows, O(n) or n * n of them, and updates that join most of them under first-order maintenance."""
    toggle: list[Update] = []
    if name == "path":
        rows = [("S", (b, c), 1) for b in range(3) for c in range(n)]
        rows += [("T", (c, d), 1) for c in range(n) for d in range(3)]
        ends: list[Update] = [("R", (b,), 1) for b in range(3)] + [("U", (d,), 1) for d in range(3)]
    elif name == "cycle":
        side = math.isqrt(n)
        rows = [("T", (c, d), 1) for c in range(side) for d in range(side) if (c * 7 + d * 3) % 2]
        rows += [("S", (0, c), 1) for c in range(side)] + [("U", (d, 0), 1) for d in range(side)]
        ends = [("R", (0, 0), 1), ("S", (0, 1), -1), ("U", (2, 0), -1)]
    else:
        rows = [("S", (0, 0, a), 1) for a in range(n)] + [("T", (0, a, 0), 1) for a in range(n)]
        rows += [("U", (a, 0, 0), 1) for a in range(n)]
        ends = [("R", (0, 0, 0), 1)]
    for _ in range(4):
        for relation, row, m in ends:
            toggle += [(relation, row, m), (relation, row, -m)]
    return rows, toggle


def steps_per_update(program: Program, name: str, n: int) -> tuple[float, float]:
    """Rows of all relations, and the mean steps of a toggled row, for the relation with the highest mean."""
    state = State(program)
    rows, toggle = hard(name, n)
    for update in rows:
        apply(state, update)
    taken: dict[str, list[int]] = {}
    for update in toggle:
        before = state.steps
        apply(state, update)
        taken.setdefault(update[0], []).append(state.steps - before)
    return float(len(rows)), max(sum(t) / len(t) for t in taken.values())


@pytest.mark.parametrize(("name", "most"), [("path", 0.55), ("cycle", 2 / 3 + 0.05), ("Loomis-Whitney", 0.55)])
def test_updates_of_heavy_values_take_sublinear_time(name: str, most: float) -> None:
    sizes = (200, 800, 3200)
    by_parts = [steps_per_update(ivm_eps_four.plan(QUERIES[name]), name, n) for n in sizes]
    by_deltas = [steps_per_update(first_order.plan(QUERIES[name]), name, n) for n in sizes]
    assert slope(by_parts) <= most, by_parts
    assert slope(by_deltas) >= 0.9, by_deltas


@pytest.mark.parametrize("name", ["path", "cycle", "Loomis-Whitney"])
def test_the_mean_update_of_a_whole_stream_takes_sublinear_time(name: str) -> None:
    """All updates count: growth, decay and values that become heavy or light. The rows are squares of few heavy
    values."""
    found = []
    for n in (100, 400, 1600):
        rng = random.Random(n)
        relations = relations_of(QUERIES[name])
        side = round(n ** (1 / 2)) if name != "Loomis-Whitney" else round(n ** (1 / 3)) + 1
        rows = [
            (relation, tuple(int(2 * side * rng.random() ** 2) for _ in relations[relation].columns), 1)
            for _ in range(n)
            for relation in relations
        ]
        state = State(ivm_eps_four.plan(QUERIES[name]))
        for update in rows:
            apply(state, update)
        for relation, row, m in rows:
            apply(state, (relation, row, -m))
        found.append((float(n), state.steps / (2 * len(rows))))
    assert slope(found) <= (2 / 3 if name == "cycle" else 1 / 2) + 0.1, found


def flipped(name: str, n: int) -> tuple[float, float]:
    """Rows of all relations, and the steps per update of an adversary that moves a value of each partition as often as
    possible: its rows, which join many others, are inserted and deleted between the two limits."""
    rng = random.Random(n)
    program = ivm_eps_four.plan(QUERIES[name])
    state, relations = State(program), relations_of(QUERIES[name])
    long = 4 * math.isqrt(n)
    for relation in relations.values():
        width = len(relation.columns)
        for _ in range(n):
            values = [int(long * rng.random() ** 2) for _ in range(width)]
            if width == 3:  # pairs that have many rows: one of the three columns goes far
                values = [rng.randrange(3) for _ in range(3)]
                values[rng.randrange(3)] = rng.randrange(long)
            if values.count(2) < 2:
                relation.add(tuple(values), 1)
    for one, relation in relations.items():
        columns = relation.columns
        state.apply(one, [(dict(zip(columns, row, strict=True)), m) for row, m in relation.rows.items()])
    assert program.balancing is not None
    size = sum(len(relation.rows) for relation in relations.values())
    before, moved, updates = state.steps, state.balances.minor, 0
    for partition in program.balancing.partitions:
        value = (long - 1,) if len(partition.by) == 1 else (2, 2)
        for _ in range(2):
            for m in (1, -1):
                for y in range(int(1.5 * state.balances.base**partition.epsilon) + 1):
                    given = dict(zip(partition.by, value, strict=True))
                    row = tuple(given.get(i, y) for i in range(len(partition.by) + 1))
                    apply(state, (partition.view, row, m))
                    updates += 1
    assert state.balances.minor - moved >= 3 * len(program.balancing.partitions)
    return float(size), (state.steps - before) / updates


@pytest.mark.parametrize(("name", "exponent"), [("path", 1 / 2), ("cycle", 2 / 3), ("Loomis-Whitney", 1 / 2)])
def test_updates_across_the_threshold_keep_the_time_bound(name: str, exponent: float) -> None:
    found = [flipped(name, n) for n in (100, 400, 1600)]
    assert slope(found) <= exponent + 0.1, found
    assert all(steps <= 5 * size**exponent for size, steps in found), found


@pytest.mark.parametrize(
    "text",
    [
        "Q(a) = R(a, b), S(b, c), T(c, d), U(d, a)",
        "Q() = R(a, b), S(b, c), T(c, d), U(d, a), a < c",
        "Q() = R(a, b), S(a, c), T(a, d), U(a, e)",
    ],
)
def test_queries_over_four_relations_without_an_ivm_eps_plan_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="a 4-cycle, 4-path or Loomis-Whitney"):
        ivm_eps_four.plan(query(text))
