"""Several grouping sets in one program, under every strategy: interpreter against each set evaluated by itself."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import combinations

import pytest

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.assemble import assemble, number_of
from freshviews.plan.grouping_sets import Level, Store, stores_of
from freshviews.program.printer import print_program
from freshviews.program.reference.interpreter import State
from freshviews.program.reference.scalars import rank
from freshviews.program.results import Held
from freshviews.query.block import Block, DistinctAggregate
from freshviews.query.query import Query
from freshviews.types import BIGINT, DOUBLE, NULL, SqlType
from tests.plan.cases import computed, count, sums, total, wild
from tests.plan.oracle import Key, arguments_of, evaluate_query
from tests.plan.streams import Stream, relations_of
from tests.program import wellformed
from tests.query.notation import column

Sets = tuple[tuple[str, ...], ...]

ROLLUP: Sets = (("a", "b"), ("a",), ())
CUBE: Sets = (*ROLLUP, ("b",))
APART: Sets = (("b",), ("a",), ("b",))
"""Without the finest set, and with one set given twice."""

CASES: dict[str, tuple[Query, Query]] = {
    "one relation": (count("Q(a, b) = R(a, b, c)"), count("Q(a, b, c) = R(a, b, c)")),
    "join": (count("Q(a, b) = R(a, k), S(k, b, c)"), count("Q(a, b, c) = R(a, k), S(k, b, c)")),
    "beside a sum": (
        sums("Q(a, b) = R(a, k), S(k, b)", total("x", ("S", column("c1")))),
        count("Q(a, b, k) = R(a, k), S(k, b)"),
    ),
    "triangles": (
        count("Q(a, b) = R(a, b), S(b, c), T(c, a)"),
        count("Q(a, b, c) = R(a, b), S(b, c), T(c, a)"),
    ),
    "doubles": (
        count("Q(a, b) = R(a, b, c)"),
        computed(count("Q(a, b, c) = R(a, b, c)"), "R", "c", wild("c2")),
    ),
}
KINDS = {"shared": ("min", "max", "bit_and", "bit_or"), "apart": ("count", "sum", "min", "bit_or"), "none": ()}


def one_set(query: Query, block: Block, grouped: tuple[str, ...]) -> Query:
    """A query of the block, grouped by one set."""
    return replace(query, free=(*grouped, *query.free[len(block.query.free) :]))


def expected(block: Block, stream: Stream) -> dict[Key, dict[str, int]]:
    """Components of the groups of all sets, each by its definition."""
    found: dict[Key, dict[str, int]] = {}
    absent = {a.name: 0 for a in block.query.aggregates}
    for distinct in block.distinct:
        absent |= {distinct.name: 0} | ({} if distinct.kind == "count" else {number_of(distinct.name): 0})
    for place, grouped in enumerate(block.sets):

        def group(key: Key, place: int = place, grouped: tuple[str, ...] = grouped) -> dict[str, int]:
            words = dict(zip(grouped, key, strict=True))
            return found.setdefault((place, *(words.get(v, NULL) for v in block.query.free)), dict(absent))

        for key, payload in evaluate_query(one_set(block.query, block, grouped), stream.relations).items():
            group(key).update(payload)
        for distinct in block.distinct:
            one = replace(distinct, query=one_set(distinct.query, block, grouped))
            for key, values in arguments_of(one, len(grouped), stream.relations).items():
                group(key).update(components(distinct, [argument[-1] for argument in sorted(values)]))
    return found


def components(distinct: DistinctAggregate, values: list[int]) -> dict[str, int]:
    if distinct.by is not None:
        return {distinct.name: values[0 if distinct.kind == "min_by" else -1], number_of(distinct.name): len(values)}
    ranked = sorted(values, key=lambda code: rank(code, distinct.type))
    if distinct.kind == "count":
        return {distinct.name: len(values)}
    bits = {"bit_and": operator.and_, "bit_or": operator.or_}
    value = {"min": lambda: ranked[0], "max": lambda: ranked[-1], "sum": lambda: sum(values)}
    value |= {kind: lambda meet=meet: reduce(meet, values) for kind, meet in bits.items()}  # type: ignore[misc]
    return {distinct.name: value[distinct.kind](), number_of(distinct.name): len(values)}


def follow(block: Block, strategy: str, signed: bool = False) -> None:
    """Apply streams to the block's program, and compare with the oracle."""
    try:
        program = assemble(block, STRATEGIES[strategy].of_query, signed)
    except PlanError as refusal:
        pytest.skip(str(refusal))
    wellformed.check(program)
    assert isinstance(program.result, Held) and program.free == block.free
    names = [c.name for c in program.view(program.result.view).components]
    # For a semigroup the number of rows behind a value is only known as none or some.
    some = {number_of(d.name) for d in block.distinct if d.kind not in ("count", "sum")}
    for seed in range(3):
        stream = Stream(relations_of(block.query, *(d.query for d in block.distinct)), seed, values=4, signed=signed)
        state = State(program)
        before: dict[Key, tuple[int, ...]] = {}
        for batch in stream.batches(16):
            state.apply(batch.relation, batch.rows())
            rows = {
                key: {name: min(word, 1) if name in some else word for name, word in zip(names, row, strict=True)}
                for key, row in state.output().items()
            }
            wanted = {
                key: {name: min(word, 1) if name in some else word for name, word in payload.items()}
                for key, payload in expected(block, stream).items()
            }
            assert rows == wanted, f"after {batch}:\n{print_program(program)}"
            after = state.output()
            touched = {key for key in {**before, **after} if before.get(key) != after.get(key)}
            assert set(state.change()) == touched
            before = after
        assert not any(state.views.values())


