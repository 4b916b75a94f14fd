"""Finds the matches of a regular expression in a text, for regexp_extract, regexp_replace and others."""

from __future__ import annotations

import re
from functools import lru_cache

from freshviews.expr.regular_expressions import finder
from freshviews.expr.strings import check_length

_PIECE = re.compile(r"\\(?P<character>.)|\$(?P<group>[0-9])|(?P<text>[^\\$]+)", re.DOTALL)


def regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    """The group of the first match; empty if there is no match, or the group takes no part in it."""
    count, found = finder(pattern)
    if not 0 <= group <= count:
        raise ValueError(f"the pattern {pattern!r} has only {count} groups; there is no group {group}")
    span = next((match[group] for match in found(text)), None)
    return "" if span is None else text[span[0] : span[1]]


def regexp_substr(text: str, pattern: str) -> str | None:
    """The first match; None if there is none or it is empty."""
    return regexp_extract(text, pattern, 0) or None


def regexp_count(text: str, pattern: str) -> int:
    """The number of matches."""
    return sum(1 for _ in finder(pattern)[1](text))


def regexp_instr(text: str, pattern: str) -> int:
    """1-based position of the first match, 0 without one. It counts UTF-16 units, as Spark does."""
    span = next((match[0] for match in finder(pattern)[1](text)), None)
    return 0 if span is None else len(text[: span[0]].encode("utf-16-le")) // 2 + 1


def regexp_replace(text: str, pattern: str, by: str, position: int = 1) -> str:
    """The text with each match replaced by ``by``, in which $1 is a group and a backslash quotes any character.

    Matches begin at a 1-based position, in UTF-16 units, where a search for the pattern begins, too."""
    if position < 1:
        raise ValueError(f"regexp_replace: the position must be at least 1, not {position}")
    if position > 1:
        units = text.encode("utf-16-le", "surrogatepass")
        start = len(units[: 2 * (position - 1)].decode("utf-16-le", "ignore"))
        return text if 2 * (position - 1) >= len(units) else text[:start] + regexp_replace(text[start:], pattern, by)
    count, found = finder(pattern)
    pieces = _pieces(by, count)
    made: list[str] = []
    at = length = 0
    for match in found(text):
        span = match[0]
        assert span is not None
        before = len(made)
        made.append(text[at : span[0]])
        for piece in pieces:
            group = match[piece] if isinstance(piece, int) else None
            made.append(piece if isinstance(piece, str) else "" if group is None else text[group[0] : group[1]])
        at = span[1]
        length += sum(map(len, made[before:]))
        check_length("regexp_replace", length)
    check_length("regexp_replace", length + len(text) - at)
    return "".join((*made, text[at:]))


@lru_cache(maxsize=256)
def _pieces(by: str, count: int) -> tuple[str | int, ...]:
    """The texts and numbers of groups of a replacement."""
    made: list[str | int] = []
    place = 0
    while place < len(by):
        found = _PIECE.match(by, place)
        if found is None or int(found["group"] or 0) > count:
            raise ValueError(
                f"replacement {by!r}: at character {place + 1}, write the number of a group, 0 to {count}, after $, "
                "and a character after \\"
            )
        place = found.end()
        made.append(int(found["group"]) if found["group"] else found["character"] or found["text"])
    return tuple(made)
