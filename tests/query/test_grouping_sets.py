"""The ordinary blocks to which a block with grouping sets is equivalent."""

from __future__ import annotations

import pytest

from freshviews.query.block import Block
from freshviews.query.grouping_sets import each, in_each
from tests.sql.printed import query_text, view


def block(query: str) -> Block:
    (found,) = view(query).blocks
    return found


def outputs(one: Block) -> list[str]:
    return [str(o.expr) for o in one.outputs]


def test_each_grouping_set_becomes_a_block() -> None:
    found = block("SELECT a, b, count(DISTINCT c) AS n, grouping_id(b, a) AS g FROM r GROUP BY CUBE (a, b)")
    assert found.query.free == ("a", "b")
    assert found.sets == (("a", "b"), ("a",), ("b",), ())
    queries = [query_text(one.query).partition(":")[0] for one in each(found)]
    assert queries == ["v(a, b) = r(a, b)", "v(a) = r(a)", "v(b) = r(b)", "v() = r()"]
    distinct = [query_text(one.distinct[0].query).split(" | ")[0] for one in each(found)]
    assert [text.partition("(")[2] for text in distinct] == [
        "a, b, c) = r(a, b, c",
        "a, c) = r(a, c",
        "b, c) = r(b, c",
        "c) = r(c",
    ]
    names = [found.results[0].name] * 4
    rows = [["a", "b", names[0], "0"], ["a", "NULL", names[0], "2"], ["NULL", "b", names[0], "1"]]
    assert [outputs(one) for one in each(found)] == [*rows, ["NULL", "NULL", names[0], "3"]]
    assert all(not one.sets for one in each(found))


def test_variables_of_joins_stay_in_every_grouping_set() -> None:
    found = block("SELECT r.b, s.e, count(*) AS n FROM r JOIN s ON r.a = s.a AND r.c < s.b GROUP BY ROLLUP (r.b, s.e)")
    atoms = [[atom.variables for atom in one.query.atoms] for one in each(found)]
    assert atoms == [
        [("a", "r_b", "c"), ("a", "s_b", "e")],
        [("a", "r_b", "c"), ("a", "s_b")],
        [("a", "c"), ("a", "s_b")],
    ]


@pytest.mark.parametrize(
    "having, expected",
    [
        ("grouping(a) = 1", ["False", "True"]),
        ("a IS NULL", ["is_null(a)", "True"]),
        ("a > 1", ["gt(a, 1)", "None"]),
        ("a > 1 OR sum(b) > 2", ["or(gt(a, 1), gt(sum_b, 2))", "or(None, gt(sum_b, 2))"]),
        ("grouping_id(a) >= 1 AND sum(b) > 2", ["False", "gt(sum_b, 2)"]),
        ("grouping(a) <> 0 OR NOT (sum(b) > 2)", ["not(gt(sum_b, 2))", "True"]),
    ],
)
def test_expressions_that_are_constant_in_a_grouping_set_become_literals(having: str, expected: list[str]) -> None:
    found = block(f"SELECT a, sum(b) AS s FROM r GROUP BY ROLLUP (a) HAVING {having}")
    assert [str(one.having).replace("NULL", "None") for one in each(found)] == expected


def test_a_block_without_grouping_sets_is_unchanged() -> None:
    found = block("SELECT a, count(*) AS n FROM r GROUP BY a")
    assert each(found) == (found,)
    assert in_each(found) == ("a",)


def test_variables_of_the_most_grouping_sets_come_first() -> None:
    found = block("SELECT a, b, c, count(*) AS n FROM r GROUP BY GROUPING SETS ((c), (b, c), (a, b, c))")
    assert found.query.free == ("c", "b", "a")
    assert found.sets == (("c",), ("c", "b"), ("c", "b", "a"))
    assert in_each(found) == ("c",)
