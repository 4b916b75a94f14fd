"""The relations of a query are found at their places, and renamed without any other change."""

from __future__ import annotations

import pytest

from freshviews.errors import SqlError
from freshviews.sql.statements.relations import relations_of, renamed


@pytest.mark.parametrize(
    "query, expected",
    [
        ("SELECT * FROM a", "SELECT * FROM `r0` AS `a`"),
        ("SELECT x.k FROM `a b`.c x JOIN d USING (k)", "SELECT x.k FROM `r0` x JOIN `r1` AS `d` USING (k)"),
        ("SELECT * FROM c.s.t, csv.`/in/x`", "SELECT * FROM `r0` AS `t`, `r1` AS `/in/x`"),
        ("SELECT * FROM f(10)", "SELECT * FROM `r0`"),
        ("SELECT * FROM range(10)", "SELECT * FROM range(10)"),
        ("FROM default.t |> JOIN spark_catalog.default.s USING (a)",
         "FROM `r0` AS `t` |> JOIN `r1` AS `s` USING (a)"),
        ("SELECT (SELECT MAX(k) FROM b) FROM a", "SELECT (SELECT MAX(k) FROM `r0` AS `b`) FROM `r1` AS `a`"),
        ("SELECT 'FROM a' FROM a -- FROM b", "SELECT 'FROM a' FROM `r0` AS `a` -- FROM b"),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", "WITH a AS (SELECT * FROM `r0` AS `a`) SELECT * FROM a"),
        (
            "WITH a AS (SELECT 1), b AS (SELECT * FROM a, c) SELECT * FROM b, s.b",
            "WITH a AS (SELECT 1), b AS (SELECT * FROM a, `r0` AS `c`) SELECT * FROM b, `r1` AS `b`",
        ),
        ("SELECT 1 AS k FROM a UNION ALL (SELECT 2 FROM a)",
         "SELECT 1 AS k FROM `r0` AS `a` UNION ALL (SELECT 2 FROM `r1` AS `a`)"),
    ],
)  # fmt: skip
def test_renaming_the_relations_of_a_query_keeps_aliases(query: str, expected: str) -> None:
    found = relations_of(query)
    assert renamed(query, {one: f"r{number}" for number, one in enumerate(found)}).text == expected


def test_places_in_a_renamed_query_map_to_places_in_the_original_query() -> None:
    query = "SELECT wrong FROM cat.sales.orders WHERE wrong > 1"
    made = renamed(query, dict.fromkeys(relations_of(query), "o"))
    assert made.original(made.text.index("wrong")) == query.index("wrong")
    assert made.original(made.text.rindex("wrong")) == query.rindex("wrong")
    assert made.original(made.text.index("`o`") + 1) == query.index("cat")


def test_a_text_with_two_selects_is_refused() -> None:
    with pytest.raises(SqlError):
        relations_of("SELECT 1; SELECT 2")
