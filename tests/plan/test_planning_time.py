"""Planning stays fast: parsing, planning and writing the source of large views, measured in function calls.

Calls of Python functions are counted, so the counts are the same on every machine. A slow machine makes about three
million calls a second. Calls of kernels do not count: outside these tests they are machine code.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from cProfile import Profile
from itertools import combinations, pairwise
from types import FrameType
from typing import Any

import pytest

from freshviews import Database
from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from freshviews.plan.crown import crown
from freshviews.plan.delta import first_order
from freshviews.plan.strategy import TooLarge
from freshviews.query import join_trees
from freshviews.query.hypergraph import Edge, Hypergraph
from freshviews.query.join_trees import best_tree, check_tree, compares_all
from freshviews.query.query import Query
from tests.query.notation import query

SECOND = 3_000_000
pytestmark = pytest.mark.plain_python(only=True)


class Counted:
    """Counts the calls of Python functions while it is open; too many end the run."""

    def __init__(self, most: float) -> None:
        self.most, self.calls = most, 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and "/freshviews/kernel/" not in frame.f_code.co_filename:
            self.calls += 1
            if self.calls > self.most:
                raise AssertionError(f"more than {self.most:,.0f} calls")

    def __enter__(self) -> Counted:
        sys.setprofile(self)
        return self

    def __exit__(self, *failure: object) -> None:
        sys.setprofile(None)


def plan(tables: list[str], select: str, seconds: float) -> str:
    """EXPLAIN of the view; fails if planning takes more than a number of seconds."""
    db = Database()
    db.execute(";".join(f"CREATE TABLE {table}" for table in tables))
    with Counted(seconds * SECOND):
        db.execute(f"CREATE MATERIALIZED VIEW v AS {select}")
    return db.view("v").explain()


def equalities(edges: list[tuple[int, int]]) -> str:
    """The condition that joins edges of a graph, each a table ``e0(s, d)``, at their ends."""
    ends: dict[int, list[str]] = {}
    for i, (source, target) in enumerate(edges):
        ends.setdefault(source, []).append(f"e{i}.s")
        ends.setdefault(target, []).append(f"e{i}.d")
    return " AND ".join(f"{one} = {other}" for same in ends.values() for one, other in pairwise(same))


def grid(rows: int, columns: int) -> list[tuple[int, int]]:
    places = [(i, j) for i in range(rows) for j in range(columns)]
    near = [(a, b) for a, b in combinations(places, 2) if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    return [(places.index(a), places.index(b)) for a, b in near]


@pytest.mark.parametrize(
    ("edges", "seconds"),
    [
        pytest.param([(i, (i + 1) % 20) for i in range(20)], 1, id="cycle of 20"),
        pytest.param(list(combinations(range(6), 2)), 1, id="clique of 6"),
        pytest.param(grid(3, 4), 1, id="grid of 17"),
    ],
)
def test_cyclic_joins_are_planned_in_a_second(edges: list[tuple[int, int]], seconds: float) -> None:
    tables = [f"e{i}(s BIGINT, d BIGINT)" for i in range(len(edges))]
    names = ", ".join(f"e{i}" for i in range(len(edges)))
    plan(tables, f"SELECT COUNT(*) AS n FROM {names} WHERE {equalities(edges)}", seconds)


def test_a_smaller_maximum_of_statements_leads_to_fewer_nested_choices(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = grid(3, 3)
    tables = [f"e{i}(s BIGINT, d BIGINT)" for i in range(len(edges))]
    names = ", ".join(f"e{i}" for i in range(len(edges)))
    select = f"SELECT COUNT(*) AS n FROM {names} WHERE {equalities(edges)}"
    first_order._deltas.cache_clear()
    assert "in at most 4 nested places" in plan(tables, select, 1)
    for most, said in ((1000, "2 nested places; further choices would need"), (300, "1 place; further")):
        monkeypatch.setattr(first_order, "MOST_STATEMENTS", most)
        first_order._deltas.cache_clear()
        assert f"chosen in at most {said}" in plan(tables, select, 1)
    first_order._deltas.cache_clear()


def _union(count: int, word: str) -> str:
    return f" {word} ".join(f"SELECT a, {i} AS b FROM t" for i in range(count))


LONG: dict[str, Callable[[int], str]] = {
    "UNION ALL": lambda n: _union(n, "UNION ALL"),
    "UNION": lambda n: _union(n, "UNION"),
    "EXCEPT": lambda n: _union(n, "EXCEPT"),
    "OR": lambda n: "SELECT a FROM t WHERE " + " OR ".join(f"(a = {i} AND b = {i + 1})" for i in range(n)),
    "AND": lambda n: "SELECT a FROM t WHERE " + " AND ".join(f"a <> {i}" for i in range(n)),
    "IN": lambda n: f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(n)))})",
    "IN of strings": lambda n: f"SELECT a FROM t WHERE s IN ({', '.join(repr(str(i)) for i in range(n))})",
    "LIKE": lambda n: "SELECT a FROM t WHERE " + " OR ".join(f"s LIKE '%x{i}%'" for i in range(n)),
    "CASE": lambda n: f"SELECT CASE {' '.join(f'WHEN a = {i} THEN b + {i}' for i in range(n))} ELSE 0 END AS c FROM t",
    "columns": lambda n: f"SELECT {', '.join(f'c{i}' for i in range(200, 200 + n))} FROM w",
    "aggregates": lambda n: f"SELECT c0, {', '.join(f'SUM(c{i}) AS s{i}' for i in range(1, n + 1))} FROM w GROUP BY c0",
    "WITH": lambda n: f"WITH {', '.join(f'q{i} AS (SELECT a, {i} AS b FROM t)' for i in range(n))} "
    + " UNION ALL ".join(f"SELECT * FROM q{i}" for i in range(n)),
    "VALUES": lambda n: f"SELECT t.a FROM t JOIN (VALUES {', '.join(f'({i})' for i in range(n))}) AS x(k) ON t.a = x.k",
}


@pytest.mark.parametrize("kind", LONG)
def test_planning_a_query_twice_as_long_takes_twice_the_steps(kind: str) -> None:
    _check_linear(lambda n: f"{SHORT};CREATE MATERIALIZED VIEW v AS {LONG[kind](n)}")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t{i} (a BIGINT PRIMARY KEY, b BOOLEAN)",
        "CREATE MATERIALIZED VIEW v{i} AS SELECT a, SUM(b) AS s FROM t GROUP BY a",
    ],
)
def test_planning_a_script_twice_as_long_takes_twice_the_steps(statement: str) -> None:
    _check_linear(lambda n: ";".join((SHORT, *(statement.format(i=i) for i in range(n)))))


def test_planning_a_table_with_twice_the_columns_takes_twice_the_steps() -> None:
    _check_linear(lambda n: f"CREATE TABLE x ({', '.join(f'c{i} BIGINT, d{i} BOOLEAN' for i in range(2 * n))})")


SHORT = f"CREATE TABLE t (a BIGINT, b BIGINT, s STRING); CREATE TABLE w ({', '.join(f'c{i} INT' for i in range(600))})"


def _check_linear(script: Callable[[int], str]) -> None:
    """Doubling the length multiplies the steps by at most 2.2."""
    steps = []
    for count in (1, 50, 100):
        db = Database()
        with Counted(100 * SECOND) as counted:
            db.execute(script(count))
        db.close()
        steps.append(counted.calls)
    fixed, once, twice = steps
    assert twice - fixed < 2.2 * (once - fixed), steps


@pytest.mark.full
def test_a_cyclic_join_of_60_tables_is_planned_in_seconds() -> None:
    edges = grid(6, 6)
    tables = [f"e{i}(s BIGINT, d BIGINT)" for i in range(len(edges))]
    names = ", ".join(f"e{i}" for i in range(len(edges)))
    explained = plan(tables, f"SELECT COUNT(*) AS n FROM {names} WHERE {equalities(edges)}", 2)
    assert "in at most 1 place; further choices would need more than 8,000 statements" in explained


def stars(count: int) -> tuple[list[str], str]:
    """The tables of a star with keys, and their LEFT JOINs."""
    keys = ", ".join(f"k{i} BIGINT" for i in range(1, count))
    tables = [f"f({keys})", *(f"d{i}(k{i} BIGINT PRIMARY KEY, v{i} BIGINT)" for i in range(1, count))]
    return tables, "f " + " ".join(f"LEFT JOIN d{i} USING (k{i})" for i in range(1, count))


def stars_of_both(count: int) -> tuple[list[str], str]:
    """A star of LEFT JOINs whose result has the keys of both sides."""
    keys = ", ".join(f"k{i} BIGINT" for i in range(1, count))
    tables = [f"f({keys})", *(f"d{i}(id{i} BIGINT PRIMARY KEY, v{i} BIGINT)" for i in range(1, count))]
    return tables, "f " + " ".join(f"LEFT JOIN d{i} ON f.k{i} = d{i}.id{i}" for i in range(1, count))


def ternary(count: int) -> tuple[list[str], str]:
    """A random connected cyclic join of one table of three columns with itself."""
    rng = random.Random(1)
    ends: dict[int, list[str]] = {}
    for i in range(count):
        first = rng.randrange(min(count, 2 * i + 1))
        others = rng.sample([v for v in range(count) if v != first], 2)
        for column, variable in zip("abc", (first, *others), strict=True):
            ends.setdefault(variable, []).append(f"e{i}.{column}")
    joined = " AND ".join(f"{one} = {other}" for same in ends.values() for one, other in pairwise(same))
    names = ", ".join(f"e AS e{i}" for i in range(count))
    return ["e(a BIGINT, b BIGINT, c BIGINT)"], f"{names} WHERE {joined}"


@pytest.mark.parametrize(
    ("shape", "result", "seconds"),
    [
        pytest.param("chain", "*", 4, id="chain, all columns"),
        pytest.param("chain", "COUNT(*) AS n", 2, id="chain, counted"),
        pytest.param("star", "*", 5, id="star of LEFT JOINs"),
        pytest.param("star of both", "*", 3.5, id="star of LEFT JOINs, keys of both sides"),
        pytest.param("ternary", "COUNT(*) AS n", 5, id="one table with itself"),
    ],
)
@pytest.mark.full
def test_joins_of_60_tables_are_planned_in_seconds(shape: str, result: str, seconds: float) -> None:
    tables, joined = SHAPES[shape](60)
    db = Database()
    db.execute(";".join(f"CREATE TABLE {table}" for table in tables))
    # A C profiler counts the calls in a fraction of the time of ``Counted``, but cannot end the run.
    with Profile(builtins=False) as profile:
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {result} FROM {joined}")
    assert sum(entry.callcount for entry in profile.getstats()) <= seconds * SECOND


@pytest.mark.parametrize("shape", ["chain", "star", "ternary"])
def test_joins_of_20_tables_are_planned_in_a_second(shape: str) -> None:
    tables, joined = SHAPES[shape](20)
    plan(tables, f"SELECT {'COUNT(*) AS n' if shape == 'ternary' else '*'} FROM {joined}", 1)


def test_a_clique_over_one_table_is_planned_in_a_second() -> None:
    edges = list(combinations(range(6), 2))
    names = ", ".join(f"e AS e{i}" for i in range(len(edges)))
    explained = plan(["e(s BIGINT, d BIGINT)"], f"SELECT COUNT(*) AS n FROM {names} WHERE {equalities(edges)}", 1)
    assert "15 occurrences of e take an update one after the other" in explained


DEMOGRAPHICS = """
SELECT SUM(quantity) AS quantity FROM sales, stores, people, places, days
WHERE sales.store = stores.store AND sales.day = days.day AND year = 2000
AND ((people.person = sales.person AND married = 1 AND degree = 4 AND price BETWEEN 100 AND 150)
 OR (people.person = sales.person AND married = 2 AND degree = 2 AND price BETWEEN 50 AND 100)
 OR (people.person = sales.person AND married = 3 AND degree = 1 AND price BETWEEN 150 AND 200))
