"""Evaluates LIKE. A pattern is cut at each ``%`` into segments, which are found in the text one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

Segment = list[str | None]
"""Characters; None stands for any one character."""

Find = Callable[[str, int, int], int]
"""Finds a segment between two positions of a text: its first place, or -1."""


@lru_cache(maxsize=1024)
def matcher(pattern: str, escape: str) -> Callable[[str], bool]:
    """The test of a LIKE pattern. Raises ValueError unless the escape stands before ``%``, ``_`` or itself."""
    first, *rest = segments(pattern, escape)
    begins = _find(first)
    if not rest:
        length = len(first)
        return lambda text: len(text) == length and begins(text, 0, length) == 0
    *middle, last = rest
    if not first and not last and all(None not in one for one in middle):
        return _with_words(["".join(filter(None, one)) for one in middle])
    ends = _find(last)
    within = [(_find(one), len(one)) for one in middle]
    head, tail = len(first), len(last)
    least = head + tail + sum(length for _, length in within)

    def matches(text: str) -> bool:
        stop = len(text) - tail
        if len(text) < least or begins(text, 0, head) != 0 or ends(text, stop, len(text)) != stop:
            return False
        place = head
        for find, length in within:
            place = find(text, place, stop)
            if place < 0:
                return False
            place += length
        return True

    return matches


def _with_words(words: list[str]) -> Callable[[str], bool]:
    """The test of ``%word%word%``: the words are in the text, one after the other."""

    def matches(text: str) -> bool:
        place = 0
        for word in words:
            place = text.find(word, place)
            if place < 0:
                return False
            place += len(word)
        return True

    return matches


def segments(pattern: str, escape: str) -> list[Segment]:
    """The segments around the ``%`` of a pattern, none empty between two; ValueError for an escape out of place.

    The first segment is anchored at the beginning of the text, the last at its end. If a segment in between also occurs
    at a later place, the first place leaves more text to the next segments. So only the first place is tried. The time
    is at most the length of the text times the length of the longest segment with ``_``. Without ``_``, the time is
    linear in the length of the text.
    """
    if len(escape) != 1:
        raise ValueError(f"the escape of LIKE must be one character, not {escape!r}")
    found: list[Segment] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None or following not in ("%", "_", escape):
                raise ValueError(
                    f"in the LIKE pattern {pattern!r} the escape {escape!r} must stand before %, _ or itself"
                )
            found[-1].append(following)
        elif character == "%":
            if found[-1] or len(found) == 1:
                found.append([])
        else:
            found[-1].append(None if character == "_" else character)
    return found


def _find(segment: Segment) -> Find:
    plain = [character for character in segment if character is not None]
    if len(plain) == len(segment):
        return _finds("".join(plain))
    # The pattern has a fixed length, so the search of ``re`` never goes back.
    search = re.compile("".join("." if c is None else re.escape(c) for c in segment), re.DOTALL).search

    def find(text: str, start: int, stop: int) -> int:
        found = search(text, start, stop)
        return found.start() if found is not None else -1

    return find


def _finds(part: str) -> Find:
    return lambda text, start, stop: text.find(part, start, stop)
