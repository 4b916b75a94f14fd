"""The printed form of every statement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.printer import print_expression
from freshviews.program.payload import MULTIPLICITY, Component, ComponentOf, Monomial, Value
from freshviews.program.printer import print_program, print_statements
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.results import Enumerated, Held
from freshviews.program.statements import (
    Add,
    Bound,
    Changed,
    Emit,
    If,
    Into,
    Let,
    Lookup,
    Loop,
    Range,
    RangeLoop,
    RangeSum,
    Scan,
    Smaller,
    Statement,
    Sum,
    Top,
)
from freshviews.program.views import Order, View
from freshviews.query.block import SET
from freshviews.types import BIGINT, BOOLEAN, STRING

COUNT = Component("count", "integer")
SUM_X = Component("sum_x", "integer")
A, B, C = (Column(name, BIGINT, False) for name in "abc")

PROGRAM = Program(
    "P",
    ("a",),
    (
        View("S", ("b", "c"), (COUNT,), ((0,), (1,))),
        View("T", ("c", "a"), (COUNT, SUM_X), ((1,),)),
        View("D", ("a", "x"), (COUNT,), ordered=(Order(BIGINT),)),
        View("P", ("a", "x"), (COUNT,), ordered=(Order(BIGINT),), sums=("count",)),
        View("Q", ("a",), (COUNT, SUM_X), journal=True),
        View("N", (), (COUNT,)),
    ),
    (),
    Held("Q"),
)
M = Monomial((MULTIPLICITY,))
S, T = ComponentOf("s", "count"), ComponentOf("t", "sum_x")
FIRST = (Top("r", "@m", 5, 8, ("b", "c"), "d", (Add("N", (), ("count",), (Monomial((Value("d"),)),)),)),)


def less(a: Expr, b: Expr) -> Call:
    return Call("lt", (a, b), BOOLEAN, False)


def slice_of_s(*body: Statement) -> Loop:
    return Loop("S", ("b", "c"), (0,), "s", body)


def slice_of_t(*body: Statement) -> Loop:
    return Loop("T", ("c", "a"), (1,), "t", body)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (Let("d", Call("add_int", (A, B), BIGINT)), "let d = a + b"),
        (If(less(A, B), (Add("N", (), ("count",), (M,)),)), "if a < b:\n    N[] += m"),
        (
            Lookup("T", ("c", "a"), "t", (Add("N", (), ("count",), (Monomial((MULTIPLICITY, T)),)),)),
            "if t := T[c, a]:\n    N[] += m * t.sum_x",
        ),
        (slice_of_s(Add("N", (), ("count",), (Monomial((S,)),))), "for c, s in S[b]:\n    N[] += s"),
        (slice_of_t(), "for c, t in T[_, a]:"),
        (Loop("S", ("b", "c"), (), "s", ()), "for b, c, s in S:"),
        (
            Smaller(slice_of_s(Emit(("a",), (Monomial((S,)),))), slice_of_t(Emit(("a",), (M,)))),
            "if |S[b]| <= |T[_, a]|:\n    for c, s in S[b]:\n        emit (a) * s\n"
            "else:\n    for c, t in T[_, a]:\n        emit (a) * m",
        ),
        (
            Sum(
                "u",
                (COUNT,),
                (slice_of_s(Into("u", (Monomial((MULTIPLICITY, S)),))),),
                (Add("N", (), ("count",), (Monomial((ComponentOf("u", "count"),)),)),),
            ),
            "u = sum:\n    for c, s in S[b]:\n        u += m * s\nif u:\n    N[] += u",
        ),
        (
            Sum("u", (COUNT, SUM_X), (Into("u", (M, Monomial((MULTIPLICITY, Value("x"))))),), ()),
            "u = sum:\n    u += (count: m, sum_x: m * x)\nif u:",
        ),
        (Add("N", (), ("count",), (Monomial(()),)), "N[] += 1"),
        (Add("N", (), ("count",), (Monomial((), -1),)), "N[] += -1"),
        (Add("N", (), ("count",), (Monomial((MULTIPLICITY,), -1),)), "N[] += -m"),
        (Add("N", (), ("count",), (Monomial((MULTIPLICITY, MULTIPLICITY), 3),)), "N[] += 3 * m * m"),
        (
            slice_of_s(
                Add("Q", ("a",), ("count", "sum_x"), (Monomial((MULTIPLICITY, S)), Monomial((Value("x"), S))))
            ),
            "for c, s in S[b]:\n    Q[a] += (count: m * s, sum_x: x * s)",
        ),
        (Add("Q", ("a",), ("sum_x",), (M,)), "Q[a] += (sum_x: m)"),
        (
            Add(
                "S",
                ("b", "c"),
                ("count",),
                (M,),
                appear=(Add("N", (), ("count",), (Monomial(()),)),),
                vanish=(Add("N", (), ("count",), (Monomial((), -1),)),),
            ),
            "S[b, c] += m\n    appears:\n        N[] += 1\n    vanishes:\n        N[] += -1",
        ),
        (Scan("Q", ("a",), "sum_x", "D", ("a",), "min"), "Q[a].sum_x = min of D[a]"),
        (Scan("Q", (SET, "a"), "sum_x", "D", ("a",), "min"), "Q[set, a].sum_x = min of D[a]"),
        (Let(SET, Literal(1, BIGINT)), "let set = 1"),
        (
            Sum("u", (COUNT,), (RangeSum("u", Range("P", ("a",), Bound("b", True), Bound("c"))),), ()),
            "u = sum:\n    u += P[a, b < x <= c]\nif u:",
        ),
        (
            Sum("u", (COUNT,), (RangeSum("u", Range("P", ("a",), None, Bound("c")), -1),), ()),
            "u = sum:\n    u -= P[a, x <= c]\nif u:",
        ),
        (
            RangeLoop(Range("P", ("a",), Bound("c")), ("b",), "p", (Emit(("b",), (M,)),)),
            "for b, p in P[a, c <= x]:\n    emit (b) * m",
        ),
        (
            Add("D", ("a", "x"), ("count",), (M,), FIRST, FIRST, FIRST, "r"),
            "D[a, x] += m\n    then, as r:\n        for b, c, d in 5 to 8 of D, as r grows by m:\n            N[] += d",
        ),
        (
            Changed((Emit(("a", "b", "c"), (Monomial((MULTIPLICITY, MULTIPLICITY)),)),)),
            "if changes are wanted:\n    emit (a, b, c) * m * m",
        ),
    ],
)
def test_a_statement_is_printed_in_the_documented_notation(statement: Statement, text: str) -> None:
    # An enumerated result, so that rows are emitted.
    program = replace(PROGRAM, result=Enumerated(()))
    assert print_statements(program, (statement,)) == text + "\n"


def test_a_printed_view_shows_its_key_payload_and_indexes() -> None:
    assert print_program(PROGRAM).splitlines() == [
        "S(b, c) -> count  by [b], [c]",
        "T(c, a) -> count, sum_x  by [a]",
        "D(a, x) -> count  ordered by x",
        "P(a, x) -> count  ordered by x  summed by count",
        "Q(a) -> count, sum_x  journal",
        "N() -> count",
    ]


def test_a_printed_trigger_shows_columns_filters_and_computed_values() -> None:
    parameters = (
        Parameter("a", Column("src", BIGINT)),
        Parameter("b", B),
        Parameter("x", Call("mul_int", (C, Call("add_int", (B, Literal(1, BIGINT)), BIGINT)), BIGINT)),
    )
    keep = Call("like", (Column("name", STRING), Literal("b%", STRING)), BOOLEAN)
    trigger = Trigger("E", parameters, (less(B, C), keep), (Add("N", (), ("count",), (M,)),))
    printed = print_program(replace(PROGRAM, views=PROGRAM.views[-1:], triggers=(trigger,)))
    assert printed == (
        "N() -> count\n"
        "\n"
        "on E(src as a, b) += m:\n"
        "    where b < c\n"
        "    where like(name, 'b%')\n"
        "    let x = c * (b + 1)\n"
        "    N[] += m\n"
    )


def test_a_printed_enumerated_result_shows_its_loops() -> None:
    scan = Loop("S", ("a", "b"), (), "s", (Emit(("a",), (Monomial((S,)),)),))
    printed = print_program(replace(PROGRAM, views=PROGRAM.views[:1], result=Enumerated((scan,))))
    assert printed.endswith("\nresult(a):\n    for a, b, s in S:\n        emit (a) * s\n")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Call("and", (less(A, B), Call("not", (less(B, C),), BOOLEAN)), BOOLEAN), "(a < b) and not(b < c)"),
        (Call("is_null", (A,), BOOLEAN), "is_null(a)"),
        (Literal(None, BIGINT), "NULL"),
    ],
)
def test_a_printed_expression_has_infix_operators(expr: Expr, text: str) -> None:
    assert print_expression(expr) == text