AND ((sales.place = places.place AND state IN (1, 2, 3) AND profit BETWEEN 0 AND 2000)
 OR (sales.place = places.place AND state IN (4, 5, 6) AND profit BETWEEN 150 AND 3000)
 OR (sales.place = places.place AND state IN (7, 8, 9) AND profit BETWEEN 50 AND 25000))
"""


def test_conditions_over_many_columns_are_planned_in_a_second() -> None:
    tables = [
        "sales(store INT, day INT, person INT, place INT, quantity INT, price INT, profit INT)",
        "stores(store INT, name STRING)",
        "people(person INT, married INT, degree INT)",
        "places(place INT, country STRING, state INT)",
        "days(day INT, year INT)",
    ]
    plan(tables, DEMOGRAPHICS, 1)


def sums(count: int) -> str:
    return f"SELECT {', '.join(f'SUM(c{i}) AS s{i}' for i in range(count))} FROM t"


def least(count: int) -> str:
    return f"SELECT {', '.join(f'MIN(c{i}) AS m{i}' for i in range(count))} FROM t"


@pytest.mark.parametrize(
    ("columns", "select", "seconds"),
    [
        pytest.param(2000, "SELECT * FROM t", 1, id="2,000 columns"),
        pytest.param(2000, sums(2000), 2, id="2,000 sums"),
        pytest.param(2000, least(2000), 5, id="2,000 minima"),
        pytest.param(200, "SELECT * FROM t NATURAL JOIN u", 1, id="NATURAL JOIN by 200 columns"),
        pytest.param(200, "SELECT t.*, COUNT(*) AS n FROM t GROUP BY ALL", 1, id="groups"),
        pytest.param(300, "SELECT t.*, u.c1 AS d FROM t JOIN u ON t.c0 = u.c0", 1, id="JOIN of 300 columns"),
    ],
)
def test_wide_tables_are_planned_fast(columns: int, select: str, seconds: float) -> None:
    named = ", ".join(f"c{i} BIGINT" for i in range(columns))
    plan([f"t({named})", f"u({named})"], select, seconds)


def test_a_chain_of_21_tables_is_planned_in_a_second() -> None:
    tables = [f"t{i}(a{i} BIGINT, a{i + 1} BIGINT)" for i in range(21)]
    joins = " ".join(f"JOIN t{i} USING (a{i})" for i in range(1, 21))
    explained = plan(tables, f"SELECT COUNT(*) AS n FROM t0 {joins}", 1)
    assert "order     greedy, over 20 variables" in explained


def test_a_script_of_many_tables_is_read_fast() -> None:
    db = Database()
    with Counted(SECOND * 2 / 3):
        db.execute(";".join(f"CREATE TABLE t{i} (a BIGINT, b STRING)" for i in range(1000)))
    assert len(db.tables) == 1000


@pytest.mark.parametrize(
    ("members", "seconds"),
    [
        pytest.param([str(i) for i in range(150_000)], 1, id="150,000 integers"),
        pytest.param([f"'{i}'" for i in range(150_000)], 1, id="150,000 strings"),
        pytest.param([("NULL", f"{i}", f"{i}.5")[i % 3] for i in range(20_000)], 0.4, id="integers, decimals, NULL"),
    ],
)
def test_long_lists_of_constants_are_planned_fast(members: list[str], seconds: float) -> None:
    kind = "STRING" if members[0].startswith("'") else "BIGINT"
    plan([f"t(a {kind}, b BIGINT)"], f"SELECT b FROM t WHERE a IN ({', '.join(members)})", seconds)


def star(count: int) -> Query:
    """A fact table with a dimension for each of its columns; all columns are free."""
    keys = [f"k{i}" for i in range(1, count)]
    rows = [f"D{i}(k{i}, a{i})" for i in range(1, count)]
    free = ", ".join([*keys, *(f"a{i}" for i in range(1, count))])
    return query(f"Q({free}) = F({', '.join(keys)}), {', '.join(rows)}")


def chain(count: int) -> tuple[list[str], str]:
    """The tables of a chain, and their joins."""
    tables = [f"t{i}(a{i} BIGINT, a{i + 1} BIGINT)" for i in range(count)]
    return tables, "t0 " + " ".join(f"JOIN t{i} USING (a{i})" for i in range(1, count))


SHAPES = {"chain": chain, "star": stars, "star of both": stars_of_both, "ternary": ternary}


def test_the_planner_chooses_another_strategy_if_a_program_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, joins = chain(8)
    explained = plan(tables, f"SELECT * FROM {joins}", 1)
    assert "strategy  crown" in explained and "large" not in explained
    monkeypatch.setattr(crown, "MOST_PREFERRED", 300)
    explained = plan(tables, f"SELECT * FROM {joins}", 1)
    assert "strategy  view_tree" in explained
    assert "large     crown is preferred for at most 300 statements" in explained


def test_a_program_that_is_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crown, "MOST_STATEMENTS", 300)
    tables, joins = chain(8)
    named = "TBLPROPERTIES ('freshviews.strategy' = 'crown')"
    db = Database()
    db.execute(";".join(f"CREATE TABLE {table}" for table in tables))
    with pytest.raises(TooLarge, match="more than 300 statements; set view_tree, or no strategy"):
        db.execute(f"CREATE MATERIALIZED VIEW v {named} AS SELECT * FROM {joins}")


def test_self_joins_that_are_not_free_connex_are_planned_in_a_second() -> None:
    joins = " ".join(f"JOIN e AS e{i} ON e{i}.s = e{i - 1}.d" for i in range(1, 20))
    plan(["e(s BIGINT, d BIGINT)"], f"SELECT e0.s AS a, e19.d AS b, COUNT(*) AS n FROM e AS e0 {joins} GROUP BY ALL", 1)


def chain_graph(count: int) -> Hypergraph:
    names = tuple(f"a{i}" for i in range(count + 1))
    edges = tuple(Edge(f"R{i}", frozenset(pair)) for i, pair in enumerate(pairwise(names)))
    return Hypergraph(names, frozenset(names), edges)


def test_the_join_tree_of_60_tables_is_found_in_a_second() -> None:
    with Counted(SECOND):
        assert compares_all(chain_graph(60))


def test_the_search_for_join_trees_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_trees, "MOST_CHOICES", 50)
    graph = chain_graph(13)
    tree = best_tree(graph, {})
    assert tree is not None and tree.height == 7 and not compares_all(graph)
    check_tree(tree, graph)


def test_the_variable_order_of_a_star_of_60_tables_is_found_in_seconds() -> None:
    with Counted(2 * SECOND):
        assert STRATEGIES["view_tree"].of_query(star(60)).views


def test_higher_order_gives_up_early_if_it_needs_too_many_views() -> None:
    with Counted(SECOND / 4), pytest.raises(PlanError, match="more than 256 views"):
        STRATEGIES["higher_order"].of_query(star(20))
