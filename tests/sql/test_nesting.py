"""Nested texts are accepted to a stated depth, and refused with their place beyond it; a long chain is one level.

All of it runs as plain Python, because the tests are about the recursion of Python.
"""

from __future__ import annotations

import pickle
import sys
import threading
from typing import Any

import pytest

import freshviews as fv
from freshviews.catalog.nesting import DEPTH, FRAMES, room
from freshviews.sql import Catalog, parse_script

pytestmark = pytest.mark.plain_python(only=True)

TABLE = "CREATE TABLE t (a INT, b STRING, p BOOLEAN)"
ROWS = [(1, "x", True), (2, "y", False), (None, None, None)]


def rows_of(query: str) -> list[Any]:
    db = fv.Database()
    db.execute(TABLE)
    db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    db.insert("t", ROWS)
    assert db.view("v").explain()
    return sorted(db.view("v"), key=repr)


def nested(before: str, inside: str, after: str, depth: int) -> str:
    return before * depth + inside + after * depth


DEEP = {
    "parentheses": ("SELECT {} FROM t", "(", "a", ")", [(1,), (2,), (None,)]),
    "calls": ("SELECT {} FROM t", "abs(", "a", ")", [(1,), (2,), (None,)]),
    "strings": ("SELECT {} FROM t", "upper(", "b", ")", [("X",), ("Y",), (None,)]),
    "operators in parentheses": ("SELECT {} FROM t", "(0 + ", "a", ")", [(1,), (2,), (None,)]),
    "a chain of +": ("SELECT {} FROM t", "0 + ", "a", "", [(1,), (2,), (None,)]),
    "a chain of ||": ("SELECT {} FROM t", "'' || ", "b", "", [("x",), ("y",), (None,)]),
    "signs": ("SELECT {} FROM t", "- ", "a", "", None),
    "NOT": ("SELECT a FROM t WHERE {}", "NOT ", "p", "", None),
    "COALESCE": ("SELECT {} FROM t", "coalesce(", "a", ", 7)", [(1,), (2,), (7,)]),
    "CASE in ELSE": ("SELECT {} FROM t", "CASE WHEN a > 2 THEN 9 ELSE ", "a", " END", [(1,), (2,), (None,)]),
    "CASE in THEN": ("SELECT {} FROM t", "CASE WHEN a > 0 THEN ", "a", " END", [(1,), (2,), (None,)]),
    "CAST": ("SELECT {} FROM t", "CAST(", "a", " AS INT)", [(1,), (2,), (None,)]),
    "WHERE": ("SELECT a FROM t WHERE {}", "(", "a = 1", ")", [(1,)]),
    "groups": ("SELECT {0} AS g, COUNT(*) FROM t GROUP BY {0}", "abs(", "a", ")", [(1, 1), (2, 1), (None, 1)]),
    "sums": ("SELECT SUM({}) FROM t", "abs(", "a", ")", [(3,)]),
    "HAVING": ("SELECT b FROM t GROUP BY b HAVING {} = 1", "abs(", "SUM(a)", ")", [("x",)]),
    "subqueries": ("SELECT a FROM {}", "(SELECT a FROM ", "t", ") AS s", [(1,), (2,), (None,)]),
}


@pytest.mark.parametrize("what", DEEP)
def test_190_levels_of_nesting_are_accepted(what: str) -> None:
    query, before, inside, after, expected = DEEP[what]
    found = rows_of(query.format(nested(before, inside, after, 190)))
    if expected is not None:
        assert found == expected
    else:
        assert found == rows_of(query.format(inside))


@pytest.mark.parametrize(
    ("what", "levels"), [*((what, DEPTH + 3) for what in DEEP), ("calls", 5_000), ("NOT", 5_000), ("signs", 5_000)]
)
def test_more_than_200_levels_are_refused_with_their_place(what: str, levels: int) -> None:
    query, before, inside, after, _ = DEEP[what]
    with pytest.raises(fv.SqlError, match="more than 200 levels of nesting; put a part of it into a view") as caught:
        rows_of(query.format(nested(before, inside, after, levels)))
    assert caught.value.line == 1 and caught.value.column > 1


def chain(word: str, term: str, count: int) -> str:
    return f" {word} ".join(term.format(i) for i in range(1, count + 1))