@pytest.mark.sample(5)
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("sets", [ROLLUP, CUBE, APART], ids=["rollup", "cube", "apart"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_grouping_set_is_maintained(strategy: str, case: str, sets: Sets, kinds: str) -> None:
    main, arguments = CASES[case]
    kind: SqlType = DOUBLE if case == "doubles" else BIGINT
    taken = [k for k in KINDS[kinds] if case != "doubles" or k in ("min", "max", "count")]
    distinct = tuple(DistinctAggregate(f"{k}_it", k, arguments, kind) for k in taken)
    follow(Block("groups", main, (), (), distinct, sets=sets), strategy)


@pytest.mark.sample(5)
@pytest.mark.parametrize("kinds", ["shared", "apart"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_values_with_multiplicity_0_vanish_from_a_grouping_set(strategy: str, kinds: str) -> None:
    main, arguments = CASES["join"]
    distinct = tuple(DistinctAggregate(f"{k}_it", k, arguments, BIGINT) for k in KINDS[kinds])
    follow(Block("groups", main, (), (), distinct, sets=CUBE), strategy, signed=True)


@pytest.mark.sample(5)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_min_by_and_max_by_equal_the_oracle_in_every_grouping_set(strategy: str) -> None:
    main, pairs = count("Q(a, b) = R(a, k), S(k, b, c)"), count("Q(a, b, c, k) = R(a, k), S(k, b, c)")
    by = [DistinctAggregate(f"{kind}_k", kind, pairs, BIGINT, by=BIGINT) for kind in ("min_by", "max_by")]
    follow(Block("groups", main, (), (), tuple(by), sets=CUBE), strategy)


def views_of(sets: Sets, *kinds: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The views of a program: key and folds of each."""
    main = count("Q(a, b, c) = R(a, b, c, x)") if any("c" in one for one in sets) else count("Q(a, b) = R(a, b, x)")
    arguments = replace(main, free=(*main.free, "x"))
    distinct = tuple(DistinctAggregate(f"{kind}_x", kind, arguments, BIGINT) for kind in kinds)
    program = assemble(Block("groups", main, (), (), distinct, sets=sets), STRATEGIES["view_tree"].of_query)
    return {view.name: (view.key, view.folds) for view in program.views}


def test_levels_of_a_rollup_read_one_store() -> None:
    assert views_of(ROLLUP, "min") == {"min_x_Q": (("a", "b", "x"), ("min",)), "Q": (("@set", "a", "b"), ())}
    # Groups by all variables read the ends of the order, so nothing is folded for them.
    assert views_of(ROLLUP[:1], "min")["min_x_Q"] == (("a", "b", "x"), ())


def test_grouping_sets_that_form_a_chain_read_one_store() -> None:
    every = tuple(one for n in (3, 2, 1, 0) for one in combinations("abc", n))
    assert views_of(every, "max") == {
        "max_x_Q": (("a", "b", "c", "x"), ("max",)),
        "max_x_Q_2": (("c", "a", "x"), ("max",)),
        "max_x_Q_3": (("b", "c", "x"), ("max",)),
        "Q": (("@set", "a", "b", "c"), ()),
    }


def test_distinct_counts_of_a_grouping_set_read_the_next_finer_store() -> None:
    """All aggregates over these values read the same stores, which need no folds."""
    assert views_of(ROLLUP, "count", "max") == {
        "count_x_Q": (("a", "b", "x"), ()),
        "count_x_Q_2": (("a", "x"), ()),
        "count_x_Q_3": (("x",), ()),
        "Q": (("@set", "a", "b"), ()),
    }
    store = stores_of(tuple(Level(i, tuple(range(2 - i))) for i in range(3)), 2, True)

    def line(store: Store) -> Iterator[tuple[int, ...]]:
        yield store.group
        for coarser in store.coarser:
            yield from line(coarser)

    assert list(line(store)) == [(0, 1), (0,), ()] and len(store.coarser) == 1


def test_a_program_grows_linearly_with_the_number_of_stores_in_a_chain() -> None:
    lengths = []
    for number in (4, 8, 12):
        names = tuple(f"g{i}" for i in range(number))
        main = count(f"Q({', '.join(names)}) = R({', '.join(names)}, x)")
        one = DistinctAggregate("count_x", "count", replace(main, free=(*main.free, "x")), BIGINT)
        sets = tuple(names[:n] for n in range(number, -1, -1))
        program = assemble(Block("groups", main, (), (), (one,), sets=sets), STRATEGIES["view_tree"].of_query)
        lengths.append(len(print_program(program).splitlines()))
    assert lengths[2] - lengths[1] == lengths[1] - lengths[0]


def test_an_update_is_joined_once_for_all_grouping_sets() -> None:
    """Steps of an update grow with the sets that it adds to, not with the join."""
    main = count("Q(a, b) = R(a, k), S(k, l), T(l, b)")
    steps = []
    for sets in ((), ROLLUP):
        state = State(assemble(Block("groups", main, (), (), sets=sets), STRATEGIES["first_order"].of_query))
        for name, columns in (("R", 2), ("T", 2)):
            rows = [({"c0": i, "c1": 0} if name == "R" else {"c0": 0, "c1": i}, 1) for i in range(columns)]
            state.apply(name, rows)
        state.steps = 0
        state.apply("S", [({"c0": 0, "c1": 0}, 1)])
        steps.append(state.steps)
    assert steps[1] - steps[0] == 2 * 4
