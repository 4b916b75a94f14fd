"""Scalar expressions, a row at a time."""

from __future__ import annotations

import pytest

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.program.reference.scalars import NAN, ScalarError, decode, encode, evaluate, rank
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING, SqlType
from freshviews.types.dictionary import Dictionary

A, B = Column("a", BIGINT), Column("b", BIGINT)
TEN = Literal(10, BIGINT)


def boolean(op: str, *args: Expr) -> Call:
    return Call(op, args, BOOLEAN)


def integer(op: str, *args: Expr) -> Call:
    return Call(op, args, BIGINT)


@pytest.mark.parametrize(
    ("expr", "a", "b", "code"),
    [
        (A, 3, 0, 3),
        (integer("add_int", A, B), 3, 4, 7),
        (integer("add_int", A, B), 3, NULL, NULL),
        (boolean("lt", A, B), 3, 4, 1),
        (boolean("and", boolean("lt", A, B), boolean("is_null", B)), 3, NULL, NULL),
        (boolean("and", boolean("lt", A, B), boolean("is_not_null", B)), 3, NULL, 0),
        (boolean("or", boolean("lt", A, B), boolean("is_null", B)), 3, NULL, 1),
        (boolean("or", boolean("lt", A, B), boolean("is_not_null", B)), 3, NULL, NULL),
        (integer("case", boolean("lt", A, B), A, boolean("lt", B, A), B, TEN), 3, 4, 3),
        (integer("case", boolean("lt", A, B), A, boolean("lt", B, A), B, TEN), 5, 4, 4),
        (integer("case", boolean("lt", A, B), A, boolean("lt", B, A), B, TEN), 5, NULL, 10),
        (integer("coalesce", A, B, TEN), NULL, 4, 4),
        (integer("coalesce", A, B), NULL, NULL, NULL),
    ],
)
def test_an_expression_returns_the_code_of_its_sql_value(expr: Expr, a: int, b: int, code: int) -> None:
    assert evaluate(expr, {"a": a, "b": b}) == code


@pytest.mark.parametrize("op", ["case", "coalesce", "and", "or"])
def test_only_needed_arguments_are_evaluated(op: str) -> None:
    fails = integer("div_int", TEN, Literal(0, BIGINT))
    true, false = Literal(True, BOOLEAN), Literal(False, BOOLEAN)
    args = {
        "case": (true, TEN, fails),
        "coalesce": (TEN, fails),
        "and": (false, boolean("eq", fails, TEN)),
        "or": (true, boolean("eq", fails, TEN)),
    }
    assert evaluate(Call(op, args[op], BIGINT), {}) == {"case": 10, "coalesce": 10, "and": 0, "or": 1}[op]
    with pytest.raises(ScalarError):
        evaluate(fails, {})


def test_host_operations_work_on_values_and_encode_their_result() -> None:
    names = Dictionary()
    upper = Call("upper", (Column("s", STRING),), STRING)
    assert evaluate(upper, {"s": names.encode("bolt")}, names) == names.encode("BOLT")
    assert evaluate(upper, {"s": NULL}, names) == NULL
    number = Call("string_to_int", (Column("s", STRING), Literal(0, BIGINT), Literal(9, BIGINT)), BIGINT)
    assert evaluate(number, {"s": names.encode("7")}, names) == 7
    with pytest.raises(ScalarError):
        evaluate(number, {"s": names.encode("bolt")}, names)


@pytest.mark.parametrize(
    ("value", "kind"), [(None, BIGINT), (-5, BIGINT), (True, BOOLEAN), (0.1, DOUBLE), (float("inf"), DOUBLE)]
)
def test_decoding_a_code_returns_the_value(value: object, kind: SqlType) -> None:
    assert decode(encode(value, kind), kind) == value


def test_equal_doubles_have_one_code() -> None:
    assert encode(-0.0, DOUBLE) == encode(0.0, DOUBLE) == 0
    assert encode(float("-nan"), DOUBLE) == NAN


def test_nan_ranks_above_infinity_and_strings_rank_by_bytes() -> None:
    values = [float("-inf"), -1.0, 0.0, 2.5, float("inf"), float("nan")]
    ranks = [rank(encode(value, DOUBLE), DOUBLE) for value in values]
    assert ranks == sorted(ranks)
    names = Dictionary()
    words = [rank(names.encode(word), STRING, names) for word in ("Z", "a", "é", "\U0001f600")]
    assert words == sorted(words)


def test_the_columns_of_a_call_are_found_once_in_order_of_first_use() -> None:
    call = integer("add_int", integer("add_int", B, A), integer("add_int", TEN, B))
    assert columns_of(call) == ("b", "a")
    assert columns_of(call) is columns_of(call)
    assert (columns_of(A), columns_of(TEN)) == (("a",), ())
    assert call == integer("add_int", integer("add_int", B, A), integer("add_int", TEN, B))
