"""Writes the error message for text that is not SQL, with suggestions for misspelt keywords."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from sqlglot import Token, TokenType

from freshviews.sql.text.names import is_often_a_name

NO_STATEMENT = "a statement is missing"

# The keywords of accepted statements, and the types; a name that is none of these may be a misspelt one.
_WORDS = """
    ALL ALTER AND AS ASC BETWEEN BY CASE CREATE CROSS CUBE CURRENT DESC DISTINCT DROP ELSE END ESCAPE EXCEPT EXISTS
    FETCH FILTER FIRST FOLLOWING FOREIGN FROM FULL GROUP GROUPING HAVING IN INNER INTERSECT INTERVAL INTO IS JOIN
    KEY LAST LATERAL LEFT LIKE LIMIT MATERIALIZED NATURAL NOT NULL NULLS OFFSET ON OPTIONS ORDER OUTER OVER
    PARTITION PRECEDING PRIMARY QUALIFY RANGE RECURSIVE REFERENCES REPLACE RIGHT ROLLUP ROWS SELECT SEMI SETS
    STREAMING TABLE TBLPROPERTIES THEN UNBOUNDED UNION UNIQUE USING VALUES VIEW WHEN WHERE WINDOW WITH BIGINT
    BOOLEAN DATE DECIMAL DOUBLE FLOAT INT INTEGER SMALLINT STRING TIMESTAMP TINYINT VARCHAR
"""
_KEYWORDS = tuple(_WORDS.split())
_ALIKE = 0.75
_BESIDE = (0, -1, 1, -2, 2)
"""Positions of a misspelt keyword relative to the token that the parser refuses, the likeliest one first."""


def misspelt(tokens: Sequence[Token], failed_at: int | None) -> str:
    """``; did you mean SELECT instead of SELCT?`` if a word near the offset of an error is nearly a keyword; else, if
    a lower-case keyword there may be meant as a name, the remedy."""
    at = next((i for i, token in enumerate(tokens) if token.start == failed_at), None)
    if at is None:
        return ""
    for place in (at + step for step in _BESIDE):
        if not 0 <= place < len(tokens) or tokens[place].token_type != TokenType.VAR:
            continue
        word = tokens[place].text
        if sum(token.text == word for token in tokens) > 1:
            continue  # a name: it has a definition and a use
        close = get_close_matches(word.upper(), _KEYWORDS, n=1, cutoff=_ALIKE)
        if close and close[0] != word.upper():
            return f"; did you mean {close[0]} instead of {word}?"
    for token in tokens[max(at - 1, 0) : at + 1]:
        if is_often_a_name(token.token_type) and token.text.islower():
            return f"; as a name, write {token.text} in backquotes"
    return ""


_OTHER_STYLES = re.compile(r"%s\b|%\([^()]*\)s\b|:[0-9]+")
"""Parameters as drivers of other databases write them."""


def other_style(tokens: Sequence[Token], failed_at: int | None, text: str) -> tuple[str, int] | None:
    """A parameter of another style, ``%s``, ``%(name)s`` or ``:1``, at an error or beside it, and its offset."""
    at = next((i for i, token in enumerate(tokens) if token.start == failed_at), None)
    for token in () if at is None else tokens[max(at - 1, 0) : at + 2]:
        found = _OTHER_STYLES.match(text, token.start)
        if found is not None:
            return found[0], token.start
    return None


def plain_message(message: str) -> str:
    """A message of sqlglot's parser without its tokens and classes."""
    if message.startswith("Expected table name but got"):
        return "the name of a table or view is missing; write a keyword that is a name in backquotes"
    return message.replace("Invalid expression / Unexpected token", "Unexpected token")
