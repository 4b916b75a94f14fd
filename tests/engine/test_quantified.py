"""NOT IN, ANY and ALL: an insert that flips no result touches no row of the enclosing query, counted in steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from freshviews import Database
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.views import view_block

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]

ROWS = 600
LOW = 10
"""The least value of s; the greatest one is LOW + ROWS."""

QUERIES = [
    "SELECT a FROM r WHERE b NOT IN (SELECT c FROM s{})",
    "SELECT a FROM r WHERE NOT (b IN (SELECT c FROM s{}))",
    "SELECT a FROM r WHERE b <> ALL (SELECT c FROM s{})",
    "SELECT a, b NOT IN (SELECT c FROM s{}) AS x FROM r",
    "SELECT a FROM r WHERE b IN (SELECT c FROM s{}) OR b NOT IN (SELECT c FROM s{})",
    "SELECT a FROM r WHERE b < ANY (SELECT c FROM s{})",
    "SELECT a FROM r WHERE NOT b < ANY (SELECT c FROM s{})",
    "SELECT a FROM r WHERE b >= ALL (SELECT c FROM s{})",
    "SELECT a FROM r WHERE b = ALL (SELECT c FROM s{})",
    "SELECT a FROM r WHERE b <> ANY (SELECT c FROM s{})",
    "SELECT a, b > ANY (SELECT c FROM s{}) AS x, b <= ALL (SELECT c FROM s{}) AS y FROM r",
    "SELECT a, b <> ANY (SELECT c FROM s{}) AS x, b = ALL (SELECT c FROM s{}) AS y FROM r",
    "SELECT a FROM r WHERE b <> ANY (SELECT c FROM s{}) OR b = 1",
]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Triggers count their steps."""
    monkeypatch.setattr(view_block, "compile_block", partial(compile_block, counted=True))
    yield


def steps_of(db: Database) -> int:
    """The steps of all triggers so far, those of internal views included."""
    views = db._relations.views.values()
    return sum(int(block.state.status[STATUS_STEPS]) for view in views for block in view.maintained.blocks)


@pytest.mark.parametrize(
    ("names", "where"),
    [("BIGINT", ""), ("BIGINT", " WHERE s.k = r.k"), ("BIGINT NOT NULL", " WHERE s.k = r.k AND r.a > 3")],
)
@pytest.mark.parametrize("query", QUERIES)
def test_inserts_that_change_no_quantified_comparison_are_cheap(
    counting: None, query: str, names: str, where: str
) -> None:
    with Database() as db:
        db.execute(f"CREATE TABLE r (a BIGINT, k BIGINT, b {names}); CREATE TABLE s (k BIGINT, c {names})")
        db.execute(f"CREATE MATERIALIZED VIEW v AS {query.replace('{}', where)}")
        db.insert("r", [(i, 1, i % 50) for i in range(ROWS)])
        db.insert("s", [(1, LOW + i) for i in range(0, ROWS + 1, 2)])
        most = 0
        for i in range(1, 40, 2):
            before = steps_of(db)
            db.insert("s", [(1, LOW + ROWS // 2 + i)])
            db.delete("s", [(1, LOW + ROWS // 2 + i)])
            most = max(most, steps_of(db) - before)
        assert 0 < most <= 100


@pytest.mark.parametrize("where", ["", " WHERE s.k = r.k"])
def test_only_the_first_null_in_a_not_in_subquery_visits_outer_rows(counting: None, where: str) -> None:
    with Database() as db:
        db.execute("CREATE TABLE r (a BIGINT, k BIGINT, b BIGINT); CREATE TABLE s (k BIGINT, c BIGINT)")
        db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM r WHERE b NOT IN (SELECT c FROM s{where})")
        db.insert("r", [(i, 1, i) for i in range(ROWS)])
        db.insert("s", [(1, -1)])
        taken = []
        for _ in range(3):
            before = steps_of(db)
            db.insert("s", [(1, None)])
            taken.append(steps_of(db) - before)
        assert len(db.view("v")) == 0
        assert taken[0] >= ROWS > 20 * max(taken[1:])
