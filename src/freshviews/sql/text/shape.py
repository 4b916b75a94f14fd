"""Finds the first word and the parameters of a statement in its text, without parsing the statement."""

from __future__ import annotations

import re

_COMMENT = r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|$)"
_QUOTED = rf"""'(?:\\.|[^'\\])*+'?|"(?:\\.|[^"\\])*+"?|`[^`]*+`?|{_COMMENT}"""
_BEFORE = re.compile(rf"(?:[\s(;]|{_COMMENT})*+")
_WORD = re.compile(r"[A-Za-z]\w*")
_PARAMETER = re.compile(rf"{_QUOTED}|::|(\?)|:([A-Za-z_]\w*)", re.DOTALL)
_PIECE = re.compile(rf"(?:{_QUOTED})|([()])|(\w+)|\S", re.DOTALL)
QUERIES = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE"})
"""First words of queries."""


def first_word(sql: str) -> str:
    """The first word of a statement, in upper case; empty if there is none."""
    found = _WORD.match(sql, _start(sql))
    return found[0].upper() if found else ""


def _start(sql: str) -> int:
    before = _BEFORE.match(sql)
    return before.end() if before else 0


def main_word(sql: str) -> str:
    """As ``first_word``, but after the queries of WITH; a parenthesis there begins a SELECT."""
    word = first_word(sql)
    if word != "WITH":
        return word
    depth, closed = 0, False
    for found in _PIECE.finditer(sql, _start(sql)):
        sign, word = found.groups()
        if sign == "(":
            if closed:
                return "SELECT"
            depth += 1
        elif sign == ")":
            depth -= 1
            closed = depth == 0
        elif word and closed and word.upper() != "AS":
            return str(word).upper()
        elif not found[0].startswith(("--", "/*")):
            closed = False
    return "WITH"


def is_select(sql: str) -> bool:
    """Whether a statement is a query, by its first word."""
    return first_word(sql) in QUERIES


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
