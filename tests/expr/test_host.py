"""Evaluates expressions with host operations over columns of codes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from freshviews.expr import host_evaluation as host
from freshviews.expr.host_evaluation import Codes, evaluator_for
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.ops import OPS
from freshviews.program.reference.scalars import evaluate as interpret
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, Dictionary, SqlType, decimal
from freshviews.types.values import encoder_for

NAME, QTY, DAY = Column("name", STRING), Column("qty", INT), Column("day", DATE)
PRICE = Column("price", DOUBLE)
NAMES = ["bolt", None, "Nut", "bolt", "", "12"]
TABLE: dict[str, tuple[SqlType, list[Any]]] = {
    "name": (STRING, NAMES),
    "qty": (INT, [3, 0, None, -1, 7, 2]),
    "day": (DATE, [dt.date(2026, 1, 31), None, *[dt.date(1969, 12, 31)] * 4]),
    "price": (DOUBLE, [0.5, 1e10, float("nan"), None, -0.0, 2.0]),
}


def columns(dictionary: Dictionary) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    return {
        name: np.array(list(map(encoder_for(kind, True, dictionary), values)), np.int64)
        for name, (kind, values) in TABLE.items()
    }


def evaluate(expr: Expr, given: dict[str, Codes], dictionary: Dictionary) -> Codes:
    """The codes of an expression that fails for no row."""
    codes, failures = evaluator_for(expr, dictionary)(given)
    assert not failures
    return codes


def reasons(expr: Expr) -> dict[int, str]:
    """The rows of the table for which an expression fails, and why."""
    dictionary = Dictionary()
    _, failures = evaluator_for(expr, dictionary)(columns(dictionary))
    return {row: failure.reason for row, failure in failures.items()}


def call(op: str, kind: SqlType, *args: Expr) -> Call:
    return Call(op, args, kind)


def text(value: str) -> Literal:
    return Literal(value, STRING)


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


IS_NUMBER = call("rlike", BOOLEAN, NAME, text("^[0-9]+$"))
PARSED = call("string_to_int", INT, NAME, number(-(2**31)), number(2**31 - 1))

EXPRESSIONS = [
    call("upper", STRING, NAME),
    call("like", BOOLEAN, NAME, text("b%")),
    call("concat", STRING, NAME, text("-"), call("int_to_string", STRING, QTY)),
    call("concat_ws", STRING, text("-"), NAME, call("int_to_string", STRING, QTY)),
    call("length", INT, call("date_to_string", STRING, call("add_months", DATE, DAY, number(1)))),
    call("and", BOOLEAN, call("gt", BOOLEAN, QTY, number(0)), call("lt_string", BOOLEAN, NAME, text("z"))),
    call("or", BOOLEAN, call("is_null", BOOLEAN, QTY), call("like", BOOLEAN, NAME, text("%t"))),
    call("case", INT, IS_NUMBER, PARSED, number(-1)),
    call("coalesce", STRING, call("lower", STRING, NAME), text("none")),
    call("float_to_string", STRING, PRICE),
    call("greatest_string", STRING, NAME, text("c")),
    call("decimal_to_string", STRING, Column("qty", decimal(9, 1)), number(1)),
    call("int_to_float", DOUBLE, call("length", INT, NAME)),
    call("eq", BOOLEAN, call("lower", STRING, NAME), text("nut")),
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_evaluating_columns_agrees_with_interpreting_rows(expr: Expr) -> None:
    dictionary = Dictionary()
    given = columns(dictionary)
    rows = [{name: int(codes[i]) for name, codes in given.items()} for i in range(len(NAMES))]
    codes = evaluate(expr, given, dictionary)
    assert codes.dtype == np.int64
    assert codes.tolist() == [interpret(expr, row, dictionary) for row in rows]
    assert evaluate(expr, {name: part[:0] for name, part in given.items()}, dictionary).tolist() == []


def test_results_have_the_codes_of_their_values() -> None:
    dictionary = Dictionary()
    codes = evaluate(call("upper", STRING, NAME), columns(dictionary), dictionary)
    assert dictionary.decode_array(codes).to_pylist() == ["BOLT", None, "NUT", "BOLT", "", "12"]


def test_an_error_names_the_failed_row_and_the_reason() -> None:
    found = reasons(PARSED)
    assert [*found] == [0, 2, 3, 4]
    assert "'bolt' is not an integer" in found[0]
    assert "TRY_CAST gives NULL instead" in found[0]
    share = call("int_to_string", STRING, call("div_int", INT, number(6), QTY))
    assert {row: why.partition(";")[0] for row, why in reasons(share).items()} == {1: "division by zero"}


def test_a_row_that_fails_has_no_value() -> None:
    dictionary = Dictionary()
    codes, failures = evaluator_for(PARSED, dictionary)(columns(dictionary))
    assert codes.tolist() == [NULL, NULL, NULL, NULL, NULL, 12]
    assert len(failures) == 4


def test_an_unevaluated_part_of_an_expression_never_fails() -> None:
    # If qty is NULL, the condition is not TRUE.
    safe = call("case", INT, call("lt", BOOLEAN, QTY, number(7)), number(0), PARSED)
    assert [*reasons(safe)] == [2, 4]
    failing = call("gt", BOOLEAN, PARSED, number(5))
    assert [*reasons(call("and", BOOLEAN, IS_NUMBER, failing))] == []
    assert [*reasons(call("or", BOOLEAN, call("not", BOOLEAN, IS_NUMBER), failing))] == []
    assert [*reasons(call("and", BOOLEAN, failing, IS_NUMBER))] == [0, 2, 3, 4]
    assert [*reasons(call("coalesce", INT, QTY, PARSED))] == [2]
    assert [*reasons(call("case", INT, failing, number(1), number(0)))] == [0, 2, 3, 4]


def test_for_an_error_attempt_returns_null_and_failed_returns_true() -> None:
    dictionary = Dictionary()
    attempt, failed = call("attempt", INT, PARSED), call("failed", BOOLEAN, PARSED)
    assert evaluate(attempt, columns(dictionary), dictionary).tolist() == [NULL, NULL, NULL, NULL, NULL, 12]
    assert evaluate(failed, columns(dictionary), dictionary).tolist() == [1, 0, 1, 1, 1, 0]


def test_the_operator_and_evaluates_its_right_side_only_if_needed() -> None:
    dictionary = Dictionary()
    condition = call("and", BOOLEAN, IS_NUMBER, call("gt", BOOLEAN, PARSED, number(5)))
    assert evaluate(condition, columns(dictionary), dictionary).tolist() == [0, NULL, 0, 0, 0, 1]


def test_a_host_function_runs_once_for_equal_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def spy(value: str) -> str:
        calls.append(value)
        return value.upper()

    op = OPS["upper"]
    spied = type(op)(op.name, op.kernel, op.fallible, spy, op.arity, op.null)
    monkeypatch.setattr(host, "OPS", {**OPS, "upper": spied})
    dictionary = Dictionary()
    run = evaluator_for(call("upper", STRING, NAME), dictionary)
    run(columns(dictionary))
    run(columns(dictionary))
    assert calls == ["bolt", "Nut", "", "12"]


def test_results_of_a_host_function_stay_right_when_its_memo_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "LARGEST_MEMO", 2)
    dictionary = Dictionary()
    run = evaluator_for(call("upper", STRING, NAME), dictionary)
    assert run(columns(dictionary))[0].tolist() == run(columns(dictionary))[0].tolist()


def test_a_constant_expression_gives_the_same_value_for_every_row() -> None:
    dictionary = Dictionary()
    codes = evaluate(call("upper", STRING, text("x")), columns(dictionary), dictionary)
    assert dictionary.decode_array(codes).to_pylist() == ["X"] * len(NAMES)
