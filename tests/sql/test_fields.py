"""A part of a tree that the binder does not read is refused, for every class of nodes of sqlglot."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from sqlglot import exp

from freshviews.errors import SqlError, UnsupportedSql
from freshviews.sql import parse_script
from freshviews.sql.text.fields import READ, unknown_nodes, unread
from tests.sql.printed import catalog

CLASSES = [
    kind
    for _, kind in inspect.getmembers(exp, inspect.isclass)
    if issubclass(kind, exp.Expression) and hasattr(kind, "arg_types")
]


@pytest.mark.parametrize("kind", sorted(READ, key=lambda kind: kind.__name__))
def test_unread_arguments_of_syntax_nodes_are_refused(kind: Any) -> None:
    for name in set(kind.arg_types) - READ[kind]:
        node = kind(**{name: exp.to_identifier("x")})
        found = unread([exp.Create(this=exp.to_identifier("v")), node])
        assert found is not None, name
        assert found[1] and found[2]


def test_new_arguments_of_sqlglot_are_refused() -> None:
    for kind in READ:
        node = kind(added_later=exp.to_identifier("x"))
        found = unread([exp.Create(this=exp.to_identifier("v")), node])
        assert found is not None and found[1] == "ADDED LATER", kind


def test_every_listed_field_is_an_argument_of_its_class() -> None:
    for kind, names in READ.items():
        # Older versions of sqlglot have the dropped name in ``this``.
        assert names <= {*kind.arg_types, *(("this",) if kind is exp.Drop else ())}, kind


def test_syntax_nodes_of_unknown_classes_are_refused() -> None:
    assert len(CLASSES) > 900
    for kind in CLASSES:
        assert (kind in READ) == (not list(unknown_nodes([kind()]))), kind


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a FROM r FOR UPDATE", "FOR UPDATE"),
        ("SELECT a FROM r LEFT JOIN s §x USING (a) MATCH_CONDITION (a > b)", ""),
        ("SELECT SUM(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE TIES) AS x FROM r", ""),
        ("SELECT a FROM r ORDER BY a WITH FILL", "WITH FILL"),
        ("SELECT trim(s COLLATE utf8) AS x FROM r", ""),
        ("SELECT COUNT(*) AS n, (a AS b) AS c FROM r GROUP BY a", ""),
        ("SELECT a FROM r UNION SELECT a FROM r BY NAME", ""),
        ("SELECT a JOIN s", "JOIN without FROM"),
        ("(SELECT a FROM r) INTERSECT (SELECT a FROM r) x", "a name for a query here"),
        ("SELECT a FROM r GROUP BY GROUPING SETS ((a, b x))", "a name for an expression here"),
        ("SELECT a AS ? FROM r", ""),
        ("SELECT SUM(a) OVER (w ORDER BY a) AS x FROM r WINDOW w AS (PARTITION BY b)", "refers to another one"),
        ("SELECT * ILIKE 'a%' FROM r", "* ILIKE"),
        ("SELECT a FROM r WHERE a IN b", "IN without parentheses"),
        ("WITH q AS NOT MATERIALIZED (SELECT a FROM r) SELECT a FROM q", ""),
    ],
)
def test_a_clause_that_would_have_no_effect_is_refused(query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_script("CREATE MATERIALIZED VIEW v AS " + query.replace("§", ""), catalog())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        ("SELECT SUM(a) OVER (ORDER BY a ROWS 1 PRECEDING §AND CURRENT ROW) AS x FROM r", "BETWEEN is missing before"),
        ("SELECT SUM(a) OVER (ORDER BY a ROWS BETWEEN 1 §PRECEDING) AS x FROM r", "the second bound of the frame is"),
        ("SELECT SUM(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING §AND) AS x FROM r", "something is missing after AND"),
        ("SELECT SUM(a) OVER (ORDER BY a ROWS 1§) AS x FROM r", "PRECEDING or FOLLOWING is missing"),
        ("SELECT SUM(a) OVER w AS x FROM r WINDOW w §(PARTITION BY b)", "AS is missing, as in WINDOW w AS"),
        ("SELECT SUM(a) OVER w AS x FROM r WINDOW w §AS", "a window is missing after AS"),
        ("SELECT COUNT(*) §OVER AS n FROM r", "a window is missing after OVER"),
        ("SELECT a FROM r WHERE b > 1 §FETCH", "Unexpected token"),
        ("SELECT a FROM r §FETCH FIRST 3", "ROWS ONLY is missing after FETCH"),
        ("SELECT TOP §3 a FROM r", "Unexpected token"),
        ("SELECT a FROM r ORDER BY a §ASC DESC", "ASC and DESC exclude each other"),
        ("SELECT a FROM r §GROUP BY a WHERE a > 1", "GROUP BY before WHERE"),
        ("SELECT COUNT(*) AS n FROM r §HAVING COUNT(*) > 1 GROUP BY a", "HAVING before GROUP BY"),
        ("SELECT a §AS GROUP BY FROM r", "a name is missing after AS"),
        ("WITH §AS q (SELECT a FROM r) SELECT a FROM q", "a name is missing before AS"),
        ("SELECT §r.'a' AS x FROM r", "a string as a name"),
        ("SELECT a FROM r §* AS p", "Unexpected token"),
        ("SELECT a FROM §. r", "Unexpected token"),
        ("SELECT §. 1 AS x FROM r", "something is missing before ."),
        ("SELECT MAX(§SELECT b) AS x FROM r", "a subquery without its own parentheses"),
        ("SELECT a FROM r WHERE b IN (1, §SELECT 3)", "a subquery without its own parentheses"),
        ("SELECT coalesce(b, §ALL a) AS x FROM r", "ALL is accepted only before the first argument of an aggregate"),
        ("SELECT CAST(a AS BIGINT §COLLATE) AS x FROM r", "COLLATE in CAST"),
        ("§ROW SELECT a FROM r", "Unexpected token"),
        ("SELECT a FROM r §NATURAL JOIN s USING (a)", "NATURAL JOIN with ON or USING"),
        ("SELECT §FIRST_VALUE() IGNORE NULLS OVER (ORDER BY a) AS x FROM r", "FIRST_VALUE takes"),
        ("SELECT §~s AS x FROM r", "bit operations take integers, not STRING"),
        ("SELECT a FROM r WHERE a > 1 AND d > §DATE '%3'", "DATE '%3' is not a DATE"),
        ("SELECT a FROM r WHERE §s SIMILAR TO '(a|b)%'", "SIMILAR TO is not supported; RLIKE takes a regular"),
        ("SELECT a FROM r WHERE a = §array(1)", "array(...), a value made of several, is not supported"),
        ("SELECT §round(1, 2, 3) AS x FROM r", "round takes 1 or 2 arguments, not 3"),
    ],
)
def test_text_that_spark_refuses_is_refused_at_its_place(marked: str, message: str) -> None:
    before = "CREATE MATERIALIZED VIEW v AS "
    with pytest.raises(SqlError) as caught:
        parse_script(before + marked.replace("§", ""), catalog())
    assert message in str(caught.value)
    assert caught.value.column == len(before) + marked.index("§") + 1


def test_the_place_of_a_clause_is_reported() -> None:
    with pytest.raises(UnsupportedSql) as caught:
        parse_script("DROP TABLE r PURGE", catalog())
    assert (caught.value.line, caught.value.column) == (1, 1)
