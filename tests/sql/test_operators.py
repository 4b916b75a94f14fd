"""Operators without parentheses are read as Spark's grammar reads them."""

from __future__ import annotations

import pytest
from sqlglot import exp

from freshviews.errors import SqlError
from freshviews.sql.text.parse import Node, SqlText, parse

READ = {
    # One level, from left to right.
    "a || b + c": "(a || b) + c",
    "a - b || c": "(a - b) || c",
    "a DIV b * c % d": "((a DIV b) * c) % d",
    "a = b <> c": "(a = b) <> c",
    "a < b = c": "(a < b) = c",
    "a = b < c": "(a = b) < c",
    "a <=> b >= c": "(a <=> b) >= c",
    # From tight to loose.
    "a + b * c || d": "(a + (b * c)) || d",
    "a || b * c": "a || (b * c)",
    "a | b & c": "a | (b & c)",
    "a ^ b & c": "a ^ (b & c)",
    "a | b ^ c": "a | (b ^ c)",
    "a & b + c": "a & (b + c)",
    "a << b + c & d": "(a << (b + c)) & d",
    "a | b = c": "(a | b) = c",
    "a OR b AND NOT c = d": "a OR (b AND (NOT (c = d)))",
    # Signs, and what follows a value.
    "- a * b": "(- a) * b",
    "~ a + b": "(~ a) + b",
    "a - - b": "a - (- b)",
    "- a :: INT": "- (a :: INT)",
    "! a = b": "NOT (a = b)",
    # A predicate takes whole comparisons.
    "a = b IS NULL": "(a = b) IS NULL",
    "NOT a IS NULL": "NOT (a IS NULL)",
    "a + b IN (c, d)": "(a + b) IN (c, d)",
    "a = b IN (c)": "(a = b) IN (c)",
    "a NOT BETWEEN b | c AND d OR e": "(a NOT BETWEEN (b | c) AND d) OR e",
    "a BETWEEN b AND c = d": "a BETWEEN b AND (c = d)",
    "a || b NOT LIKE c || d AND e": "((a || b) NOT LIKE (c || d)) AND e",
    "a LIKE b = c": "a LIKE (b = c)",
    "a RLIKE b || c": "a RLIKE (b || c)",
    "a IS DISTINCT FROM b + c = d": "a IS DISTINCT FROM ((b + c) = d)",
    "a IS NOT DISTINCT FROM b AND c": "(a IS NOT DISTINCT FROM b) AND c",
    "a IS UNKNOWN": "a IS NULL",
}


@pytest.mark.parametrize("flat", READ)
def test_operators_have_the_same_precedence_as_in_spark(flat: str) -> None:
    assert _tree(flat) == _tree(READ[flat])


@pytest.mark.parametrize("flat", ["- 2 :: STRING", "- 2", "- 128Y"])
def test_a_minus_before_a_number_is_part_of_the_number(flat: str) -> None:
    (number,) = _tree(flat).find_all(exp.Literal)
    assert number.name.startswith("-")


@pytest.mark.parametrize(
    "wrong",
    ["a IS NULL = b", "a IS NULL IS NULL", "a NOT LIKE b IS NULL", "a IN (b) = c", "a = NOT b", "a NOT NULL", "a ** b",
     "a BETWEEN b OR c", "a IS 5", "a IS TRUE + b", "a IS NULL :: INT", "a ?? b", "a NOT IS NULL"],
)  # fmt: skip
def test_operators_that_spark_does_not_accept_are_refused(wrong: str) -> None:
    with pytest.raises(SqlError):
        _tree(wrong)


def _tree(expression: str) -> Node:
    """The expression without its parentheses."""
    (tree,) = parse(SqlText(f"SELECT {expression} AS y"))
    for around in list(tree.find_all(exp.Paren)):
        around.replace(around.this)
    return tree
