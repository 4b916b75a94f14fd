"""A user names the join tree of a view; an invalid tree is refused with the reason."""

from __future__ import annotations

import pytest

from freshviews import Database
from freshviews.cli.advise import line_of
from freshviews.errors import PlanError
from freshviews.plan.crown.free_connex_query import prepared
from freshviews.plan.crown.tree_choice import tree_of
from freshviews.query.hypergraph import hypergraph
from freshviews.query.join_trees import all_trees, parse_tree
from tests.query.notation import query

PATH = query("Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)")
SQL = """CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE t (c BIGINT NOT NULL, d BIGINT NOT NULL);
CREATE MATERIALIZED VIEW v TBLPROPERTIES ({properties}) AS {sql};"""
JOIN = "SELECT r.a, r.b AS x, s.c AS y, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c"


@pytest.mark.parametrize("text", ["[b](R, S(T))", "S(R, T)", " [ c ] ( T , S ( R ) ) ", "T(S(R))"])
def test_the_planner_uses_the_join_tree_that_a_property_gives(text: str) -> None:
    tree = tree_of(prepared(PATH), {}, text)
    assert tree == parse_tree(text, hypergraph(PATH))
    assert {node.name for node in tree.nodes()} >= {"R", "S", "T"}


def test_a_property_can_give_every_valid_join_tree() -> None:
    for tree in all_trees(hypergraph(PATH)):
        assert tree_of(prepared(PATH), {}, line_of(tree, PATH)) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R(S)", "a join tree must name each of R, S, T once"),
        ("R(S, T, S)", "a join tree must name each of R, S, T once"),
        ("R(S, X)", "'X' is not a relation of the query; the relations are R, S, T"),
        ("[x](R, S(T))", "there is no variable x; the variables are a, b, c, d"),
        ("R(T(S))", "the nodes with variable b must be connected"),
        ("R(S(T)", "lacks a closing bracket"),
        ("R(S(T)) S", "is followed by further text"),
        ("R(S([c](T)))", r"the node \[c\] is below a relation"),
        ("[a, b, c](R, S(T))", r"\[a, b, c\] needs a child"),
        ("", "is not a relation of the query"),
    ],
)
def test_texts_that_are_not_trees_of_the_query_are_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        tree_of(prepared(PATH), {}, text)


def test_a_tree_that_is_not_free_connex_is_refused() -> None:
    made = query("Q(a, b) = R(a, b), S(b, c)")
    with pytest.raises(PlanError, match="the root of the join tree may have only columns of the result"):
        tree_of(prepared(made), {}, "S(R)")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'freshviews.join_tree' = 'r(s, t)'", "the nodes with"),
        ("'freshviews.join_tree' = 'g(s)'", "'g' is not a relation of the query; the relations are r, s, t"),
        ("'freshviews.join_tree' = 's(r, t)', 'freshviews.strategy' = 'view_tree'", "is an option of strategy crown"),
        ("'freshviews.updates' = 'r many'", "'r many' must be a name and its number"),
    ],
)
def test_create_view_refuses_a_tree_that_is_not_free_connex(properties: str, message: str) -> None:
    with Database() as db:
        properties = properties if "strategy" in properties else f"{properties}, 'freshviews.strategy' = 'crown'"
        with pytest.raises(PlanError, match=message):
            db.execute(SQL.format(properties=properties, sql=JOIN))
        assert db.views == ()
