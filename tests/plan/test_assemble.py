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
from freshviews.query.block import Block, DistinctAggregate
from freshviews.query.query import Query
from freshviews.types import BIGINT, DOUBLE
from tests.plan.cases import computed, count, sums, total, wild
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
            assert rows == expected(block, stream), batch
        assert not any(state.views.values())
