"""The oracle on examples worked out by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from freshviews.catalog.definitions import ViewDef
from freshviews.expr.nodes import Call, Column, Expr
from freshviews.program.reference.scalars import encode
from freshviews.query.block import Block, DistinctAggregate, Output, Result
from freshviews.query.query import Aggregate, Lift
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, NULL, SqlType, decimal
from tests.plan.cases import COUNT, call, column, sums, tenth, total, wild
from tests.plan.oracle import Key, Relation, evaluate_block, evaluate_query, evaluate_view
from tests.query.notation import query


def relation(*rows: tuple[Key, int]) -> Relation:
    """Columns c0, c1, ..., and rows with their multiplicities."""
    return Relation(tuple(f"c{i}" for i in range(len(rows[0][0]))), Counter(dict(rows)))


R = relation(((1, 10), 2), ((1, 20), 1), ((2, 10), -1))
S = relation(((10,), 3), ((20,), -6))


def test_the_payload_is_summed_over_derivations() -> None:
    made = sums("Q(a) = R(a, b), S(b)", total("x", ("R", column("c1"))))
    assert evaluate_query(made, {"R": R, "S": S}) == {
        (1,): {"count": 2 * 3 - 6, "x": 2 * 3 * 10 - 6 * 20},
        (2,): {"count": -3, "x": -30},
    }


def test_a_key_whose_payload_cancels_out_is_absent() -> None:
    assert evaluate_query(query("Q(a) = R(a, b), S(b)"), {"R": R, "S": S}) == {(2,): {"count": -3}}


def test_conditions_and_repeated_variables_restrict_derivations() -> None:
    rows = relation(((1, 1), 1), ((1, 2), 1), ((3, 2), 1))
    assert evaluate_query(query("Q() = R(a, a)"), {"R": rows}) == {(): {"count": 1}}
    assert evaluate_query(query("Q(a, c) = R(a, b), R(c, b), a < c"), {"R": rows}) == {(1, 3): {"count": 1}}


def test_sums_of_doubles_are_exact() -> None:
    rows = relation(((0, 10), 1), ((0, 1), 2), ((0, 3), 1))
    made = sums("Q() = R(a, b)", total("x", ("R", wild("c1")), ring="real"))
    (payload,) = evaluate_query(made, {"R": rows}).values()
    assert (payload["x"].finite, payload["x"].positive, payload["x"].nans) == (1, 2, 1)


GROUPS = relation(((1, 10), 2), ((1, 21), 1), ((2, 10), 1))
CENTS = decimal(9, 2)


def block(kind: str, *results: Result, having: Expr | None = None) -> Block:
    """SELECT a, ... FROM R(a, b) [GROUP BY a], with aggregates of b."""
    free = () if kind == "global" else ("a",)
    aggregates = (
        COUNT,
        Aggregate("b", "integer", (Lift("R", column("c1")),)),
        Aggregate("tenths", "real", (Lift("R", tenth("c1")),)),
    )
    text = f"Q({', '.join(free)}) = R(a, b)"
    arguments = query(f"Q({', '.join((*free, 'b'))}) = R(a, b)")
    distinct = tuple(
        DistinctAggregate(f"{kind}_b", kind, arguments, BIGINT) for kind in ("min", "max", "count", "sum")
    )
    names = (*free, *(result.name for result in results))
    outputs = tuple(Output(name, Column(name, BIGINT)) for name in names)
    return Block(kind, query(text, aggregates), outputs, results, distinct, having)


def result(name: str, function: str, *components: str, of: SqlType = BIGINT, type: SqlType = BIGINT) -> Result:
    return Result(name, function, components, of, type)


ALL = (
    result("n", "count", "count"),
    result("total", "sum", "b", "count"),
    result("mean", "avg", "b", "count", type=DOUBLE),
    result("cents", "avg", "b", "count", of=CENTS, type=decimal(13, 6)),
    result("tenth", "sum", "tenths", "count", type=DOUBLE),
    result("least", "min", "min_b"),
    result("most", "max", "max_b"),
    result("kinds", "count", "count_b"),
    result("distinct", "sum", "sum_b", "count_b"),
)


def double(value: float) -> int:
    return encode(value, DOUBLE)


def test_a_group_has_a_row_with_its_results() -> None:
    assert evaluate_block(block("groups", *ALL), {"R": GROUPS}) == {
        (1, 3, 41, double(41 / 3), 136667, double(4.1), 10, 21, 2, 31): 1,
        (2, 1, 10, double(10.0), 100000, double(1.0), 10, 10, 1, 10): 1,
    }


def test_only_the_global_group_has_a_row_without_input() -> None:
    empty = Relation(("c0", "c1"))
    assert evaluate_block(block("groups", *ALL), {"R": empty}) == {}
    nothing = (0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL)
    assert evaluate_block(block("global", *ALL), {"R": empty}) == {nothing: 1}


def test_a_having_clause_keeps_the_groups_where_its_condition_is_true() -> None:
    having = Call("lt", (Column("least", BIGINT), Column("most", BIGINT)), BOOLEAN)
    made = block("groups", *ALL[5:7], having=having)
    assert evaluate_block(made, {"R": GROUPS}) == {(1, 10, 21): 1}


def test_a_block_without_groups_counts_derivations() -> None:
    twice = call("mul_int", column("a"), column("a"))
    bag = Block("bag", query("Q(a) = R(a, b)"), (Output("aa", twice),))
    assert evaluate_block(bag, {"R": GROUPS}) == {(1,): 3, (4,): 1}
    assert evaluate_view(ViewDef("v", (), (bag, bag)), {"R": GROUPS}) == {(1,): 6, (4,): 2}


@pytest.mark.parametrize(
    ("counts", "value"), [((1, 0, 0), "inf"), ((0, 1, 0), "-inf"), ((1, 1, 0), "nan"), ((0, 1, 1), "nan")]
)
def test_a_sum_that_is_not_finite_follows_ieee_754(counts: tuple[int, int, int], value: str) -> None:
    special = dict(zip((1, 2, 3), counts, strict=True))
    rows = Relation(("c0", "c1"), Counter({(0, which): times for which, times in special.items() if times}))
    aggregates = (COUNT, Aggregate("x", "real", (Lift("R", wild("c1")),)))
    outcome = result("x_sum", "sum", "x", "count", type=DOUBLE)
    output = Output("x", Column("x_sum", DOUBLE))
    made = Block("global", query("Q() = R(a, b)", aggregates), (output,), (outcome,))
    (row,) = evaluate_block(made, {"R": rows})
    assert row == (double(float(value)),)
