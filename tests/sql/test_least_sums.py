"""MIN and MAX of sums over several tables: a join of the least values of each table, not of all rows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import freshviews as fv
from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.database import Database
from freshviews.engine.views import view_block
from freshviews.kernel.ordered import index

pytestmark = pytest.mark.plain_python(only=True)

PAGE = Path(__file__).parents[2] / "docs" / "rings.md"
TABLES = "CREATE TABLE r (k BIGINT, g BIGINT, x BIGINT, d DOUBLE); CREATE TABLE s (k BIGINT, y BIGINT, d DOUBLE)"


def database(select: str) -> Database:
    db = fv.Database()
    db.execute(f"{TABLES}; CREATE MATERIALIZED VIEW v AS {select}")
    return db


def rows_kept(db: Database) -> int:
    """Number of rows of the internal views and of the views that their programs store."""
    return sum(one["rows"] for name, one in db.stats()["views"].items() if name != "v")


@pytest.mark.parametrize("select", ["MIN(r.x + s.y)", "MAX(2 * r.x - s.y)", "MIN(r.x + s.y), MAX(s.y - r.x)"])
def test_the_least_sum_joins_one_row_per_key(select: str) -> None:
    db = database(f"SELECT g, {select.replace('),', ') AS m,')} AS n FROM r JOIN s USING (k) GROUP BY g")
    db.insert("r", [(1, 7, x, None) for x in range(60)])
    db.insert("s", [(1, y, None) for y in range(60)])
    assert rows_kept(db) <= 3, "3,600 rows are joined"


def test_the_least_sum_follows_deletes_of_the_least_values() -> None:
    db = database("SELECT MIN(r.x + s.y) AS m FROM r JOIN s USING (k)")
    db.insert("r", [(1, 0, x, None) for x in (5, 6, 9)] + [(2, 0, 1, None)])
    db.insert("s", [(1, 10, None), (1, 20, None), (2, 30, None)])
    seen = [list(db.view("v"))]
    for table, row in (("r", (1, 0, 5, None)), ("s", (1, 10, None)), ("r", (1, 0, 6, None)), ("s", (1, 20, None))):
        db.delete(table, [row])
        seen.append(list(db.view("v")))
    db.delete("s", [(2, 30, None)])
    assert [*seen, list(db.view("v"))] == [[(15,)], [(16,)], [(26,)], [(29,)], [(31,)], [(None,)]]


@pytest.mark.parametrize(
    "what, select",
    [
        ("doubles: infinity less infinity is no number", "SELECT MIN(r.d + s.d) AS m FROM r JOIN s USING (k)"),
        ("all rows count", "SELECT MIN(r.x + s.y) AS m, COUNT(*) AS n FROM r JOIN s USING (k)"),
        ("x would be two times", "SELECT MIN(r.x + s.y - r.g) AS m FROM r JOIN s USING (k)"),
        ("a product with a negative number falls", "SELECT MIN(r.x * s.y) AS m FROM r JOIN s USING (k)"),
        ("distinct values are counted", "SELECT COUNT(DISTINCT r.x + s.y) AS m FROM r JOIN s USING (k)"),
    ],
)
def test_aggregates_that_need_every_row_store_all_rows_of_the_join(what: str, select: str) -> None:
    db = database(select)
    db.insert("r", [(1, g, g - 2, float(g)) for g in range(4)])
    db.insert("s", [(1, y - 2, float(y)) for y in range(4)])
    assert rows_kept(db) > 4, what


def test_the_least_sum_of_infinities_equals_the_join() -> None:
    db = database("SELECT MIN(r.d + s.d) AS m FROM r JOIN s USING (k)")
    infinity = float("inf")
    db.insert("r", [(1, 0, 0, -infinity), (1, 0, 0, 1.0)])
    db.insert("s", [(1, 0, infinity)])
    assert list(db.view("v")) == [(infinity,)]


def test_a_table_joined_by_its_key_needs_no_internal_view() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE p (k BIGINT PRIMARY KEY, x BIGINT); CREATE TABLE q (k BIGINT, y BIGINT);"
        "CREATE MATERIALIZED VIEW v AS SELECT MIN(p.x + q.y) AS m FROM p JOIN q USING (k)"
    )
    shuffled = random.Random(1).sample(range(50), 50)
    db.insert("p", [(k, -k) for k in range(5)])
    db.insert("q", [(n % 5, n) for n in shuffled])
    assert list(db.view("v")) == [(0,)]
    assert sorted(name for name in db.stats()["views"]) == ["v", "v#1", "v#2"]


def test_both_sides_of_a_self_join_read_one_view() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE edge (src INT, dst INT, weight INT); CREATE MATERIALIZED VIEW v AS SELECT a.src, b.dst,"
        " MIN(a.weight + b.weight) AS weight FROM edge a JOIN edge b ON a.dst = b.src GROUP BY a.src, b.dst"
    )
    db.insert("edge", [(1, 2, 5), (1, 2, 3), (2, 3, 10), (2, 1, 1)])
    assert sorted(db.view("v")) == [(1, 1, 4), (1, 3, 13), (2, 2, 4)]
    assert sorted(db.stats()["views"]) == ["v", "v#1", "v#2"]
    assert db.stats()["views"]["v#1"]["rows"] == 3, "the least weight of each pair"


SIZES = (8, 32, 128)
FORMS = {
    "least sums": "SELECT MIN(r.x + s.y) AS m FROM r JOIN s USING (k)",
    "joined": "SELECT MIN(r.x + s.y) AS m, COUNT(*) AS n FROM r JOIN s USING (k)",
}
"""COUNT(*) needs all rows of the join."""


def steps_of_updates(select: str, n: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Steps of inserting and deleting a row of r, among n rows of each table with its key: the steps of all triggers,
    and the visited rows of trees of ordered values. The least value is looked up and changes the result."""
    visits = 0

    def visiting(link: Callable[..., int]) -> Callable[..., int]:
        def visited(*args: int) -> int:
            nonlocal visits
            visits += 1
            return link(*args)

        return visited

    def steps() -> int:
        views = db._relations.views.values()
        return visits + sum(int(b.state.status[STATUS_STEPS]) for view in views for b in view.maintained.blocks)

    with monkeypatch.context() as patch:
        patch.setattr(view_block, "compile_block", partial(compile_block, counted=True))
        patch.setattr(index, "left_link", visiting(index.left_link))
        patch.setattr(index, "right_link", visiting(index.right_link))
        db = database(select)
        db.insert("r", [(1, 0, 2 * x, None) for x in range(n)])
        db.insert("s", [(1, 2 * y, None) for y in range(n)])
        found = {}
        for what, x in (("a row between others", n + 1), ("a least row", -1)):
            before = steps()
            db.insert("r", [(1, 0, x, None)])
            assert next(iter(db.view("v")))[0] == min(x, 0)
            db.delete("r", [(1, 0, x, None)])
            found[what] = steps() - before
            assert next(iter(db.view("v")))[0] == 0
        return found


def test_the_rings_page_states_the_counted_steps_of_least_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {form: {n: steps_of_updates(select, n, monkeypatch) for n in SIZES} for form, select in FORMS.items()}
    lines = [
        f"| {form}, {what} | {' | '.join(f'{taken[form][n][what]:,}' for n in SIZES)} |"
        for form in FORMS
        for what in ("a row between others", "a least row")
    ]
    assert "\n".join(lines) in PAGE.read_text(), "\n".join(lines)
    for n in SIZES:
        # Two searches in a tree, whose height is about 2 ln n, and steps that do not depend on n.
        assert taken["least sums"][n]["a row between others"] <= 4 * math.log2(n) + 12
        assert taken["least sums"][n]["a least row"] <= 64
        assert min(taken["joined"][n].values()) >= 2 * n * math.log2(n)
