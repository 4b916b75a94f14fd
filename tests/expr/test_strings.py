"""String functions as Spark defines them."""

from __future__ import annotations

from typing import Any

import pytest

from freshviews.expr.ops import OPS


def call(op: str, *args: Any) -> Any:
    host = OPS[op].host
    assert host is not None
    return host(*args)


@pytest.mark.parametrize(
    ("op", "args", "result"),
    [
        ("like", ("bolt", "b%"), True),
        ("like", ("bolt", "_olt"), True),
        ("like", ("bolt", "olt"), False),
        ("like", ("", "%"), True),
        ("like", ("two\nlines", "two%s"), True),
        ("like", ("50%", "50\\%"), True),
        ("like", ("50x", "50\\%"), False),
        ("like", ("a_b", "a!_b", "!"), True),
        ("like", ("a.b", "a.b"), True),
        ("like", ("axb", "a.b"), False),
        ("like", ("a\\b", "a\\\\b"), True),
        ("like", ("special packages requests", "%special%requests%"), True),
        ("ilike", ("BOLT", "b%T"), True),
        ("rlike", ("bolt 12", "[0-9]+"), True),
        ("lt_string", ("a", "b"), True),
        ("lt_string", ("Z", "a"), True),
        ("lt_string", ("\uffff", "\U00010000"), True),
        ("le_string", ("a", "a"), True),
        ("gt_string", ("é", "z"), True),
        ("ge_string", ("a", "ab"), False),
        ("greatest_string", ("a", None), "a"),
        ("least_string", ("b", "a"), "a"),
        ("least_string", (None, None), None),
        ("concat", ("a",), "a"),
        ("concat", ("a", "", "b"), "ab"),
        ("concat_ws", ("-", "a", None, "b"), "a-b"),
        ("concat_ws", (None, "a"), None),
        ("concat_ws", ("-",), ""),
        ("upper", ("straße",), "STRASSE"),
        ("length", ("añ\U0001f600",), 3),
        ("ascii", ("",), 0),
        ("ascii", ("Abc",), 65),
        ("substring", ("Spark SQL", 5), "k SQL"),
        ("substring", ("Spark SQL", -3), "SQL"),
        ("substring", ("Spark SQL", 5, 1), "k"),
        ("substring", ("abc", 0, 2), "ab"),
        ("substring", ("abc", -5, 3), "a"),
        ("substring", ("abc", 2, -1), ""),
        ("substring", ("abc", 9, 1), ""),
        ("substring", ("abc", -5, 1), ""),
        ("trim", ("  a\t ",), "a\t"),
        ("trim", ("SSparkSQLS", "SL"), "parkSQ"),
        ("ltrim", ("  a ",), "a "),
        ("rtrim", ("  a ",), "  a"),
        ("rtrim", ("a", ""), "a"),
        ("replace", ("abcabc", "b", "--"), "a--ca--c"),
        ("replace", ("abc", "", "x"), "abc"),
        ("lpad", ("hi", 5, "??x"), "??xhi"),
        ("lpad", ("hi", 1, "?"), "h"),
        ("rpad", ("hi", 5), "hi   "),
        ("rpad", ("hi", 5, ""), "hi"),
        ("rpad", ("hi", -1), ""),
        ("repeat", ("ab", 2), "abab"),
        ("repeat", ("ab", -1), ""),
        ("left", ("abc", 2), "ab"),
        ("left", ("abc", -1), ""),
        ("right", ("abc", 2), "bc"),
        ("right", ("abc", 0), ""),
        ("right", ("abc", 9), "abc"),
        ("get_json_object", ('{"a":[1.50,{"b":"x"}]}', "$.a[1].b"), "x"),
        ("get_json_object", ('{"a":[1.50,{"b":"x"}]}', "$.a"), '[1.5,{"b":"x"}]'),
        ("get_json_object", ('{"a":1}', "$.b"), None),
        ("get_json_object", ('{"a":1', "$.a"), None),
        ("get_json_object", (None, "$"), None),
        ("get_json_object", ("[" * 1000 + "]" * 1000, "$[0]"), "[" * 999 + "]" * 999),
        ("get_json_object", ("[" * 1001 + "]" * 1001, "$[0]"), None),
        ("get_json_object", (f"[{'1' * 1000}]", "$[0]"), "1" * 1000),
        ("get_json_object", (f"[{'1' * 1001}]", "$[0]"), None),
        ("get_json_object", (f'{{"{"a" * 50_001}":1}}', "$"), None),
        ("json_array_length", ('[1,[2],{"a":3}]',), 3),
        ("json_array_length", ('{"a":[1]}',), None),
        ("floor_of_float", (-1.234, 15, 2), -124),
        ("floor_of_float", (float("nan"), 15, 2), None),
        ("ceil_of_float", (1234.5, 15, -2), 1300),
        ("ceil_of_float", (0.10000000149011612, 7, 7), 1_000_000),
        ("float_to_char", (1.5, 15, "99.9"), " 1.5"),
        ("instr", ("SparkSQL", "SQL"), 6),
        ("instr", ("SparkSQL", "x"), 0),
        ("instr", ("abc", ""), 1),
        ("locate", ("bar", "foobarbar"), 4),
        ("locate", ("bar", "foobarbar", 5), 7),
        ("locate", ("bar", "foobarbar", 0), 0),
        ("reverse", ("abc",), "cba"),
        ("initcap", ("sPark sql o'neil",), "Spark Sql O'neil"),
        ("split_part", ("11.12.13", ".", 3), "13"),
        ("split_part", ("11.12.13", ".", -1), "13"),
        ("split_part", ("11.12.13", ".", 4), ""),
        ("split_part", ("11.12.13", "", 1), "11.12.13"),
        ("startswith", ("abc", "ab"), True),
        ("endswith", ("abc", "ab"), False),
        ("contains", ("abc", "bc"), True),
    ],
)
def test_a_string_function_returns_the_same_value_as_spark(op: str, args: tuple[Any, ...], result: Any) -> None:
    assert call(op, *args) == result


@pytest.mark.parametrize(
    ("op", "args", "reason"),
    [
        ("like", ("a", "a\\"), "must stand before"),
        ("like", ("a", "a\\b"), "must stand before"),
        ("like", ("a", "a", "ab"), "one character"),
        ("rlike", ("a", "("), "regular expression"),
        ("split_part", ("a", ",", 0), "from 1"),
        ("repeat", ("ab", 2**40), "too long"),
        ("lpad", ("ab", 2**40), "too long"),
        ("get_json_object", ("[1]", "$[9223372036854775808]"), "does not fit 64 bits"),
        ("get_json_object", ("[1]", f"$[{'1' * 5000}]"), "does not fit 64 bits"),
        ("get_json_object", ("[1]", "$" + ".a" * 101), "a path of 101 steps is too long; at most 100"),
        ("floor_of_float", (1e15, 15, 2), r"does not fit DECIMAL\(30, 15\)"),
        ("floor_of_float", (1e7, 7, 0), r"does not fit DECIMAL\(14, 7\)"),
        ("ceil_of_float", (1e5, 15, 15), "does not fit the 64 bits"),
        ("float_to_char", (1e15, 15, "9"), "does not fit"),
    ],
)
def test_a_string_function_refuses_an_argument_with_a_reason(op: str, args: tuple[Any, ...], reason: str) -> None:
    assert OPS[op].fallible
    with pytest.raises(ValueError, match=reason):
        call(op, *args)
