"""Distinct aggregates, attached to the main query of a block under every strategy: interpreter against oracle."""

from __future__ import annotations

import operator
from functools import reduce

import pytest

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.assemble import assemble, number_of
from freshviews.plan.delta import first_order
from freshviews.plan.delta.exclusion import exclusion
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.program.reference.scalars import rank
from freshviews.program.results import Held
from freshviews.program.statements import Add, Lookup
from freshviews.program.structure import visit
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
    """Components of the groups: the payload, and the end, number and sum of the distinct arguments."""
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
def test_distinct_aggregates_equal_the_oracle(strategy: str, case: str) -> None:
    main, arguments = CASES[case]
    kind_of_argument = DOUBLE if case == "doubles" else BIGINT
    distinct = tuple(
        DistinctAggregate(f"{kind}_it", kind, arguments, kind_of_argument)
        for kind in (KINDS if case != "doubles" else KINDS[:3])
    )
    follow(Block("groups", main, (), (), distinct), strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_min_by_and_max_by_equal_the_oracle(strategy: str) -> None:
    main, pairs = count("Q(a) = R(a, b), S(b, c)"), count("Q(a, c, b) = R(a, b), S(b, c)")
    by = [DistinctAggregate(f"{kind}_b", kind, pairs, BIGINT, by=BIGINT) for kind in ("min_by", "max_by")]
    follow(Block("groups", main, (), (), tuple(by)), strategy)


def read(*distinct: DistinctAggregate) -> tuple[Result, ...]:
    """A result for each distinct aggregate, so that nothing else of a group is read."""
    return tuple(Result(d.name, d.kind, (d.name,), BIGINT, BIGINT) for d in distinct)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if not name.startswith("ivm_eps")])
@pytest.mark.parametrize("kind", ["count", "min"])
def test_a_block_with_only_distinct_aggregates_evaluates_its_join_once(strategy: str, kind: str) -> None:
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


def test_filtered_distinct_aggregates_have_their_own_join() -> None:
    main, arguments = CASES["join"]
    fewer = filtered(arguments, "R", call("gt", column("c1"), column("c0"), type=BOOLEAN))
    counted = Result("n", "count", ("count",), BIGINT, BIGINT)
    for query, results, joins in ((arguments, (counted,), 2), (fewer, (), 2), (arguments, (), 1)):
        one = DistinctAggregate("it", "count", query, BIGINT)
        block = Block("groups", main, (), (*read(one), *results), (one,))
        assert len(assemble(block, STRATEGIES["first_order"].of_query).triggers) == 2 * joins


EXCLUDED: dict[str, tuple[str, str, int]] = {
    "by the value": ("Q(a) = R(a, k), S(k, x), !T(x)", "Q(a, x) = R(a, k), S(k, x), !T(x)", 1),
    "by the group": ("Q(a) = R(a, k), S(k, x), !T(a)", "Q(a, x) = R(a, k), S(k, x), !T(a)", 1),
    "by both": ("Q(a) = R(a, k), S(k, x), !T(a, x)", "Q(a, x) = R(a, k), S(k, x), !T(a, x)", 1),
    "twice": ("Q(a) = R(a, k), S(k, x), !T(x), !U(a)", "Q(a, x) = R(a, k), S(k, x), !T(x), !U(a)", 2),
    "by a value and by a key of the join": (
        "Q(a) = R(a, k), S(k, x), !T(x), !U(k)",
        "Q(a, x) = R(a, k), S(k, x), !T(x), !U(k)",
        1,
    ),
    "one relation": ("Q(a) = R(a, x), !T(x)", "Q(a, x) = R(a, x), !T(x)", 1),
    "one table": ("Q(a) = E(a, b), E(b, c), !E(a, c)", "Q(a, c) = E(a, b), E(b, c), !E(a, c)", 1),
    "globally": ("Q() = R(a, x), !T(x)", "Q(x) = R(a, x), !T(x)", 1),
}


@pytest.mark.parametrize("in_z", [False, True])
@pytest.mark.parametrize("case", EXCLUDED)
def test_distinct_counts_look_up_negated_atoms_per_value(case: str, in_z: bool) -> None:
    main, arguments, number = EXCLUDED[case]
    both = [DistinctAggregate(f"{kind}_it", kind, count(arguments), BIGINT) for kind in ("count", "sum")]
    block = Block("groups", count(main), (), read(*both), tuple(both))
    program = assemble(block, first_order.plan, in_z, excluding=exclusion)
    assert dict(program.bounds)["space"] == "O(N + |result without NOT EXISTS|)"
    assert len(looked_up_late(program)) == number, print_program(program)
    keep(program, block)


def looked_up_late(program: Program) -> frozenset[str]:
    """The views that must have no row for a value that appears."""
    adds = [s for t in program.triggers for s in visit(t.body) if isinstance(s, Add) and s.appear]
    return frozenset(s.view for add in adds for s in visit(add.appear) if isinstance(s, Lookup) and not s.body)


def test_a_distinct_min_evaluates_negated_atoms_within_the_join() -> None:
    main, arguments, _ = EXCLUDED["by the value"]
    one = DistinctAggregate("it", "min", count(arguments), BIGINT)
    block = Block("groups", count(main), (), read(one), (one,))
    assert assemble(block, first_order.plan, excluding=exclusion) == assemble(block, first_order.plan)


def follow(block: Block, strategy: str) -> None:
    """Apply streams to the block's program, and compare with the oracle."""
    try:
        program = assemble(block, STRATEGIES[strategy].of_query)
    except PlanError as refusal:
        pytest.skip(str(refusal))
    keep(program, block)


def keep(program: Program, block: Block) -> None:
    """Apply streams to a program, and compare with the oracle's evaluation of its block."""
    main, arguments = block.query, block.distinct[0].query
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
