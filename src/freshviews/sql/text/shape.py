"""Reads the first word and the parameters of a statement before it is parsed."""

from __future__ import annotations

import re

_COMMENT = r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|$)"
_BEFORE = re.compile(rf"(?:[\s(;]|{_COMMENT})*+")
_WORD = re.compile(r"[A-Za-z]\w*")
_PARAMETER = re.compile(
    rf"""'(?:\\.|[^'\\])*+'?|"(?:\\.|[^"\\])*+"?|`[^`]*+`?|{_COMMENT}|::|(\?)|:([A-Za-z_]\w*)""", re.DOTALL
)
_SELECTS = {"SELECT", "WITH", "VALUES", "FROM", "TABLE"}


def first_word(sql: str) -> str:
    """The first word of a statement, in upper case; empty if there is none."""
    before = _BEFORE.match(sql)
    found = _WORD.match(sql, before.end() if before else 0)
    return found[0].upper() if found else ""


def is_select(sql: str) -> bool:
    """Whether a statement is a query, by its first word."""
    return first_word(sql) in _SELECTS


def count_parameters(sql: str) -> int:
    """The number of ``?`` outside of strings, quoted names and comments."""
    return sum(1 for found in _PARAMETER.finditer(sql) if found[1])


def numbered(sql: str) -> tuple[str, list[str]]:
    """A statement whose ``:name`` are ``?``, and their names in order."""
    names: list[str] = []

    def replaced(found: re.Match[str]) -> str:
        if not found[2]:
            return found[0]
        names.append(found[2])
        return "?"

    return _PARAMETER.sub(replaced, sql), names
