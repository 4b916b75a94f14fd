"""Distinct aggregates, attached to the main query of a block under every strategy: interpreter against oracle."""

from __future__ import annotations

import operator
from functools import reduce

import pytest

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.assemble import assemble, number_of
from freshviews.program.reference.interpreter import State
from freshviews.program.reference.scalars import rank
from freshviews.program.results import Held
from freshviews.query.block import Block, DistinctAggregate, Result
from freshviews.query.query import Query
from freshviews.types import BIGINT, BOOLEAN, DOUBLE
from tests.plan.cases import call, computed, count, filtered, sums, total, wild
from tests.plan.oracle import Key, arguments_of, evaluate_query
from tests.plan.streams import Stream, relations_of
from tests.program import wellformed
from tests.query.notation import column

KINDS = ("min", "max", "count", "sum", "bit_and", "bit_or")

CASES: dict[str, tuple[Query, Query]] = {
    "one relation": (count("Q(a) = R(a, b)"), count("Q(a, b) = R(a, b)")),
    "global": (count("Q() = R(a, b)"), count("Q(b) = R(a, b)")),
    "join": (count("Q(a) = R(a, b), S(b, c)"), count("Q(a, c) = R(a, b), S(b, c)")),
    "join key": (count("Q(c) = R(a, b), S(b, c)"), count("Q(c, b) = R(a, b), S(b, c)")),
    "beside a sum": (
        sums("Q(a) = R(a, b), S(b, c)", total("x", ("S", column("c1")))),
        count("Q(a, b) = R(a, b), S(b, c)"),
    ),
    "self-join": (count("Q(a) = E(a, b), E(b, c)"), count("Q(a, c) = E(a, b), E(b, c)")),
    "triangles": (
        count("Q(a) = R(a, b), S(b, c), T(c, a)"),
        count("Q(a, c) = R(a, b), S(b, c), T(c, a)"),
    ),
    "doubles": (
        count("Q(a) = R(a, b), S(a)"),
        computed(count("Q(a, b) = R(a, b), S(a)"), "R", "b", wild("c1")),
    ),
    "condition": (count("Q(a) = R(a, b), S(b, c), a < c"), count("Q(a, c) = R(a, b), S(b, c), a < c")),
}


def expected(block: Block, stream: Stream) -> dict[Key, dict[str, int]]:
    """Components of the groups: the payload, and of the distinct arguments the end, number and sum."""
    groups: dict[Key, dict[str, int]] = dict(evaluate_query(block.query, stream.relations))
    for distinct in block.distinct:
        found = arguments_of(distinct, len(block.query.free), stream.relations)
        for key, group in groups.items():
            values = [argument[0] for argument in found.get(key, ())]
            ranked = sorted(values, key=lambda code: rank(code, distinct.type))
            whole = {"count": len(values), "sum": sum(values)}
            whole |= {"bit_and": reduce(operator.and_, values), "bit_or": reduce(operator.or_, values)}
            pairs = sorted(found.get(key, ()))
            by = {"min_by": pairs[0][-1], "max_by": pairs[-1][-1]}
            group[distinct.name] = ({"min": ranked[0], "max": ranked[-1]} | whole | by)[distinct.kind]
            if distinct.kind != "count":
                group[number_of(distinct.name)] = len(values)
    return groups


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_distinct_aggregates_follow_the_arguments_that_are_there(strategy: str, case: str) -> None:
    main, arguments = CASES[case]
    kind_of_argument = DOUBLE if case == "doubles" else BIGINT
    distinct = tuple(
        DistinctAggregate(f"{kind}_it", kind, arguments, kind_of_argument)
        for kind in (KINDS if case != "doubles" else KINDS[:3])
    )
    follow(Block("groups", main, (), (), distinct), strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_value_of_the_greatest_pair_follows_the_pairs_that_are_there(strategy: str) -> None:
    main, pairs = count("Q(a) = R(a, b), S(b, c)"), count("Q(a, c, b) = R(a, b), S(b, c)")
    by = [DistinctAggregate(f"{kind}_b", kind, pairs, BIGINT, by=BIGINT) for kind in ("min_by", "max_by")]
    follow(Block("groups", main, (), (), tuple(by)), strategy)


def read(*distinct: DistinctAggregate) -> tuple[Result, ...]:
    """A result for each distinct aggregate, so that nothing else is read of a group."""
    return tuple(Result(d.name, d.kind, (d.name,), BIGINT, BIGINT) for d in distinct)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if not name.startswith("ivm_eps")])
@pytest.mark.parametrize("kind", ["count", "min"])
def test_groups_that_come_and_go_with_their_values_are_joined_once(strategy: str, kind: str) -> None:
    main, arguments = CASES["join"]
    one = DistinctAggregate("it", kind, arguments, BIGINT)
    block = Block("groups", main, (), read(one), (one,))
    program = assemble(block, STRATEGIES[strategy].of_query)
    assert len(program.triggers) == len(STRATEGIES[strategy].of_query(arguments).triggers)
    assert program.result == Held("Q", presence=True)
    follow(block, strategy)
    over_z = assemble(block, STRATEGIES[strategy].of_query, in_z=True)
    assert over_z.result == Held("Q")
    assert len(over_z.triggers) == len(program.triggers)


def test_groups_are_joined_by_themselves_where_more_is_read_of_them() -> None:
    main, arguments = CASES["join"]
    fewer = filtered(arguments, "R", call("gt", column("c1"), column("c0"), type=BOOLEAN))
    counted = Result("n", "count", ("count",), BIGINT, BIGINT)
    for query, results, joins in ((arguments, (counted,), 2), (fewer, (), 2), (arguments, (), 1)):
        one = DistinctAggregate("it", "count", query, BIGINT)
        block = Block("groups", main, (), (*read(one), *results), (one,))
        assert len(assemble(block, STRATEGIES["first_order"].of_query).triggers) == 2 * joins


def follow(block: Block, strategy: str) -> None:
    """Apply streams to the block's program, beside its definition."""
    main, arguments = block.query, block.distinct[0].query
    try:
        program = assemble(block, STRATEGIES[strategy].of_query)
    except PlanError as refusal:
        pytest.skip(str(refusal))
    wellformed.check(program)
    assert isinstance(program.result, Held)
    names = [c.name for c in program.view(program.result.view).components]
    for seed in range(3):
        stream = Stream(relations_of(main, arguments), seed, values=4, signed=False)
        state = State(program)
        for batch in stream.batches(16):
            state.apply(batch.relation, batch.rows())
            rows = {key: dict(zip(names, row, strict=True)) for key, row in state.output().items()}
            due = expected(block, stream)
            if program.result.presence:
                for group in (*rows.values(), *due.values()):
                    group["count"] = min(group["count"], 1)
            assert rows == due, batch
        assert not any(state.views.values())
