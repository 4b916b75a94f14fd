"""Functions that nest deeper than Python allows are written in parts that do the same."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from freshviews import Database, View
from freshviews.codegen import writer
from freshviews.codegen.compiled_block import generate
from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES
from tests.codegen.test_source import block_of, undefined
from tests.query.notation import query

pytestmark = pytest.mark.plain_python(only=True)

LIMITS = [(2, 99), (99, 4), (99, 5), (2, 6)]
"""Loops within each other, and levels, from which parts begin."""

QUERIES = (
    "Q() = R(a, b), S(b, c), T(c, a)",
    "Q(a, b, c) = R(a, b), S(b, c), T(c, a)",
    "Q(a, c) = R(a, b), S(b, c)",
    "Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)",
)


def limit(monkeypatch: pytest.MonkeyPatch, loops: int, levels: int) -> None:
    monkeypatch.setattr(writer, "MOST_LOOPS", loops)
    monkeypatch.setattr(writer, "MOST_LEVELS", levels)


@pytest.mark.parametrize(("loops", "levels"), LIMITS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_of_a_function_use_only_defined_names(
    strategy: str, loops: int, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, loops, levels)
    for text in QUERIES:
        made = query(text)
        try:
            program = STRATEGIES[strategy].of_query(made)
        except PlanError:
            continue
        for counted in (False, True):
            assert not undefined(str(generate(program, block_of(made), (), (), None, counted)))


def view(name: str, strategy: str, select: str, epsilon: str = "0.5") -> str:
    properties = f"'freshviews.strategy' = '{strategy}', 'freshviews.epsilon' = '{epsilon}'"
    if not strategy.startswith("ivm_eps"):
        properties = f"'freshviews.strategy' = '{strategy}'"
    return f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ({properties}) AS {select};"


PATH = "FROM r JOIN s USING (b) JOIN t USING (c)"
STAR = "FROM r JOIN s USING (b) JOIN t ON t.c = r.b JOIN s AS q ON q.c = r.b"
TRIANGLE = f"{PATH} WHERE t.a = r.a"
SCRIPT = f"""
CREATE TABLE r (a BIGINT, b BIGINT, x DOUBLE);
CREATE TABLE s (b BIGINT, c BIGINT);
CREATE TABLE t (c BIGINT, a BIGINT);
CREATE MATERIALIZED VIEW path AS SELECT a, b, c, x FROM r JOIN s USING (b);
CREATE MATERIALIZED VIEW ends AS SELECT r.a, t.a AS d, COUNT(*) AS n, SUM(x) AS x {PATH} GROUP BY r.a, t.a;
CREATE MATERIALIZED VIEW triangles AS SELECT COUNT(*) AS n, SUM(x) AS x {TRIANGLE};
{view("tries", "trie_join", f"SELECT r.a, COUNT(*) AS n, SUM(b + c) AS s, SUM(x) AS x {TRIANGLE} GROUP BY r.a")}
{view("remembered", "trie_join", f"SELECT r.a, COUNT(*) AS n, SUM(t.a) AS s {PATH} GROUP BY r.a")}
{view("some", "trie_join", f"SELECT DISTINCT r.a {PATH}")}
{view("traced", "incremental_trie_join", f"SELECT r.a, b, c {TRIANGLE}")}
{view("enumerated", "crown", f"SELECT r.a, b, c, t.a AS d {PATH}")}
{view("gathered", "crown", "SELECT a, b, COUNT(*) AS n, SUM(x) AS x FROM r JOIN s USING (b) GROUP BY a, b")}
{view("listed", "ivm_eps", f"SELECT r.a, b, c {TRIANGLE}")}
{view("parted", "ivm_eps", "SELECT r.a, c FROM r JOIN s USING (b)")}
{view("union", "ivm_eps", f"SELECT r.a, s.c, t.a AS d, q.b AS e {STAR}", "0.25")}
{view("linear", "ivm_eps_linear", f"SELECT COUNT(*) AS n, SUM(x) AS x {TRIANGLE}")}
CREATE MATERIALIZED VIEW least AS SELECT a, MIN(x) AS least, COUNT(DISTINCT c) AS n FROM r JOIN s USING (b) GROUP BY a;
CREATE MATERIALIZED VIEW first AS SELECT a, b, x FROM r ORDER BY x DESC, a, b LIMIT 3;
CREATE MATERIALIZED VIEW below AS SELECT r.a, COUNT(*) AS n FROM r JOIN s ON r.b < s.c GROUP BY r.a;
CREATE MATERIALIZED VIEW outer AS SELECT r.a, s.c FROM r LEFT JOIN s ON r.b = s.b AND s.c > 1;
CREATE MATERIALIZED VIEW kinds AS
    SELECT CASE WHEN a = 0 THEN 'none' WHEN a = 1 THEN 'one' WHEN b > 2 THEN 'far' ELSE 'other' END AS kind,
    COALESCE(NULLIF(a, 1), NULLIF(b, 2), 7) AS known, COUNT(*) AS n FROM r WHERE a < 5 AND b < 5 AND x > 0 GROUP BY ALL
"""


def two_by_two(view: View) -> list[Any]:
    return [row for batch in view.to_batches(2) for row in batch.to_pylist()]


def contents() -> list[Any]:
    """The views after each batch, and the changes passed to subscribers."""
    found: list[Any] = []
    db = Database()
    db.execute(SCRIPT)
    names = [one.split()[0] for one in SCRIPT.split("MATERIALIZED VIEW ")[1:]]
    for name in names:
        db.view(name).subscribe(lambda change: found.append(sorted(change, key=repr)))
    rows = {name: [(i * 7 % 4, i * 5 % 3, *((0.5 + i,) if name == "r" else ())) for i in range(9)] for name in "rst"}
    for change, step in ((db.insert, 1), (db.delete, 2)):
        for name, given in rows.items():
            change(name, given[::step])
            found.append([sorted(db.view(one), key=repr) for one in names])
            # Enumerations stop and resume.
            found.append([sorted(map(repr, two_by_two(db.view(one)))) for one in names])
    return found


@pytest.mark.parametrize(("loops", "levels"), LIMITS)
def test_views_have_the_same_rows_when_functions_are_split_into_parts(
    loops: int, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = without_parts()
    limit(monkeypatch, loops, levels)
    assert contents() == expected


@cache
def without_parts() -> list[Any]:
    return contents()


def test_twenty_four_tables_are_joined_over_one_key() -> None:
    count = 24
    db = Database()
    db.execute(";".join(f"CREATE TABLE t{i} (k BIGINT, x{i} BIGINT)" for i in range(count)))
    joins = " ".join(f"JOIN t{i} USING (k)" for i in range(1, count))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM t0 {joins}")
    for i in range(count):
        db.insert(f"t{i}", [(1, 10 * i), (2, 10 * i + 1)] + [(1, 7)] * (i in (3, 20)))
    rows = sorted(db.view("v"))
    assert len(rows) == 5
    assert rows[-1] == (2, *(10 * i + 1 for i in range(count)))
    db.delete("t20", [(1, 7)])
    assert len(list(db.view("v"))) == 3
