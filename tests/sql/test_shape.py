"""The first word of a statement and its parameters are found without parsing it."""

from __future__ import annotations

import pytest

from freshviews.sql.text.many import insert_of
from freshviews.sql.text.shape import count_parameters, first_word, is_select, main_word, numbered

pytestmark = pytest.mark.plain_python(only=True)


@pytest.mark.parametrize(
    ("sql", "word", "parameters"),
    [
        ("select ?", "SELECT", 1),
        ("  -- insert ?\n ((WITH a AS (SELECT 1) SELECT ? FROM a WHERE b = ?", "WITH", 2),
        ("/* update */ INSERT INTO t VALUES (?, '?', \"?\", `?`, ?) -- ?", "INSERT", 2),
        (r"SELECT 'it\'s ?', 'a''?', ? /* ? * */", "SELECT", 1),
        ("", "", 0),
        ("/* open ?", "", 0),
        ("SELECT 'open ?", "SELECT", 0),
        ("1 + ?", "", 1),
    ],
)
def test_the_parameters_of_a_statement_are_counted(sql: str, word: str, parameters: int) -> None:
    assert (first_word(sql), count_parameters(sql)) == (word, parameters)
    assert is_select(sql) == (word in ("SELECT", "WITH"))


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("WITH a AS (SELECT 1) SELECT * FROM a", "SELECT"),
        ("with a AS (SELECT ')'), b (x, y) AS -- (\n (SELECT 1, (2)) /* ( */ insert INTO t SELECT * FROM b", "INSERT"),
        ("WITH a AS (SELECT 1) (SELECT * FROM a)", "SELECT"),
        ("(WITH a AS (SELECT 1) VALUES (1))", "VALUES"),
        ("WITH `)` AS (SELECT 1), update AS (SELECT 2) DELETE FROM t", "DELETE"),
        ("WITH a AS (SELECT 1", "WITH"),
        ("MERGE INTO t", "MERGE"),
    ],
)
def test_the_main_word_after_a_with_clause_is_found(sql: str, word: str) -> None:
    assert main_word(sql) == word


def test_a_long_statement_is_scanned_in_time_linear_in_its_length() -> None:
    for part in ("(", "/*", "'\\", "/**", "--", "? "):
        count_parameters(part * 500_000)
        first_word(part * 500_000)
        main_word("WITH a AS " + part * 100_000)


@pytest.mark.parametrize(
    ("sql", "text", "names"),
    [
        ("SELECT :a, :b_2, :a", "SELECT ?, ?, ?", ["a", "b_2", "a"]),
        ("SELECT ':a', `:b`, x::INT, :c -- :d", "SELECT ':a', `:b`, x::INT, ? -- :d", ["c"]),
        ("SELECT ?", "SELECT ?", []),
    ],
)
def test_named_parameters_become_positional_parameters(sql: str, text: str, names: list[str]) -> None:
    assert numbered(sql) == (text, names)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("INSERT INTO t VALUES (?, ?)", ("t", (), 2)),
        (" insert into `a b` ( x, `Y z` ) values(?,?) ; ", ("a b", ("x", "Y z"), 2)),
        ("INSERT INTO t VALUES (?), (?)", None),
        ("INSERT INTO t VALUES (?, 1)", None),
        ("INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING", None),
        ("INSERT INTO t SELECT ?", None),
        ("INSERT OVERWRITE t VALUES (?)", None),
        ("DELETE FROM t WHERE a = ?", None),
    ],
)
def test_an_insert_of_a_row_of_parameters_is_recognised(sql: str, found: object) -> None:
    assert insert_of(sql) == found
