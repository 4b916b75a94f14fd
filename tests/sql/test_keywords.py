"""Keywords are names where Spark takes them for names; otherwise freshviews refuses the text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from sqlglot import exp

from freshviews import Database
from freshviews.errors import FreshviewsError
from freshviews.sql.text.parse import SqlText, parse
from tests.sql.keywords import KEYWORDS, OTHER, PLACES, REFUSED

NAME = "zzz"
ROWS = [(3, 10), (1, 20), (2, 10), (None, 30)]
ACCEPTED = {
    "a table, joined": "lateral",
    "a table, after a comma": "lateral",
    "a table's alias before JOIN": "natural",
    "LIKE": "having limit offset where",
    "CREATE TABLE": "identifier",
}
"""Names that Spark refuses and freshviews accepts as names."""
_STRUCTURAL = """
    all and as between case collate cross distinct else except fetch for from having ilike inner intersect into join
    lateral like limit minus not on or outer over select tablesample then union using values when where window with
    false null true
"""
STRUCTURAL = frozenset(_STRUCTURAL.split())
"""Words that freshviews refuses in some places; all others are names everywhere."""


def _shape(node: Any, name: str) -> Any:
    """A tree whose identifiers are texts, with ``NAME`` for a name."""
    if isinstance(node, list):
        return [_shape(one, name) for one in node]
    if isinstance(node, exp.Identifier):
        return NAME if node.name.lower() == name else node.name.lower()
    if isinstance(node, exp.Expr):
        return type(node).__name__, {key: _shape(value, name) for key, value in node.args.items() if value}
    return node


def _read(place: str, word: str, name: str) -> Any:
    """The shape of the text of a place; None if it is refused."""
    try:
        return _shape(parse(SqlText(PLACES[place].format(k=word, q=f"`{name}`"))), name)
    except FreshviewsError:
        return None


def _is_refused(place: str, word: str) -> bool:
    """True if the database refuses the text of a place, over tables with the names."""
    with Database() as database:
        database.execute(f"CREATE TABLE t (`{word}` BIGINT, o BIGINT); CREATE TABLE `{word}` (o BIGINT)")
        text = PLACES[place].format(k=word, q=f"`{word}`")
        try:
            database.execute(text if text[:1] in "CDA" else f"CREATE MATERIALIZED VIEW vv AS {text}")
        except FreshviewsError:
            return True
        return False


@pytest.mark.sample(8)
@pytest.mark.parametrize("place", PLACES)
def test_a_keyword_may_be_a_name_wherever_spark_accepts_it(place: str) -> None:
    expected = _read(place, f"`{NAME}`", NAME)
    refused = {word for words, places in REFUSED.items() if place in places for word in words.split()}
    other = {word for words, places in OTHER.items() if place in places for word in words.split()}
    accepted = set(ACCEPTED.get(place, "").split())
    wrong = []
    for word in KEYWORDS:
        assert _read(place, f"`{word}`", word) == expected, f"`{word}` in backquotes"
        found = _read(place, word, word)
        if word in refused:
            is_right = found is None or word in accepted or _is_refused(place, word)
        elif word in other:
            is_right = word not in ("true", "false", "null") or found != expected
        else:
            is_right = found == expected or (word in STRUCTURAL and (found is None or _is_refused(place, word)))
        if not is_right:
            wrong.append(word)
    assert not wrong


@pytest.mark.plain_python(only=True)
@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "word",
    (
        *("date", "current_date", "from", "user", "interval", "timestamp", "left", "if", "first", "any", "values"),
        *("table", "natural", "full", "lateral", "filter", "over", "cube", "grouping", "sets", "window"),
        *("rows", "nulls", "asc"),
        *("limit", "offset", "div", "rlike", "where", "in", "join", "on", "using", "having", "and", "then"),
    ),
)
def test_a_column_named_like_a_keyword_returns_its_own_values(word: str) -> None:
    with Database() as database:
        database.execute(f"CREATE TABLE t ({NAME} BIGINT, o BIGINT); CREATE TABLE {NAME} (o BIGINT)")
        expected = _contents(database, NAME)
    with Database() as database:
        database.execute(f"CREATE TABLE t (`{word}` BIGINT, o BIGINT); CREATE TABLE `{word}` (o BIGINT)")
        found = _contents(database, word)
    other = {place for words, places in OTHER.items() if word in words.split() for place in places}
    wrong = {p: rows for p, rows in found.items() if rows is not None and p not in other and rows != expected[p]}
    assert not wrong
    assert sum(rows is not None for rows in found.values()) > len(found) // 2


def _contents(database: Database, name: str) -> dict[str, Counter[Any] | None]:
    """The rows of the query of each place; None if it is refused."""
    database.insert("t", ROWS)
    database.insert(name, [(10,), (20,)])
    found: dict[str, Counter[Any] | None] = {}
    for place, text in PLACES.items():
        if text.startswith(("SELECT", "WITH")):
            found[place] = None
            view = f"v{len(found)}"
            try:
                database.execute(f"CREATE MATERIALIZED VIEW {view} AS {text.format(k=name, q=f'`{name}`')}")
            except FreshviewsError:
                continue
            found[place] = Counter(database.view(view))
    return found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT o values FROM t", "values"),
        ("SELECT o FROM t where", "where"),
        ("SELECT o FROM t AS left", "left"),
    ],
)
def test_the_error_of_a_refused_keyword_proposes_backquotes(text: str, name: str) -> None:
    with pytest.raises(FreshviewsError, match="in backquotes"):
        parse(SqlText(text))