@pytest.mark.parametrize("count", [400])
def test_a_chain_of_one_logical_operator_is_one_level_of_nesting(count: int) -> None:
    assert rows_of(f"SELECT a FROM t WHERE {chain('OR', 'a = {}', count)}") == [(1,), (2,)]
    assert rows_of(f"SELECT a FROM t WHERE {chain('AND', 'a <> 1 + {}', count)}") == [(1,)]
    assert rows_of(f"SELECT a, {chain('AND', 'a <> 1 + {}', count)} FROM t WHERE a > 0") == [(1, True), (2, False)]
    assert rows_of(f"SELECT b FROM t GROUP BY b HAVING {chain('AND', 'SUM(a) <> 1 + {}', 100)}") == [("x",)]
    assert rows_of(f"SELECT t.a FROM t JOIN t u ON t.a = u.a AND {chain('AND', 't.a + u.a <> 3 + {}', 50)}") == [(1,)]


def test_a_grouping_expression_inside_a_conjunction_is_recognised() -> None:
    query = "SELECT p AND a > 0 AND COUNT(*) > 0 AS x FROM t GROUP BY p AND a > 0"
    assert rows_of(query) == [(False,), (None,), (True,)]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100])
def test_a_case_with_many_branches_takes_the_first_branch_that_holds(count: int) -> None:
    """Up to 8 branches are nested; more are written one after the other."""
    tests = " ".join(f"WHEN a = {i} THEN {i} * 10" for i in range(1, count + 1))
    by_hand = [(a * 10 if a is not None and a <= count else -1,) for a, _, _ in ROWS]
    assert rows_of(f"SELECT CASE {tests} ELSE -1 END FROM t") == sorted(by_hand, key=repr)
    assert rows_of(f"SELECT CASE {tests} END FROM t WHERE a = 1") == [(10,)]
    terms = ", ".join(f"nullif(a, {i})" for i in range(1, count + 1))
    by_hand = [(None if a is None or count == a == 1 else a,) for a, _, _ in ROWS]
    assert rows_of(f"SELECT coalesce({terms}) FROM t") == sorted(by_hand, key=repr)


def test_an_excluded_case_branch_is_not_evaluated() -> None:
    tests = " ".join(f"WHEN a = {i} THEN {i}" for i in range(1, 20))
    assert rows_of(f"SELECT CASE {tests} ELSE 1 div (a - 1) END FROM t WHERE a = 1") == [(1,)]
    never = " AND ".join(["a > 1", *(f"a <> {i}" for i in range(10, 20)), "1 div (a - 1) = 1"])
    assert rows_of(f"SELECT a FROM t WHERE {never}") == [(2,)]


def rules_of(body: str) -> list[Any]:
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT, b INT)")
    db.rule(f"v(a, c) <- {body}.")
    db.insert("t", [(1, 2)])
    return list(db.view("v"))


def test_rules_have_the_same_limit_of_nesting_as_sql() -> None:
    assert rules_of(f"t(a, b), c = {nested('(', 'a', ')', 190)}") == [(1, 1)]
    assert rules_of(f"t(a, b), c = {nested('(1 + ', 'a', ')', 190)}") == [(1, 191)]
    assert rules_of(f"t(a, c), {nested('(', 'c < 3; c > 5', ')', 190)}") == [(1, 2)]
    with pytest.raises(fv.RuleError, match="more than 200 levels of nesting"):
        rules_of(f"t(a, b), c = {nested('(1 + ', 'a', ')', 300)}")
    with pytest.raises(fv.RuleError, match="more than 200 levels of nesting"):
        rules_of(f"t(a, c), {nested('(', 'c < 3; c > 5', ')', 5_000)}")


def test_the_function_room_increases_the_recursion_limit_inside_its_block() -> None:
    before = sys.getrecursionlimit()
    rows_of(f"SELECT {nested('abs(', 'a', ')', 190)} FROM t")
    assert sys.getrecursionlimit() == before
    inside, go_on = threading.Event(), threading.Event()

    def stay() -> None:
        with room():
            inside.set()
            go_on.wait(180)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(180)
    with room():
        assert sys.getrecursionlimit() == FRAMES
    assert sys.getrecursionlimit() == FRAMES
    go_on.set()
    thread.join()
    assert sys.getrecursionlimit() == before


def test_deeply_nested_definitions_can_be_pickled_with_a_raised_recursion_limit() -> None:
    query = f"SELECT {nested('abs(', 'a', ')', 190)} AS x FROM t"
    made = parse_script(f"{TABLE}; CREATE MATERIALIZED VIEW v AS {query}", Catalog())
    with room():
        data = pickle.dumps(made)
    copy = pickle.loads(data)
    with room():
        assert copy == made


def test_a_deeply_nested_durable_view_is_restored(tmp_path: Any) -> None:
    with fv.Database(tmp_path) as db:
        db.execute(TABLE)
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {nested('abs(', 'a', ')', 190)} AS x FROM t")
        db.insert("t", ROWS)
        db.snapshot()
    with fv.Database(tmp_path) as db:
        assert sorted(db.view("v"), key=repr) == [(1,), (2,), (None,)]
