"""Functions of one text over UTF-8 bytes give the answers of the functions over Python strings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freshviews.engine.codes.text_columns import results_of
from freshviews.expr.host_evaluation import evaluator_for
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.texts import text_function
from freshviews.kernel.codes.texts import is_text
from freshviews.types import BIGINT, BOOLEAN, INT, NULL, STRING, Dictionary

pytestmark = pytest.mark.plain_python

TEXT = Column("s", STRING)
LETTERS = "ab \n%_.\\!\x00äßéあ\U0001f600"
texts = st.text(LETTERS, max_size=12)
numbers = st.integers(-6, 8) | st.sampled_from([2**31 - 1, -(2**31)])


def literal(value: str | int) -> Literal:
    return Literal(value, STRING if isinstance(value, str) else BIGINT)


def call(op: str, *args: Any) -> Call:
    given = tuple(arg if isinstance(arg, Call | Column) else literal(arg) for arg in args)
    kind = INT if op == "length" else STRING if op in CUTS else BOOLEAN
    return Call(op, given, kind)


CUTS = ("substring", "left", "right", "trim", "ltrim", "rtrim")


@st.composite
def patterns(draw: st.DrawFn, escape: str) -> str:
    plain = [one for one in ("a", "b", "ab", "ä", "あ", "\n", "%", "%", "_") if one != escape]
    parts = st.sampled_from([*plain, *(escape + one for one in "%_" + escape)])
    return "".join(draw(st.lists(parts, max_size=6)))


@st.composite
def functions(draw: st.DrawFn) -> Expr:
    expr: Expr = TEXT
    for op in draw(st.lists(st.sampled_from(CUTS), max_size=2)):
        if op == "substring":
            expr = call(op, expr, *draw(st.lists(numbers, min_size=1, max_size=2)))
        elif op in ("left", "right"):
            expr = call(op, expr, draw(numbers))
        else:
            expr = call(op, expr, *draw(st.lists(st.sampled_from(["a", " ", "\n", "%"]), max_size=1)))
    asked = draw(st.sampled_from(["like", "like", "place", "order", "length", "in_list", ""]))
    if asked == "like":
        escape = draw(st.sampled_from(["\\", "!", "ä"]))
        expr = call("like", expr, draw(patterns(escape)), *([escape] if escape != "\\" else []))
    elif asked == "place":
        expr = call(draw(st.sampled_from(["startswith", "endswith", "contains"])), expr, draw(texts))
    elif asked == "order":
        sides = [expr, draw(texts)]
        op = draw(st.sampled_from(["lt_string", "le_string", "gt_string", "ge_string"]))
        expr = call(op, *(sides if draw(st.booleans()) else sides[::-1]))
    elif asked == "length":
        expr = call("length", expr)
    elif asked == "in_list":
        expr = call("in_list", expr, json.dumps(draw(st.lists(texts, min_size=1, max_size=4))))
    return expr if isinstance(expr, Call) else call("left", expr, 3)


@settings(deadline=None)
@given(functions(), st.lists(texts | st.none(), max_size=6))
@example(call("like", TEXT, "%special%requests%"), ["the special packages; requests", "specialrequest", "requests spe"])
@example(call("like", TEXT, "_"), ["", "a", "ä", "あ", "\U0001f600", "e\u0301"])
@example(call("like", TEXT, "%_a%b_"), ["äab\n", "ab", "xaxbxb", "xaxbxbx"])
@example(call("like", TEXT, "100\\%"), ["100%", "100", "100\\%", "1000"])
@example(call("substring", TEXT, -3, 2), ["a", "ab", "abc", "abcd", "あいうえお"])
@example(call("substring", TEXT, 0, 2), ["", "a", "äbc"])
def test_a_compiled_function_agrees_with_python_strings(expr: Expr, values: list[str | None]) -> None:
    function = text_function(expr)
    assert function is not None, expr
    dictionary = Dictionary()
    codes = np.array([NULL if value is None else dictionary.encode(value) for value in values], np.int64)
    wanted = evaluator_for(expr, dictionary)({"s": codes})[0].tolist()
    assert results_of(function, dictionary)({"s": codes})[0].tolist() == wanted, expr
    # A batch may be a strided view of rows.
    strided = np.column_stack([codes, codes])[:, 1]
    assert results_of(function, dictionary)({"s": strided})[0].tolist() == wanted, expr


@pytest.mark.parametrize(
    "expr",
    [
        call("like", TEXT, "a!b", "!"),  # refused: the error is that of the Python function
        call("like", TEXT, "a\\"),
        call("like", TEXT, "a", "!!"),
        call("like", TEXT, TEXT),
        call("substring", TEXT, Column("n", INT)),
        call("trim", TEXT, "ab"),
        call("in_list", TEXT, json.dumps([str(n) for n in range(100)])),
        call("upper", TEXT),
        call("like", call("upper", TEXT), "A%"),
        call("like", Literal(None, STRING), "A%"),
    ],
    ids=str,
)
def test_unsupported_text_expressions_are_left_to_python(expr: Expr) -> None:
    assert text_function(expr) is None


@settings(deadline=None)
@given(st.binary(max_size=12) | st.text(max_size=12).map(str.encode), st.integers(0, 12))
@example(b"abcdefgh\xc3", 0)
@example(b"\xed\xa0\x80", 0)
@example(b"\xf4\x90\x80\x80", 0)
@example(b"\xc0\x80", 0)
def test_bytes_are_valid_text_exactly_if_python_decodes_them(data: bytes, cut: int) -> None:
    data = data[: len(data) - cut] if cut < len(data) else data
    held = np.frombuffer(data + b"\0", np.uint8)
    try:
        data.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert is_text(held.ctypes.data, len(data)) == valid
