"""What a tree has and the binder does not read is refused, for every class of nodes of sqlglot."""

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
def test_an_argument_that_nobody_reads_is_refused(kind: Any) -> None:
    for name in set(kind.arg_types) - READ[kind]:
        node = kind(**{name: exp.to_identifier("x")})
        found = unread([exp.Create(this=exp.to_identifier("v")), node])
        assert found is not None, name
        assert found[1] and found[2]


def test_what_is_read_is_an_argument() -> None:
    for kind, names in READ.items():
        # Older versions of sqlglot have what is dropped in ``this``.
        assert names <= {*kind.arg_types, *(("this",) if kind is exp.Drop else ())}, kind


def test_a_class_that_the_binder_does_not_know_is_refused() -> None:
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
        ("SELECT SUM(a) OVER (w ORDER BY a) AS x FROM r WINDOW w AS (PARTITION BY b)", "builds on another one"),
        ("SELECT * ILIKE 'a%' FROM r", "* ILIKE"),
        ("SELECT a FROM r WHERE a IN b", "IN without parentheses"),
        ("WITH q AS NOT MATERIALIZED (SELECT a FROM r) SELECT a FROM q", ""),
    ],
)
def test_a_clause_without_effect_is_no_clause(query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_script("CREATE MATERIALIZED VIEW v AS " + query.replace("§", ""), catalog())
    assert message in str(caught.value)


def test_the_place_of_a_clause_is_reported() -> None:
    with pytest.raises(UnsupportedSql) as caught:
        parse_script("DROP TABLE r PURGE", catalog())
    assert (caught.value.line, caught.value.column) == (1, 1)
